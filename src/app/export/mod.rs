//! Writing results: one file per format and one table, [`FORMATS`].
//! Depends on `pipeline` for what a result is.
//!
//! To add a format, write a module with a `render` function and add a row to the table.

pub mod json;
pub mod rttm;
pub mod write;

use crate::audio::SourceFacts;
use crate::pipeline::Diarization;

/// All that an export format may say about one recording.
#[derive(Debug, Clone, Copy)]
pub struct Report<'a> {
    /// True name of the recording's file, without its folder.
    pub file: &'a str,
    /// Name of the recording in formats that allow no white space.
    pub uri: &'a str,
    /// Who spoke when.
    pub diarization: &'a Diarization,
    /// What the recording was decoded from.
    pub source: &'a SourceFacts,
}

/// A way to write a result. The bytes depend on the [`Report`] alone: no clock, no machine names.
#[derive(Debug)]
pub struct Format {
    /// Name on the command line.
    pub name: &'static str,
    /// File name extension, without the dot.
    pub extension: &'static str,
    /// What it is, in a few words.
    pub about: &'static str,
    /// Makes the file's content.
    pub render: fn(&Report) -> Vec<u8>,
}

/// Every export format; the first one is the default.
pub const FORMATS: &[Format] = &[
    Format { name: "rttm", extension: "rttm", about: "one line per turn, NIST RTTM", render: rttm::render },
    Format { name: "json", extension: "json", about: "everything about the result", render: json::render },
];

/// The format called `name`.
pub fn by_name(name: &str) -> Option<&'static Format> {
    FORMATS.iter().find(|format| format.name == name)
}
