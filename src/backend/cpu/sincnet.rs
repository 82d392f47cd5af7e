//! The convolutional front of segmentation-3.0 (C3), channels last.
//!
//! The normalisation of the waveform is affine, so it commutes with the sinc filters: `conv(a x + b) = a conv(x) +
//! b sum(filter)`. The filters therefore run once over the audio of a whole group of windows, and each window
//! scales its slice.

use rayon::prelude::*;

use super::conv::with_scratch;
use super::gemm::{Output, gemm, transposed};
use crate::math::simd::vectorised;
use crate::models::segmentation::{
    CONV_CHANNELS, CONV_TAPS, Linear, Norm, POOL, SINC_FILTERS, SINC_STRIDE, SINC_TAPS, SegmentationWeights,
};

/// Epsilon of every instance normalisation.
const NORM_EPSILON: f64 = 1e-5;
/// Slope of the leaky rectifier below 0.
const LEAK: f32 = 0.01;
/// Outputs of the sinc filters that one task computes.
const TASK_OUTPUTS: usize = 256;

/// A convolution over time as one matrix a tap.
struct TimeConv {
    /// `[CONV_TAPS]` column-major matrices `[CONV_CHANNELS, input]`.
    taps: Vec<Vec<f32>>,
    bias: Vec<f32>,
    input: usize,
}

impl TimeConv {
    fn new(weights: &Linear) -> Self {
        let input = weights.weight.len() / (CONV_CHANNELS * CONV_TAPS);
        let tap = |tap: usize| {
            let value =
                |i: usize| weights.weight[(i % CONV_CHANNELS * input + i / CONV_CHANNELS) * CONV_TAPS + tap];
            (0..CONV_CHANNELS * input).map(value).collect()
        };
        Self { taps: (0..CONV_TAPS).map(tap).collect(), bias: weights.bias.clone(), input }
    }

    /// `[frames, input]` to `[frames - 4, CONV_CHANNELS]`.
    fn run(&self, x: &[f32]) -> Vec<f32> {
        let frames = x.len() / self.input + 1 - CONV_TAPS;
        let mut out = self.bias.repeat(frames);
        for (tap, weight) in self.taps.iter().enumerate() {
            let x = &x[tap * self.input..][..frames * self.input];
            gemm(&mut out, Output::Add, weight, x, CONV_CHANNELS);
        }
        out
    }
}

/// Prepared weights.
pub(super) struct SincNet {
    wave_norm: Norm,
    /// Column-major `[SINC_FILTERS, SINC_TAPS]`.
    filters: Vec<f32>,
    /// Sum of the taps of each filter.
    sums: Vec<f32>,
    convs: [TimeConv; 2],
    norms: [Norm; 3],
}

impl SincNet {
    pub fn new(weights: &SegmentationWeights) -> Self {
        let sum = |taps: &[f32]| taps.iter().map(|&t| f64::from(t)).sum::<f64>() as f32;
        Self {
            wave_norm: weights.wave_norm.clone(),
            filters: transposed(&weights.sinc, SINC_FILTERS, SINC_TAPS),
            sums: weights.sinc.chunks_exact(SINC_TAPS).map(sum).collect(),
            convs: [TimeConv::new(&weights.convs[0]), TimeConv::new(&weights.convs[1])],
            norms: weights.norms.clone(),
        }
    }

    /// The sinc filters over the bare `samples`: `[outputs, SINC_FILTERS]`.
    pub fn filter(&self, samples: &[f32]) -> Vec<f32> {
        let outputs = (samples.len() - SINC_TAPS) / SINC_STRIDE + 1;
        let mut out = vec![0.0; outputs * SINC_FILTERS];
        out.par_chunks_mut(TASK_OUTPUTS * SINC_FILTERS).enumerate().for_each(|(task, values)| {
            let count = values.len() / SINC_FILTERS;
            with_scratch(count * SINC_TAPS, |columns| {
                for (i, column) in columns.chunks_exact_mut(SINC_TAPS).enumerate() {
                    let start = (task * TASK_OUTPUTS + i) * SINC_STRIDE;
                    column.copy_from_slice(&samples[start..start + SINC_TAPS]);
                }
                gemm(values, Output::Replace, &self.filters, columns, SINC_FILTERS);
            });
        });
        out
    }

