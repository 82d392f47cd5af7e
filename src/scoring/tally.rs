//! One sweep over the time axis that collects all that DER and JER need.

use std::collections::BTreeMap;

use super::Options;
use crate::timeline::rttm::Turn;
use crate::timeline::uem::Region;

/// Scored times of one recording, in microseconds.
///
/// Speakers are counted by index into the name lists, which are sorted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// Names of the reference speakers.
    pub reference_names: Vec<String>,
    /// Names of the hypothesis speakers.
    pub hypothesis_names: Vec<String>,
    /// Scored time of each reference speaker.
    pub reference_time: Vec<i64>,
    /// Scored time of each hypothesis speaker.
    pub hypothesis_time: Vec<i64>,
    /// Scored time in which reference speaker `r` and hypothesis speaker `h` talk together, by `(r, h)`; pairs
    /// without any are absent.
    pub shared: BTreeMap<(usize, usize), i64>,
    /// Sum over time of the reference speakers beyond the number of hypothesis speakers.
    pub missed: i64,
    /// Sum over time of the hypothesis speakers beyond the number of reference speakers.
    pub false_alarm: i64,
    /// Sum over time of the smaller of both numbers of speakers: the correct time plus the confused time.
    pub matched: i64,
    /// Turns that overlapped another turn of their speaker in the reference, and were merged with it.
    pub merged_reference: usize,
    /// Turns that overlapped another turn of their speaker in the hypothesis, and were merged with it.
    pub merged_hypothesis: usize,
}

impl Tally {
    /// Compares the turns of one recording. Without `uem`, the union of both extents is scored.
    pub fn new(reference: &[Turn], hypothesis: &[Turn], uem: Option<&[Region]>, options: Options) -> Self {
        let reference = Side::new(reference);
        let hypothesis = Side::new(hypothesis);
        let mut tally = Self {
            reference_time: vec![0; reference.names.len()],
            hypothesis_time: vec![0; hypothesis.names.len()],
            merged_reference: reference.merged,
            merged_hypothesis: hypothesis.merged,
            ..Self::default()
        };
        sweep(&reference, &hypothesis, uem, options, |start, end, references, hypotheses| {
            tally.add(end - start, references, hypotheses);
        });
        tally.reference_names = reference.names;
        tally.hypothesis_names = hypothesis.names;
        tally
    }

    /// Number of reference speakers who talk in the scored time.
    pub fn reference_speakers(&self) -> usize {
        self.reference_time.iter().filter(|&&t| t > 0).count()
    }

    /// Number of hypothesis speakers who talk in the scored time.
    pub fn hypothesis_speakers(&self) -> usize {
        self.hypothesis_time.iter().filter(|&&t| t > 0).count()
    }

    /// Accounts for a scored stretch of `duration` in which the same speakers talk.
    fn add(&mut self, duration: i64, references: &[usize], hypotheses: &[usize]) {
        self.missed += duration * references.len().saturating_sub(hypotheses.len()) as i64;
        self.false_alarm += duration * hypotheses.len().saturating_sub(references.len()) as i64;
        self.matched += duration * references.len().min(hypotheses.len()) as i64;
        for &h in hypotheses {
            self.hypothesis_time[h] += duration;
        }
        for &r in references {
            self.reference_time[r] += duration;
            for &h in hypotheses {
                *self.shared.entry((r, h)).or_default() += duration;
            }
        }
    }
}

/// Shows `visit` every scored stretch in which nothing changes, in the order of time: start and end in microseconds,
/// the reference and the hypothesis speakers who talk.
pub(super) fn sweep(
    reference: &Side,
    hypothesis: &Side,
    uem: Option<&[Region]>,
    options: Options,
    mut visit: impl FnMut(i64, i64, &[usize], &[usize]),
) {
    let mut state = State::default();
    let mut last = 0;
    for (time, lane, starts) in events(reference, hypothesis, uem, micros(options.collar)) {
        if time > last {
            let skipped = options.skip_overlap && state.references.len() > 1;
            if state.evaluated > 0 && state.collars <= 0 && !skipped {
                visit(last, time, &state.references, &state.hypotheses);
            }
            last = time;
        }
        state.apply(lane, starts);
    }
}

