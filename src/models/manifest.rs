//! The manifest of a model pack: which files it consists of and which settings belong to it.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use sha2::{Digest, Sha256};

/// Name of the manifest in a models directory.
pub const MANIFEST: &str = "manifest.toml";
/// A models directory named by the environment.
pub const MODELS_VARIABLE: &str = "SPEAKRS_APP_MODELS";
/// No file of a pack is larger; guards against reading something else into memory.
const MAX_FILE_BYTES: u64 = 512 << 20;

/// Why a model pack could not be used. Every message names the file.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// No models directory exists.
    #[error("no models found; looked for {MANIFEST} in {}", list(.looked))]
    NotFound {
        /// Directories without a manifest.
        looked: Vec<PathBuf>,
    },
    /// The manifest cannot be read or understood.
    #[error("{path}: {reason}")]
    Manifest {
        /// The manifest.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// A file of the pack cannot be read.
    #[error("{path}: {reason} (expected {bytes} bytes with SHA-256 {sha256})")]
    Missing {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        reason: String,
        /// Size that the manifest promises.
        bytes: u64,
        /// Hash that the manifest promises.
        sha256: String,
    },
    /// A file has another size than promised.
    #[error("{path}: has {actual} bytes, expected {bytes} with SHA-256 {sha256}")]
    Size {
        /// The file.
        path: PathBuf,
        /// Size on disk.
        actual: u64,
        /// Size that the manifest promises.
        bytes: u64,
        /// Hash that the manifest promises.
        sha256: String,
    },
    /// A file has the right size but another content than promised.
    #[error("{path}: has SHA-256 {actual}, expected {sha256} ({bytes} bytes)")]
    Hash {
        /// The file.
        path: PathBuf,
        /// Hash on disk.
        actual: String,
        /// Size that the manifest promises.
        bytes: u64,
        /// Hash that the manifest promises.
        sha256: String,
    },
}

fn list(paths: &[PathBuf]) -> String {
    paths.iter().map(|p| p.display().to_string()).collect::<Vec<_>>().join(", ")
}

/// One file of a pack.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelFile {
    /// Path relative to the manifest.
    pub file: PathBuf,
    /// Size in bytes.
    pub bytes: u64,
    /// SHA-256 in lower-case hexadecimal digits.
    pub sha256: String,
    /// SPDX expression.
    pub licence: String,
    /// Whom to credit.
    pub attribution: String,
}

/// Clustering parameters that suit the pack's embeddings (C8, C10).
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClusteringDefaults {
    /// AHC distance threshold.
    pub threshold: f64,
    /// VBx Fa.
    pub fa: f64,
    /// VBx Fb.
    pub fb: f64,
    /// Most VBx iterations.
    pub max_iterations: usize,
}

/// A parsed manifest.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Name of the pack; part of every result.
    pub name: String,
    /// Least mel energy before the logarithm.
    pub mel_floor: f32,
    /// Whether fast mode (C17) is as accurate as accurate mode with this pack.
    pub shared_trunk_validated: bool,
    /// Clustering parameters.
    pub clustering: ClusteringDefaults,
    /// segmentation-3.0.
    pub segmentation: ModelFile,
    /// The embedding model.
    pub embedding: ModelFile,
    /// Its PLDA.
    pub plda: ModelFile,
    /// SHA-256 of the manifest's text, in hexadecimal.
    #[serde(skip)]
    pub fingerprint: String,
}

impl Manifest {
    /// Reads the manifest in `directory`.
    ///
    /// # Errors
    /// [`ManifestError::Manifest`].
    pub fn read(directory: &Path) -> Result<Self, ManifestError> {
        let path = directory.join(MANIFEST);
        let error = |reason: String| ManifestError::Manifest { path: path.clone(), reason };
        let text = std::fs::read_to_string(&path).map_err(|e| error(e.to_string()))?;
        let manifest: Self = toml::from_str(&text).map_err(|e| error(e.to_string().trim_end().to_owned()))?;
        Ok(Self { fingerprint: hex(text.as_bytes()), ..manifest })
    }
}

impl ModelFile {
    /// Reads the file below `directory` after checking size and hash.
    ///
    /// # Errors
    /// If it is missing, short or altered.
    pub fn read(&self, directory: &Path) -> Result<(PathBuf, Vec<u8>), ManifestError> {
        let path = directory.join(&self.file);
        let (bytes, sha256) = (self.bytes, self.sha256.clone());
        let missing = |e: std::io::Error| ManifestError::Missing {
            path: path.clone(),
            reason: e.to_string(),
            bytes,
            sha256: sha256.clone(),
        };
        let actual = std::fs::metadata(&path).map_err(missing)?.len();
        if actual != bytes || bytes > MAX_FILE_BYTES {
            return Err(ManifestError::Size { path, actual, bytes, sha256 });
        }
        let content = std::fs::read(&path).map_err(missing)?;
        let hash = hex(&content);
        if hash != self.sha256 {
            return Err(ManifestError::Hash { path, actual: hash, bytes, sha256 });
        }
        Ok((path, content))
    }
}

/// The models directory: `chosen`, else the one named by [`MODELS_VARIABLE`], else `models` beside the executable,
/// `../share/speakrs-app/models` from there, or the source tree that the program was built from.
///
/// # Errors
/// If the directory that counts has no manifest.
pub fn find_models(chosen: Option<&Path>) -> Result<PathBuf, ManifestError> {
    let named =
        chosen.map(Path::to_path_buf).or_else(|| std::env::var_os(MODELS_VARIABLE).map(PathBuf::from));
    let candidates = match named {
        Some(directory) => vec![directory],
        None => {
            let executable = std::env::current_exe().and_then(std::fs::canonicalize).ok();
            let beside = executable.as_deref().and_then(Path::parent);
            let installed = beside.map(|d| [d.join("models"), d.join("../share/speakrs-app/models")]);
            let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("models");
            installed.into_iter().flatten().chain([source]).collect()
        }
    };
    let found = candidates.iter().find(|d| d.join(MANIFEST).is_file()).cloned();
    found.ok_or(ManifestError::NotFound { looked: candidates })
}

/// SHA-256 of `bytes` in lower-case hexadecimal digits.
fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
