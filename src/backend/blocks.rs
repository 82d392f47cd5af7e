//! The blocks of the shared trunk and the slices of it that windows pool (C17).

use std::ops::Range;

use crate::features::{FRAME, Fbank, SHIFT, frames_in, subtract_sliding_mean};
use crate::models::embedding::TIME_REDUCTION;
use crate::models::windows::{Activity, LOCAL_SPEAKERS, WINDOW_SAMPLES, Windows};

/// fbank frames of one block: 60 s.
const BLOCK: usize = 6_000;
/// fbank frames on both sides of a block: more than half the trunk's receptive field, a multiple of
/// [`TIME_REDUCTION`].
const MARGIN: usize = 160;
/// fbank frames of a block that has neighbours on both sides.
#[cfg(feature = "cuda")]
pub(super) const FULL_BLOCK: usize = BLOCK + 2 * MARGIN;

/// A part of the recording that goes through the trunk at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Block {
    /// fbank frames that it yields.
    pub core: Range<usize>,
    /// fbank frames of the recording.
    pub total: usize,
}

impl Block {
    /// fbank frames that go in: the core and what the trunk sees around it.
    pub fn frames(&self) -> Range<usize> {
        self.core.start.saturating_sub(MARGIN)..(self.core.end + MARGIN).min(self.total)
    }

    /// Trunk frames of the recording that it yields.
    pub fn trunk_core(&self) -> Range<usize> {
        self.core.start / TIME_REDUCTION..self.core.end.div_ceil(TIME_REDUCTION)
    }

    /// Where the core lies in the trunk frames of [`Block::frames`].
    pub fn core_in_trunk(&self) -> Range<usize> {
        let first = (self.core.start - self.frames().start) / TIME_REDUCTION;
        first..first + self.core.len().div_ceil(TIME_REDUCTION)
    }

    /// Whether one of the slices needs it.
    pub fn is_wanted(&self, slices: &[(usize, Range<usize>)]) -> bool {
        let core = self.trunk_core();
        slices.iter().any(|(_, slice)| slice.start < core.end && slice.end > core.start)
    }

    /// Features of [`Block::frames`], row-major `[fbank frames, MELS]`, without the sliding mean of a window's length.
    pub fn features(&self, samples: &[f32], fbank: &Fbank) -> Vec<f32> {
        let (span, frames) = (frames_in(WINDOW_SAMPLES), self.frames());
        let source = frames.start.saturating_sub(span / 2)..(frames.end + span / 2).min(self.total);
        let end = (source.end - 1) * SHIFT + FRAME;
        let mut audio = samples[(source.start * SHIFT).min(samples.len())..end.min(samples.len())].to_vec();
        audio.resize(end - source.start * SHIFT, 0.0);
        let rows = frames.start - source.start..frames.end - source.start;
        subtract_sliding_mean(&fbank.log_mel(&audio), rows, span)
    }
}

/// The blocks of a recording.
pub(super) fn blocks(windows: &Windows) -> Vec<Block> {
    let total = frames_in(windows.start_sample(windows.count() - 1) + WINDOW_SAMPLES);
    (0..total).step_by(BLOCK).map(|start| Block { core: start..(start + BLOCK).min(total), total }).collect()
}

/// Windows with speech, each with the trunk frames that it pools: `[round(start / 8), + 125)`.
pub(super) fn spoken_slices(windows: &Windows, activity: &Activity) -> Vec<(usize, Range<usize>)> {
    let slice = |c| {
        let start = windows.start_sample(c) as f64 / (SHIFT * TIME_REDUCTION) as f64;
        let first = start.round_ties_even() as usize;
        first..first + frames_in(WINDOW_SAMPLES).div_ceil(TIME_REDUCTION)
    };
    (0..windows.count()).filter(|&c| has_speech(activity, c)).map(|c| (c, slice(c))).collect()
}

/// Whether anybody speaks in window `c`.
pub(super) fn has_speech(activity: &Activity, c: usize) -> bool {
    (0..LOCAL_SPEAKERS).any(|s| activity.is_active(c, s))
}
