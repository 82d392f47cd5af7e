//! How far a diarization is from the truth: diarization error rate (DER) and Jaccard error rate (JER).
//! Depends on `timeline` for turns and scored regions.
//!
//! The definitions are those of pyannote.metrics and dscore, and the figures equal theirs:
//!
//! * Times are whole microseconds, so that sums are exact and independent of the order of turns.
//! * Turns of one speaker that overlap or touch are merged first, in reference and hypothesis (dscore's rule).
//! * Scored are the regions of the UEM; without one, from the first start to the last end of both sides together.
//! * The collar is the width on **each side** of every start and end of the merged reference turns that is left
//!   out. Tools that take the total width (pyannote.metrics) call 0.25 s per side a collar of 0.5 s.
//! * Overlap is where two or more reference speakers talk at once; it is scored unless
//!   [`Options::skip_overlap`] is set.
//! * Speakers are mapped one to one within each recording such that the pairs share the most time.

pub mod confusion;
pub mod der;
pub mod jer;
mod mapping;
mod purity;
mod report;
mod tally;

pub use confusion::{Interval, Kind, confusion};
pub use der::Der;
pub use jer::Jer;
pub use mapping::mapping;
pub use purity::Purity;
pub use report::{Report, Row, score};
pub use tally::Tally;

/// What is left out of the scored time.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Options {
    /// Seconds left out on each side of every reference boundary; 0 scores everything.
    pub collar: f64,
    /// Leaves out where two or more reference speakers talk at once.
    pub skip_overlap: bool,
}
