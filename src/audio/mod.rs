//! Decoding, down-mixing and resampling: any recording becomes a [`Waveform`] (C1).

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// Sample rate of every [`Waveform`], in Hz (C1).
pub const SAMPLE_RATE: u32 = 16_000;

/// A decoded recording: 16 kHz mono samples, nominally in [-1, 1], always finite.
#[derive(Debug, Clone, PartialEq)]
pub struct Waveform {
    /// Mono samples at [`SAMPLE_RATE`].
    pub samples: Vec<f32>,
    /// What the samples were made from.
    pub source: SourceFacts,
}

impl Waveform {
    /// Duration in seconds.
    pub fn duration(&self) -> f64 {
        self.samples.len() as f64 / f64::from(SAMPLE_RATE)
    }
}

/// Facts about the file that a [`Waveform`] was decoded from.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SourceFacts {
    /// Codec name, such as `pcm_s16le` or `mp3`.
    pub codec: String,
    /// Sample rate of the decoded audio before resampling, in Hz.
    pub sample_rate: u32,
    /// Number of channels before down-mixing.
    pub channels: u16,
    /// Number of decoded frames (samples per channel) before resampling.
    pub frames: u64,
    /// Plain-language notes on anything that was not as it should be (scrubbed samples, damaged packets, …).
    pub warnings: Vec<String>,
}

/// Which channels of the source make the mono waveform.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Channels {
    /// The mean of all channels.
    #[default]
    Mix,
    /// One channel, counted from 0.
    One(u16),
}

/// Why a recording could not be decoded. The text does not repeat the path; the caller prints it.
#[derive(Debug, thiserror::Error)]
pub enum AudioError {
    /// Placeholder: the decoder module refines this enum.
    #[error("{0}")]
    Unsupported(String),
    /// The caller asked to stop.
    #[error("cancelled")]
    Cancelled,
}

/// Decodes the recording at `path`.
///
/// `progress` is called now and then with the share of the file that has been read (0 to 1) and stops the
/// decoding by returning [`ControlFlow::Break`].
///
/// # Errors
/// See [`AudioError`].
pub fn decode(
    path: &Path,
    channels: Channels,
    progress: &mut dyn FnMut(f32) -> ControlFlow<()>,
) -> Result<Waveform, AudioError> {
    let _ = (path, channels, progress, PathBuf::new());
    Err(AudioError::Unsupported("not built yet".into()))
}
