//! RTTM, the NIST format for speaker turns: strict reading, and writing that reads back equal.
//! Depends on nothing else here.
//!
//! ```text
//! SPEAKER <recording> 1 <start> <duration> <NA> <NA> <speaker> <NA> <NA>
//! ```
//!
//! Other types of lines are skipped, as the format allows, and counted. Turns come in any order, one file may hold
//! many recordings, and names are plain text even where they look like numbers.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use super::text::{Cause, MAX_ENTRIES, TextError, for_each_line, seconds};

/// One speaker turn: a stretch of time in which one speaker talks.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    /// Start in seconds from the beginning of the recording.
    pub start: f64,
    /// Duration in seconds.
    pub duration: f64,
    /// Name of the speaker.
    pub speaker: String,
}

impl Turn {
    /// A turn from `start` to `end`, in seconds.
    pub fn new(start: f64, end: f64, speaker: impl Into<String>) -> Self {
        Self { start, duration: end - start, speaker: speaker.into() }
    }

    /// End in seconds from the beginning of the recording.
    pub fn end(&self) -> f64 {
        self.start + self.duration
    }
}

/// The turns of one or many recordings.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rttm {
    /// Turns of each recording by its name, in the order of the file.
    pub recordings: BTreeMap<String, Vec<Turn>>,
    /// Number of lines of a type other than `SPEAKER`, which were skipped.
    pub skipped: usize,
}

/// Parses RTTM text; `path` only names the source in errors.
///
/// # Errors
/// [`TextError`] with the line and the cause if a `SPEAKER` line has other than 9 or 10 fields, a time that is no
/// number, or a negative time.
pub fn parse(input: impl BufRead, path: &Path) -> Result<Rttm, TextError> {
    let mut rttm = Rttm::default();
    let mut count = 0;
    for_each_line(input, path, |fields| {
        if fields[0] != "SPEAKER" {
            rttm.skipped += 1;
            return Ok(());
        }
        // The tenth field, the look-ahead time, came with a later version of the format.
        if !matches!(fields.len(), 9 | 10) {
            return Err(Cause::Fields { found: fields.len(), expected: "9 or 10" });
        }
        count += 1;
        if count > MAX_ENTRIES {
            return Err(Cause::TooMany);
        }
        let start = seconds("start", fields[3])?;
        let duration = seconds("duration", fields[4])?;
        let turn = Turn { start, duration, speaker: fields[7].to_owned() };
        match rttm.recordings.get_mut(fields[1]) {
            Some(turns) => turns.push(turn),
            None => {
                rttm.recordings.insert(fields[1].to_owned(), vec![turn]);
            }
        }
        Ok(())
    })?;
    Ok(rttm)
}

/// Reads one RTTM file. A file without any turn counts as one recording, named like the file, in which nobody
/// speaks.
///
/// # Errors
/// [`TextError`] if the file cannot be read or breaks the format (see [`parse`]).
pub fn read_file(path: &Path) -> Result<Rttm, TextError> {
    let file = File::open(path).map_err(|source| TextError::Io { path: path.to_owned(), source })?;
    let mut rttm = parse(BufReader::new(file), path)?;
    if let (true, Some(stem)) = (rttm.recordings.is_empty(), path.file_stem()) {
        rttm.recordings.insert(stem.to_string_lossy().into_owned(), Vec::new());
    }
    Ok(rttm)
}

/// Reads one RTTM file, or every `*.rttm` file directly in a folder.
///
/// # Errors
/// [`TextError`] if anything cannot be read or breaks the format, if a folder holds no RTTM file, or if two of its
/// files describe the same recording.
pub fn read(path: &Path) -> Result<Rttm, TextError> {
    if !path.is_dir() {
        return read_file(path);
    }
    let mut all = Rttm::default();
    let mut origin: BTreeMap<String, PathBuf> = BTreeMap::new();
    for file in rttm_files(path)? {
        let rttm = read_file(&file)?;
        all.skipped += rttm.skipped;
        for (uri, turns) in rttm.recordings {
            if let Some(first) = origin.insert(uri.clone(), file.clone()) {
                return Err(TextError::Duplicate { uri, first, second: file });
            }
            all.recordings.insert(uri, turns);
        }
    }
    if origin.is_empty() {
        return Err(TextError::EmptyFolder { path: path.to_owned() });
    }
    Ok(all)
}

/// The `*.rttm` files directly in `folder`, sorted by name.
fn rttm_files(folder: &Path) -> Result<Vec<PathBuf>, TextError> {
    let error = |source| TextError::Io { path: folder.to_owned(), source };
    let mut files = Vec::new();
    for entry in folder.read_dir().map_err(error)? {
        let path = entry.map_err(error)?.path();
        let is_rttm = path.extension().is_some_and(|e| e.eq_ignore_ascii_case("rttm"));
        if is_rttm && path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Shortest turn that is written, in seconds: a shorter one would be written with a duration of 0.000, and readers
/// disagree about such lines.
pub const SHORTEST: f64 = 0.0005;

/// Writes the turns of recording `uri` in the order given, one line each, times in milliseconds (C14).
///
/// Names pass through [`field`]. Turns shorter than [`SHORTEST`] are left out.
///
/// # Errors
/// What the writer returns.
pub fn write(out: &mut impl Write, uri: &str, turns: &[Turn]) -> io::Result<()> {
    let uri = field(uri);
    for turn in turns {
        if turn.duration < SHORTEST {
            continue;
        }
        let speaker = field(&turn.speaker);
        writeln!(
            out,
            "SPEAKER {uri} 1 {:.3} {:.3} <NA> <NA> {speaker} <NA> <NA>",
            turn.start, turn.duration
        )?;
    }
    Ok(())
}

/// `name` as one field of a line: white space and control characters become `_`, and so does an empty name.
pub fn field(name: &str) -> Cow<'_, str> {
    let separates = |c: char| c.is_whitespace() || c.is_control();
    if name.is_empty() {
        Cow::Borrowed("_")
    } else if name.contains(separates) {
        Cow::Owned(name.replace(separates, "_"))
    } else {
        Cow::Borrowed(name)
    }
}
