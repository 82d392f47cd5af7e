//! Frames, segments and RTTM (C5, C13-C15). Depends on `models` for the frame geometry.

pub mod segment;

pub use segment::Segment;
