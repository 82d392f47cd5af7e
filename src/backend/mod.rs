//! Where the networks run: one small interface, one implementation a device. Depends on `models` and `features`.

pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;

use std::fmt;
use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};

use crate::models::ModelPack;
use crate::models::windows::{Activity, Windows};

/// Arithmetic that a backend's networks run in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// 32-bit floating point throughout.
    Fp32,
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fp32 => f.write_str("fp32"),
        }
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
    /// The caller asked to stop.
    #[error("cancelled")]
    Cancelled,
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

    /// One embedding for every window and local speaker, row-major `[windows, LOCAL_SPEAKERS, EMBEDDING_DIM]`: the
    /// trunk runs on every window that holds speech (C6).
    ///
    /// # Errors
    /// If the device fails or the caller stops it.
    fn embed(
        &self,
        samples: &[f32],
        windows: &Windows,
        activity: &Activity,
        progress: Progress<'_>,
    ) -> Result<Vec<f32>, BackendError>;

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
    ) -> Result<Vec<f32>, BackendError>;

    /// Shows `observe` every intermediate result for the window that `samples` starts with; serves to compare
    /// backends layer by layer.
    ///
    /// # Errors
    /// If the device fails.
    #[doc(hidden)]
    fn trace(&self, samples: &[f32], observe: Observer<'_>) -> Result<(), BackendError>;
}

/// Opens the device `auto`, `cpu`, `cuda` or `cuda:N` with the networks of `pack`.
///
/// # Errors
/// [`BackendError::Unavailable`] if the device is unknown or cannot be used.
pub fn open(device: &str, pack: &ModelPack) -> Result<Box<dyn Backend>, BackendError> {
    match device {
        "auto" | "cpu" => Ok(Box::new(cpu::CpuBackend::new(pack))),
        cuda if cuda == "cuda" || cuda.starts_with("cuda:") => Err(BackendError::Unavailable {
            device: cuda.into(),
            reason: "this version computes on the CPU only; use --device cpu".into(),
        }),
        other => Err(BackendError::Unavailable {
            device: other.into(),
            reason: "unknown device; known are auto, cpu, cuda and cuda:N".into(),
        }),
    }
}
