//! All tests that need no GPU, one module per area.

mod support;

mod architecture;
mod audio;
mod clustering;
mod cli;
mod models;
mod parity;
mod pipeline;
