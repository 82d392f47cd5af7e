//! The timeline: waveform and turns of a recording, to look at, listen to and edit.
//!
//! ```text
//!  Model (what) + Axis (where) ─► layout, wave ─► paint
//!  pointer and keys ─► wheel, time, lanes, keys, heads, overview ─► State (zoom, drag) and Events
//! ```
//!
//! The widget reads its [`Input`] and never changes the document: what the user wants is returned as [`Event`]s, for
//! the caller to do before the next frame. A drag is shown by the widget itself and reported once, at its end.
//! All work of a frame is bounded by the pixels in view and the number of speakers.

pub mod axis;
pub mod hit;
pub mod layout;
pub mod model;
pub mod stretches;

mod access;
mod drag;
mod heads;
mod keys;
mod lanes;
mod overlay;
mod overview;
mod paint;
mod show;
mod state;
mod stripes;
mod time;
mod walk;
mod wave;
mod wheel;

use std::collections::BTreeSet;

use eframe::egui::Pos2;

use crate::app::peaks::Peaks;
use model::{Model, Selection, SpeakerId, TurnId};

pub use show::show;
pub use state::State;
pub use wave::Detail;

/// Shortest turn that a boundary can be dragged to, in seconds.
pub const SHORTEST_TURN: f64 = 0.01;

/// What the timeline shows.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    /// Turns, speakers and errors.
    pub model: &'a Model,
    /// The waveform, as far as it is known.
    pub peaks: Option<&'a Peaks>,
    /// Samples around the part in view, for close zooms; see [`State::wanted_detail`].
    pub detail: Option<Detail<'a>>,
    /// Where playback is, in seconds.
    pub play_head: f64,
    /// Whether the play head is moving. The caller asks for the repaints.
    pub playing: bool,
    /// What is selected.
    pub selection: &'a Selection,
    /// Speakers of whom alone is played.
    pub solo: &'a BTreeSet<SpeakerId>,
    /// Speakers who are not played.
    pub muted: &'a BTreeSet<SpeakerId>,
    /// Whether turns may be changed; without it no event asks for a change.
    pub editable: bool,
}

impl Input<'_> {
    /// Whether a speaker is not heard.
    fn silent(&self, speaker: SpeakerId) -> bool {
        self.muted.contains(&speaker) || !self.solo.is_empty() && !self.solo.contains(&speaker)
    }
}

/// What a context menu is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// A turn, which is selected.
    Turn(TurnId),
    /// A speaker.
    Speaker(SpeakerId),
    /// The recording at a time, or the selected range around it.
    Time,
}

/// What the user asks for.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// Put the play head at a second.
    Seek(f64),
    /// Select these turns, and no others.
    SelectTurns(BTreeSet<TurnId>),
    /// Select a stretch of time, or none.
    SelectRange(Option<(f64, f64)>),
    /// Give a turn these ends.
    MoveBoundary {
        /// Which turn.
        turn: TurnId,
        /// New start in seconds.
        start: f64,
        /// New end in seconds.
        end: f64,
    },
    /// Give turns to a speaker.
    MoveTurns {
        /// Which turns.
        turns: Vec<TurnId>,
        /// To whom.
        speaker: SpeakerId,
    },
    /// Delete turns.
    Delete(Vec<TurnId>),
    /// Cut a turn in two.
    Cut {
        /// Which turn.
        turn: TurnId,
        /// Where, in seconds; strictly inside of the turn.
        at: f64,
    },
    /// Play a turn.
    PlayTurn(TurnId),
    /// Play a stretch of time in seconds.
    PlayRange(f64, f64),
    /// Play something of a speaker.
    PlaySpeaker(SpeakerId),
    /// Ask for a new name of a speaker.
    RenameRequest(SpeakerId),
    /// Hear a speaker alone, or stop that.
    ToggleSolo(SpeakerId),
    /// Stop hearing a speaker, or stop that.
    ToggleMute(SpeakerId),
    /// Open a menu.
    ContextMenu {
        /// What it is about.
        target: Target,
        /// Second under the pointer.
        at: f64,
        /// Where to open it.
        position: Pos2,
    },
}
