//! Tensors of a safetensors file, checked and widened to `f32`.

use std::path::{Path, PathBuf};

use half::{bf16, f16};
use safetensors::{Dtype, SafeTensors};

/// Why a weights file could not be used.
#[derive(Debug, thiserror::Error)]
pub enum WeightsError {
    /// The file could not be read.
    #[error("{path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// The file is no safetensors file.
    #[error("{path}: not a usable safetensors file: {reason}")]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A tensor is absent.
    #[error("{path}: tensor `{name}` is missing")]
    Missing {
        /// The file.
        path: PathBuf,
        /// Name of the tensor.
        name: String,
    },
    /// A tensor has another shape than the network needs.
    #[error("{path}: tensor `{name}` has shape {actual:?}, expected {expected:?}")]
    Shape {
        /// The file.
        path: PathBuf,
        /// Name of the tensor.
        name: String,
        /// Shape that the network needs.
        expected: Vec<usize>,
        /// Shape in the file.
        actual: Vec<usize>,
    },
    /// A tensor holds a number type that is not read.
    #[error("{path}: tensor `{name}` is stored as {dtype}, expected F16, BF16, F32 or F64")]
    Type {
        /// The file.
        path: PathBuf,
        /// Name of the tensor.
        name: String,
        /// Type in the file.
        dtype: String,
    },
    /// A tensor holds NaN or an infinity.
    #[error("{path}: tensor `{name}` holds a value that is not finite")]
    NotFinite {
        /// The file.
        path: PathBuf,
        /// Name of the tensor.
        name: String,
    },
}

/// The tensors of one safetensors file. F16 and F32 are the types in use; every value is handed out as `f32`.
pub struct Weights<'a> {
    path: &'a Path,
    tensors: SafeTensors<'a>,
}

impl<'a> Weights<'a> {
    /// Reads the table of tensors in `bytes`, the content of the file at `path`.
    ///
    /// # Errors
    /// [`WeightsError::Format`].
    pub fn parse(path: &'a Path, bytes: &'a [u8]) -> Result<Self, WeightsError> {
        let tensors = SafeTensors::deserialize(bytes)
            .map_err(|e| WeightsError::Format { path: path.into(), reason: e.to_string() })?;
        Ok(Self { path, tensors })
    }

    /// The values of tensor `name`, row-major, which must have shape `shape`.
    ///
    /// # Errors
    /// If it is absent, of another shape or type, or holds a value that is not finite.
    pub fn get(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>, WeightsError> {
        let path = || self.path.to_path_buf();
        let view = self
            .tensors
            .tensor(name)
            .map_err(|_| WeightsError::Missing { path: path(), name: name.into() })?;
        if view.shape() != shape {
            return Err(WeightsError::Shape {
                path: path(),
                name: name.into(),
                expected: shape.into(),
                actual: view.shape().into(),
            });
        }
        let data = view.data();
        let values: Vec<f32> = match view.dtype() {
            Dtype::F16 => data.as_chunks().0.iter().map(|b| f16::from_le_bytes(*b).to_f32()).collect(),
            Dtype::BF16 => data.as_chunks().0.iter().map(|b| bf16::from_le_bytes(*b).to_f32()).collect(),
            Dtype::F32 => data.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect(),
            Dtype::F64 => data.as_chunks().0.iter().map(|b| f64::from_le_bytes(*b) as f32).collect(),
            other => {
                return Err(WeightsError::Type {
                    path: path(),
                    name: name.into(),
                    dtype: format!("{other:?}"),
                });
            }
        };
        if values.iter().any(|v| !v.is_finite()) {
            return Err(WeightsError::NotFinite { path: path(), name: name.into() });
        }
        Ok(values)
    }
}
