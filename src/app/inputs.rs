//! From what the user names (files, folders, patterns, lists) to the recordings it stands for.
//! Looks at names and folders only; nothing is decoded here. Depends on `export` for the names of result folders.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::path::{Component, Path, PathBuf};

use glob::{MatchOptions, Pattern};
use walkdir::{DirEntry, WalkDir};

use super::export::is_result_folder;

/// Extensions that make a file in a folder a recording. A file that is named itself may have any.
/// Formats that the decoder refuses are listed too: an error that says so beats leaving them out in silence.
pub const EXTENSIONS: &[&str] = &[
    "3gp", "aac", "aif", "aifc", "aiff", "alac", "amr", "ape", "au", "avi", "bwf", "caf", "flac", "m4a",
    "m4b", "m4v", "mka", "mkv", "mov", "mp1", "mp2", "mp3", "mp4", "mpga", "oga", "ogg", "ogv", "opus",
    "rf64", "snd", "w64", "wav", "wave", "webm", "wma", "wv",
];

/// A recording to work on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input {
    /// Path as the user would write it.
    pub path: PathBuf,
    /// The path without links and detours, which tells recordings apart.
    pub canonical: PathBuf,
    /// Where its folder lies below the folder that the user named; empty for a file named itself.
    pub below: PathBuf,
    /// Size of the file.
    pub bytes: u64,
}

/// Why something the user named cannot be worked on. The text does not repeat the path.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// Nothing has this name.
    #[error("no such file or folder")]
    Missing,
    /// A device, pipe or socket.
    #[error("not a regular file (pipes and devices cannot be read; save the recording to a file first)")]
    NotAFile,
    /// The operating system refuses to open it.
    #[error("cannot be opened: {0}")]
    Unreadable(io::Error),
    /// A list is not text.
    #[error("the list is not UTF-8 text")]
    ListText,
    /// A pattern has unbalanced brackets or the like.
    #[error("no such file, and not a valid pattern: {0}")]
    Pattern(&'static str),
}

/// What the arguments stand for.
#[derive(Debug, Default)]
pub struct Found {
    /// Recordings in the order of the arguments, each once.
    pub inputs: Vec<Input>,
    /// What cannot be worked on, with the reason.
    pub failures: Vec<(PathBuf, InputError)>,
    /// Folders, patterns and lists that stand for nothing.
    pub empty: Vec<PathBuf>,
}

/// Finds the recordings that `arguments` stand for. `recursive` descends into the folders of folders.
pub fn find(arguments: &[OsString], recursive: bool) -> Found {
    let mut finder = Finder { recursive, found: Found::default(), seen: HashSet::new() };
    for argument in arguments {
        finder.argument(argument);
    }
    finder.found
}

struct Finder {
    recursive: bool,
    found: Found,
    seen: HashSet<PathBuf>,
}

impl Finder {
    /// `@list`, an existing path, or a pattern: in that order, so that a path with `[` in its name works.
    fn argument(&mut self, argument: &OsStr) {
        if let Some(list) = list_path(argument) {
            return self.list(&list);
        }
        let path = Path::new(argument);
        match argument.to_str() {
            Some(text) if !path.exists() && text.contains(['*', '?', '[']) => self.pattern(path, text),
            _ => self.path(path),
        }
    }

