//! Which reference speaker became which hypothesis speaker, when: the errors of DER laid out in time.

use std::collections::BTreeMap;

use super::tally::{Side, sweep};
use super::{Options, Tally, mapping};
use crate::timeline::rttm::Turn;
use crate::timeline::uem::Region;

/// What happened to a speaker in an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The reference speaker talks, and so does the hypothesis speaker mapped to them.
    Correct,
    /// A reference speaker talks and nobody is left in the hypothesis for them.
    Missed,
    /// A hypothesis speaker talks and nobody is left in the reference for them.
    FalseAlarm,
    /// Speech on both sides by speakers who are not mapped to each other.
    Confusion,
}

/// A stretch of time with one pair of speakers.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Interval {
    /// Start in seconds.
    pub start: f64,
    /// End in seconds.
    pub end: f64,
    /// What happened.
    pub kind: Kind,
    /// The reference speaker, unless it is a false alarm.
    pub reference: Option<String>,
    /// The hypothesis speaker, unless it is missed speech.
    pub hypothesis: Option<String>,
}

type Key = (Kind, Option<usize>, Option<usize>);

/// The scored time of one recording as intervals, sorted by start. The durations of each kind add up to the parts of
/// [`super::Der`]. Where several speakers are confused at once, they are paired in the order of their names.
pub fn confusion(
    reference: &[Turn],
    hypothesis: &[Turn],
    uem: Option<&[Region]>,
    options: Options,
) -> Vec<Interval> {
    let pairs: BTreeMap<usize, usize> =
        mapping(&Tally::new(reference, hypothesis, uem, options)).into_iter().collect();
    let (reference, hypothesis) = (Side::new(reference), Side::new(hypothesis));
    let mut open = BTreeMap::<Key, (i64, i64)>::new();
    let mut closed = Vec::<(i64, i64, Key)>::new();
    sweep(&reference, &hypothesis, uem, options, |start, end, references, hypotheses| {
        let keys = paired(references, hypotheses, &pairs);
        open.retain(|key, &mut (from, to)| {
            let goes_on = to == start && keys.contains(key);
            if !goes_on {
                closed.push((from, to, *key));
            }
            goes_on
        });
        for key in keys {
            open.entry(key).or_insert((start, end)).1 = end;
        }
    });
    closed.extend(open.into_iter().map(|(key, (from, to))| (from, to, key)));
    closed.sort_unstable_by_key(|&(from, to, key)| (from, key, to));
    let seconds = |micros: i64| micros as f64 / 1e6;
    let interval = |(from, to, (kind, r, h)): (i64, i64, Key)| Interval {
        start: seconds(from),
        end: seconds(to),
        kind,
        reference: r.map(|r| reference.names[r].clone()),
        hypothesis: h.map(|h| hypothesis.names[h].clone()),
    };
    closed.into_iter().map(interval).collect()
}

/// Pairs those who talk at one moment: first the mapped speakers, then the rest one by one.
fn paired(references: &[usize], hypotheses: &[usize], pairs: &BTreeMap<usize, usize>) -> Vec<Key> {
    let mut keys = Vec::new();
    let (mut references, mut hypotheses) = (references.to_vec(), hypotheses.to_vec());
    references.sort_unstable();
    hypotheses.sort_unstable();
    references.retain(|r| {
        let found = pairs.get(r).and_then(|h| hypotheses.iter().position(|x| x == h));
        if let Some(at) = found {
            keys.push((Kind::Correct, Some(*r), Some(hypotheses.remove(at))));
        }
        found.is_none()
    });
    for i in 0..references.len().max(hypotheses.len()) {
        let (r, h) = (references.get(i).copied(), hypotheses.get(i).copied());
        let kind = match (r, h) {
            (Some(_), Some(_)) => Kind::Confusion,
            (Some(_), None) => Kind::Missed,
            _ => Kind::FalseAlarm,
        };
        keys.push((kind, r, h));
    }
    keys
}
