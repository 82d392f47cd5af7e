//! What the window shows, as plain data: the queue, the open recording, pages and dialogs. Knows nothing of egui.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::timeline::model::{ErrorStretch, Model, Selection, Speaker, SpeakerId, Turn, TurnId};
use crate::app::document::Document;
use crate::app::inputs::Input;
use crate::app::jobs::Job;
use crate::app::peaks::Peaks;
use crate::app::speed::Speed;
use crate::app::worker::Opened;
use crate::clustering::SpeakerBounds;
use crate::pipeline::{Stage, Voices};
use crate::scoring::{Der, Row};

/// What a recording of the queue is known by; given once.
pub type EntryId = usize;

/// How a recording fares.
#[derive(Debug, Clone, PartialEq)]
pub enum Status {
    /// It is not begun.
    Waiting,
    /// It is in work.
    Running {
        /// The step it is in.
        stage: Stage,
        /// Share of all its work that is done, 0 to 1.
        fraction: f64,
        /// Time that is left, once it can be told.
        left: Option<Duration>,
    },
    /// It is in work and was asked to stop.
    Stopping,
    /// Its result is there.
    Done,
    /// It cannot be worked on, in plain words.
    Failed(String),
    /// The user gave it up.
    Cancelled,
}

impl Status {
    /// Whether it waits or is in work.
    pub fn is_open(&self) -> bool {
        matches!(self, Self::Waiting | Self::Running { .. } | Self::Stopping)
    }
}

/// A recording of the queue.
#[derive(Debug)]
pub struct Entry {
    /// What it is known by.
    pub id: EntryId,
    /// Its file.
    pub input: Input,
    /// The results it gets; `None` if they cannot be named or written.
    pub job: Option<Job>,
    /// How it fares.
    pub status: Status,
    /// What the user knows about the number of speakers.
    pub bounds: SpeakerBounds,
    /// What the speakers are told apart by.
    pub voices: Voices,
    /// The result, with the user's edits.
    pub document: Option<Document>,
    /// The file that it can be clustered from again.
    pub inference: Option<PathBuf>,
    /// Whether it is being clustered again.
    pub clustering: bool,
    /// Results that were written, and may be replaced without asking.
    pub written: Vec<PathBuf>,
    /// Results that were not written, and why.
    pub problems: Vec<(PathBuf, String)>,
    /// Revision of the document that the written results have.
    pub saved: u64,
}

impl Entry {
    /// An entry that waits.
    pub fn new(id: EntryId, input: Input, job: Option<Job>) -> Self {
        Self {
            id,
            input,
            job,
            status: Status::Waiting,
            bounds: SpeakerBounds::default(),
            voices: Voices::Mixed,
            document: None,
            inference: None,
            clustering: false,
            written: Vec::new(),
            problems: Vec::new(),
            saved: 0,
        }
    }

    /// Name of the file, without its folder.
    pub fn name(&self) -> String {
        self.input.path.file_name().unwrap_or(self.input.path.as_os_str()).to_string_lossy().into_owned()
    }

    /// What the recording is called in RTTM.
    pub fn uri(&self) -> String {
        match &self.job {
            Some(job) => job.uri.clone(),
            None => crate::app::jobs::uri(self.input.path.file_stem().unwrap_or_default()),
        }
    }
}

/// The sound of a recording, for its waveform and for listening.
#[derive(Debug, Clone)]
pub struct Media {
    /// Minimum and maximum of any stretch.
    pub peaks: Arc<Peaks>,
    /// 16 kHz mono.
    pub samples: Arc<Vec<i16>>,
}

/// Whether the sound is there.
#[derive(Debug, Clone)]
pub enum Sound {
    /// It is being read.
    Loading,
    /// It is there.
    Ready(Media),
    /// It cannot be read.
    Failed(String),
}

/// The recording whose timeline is shown.
#[derive(Debug)]
pub struct Open {
    /// Which one.
    pub entry: EntryId,
    /// What is drawn.
    pub model: Model,
    /// What is selected.
    pub selection: Selection,
    /// Speakers of whom alone is played.
    pub solo: BTreeSet<SpeakerId>,
    /// Speakers who are not played.
    pub muted: BTreeSet<SpeakerId>,
    /// Its sound.
    pub sound: Sound,
    /// Samples around the part in view, with the first one's number.
    pub detail: Option<(u64, Vec<f32>)>,
    /// The speaker bounds being edited, before they are applied.
    pub bounds: SpeakerBounds,
}

/// Playback.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Transport {
    /// Where playback is, in seconds.
    pub position: f64,
    /// Whether it plays.
    pub playing: bool,
    /// Why there is no sound, if so.
    pub unavailable: Option<String>,
}

/// What fills the middle of the window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Page {
    /// The open recording.
    #[default]
    Timeline,
    /// The comparison with a reference.
    Evaluation,
    /// What can be computed on.
    Device,
}

/// A question to the user.
#[derive(Debug, Clone, PartialEq)]
pub enum Dialog {
    /// The name of a speaker of the open recording.
    Rename {
        /// Who.
        speaker: SpeakerId,
        /// The name as typed so far.
        name: String,
        /// Why it cannot be given.
        problem: Option<String>,
    },
    /// What to export.
    Export(Export),
}

/// Which recordings are exported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The open one.
    Open,
    /// Those selected in the queue.
    Selected,
    /// All with a result.
    All,
}

