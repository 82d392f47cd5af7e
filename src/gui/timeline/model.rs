//! What the timeline shows: turns, speakers and errors of one recording, indexed for drawing. Knows nothing of egui.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};

use super::stretches::{Stretches, overlaps};

/// Identity of a turn, which it keeps while it is edited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TurnId(pub u64);

/// Number of a speaker, which also decides colour and letter.
pub type SpeakerId = usize;

/// One stretch of speech.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Turn {
    /// Identity.
    pub id: TurnId,
    /// Start in seconds.
    pub start: f64,
    /// End in seconds.
    pub end: f64,
    /// Who speaks.
    pub speaker: SpeakerId,
}

impl Turn {
    /// Seconds from start to end.
    pub fn duration(&self) -> f64 {
        self.end - self.start
    }
}

/// A speaker, who has a lane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Speaker {
    /// Identity.
    pub id: SpeakerId,
    /// Name to show.
    pub name: String,
}

/// What is wrong in a stretch of the scored result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// Speech that nobody was credited with.
    Missed,
    /// Silence that was taken for speech.
    FalseAlarm,
    /// Speech of another speaker.
    Confusion,
}

impl ErrorKind {
    /// All kinds, in the order of their rows.
    pub const ALL: [Self; 3] = [Self::Missed, Self::FalseAlarm, Self::Confusion];

    /// The kind in plain words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Missed => "Missed",
            Self::FalseAlarm => "False alarm",
            Self::Confusion => "Confused",
        }
    }
}

/// A stretch of the result that is wrong.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ErrorStretch {
    /// Start in seconds.
    pub start: f64,
    /// End in seconds.
    pub end: f64,
    /// What is wrong.
    pub kind: ErrorKind,
}

/// What the user has picked.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Selection {
    /// Turns.
    pub turns: BTreeSet<TurnId>,
    /// A stretch of time in seconds.
    pub range: Option<(f64, f64)>,
}

/// The turns of one speaker.
#[derive(Debug, Clone, PartialEq)]
pub struct Lane {
    /// Who.
    pub speaker: Speaker,
    /// Indices into [`Model::turns`], in the order of start.
    pub turns: Vec<u32>,
    /// The same turns as stretches of time.
    pub stretches: Stretches,
    /// Seconds in which the speaker speaks.
    pub total: f64,
}

/// Everything that is drawn from the document, indexed once for each change of it.
#[derive(Debug, Clone)]
pub struct Model {
    duration: f64,
    turns: Vec<Turn>,
    places: HashMap<TurnId, u32>,
    lanes: Vec<Lane>,
    overlaps: Stretches,
    errors: [Stretches; 3],
    boundaries: Vec<f64>,
    stamp: u64,
}

impl Model {
    /// Indexes a recording of `duration` seconds.
    ///
    /// Every speaker gets a lane in the given order. Turns may come in any order; those of speakers that are not
    /// listed, without length, or with a time that is no number are left out, as are such errors.
    pub fn new(
        duration: f64,
        mut turns: Vec<Turn>,
        speakers: Vec<Speaker>,
        mut errors: Vec<ErrorStretch>,
    ) -> Self {
        static STAMP: AtomicU64 = AtomicU64::new(0);
        let lane_of: HashMap<SpeakerId, usize> =
            speakers.iter().enumerate().map(|(i, s)| (s.id, i)).collect();
        turns.retain(|t| t.start < t.end && t.end.is_finite() && lane_of.contains_key(&t.speaker));
        turns.sort_by(|a, b| a.start.total_cmp(&b.start).then(a.end.total_cmp(&b.end)).then(a.id.cmp(&b.id)));
        errors.retain(|e| e.start < e.end && e.end.is_finite());
        errors.sort_by(|a, b| a.start.total_cmp(&b.start));

        let mut members = vec![Vec::new(); speakers.len()];
        for (i, turn) in turns.iter().enumerate() {
            members[lane_of[&turn.speaker]].push(i as u32);
        }
        let lanes: Vec<Lane> = speakers
            .into_iter()
            .zip(members)
            .map(|(speaker, members)| {
                let spans =
                    members.iter().map(|&i| (turns[i as usize].start, turns[i as usize].end)).collect();
                let stretches = Stretches::new(spans);
                Lane { speaker, turns: members, total: stretches.total(), stretches }
            })
            .collect();
        let mut boundaries: Vec<f64> = turns.iter().flat_map(|t| [t.start, t.end]).collect();
        boundaries.sort_by(f64::total_cmp);
        boundaries.dedup();
        let duration = if duration.is_finite() { duration.max(0.0) } else { 0.0 };
        Self {
            duration: boundaries.last().copied().unwrap_or(0.0).max(duration),
            places: turns.iter().enumerate().map(|(i, t)| (t.id, i as u32)).collect(),
            overlaps: overlaps(lanes.iter().map(|lane| &lane.stretches)),
            errors: ErrorKind::ALL.map(|kind| {
                let of_kind = errors.iter().filter(|e| e.kind == kind);
                Stretches::new(of_kind.map(|e| (e.start, e.end)).collect())
            }),
            turns,
            lanes,
            boundaries,
            stamp: STAMP.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// Seconds of the recording, or the last turn's end if that is later.
    pub fn duration(&self) -> f64 {
        self.duration
    }

    /// All turns in the order of their start.
    pub fn turns(&self) -> &[Turn] {
        &self.turns
    }

    /// The turn with this identity, and its index.
    pub fn turn(&self, id: TurnId) -> Option<(usize, &Turn)> {
        let &i = self.places.get(&id)?;
        Some((i as usize, &self.turns[i as usize]))
    }

    /// One lane for each speaker.
    pub fn lanes(&self) -> &[Lane] {
        &self.lanes
    }

    /// Number of the speaker's lane.
    pub fn lane_of(&self, speaker: SpeakerId) -> Option<usize> {
        self.lanes.iter().position(|lane| lane.speaker.id == speaker)
    }

    /// Where at least two speakers speak.
    pub fn overlaps(&self) -> &Stretches {
        &self.overlaps
    }

    /// Errors of one kind.
    pub fn errors(&self, kind: ErrorKind) -> &Stretches {
        &self.errors[kind as usize]
    }

    /// Whether there is any error to show.
    pub fn has_errors(&self) -> bool {
        self.errors.iter().any(|e| !e.spans().is_empty())
    }

    /// Starts and ends of all turns, in order.
    pub fn boundaries(&self) -> &[f64] {
        &self.boundaries
    }

    /// Turns of any lane that hold the second `at`, by index.
    pub fn turns_at(&self, at: f64) -> impl Iterator<Item = usize> {
        self.lanes.iter().flat_map(move |lane| {
            let range = lane.stretches.touching(at, at);
            range
                .map(|i| lane.turns[i] as usize)
                .filter(move |&i| self.turns[i].start < at && at < self.turns[i].end)
        })
    }

    /// Differs between any two models that were built.
    pub fn stamp(&self) -> u64 {
        self.stamp
    }
}