    /// The rest of the front for one window: `filtered` is its slice of [`SincNet::filter`], `window` its samples.
    /// Returns `[WINDOW_FRAMES, CONV_CHANNELS]`.
    pub fn window(
        &self,
        filtered: &[f32],
        window: &[f32],
        observe: crate::backend::Observer<'_>,
    ) -> Vec<f32> {
        let (mean, variance) = moments(window);
        let scale = f64::from(self.wave_norm.scale[0]) / (variance + NORM_EPSILON).sqrt();
        let shift = f64::from(self.wave_norm.shift[0]) - mean * scale;
        let shifts: Vec<f32> = self.sums.iter().map(|&s| (f64::from(s) * shift) as f32).collect();
        let mut x = vectorised!(abs_max_pool(filtered, scale as f32, &shifts));
        normalise(&mut x, &self.norms[0]);
        observe("sinc", &[x.len() / SINC_FILTERS, SINC_FILTERS], &x);
        for (index, (conv, norm)) in self.convs.iter().zip(&self.norms[1..]).enumerate() {
            let y = conv.run(&x);
            x = vectorised!(max_pool(&y));
            normalise(&mut x, norm);
            observe(&format!("conv{}", index + 1), &[x.len() / CONV_CHANNELS, CONV_CHANNELS], &x);
        }
        x
    }
}

/// Mean and biased variance.
fn moments(values: &[f32]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().map(|&v| f64::from(v)).sum::<f64>() / n;
    let variance = values.iter().map(|&v| (f64::from(v) - mean).powi(2)).sum::<f64>() / n;
    (mean, variance)
}

/// `max over 3 of |scale y + shift|`.
#[inline(always)]
fn abs_max_pool(filtered: &[f32], scale: f32, shifts: &[f32]) -> Vec<f32> {
    let groups = filtered.chunks_exact(POOL * SINC_FILTERS);
    let mut out = vec![0.0f32; groups.len() * SINC_FILTERS];
    for (group, out) in groups.zip(out.chunks_exact_mut(SINC_FILTERS)) {
        for row in group.chunks_exact(SINC_FILTERS) {
            for ((o, &y), &shift) in out.iter_mut().zip(row).zip(shifts) {
                *o = o.max((y * scale + shift).abs());
            }
        }
    }
    out
}

/// Maximum over 3 frames of `[frames, CONV_CHANNELS]`.
#[inline(always)]
fn max_pool(values: &[f32]) -> Vec<f32> {
    let groups = values.chunks_exact(POOL * CONV_CHANNELS);
    let mut out = vec![f32::NEG_INFINITY; groups.len() * CONV_CHANNELS];
    for (group, out) in groups.zip(out.chunks_exact_mut(CONV_CHANNELS)) {
        for row in group.chunks_exact(CONV_CHANNELS) {
            out.iter_mut().zip(row).for_each(|(o, &v)| *o = o.max(v));
        }
    }
    out
}

/// Instance normalisation over time of `[frames, channels]`, then the leaky rectifier. Sums are of differences to the
/// first frame, so that a constant channel, as in digital silence, is centred exactly: what rounding left of it would
/// be multiplied by up to 316.
fn normalise(x: &mut [f32], norm: &Norm) {
    let channels = norm.scale.len();
    let frames = (x.len() / channels) as f64;
    let first = x[..channels].to_vec();
    let sums = vectorised!(column_sums(x, channels, |v, c| v - c, &first));
    let mean: Vec<f32> = sums.iter().zip(&first).map(|(s, &c)| (f64::from(c) + s / frames) as f32).collect();
    let squares = vectorised!(column_sums(x, channels, |v, m| (v - m) * (v - m), &mean));
    let scale: Vec<f32> = squares
        .iter()
        .zip(&norm.scale)
        .map(|(s, &g)| (f64::from(g) / (s / frames + NORM_EPSILON).sqrt()) as f32)
        .collect();
    vectorised!({
        for row in x.chunks_exact_mut(channels) {
            for (((v, m), s), b) in row.iter_mut().zip(&mean).zip(&scale).zip(&norm.shift) {
                let y = (*v - m) * s + b;
                *v = if y < 0.0 { LEAK * y } else { y };
            }
        }
    });
}

/// Sums of `f(value, centre of the channel)` over `[frames, channels]`: FP32 within short runs of frames, which is
/// where the vector units pay, `f64` across them, which keeps the rounding error of long sums away.
#[inline(always)]
fn column_sums(x: &[f32], channels: usize, f: impl Fn(f32, f32) -> f32, centre: &[f32]) -> Vec<f64> {
    const RUN: usize = 32;
    let mut sums = vec![0.0f64; channels];
    let mut partial = vec![0.0f32; channels];
    for run in x.chunks(RUN * channels) {
        partial.fill(0.0);
        for row in run.chunks_exact(channels) {
            for ((p, &v), &c) in partial.iter_mut().zip(row).zip(centre) {
                *p += f(v, c);
            }
        }
        sums.iter_mut().zip(&partial).for_each(|(s, &p)| *s += f64::from(p));
    }
    sums
}
