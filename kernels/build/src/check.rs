//! `cargo kernels check`: do the prebuilt files belong to the sources?

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::build::expected;
use crate::compile::{self, entries};
use crate::manifest::{FOLDER, Image, Manifest, NAME, Pack};
use crate::sources::{Sources, sha256};
use crate::target::{TARGETS, Target};
use crate::{pack, spills};

/// All that is wrong, one line each.
///
/// # Errors
/// If the sources or the manifest cannot be read at all, or with `rebuild` something does not compile.
pub fn check(root: &Path, rebuild: bool) -> Result<Vec<String>> {
    let sources = Sources::read(root)?;
    let manifest = Manifest::read(root)?;
    let current = expected(&sources);
    let mut findings = inputs(&manifest, &current);
    findings.extend(files(root, &manifest)?);

    let mut images = BTreeMap::new();
    for target in TARGETS {
        match manifest.packs.iter().find(|pack| pack.architecture == target.name) {
            None => findings.push(format!("{}: no pack; run `cargo kernels build`", target.name)),
            Some(pack) => {
                if pack.inputs != manifest.inputs() {
                    findings
                        .push(format!("{}: not of the last build; run `cargo kernels build`", target.name));
                } else if pack.inputs == current.inputs() {
                    findings.extend(coverage(pack, target, &sources));
                }
                match uncompressed(root, pack, target) {
                    Ok(bytes) => {
                        findings.extend(contents(pack, target, &bytes));
                        images.insert(target.name, bytes);
                    }
                    Err(error) => findings.push(format!("{error:#}")),
                }
            }
        }
    }
    findings.extend(entry_sets(&manifest));
    findings.extend(spills::findings(&spills::read(root)?, &manifest.packs.iter().collect::<Vec<_>>()));
    if rebuild {
        findings.extend(differences(root, &sources, &manifest, &images)?);
    }
    if findings.is_empty() {
        let files = sources.files.len();
        println!(
            "{files} files, {} architectures: the prebuilt kernels belong to the sources",
            TARGETS.len()
        );
    }
    Ok(findings)
}

/// Sources, compiler and options against those of the manifest.
fn inputs(manifest: &Manifest, current: &Manifest) -> Vec<String> {
    let mut findings = Vec::new();
    for (name, hash) in &current.sources {
        match manifest.sources.get(name) {
            None => findings.push(format!("kernels/{name}: not in the manifest; run `cargo kernels build`")),
            Some(known) if known != hash => {
                findings.push(format!("kernels/{name}: changed; run `cargo kernels build`"))
            }
            Some(_) => {}
        }
    }
    let gone = manifest.sources.keys().filter(|name| !current.sources.contains_key(*name));
    findings.extend(gone.map(|name| format!("kernels/{name}: gone; run `cargo kernels build`")));
    if manifest.nvrtc != current.nvrtc {
        findings.push(format!("built with NVRTC {}, expected {}", manifest.nvrtc, current.nvrtc));
    }
    if manifest.options != current.options {
        findings.push(format!("built with options {:?}, expected {:?}", manifest.options, current.options));
    }
    findings
}

/// Files that do not belong into the folder, and packs that should not be in the manifest.
fn files(root: &Path, manifest: &Manifest) -> Result<Vec<String>> {
    let mut findings = Vec::new();
    for entry in fs::read_dir(root.join(FOLDER)).context(FOLDER)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name != NAME && !TARGETS.iter().any(|target| target.pack() == name) {
            findings.push(format!("{FOLDER}/{name}: belongs to no architecture"));
        }
    }
    let mut seen = BTreeSet::new();
    for pack in &manifest.packs {
        if Target::find(&pack.architecture).is_err() || !seen.insert(&pack.architecture) {
            findings.push(format!("{}: unknown architecture, or twice in the manifest", pack.architecture));
        }
    }
    Ok(findings)
}

/// Whether `pack` has one image for every source that is compiled for `target`.
fn coverage(pack: &Pack, target: Target, sources: &Sources) -> Vec<String> {
    let wanted: Vec<&str> =
        sources.files.iter().filter(|s| s.targets.contains(&target)).map(|s| s.name.as_str()).collect();
    let held: Vec<&str> = pack.images.iter().map(|image| image.file.as_str()).collect();
    if wanted == held {
        return Vec::new();
    }
    vec![format!("{}: holds {held:?}, expected {wanted:?}", target.name)]
}

