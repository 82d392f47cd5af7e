//! `cargo kernels build`.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::compile::{self, Compiled, OPTIONS};
use crate::manifest::{FOLDER, Image, Manifest, NAME, Pack};
use crate::sources::{Sources, sha256};
use crate::target::{TARGETS, Target};
use crate::{pack, spills, table, toolchain};

/// Compiles for `only`, or for everything if that is empty, and writes the packs and the manifest.
///
/// # Errors
/// If something does not compile or cannot be written.
pub fn build(root: &Path, only: &[Target]) -> Result<Vec<String>> {
    let sources = Sources::read(root)?;
    let spills = spills::read(root)?;
    let targets: Vec<Target> =
        TARGETS.into_iter().filter(|target| only.is_empty() || only.contains(target)).collect();
    let compiled = compile::compile(root, &sources, &targets)?;

    let mut manifest = expected(&sources);
    let inputs = manifest.inputs();
    let folder = root.join(FOLDER);
    fs::create_dir_all(&folder).with_context(|| FOLDER)?;
    let old = if only.is_empty() { None } else { Manifest::read(root).ok() };
    for target in TARGETS {
        if targets.contains(&target) {
            let (facts, bytes) = packed(target, &inputs, &compiled)?;
            let path = folder.join(&facts.file);
            fs::write(&path, bytes).with_context(|| path.display().to_string())?;
            manifest.packs.push(facts);
        } else if let Some(old) = &old {
            manifest.packs.extend(old.packs.iter().filter(|pack| pack.architecture == target.name).cloned());
        }
    }
    fs::write(folder.join(NAME), manifest.to_toml()).with_context(|| format!("{FOLDER}/{NAME}"))?;

    let built: Vec<&Pack> = manifest.packs.iter().filter(|pack| pack.inputs == inputs).collect();
    table::print(&built);
    Ok(spills::findings(&spills, &built))
}

/// The manifest of `sources`, still without packs.
pub fn expected(sources: &Sources) -> Manifest {
    let (major, minor) = toolchain::VERSION;
    let options = OPTIONS.map(str::to_owned).to_vec();
    Manifest::new(format!("{major}.{minor}"), options, sources.hashes.clone())
}

/// The pack of `target` and its facts.
fn packed(target: Target, inputs: &str, compiled: &[Compiled]) -> Result<(Pack, Vec<u8>)> {
    let mut uncompressed = Vec::new();
    let mut images = Vec::new();
    for one in compiled.iter().filter(|one| one.target == target) {
        images.push(Image {
            file: one.file.clone(),
            offset: uncompressed.len(),
            bytes: one.image.len(),
            entries: one.entries.clone(),
        });
        uncompressed.extend_from_slice(&one.image);
    }
    let bytes = pack::compress(&uncompressed)?;
    let facts = Pack {
        architecture: target.name.to_owned(),
        file: target.pack(),
        bytes: bytes.len(),
        sha256: sha256(&bytes),
        uncompressed_bytes: uncompressed.len(),
        inputs: inputs.to_owned(),
        images,
    };
    Ok((facts, bytes))
}
