//! Plain samples of a WAV file, read straight from the file and converted by all cores.
//!
//! An hour of 16-bit mono is 115 MB. Packet by packet it takes longer than a large GPU needs for both networks.
//! Depends on `mix` and `resample`.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::ControlFlow;

use rayon::prelude::*;

use super::mix::Mixer;
use super::resample::{Resampler, Samples, check_duration};
use super::{AudioError, Channels, SAMPLE_RATE, SourceFacts, Waveform};

/// Bytes read at a time, rounded down to whole frames.
const BLOCK: usize = 256 << 10;

/// Frames that one task converts.
const TASK: usize = 1 << 13;

/// How a sample is stored, always little-endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// Unsigned 8-bit integer, silence at 128.
    U8,
    /// Signed 16-bit integer.
    S16,
    /// Signed 24-bit integer in three bytes.
    S24,
    /// Signed 32-bit integer.
    S32,
    /// 32-bit float.
    F32,
    /// 64-bit float.
    F64,
}

impl Encoding {
    /// The encoding that a `fmt ` chunk's `tag` and the `bytes` of a sample stand for, if it is one of these.
    pub fn of(tag: u16, bytes: u16) -> Option<Self> {
        Some(match (tag, bytes) {
            (1, 1) => Self::U8,
            (1, 2) => Self::S16,
            (1, 3) => Self::S24,
            (1, 4) => Self::S32,
            (3, 4) => Self::F32,
            (3, 8) => Self::F64,
            _ => return None,
        })
    }

    fn bytes(self) -> usize {
        match self {
            Self::U8 => 1,
            Self::S16 => 2,
            Self::S24 => 3,
            Self::S32 | Self::F32 => 4,
            Self::F64 => 8,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::U8 => "pcm_u8",
            Self::S16 => "pcm_s16le",
            Self::S24 => "pcm_s24le",
            Self::S32 => "pcm_s32le",
            Self::F32 => "pcm_f32le",
            Self::F64 => "pcm_f64le",
        }
    }

    /// Converts stored samples; full scale is 1.
    fn convert(self, stored: &[u8], samples: &mut [f32]) {
        match self {
            Self::U8 => each(stored, samples, |[a]: [u8; 1]| (f32::from(a) - 128.0) / 128.0),
            Self::S16 => each(stored, samples, |b| f32::from(i16::from_le_bytes(b)) / 32_768.0),
            Self::S24 => each(stored, samples, |[a, b, c]| {
                (i32::from_le_bytes([0, a, b, c]) >> 8) as f32 / 8_388_608.0
            }),
            Self::S32 => {
                each(stored, samples, |b| (f64::from(i32::from_le_bytes(b)) / 2_147_483_648.0) as f32)
            }
            Self::F32 => each(stored, samples, f32::from_le_bytes),
            Self::F64 => each(stored, samples, |b| f64::from_le_bytes(b) as f32),
        }
    }
}

fn each<const N: usize>(stored: &[u8], samples: &mut [f32], value: impl Fn([u8; N]) -> f32) {
    for (sample, bytes) in samples.iter_mut().zip(stored.as_chunks::<N>().0) {
        *sample = value(*bytes);
    }
}

/// Plain samples within a file.
pub struct Pcm {
    /// How they are stored.
    pub encoding: Encoding,
    /// Interleaved channels, at least 1.
    pub channels: u16,
    /// Sample rate in Hz, within the limits of the parent module.
    pub rate: u32,
    /// First byte in the file.
    pub start: u64,
    /// Number of bytes, whole frames.
    pub len: u64,
}

