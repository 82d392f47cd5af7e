//! The command line, from arguments to files and exit codes.
//!
//! `program` runs the real program; the others run its parts with a decoder and an engine that stand in for
//! the real ones, so that they need neither recordings nor models.

mod batch;
mod export;
mod fakes;
mod inputs;
mod plan;
mod program;
mod run;
