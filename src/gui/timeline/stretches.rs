//! Stretches of time, searchable, and where those of several speakers overlap.

use std::ops::Range;

/// Stretches of time in the order of their start, searchable even where they overlap.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Stretches {
    spans: Vec<(f64, f64)>,
    /// The latest end of all spans up to each one, which grows, so that it can be searched.
    latest: Vec<f64>,
}

impl Stretches {
    /// From spans in the order of their start.
    pub(super) fn new(spans: Vec<(f64, f64)>) -> Self {
        let mut latest = f64::NEG_INFINITY;
        let latest = spans
            .iter()
            .map(|span| {
                latest = span.1.max(latest);
                latest
            })
            .collect();
        Self { spans, latest }
    }

    /// Start and end of every stretch.
    pub fn spans(&self) -> &[(f64, f64)] {
        &self.spans
    }

    /// The smallest run of stretches that has every one which touches the seconds `from` to `to`.
    pub fn touching(&self, from: f64, to: f64) -> Range<usize> {
        let first = self.latest.partition_point(|&end| end < from);
        let last = self.spans.partition_point(|&(start, _)| start <= to);
        first..last.max(first)
    }

    /// Seconds that at least one stretch covers.
    pub fn total(&self) -> f64 {
        let (mut total, mut end) = (0.0, f64::NEG_INFINITY);
        for &(start, stop) in &self.spans {
            total += (stop - start.max(end)).max(0.0);
            end = end.max(stop);
        }
        total
    }
}

/// Where at least two lanes speak.
pub(super) fn overlaps<'a>(lanes: impl Iterator<Item = &'a Stretches>) -> Stretches {
    let mut changes = Vec::new();
    for lane in lanes {
        // Overlap of a speaker with himself does not count.
        let mut open: Option<(f64, f64)> = None;
        for &(start, end) in lane.spans() {
            match &mut open {
                Some((_, last)) if start <= *last => *last = last.max(end),
                _ => {
                    if let Some((start, end)) = open.replace((start, end)) {
                        changes.extend([(start, 1), (end, -1)]);
                    }
                }
            }
        }
        changes.extend(open.into_iter().flat_map(|(start, end)| [(start, 1), (end, -1)]));
    }
    // Ends first: turns that only touch do not overlap.
    changes.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let (mut speaking, mut from, mut spans) = (0, 0.0, Vec::new());
    for (at, change) in changes {
        let before = speaking;
        speaking += change;
        if before < 2 && speaking >= 2 {
            from = at;
        } else if before >= 2 && speaking < 2 && at > from {
            match spans.last_mut() {
                Some((_, end)) if *end == from => *end = at,
                _ => spans.push((from, at)),
            }
        }
    }
    Stretches::new(spans)
}
