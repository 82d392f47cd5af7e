//! The `speakrs-app` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    speakrs_app::cli::main().into()
}
