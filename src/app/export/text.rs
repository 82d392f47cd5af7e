//! What the text formats have in common: turns in milliseconds, names that fit on a line.

use std::collections::HashSet;

use crate::pipeline::Diarization;
use crate::timeline::Segment;
use crate::timeline::rttm::SHORTEST;

/// A turn in milliseconds from the beginning of the recording; it ends after it starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Turn {
    pub start: u64,
    pub end: u64,
    pub speaker: usize,
}

fn milliseconds(seconds: f64) -> u64 {
    (seconds * 1000.0).round() as u64
}

/// The turns by start, then end, then speaker. Those that RTTM leaves out as too short are left out here too.
pub(super) fn turns(diarization: &Diarization) -> Vec<Turn> {
    let long_enough = diarization.segments.iter().filter(|s| s.end - s.start >= SHORTEST);
    let turn = |s: &Segment| {
        let end = milliseconds(s.end).max(1);
        Turn { start: milliseconds(s.start).min(end - 1), end, speaker: s.speaker }
    };
    let mut turns: Vec<Turn> = long_enough.map(turn).collect();
    turns.sort_unstable();
    turns
}

/// The turns of each speaker, overlapping ones joined; those that only touch stay apart.
pub(super) fn by_speaker(diarization: &Diarization) -> Vec<Vec<Turn>> {
    let mut all: Vec<Vec<Turn>> = vec![Vec::new(); diarization.speakers.len()];
    for turn in turns(diarization) {
        let own = &mut all[turn.speaker];
        match own.last_mut() {
            Some(last) if turn.start < last.end => last.end = last.end.max(turn.end),
            _ => own.push(turn),
        }
    }
    all
}

/// Where the recording ends, in milliseconds; no turn ends later, and it is never 0.
pub(super) fn end<'a>(diarization: &Diarization, turns: impl Iterator<Item = &'a Vec<Turn>>) -> u64 {
    let last = turns.flatten().map(|turn| turn.end).max();
    milliseconds(diarization.duration).max(last.unwrap_or(1))
}

/// `name` on one line: white space other than spaces, control characters and what XML forbids are replaced.
pub(super) fn line(name: &str) -> String {
    let fit = |c: char| match c {
        c if c.is_whitespace() || c.is_control() => ' ',
        '\u{fffe}' | '\u{ffff}' => char::REPLACEMENT_CHARACTER,
        c => c,
    };
    let name: String = name.chars().map(fit).collect();
    match name.trim() {
        "" => "_".into(),
        name => name.into(),
    }
}

/// The names of the speakers, each on one line and none twice: a repeated one gets a number.
pub(super) fn distinct_names(diarization: &Diarization) -> Vec<String> {
    let mut seen = HashSet::new();
    let distinct = |label: &str| {
        let name = line(label);
        let numbered = (2..).map(|number| format!("{name} ({number})"));
        let free = std::iter::once(name.clone()).chain(numbered).find(|name| !seen.contains(name));
        let free = free.expect("there are more numbers than speakers");
        seen.insert(free.clone());
        free
    };
    diarization.speakers.iter().map(|speaker| speaker.label.as_str()).map(distinct).collect()
}

/// `hh:mm:ss`, `point` and milliseconds.
pub(super) fn clock(milliseconds: u64, point: char) -> String {
    let seconds = milliseconds / 1000;
    let (h, m, s, ms) = (seconds / 3600, seconds / 60 % 60, seconds % 60, milliseconds % 1000);
    format!("{h:02}:{m:02}:{s:02}{point}{ms:03}")
}
