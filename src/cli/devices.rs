//! `speakrs-app devices`: what the program could compute on, and with which kernels.

#[cfg(feature = "cuda")]
use std::fmt::Write as _;
use std::io::{self, Write as _};

use clap::Parser;

use super::args;
use super::exit::Exit;
use crate::backend::cpu;
#[cfg(feature = "cuda")]
use crate::backend::{
    Precision,
    cuda::{self, device::Device, error::CudaError, trunk},
};

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
    let _ = io::stdout().lock().write_all(report(&args).as_bytes());
    Exit::Done
}

fn report(args: &DevicesArgs) -> String {
    let mut text =
        format!("cpu     {}: fp32, {} threads\n", cpu::processor_name(), rayon::current_num_threads());
    #[cfg(feature = "cuda")]
    match cuda::devices() {
        Err(error) => {
            let _ = writeln!(text, "cuda    not usable: {error}");
        }
        Ok(devices) if devices.is_empty() => text.push_str("cuda    the NVIDIA driver lists no GPU\n"),
        Ok(devices) => {
            for (device, reason) in &devices {
                text.push_str(&describe(device, reason.as_ref()));
            }
            for (device, _) in devices.iter().filter(|(_, reason)| args.explain && reason.is_none()) {
                text.push('\n');
                match cuda::precision(device, args.precision.into()) {
                    Ok(precision) => {
                        text.push_str(&explain(device, precision, args.batch.into(), args.frames.into()));
                    }
                    Err(error) => {
                        let _ = writeln!(text, "cuda:{}: {error}", device.ordinal);
                    }
                }
            }
        }
    }
    #[cfg(not(feature = "cuda"))]
    {
        let _ = args;
        text.push_str("cuda    not usable: this program was built without GPU support\n");
    }
    text
}

/// One line about a GPU.
#[cfg(feature = "cuda")]
pub fn describe(device: &Device, reason: Option<&CudaError>) -> String {
    let Device { ordinal, name, capability, architecture, sms, shared_bytes, l2_bytes, memory_bytes } =
        device;
    let mib = |bytes: u64| bytes >> 20;
    let mut line = format!(
        "cuda:{ordinal:<2} {name}: compute capability {capability}, {sms} SMs, {} KiB of shared memory a block, \
         {} MiB of L2, {} MiB of memory",
        shared_bytes >> 10,
        mib(u64::from(*l2_bytes)),
        mib(*memory_bytes),
    );
    match reason {
        Some(reason) => {
            let _ = write!(line, "; not usable: {reason}");
        }
        None if architecture != capability => {
            let _ = write!(line, "; usable, kernels for {architecture} are forced");
        }
        None => line.push_str("; usable"),
    }
    line + "\n"
}

/// The kernel of every layer or whole block, each with the row of the table that chose it.
#[cfg(feature = "cuda")]
pub fn explain(device: &Device, precision: Precision, batch: usize, frames: usize) -> String {
    let mut text = format!(
        "cuda:{} {}, {precision}, {batch} x {frames} fbank frames\n{:16} {:26} {:24} {:>8} | {:8} {:15} {}\n",
        device.ordinal, device.name, "layer", "convolution", "kernel", "tiles", "row for", "on", "when",
    );
    match trunk::plan(device, precision, batch, frames) {
        Ok(steps) => {
            for trunk::Step { name, op, rule, .. } in steps {
                let (kernel, tiles) = (rule.kernel.entry, rule.kernel.blocks(&op, batch));
                let _ = writeln!(
                    text,
                    "{name:16} {:26} {kernel:24} {tiles:8} | {:8} {:15} {}",
                    op.to_string(),
                    rule.layer,
                    rule.on,
                    rule.when,
                );
            }
        }
        Err(error) => {
            let _ = writeln!(text, "{error}");
        }
    }
    text
}
