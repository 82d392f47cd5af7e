//! Frames, segments and RTTM (C5, C13-C15). Depends on `models` for the frame geometry.

pub mod rttm;
pub mod segment;
pub mod text;
pub mod uem;

pub use segment::Segment;
