//! Kaldi log-mel filterbank features (C6). Depends on `audio` for the sample rate.

mod fbank;
mod mel;

pub use fbank::{FRAME, Fbank, MELS, SHIFT, frames_in, subtract_mean, subtract_sliding_mean};
