//! The waveform summary against a plain search over the samples.

use proptest::prelude::*;
use speakrs_app::app::peaks::{BUCKET, Peaks};

const RATE: f64 = 16_000.0;

/// Widest distance between a sample and its entry, at full scale: half a step of the square root.
const STEP: f32 = 1.0 / 127.0;

/// What `columns` promises, straight from the samples.
fn plain(samples: &[f32], from: f64, to: f64, count: usize) -> Vec<(f32, f32)> {
    let position = |i: usize| ((from + (to - from) * i as f64 / count as f64) * RATE / BUCKET as f64).floor();
    (0..count)
        .map(|i| {
            let left = position(i);
            let right = position(i + 1).max(left + 1.0);
            let index = |bucket: f64| ((bucket * BUCKET as f64).max(0.0) as usize).min(samples.len());
            let part = &samples[index(left)..index(right)];
            if part.is_empty() {
                return (0.0, 0.0);
            }
            let low = part.iter().copied().fold(f32::INFINITY, f32::min);
            (low, part.iter().copied().fold(f32::NEG_INFINITY, f32::max))
        })
        .collect()
}

fn near(a: f32, b: f32) -> bool {
    (a.abs().sqrt().copysign(a) - b.abs().sqrt().copysign(b)).abs() <= 0.51 * STEP
}

proptest! {
    #[test]
    fn columns_are_the_extremes_of_their_buckets(
        samples in prop::collection::vec(-1.0f32..=1.0, 0..6000),
        cuts in prop::collection::vec(1usize..700, 1..20),
        from in -0.1f64..0.5,
        length in 0.0001f64..0.6,
        count in 1usize..60,
    ) {
        let mut peaks = Peaks::new();
        let mut rest = &samples[..];
        for &cut in cuts.iter().cycle() {
            let (now, later) = rest.split_at(cut.min(rest.len()));
            peaks.push(now);
            rest = later;
            if rest.is_empty() {
                break;
            }
        }
        prop_assert_eq!(peaks.samples(), samples.len() as u64);
        let found: Vec<_> = peaks.columns(from, from + length, count).collect();
        // The borders of columns are computed in another way here: skip those that are a rounding error from a bucket.
        let bucket = BUCKET as f64 / RATE;
        let risky = |i: usize| {
            let place = (from + length * i as f64 / count as f64) / bucket;
            (place - place.round()).abs() < 1e-6
        };
        for (i, (&found, want)) in found.iter().zip(plain(&samples, from, from + length, count)).enumerate() {
            if !risky(i) && !risky(i + 1) {
                prop_assert!(near(found.0, want.0) && near(found.1, want.1), "{i}: {found:?} {want:?}");
            }
        }
    }
}

#[test]
fn a_click_stands_in_one_column_at_every_zoom() {
    let mut samples = vec![0.0f32; 16_000 * 60];
    let click = 16_000 * 37 + 555;
    samples[click] = 0.9;
    let peaks = Peaks::of(&samples);
    for count in [1usize, 10, 999, 1000, 7000] {
        let lit: Vec<usize> = peaks
            .columns(0.0, 60.0, count)
            .enumerate()
            .filter_map(|(i, (_, high))| (high > 0.8).then_some(i))
            .collect();
        let bucket_start = (click / BUCKET * BUCKET) as f64 / RATE;
        let column = (bucket_start * count as f64 / 60.0).floor() as usize;
        // A bucket that straddles a border is counted to the right of it.
        assert!(lit.len() == 1 && (lit[0] == column || lit[0] == column + 1), "{count}: {lit:?} {column}");
    }
}

#[test]
fn ten_hours_stay_below_20_megabytes_at_any_time() {
    let mut peaks = Peaks::new();
    let chunk: Vec<f32> = (0..1_000_000).map(|i| (i as f32 * 0.01).sin()).collect();
    let mut most = 0;
    while peaks.duration() < 36_000.0 {
        peaks.push(&chunk);
        most = most.max(peaks.bytes());
    }
    assert!((10_000_000..20_000_000).contains(&most), "{most} bytes");
}

#[test]
fn odd_samples_are_silence_or_full_scale() {
    let mut peaks = Peaks::new();
    assert_eq!(peaks.columns(0.0, 1.0, 2).collect::<Vec<_>>(), [(0.0, 0.0); 2]);
    peaks.push(&[f32::NAN; 3]);
    assert_eq!(peaks.columns(0.0, 1e-4, 1).collect::<Vec<_>>(), [(0.0, 0.0)]);
    peaks.push(&[f32::INFINITY, -40.0]);
    assert_eq!(peaks.columns(0.0, 1e-4, 1).collect::<Vec<_>>(), [(-1.0, 1.0)]);
}
