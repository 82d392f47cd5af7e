//! What the user can ask for. Views return commands; [`super::app`] does them. Depends on `state`.

use std::ffi::OsString;
use std::path::PathBuf;

use super::state::{EntryId, Export, Page};
use super::timeline::Event;
use super::timeline::model::SpeakerId;
use crate::app::document::Edit;
use crate::clustering::SpeakerBounds;
use crate::pipeline::Voices;

/// One wish.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    /// Let the user choose recordings.
    ChooseFiles,
    /// Let the user choose a folder of recordings.
    ChooseFolder,
    /// Add recordings and folders.
    Add(Vec<OsString>),
    /// Add the recording that comes with the program.
    AddDemo,
    /// Select entries of the queue, and no others.
    Select(Vec<EntryId>),
    /// Show the timeline of a recording.
    Open(EntryId),
    /// Give up recordings that wait or are in work.
    Cancel(Vec<EntryId>),
    /// Work on recordings again; `true` also replaces results that are there.
    Retry(Vec<EntryId>, bool),
    /// Take entries out of the queue; those in work are given up.
    Remove(Vec<EntryId>),
    /// Take all entries with results out of the queue.
    RemoveDone,
    /// Move an entry by this many places.
    Shift(EntryId, isize),
    /// Open a folder in the system's file manager.
    ShowFolder(PathBuf),
    /// Change the number of speakers in the controls, without doing anything yet.
    TypeBounds(SpeakerBounds),
    /// Change the number of speakers of a recording.
    Bounds(EntryId, SpeakerBounds),
    /// Change what the speakers of a recording are told apart by.
    Voices(EntryId, Voices),
    /// Edit the open recording.
    Edit(Edit),
    /// Take back the last edit.
    Undo,
    /// Do the edit again that was undone last.
    Redo,
    /// What the user did in the timeline.
    Timeline(Event),
    /// Ask for the name of a speaker.
    AskName(SpeakerId),
    /// Change the name in the question.
    TypeName(String),
    /// Give the name.
    GiveName,
    /// Ask what to export.
    AskExport,
    /// Change the export in the question.
    ChangeExport(Export),
    /// Let the user choose the folder of the export.
    ChooseExportFolder,
    /// Export.
    Export(Export),
    /// Copy the open recording's turns as RTTM.
    Copy,
    /// Let the user choose a reference, a folder if `true`.
    ChooseReference(bool),
    /// Compare with the reference at this path.
    Evaluate(PathBuf),
    /// Forget the reference.
    ForgetReference,
    /// Show a page.
    Page(Page),
    /// Close the question.
    CloseDialog,
    /// Forget a notice.
    Dismiss(usize),
}
