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

/// Tensors of the PLDA as they stand in the file (C9).
#[derive(Debug, Clone, PartialEq)]
pub struct PldaTensors {
    /// Mean of the embeddings, `[256]`.
    pub mean1: Vec<f32>,
    /// Mean after LDA, `[128]`.
    pub mean2: Vec<f32>,
    /// LDA, row-major `[256, 128]`.
    pub lda: Vec<f32>,
    /// PLDA mean, `[128]`.
    pub mu: Vec<f32>,
    /// PLDA transform, row-major `[128, 128]`.
    pub tr: Vec<f32>,
    /// Between-class variances, `[128]`.
    pub psi: Vec<f32>,
}

/// A loaded model pack.
pub struct ModelPack {
    /// Name; part of every result.
    pub name: String,
    /// segmentation-3.0.
    pub segmentation: SegmentationWeights,
    /// The embedding model.
    pub embedding: EmbeddingWeights,
    /// Its PLDA.
    pub plda: PldaTensors,
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
            plda: with_weights(&directory, &manifest.plda, plda_tensors)?,
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

fn plda_tensors(weights: &Weights<'_>) -> Result<PldaTensors, WeightsError> {
    Ok(PldaTensors {
        mean1: weights.get("mean1", &[EMBEDDING_DIM])?,
        mean2: weights.get("mean2", &[LDA_DIM])?,
        lda: weights.get("lda", &[EMBEDDING_DIM, LDA_DIM])?,
        mu: weights.get("mu", &[LDA_DIM])?,
        tr: weights.get("tr", &[LDA_DIM, LDA_DIM])?,
        psi: weights.get("psi", &[LDA_DIM])?,
    })
}
