//! How long a speaker speaks, and where to listen to it.

use super::state::{SpeakerId, Turn};

/// Start and end in seconds.
pub(super) type Span = (f64, f64);

/// Longest stretch to listen to, in seconds.
pub const SAMPLE: f64 = 6.0;
/// A stretch without others that is shorter says little about a voice, in seconds.
const ENOUGH: f64 = 0.5;

/// `spans`, sorted by start, without overlaps.
pub(super) fn union(spans: impl Iterator<Item = Span>) -> Vec<Span> {
    let mut joined: Vec<Span> = Vec::new();
    for (start, end) in spans {
        match joined.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => joined.push((start, end)),
        }
    }
    joined
}

/// Seconds that two unions have in common.
pub(super) fn shared(a: &[Span], b: &[Span]) -> f64 {
    let (mut i, mut j, mut sum) = (0, 0, 0.0);
    while i < a.len() && j < b.len() {
        sum += (a[i].1.min(b[j].1) - a[i].0.max(b[j].0)).max(0.0);
        if a[i].1 <= b[j].1 { i += 1 } else { j += 1 }
    }
    sum
}

/// The parts of union `a` that are not in union `b`.
fn without(a: &[Span], b: &[Span]) -> Vec<Span> {
    let mut left = Vec::new();
    let mut from = 0;
    for &(start, end) in a {
        let mut start = start;
        while from < b.len() && b[from].1 <= start {
            from += 1;
        }
        for &(other_start, other_end) in b[from..].iter().take_while(|other| other.0 < end) {
            if other_start > start {
                left.push((start, other_start));
            }
            start = start.max(other_end);
        }
        if start < end {
            left.push((start, end));
        }
    }
    left
}

fn of(turns: &[Turn], own: impl Fn(SpeakerId) -> bool) -> Vec<Span> {
    union(turns.iter().filter(|turn| own(turn.speaker)).map(|turn| (turn.start, turn.end)))
}

/// Seconds in which `speaker` speaks.
pub(super) fn time(turns: &[Turn], speaker: SpeakerId) -> f64 {
    of(turns, |id| id == speaker).iter().map(|(start, end)| end - start).sum()
}

/// The middle of the longest stretch in which `speaker` speaks alone; if there is hardly any, of its longest stretch.
pub(super) fn sample(turns: &[Turn], speaker: SpeakerId) -> Option<Span> {
    let own = of(turns, |id| id == speaker);
    let alone = without(&own, &of(turns, |id| id != speaker));
    let longest = |spans: &[Span]| {
        // The first of equally long ones.
        spans.iter().rev().copied().max_by(|a, b| (a.1 - a.0).total_cmp(&(b.1 - b.0)))
    };
    let (start, end) = longest(&alone).filter(|(start, end)| end - start >= ENOUGH).or(longest(&own))?;
    let spare = (end - start - SAMPLE).max(0.0);
    Some((start + 0.5 * spare, end - 0.5 * spare))
}
