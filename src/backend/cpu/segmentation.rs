//! segmentation-3.0 over groups of windows (C3).

use std::ops::Range;

use rayon::prelude::*;

use super::gemm::{Output, gemm, transposed};
use super::lstm::Layer;
use super::sincnet::SincNet;
use crate::backend::{BackendError, Observer, Progress, report};
use crate::models::powerset::{self, CLASSES};
use crate::models::segmentation::{
    CONV_CHANNELS, HIDDEN, LINEAR, Linear, SINC_FILTERS, SINC_STRIDE, SINC_TAPS, SegmentationWeights,
};
use crate::models::windows::{Activity, WINDOW_FRAMES, WINDOW_SAMPLES, Windows};

/// Windows that go through the network together: enough for full matrix products in the LSTM.
const GROUP: usize = 16;
/// Slope of the leaky rectifier after the linear layers.
const LEAK: f32 = 0.01;

struct Dense {
    /// Column-major `[output, input]`.
    weight: Vec<f32>,
    bias: Vec<f32>,
}

impl Dense {
    fn new(linear: &Linear) -> Self {
        let rows = linear.bias.len();
        let columns = linear.weight.len() / rows;
        Self { weight: transposed(&linear.weight, rows, columns), bias: linear.bias.clone() }
    }

    fn run(&self, x: &[f32]) -> Vec<f32> {
        let rows = self.bias.len();
        let columns = self.weight.len() / rows;
        let mut out = self.bias.repeat(x.len() / columns);
        gemm(&mut out, Output::Add, &self.weight, x, rows);
        out
    }
}

/// Prepared weights of the whole network.
pub(super) struct Segmentation {
    front: SincNet,
    lstm: Vec<Layer>,
    linears: [Dense; 2],
    classifier: Dense,
}

impl Segmentation {
    /// Which local speakers are active in every window of `samples` (C3, C4).
    ///
    /// # Errors
    /// If the caller stops it.
    pub fn activity(
        &self,
        samples: &[f32],
        windows: &Windows,
        progress: Progress<'_>,
    ) -> Result<Activity, BackendError> {
        let count = windows.count();
        let groups: Vec<Range<usize>> =
            (0..count).step_by(GROUP).map(|c| c..(c + GROUP).min(count)).collect();
        let mut data = Vec::new();
        for batch in groups.chunks(rayon::current_num_threads()) {
            let decoded: Vec<Vec<u8>> = batch
                .par_iter()
                .map(|group| powerset::decode(&self.run(samples, windows, group.clone(), &|_, _, _| {})))
                .collect();
            data.extend(decoded.into_iter().flatten());
            report(progress, batch[batch.len() - 1].end, count)?;
        }
        Ok(Activity::new(data))
    }

    pub fn new(weights: &SegmentationWeights) -> Self {
        let layer = |(index, layer)| {
            let widths: &[usize] = if index == 0 { &[CONV_CHANNELS] } else { &[HIDDEN, HIDDEN] };
            Layer::new(layer, widths)
        };
        Self {
            front: SincNet::new(weights),
            lstm: weights.lstm.iter().enumerate().map(layer).collect(),
            linears: [Dense::new(&weights.linears[0]), Dense::new(&weights.linears[1])],
            classifier: Dense::new(&weights.classifier),
        }
    }

    /// Log-probabilities of windows `range`, row-major `[windows, WINDOW_FRAMES, CLASSES]`.
    pub fn run(
        &self,
        samples: &[f32],
        windows: &Windows,
        range: Range<usize>,
        observe: Observer<'_>,
    ) -> Vec<f32> {
        let count = range.len();
        let fronts = self.fronts(samples, windows, range, observe);
        let mut x = vec![interleaved(&fronts)];
        for (index, layer) in self.lstm.iter().enumerate() {
            let inputs: Vec<&[f32]> = x.iter().map(Vec::as_slice).collect();
            x = layer.run(&inputs, count).into();
            observe(&format!("lstm{index}.forward"), &[WINDOW_FRAMES, count, HIDDEN], &x[0]);
            observe(&format!("lstm{index}.reverse"), &[WINDOW_FRAMES, count, HIDDEN], &x[1]);
        }
        (0..count).into_par_iter().flat_map_iter(|w| self.classify(&x, w, count, observe)).collect()
    }

    /// The convolutional front of every window.
    fn fronts(
        &self,
        samples: &[f32],
        windows: &Windows,
        range: Range<usize>,
        observe: Observer<'_>,
    ) -> Vec<Vec<f32>> {
        let per_window = |filtered: Option<&[f32]>, c: usize| {
            let window = windows.cut(samples, c);
            match filtered {
                Some(filtered) => self.front.window(filtered, &window, observe),
                None => self.front.window(&self.front.filter(&window), &window, observe),
            }
        };
        if !windows.step().is_multiple_of(SINC_STRIDE) {
            return range.into_par_iter().map(|c| per_window(None, c)).collect();
        }
        let (first, last) = (windows.start_sample(range.start), windows.start_sample(range.end - 1));
        let end = last + WINDOW_SAMPLES;
        let mut span = samples[first.min(samples.len())..end.min(samples.len())].to_vec();
        span.resize(end - first, 0.0);
        let filtered = self.front.filter(&span);
        let outputs = (WINDOW_SAMPLES - SINC_TAPS) / SINC_STRIDE + 1;
        range
            .into_par_iter()
            .map(|c| {
                let start = (windows.start_sample(c) - first) / SINC_STRIDE;
                per_window(Some(&filtered[start * SINC_FILTERS..][..outputs * SINC_FILTERS]), c)
            })
            .collect()
    }

    /// Linear layers, classifier and log-softmax of window `w` of `count`.
    fn classify(&self, lstm: &[Vec<f32>], w: usize, count: usize, observe: Observer<'_>) -> Vec<f32> {
        let mut x = Vec::with_capacity(WINDOW_FRAMES * 2 * HIDDEN);
        for frame in 0..WINDOW_FRAMES {
            for direction in lstm {
                x.extend_from_slice(&direction[(frame * count + w) * HIDDEN..][..HIDDEN]);
            }
        }
        for (index, linear) in self.linears.iter().enumerate() {
            x = linear.run(&x);
            x.iter_mut().filter(|v| **v < 0.0).for_each(|v| *v *= LEAK);
            observe(&format!("linear{index}"), &[WINDOW_FRAMES, LINEAR], &x);
        }
        let mut scores = self.classifier.run(&x);
        for frame in scores.as_chunks_mut::<CLASSES>().0 {
            let max = frame.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let sum: f32 = frame.iter().map(|v| (v - max).exp()).sum();
            let log_sum = max + sum.ln();
            frame.iter_mut().for_each(|v| *v -= log_sum);
        }
        observe("log_probabilities", &[WINDOW_FRAMES, CLASSES], &scores);
        scores
    }
}

/// Windows of `[frames, channels]` to `[frames, windows, channels]`.
fn interleaved(windows: &[Vec<f32>]) -> Vec<f32> {
    (0..WINDOW_FRAMES)
        .flat_map(|frame| windows.iter().flat_map(move |w| &w[frame * CONV_CHANNELS..][..CONV_CHANNELS]))
        .copied()
        .collect()
}
