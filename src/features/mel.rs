//! The triangular mel filters of Kaldi.

use crate::audio::SAMPLE_RATE;

/// Lowest frequency of the first filter, in Hz.
const LOW_HZ: f64 = 20.0;
/// Highest frequency of the last filter, in Hz.
const HIGH_HZ: f64 = 8_000.0;

/// One triangular filter: the weights of consecutive bins of the power spectrum.
#[derive(Debug, Clone)]
pub(super) struct Filter {
    /// First bin with a weight above 0.
    pub first: usize,
    /// Weights of the bins from `first` on.
    pub weights: Vec<f32>,
}

/// Kaldi's mel scale.
fn mel(hz: f64) -> f64 {
    1127.0 * (1.0 + hz / 700.0).ln()
}

/// `count` filters, equally wide on the mel scale, over a power spectrum of `fft / 2` bins.
/// Kaldi leaves the Nyquist bin out.
pub(super) fn filters(count: usize, fft: usize) -> Vec<Filter> {
    let low = mel(LOW_HZ);
    let width = (mel(HIGH_HZ) - low) / (count + 1) as f64;
    (0..count)
        .map(|m| {
            let left = low + m as f64 * width;
            let weight = |bin: usize| {
                let at = mel(bin as f64 * f64::from(SAMPLE_RATE) / fft as f64);
                ((at - left) / width).min((left + 2.0 * width - at) / width).max(0.0) as f32
            };
            let first = (0..fft / 2).find(|&bin| weight(bin) > 0.0).unwrap_or(0);
            let weights = (first..fft / 2).map(weight).take_while(|&w| w > 0.0).collect();
            Filter { first, weights }
        })
        .collect()
}
