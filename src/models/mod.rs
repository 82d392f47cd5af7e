//! What the networks are: geometry, weights and the model pack. No device code.

pub mod powerset;
pub mod windows;
