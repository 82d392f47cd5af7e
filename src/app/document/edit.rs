//! What may be done to a document, and the checks.

use serde::{Deserialize, Serialize};

use super::replace;
use super::state::{Change, Fresh, SpeakerId, State, Turn, TurnId, Voice};
use crate::pipeline::Diarization;
use crate::timeline::rttm;
use crate::timeline::segment::label;

/// Shortest turn that an edit may make, in seconds.
pub const MIN_TURN: f64 = 0.01;
/// Longest name of a speaker, in characters.
pub const MAX_NAME: usize = 200;

/// One edit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Edit {
    /// Gives a speaker a name, which is trimmed; an empty one brings the label back.
    Rename {
        /// Who.
        speaker: SpeakerId,
        /// The name.
        name: String,
    },
    /// Gives all turns of one speaker to another, who also gets the name if it has none.
    Merge {
        /// Who goes.
        from: SpeakerId,
        /// Who stays.
        into: SpeakerId,
    },
    /// Gives turns to a new speaker.
    SplitOff {
        /// The turns; not all of one speaker.
        turns: Vec<TurnId>,
    },
    /// Gives turns to another speaker.
    Move {
        /// The turns.
        turns: Vec<TurnId>,
        /// Who gets them.
        speaker: SpeakerId,
    },
    /// Takes turns away.
    Delete {
        /// The turns.
        turns: Vec<TurnId>,
    },
    /// Makes two turns of one. The first keeps its identity.
    Cut {
        /// The turn.
        turn: TurnId,
        /// Where, in seconds from the beginning of the recording.
        at: f64,
    },
    /// Moves the ends of a turn.
    Bounds {
        /// The turn.
        turn: TurnId,
        /// New start in seconds.
        start: f64,
        /// New end in seconds.
        end: f64,
    },
    /// Adds a turn.
    Add {
        /// Start in seconds.
        start: f64,
        /// End in seconds.
        end: f64,
        /// Who speaks; `None`: a new speaker.
        speaker: Option<SpeakerId>,
    },
    /// Puts another result of the same recording in the place of all turns. A speaker of it who mostly speaks where
    /// one of the present speakers does keeps the identity and the name.
    Replace(Box<Diarization>),
}

impl Edit {
    /// Which kind it is.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Rename { .. } => Kind::Rename,
            Self::Merge { .. } => Kind::Merge,
            Self::SplitOff { .. } => Kind::SplitOff,
            Self::Move { .. } => Kind::Move,
            Self::Delete { .. } => Kind::Delete,
            Self::Cut { .. } => Kind::Cut,
            Self::Bounds { .. } => Kind::Bounds,
            Self::Add { .. } => Kind::Add,
            Self::Replace(_) => Kind::Replace,
        }
    }
}

/// The kinds of edits, for menus such as "Undo rename".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// [`Edit::Rename`]
    Rename,
    /// [`Edit::Merge`]
    Merge,
    /// [`Edit::SplitOff`]
    SplitOff,
    /// [`Edit::Move`]
    Move,
    /// [`Edit::Delete`]
    Delete,
    /// [`Edit::Cut`]
    Cut,
    /// [`Edit::Bounds`]
    Bounds,
    /// [`Edit::Add`]
    Add,
    /// [`Edit::Replace`]
    Replace,
}

/// Why an edit is not possible. Nothing has changed then.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum EditError {
    /// There is no such speaker, or no longer.
    #[error("there is no speaker number {}", .0.0)]
    UnknownSpeaker(SpeakerId),
    /// There is no such turn, or no longer.
    #[error("there is no turn number {}", .0.0)]
    UnknownTurn(TurnId),
    /// No turn is named.
    #[error("no turn is chosen")]
    NoTurns,
    /// A time is no number, or outside the recording.
    #[error("{time} s is outside the recording of {duration} s")]
    Outside {
        /// The time in seconds.
        time: f64,
        /// Duration of the recording in seconds.
        duration: f64,
    },
    /// A turn would end before it starts, or be too short.
    #[error("a turn from {start} s to {end} s would be shorter than {MIN_TURN} s")]
    TooShort {
        /// Start in seconds.
        start: f64,
        /// End in seconds.
        end: f64,
    },
    /// A name is too long.
    #[error("a name may have up to {MAX_NAME} characters")]
    LongName,
    /// A name holds line breaks, tabs or the like.
    #[error("a name must not hold line breaks, tabs or other control characters")]
    ControlCharacter,
    /// Another speaker has the name, or one that is the same in RTTM, where white space is written as `_`.
    #[error("another speaker is called {name}; merge the two instead")]
    NameTaken {
        /// What the other speaker is called.
        name: String,
        /// The other speaker.
        by: SpeakerId,
    },
    /// A speaker cannot be merged with itself.
    #[error("a speaker cannot be merged with itself")]
    MergedWithItself,
    /// The turns to be split off are all that the speaker has.
    #[error("these are all turns of {0}, so there is nothing to split off")]
    AllTurns(String),
    /// A result is damaged or belongs to another recording.
    #[error("the result cannot be taken over: {0}")]
    Unfit(String),
    /// The log would become too large.
    #[error("there are too many edits; undo some, or write the results and work on them afresh")]
    TooMany,
}

