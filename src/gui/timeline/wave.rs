//! The waveform of the part in view: from the peaks, or from the samples themselves where columns are finer.

use super::axis::Axis;
use crate::app::peaks::{BUCKET, Peaks};
use crate::audio::SAMPLE_RATE;

/// Loudest amplification for drawing.
const MOST_GAIN: f32 = 12.0;

/// Samples of a part of the recording, for zooms at which the peaks are too coarse.
#[derive(Debug, Clone, Copy)]
pub struct Detail<'a> {
    /// Number of the first sample, counted from the start of the recording.
    pub first: u64,
    /// Samples at 16 kHz.
    pub samples: &'a [f32],
}

impl Detail<'_> {
    fn holds(&self, from: f64, to: f64, duration: f64) -> bool {
        let (first, last) = (self.first as f64, (self.first + self.samples.len() as u64) as f64);
        let rate = f64::from(SAMPLE_RATE);
        first <= (from * rate).max(0.0) && last >= (to.min(duration) * rate).floor()
    }

    /// Lowest and highest sample of each column, with both neighbours, so that the line has no gaps.
    fn columns(&self, from: f64, to: f64, count: usize) -> Vec<(f32, f32)> {
        let rate = f64::from(SAMPLE_RATE);
        let step = (to - from) * rate / count.max(1) as f64;
        let start = from * rate - self.first as f64;
        let place = |column: usize| start + column as f64 * step;
        (0..count)
            .map(|column| {
                // A column shows the line between samples, so it needs the values at its borders.
                let (a, b) = (place(column), place(column + 1));
                let (at_a, at_b) = (self.at(a), self.at(b));
                let (mut low, mut high) = (at_a.min(at_b), at_a.max(at_b));
                let inside = a.ceil().max(0.0) as usize..(b.floor().max(-1.0) + 1.0) as usize;
                let end = inside.end.min(self.samples.len());
                for &sample in &self.samples[inside.start.min(end)..end] {
                    (low, high) = (low.min(sample), high.max(sample));
                }
                (low, high)
            })
            .collect()
    }

    /// The line through the samples at a position between two of them; silence outside.
    fn at(&self, place: f64) -> f32 {
        let sample =
            |i: f64| if i < 0.0 { 0.0 } else { self.samples.get(i as usize).copied().unwrap_or(0.0) };
        let part = (place - place.floor()) as f32;
        sample(place.floor()) * (1.0 - part) + sample(place.floor() + 1.0) * part
    }
}

/// A waveform ready to draw.
#[derive(Debug, Clone, PartialEq)]
pub struct Wave {
    /// Lowest and highest sample of each pixel column, up to the end of what is known.
    pub columns: Vec<(f32, f32)>,
    /// What the samples are multiplied with, so that the loudest of the recording fills the height.
    pub gain: f32,
}

/// The waveform of the part in view.
pub fn wave(peaks: &Peaks, detail: Option<Detail<'_>>, axis: &Axis) -> Wave {
    let (from, to) = axis.columns();
    let count = axis.pixels();
    let known = axis.place(peaks.duration()).ceil().clamp(0.0, count as f64) as usize;
    let (low, high) = peaks.columns(0.0, peaks.duration(), 1).next().unwrap_or_default();
    let loudest = high.max(-low);
    let gain = if loudest > 0.0 { (1.0 / loudest).clamp(1.0, MOST_GAIN) } else { 1.0 };
    let mut columns: Vec<_> = match detail {
        Some(detail) if wants_detail(axis) && detail.holds(from, to, peaks.duration()) => {
            detail.columns(from, to, count)
        }
        _ => peaks.columns(from, to, count).collect(),
    };
    columns.truncate(known);
    Wave { columns, gain }
}

/// Whether columns are finer than the peaks.
pub fn wants_detail(axis: &Axis) -> bool {
    axis.view.scale * f64::from(axis.pixel) * f64::from(SAMPLE_RATE) < BUCKET as f64
}
