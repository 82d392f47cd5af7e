//! Turns of speakers on the recording's time axis (C14). Depends on `models`.

use serde::{Deserialize, Serialize};

use super::reconstruct::Run;
use crate::models::windows::{FRAME_DURATION, FRAME_STEP};

/// A stretch of speech of one speaker.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Segment {
    /// Start in seconds from the beginning of the recording.
    pub start: f64,
    /// End in seconds, after `start`.
    pub end: f64,
    /// Index of the speaker, from 0.
    pub speaker: usize,
}

/// How runs of frames become segments.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SegmentOptions {
    /// Segments that are shorter are dropped, in seconds (C14).
    pub min_duration_on: f64,
    /// Pauses of the same speaker that are shorter are filled, in seconds (C14).
    pub min_duration_off: f64,
    /// End of the recording in seconds: segments are cut there. Infinite keeps what lies in the padding (C14).
    pub duration: f64,
}

impl Default for SegmentOptions {
    fn default() -> Self {
        Self { min_duration_on: 0.0, min_duration_off: 0.0, duration: f64::INFINITY }
    }
}

/// Middle of frame `f`, in seconds (C14).
///
/// Computed as the mean of the frame's start and end: the rounding of other forms changes the third decimal of some
/// durations in the reference's RTTM.
pub fn frame_time(f: usize) -> f64 {
    let start = f as f64 * FRAME_STEP;
    0.5 * (start + (start + FRAME_DURATION))
}

/// Segments of `runs` over a recording of `frames` frames, from the middle of the first active frame to the middle
/// of the first inactive one; sorted by start, end and speaker (C14). The speaker is the run's column.
pub fn segments(runs: &[Run], frames: usize, options: &SegmentOptions) -> Vec<Segment> {
    let mut last_of: Vec<Option<usize>> = Vec::new();
    let mut segments: Vec<Segment> = Vec::with_capacity(runs.len());
    for run in runs {
        let start = frame_time(run.start);
        let end = frame_time(run.end.min(frames - 1)).min(options.duration);
        if end <= start {
            continue;
        }
        if last_of.len() <= run.column {
            last_of.resize(run.column + 1, None);
        }
        match last_of[run.column] {
            Some(i) if start - segments[i].end < options.min_duration_off => segments[i].end = end,
            _ => {
                last_of[run.column] = Some(segments.len());
                segments.push(Segment { start, end, speaker: run.column });
            }
        }
    }
    segments.retain(|segment| segment.end - segment.start >= options.min_duration_on);
    segments.sort_by(|a, b| {
        a.start.total_cmp(&b.start).then(a.end.total_cmp(&b.end)).then(a.speaker.cmp(&b.speaker))
    });
    segments
}

/// At most one speaker at a time: who began first keeps the time. `segments` are sorted by start.
pub fn exclusive(segments: &[Segment]) -> Vec<Segment> {
    let mut free = 0.0;
    let mut kept = Vec::with_capacity(segments.len());
    for segment in segments {
        let start = segment.start.max(free);
        if segment.end > start {
            kept.push(Segment { start, ..*segment });
            free = segment.end;
        }
    }
    kept
}

/// The different speakers of `segments`, ascending.
pub fn speakers(segments: &[Segment]) -> Vec<usize> {
    let mut present: Vec<usize> = segments.iter().map(|segment| segment.speaker).collect();
    present.sort_unstable();
    present.dedup();
    present
}

/// Label of the speaker with this index (C14).
pub fn label(speaker: usize) -> String {
    format!("SPEAKER_{speaker:02}")
}
