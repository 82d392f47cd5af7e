//! Turns of speakers on the recording's time axis.

/// A stretch of speech of one speaker.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Segment {
    /// Start in seconds from the beginning of the recording.
    pub start: f64,
    /// End in seconds, after `start`.
    pub end: f64,
    /// Index of the speaker, from 0.
    pub speaker: usize,
}
