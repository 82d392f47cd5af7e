//! What goes wrong on a GPU. Depends on `artifacts` and `kernel`.

use super::artifacts::{Architecture, ArtifactError};
use super::kernel::Refusal;
use crate::backend::Precision;

/// Why a GPU could not do its work.
#[derive(Debug, thiserror::Error)]
pub enum CudaError {
    /// No driver is installed.
    #[error("no NVIDIA driver is installed")]
    NoDriver,
    /// The driver is older than the program needs, or a stand-in without the functions that are needed.
    #[error("the NVIDIA driver is too old: it supports {actual}, needed is CUDA 12.0 or newer")]
    OldDriver {
        /// CUDA version of the driver.
        actual: String,
    },
    /// There is a driver, but no such GPU.
    #[error("there is no GPU number {ordinal}: the driver lists {count}")]
    NoDevice {
        /// Number that was asked for.
        ordinal: usize,
        /// Number of GPUs.
        count: usize,
    },
    /// The driver refused a call.
    #[error("{what}: {reason}")]
    Call {
        /// What was being done.
        what: String,
        /// What the driver says.
        reason: String,
    },
    /// The GPU's memory is used up.
    #[error("not enough GPU memory for {what}: {bytes} bytes")]
    Memory {
        /// What it was for.
        what: String,
        /// How much was asked for.
        bytes: usize,
    },
    /// A buffer does not have the size that a kernel reads or writes.
    #[error("{context}: {actual} bytes, expected {expected}")]
    BufferLength {
        /// Kernel and argument.
        context: String,
        /// Bytes that are needed.
        expected: usize,
        /// Bytes that are there.
        actual: usize,
    },
    /// Two buffers of a kernel share memory.
    #[error("{context}: the output lies in an input")]
    Overlap {
        /// The kernel.
        context: String,
    },
    /// A size exceeds what the kernel counts with.
    #[error("{context}: {actual}, at most {most}")]
    Index {
        /// Kernel and quantity.
        context: String,
        /// The size.
        actual: u64,
        /// The largest possible one.
        most: u64,
    },
    /// The kernel cannot do this on this device.
    #[error("kernel {kernel} is refused: {reason}")]
    Refused {
        /// Name of the entry.
        kernel: &'static str,
        /// Why.
        reason: Refusal,
    },
    /// Weights were packed for another kernel.
    #[error("kernel {kernel}: the weights are packed for another one")]
    Packing {
        /// Name of the entry.
        kernel: &'static str,
    },
    /// There is no kernel for a layer.
    #[error("there is no kernel for {0}")]
    NoKernel(String),
    /// The device lacks the requested arithmetic.
    #[error("compute capability {architecture} has no {precision} arithmetic (use fp16 or fp32)")]
    Precision {
        /// What was asked for.
        precision: Precision,
        /// The GPU's compute capability.
        architecture: Architecture,
    },
    /// There is no code for the GPU.
    #[error(transparent)]
    Artifact(#[from] ArtifactError),
}
