//! Log-mel energies of overlapping frames, equal to torchaudio's `compliance.kaldi.fbank` (C6).

use std::f64::consts::TAU;
use std::sync::Arc;

use rayon::prelude::*;
use realfft::num_complex::Complex;
use realfft::{RealFftPlanner, RealToComplex};

use super::mel::{Filter, filters};

/// Mel bins of one frame.
pub const MELS: usize = 80;
/// Samples in one frame: 25 ms.
pub const FRAME: usize = 400;
/// Samples between frames: 10 ms.
pub const SHIFT: usize = 160;
/// Length of the Fourier transform; frames are zero-padded to it.
const FFT: usize = 512;
/// Weight of the previous sample in the pre-emphasis.
const PRE_EMPHASIS: f32 = 0.97;
/// Kaldi works on the scale of 16-bit integers.
const SAMPLE_SCALE: f32 = 32_768.0;
/// Frames that one parallel task computes.
const TASK_FRAMES: usize = 256;

/// Number of whole frames in `samples` samples (Kaldi's `snip_edges`).
pub fn frames_in(samples: usize) -> usize {
    samples.checked_sub(FRAME).map_or(0, |rest| rest / SHIFT + 1)
}

/// Computes log-mel frames. Holds the window, the filters and the plan of the Fourier transform.
pub struct Fbank {
    window: Vec<f32>,
    filters: Vec<Filter>,
    fft: Arc<dyn RealToComplex<f32>>,
    floor: f32,
}

/// The numbers behind a [`Fbank`].
#[cfg(feature = "cuda")]
pub(crate) struct Tables<'a> {
    /// Weights of the samples of a frame.
    pub window: &'a [f32],
    /// Length of the Fourier transform.
    pub fft: usize,
    /// First bin and weights of every mel filter.
    pub filters: Vec<(usize, &'a [f32])>,
    /// Least mel energy.
    pub floor: f32,
}

impl Fbank {
    /// `floor` is the least mel energy before the logarithm, a property of the embedding model: the official
    /// model uses the float epsilon, the bundled one 10 (its model card says why).
    pub fn new(floor: f32) -> Self {
        let window =
            (0..FRAME).map(|n| (0.54 - 0.46 * (TAU * n as f64 / (FRAME - 1) as f64).cos()) as f32).collect();
        let fft = RealFftPlanner::new().plan_fft_forward(FFT);
        Self { window, filters: filters(MELS, FFT), fft, floor: floor.max(f32::EPSILON) }
    }

    /// What another implementation of the same transform needs.
    #[cfg(feature = "cuda")]
    pub(crate) fn tables(&self) -> Tables<'_> {
        let filters = self.filters.iter().map(|filter| (filter.first, filter.weights.as_slice())).collect();
        Tables { window: &self.window, fft: FFT, filters, floor: self.floor }
    }

    /// Natural logarithm of the mel energies of all whole frames in `samples` (16 kHz, in [-1, 1]), row-major
    /// `[frames_in(samples.len()), MELS]`. No mean is removed.
    pub fn log_mel(&self, samples: &[f32]) -> Vec<f32> {
        let mut out = vec![0.0; frames_in(samples.len()) * MELS];
        out.par_chunks_mut(TASK_FRAMES * MELS).enumerate().for_each(|(task, rows)| {
            let mut frame = vec![0.0; FFT];
            let mut spectrum = self.fft.make_output_vec();
            let mut scratch = self.fft.make_scratch_vec();
            for (i, row) in rows.chunks_exact_mut(MELS).enumerate() {
                let start = (task * TASK_FRAMES + i) * SHIFT;
                self.condition(&samples[start..start + FRAME], &mut frame);
                self.fft
                    .process_with_scratch(&mut frame, &mut spectrum, &mut scratch)
                    .expect("buffers were made by the plan");
                self.mel_energies(&spectrum, row);
            }
        });
        out
    }

    /// Kaldi's order: scale, DC removal, pre-emphasis (the first sample against itself), window, zero padding.
    fn condition(&self, samples: &[f32], frame: &mut [f32]) {
        let mean = samples.iter().map(|&s| f64::from(s)).sum::<f64>() / FRAME as f64;
        let mean = mean as f32 * SAMPLE_SCALE;
        let mut previous = samples[0] * SAMPLE_SCALE - mean;
        for ((out, &sample), &weight) in frame.iter_mut().zip(samples).zip(&self.window) {
            let centred = sample * SAMPLE_SCALE - mean;
            *out = (centred - PRE_EMPHASIS * previous) * weight;
            previous = centred;
        }
        frame[FRAME..].fill(0.0);
    }

    fn mel_energies(&self, spectrum: &[Complex<f32>], row: &mut [f32]) {
        for (out, filter) in row.iter_mut().zip(&self.filters) {
            let bins = &spectrum[filter.first..];
            let energy: f32 = filter.weights.iter().zip(bins).map(|(w, c)| w * c.norm_sqr()).sum();
            *out = energy.max(self.floor).ln();
        }
    }
}

/// Subtracts each bin's mean over all rows of `log_mel`, row-major `[frames, MELS]` (C6).
pub fn subtract_mean(log_mel: &mut [f32]) {
    let frames = log_mel.len() / MELS;
    let mut mean = [0.0f64; MELS];
    log_mel.as_chunks::<MELS>().0.iter().for_each(|row| accumulate(&mut mean, row, 1.0));
    let mean = mean.map(|m| (m / frames as f64) as f32);
    for row in log_mel.as_chunks_mut::<MELS>().0 {
        row.iter_mut().zip(&mean).for_each(|(v, m)| *v -= m);
    }
}

/// Rows `rows` of `log_mel`, each less the mean over a span of `span` rows centred on it. The span is moved
/// inwards at the ends and is shorter only where there are fewer rows (C17).
pub fn subtract_sliding_mean(log_mel: &[f32], rows: std::ops::Range<usize>, span: usize) -> Vec<f32> {
    let source = log_mel.as_chunks::<MELS>().0;
    let span = span.min(source.len());
    let first = |row: usize| row.saturating_sub(span / 2).min(source.len() - span);
    let mut at = first(rows.start);
    let mut sum = [0.0f64; MELS];
    source[at..at + span].iter().for_each(|row| accumulate(&mut sum, row, 1.0));
    let mut out = Vec::with_capacity(rows.len() * MELS);
    for row in rows {
        while at < first(row) {
            accumulate(&mut sum, &source[at], -1.0);
            accumulate(&mut sum, &source[at + span], 1.0);
            at += 1;
        }
        out.extend(source[row].iter().zip(&sum).map(|(&v, &s)| v - (s / span as f64) as f32));
    }
    out
}

/// Adds `sign` times `row` to `sum`.
fn accumulate(sum: &mut [f64; MELS], row: &[f32; MELS], sign: f64) {
    sum.iter_mut().zip(row).for_each(|(s, &v)| *s += sign * f64::from(v));
}