/// An export as chosen so far.
#[derive(Debug, Clone, PartialEq)]
pub struct Export {
    /// Which recordings.
    pub scope: Scope,
    /// Names of the formats.
    pub formats: BTreeSet<&'static str>,
    /// Where; `None`: beside each recording.
    pub folder: Option<PathBuf>,
    /// Whether files that are there already are replaced.
    pub replace: bool,
}

/// The engine behind the queue.
#[derive(Debug, Clone, PartialEq)]
pub enum EngineState {
    /// Models and device are being opened.
    Opening,
    /// Recordings can be worked on.
    Ready(Opened),
    /// Nothing can be worked on.
    Unusable(String),
}

/// The comparison with a reference.
#[derive(Debug, Clone)]
pub struct Evaluation {
    /// Where the reference is.
    pub reference: PathBuf,
    /// A row for each recording that the reference has.
    pub rows: Vec<(EntryId, Row)>,
    /// All rows together.
    pub total: Der,
    /// Errors of each of these recordings.
    pub errors: Vec<(EntryId, Vec<ErrorStretch>)>,
    /// Recordings that the reference lacks.
    pub without: Vec<EntryId>,
}

/// Something the user should know.
#[derive(Debug, Clone, PartialEq)]
pub struct Notice {
    /// In plain words.
    pub text: String,
    /// Whether something went wrong.
    pub bad: bool,
}

/// Everything.
#[derive(Debug)]
pub struct State {
    /// The queue, in its order.
    pub entries: Vec<Entry>,
    /// What is selected in it.
    pub selected: BTreeSet<EntryId>,
    /// The recording whose timeline is shown.
    pub open: Option<Open>,
    /// What fills the middle.
    pub page: Page,
    /// A question, if one is open.
    pub dialog: Option<Dialog>,
    /// Playback.
    pub transport: Transport,
    /// The engine.
    pub engine: EngineState,
    /// What recordings take.
    pub speed: Speed,
    /// The comparison with a reference.
    pub evaluation: Option<Evaluation>,
    /// The reference being compared with.
    pub reference: Option<PathBuf>,
    /// What the user should know, oldest first.
    pub notices: Vec<Notice>,
    /// What can be computed on, in words, once it was looked up.
    pub devices: Option<String>,
    /// The identity of the next entry.
    pub next_id: EntryId,
}

impl Default for State {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            selected: BTreeSet::new(),
            open: None,
            page: Page::Timeline,
            dialog: None,
            transport: Transport::default(),
            engine: EngineState::Opening,
            speed: Speed::default(),
            evaluation: None,
            reference: None,
            notices: Vec::new(),
            devices: None,
            next_id: 0,
        }
    }
}

/// Notices that are kept; older ones go.
const NOTICES: usize = 50;

impl State {
    /// The entry with this identity.
    pub fn entry(&self, id: EntryId) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.id == id)
    }

    /// The entry with this identity, to be changed.
    pub fn entry_mut(&mut self, id: EntryId) -> Option<&mut Entry> {
        self.entries.iter_mut().find(|entry| entry.id == id)
    }

    /// The open recording.
    pub fn opened(&self) -> Option<(&Open, &Entry)> {
        let open = self.open.as_ref()?;
        Some((open, self.entry(open.entry)?))
    }

    /// Whether a file is in the queue.
    pub fn holds(&self, canonical: &Path) -> Option<EntryId> {
        self.entries.iter().find(|entry| entry.input.canonical == canonical).map(|entry| entry.id)
    }

    /// Adds something that the user should know.
    pub fn notice(&mut self, text: impl Into<String>, bad: bool) {
        self.notices.push(Notice { text: text.into(), bad });
        let surplus = self.notices.len().saturating_sub(NOTICES);
        self.notices.drain(..surplus);
    }

    /// Rebuilds what is drawn of the open recording from its document.
    pub fn refresh(&mut self) {
        let Some(open) = &mut self.open else { return };
        let Some(entry) = self.entries.iter().find(|entry| entry.id == open.entry) else { return };
        let Some(document) = &entry.document else { return };
        let errors = self.evaluation.iter().flat_map(|evaluation| &evaluation.errors);
        let errors = errors.filter(|(id, _)| *id == entry.id).flat_map(|(_, errors)| errors).copied();
        open.model = model(document, errors.collect());
        let there = |id: &TurnId| open.model.turn(*id).is_some();
        open.selection.turns.retain(there);
        let known = |id: &SpeakerId| open.model.lane_of(*id).is_some();
        open.solo.retain(known);
        open.muted.retain(known);
    }

    /// Time that all open recordings will take, once it can be told.
    pub fn time_left(&self) -> Option<Duration> {
        let mut sum = Duration::ZERO;
        let mut any = false;
        for entry in &self.entries {
            sum += match &entry.status {
                Status::Running { left, .. } => (*left)?,
                Status::Waiting => self.speed.expected(entry.input.bytes)?,
                _ => continue,
            };
            any = true;
        }
        any.then_some(sum)
    }
}

/// What the timeline draws of `document`.
fn model(document: &Document, errors: Vec<ErrorStretch>) -> Model {
    let turns = document.turns().iter().map(|turn| Turn {
        id: TurnId(turn.id.0),
        start: turn.start,
        end: turn.end,
        speaker: turn.speaker.0 as usize,
    });
    let speakers = document
        .speakers()
        .iter()
        .map(|voice| Speaker { id: voice.id.0 as usize, name: voice.display().to_owned() });
    Model::new(document.duration(), turns.collect(), speakers.collect(), errors)
}