/// The images of `pack` after its size and hash were compared.
fn uncompressed(root: &Path, pack: &Pack, target: Target) -> Result<Vec<u8>> {
    let path = format!("{FOLDER}/{}", target.pack());
    anyhow::ensure!(pack.file == target.pack(), "{path}: the manifest calls it {:?}", pack.file);
    let bytes = fs::read(root.join(&path)).context(path.clone())?;
    anyhow::ensure!(bytes.len() == pack.bytes, "{path}: has {} bytes, expected {}", bytes.len(), pack.bytes);
    let hash = sha256(&bytes);
    anyhow::ensure!(hash == pack.sha256, "{path}: has SHA-256 {hash}, expected {}", pack.sha256);
    pack::decompress(&bytes, pack.uncompressed_bytes).context(path)
}

/// Whether the images lie one after the other, are for `target` and hold the entries that the manifest names.
fn contents(pack: &Pack, target: Target, bytes: &[u8]) -> Vec<String> {
    let mut findings = Vec::new();
    let mut end = 0;
    for image in &pack.images {
        let name = format!("{}: {}", target.name, image.file);
        if image.offset != end {
            findings.push(format!("{name}: starts at {}, expected {end}", image.offset));
        }
        end = image.offset.saturating_add(image.bytes);
        match slice(bytes, image).context("lies outside of the pack").and_then(|bytes| entries(bytes, target))
        {
            Err(error) => findings.push(format!("{name}: {error:#}")),
            Ok(found) => {
                let facts = |e: &crate::manifest::Entry| (e.name.clone(), e.threads, e.parameter_bytes);
                if !found.iter().map(facts).eq(image.entries.iter().map(facts)) {
                    findings.push(format!("{name}: its entries are not those of the manifest"));
                }
            }
        }
    }
    if end != bytes.len() {
        findings.push(format!("{}: the images end at {end}, the pack at {}", target.name, bytes.len()));
    }
    findings
}

fn slice<'a>(bytes: &'a [u8], image: &Image) -> Option<&'a [u8]> {
    bytes.get(image.offset..image.offset.checked_add(image.bytes)?)
}

/// A file must have the same entries everywhere; 7.5 may lack what needs instructions of 8.0.
fn entry_sets(manifest: &Manifest) -> Vec<String> {
    let mut all: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let names = |image: &Image| image.entries.iter().map(|e| e.name.clone()).collect::<BTreeSet<_>>();
    for image in manifest.packs.iter().flat_map(|pack| &pack.images) {
        all.entry(&image.file).or_default().extend(image.entries.iter().map(|e| e.name.as_str()));
    }
    let mut findings = Vec::new();
    for pack in &manifest.packs {
        if Target::find(&pack.architecture).is_ok_and(|target| target.capability == 75) {
            continue;
        }
        for image in &pack.images {
            let held = names(image);
            let missing: Vec<_> =
                all[image.file.as_str()].iter().filter(|name| !held.contains(**name)).collect();
            if !missing.is_empty() {
                findings.push(format!("{}: {} lacks {missing:?}", pack.architecture, image.file));
            }
        }
    }
    findings
}

/// Compiles everything again and compares images and facts.
fn differences(
    root: &Path,
    sources: &Sources,
    manifest: &Manifest,
    images: &BTreeMap<&str, Vec<u8>>,
) -> Result<Vec<String>> {
    let mut findings = Vec::new();
    for new in compile::compile(root, sources, &TARGETS)? {
        let target = new.target.name;
        let pack = manifest.packs.iter().find(|pack| pack.architecture == target);
        let image = pack.and_then(|pack| pack.images.iter().find(|image| image.file == new.file));
        let old = image.zip(images.get(target)).and_then(|(image, bytes)| slice(bytes, image));
        if old != Some(&new.image) || image.is_some_and(|image| image.entries != new.entries) {
            findings.push(format!("{target}: {} differs from what the sources give now", new.file));
        }
    }
    Ok(findings)
}
