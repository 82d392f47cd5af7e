//! UEM, the NIST format that says which regions of a recording are scored: `<recording> <channel> <start> <end>`.
//! Depends on nothing else here.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use super::text::{Cause, MAX_ENTRIES, TextError, for_each_line, seconds};

/// A scored stretch of a recording.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Region {
    /// Start in seconds from the beginning of the recording.
    pub start: f64,
    /// End in seconds, after `start`.
    pub end: f64,
}

/// Scored regions of each recording by its name, in the order of the file; they may touch or overlap.
pub type Uem = BTreeMap<String, Vec<Region>>;

/// Parses UEM text; `path` only names the source in errors.
///
/// # Errors
/// [`TextError`] with the line and the cause if a line has other than four fields, a time that is no number or
/// negative, or an end at or before its start.
pub fn parse(input: impl BufRead, path: &Path) -> Result<Uem, TextError> {
    let mut uem = Uem::new();
    let mut count = 0;
    for_each_line(input, path, |fields| {
        let &[uri, _channel, start, end] = fields else {
            return Err(Cause::Fields { found: fields.len(), expected: "4" });
        };
        count += 1;
        if count > MAX_ENTRIES {
            return Err(Cause::TooMany);
        }
        let region = Region { start: seconds("start", start)?, end: seconds("end", end)? };
        if region.end <= region.start {
            return Err(Cause::EmptyRegion);
        }
        uem.entry(uri.to_owned()).or_default().push(region);
        Ok(())
    })?;
    Ok(uem)
}

/// Reads one UEM file.
///
/// # Errors
/// [`TextError`] if the file cannot be read or breaks the format (see [`parse`]).
pub fn read(path: &Path) -> Result<Uem, TextError> {
    let file = File::open(path).map_err(|source| TextError::Io { path: path.to_owned(), source })?;
    parse(BufReader::new(file), path)
}