/// Converts seconds to whole microseconds.
fn micros(seconds: f64) -> i64 {
    (seconds * 1e6).round() as i64
}

/// The turns of one side, merged per speaker.
pub(super) struct Side {
    /// Names of the speakers, sorted.
    pub names: Vec<String>,
    /// Start, end and speaker; the turns of one speaker neither overlap nor touch.
    turns: Vec<(i64, i64, usize)>,
    merged: usize,
}

impl Side {
    pub fn new(turns: &[Turn]) -> Self {
        let mut order: Vec<(&str, i64, i64)> = turns
            .iter()
            .map(|t| (t.speaker.as_str(), micros(t.start), micros(t.start) + micros(t.duration)))
            .filter(|&(_, start, end)| end > start)
            .collect();
        order.sort_unstable();
        let mut side = Self { names: Vec::new(), turns: Vec::new(), merged: 0 };
        for (name, start, end) in order {
            if side.names.last().is_none_or(|last| last != name) {
                side.names.push(name.to_owned());
            }
            let speaker = side.names.len() - 1;
            match side.turns.last_mut() {
                Some(last) if last.2 == speaker && start <= last.1 => {
                    side.merged += usize::from(start < last.1);
                    last.1 = last.1.max(end);
                }
                _ => side.turns.push((start, end, speaker)),
            }
        }
        side
    }
}

/// What starts or ends at an event.
#[derive(Debug, Clone, Copy)]
enum Lane {
    Reference(usize),
    Hypothesis(usize),
    Evaluated,
    Collar,
}

/// An instant, what changes there, and whether it starts (or ends).
type Event = (i64, Lane, bool);

/// All starts and ends in the order of time.
fn events(reference: &Side, hypothesis: &Side, uem: Option<&[Region]>, collar: i64) -> Vec<Event> {
    let mut events = Vec::new();
    let mut push = |start: i64, end: i64, lane: Lane| {
        // The sweep starts at 0, where every recording does.
        events.push((start.max(0), lane, true));
        events.push((end.max(0), lane, false));
    };
    for &(start, end, speaker) in &reference.turns {
        push(start, end, Lane::Reference(speaker));
        if collar > 0 {
            push(start - collar, start + collar, Lane::Collar);
            push(end - collar, end + collar, Lane::Collar);
        }
    }
    for &(start, end, speaker) in &hypothesis.turns {
        push(start, end, Lane::Hypothesis(speaker));
    }
    match uem {
        Some(regions) => {
            for region in regions {
                push(micros(region.start), micros(region.end), Lane::Evaluated);
            }
        }
        None => {
            let turns = || reference.turns.iter().chain(&hypothesis.turns);
            let start = turns().map(|t| t.0).min().unwrap_or(0);
            let end = turns().map(|t| t.1).max().unwrap_or(0);
            push(start, end, Lane::Evaluated);
        }
    }
    events.sort_unstable_by_key(|event| event.0);
    events
}

/// Who talks and what applies between two events.
#[derive(Debug, Default)]
struct State {
    references: Vec<usize>,
    hypotheses: Vec<usize>,
    // Signed, because an end may come before a start at the same instant.
    evaluated: i64,
    collars: i64,
}

impl State {
    fn apply(&mut self, lane: Lane, starts: bool) {
        let change = if starts { 1 } else { -1 };
        match lane {
            Lane::Reference(r) => toggle(&mut self.references, r, starts),
            Lane::Hypothesis(h) => toggle(&mut self.hypotheses, h, starts),
            Lane::Evaluated => self.evaluated += change,
            Lane::Collar => self.collars += change,
        }
    }
}

/// Adds a speaker to those who talk, or removes one.
fn toggle(talking: &mut Vec<usize>, speaker: usize, starts: bool) {
    if starts {
        talking.push(speaker);
    } else if let Some(at) = talking.iter().position(|&s| s == speaker) {
        talking.swap_remove(at);
    }
}
