//! Writing results: one module per format and one table, [`FORMATS`].
//! Depends on `pipeline` for what a result is.
//!
//! To add a format, write a module with a `render` function and add a row to the table. A format of several files has
//! a folder ([`Render::Folder`]).

pub mod audacity;
pub mod csv;
pub mod eaf;
pub mod folder;
pub mod json;
pub mod rttm;
pub mod srt;
mod text;
pub mod textgrid;
pub mod vtt;
pub mod wav;
pub mod write;

use std::ffi::OsStr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use crate::audio::{AudioError, SourceFacts};
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
    /// How it is made.
    pub render: Render,
}

/// What a format makes.
#[derive(Debug, Clone, Copy)]
pub enum Render {
    /// A file with this content.
    File(fn(&Report) -> Vec<u8>),
    /// A folder.
    Folder {
        /// Writes the files into a folder, which is empty.
        fill: fn(&Report, &Path) -> Result<(), ExportError>,
        /// Tells them from files of others.
        ours: folder::Ours,
    },
}

impl Format {
    /// Whether its result may be put at `path`: `Ok` if nothing is there, or if it is a result that `replace` allows to
    /// be replaced.
    ///
    /// # Errors
    /// If something else is there.
    pub fn check_target(&self, path: &Path, replace: bool) -> Result<(), WriteError> {
        match self.render {
            Render::File(_) => write::check_target(path, replace),
            Render::Folder { ours, .. } => folder::check_target(path, replace, ours),
        }
    }
}

/// Whether a folder of this name is a result, by its extension.
pub fn is_result_folder(name: &OsStr) -> bool {
    let extension = Path::new(name).extension();
    FORMATS.iter().any(|format| {
        matches!(format.render, Render::Folder { .. }) && extension == Some(OsStr::new(format.extension))
    })
}

/// Every export format; the first one is the default.
pub const FORMATS: &[Format] = &[
    file("rttm", "rttm", "one line per turn, NIST RTTM", rttm::render),
    file("json", "json", "everything about the result", json::render),
    file("csv", "csv", "one row per turn, for spreadsheets", csv::render),
    file("srt", "srt", "subtitles with the names of the speakers", srt::render),
    file("vtt", "vtt", "WebVTT subtitles, speakers as voices", vtt::render),
    // Without `audacity` before it, `.txt` might meet the user's notes.
    file("audacity", "audacity.txt", "label track for Audacity", audacity::render),
    file("textgrid", "TextGrid", "Praat TextGrid, a tier per speaker", textgrid::render),
    file("eaf", "eaf", "ELAN, a tier per speaker", eaf::render),
    Format {
        name: "wav",
        extension: "speakers",
        about: "folder with a WAV file per speaker, silent where others talk",
        render: Render::Folder { fill: wav::fill, ours: wav::ours },
    },
];

const fn file(
    name: &'static str,
    extension: &'static str,
    about: &'static str,
    render: fn(&Report) -> Vec<u8>,
) -> Format {
    Format { name, extension, about, render: Render::File(render) }
}

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
    /// The recording, from which the sound is taken, is gone or damaged.
    #[error("the recording cannot be decoded again: {0}")]
    Recording(AudioError),
    /// The recording is not what it was.
    #[error("the recording has another length than when it was analysed")]
    OtherRecording,
    /// A defect of the program; other formats are not affected.
    #[error("internal error in the {0} export")]
    Internal(&'static str),
}

/// Writes one result to `path`, whole or not at all. What is there already stays unless `replace`.
///
/// # Errors
/// See [`ExportError`]. A panic inside a format is caught and becomes [`ExportError::Internal`].
pub fn write_one(format: &Format, report: &Report, path: &Path, replace: bool) -> Result<(), ExportError> {
    let write = || match format.render {
        Render::File(render) => Ok(write::atomically(path, &render(report), replace)?),
        Render::Folder { fill, ours } => {
            folder::atomically(path, replace, ours, |folder| fill(report, folder))
        }
    };
    catch_unwind(AssertUnwindSafe(write)).unwrap_or(Err(ExportError::Internal(format.name)))
}
