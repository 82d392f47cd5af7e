//! Result files appear whole or not at all: written under a temporary name, flushed to the disk, renamed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Why a result could not be written. The text does not repeat the path; the caller prints it.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// A file is there and may not be replaced.
    #[error("exists already")]
    Exists,
    /// A folder, or something else that is not a file, has the result's name.
    #[error("is not a file, so no result can be written there")]
    NotAFile,
    /// A file, or something else that is not a folder, has the result's name.
    #[error("is not a folder, so no results can be written there")]
    NotAFolder,
    /// The folder to be replaced holds something that the program did not write.
    #[error("holds {0}, which is not a result, so it cannot be replaced")]
    Foreign(String),
    /// The file to be replaced is write-protected.
    #[error("is write-protected")]
    Protected,
    /// The folder is missing and cannot be made.
    #[error("cannot create the folder: {0}")]
    Folder(io::Error),
    /// The folder takes no files.
    #[error("cannot write into the folder: {0}")]
    Unwritable(io::Error),
    /// Writing failed on the way.
    #[error("cannot write: {0}")]
    Io(#[from] io::Error),
}

/// Writes `bytes` to `path` atomically. Unless `replace`, a file that is there already is left alone.
///
/// # Errors
/// If the file exists and may not be replaced, or the disk refuses. No partial file stays behind.
pub fn atomically(path: &Path, bytes: &[u8], replace: bool) -> Result<(), WriteError> {
    let mut part = Part::create(folder_of(path))?;
    part.file.write_all(bytes)?;
    part.file.sync_all()?;
    check_target(path, replace)?;
    part.rename(path)
}

/// Whether a file may be put at `path`: `Ok` if nothing is there, or if it is a file that `replace` allows
/// to be replaced.
///
/// # Errors
/// If something else is there.
pub fn check_target(path: &Path, replace: bool) -> Result<(), WriteError> {
    match fs::symlink_metadata(path) {
        Err(_) => Ok(()),
        Ok(_) if path.is_dir() => Err(WriteError::NotAFile),
        Ok(_) if !replace => Err(WriteError::Exists),
        Ok(facts) if !facts.is_file() && !facts.is_symlink() => Err(WriteError::NotAFile),
        Ok(facts) if facts.permissions().readonly() => Err(WriteError::Protected),
        Ok(_) => Ok(()),
    }
}

/// Makes `folder` if need be and tries out whether it takes files.
///
/// # Errors
/// If it cannot be made or takes no files.
pub fn prepare_folder(folder: &Path) -> Result<(), WriteError> {
    fs::create_dir_all(folder).map_err(WriteError::Folder)?;
    Part::create(folder).map(drop)
}

/// Folder that holds `path`; the current one for a bare name.
pub fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// A name in `folder` for something temporary. It is short whatever the final name is, so that it never exceeds what the
/// file system allows, and hidden.
pub(super) fn temporary(folder: &Path) -> PathBuf {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    folder.join(format!(".speakrs-{}-{count}.part", std::process::id()))
}

/// A temporary file that is removed unless it is renamed.
struct Part {
    file: File,
    path: PathBuf,
    renamed: bool,
}

impl Part {
    fn create(folder: &Path) -> Result<Self, WriteError> {
        loop {
            let path = temporary(folder);
            match OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(file) => return Ok(Self { file, path, renamed: false }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(WriteError::Unwritable(error)),
            }
        }
    }

    fn rename(mut self, target: &Path) -> Result<(), WriteError> {
        fs::rename(&self.path, target)?;
        self.renamed = true;
        Ok(())
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if !self.renamed {
            let _ = fs::remove_file(&self.path);
        }
    }
}
