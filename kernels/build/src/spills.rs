//! The list of entries that may spill registers.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::manifest::Pack;

/// The list, relative to the repository.
pub const FILE: &str = "kernels/spills.toml";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    #[serde(default)]
    spill: Vec<Spill>,
}

/// An entry that may spill on one architecture.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spill {
    entry: String,
    architecture: String,
    reason: String,
}

/// Reads the list of the repository `root`.
///
/// # Errors
/// If it cannot be read or understood.
pub fn read(root: &Path) -> Result<Vec<Spill>> {
    let text = std::fs::read_to_string(root.join(FILE)).context(FILE)?;
    Ok(toml::from_str::<List>(&text).context(FILE)?.spill)
}

/// Spills of `packs` that are not listed, and listed ones without a reason or a spill.
pub fn findings(list: &[Spill], packs: &[&Pack]) -> Vec<String> {
    let mut findings = Vec::new();
    let mut spilling = BTreeSet::new();
    for pack in packs {
        for entry in pack.images.iter().flat_map(|image| &image.entries) {
            if let Some(bytes @ 1..) = entry.spill_bytes {
                spilling.insert((entry.name.as_str(), pack.architecture.as_str()));
                if !list.iter().any(|s| s.entry == entry.name && s.architecture == pack.architecture) {
                    findings.push(format!(
                        "{}: {} spills {bytes} bytes and is not in {FILE}",
                        pack.architecture, entry.name
                    ));
                }
            }
        }
    }
    for Spill { entry, architecture, reason } in list {
        if reason.trim().is_empty() {
            findings.push(format!("{FILE}: {entry} on {architecture} has no reason"));
        }
        let built = packs.iter().any(|pack| pack.architecture == *architecture);
        if built && !spilling.contains(&(entry.as_str(), architecture.as_str())) {
            findings.push(format!("{FILE}: {entry} does not spill on {architecture}; remove it"));
        }
    }
    findings
}
