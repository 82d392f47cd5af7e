//! Compiles the CUDA kernels into the files that the program embeds, and checks that these belong to the sources.
//!
//! ```text
//! kernels/*.cu ─► sources ─► compile (nvrtc) ─► pack ─► prebuilt/ARCHITECTURE.bin
//!                                 │
//!                                 └─► report, elf, ptx ─► manifest ─► prebuilt/manifest.toml ─► check
//! ```

mod build;
mod check;
mod compile;
mod elf;
mod manifest;
mod nvrtc;
mod pack;
mod ptx;
mod report;
mod sources;
mod spills;
mod table;
mod target;
mod toolchain;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};

use target::Target;

/// Compiles and checks the CUDA kernels; needs no GPU.
#[derive(Parser)]
#[command(name = "cargo kernels", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Compiles the kernels and writes kernels/prebuilt. The first run fetches the compiler with pip (Linux x86-64).
    Build {
        /// Compile for these only (sm_75 ... sm_120, compute_75, compute_80); the rest stays as it is, and `check`
        /// fails until a whole build.
        #[arg(long = "arch", num_args = 1.., value_parser = Target::find)]
        architectures: Vec<Target>,
    },
    /// Checks that kernels/prebuilt belongs to the sources.
    Check {
        /// Compile everything again and compare every byte.
        #[arg(long)]
        rebuild: bool,
    },
    /// Compiles one file; `build` and `check` start many of these at once.
    #[command(hide = true)]
    One(compile::One),
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(findings) if findings.is_empty() => ExitCode::SUCCESS,
        Ok(findings) => {
            findings.iter().for_each(|finding| eprintln!("{finding}"));
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// What is wrong, one line each.
fn run(arguments: &Arguments) -> Result<Vec<String>> {
    let root = repository(&std::env::current_dir()?)?;
    match &arguments.command {
        Command::Build { architectures } => build::build(&root, architectures),
        Command::Check { rebuild } => check::check(&root, *rebuild),
        Command::One(one) => one.run(&root).map(|()| Vec::new()),
    }
}

/// The repository that `directory` lies in.
fn repository(directory: &Path) -> Result<PathBuf> {
    let root = directory.ancestors().find(|path| path.join("kernels/build/Cargo.toml").is_file());
    root.map(Path::to_owned).context("this must run inside the repository of speakrs-app")
}
