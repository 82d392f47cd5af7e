//! An editable result of one recording: what the pipeline found, and a log of edits.
//! Depends on `pipeline`, `timeline` and `audio`.
//!
//! ```text
//! original ─► edit ─► edit ─► edit ┊ undone edits
//!                              ▲
//!                            state: turns and speakers
//! ```
//!
//! Every edit is checked against the state and becomes a change: the turns and speakers concerned, before and after.
//! Undoing swaps them back, so that it takes as long as the edit did, however long the log is.

mod edit;
mod file;
mod listen;
mod replace;
mod result;
mod state;

use std::sync::{Arc, OnceLock};

use crate::audio::SourceFacts;
use crate::pipeline::Diarization;

pub use edit::{Edit, EditError, Kind, MAX_NAME, MIN_TURN};
pub use file::{LoadError, MAX_BYTES};
pub use listen::SAMPLE;
pub use replace::MAX_SPEAKERS;
pub use state::{SpeakerId, Turn, TurnId, Voice};

use state::{Change, Fresh, State};

/// What all edits together may cost: 1 for every turn that is passed over, [`KEPT`] for every turn or speaker that is
/// kept for undoing, and the same [`ENTRY`] times for the edit itself. It bounds memory (some 100 MB) and the time that
/// a file of edits takes to be read; with 20,000 turns it allows 90,000 edits.
const BUDGET: u64 = 4_000_000_000;
const KEPT: u64 = 1000;
const ENTRY: usize = 20;

/// What the pipeline found.
#[derive(Debug)]
struct Original {
    diarization: Diarization,
    source: SourceFacts,
    fingerprint: OnceLock<String>,
}

#[derive(Debug, Clone)]
struct Entry {
    edit: Edit,
    change: Change,
    /// The next identities before the edit.
    fresh: Fresh,
    /// Cost of the log up to here.
    cost: u64,
}

/// An editable result. A clone shares the original.
#[derive(Debug, Clone)]
pub struct Document {
    original: Arc<Original>,
    state: State,
    /// Edits, of which the first `done` are in force.
    log: Vec<Entry>,
    done: usize,
    fresh: Fresh,
    revision: u64,
}

impl Document {
    /// A document without edits.
    ///
    /// # Panics
    /// If a turn's speaker is not among the speakers, which the pipeline never does.
    pub fn new(diarization: Diarization, source: SourceFacts) -> Self {
        let mut fresh = Fresh { turn: 0, speaker: 0 };
        let voice = |speaker: &crate::pipeline::Speaker| Voice {
            id: fresh.speaker(),
            label: speaker.label.clone(),
            name: None,
        };
        let voices: Vec<Voice> = diarization.speakers.iter().map(voice).collect();
        let ids: Vec<SpeakerId> = voices.iter().map(|voice| voice.id).collect();
        let turns = state::turns(&diarization.segments, &ids, &mut fresh);
        let mut state = State::default();
        Change::new(&state, Vec::new(), turns, voices).forward(&mut state);
        let original = Arc::new(Original { diarization, source, fingerprint: OnceLock::new() });
        Self { original, state, log: Vec::new(), done: 0, fresh, revision: 0 }
    }

    /// Does `edit`, which drops edits that were undone. One that would change nothing is not recorded.
    ///
    /// # Errors
    /// [`EditError`] if it is not possible; nothing has changed then.
    pub fn apply(&mut self, edit: Edit) -> Result<(), EditError> {
        let mut fresh = self.fresh;
        let change = edit::plan(&edit, &self.state, &mut fresh, self.duration())?;
        if change.is_nothing() {
            return Ok(());
        }
        let before = self.log[..self.done].last().map_or(0, |entry| entry.cost);
        let cost = before + KEPT * (ENTRY + change.size()) as u64 + self.state.turns.len() as u64;
        if cost > BUDGET {
            return Err(EditError::TooMany);
        }
        change.forward(&mut self.state);
        self.log.truncate(self.done);
        self.log.push(Entry { edit, change, fresh: self.fresh, cost });
        self.done += 1;
        self.fresh = fresh;
        self.revision += 1;
        Ok(())
    }

    /// Takes back the last edit in force; its kind, or `None` if there is none.
    pub fn undo(&mut self) -> Option<Kind> {
        let entry = self.log[..self.done].last()?;
        entry.change.backward(&mut self.state);
        self.done -= 1;
        self.revision += 1;
        Some(entry.edit.kind())
    }

    /// Does the edit again that was undone last; its kind, or `None` if there is none.
    pub fn redo(&mut self) -> Option<Kind> {
        let entry = self.log.get(self.done)?;
        entry.change.forward(&mut self.state);
        self.done += 1;
        self.revision += 1;
        Some(entry.edit.kind())
    }

    /// What [`Document::undo`] would take back.
    pub fn can_undo(&self) -> Option<Kind> {
        self.log[..self.done].last().map(|entry| entry.edit.kind())
    }

    /// What [`Document::redo`] would do again.
    pub fn can_redo(&self) -> Option<Kind> {
        self.log.get(self.done).map(|entry| entry.edit.kind())
    }

    /// The turns, sorted by start, then end.
    pub fn turns(&self) -> &[Turn] {
        &self.state.turns
    }

    /// One turn.
    pub fn turn(&self, id: TurnId) -> Option<&Turn> {
        self.state.turn(id)
    }

    /// The speakers that have turns, in the order in which they came to be.
    pub fn speakers(&self) -> &[Voice] {
        &self.state.voices
    }

    /// One speaker.
    pub fn speaker(&self, id: SpeakerId) -> Option<&Voice> {
        self.state.voice(id)
    }

    /// A number that grows with every change of the state.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Whether any edit is in force.
    pub fn edited(&self) -> bool {
        self.done > 0
    }

    /// Duration of the recording in seconds.
    pub fn duration(&self) -> f64 {
        self.original.diarization.duration
    }

    /// What the pipeline found at first.
    pub fn original(&self) -> &Diarization {
        &self.original.diarization
    }

    /// What the recording was decoded from.
    pub fn source(&self) -> &SourceFacts {
        &self.original.source
    }

    /// Seconds in which a speaker speaks; its turns are looked through at every call.
    pub fn speaker_time(&self, id: SpeakerId) -> f64 {
        listen::time(&self.state.turns, id)
    }

    /// Start and end, in seconds, of up to [`SAMPLE`] seconds to know a speaker's voice by: if possible, nobody else
    /// speaks there. `None` for an unknown speaker.
    pub fn sample(&self, id: SpeakerId) -> Option<(f64, f64)> {
        listen::sample(&self.state.turns, id)
    }
}
