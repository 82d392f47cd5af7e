//! The sources of the kernels: which there are, what they are compiled for, and their hashes.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use sha2::{Digest, Sha256};

use crate::target::{TARGETS, Target};

/// First line of a file that is compiled for some architectures only.
const RESTRICTION: &str = "// architectures:";

/// One `.cu` file.
pub struct Source {
    /// Its name.
    pub name: String,
    /// Its text, without carriage returns.
    pub text: String,
    /// What it is compiled for.
    pub targets: Vec<Target>,
}

/// All sources.
pub struct Sources {
    /// The files to compile, by name.
    pub files: Vec<Source>,
    /// SHA-256 of these and of all headers, by path relative to `kernels`.
    pub hashes: BTreeMap<String, String>,
}

impl Sources {
    /// Reads the sources below `kernels` of the repository `root`.
    ///
    /// # Errors
    /// If a file cannot be read, or names an unknown architecture.
    pub fn read(root: &Path) -> Result<Self> {
        let folder = root.join("kernels");
        let mut sources = Self { files: Vec::new(), hashes: BTreeMap::new() };
        for (name, path) in list(&folder)? {
            let bytes = fs::read(&path).with_context(|| format!("kernels/{name}"))?;
            let text = String::from_utf8(bytes).with_context(|| format!("kernels/{name}"))?.replace('\r', "");
            sources.hashes.insert(name.clone(), sha256(text.as_bytes()));
            if name.ends_with(".cu") {
                let targets = targets(&text).map_err(|reason| anyhow!("kernels/{name}: {reason}"))?;
                sources.files.push(Source { name, text, targets });
            }
        }
        if sources.files.is_empty() {
            bail!("{} holds no kernels", folder.display());
        }
        Ok(sources)
    }
}

/// Name and path of every source, by name: `*.cu` in `folder`, headers also in `common`.
fn list(folder: &Path) -> Result<BTreeMap<String, PathBuf>> {
    let mut files = BTreeMap::new();
    for (prefix, directory) in [("", folder.to_owned()), ("common/", folder.join("common"))] {
        let entries = fs::read_dir(&directory).with_context(|| directory.display().to_string())?;
        for entry in entries {
            let path = entry?.path();
            let is = |kinds: &[&str]| path.extension().is_some_and(|e| kinds.iter().any(|kind| e == *kind));
            if is(&["cu", "cuh", "h"]) {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                if is(&["cu"]) && !prefix.is_empty() {
                    bail!("kernels/{prefix}{name}: files to compile belong into kernels itself");
                }
                files.insert(format!("{prefix}{name}"), path);
            }
        }
    }
    Ok(files)
}

/// The architectures that the first line of `text` names, or all.
fn targets(text: &str) -> Result<Vec<Target>, String> {
    let first = text.lines().next().unwrap_or_default();
    let Some(names) = first.strip_prefix(RESTRICTION) else { return Ok(TARGETS.to_vec()) };
    let mut named = Vec::new();
    for name in names.split([',', ' ']).filter(|name| !name.is_empty()) {
        named.push(Target::find(name)?);
    }
    if named.is_empty() { Err("the first line names no architecture".into()) } else { Ok(named) }
}

/// SHA-256 in lower-case hexadecimal digits.
pub fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_restricts() {
        let names = |text| targets(text).map(|list| list.iter().map(|t| t.name).collect::<Vec<_>>());
        assert_eq!(names("// architectures: sm_90a\n").unwrap(), ["sm_90a"]);
        assert_eq!(names("// architectures: sm_80, compute_80").unwrap(), ["sm_80", "compute_80"]);
        assert_eq!(names("// Anything\n// architectures: sm_90a").unwrap().len(), TARGETS.len());
        assert!(names("// architectures: sm_91").unwrap_err().contains("sm_91"));
        assert!(names("// architectures:").is_err());
    }
}
