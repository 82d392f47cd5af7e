//! The decoder: signals, lengths, WAV headers, damage, and formats with ffmpeg as the judge.

mod damage;
mod formats;
mod headers;
mod signals;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use speakrs_app::audio::{AudioError, Channels, Waveform, decode};

/// Decodes the mean of all channels.
fn mix(path: &Path) -> Result<Waveform, AudioError> {
    decode(path, Channels::Mix, &mut |_| ControlFlow::Continue(()))
}

/// Decodes and expects success.
fn good(path: &Path) -> Waveform {
    mix(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Decodes and gives the text of the expected error.
fn error(path: &Path) -> String {
    match mix(path) {
        Ok(w) => panic!("{}: {} samples instead of an error", path.display(), w.samples.len()),
        Err(e) => e.to_string(),
    }
}

/// Writes a float WAV file of interleaved `samples`.
fn write_float(path: &Path, rate: u32, channels: u16, samples: &[f32]) {
    let format = hound::SampleFormat::Float;
    let spec = hound::WavSpec { channels, sample_rate: rate, bits_per_sample: 32, sample_format: format };
    let mut writer = hound::WavWriter::create(path, spec).unwrap();
    samples.iter().for_each(|&x| writer.write_sample(x).unwrap());
    writer.finalize().unwrap();
}

/// Writes a 16-bit WAV file of interleaved `samples`.
fn write_int(path: &Path, rate: u32, channels: u16, samples: &[i16]) {
    let format = hound::SampleFormat::Int;
    let spec = hound::WavSpec { channels, sample_rate: rate, bits_per_sample: 16, sample_format: format };
    let mut writer = hound::WavWriter::create(path, spec).unwrap();
    samples.iter().for_each(|&x| writer.write_sample(x).unwrap());
    writer.finalize().unwrap();
}

/// A voice-like signal: a gliding harmonic tone with syllables and some noise. `voice` picks the speaker.
fn voice(rate: u32, frames: usize, voice: u32) -> Vec<f32> {
    let mut seed = 7 + voice;
    let (mut phase, pitch) = (0.0f64, 110.0 + 70.0 * f64::from(voice));
    (0..frames)
        .map(|i| {
            let t = i as f64 / f64::from(rate);
            phase += (pitch + 15.0 * (3.0 * t).sin()) / f64::from(rate);
            let syllable = (std::f64::consts::PI * (3.7 * t + 0.3 * f64::from(voice))).sin().powi(2);
            let tone: f64 =
                (1..12).map(|h| (std::f64::consts::TAU * phase * f64::from(h)).sin() / f64::from(h)).sum();
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let noise = f64::from(seed >> 8) / f64::from(1 << 24) - 0.5;
            (0.2 * syllable * tone + 0.02 * noise) as f32
        })
        .collect()
}

/// Interleaves two channels of equal length.
fn interleave(left: &[f32], right: &[f32]) -> Vec<f32> {
    left.iter().zip(right).flat_map(|(&l, &r)| [l, r]).collect()
}

/// A directory for the files of one test, and a path in it.
fn scratch(name: &str) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(name);
    (dir, path)
}
