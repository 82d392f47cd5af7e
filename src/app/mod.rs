//! What the front ends share: finding recordings, naming and checking results, writing them.
//! Depends on `pipeline`, `scoring`, `timeline` and `audio`; knows nothing of terminals or windows.

pub mod background;
pub mod cache;
pub mod devices;
pub mod document;
pub mod engines;
pub mod export;
pub mod inputs;
pub mod jobs;
pub mod peaks;
pub mod scores;
pub mod speed;
pub mod worker;
