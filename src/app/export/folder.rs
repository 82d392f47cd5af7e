//! Result folders appear whole or not at all, like result files, and nothing that the program did not write is ever
//! removed with an old one.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::ExportError;
use super::write::{WriteError, folder_of, temporary};

/// Whether a file in a folder of results is one that the program wrote.
pub type Ours = fn(&Path) -> bool;

/// Makes the folder `path` of what `fill` puts into a folder. Unless `replace`, one that is there already is left alone.
///
/// # Errors
/// If something is there that may not be replaced, the disk refuses, or `fill` fails. No partial folder stays behind.
pub fn atomically(
    path: &Path,
    replace: bool,
    ours: Ours,
    fill: impl FnOnce(&Path) -> Result<(), ExportError>,
) -> Result<(), ExportError> {
    check_target(path, replace, ours)?;
    let new = Part::create(folder_of(path))?;
    fill(&new.0)?;
    check_target(path, replace, ours)?;
    if path.is_dir() {
        exchange(&new.0, path, ours)?;
    } else {
        fs::rename(&new.0, path).map_err(WriteError::Io)?;
    }
    Ok(())
}

/// Whether a folder may be put at `path`: `Ok` if nothing is there, or if it is a folder that `replace` allows to be
/// replaced and that holds nothing but files of ours.
///
/// # Errors
/// If something else is there.
pub fn check_target(path: &Path, replace: bool, ours: Ours) -> Result<(), WriteError> {
    match fs::symlink_metadata(path) {
        Err(_) => Ok(()),
        Ok(_) if !path.is_dir() => Err(WriteError::NotAFolder),
        Ok(_) if !replace => Err(WriteError::Exists),
        Ok(facts) if !facts.is_dir() => Err(WriteError::NotAFolder),
        Ok(_) => own_files(path, ours).map(drop),
    }
}

/// The files in `folder`, if all are ours.
fn own_files(folder: &Path, ours: Ours) -> Result<Vec<PathBuf>, WriteError> {
    let entries = fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path()));
    let files = entries.collect::<io::Result<Vec<PathBuf>>>()?;
    let regular = |path: &Path| fs::symlink_metadata(path).is_ok_and(|facts| facts.is_file());
    match files.iter().find(|path| !(regular(path) && ours(path))) {
        Some(path) => {
            Err(WriteError::Foreign(path.file_name().unwrap_or_default().to_string_lossy().into_owned()))
        }
        None => Ok(files),
    }
}

/// Puts the folder `new` in the place of `path`, which is moved out of the way and removed last.
fn exchange(new: &Path, path: &Path, ours: Ours) -> Result<(), WriteError> {
    let aside = Part::create(folder_of(path))?;
    let old = aside.0.join("old");
    fs::rename(path, &old)?;
    // Only here nobody can add to it under its name any more.
    let moved = own_files(&old, ours).and_then(|files| {
        fs::rename(new, path)?;
        Ok(files)
    });
    match moved {
        Ok(files) => {
            files.iter().try_for_each(fs::remove_file)?;
            fs::remove_dir(&old)?;
            Ok(())
        }
        Err(error) => {
            fs::rename(&old, path)?;
            Err(error)
        }
    }
}

/// A temporary folder. What is in it is removed with it, but for folders, which it gets only by [`exchange`].
struct Part(PathBuf);

impl Part {
    fn create(folder: &Path) -> Result<Self, WriteError> {
        loop {
            let path = temporary(folder);
            match fs::create_dir(&path) {
                Ok(()) => return Ok(Self(path)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(WriteError::Unwritable(error)),
            }
        }
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        for entry in fs::read_dir(&self.0).into_iter().flatten().flatten() {
            let _ = fs::remove_file(entry.path());
        }
        let _ = fs::remove_dir(&self.0);
    }
}
