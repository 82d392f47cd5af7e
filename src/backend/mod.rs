//! Where the networks run: one small interface, one implementation a device. Depends on `models` and `features`.

mod blocks;
pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;

use std::fmt;
use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};

use crate::models::ModelPack;
use crate::models::windows::{Activity, Windows};

/// Arithmetic that a backend's networks run in; sums are 32-bit always.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// 32-bit floating point throughout, or an error of that class.
    Fp32,
    /// Operands of convolutions rounded to 10 bits of mantissa.
    Tf32,
    /// Maps and weights of convolutions in 16-bit floating point.
    Fp16,
}

impl Precision {
    /// All, from the most to the least exact.
    pub const ALL: [Self; 3] = [Self::Fp32, Self::Tf32, Self::Fp16];
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Fp32 => "fp32",
            Self::Tf32 => "tf32",
            Self::Fp16 => "fp16",
        })
    }
}

/// What a result was computed on; part of every result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackendInfo {
    /// Device, such as `cpu` or `cuda:0`.
    pub device: String,
    /// Name of the device in words, such as the processor's model name.
    pub name: String,
    /// Arithmetic of the networks.
    pub precision: Precision,
}

/// Why a backend could not do its work.
#[derive(Debug, thiserror::Error)]
pub enum BackendError {
    /// The requested device cannot be used.
    #[error("{device}: {reason}")]
    Unavailable {
        /// Requested device.
        device: String,
        /// Why it cannot be used.
        reason: String,
    },
    /// The device failed in the middle of its work.
    #[error("{device}: {reason}")]
    Failed {
        /// The device.
        device: String,
        /// What went wrong.
        reason: String,
    },
    /// The caller asked to stop.
    #[error("cancelled")]
    Cancelled,
}

/// Embeddings of all windows.
#[derive(Debug, Clone, PartialEq)]
pub struct Embeddings {
    /// One embedding for every window and local speaker, row-major `[windows, LOCAL_SPEAKERS, EMBEDDING_DIM]`.
    pub values: Vec<f32>,
    /// Arithmetic that computed them: the backend's, or a more exact one where values did not fit it.
    pub precision: Precision,
}

/// Receives the share of the work done (0 to 1) and stops it by returning [`ControlFlow::Break`].
pub type Progress<'a> = &'a mut dyn FnMut(f32) -> ControlFlow<()>;

/// Receives name, shape and row-major values of intermediate results.
pub type Observer<'a> = &'a (dyn Fn(&str, &[usize], &[f32]) + Sync);

/// The two networks on one device.
pub trait Backend: Send + Sync {
    /// What it runs on.
    fn info(&self) -> &BackendInfo;

    /// Which local speakers are active in every window of `samples` (C3, C4).
    ///
    /// # Errors
    /// If the device fails or the caller stops it.
    fn segment(
        &self,
        samples: &[f32],
        windows: &Windows,
        progress: Progress<'_>,
    ) -> Result<Activity, BackendError>;

    /// Embeddings of all windows: the trunk runs on every window that holds speech (C6).
    ///
    /// # Errors
    /// If the device fails or the caller stops it.
    fn embed(
        &self,
        samples: &[f32],
        windows: &Windows,
        activity: &Activity,
        progress: Progress<'_>,
    ) -> Result<Embeddings, BackendError>;

    /// The same by one run of the trunk over the recording, of which every window pools its slice (C17).
    ///
    /// # Errors
    /// If the device fails or the caller stops it.
    fn embed_shared(
        &self,
        samples: &[f32],
        windows: &Windows,
        activity: &Activity,
        progress: Progress<'_>,
    ) -> Result<Embeddings, BackendError>;

    /// Shows `observe` every intermediate result for the window that `samples` starts with; serves to compare
    /// backends layer by layer.
    ///
    /// # Errors
    /// If the device fails.
    #[doc(hidden)]
    fn trace(&self, samples: &[f32], observe: Observer<'_>) -> Result<(), BackendError>;
}

/// Reports that `done` of `total` is done.
fn report(progress: Progress<'_>, done: usize, total: usize) -> Result<(), BackendError> {
    match progress(done as f32 / total as f32) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(BackendError::Cancelled),
    }
}

/// A backend, and what the user should know of its choice.
pub struct Opened {
    /// The backend.
    pub backend: Box<dyn Backend>,
    /// Why it is not a GPU, if the choice was left to the program.
    pub reason: Option<String>,
}

/// Opens the device `auto`, `cpu`, `cuda` or `cuda:N` with the networks of `pack`, in `precision` or, without, in the
/// fastest that keeps the accuracy of the embeddings. `cuda` is the first usable GPU; `auto` too, else the CPU.
///
/// # Errors
/// [`BackendError::Unavailable`] if the device is unknown, cannot be used or does not have the precision.
pub fn open(device: &str, precision: Option<Precision>, pack: &ModelPack) -> Result<Opened, BackendError> {
    let unavailable = |reason: String| BackendError::Unavailable { device: device.into(), reason };
    let opened = |backend| Opened { backend, reason: None };
    match device {
        "auto" => match gpu(None, precision, pack) {
            Ok(backend) => Ok(opened(backend)),
            Err(reason) if matches!(precision, None | Some(Precision::Fp32)) => {
                Ok(Opened { backend: Box::new(cpu::CpuBackend::new(pack)), reason: Some(reason) })
            }
            Err(reason) => Err(unavailable(format!("{reason}, and the CPU computes in fp32 only"))),
        },
        "cpu" if matches!(precision, None | Some(Precision::Fp32)) => {
            Ok(opened(Box::new(cpu::CpuBackend::new(pack))))
        }
        "cpu" => Err(unavailable("the CPU computes in fp32 only".into())),
        "cuda" => gpu(None, precision, pack).map(opened).map_err(unavailable),
        _ => match device.strip_prefix("cuda:").map(str::parse) {
            Some(Ok(ordinal)) => gpu(Some(ordinal), precision, pack).map(opened).map_err(unavailable),
            _ => Err(unavailable("unknown device; known are auto, cpu, cuda and cuda:N".into())),
        },
    }
}

/// The GPU `ordinal`, else the first usable one; or why there is none.
#[cfg(feature = "cuda")]
fn gpu(
    ordinal: Option<usize>,
    precision: Option<Precision>,
    pack: &ModelPack,
) -> Result<Box<dyn Backend>, String> {
    let first = || {
        let devices = cuda::devices().map_err(|error| error.to_string())?;
        let usable = devices.iter().find(|(_, reason)| reason.is_none());
        let reasons = devices.iter().filter_map(|(device, reason)| Some((device, reason.as_ref()?)));
        let reasons: Vec<String> =
            reasons.map(|(device, reason)| format!("{}: {reason}", device.name)).collect();
        usable.map(|(device, _)| device.ordinal).ok_or_else(|| match reasons.is_empty() {
            true => "the NVIDIA driver lists no GPU".into(),
            false => reasons.join("; "),
        })
    };
    let ordinal = ordinal.map_or_else(first, Ok)?;
    match cuda::CudaBackend::new(pack, ordinal, precision) {
        Ok(backend) => Ok(Box::new(backend)),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(not(feature = "cuda"))]
fn gpu(_: Option<usize>, _: Option<Precision>, _: &ModelPack) -> Result<Box<dyn Backend>, String> {
    Err("this program was built without GPU support".into())
}
