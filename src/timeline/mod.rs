//! Frames, segments and RTTM (C5, C13-C15). Depends on `models` for the frame geometry and on `clustering`.

pub mod aggregate;
pub mod reconstruct;
pub mod segment;
pub mod turns;

pub use segment::{Segment, SegmentOptions};
pub use turns::{Turns, turns};