    fn list(&mut self, list: &Path) {
        let text = match fs::read(list).map(String::from_utf8) {
            Ok(Ok(text)) => text,
            Ok(Err(_)) => return self.fail(list, InputError::ListText),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return self.fail(list, InputError::Missing);
            }
            Err(error) => return self.fail(list, InputError::Unreadable(error)),
        };
        let lines = text.strip_prefix('\u{feff}').unwrap_or(&text).lines();
        let mut any = false;
        for line in lines.filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
            any = true;
            self.path(Path::new(line));
        }
        if !any {
            self.found.empty.push(list.to_owned());
        }
    }

    fn path(&mut self, path: &Path) {
        match fs::metadata(path) {
            Ok(facts) if facts.is_dir() => self.folder(path, Path::new("")),
            _ => self.file(path.to_owned(), PathBuf::new()),
        }
    }

    /// Takes the recordings in `folder`, which lies `below` what the user named.
    fn folder(&mut self, folder: &Path, below: &Path) {
        let before = self.found.inputs.len() + self.found.failures.len();
        let mut known = false;
        for entry in walk(folder, if self.recursive { usize::MAX } else { 1 }) {
            match entry {
                Ok(entry) if entry.file_type().is_dir() || !is_recording(entry.path()) => {}
                Ok(entry) => {
                    known = true;
                    let inside = entry.path().parent().and_then(|p| p.strip_prefix(folder).ok());
                    self.file(entry.path().to_owned(), below.join(inside.unwrap_or(Path::new(""))));
                }
                Err(error) => self.walk_error(error),
            }
        }
        if !known && before == self.found.inputs.len() + self.found.failures.len() {
            self.found.empty.push(folder.to_owned());
        }
    }

    /// A link back to a folder above ends that branch; a dangling link matters only if it poses as a recording.
    fn walk_error(&mut self, error: walkdir::Error) {
        let path = error.path().map(Path::to_owned).unwrap_or_default();
        if error.loop_ancestor().is_some() {
            tracing::debug!(path = %path.display(), "link to a folder above it, not followed");
        } else if path.is_dir() || is_recording(&path) {
            match error.into_io_error() {
                Some(error) if error.kind() == io::ErrorKind::NotFound => {
                    self.fail(&path, InputError::Missing)
                }
                Some(error) => self.fail(&path, InputError::Unreadable(error)),
                None => {}
            }
        }
    }

    /// Expands a pattern by walking from its last folder without wildcards, so that hidden files and loops
    /// are treated as in folders. What it matches counts as if it had been typed.
    fn pattern(&mut self, path: &Path, text: &str) {
        let wild = |c: &Component| c.as_os_str().to_string_lossy().contains(['*', '?', '[']);
        let components: Vec<Component> = path.components().collect();
        let fixed = components.iter().position(wild).unwrap_or(components.len());
        let root: PathBuf = components[..fixed].iter().collect();
        let rest: PathBuf = components[fixed..].iter().collect();
        let pattern = match Pattern::new(&rest.to_string_lossy()) {
            Ok(pattern) => pattern,
            Err(error) => return self.fail(path, InputError::Pattern(error.msg)),
        };
        let depth = if text.contains("**") { usize::MAX } else { components.len() - fixed };
        let options = MatchOptions {
            case_sensitive: !cfg!(windows),
            require_literal_separator: true,
            require_literal_leading_dot: true,
        };
        let start = if root.as_os_str().is_empty() { Path::new(".") } else { &root };
        let mut any = false;
        for entry in walk(start, depth).filter_map(Result::ok).filter(|entry| entry.depth() > 0) {
            let inside = entry.path().strip_prefix(start).unwrap_or(entry.path());
            if !pattern.matches_with(&inside.to_string_lossy(), options) {
                continue;
            }
            any = true;
            let (path, below) = (root.join(inside), inside.parent().unwrap_or(Path::new("")));
            if !entry.file_type().is_dir() {
                self.file(path, below.to_owned());
            } else if depth != usize::MAX {
                // With `**` the walk comes to the folder's files by itself.
                self.folder(&path, inside);
            }
        }
        if !any {
            self.found.empty.push(path.to_owned());
        }
    }

    fn file(&mut self, path: PathBuf, below: PathBuf) {
        match check_file(&path) {
            Err(error) => self.fail(&path, error),
            Ok((canonical, bytes)) => {
                if self.seen.insert(canonical.clone()) {
                    self.found.inputs.push(Input { path, canonical, below, bytes });
                } else {
                    tracing::debug!(path = %path.display(), "named twice, taken once");
                }
            }
        }
    }

    fn fail(&mut self, path: &Path, error: InputError) {
        self.found.failures.push((path.to_owned(), error));
    }
}

/// The rest of an argument that begins with `@`.
fn list_path(argument: &OsStr) -> Option<PathBuf> {
    Some(PathBuf::from(argument.to_str()?.strip_prefix('@')?))
}

/// Everything in `folder` down to `depth`, sorted, links followed. Hidden entries are left out, and so are folders of
/// results: the sound of single speakers is no recording unless the user names it.
fn walk(folder: &Path, depth: usize) -> impl Iterator<Item = walkdir::Result<DirEntry>> {
    let left_out = |entry: &DirEntry| {
        is_hidden(entry.file_name()) || entry.file_type().is_dir() && is_result_folder(entry.file_name())
    };
    WalkDir::new(folder)
        .max_depth(depth)
        .follow_links(true)
        .sort_by_file_name()
        .into_iter()
        .filter_entry(move |entry| entry.depth() == 0 || !left_out(entry))
}

fn is_hidden(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b".")
}

fn is_recording(path: &Path) -> bool {
    let extension = path.extension().and_then(OsStr::to_str).map(str::to_ascii_lowercase);
    extension.is_some_and(|extension| EXTENSIONS.contains(&extension.as_str()))
}

/// Opens the file to find out early whether that is allowed. A pipe is not opened: that would wait for a writer.
fn check_file(path: &Path) -> Result<(PathBuf, u64), InputError> {
    let explain = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => InputError::Missing,
        _ => InputError::Unreadable(error),
    };
    let facts = fs::metadata(path).map_err(explain)?;
    if !facts.is_file() {
        return Err(InputError::NotAFile);
    }
    File::open(path).map_err(explain)?;
    let canonical = fs::canonicalize(path).map_err(explain)?;
    Ok((canonical, facts.len()))
}
