//! What happens to the signal itself: place, level, length, mixing, repair.

use std::f64::consts::TAU;
use std::ops::ControlFlow;

use speakrs_app::audio::{AudioError, Channels, SAMPLE_RATE, decode};

use super::{error, good, interleave, scratch, voice, write_float, write_int};

/// A band-limited click (a 2 ms Hann bump) centred at `centre` frames.
fn click(rate: u32, frames: usize, centre: f64) -> Vec<f32> {
    let half = f64::from(rate) * 0.001;
    let bump = |i: usize| {
        let x = (i as f64 - centre) / half;
        if x.abs() < 1.0 { 0.5 + 0.5 * (x * std::f64::consts::PI).cos() } else { 0.0 }
    };
    (0..frames).map(|i| bump(i) as f32).collect()
}

/// The centre of gravity of the energy, in samples.
fn centre(samples: &[f32]) -> f64 {
    let energy: f64 = samples.iter().map(|&x| f64::from(x).powi(2)).sum();
    samples.iter().enumerate().map(|(i, &x)| i as f64 * f64::from(x).powi(2)).sum::<f64>() / energy
}

#[test]
fn clicks_stay_in_place() {
    for rate in [44_100, 48_000, 8_000, 22_050, 16_007, 16_000, 11_025, 32_000, 96_000, 192_000] {
        let (_dir, path) = scratch("click.wav");
        let at = f64::from(rate) * 0.7;
        write_float(&path, rate, 1, &click(rate, rate as usize * 2, at));
        let found = centre(&good(&path).samples);
        let wrong = found - at * f64::from(SAMPLE_RATE) / f64::from(rate);
        eprintln!("click at {rate} Hz: {wrong:+.4} samples");
        assert!(wrong.abs() < 0.05, "{rate} Hz: click off by {wrong} samples");
    }
}

#[test]
fn a_click_late_in_a_long_file_stays_in_place() {
    let (rate, seconds) = (44_100, 120);
    let (_dir, path) = scratch("late.wav");
    let at = f64::from(rate) * 119.3;
    write_float(&path, rate, 1, &click(rate, rate as usize * seconds, at));
    let wrong = centre(&good(&path).samples) - at * f64::from(SAMPLE_RATE) / f64::from(rate);
    assert!(wrong.abs() < 0.05, "click off by {wrong} samples");
}

#[test]
fn lengths_are_exact() {
    for rate in [8_000, 16_000, 16_007, 22_050, 44_100, 48_000, 96_000] {
        for frames in [1, 2, 100, 4095, 4096, 4097, 11_025, 100_001] {
            let (_dir, path) = scratch("length.wav");
            write_int(&path, rate, 1, &vec![100; frames]);
            let waveform = good(&path);
            let wanted = (frames as u64 * 16_000).div_ceil(rate.into());
            assert_eq!(waveform.samples.len() as u64, wanted, "{frames} frames at {rate} Hz");
            assert_eq!(waveform.source.frames, frames as u64);
            assert!(waveform.source.warnings.is_empty(), "{:?}", waveform.source.warnings);
        }
    }
}

#[test]
fn sixteen_kilohertz_passes_bit_exact() {
    let (_dir, path) = scratch("exact.wav");
    let samples: Vec<i16> = (0..40_000).map(|i| (i * 7919 % 65_536 - 32_768) as i16).collect();
    write_int(&path, 16_000, 1, &samples);
    let waveform = good(&path);
    let expected: Vec<f32> = samples.iter().map(|&x| f32::from(x) / 32_768.0).collect();
    assert_eq!(waveform.samples, expected);
    assert_eq!(waveform.source.codec, "pcm_s16le");
    assert_eq!((waveform.source.sample_rate, waveform.source.channels), (16_000, 1));
}

/// The root mean square of a tone of amplitude 1 at `hertz` after conversion, without both ends.
fn tone_level(rate: u32, hertz: f64) -> f64 {
    let (_dir, path) = scratch("tone.wav");
    let tone = |i: u32| (TAU * hertz * f64::from(i) / f64::from(rate)).sin() as f32;
    write_float(&path, rate, 1, &(0..rate).map(tone).collect::<Vec<_>>());
    let samples = good(&path).samples;
    let middle = &samples[2000..samples.len() - 2000];
    (middle.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>() / middle.len() as f64).sqrt()
}

#[test]
fn tones_keep_their_level_and_aliases_are_gone() {
    for rate in [8_000, 22_050, 44_100, 48_000, 16_007, 96_000] {
        let change = tone_level(rate, 1000.0) * 2f64.sqrt() - 1.0;
        assert!(change.abs() < 1e-3, "1 kHz at {rate} Hz changed by {change}");
    }
    for (rate, hertz) in [(48_000, 9_000.0), (44_100, 9_000.0), (22_050, 9_000.0), (96_000, 15_000.0)] {
        let decibel = 20.0 * (tone_level(rate, hertz) * 2f64.sqrt()).log10();
        assert!(decibel < -60.0, "{hertz} Hz at {rate} Hz is left at {decibel} dB");
    }
    let decibel = 20.0 * (tone_level(48_000, 7_000.0) * 2f64.sqrt()).log10();
    assert!(decibel.abs() < 0.1, "7 kHz at 48 kHz changed by {decibel} dB");
}

