//! Numerical helpers shared by the later modules. A leaf: depends on nothing in this crate.

pub mod matching;
pub mod random;
pub mod rows;
pub(crate) mod simd;
pub mod vector;

pub use rows::Rows;
