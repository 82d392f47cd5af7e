//! What the networks are: geometry, weights and the model pack. No device code. Depends on `audio` for the sample
//! rate and on `features` for the number of mel bins.

pub mod embedding;
pub mod manifest;
pub mod pack;
pub mod powerset;
pub mod segmentation;
pub mod weights;
pub mod windows;

pub use pack::{ModelPack, PackError};