/// What `edit` changes about `state`. `fresh` gives identities.
pub(super) fn plan(
    edit: &Edit,
    state: &State,
    fresh: &mut Fresh,
    duration: f64,
) -> Result<Change, EditError> {
    match edit {
        Edit::Rename { speaker, name } => rename(state, *speaker, name),
        Edit::Merge { from, into } => merge(state, *from, *into),
        Edit::SplitOff { turns } => split_off(state, turns, fresh),
        Edit::Move { turns, speaker } => {
            voice(state, *speaker)?;
            Ok(give(state, select(state, turns)?, *speaker, Vec::new()))
        }
        Edit::Delete { turns } => Ok(Change::new(state, select(state, turns)?, Vec::new(), Vec::new())),
        Edit::Cut { turn, at } => {
            let turn = one(state, *turn)?;
            if !(turn.start..=turn.end).contains(at) {
                return Err(EditError::Outside { time: *at, duration });
            }
            let first = Turn { end: *at, ..turn };
            let second = Turn { id: fresh.turn(), start: *at, ..turn };
            check_times(first.start, first.end, duration)?;
            check_times(second.start, second.end, duration)?;
            Ok(Change::new(state, vec![turn], vec![first, second], Vec::new()))
        }
        Edit::Bounds { turn, start, end } => {
            let turn = one(state, *turn)?;
            check_times(*start, *end, duration)?;
            Ok(Change::new(state, vec![turn], vec![Turn { start: *start, end: *end, ..turn }], Vec::new()))
        }
        Edit::Add { start, end, speaker } => {
            check_times(*start, *end, duration)?;
            let (speaker, voices) = match *speaker {
                Some(speaker) => (voice(state, speaker)?.id, Vec::new()),
                None => {
                    let voice = new_voice(state, fresh);
                    (voice.id, vec![voice])
                }
            };
            let turn = Turn { id: fresh.turn(), start: *start, end: *end, speaker };
            Ok(Change::new(state, Vec::new(), vec![turn], voices))
        }
        Edit::Replace(diarization) => replace::plan(state, diarization, fresh, duration),
    }
}

fn voice(state: &State, id: SpeakerId) -> Result<&Voice, EditError> {
    state.voice(id).ok_or(EditError::UnknownSpeaker(id))
}

fn one(state: &State, id: TurnId) -> Result<Turn, EditError> {
    state.turn(id).copied().ok_or(EditError::UnknownTurn(id))
}

fn select(state: &State, ids: &[TurnId]) -> Result<Vec<Turn>, EditError> {
    if ids.is_empty() {
        return Err(EditError::NoTurns);
    }
    state.select(ids).map_err(EditError::UnknownTurn)
}

/// Whether a turn may have these times.
fn check_times(start: f64, end: f64, duration: f64) -> Result<(), EditError> {
    for time in [start, end] {
        if !(0.0..=duration).contains(&time) {
            return Err(EditError::Outside { time, duration });
        }
    }
    if end - start >= MIN_TURN { Ok(()) } else { Err(EditError::TooShort { start, end }) }
}

/// Whether `name` is fit to be the name or label of a speaker, others aside.
pub(super) fn check_name(name: &str) -> Result<(), EditError> {
    if name.chars().nth(MAX_NAME).is_some() {
        Err(EditError::LongName)
    } else if name.chars().any(char::is_control) {
        Err(EditError::ControlCharacter)
    } else {
        Ok(())
    }
}

/// The speaker other than `id` whose name or label is the same as `name` wherever it is written.
pub(super) fn taken<'a>(voices: &'a [Voice], name: &str, id: SpeakerId) -> Option<&'a Voice> {
    let name = rttm::field(name);
    let same = |other: &str| rttm::field(other) == name;
    let names = |voice: &Voice| same(&voice.label) || voice.name.as_deref().is_some_and(same);
    voices.iter().find(|voice| voice.id != id && names(voice))
}

fn rename(state: &State, id: SpeakerId, name: &str) -> Result<Change, EditError> {
    let old = voice(state, id)?;
    let name = name.trim();
    check_name(name)?;
    let name = Some(name.to_owned()).filter(|name| !name.is_empty() && *name != old.label);
    if let Some(other) = name.as_deref().and_then(|name| taken(&state.voices, name, id)) {
        return Err(EditError::NameTaken { name: other.display().to_owned(), by: other.id });
    }
    Ok(Change::new(state, Vec::new(), Vec::new(), vec![Voice { name, ..old.clone() }]))
}

fn merge(state: &State, from: SpeakerId, into: SpeakerId) -> Result<Change, EditError> {
    let (gone, kept) = (voice(state, from)?, voice(state, into)?);
    if from == into {
        return Err(EditError::MergedWithItself);
    }
    let turns: Vec<Turn> = state.turns.iter().filter(|turn| turn.speaker == from).copied().collect();
    let name = kept.name.clone().or_else(|| gone.name.clone());
    Ok(give(state, turns, into, vec![Voice { name, ..kept.clone() }]))
}

fn split_off(state: &State, ids: &[TurnId], fresh: &mut Fresh) -> Result<Change, EditError> {
    let turns = select(state, ids)?;
    let speaker = turns[0].speaker;
    if turns.iter().all(|turn| turn.speaker == speaker) && turns.len() == state.count(speaker) {
        let name = state.voice(speaker).map_or("the speaker", Voice::display);
        return Err(EditError::AllTurns(name.to_owned()));
    }
    let voice = new_voice(state, fresh);
    Ok(give(state, turns, voice.id, vec![voice]))
}

/// Gives `turns` to `speaker`.
fn give(state: &State, mut turns: Vec<Turn>, speaker: SpeakerId, voices: Vec<Voice>) -> Change {
    turns.retain(|turn| turn.speaker != speaker);
    let given = turns.iter().map(|turn| Turn { speaker, ..*turn }).collect();
    Change::new(state, turns, given, voices)
}

/// A speaker with a label that nobody has.
fn new_voice(state: &State, fresh: &mut Fresh) -> Voice {
    let id = fresh.speaker();
    let mut number = id.0 as usize;
    while taken(&state.voices, &label(number), id).is_some() {
        number += 1;
    }
    Voice { id, label: label(number), name: None }
}
