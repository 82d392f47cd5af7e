//! Writing results: one module per format and one table, [`FORMATS`].
//! Depends on `pipeline` for what a result is.
//!
//! To add a format, write a module with a `render` function and add a row to the table.

pub mod audacity;
pub mod csv;
pub mod eaf;
pub mod json;
pub mod rttm;
pub mod srt;
mod text;
pub mod textgrid;
pub mod vtt;
pub mod write;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use crate::audio::SourceFacts;
use crate::pipeline::Diarization;
use write::WriteError;

/// All that an export format may say about one recording.
#[derive(Debug, Clone, Copy)]
pub struct Report<'a> {
    /// Path of the recording.
    pub path: &'a Path,
    /// True name of the recording's file, without its folder.
    pub file: &'a str,
    /// Name of the recording in formats that allow no white space.
    pub uri: &'a str,
    /// Who spoke when.
    pub diarization: &'a Diarization,
    /// What the recording was decoded from.
    pub source: &'a SourceFacts,
}

/// A way to write a result. The bytes depend on the [`Report`] and the recording alone: no clock, no machine names.
#[derive(Debug)]
pub struct Format {
    /// Name on the command line.
    pub name: &'static str,
    /// What follows the recording's name and a dot in the name of the result.
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
    Format {
        name: "csv",
        extension: "csv",
        about: "one row per turn, for spreadsheets",
        render: csv::render,
    },
    Format {
        name: "srt",
        extension: "srt",
        about: "subtitles with the speakers' names",
        render: srt::render,
    },
    Format { name: "vtt", extension: "vtt", about: "WebVTT, speakers as voices", render: vtt::render },
    Format {
        name: "audacity",
        // `txt` alone would be taken for, and might replace, the user's notes.
        extension: "audacity.txt",
        about: "label track of Audacity",
        render: audacity::render,
    },
    Format {
        name: "textgrid",
        extension: "TextGrid",
        about: "Praat TextGrid, a tier per speaker",
        render: textgrid::render,
    },
    Format { name: "eaf", extension: "eaf", about: "ELAN, a tier per speaker", render: eaf::render },
];

/// The format called `name`.
pub fn by_name(name: &str) -> Option<&'static Format> {
    FORMATS.iter().find(|format| format.name == name)
}

/// Why a result could not be written. The text does not repeat the path; the caller prints it.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The disk, or what is there already.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A defect of the program; other formats are not affected.
    #[error("internal error in the {0} export")]
    Internal(&'static str),
}

/// Writes one result to `path`, whole or not at all. What is there already stays unless `replace`.
///
/// # Errors
/// See [`ExportError`]. A panic inside a format is caught and becomes [`ExportError::Internal`].
pub fn write_one(format: &Format, report: &Report, path: &Path, replace: bool) -> Result<(), ExportError> {
    let write = || Ok(write::atomically(path, &(format.render)(report), replace)?);
    catch_unwind(AssertUnwindSafe(write)).unwrap_or(Err(ExportError::Internal(format.name)))
}
