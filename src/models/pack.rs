//! A model pack in memory: every network's weights and the settings that belong to them.

use std::path::Path;

use super::embedding::{EMBEDDING_DIM, EmbeddingWeights};
use super::manifest::{ClusteringDefaults, Manifest, ManifestError, ModelFile, find_models};
use super::segmentation::SegmentationWeights;
use super::weights::{Weights, WeightsError};

/// Dimensions after LDA (C9).
pub const LDA_DIM: usize = 128;

/// Why a model pack could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    /// A file is missing, short or altered.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// A file does not hold the network.
    #[error(transparent)]
    Weights(#[from] WeightsError),
}

/// The arrays of a PLDA as they are stored, row-major (C9); `dim` is the embedding size (256), `latent` 128.
#[derive(Debug, Clone)]
pub struct PldaArrays {
    /// `[dim]`: mean of the embeddings.
    pub mean1: Vec<f64>,
    /// `[latent]`: mean after LDA.
    pub mean2: Vec<f64>,
    /// `[dim, latent]`.
    pub lda: Vec<f64>,
    /// `[latent]`: mean of the PLDA.
    pub mu: Vec<f64>,
    /// `[latent, latent]`: diagonalises both covariances.
    pub tr: Vec<f64>,
    /// `[latent]`: between-class variances.
    pub psi: Vec<f64>,
}

/// A loaded model pack.
pub struct ModelPack {
    /// Name; part of every result.
    pub name: String,
    /// SHA-256 of its manifest, which holds those of all files.
    pub fingerprint: String,
    /// segmentation-3.0.
    pub segmentation: SegmentationWeights,
    /// The embedding model.
    pub embedding: EmbeddingWeights,
    /// Its PLDA.
    pub plda: PldaArrays,
    /// Least mel energy before the logarithm.
    pub mel_floor: f32,
    /// Clustering parameters.
    pub clustering: ClusteringDefaults,
    /// Whether fast mode (C17) is as accurate as accurate mode with this pack.
    pub shared_trunk_validated: bool,
}

impl ModelPack {
    /// Loads the pack in `directory` (`None`: see [`find_models`]) after checking every file.
    ///
    /// # Errors
    /// If the pack is incomplete or damaged.
    pub fn load(directory: Option<&Path>) -> Result<Self, PackError> {
        let directory = find_models(directory)?;
        let manifest = Manifest::read(&directory)?;
        Ok(Self {
            segmentation: with_weights(&directory, &manifest.segmentation, SegmentationWeights::load)?,
            embedding: with_weights(&directory, &manifest.embedding, EmbeddingWeights::load)?,
            plda: with_weights(&directory, &manifest.plda, plda_arrays)?,
            fingerprint: manifest.fingerprint,
            name: manifest.name,
            mel_floor: manifest.mel_floor,
            clustering: manifest.clustering,
            shared_trunk_validated: manifest.shared_trunk_validated,
        })
    }
}

fn with_weights<T>(
    directory: &Path,
    file: &ModelFile,
    load: impl FnOnce(&Weights<'_>) -> Result<T, WeightsError>,
) -> Result<T, PackError> {
    let (path, bytes) = file.read(directory)?;
    Ok(load(&Weights::parse(&path, &bytes)?)?)
}

fn plda_arrays(weights: &Weights<'_>) -> Result<PldaArrays, WeightsError> {
    let get = |name: &str, shape: &[usize]| {
        Ok::<_, WeightsError>(weights.get(name, shape)?.into_iter().map(f64::from).collect())
    };
    Ok(PldaArrays {
        mean1: get("mean1", &[EMBEDDING_DIM])?,
        mean2: get("mean2", &[LDA_DIM])?,
        lda: get("lda", &[EMBEDDING_DIM, LDA_DIM])?,
        mu: get("mu", &[LDA_DIM])?,
        tr: get("tr", &[LDA_DIM, LDA_DIM])?,
        psi: get("psi", &[LDA_DIM])?,
    })
}