impl Pcm {
    /// Reads, mixes and resamples everything; `warnings` begin those of the result.
    ///
    /// # Errors
    /// See [`super::decode`].
    pub fn decode(
        &self,
        mut file: File,
        channels: Channels,
        warnings: Vec<String>,
        progress: &mut dyn FnMut(f32) -> ControlFlow<()>,
    ) -> Result<Waveform, AudioError> {
        let count = usize::from(self.channels);
        let frame = self.encoding.bytes() * count;
        let frames = self.len / frame as u64;
        check_duration(frames, self.rate)?;
        let mut facts = SourceFacts {
            codec: self.encoding.name().to_owned(),
            sample_rate: self.rate,
            channels: self.channels,
            frames: 0,
            warnings,
        };
        let mut mixer = Mixer::new(channels);
        let mut converted = Samples::default();
        let mut resampler = Resampler::new(self.rate)?;
        // At 16 kHz the tasks write the result itself.
        let in_place = self.rate == SAMPLE_RATE;
        let mut samples = zeros(if in_place { frames as usize } else { 0 })?;
        let mut mono = Vec::new();

        file.seek(SeekFrom::Start(self.start))?;
        let (mut stored, mut next) = (Vec::new(), Vec::new());
        let mut left = self.len;
        let mut read = |into: &mut Vec<u8>| -> io::Result<()> {
            let wanted = left.min((BLOCK / frame * frame) as u64);
            into.clear();
            into.reserve(wanted as usize);
            let read = (&mut file).take(wanted).read_to_end(into);
            left = if into.len() as u64 == wanted { left - wanted } else { 0 };
            read.map(|_| ())
        };
        let mut failure = read(&mut stored).err();
        while stored.len() >= frame {
            let done = facts.frames as usize;
            if progress(done as f32 / frames as f32).is_break() {
                return Err(AudioError::Cancelled);
            }
            let whole = stored.len() / frame;
            let target = if in_place {
                &mut samples[done..done + whole]
            } else {
                mono.resize(whole, 0.0);
                &mut mono[..]
            };
            let (mixed, ahead) =
                rayon::join(|| self.mix(&stored[..whole * frame], channels, target), || read(&mut next));
            mixer.add(&mixed?);
            failure = failure.or(ahead.err());
            if !in_place {
                resampler.push(&mono, &mut converted)?;
            }
            facts.frames += whole as u64;
            std::mem::swap(&mut stored, &mut next);
        }
        let _ = progress(1.0);
        if in_place {
            samples.truncate(facts.frames as usize);
        } else {
            resampler.finish(&mut converted)?;
            samples = converted.into_vec();
        }
        match failure {
            Some(error) if facts.frames == 0 => return Err(AudioError::Io(error)),
            Some(error) => {
                facts.warnings.push(format!("reading stopped early ({error}); the rest is missing"))
            }
            None if facts.frames < frames => {
                facts.warnings.push("the file became shorter while it was read; the rest is missing".into());
            }
            None => {}
        }
        facts.warnings.extend(mixer.warnings());
        Ok(Waveform { samples, source: facts })
    }

    /// Converts and mixes whole frames into `mono`, a sample each; returns what had to be repaired.
    fn mix(&self, stored: &[u8], channels: Channels, mono: &mut [f32]) -> Result<Mixer, AudioError> {
        let count = usize::from(self.channels);
        let tasks = mono.par_chunks_mut(TASK).zip(stored.par_chunks(TASK * self.encoding.bytes() * count));
        let mixers = tasks.map(|(mono, stored)| {
            let (mut mixer, mut mixed) = (Mixer::new(channels), Vec::with_capacity(mono.len()));
            let mut interleaved = vec![0.0; mono.len() * count];
            self.encoding.convert(stored, &mut interleaved);
            mixer.mix(&interleaved, count, &mut mixed)?;
            mono.copy_from_slice(&mixed);
            Ok(mixer)
        });
        let mixers = mixers.collect::<Result<Vec<_>, AudioError>>()?;
        let mut all = Mixer::new(channels);
        mixers.iter().for_each(|mixer| all.add(mixer));
        Ok(all)
    }
}

/// `len` zeros in pages that are touched only when they are written to.
fn zeros(len: usize) -> Result<Vec<f32>, AudioError> {
    // Only `vec!` asks for zeroed pages, but it ends the program where there is no memory.
    Vec::<f32>::new().try_reserve_exact(len).map_err(|_| AudioError::OutOfMemory)?;
    Ok(vec![0.0; len])
}
