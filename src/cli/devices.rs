//! `speakrs-app devices`: what the program could compute on, and with which kernels.

use std::io::{self, Write as _};

use clap::Parser;

use super::args;
use super::exit::Exit;
use crate::app::devices;

/// Lists the devices of this computer that the networks can run on.
#[derive(Debug, Parser)]
#[command(name = "speakrs-app devices", bin_name = "speakrs-app devices", version, max_term_width = 110)]
struct DevicesArgs {
    /// Show for every layer of the embedding network which kernel runs and the row of the table that chose it
    #[arg(long)]
    explain: bool,

    /// With --explain: the arithmetic
    #[arg(long, value_enum, default_value = "auto", requires = "explain")]
    precision: args::Precision,

    /// With --explain: windows, or blocks of the shared trunk, in a batch
    #[arg(long, value_name = "N", default_value = "32", requires = "explain",
          value_parser = clap::value_parser!(u16).range(1..=64))]
    batch: u16,

    /// With --explain: fbank frames (10 ms) of each; 998 are a window, 6320 a block of the shared trunk
    #[arg(long, value_name = "N", default_value = "998", requires = "explain",
          value_parser = clap::value_parser!(u16).range(1..))]
    frames: u16,
}

/// Runs the subcommand with what was typed behind `devices`.
pub fn main(typed: &[std::ffi::OsString]) -> Exit {
    let name = std::ffi::OsString::from("speakrs-app devices");
    let args = match DevicesArgs::try_parse_from(std::iter::once(&name).chain(typed)) {
        Ok(args) => args,
        Err(error) => {
            let _ = error.print();
            return if error.use_stderr() { Exit::Usage } else { Exit::Done };
        }
    };
    let text = devices::text(args.explain, args.precision.into(), args.batch.into(), args.frames.into());
    let _ = io::stdout().lock().write_all(text.as_bytes());
    Exit::Done
}