#[test]
fn mono_as_many_channels_equals_mono() {
    let mono = voice(48_000, 30_000, 0);
    let (dir, path) = scratch("mono.wav");
    write_float(&path, 48_000, 1, &mono);
    let expected = good(&path).samples;
    for count in [2u16, 3, 5, 6, 7] {
        let path = dir.path().join(format!("{count}.wav"));
        let many: Vec<f32> = mono.iter().flat_map(|&x| vec![x; count.into()]).collect();
        write_float(&path, 48_000, count, &many);
        let waveform = good(&path);
        assert_eq!(waveform.samples, expected, "{count} channels");
        assert_eq!(waveform.source.channels, count);
    }
}

#[test]
fn all_channels_are_heard_and_one_can_be_chosen() {
    let right = voice(16_000, 20_000, 1);
    let silence = vec![0.0; right.len()];
    let (_dir, path) = scratch("right.wav");
    write_float(&path, 16_000, 2, &interleave(&silence, &right));
    let half: Vec<f32> = right.iter().map(|x| x / 2.0).collect();
    assert_eq!(good(&path).samples, half);

    let one = |n| decode(&path, Channels::One(n), &mut |_| ControlFlow::Continue(()));
    assert_eq!(one(0).unwrap().samples, silence);
    assert_eq!(one(1).unwrap().samples, right);
    assert!(matches!(one(2), Err(AudioError::NoSuchChannel { asked: 2, have: 2 })));
}

#[test]
fn broken_samples_are_repaired_and_counted() {
    let mut samples = voice(16_000, 16_000, 0);
    samples[100..150].fill(f32::NAN);
    samples[200] = f32::INFINITY;
    samples[300] = 1e30;
    samples[301] = -1e29;
    let (_dir, path) = scratch("nan.wav");
    write_float(&path, 16_000, 1, &samples);
    let waveform = good(&path);
    assert!(waveform.samples.iter().all(|x| x.is_finite() && x.abs() <= 8.0));
    assert_eq!(waveform.samples[120], 0.0);
    assert_eq!(waveform.samples[99], samples[99]);
    let notes = waveform.source.warnings.join("; ");
    assert!(
        notes.contains("51 samples were not a number") && notes.contains("2 samples were far"),
        "{notes}"
    );
}

#[test]
fn limits_are_named() {
    let (_dir, path) = scratch("rate.wav");
    write_int(&path, 900_000, 1, &[0; 100]);
    assert!(error(&path).contains("1000 to 768000 Hz"), "{}", error(&path));
    write_int(&path, 16_000, 200, &[0; 400]);
    assert!(error(&path).contains("1 to 64"), "{}", error(&path));
}

#[test]
fn progress_rises_and_can_cancel() {
    let (_dir, path) = scratch("progress.wav");
    write_int(&path, 44_100, 2, &vec![5; 2_000_000]);
    let mut shares = Vec::new();
    decode(&path, Channels::Mix, &mut |share| {
        shares.push(share);
        ControlFlow::Continue(())
    })
    .unwrap();
    assert!(shares.len() > 10 && shares.is_sorted() && shares.last() == Some(&1.0), "{shares:?}");

    let mut calls = 0;
    let stopped = decode(&path, Channels::Mix, &mut |share| {
        calls += 1;
        if share > 0.5 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert!(matches!(stopped, Err(AudioError::Cancelled)));
    assert!(calls < shares.len());
}

/// Only opposite phases are said: not silence, not one silent channel, not different voices.
#[test]
fn channels_that_cancel_each_other_are_said() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("a.wav");
    let voice = |i: usize| (i as f32 * 0.05).sin() * 0.3;
    let other = |i: usize| (i as f32 * 0.037).sin() * 0.3;
    let notes = |left: &dyn Fn(usize) -> f32, right: &dyn Fn(usize) -> f32| {
        let samples: Vec<f32> = (0..16_000).flat_map(|i| [left(i), right(i)]).collect();
        write_float(&path, 16_000, 2, &samples);
        good(&path).source.warnings.join("; ")
    };
    assert!(notes(&voice, &|i| -voice(i)).contains("cancel each other out"));
    assert!(notes(&voice, &|i| -0.99 * voice(i)).contains("cancel each other out"));
    for silent in
        [notes(&voice, &voice), notes(&voice, &|_| 0.0), notes(&voice, &other), notes(&|_| 0.0, &|_| 0.0)]
    {
        assert_eq!(silent, "");
    }
}
