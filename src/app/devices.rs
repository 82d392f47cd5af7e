//! What can be computed on, and with which kernels, in words. Depends on `backend`.

#[cfg(feature = "cuda")]
use std::fmt::Write as _;

#[cfg(feature = "cuda")]
use crate::backend::cuda::{self, device::Device, error::CudaError, trunk};
use crate::backend::{Precision, cpu};

/// The devices, a line each; with `explain` also the kernels for `batch` pieces of `frames` fbank frames (10 ms).
pub fn text(explain_too: bool, precision: Option<Precision>, batch: usize, frames: usize) -> String {
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
            for (device, _) in devices.iter().filter(|(_, reason)| explain_too && reason.is_none()) {
                text.push('\n');
                match cuda::precision(device, precision) {
                    Ok(precision) => {
                        text.push_str(&explain(device, precision, batch, frames));
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
        let _ = (explain_too, precision, batch, frames);
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
