//! All tests that need no GPU, one module per area.

mod support;

mod app;
mod architecture;
mod audio;
mod cli;
mod clustering;
#[cfg(feature = "cuda")]
mod dispatch;
mod export;
#[cfg(feature = "cuda")]
mod kernels;
mod models;
mod parity;
mod peaks;
mod pipeline;
mod scoring;
