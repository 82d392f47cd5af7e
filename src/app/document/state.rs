//! The turns and speakers at one moment, and what an edit changes about them. Depends on `timeline` for segments.

use std::cmp::Ordering;
use std::collections::{BTreeSet, HashMap};

use serde::{Deserialize, Serialize};

use crate::timeline::Segment;

/// Turns that are looked up one by one; more are taken in one pass.
const FEW: usize = 16;

/// What a turn is known by as long as the document is open; never given twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TurnId(pub u64);

/// What a speaker is known by, and what decides the colour; never given twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SpeakerId(pub u32);

/// A stretch of speech of one speaker.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Turn {
    /// Identity.
    pub id: TurnId,
    /// Start in seconds from the beginning of the recording.
    pub start: f64,
    /// End in seconds, after `start`.
    pub end: f64,
    /// Who speaks.
    pub speaker: SpeakerId,
}

impl Turn {
    /// The order of turns in a document: by start, then end.
    pub(super) fn order(&self, other: &Self) -> Ordering {
        let (by_start, by_end) = (self.start.total_cmp(&other.start), self.end.total_cmp(&other.end));
        by_start.then(by_end).then(self.id.cmp(&other.id))
    }
}

/// A speaker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Voice {
    /// Identity.
    pub id: SpeakerId,
    /// Label such as `SPEAKER_00`.
    pub label: String,
    /// Name that the user gave.
    pub name: Option<String>,
}

impl Voice {
    /// The name, else the label.
    pub fn display(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.label)
    }
}

/// The next identities to give.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Fresh {
    pub turn: u64,
    pub speaker: u32,
}

impl Fresh {
    pub fn turn(&mut self) -> TurnId {
        self.turn += 1;
        TurnId(self.turn - 1)
    }

    pub fn speaker(&mut self) -> SpeakerId {
        self.speaker += 1;
        SpeakerId(self.speaker - 1)
    }
}

/// Turns and speakers at one moment. A speaker is there as long as it has a turn.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct State {
    /// In [`Turn::order`].
    pub turns: Vec<Turn>,
    /// In the order of their identity.
    pub voices: Vec<Voice>,
    /// Number of turns of each speaker.
    counts: HashMap<SpeakerId, usize>,
}

impl State {
    pub fn voice(&self, id: SpeakerId) -> Option<&Voice> {
        self.voices.binary_search_by_key(&id, |voice| voice.id).ok().map(|index| &self.voices[index])
    }

    pub fn turn(&self, id: TurnId) -> Option<&Turn> {
        self.turns.iter().find(|turn| turn.id == id)
    }

    /// The turns with these identities, in order; `Err` with one that is unknown.
    pub fn select(&self, ids: &[TurnId]) -> Result<Vec<Turn>, TurnId> {
        let mut ids = ids.to_vec();
        ids.sort_unstable();
        ids.dedup();
        let wanted = |turn: &&Turn| ids.binary_search(&turn.id).is_ok();
        let found: Vec<Turn> = self.turns.iter().filter(wanted).copied().collect();
        if found.len() < ids.len() {
            let known: BTreeSet<TurnId> = found.iter().map(|turn| turn.id).collect();
            return Err(ids.into_iter().find(|id| !known.contains(id)).unwrap_or(TurnId(0)));
        }
        Ok(found)
    }

    /// Number of turns of a speaker.
    pub fn count(&self, speaker: SpeakerId) -> usize {
        self.counts.get(&speaker).copied().unwrap_or(0)
    }

    fn swap(&mut self, turns: (&[Turn], &[Turn]), voices: (&[Voice], &[Voice])) {
        let ((turns_out, turns_in), (voices_out, voices_in)) = (turns, voices);
        for turn in turns_out {
            if let Some(count) = self.counts.get_mut(&turn.speaker) {
                *count -= 1;
            }
        }
        turns_in.iter().for_each(|turn| *self.counts.entry(turn.speaker).or_default() += 1);
        self.counts.retain(|_, count| *count > 0);
        self.voices.retain(|voice| voices_out.iter().all(|out| out.id != voice.id));
        self.voices.extend_from_slice(voices_in);
        self.voices.sort_by_key(|voice| voice.id);
        if turns_out.len().max(turns_in.len()) <= FEW {
            for turn in turns_out {
                if let Ok(at) = self.turns.binary_search_by(|other| other.order(turn)) {
                    self.turns.remove(at);
                }
            }
            for turn in turns_in {
                let at = self.turns.partition_point(|other| other.order(turn).is_lt());
                self.turns.insert(at, *turn);
            }
        } else {
            let mut out = turns_out.iter().peekable();
            self.turns.retain(|turn| out.next_if(|out| out.id == turn.id).is_none());
            self.turns.extend_from_slice(turns_in);
            self.turns.sort_by(Turn::order);
        }
    }
}

/// What an edit does: the turns and speakers concerned, before and after.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Change {
    before: Vec<Turn>,
    after: Vec<Turn>,
    voices_before: Vec<Voice>,
    voices_after: Vec<Voice>,
    /// If all turns were replaced by another result: the identities of its speakers.
    pub base: Option<Vec<SpeakerId>>,
}

impl Change {
    /// A change of `state` from the turns `before` to the turns `after`; `voices` are speakers that come or become
    /// different. Speakers that keep no turn go.
    pub fn new(state: &State, mut before: Vec<Turn>, mut after: Vec<Turn>, voices: Vec<Voice>) -> Self {
        before.sort_by(Turn::order);
        after.sort_by(Turn::order);
        let (lost, gained) = (counts(&before), counts(&after));
        let of = |counts: &HashMap<SpeakerId, usize>, id| counts.get(&id).copied().unwrap_or(0);
        let named: HashMap<SpeakerId, Voice> = voices.into_iter().map(|voice| (voice.id, voice)).collect();
        let touched: BTreeSet<SpeakerId> =
            lost.keys().chain(gained.keys()).chain(named.keys()).copied().collect();
        let mut change = Self { before, after, ..Self::default() };
        for id in touched {
            let old = state.voice(id).cloned();
            let stays = state.count(id) + of(&gained, id) > of(&lost, id);
            let new = stays.then(|| named.get(&id).cloned().or_else(|| old.clone())).flatten();
            if old != new {
                change.voices_before.extend(old);
                change.voices_after.extend(new);
            }
        }
        change
    }

    /// Whether nothing changes.
    pub fn is_nothing(&self) -> bool {
        self.before == self.after && self.voices_before == self.voices_after && self.base.is_none()
    }

    /// Number of turns and speakers that it holds.
    pub fn size(&self) -> usize {
        let turns = self.before.len() + self.after.len();
        turns + self.voices_before.len() + self.voices_after.len()
    }

    pub fn forward(&self, state: &mut State) {
        state.swap((&self.before, &self.after), (&self.voices_before, &self.voices_after));
    }

    pub fn backward(&self, state: &mut State) {
        state.swap((&self.after, &self.before), (&self.voices_after, &self.voices_before));
    }
}

fn counts(turns: &[Turn]) -> HashMap<SpeakerId, usize> {
    let mut counts = HashMap::new();
    turns.iter().for_each(|turn| *counts.entry(turn.speaker).or_default() += 1);
    counts
}

/// The turns of `segments`, whose speakers are `ids`.
pub(super) fn turns(segments: &[Segment], ids: &[SpeakerId], fresh: &mut Fresh) -> Vec<Turn> {
    let turn = |s: &Segment| Turn { id: fresh.turn(), start: s.start, end: s.end, speaker: ids[s.speaker] };
    segments.iter().map(turn).collect()
}
