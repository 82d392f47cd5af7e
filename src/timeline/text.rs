//! What RTTM and UEM files have in common: lines of fields between white space, comments, limits on size, and
//! errors that name file, line and cause. Depends on nothing else here.

use std::io::{self, BufRead, Read};
use std::path::{Path, PathBuf};

/// Longest line that is read, in bytes; a longer one is no RTTM or UEM and must not fill the memory.
pub const MAX_LINE_BYTES: usize = 64 * 1024;
/// Most turns or regions that one file may hold.
pub const MAX_ENTRIES: usize = 20_000_000;
/// Latest time and longest duration that is accepted, in seconds (115 days).
pub const MAX_SECONDS: f64 = 1e7;

/// Why an RTTM or UEM file could not be read.
#[derive(Debug, thiserror::Error)]
pub enum TextError {
    /// The file or folder could not be opened or read.
    #[error("{}: {source}", path.display())]
    Io {
        /// File or folder.
        path: PathBuf,
        /// What the operating system says.
        source: io::Error,
    },
    /// A line breaks the format.
    #[error("{}:{line}: {cause}", path.display())]
    Line {
        /// File.
        path: PathBuf,
        /// Line number, from 1.
        line: usize,
        /// What is wrong with the line.
        cause: Cause,
    },
    /// Two files of one folder describe the same recording, so that it is unclear which one is meant.
    #[error("{}: recording {uri:?} is in {} too", second.display(), first.display())]
    Duplicate {
        /// Name of the recording.
        uri: String,
        /// File that was read first.
        first: PathBuf,
        /// File that repeats the recording.
        second: PathBuf,
    },
    /// A folder holds no RTTM file.
    #[error("{}: no .rttm file in this folder", path.display())]
    EmptyFolder {
        /// Folder.
        path: PathBuf,
    },
}

/// What is wrong with one line of an RTTM or UEM file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Cause {
    /// The bytes are not UTF-8.
    #[error("not UTF-8 text")]
    Encoding,
    /// The line is longer than [`MAX_LINE_BYTES`].
    #[error("line longer than {MAX_LINE_BYTES} bytes")]
    LineTooLong,
    /// The file holds more than [`MAX_ENTRIES`] entries.
    #[error("more than {MAX_ENTRIES} entries")]
    TooMany,
    /// The number of fields between white space is wrong.
    #[error("{found} fields instead of {expected} (a name must not contain white space)")]
    Fields {
        /// Fields found.
        found: usize,
        /// Fields that the format has.
        expected: &'static str,
    },
    /// A time is not a decimal number of seconds.
    #[error("{what} {text:?} is not a number of seconds")]
    Number {
        /// Which field.
        what: &'static str,
        /// The field as it stands in the file, shortened.
        text: String,
    },
    /// A time is negative.
    #[error("{what} {text:?} is negative")]
    Negative {
        /// Which field.
        what: &'static str,
        /// The field as it stands in the file, shortened.
        text: String,
    },
    /// A time is above [`MAX_SECONDS`].
    #[error("{what} {text:?} is above {MAX_SECONDS} s")]
    TooLarge {
        /// Which field.
        what: &'static str,
        /// The field as it stands in the file, shortened.
        text: String,
    },
    /// A region of a UEM ends at or before its start.
    #[error("the region ends at or before its start")]
    EmptyRegion,
}

/// Hands the fields of every line that is neither blank nor a comment to `each`; lines end in LF or CRLF, comments
/// start with `;;` or `#`, a byte-order mark before the first line is dropped.
///
/// Memory stays below [`MAX_LINE_BYTES`] whatever the input.
pub(super) fn for_each_line(
    mut input: impl BufRead,
    path: &Path,
    mut each: impl FnMut(&[&str]) -> Result<(), Cause>,
) -> Result<(), TextError> {
    let mut bytes = Vec::new();
    for line in 1.. {
        let error = |cause| TextError::Line { path: path.to_owned(), line, cause };
        bytes.clear();
        let limit = MAX_LINE_BYTES as u64 + 1;
        let read = input.by_ref().take(limit).read_until(b'\n', &mut bytes);
        let read = read.map_err(|source| TextError::Io { path: path.to_owned(), source })?;
        if read == 0 {
            break;
        }
        if read > MAX_LINE_BYTES {
            return Err(error(Cause::LineTooLong));
        }
        let text = std::str::from_utf8(&bytes).map_err(|_| error(Cause::Encoding))?;
        let text = if line == 1 { text.trim_start_matches('\u{feff}') } else { text }.trim_ascii();
        if text.is_empty() || text.starts_with(";;") || text.starts_with('#') {
            continue;
        }
        let fields: Vec<&str> = text.split_ascii_whitespace().collect();
        each(&fields).map_err(error)?;
    }
    Ok(())
}

/// Reads a time in seconds that must be finite, not negative and at most [`MAX_SECONDS`].
pub(super) fn seconds(what: &'static str, field: &str) -> Result<f64, Cause> {
    let text = || field.chars().take(40).collect::<String>();
    // `f64::from_str` also takes "inf" and "nan", which are no times.
    let numeric = field.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'-' | b'+' | b'e' | b'E'));
    let value: f64 = match field.parse() {
        Ok(value) if numeric => value,
        _ => return Err(Cause::Number { what, text: text() }),
    };
    if value < 0.0 {
        Err(Cause::Negative { what, text: text() })
    } else if value > MAX_SECONDS {
        Err(Cause::TooLarge { what, text: text() })
    } else {
        // Turns "-0.0" into 0.0.
        Ok(value.abs())
    }
}
