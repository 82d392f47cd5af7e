//! Decoding, down-mixing and resampling: any recording becomes a [`Waveform`] (C1).
//!
//! ```text
//!  file ─► source ─► demultiplexer ─► decoder ─► trim ─► mix ─► resample ─► Waveform
//!          riff      symphonia        symphonia   (decode.rs)
//!          mp4                        opus
//! ```
//!
//! Plain samples in WAV files skip demultiplexer and decoder (`pcm`); everything else is streamed packet by packet.
//! Only the finished 16 kHz samples are kept (230 MB an hour).
//! Nothing that a file states about itself is trusted: the end of the stream decides the length, the decoded
//! buffers decide rate and channels, and the limits below bound every allocation.
//!
//! May use no other module of this crate.

mod decode;
mod gaps;
mod mix;
mod mp4;
mod opus;
mod pcm;
mod resample;
mod riff;
mod source;

use std::any::Any;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use serde::{Deserialize, Serialize};

/// Sample rate of every [`Waveform`], in Hz (C1).
pub const SAMPLE_RATE: u32 = 16_000;

/// Most channels a recording may have.
pub const MAX_CHANNELS: usize = 64;

/// Lowest sample rate that is accepted, in Hz.
pub const MIN_SOURCE_RATE: u32 = 1_000;

/// Highest sample rate that is accepted, in Hz.
pub const MAX_SOURCE_RATE: u32 = 768_000;

/// Longest recording that is accepted, in hours (5.5 GB of samples).
pub const MAX_HOURS: u64 = 24;

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
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
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
    /// The file could not be opened or read.
    #[error("cannot read the file: {0}")]
    Io(#[from] std::io::Error),
    /// The file has no bytes at all.
    #[error("the file is empty (0 bytes)")]
    Empty,
    /// The content is no recording in any known format.
    #[error("not a recording in a known format: {0}")]
    NotAudio(String),
    /// The format or codec is known but cannot be decoded here.
    #[error("{0}")]
    Unsupported(String),
    /// The container holds no audio.
    #[error("no audio track in the file{0}")]
    NoAudioTrack(String),
    /// The file is too damaged to decode anything.
    #[error("the file is damaged: {0}")]
    Damaged(String),
    /// The recording exceeds a hard limit.
    #[error("{what} is {value}, outside the accepted {limit}")]
    Limit {
        /// The limited quantity, in plain words.
        what: &'static str,
        /// What the recording has.
        value: u64,
        /// The accepted range, in plain words.
        limit: String,
    },
    /// [`Channels::One`] names a channel that the recording lacks.
    #[error("channel {asked} was asked for, but the recording has {have} channel(s), counted from 0")]
    NoSuchChannel {
        /// The channel that was asked for.
        asked: u16,
        /// How many channels there are.
        have: usize,
    },
    /// The samples do not fit into memory.
    #[error("not enough memory for this recording (it needs 230 MB an hour)")]
    OutOfMemory,
    /// A decoder failed in a way it should not.
    #[error("the decoder broke down on this file ({0}); converting it to WAV or FLAC may help")]
    Panicked(String),
    /// The caller asked to stop.
    #[error("cancelled")]
    Cancelled,
}

/// Decodes the recording at `path`.
///
/// `progress` is called now and then with the share of the file that has been read (0 to 1) and stops the
/// decoding by returning [`ControlFlow::Break`].
///
/// A file whose header is sound but which holds no samples gives an empty [`Waveform`].
///
/// # Errors
/// See [`AudioError`]. A panic inside a decoder is caught and becomes [`AudioError::Panicked`].
pub fn decode(
    path: &Path,
    channels: Channels,
    progress: &mut dyn FnMut(f32) -> ControlFlow<()>,
) -> Result<Waveform, AudioError> {
    catch_unwind(AssertUnwindSafe(|| decode::decode_file(path, channels, progress)))
        .unwrap_or_else(|payload| Err(AudioError::Panicked(panic_text(&*payload))))
}

/// The message of a panic, if it has one.
fn panic_text(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|s| (*s).to_string());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no details".into())
}
