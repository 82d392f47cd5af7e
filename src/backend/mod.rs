//! Where the networks run: one small interface, one implementation a device.

use std::fmt;

use serde::{Deserialize, Serialize};

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
