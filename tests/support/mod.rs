//! Helpers shared by the tests.

pub mod npy;
