//! From local speakers and embeddings to speakers of the recording (C7-C12).
//! Depends on `math` and on the geometry in `models`.
//!
//! [`cluster`] lists the steps. Memory is bounded for recordings of any length: distances by
//! [`linkage::MAX_MATRIX_POINTS`], responsibilities by [`MAX_RESPONSIBILITIES`]; the rest is linear.

pub mod ahc;
pub mod assign;
mod bounds;
mod heap;
pub mod kmeans;
pub mod linkage;
pub mod plda;
pub mod vbx;

pub use assign::{Assignment, Embeddings};
pub use bounds::{SpeakerBounds, SpeakerRange};
pub use plda::Plda;

use assign::Scorer;
use rayon::prelude::*;

use crate::math::{Rows, vector};
use crate::models::windows::{Activity, LOCAL_SPEAKERS};

/// Most responsibilities (embeddings times initial clusters) that VBx starts with: 128 MB of f64.
pub const MAX_RESPONSIBILITIES: usize = 16_000_000;

/// Why clustering cannot start.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClusteringError {
    /// Contradicting bounds.
    #[error("at least {min} speakers and at most {max} contradict each other")]
    MinAboveMax {
        /// Fewest speakers.
        min: usize,
        /// Most speakers.
        max: usize,
    },
    /// An exact number together with other bounds.
    #[error("an exact number of speakers excludes a least and a most number")]
    ExactWithBounds,
    /// A bound of zero.
    #[error("the number of speakers must be at least 1")]
    NoSpeakers,
    /// The embeddings are not `[windows, LOCAL_SPEAKERS, dim]`.
    #[error("{found} embedding values where {expected} were expected")]
    Shape {
        /// Windows x local speakers x dim.
        expected: usize,
        /// Values given.
        found: usize,
    },
    /// The PLDA arrays are unusable.
    #[error("PLDA model: {0}")]
    Plda(&'static str),
}

/// The numbers that steer clustering; the default is community-1 (C6-C10).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Params {
    /// AHC: highest merge within a cluster, Euclidean distance of unit vectors (C8).
    pub threshold: f64,
    /// VBx: weight of the evidence (C10).
    pub fa: f64,
    /// VBx: weight of the prior on speakers; larger means fewer speakers (C10).
    pub fb: f64,
    /// VBx: most iterations (C10).
    pub max_iterations: usize,
    /// VBx: gain of ELBO below which it stops (C10).
    pub epsilon: f64,
    /// VBx: certainty of the initial labels (C10).
    pub smoothing: f64,
    /// VBx: clusters with a prior above this are kept (C10).
    pub min_prior: f64,
    /// Frames that a local speaker must be alone for its embedding to be clustered: 20 % of a window (C7).
    pub min_solo_frames: usize,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            threshold: 0.6,
            fa: 0.07,
            fb: 0.8,
            max_iterations: 20,
            epsilon: 1e-4,
            smoothing: 7.0,
            min_prior: 1e-7,
            min_solo_frames: 118,
        }
    }
}

/// The clusters of a recording and who belongs to them.
#[derive(Debug, Clone, PartialEq)]
pub struct Clustering {
    /// One entry per window (C12).
    pub assignments: Vec<Assignment>,
    /// Mean raw embedding of each cluster, `[clusters, dim]`; NaN if no embedding was usable (C7, C10).
    pub centroids: Rows,
    /// Plain-language notes.
    pub warnings: Vec<String>,
}

impl Clustering {
    /// Number of clusters, at least 1.
    pub fn clusters(&self) -> usize {
        self.centroids.len()
    }
}

/// Finds the speakers of a recording (C7-C12).
///
/// `embeddings` is row-major `[windows, LOCAL_SPEAKERS, plda.dim()]`; values may be NaN.
///
/// # Errors
/// If the bounds contradict each other or the embeddings do not fit the activity and the PLDA.
pub fn cluster(
    activity: &Activity,
    embeddings: &[f32],
    plda: &Plda,
    params: &Params,
    bounds: &SpeakerBounds,
) -> Result<Clustering, ClusteringError> {
    let range = bounds.range()?;
    Ok(Voices::new(activity, embeddings, plda, params)?.cluster(range))
}

/// The voices that VBx tells apart, before the bounds on their number apply (C7-C10).
#[derive(Debug, Clone)]
pub struct Voices<'a> {
    activity: &'a Activity,
    embeddings: Embeddings<'a>,
    /// Raw embeddings that take part in clustering, `[n, dim]`.
    train: Rows,
    /// Centroids that VBx kept.
    centroids: Rows,
    warnings: Vec<String>,
}

impl<'a> Voices<'a> {
    /// Selects the training embeddings and runs AHC, PLDA and VBx on them (C7-C10).
    ///
    /// # Errors
    /// If the embeddings do not fit the activity and the PLDA.
    pub fn new(
        activity: &'a Activity,
        embeddings: &'a [f32],
        plda: &Plda,
        params: &Params,
    ) -> Result<Self, ClusteringError> {
        let expected = activity.windows() * LOCAL_SPEAKERS * plda.dim();
        if embeddings.len() != expected {
            return Err(ClusteringError::Shape { expected, found: embeddings.len() });
        }
        let embeddings = Embeddings::new(embeddings, plda.dim());
        let train = gather(embeddings, &train_slots(activity, embeddings, params.min_solo_frames));
        let mut warnings = Vec::new();
        let centroids = if train.len() < 2 {
            mean_of_few(&train)
        } else {
            let labels = initial_labels(&train, params, &mut warnings);
            let latent = latent_vectors(&train, plda);
            let gamma = vbx::initial_gamma(&labels, count_labels(&labels), params.smoothing);
            let vbx = vbx::refine(&latent, plda.phi(), gamma, params);
            weighted_centroids(&train, &vbx, params.min_prior)
        };
        Ok(Self { activity, embeddings, train, centroids, warnings })
    }

    /// Number of voices that VBx kept, at least 1.
    pub fn count(&self) -> usize {
        self.centroids.len()
    }

    /// Number of embeddings that took part.
    pub fn usable(&self) -> usize {
        self.train.len()
    }

    /// Plain-language notes on the steps so far.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Assigns every local speaker; k-means takes over when VBx is outside `range` (C11, C12).
    pub fn cluster(&self, range: SpeakerRange) -> Clustering {
        let wanted = self.count().clamp(range.min, range.max);
        if wanted == self.count() {
            return self.clustering(self.centroids.clone(), assign::constrained);
        }
        let mut clustering = self.cluster_into(wanted);
        let found = clustering.clusters();
        if found < wanted {
            clustering.warnings.push(format!(
                "{wanted} speakers were asked for, but the speech in this recording is enough for {found} only."
            ));
        }
        clustering
    }

    /// Splits the voices into `wanted` clusters by k-means (C11), or fewer: where there are fewer different usable
    /// embeddings, each becomes a cluster of its own.
    ///
    /// # Panics
    /// If `wanted` is 0.
    pub fn cluster_into(&self, wanted: usize) -> Clustering {
        if self.train.len() < 2 {
            return self.single();
        }
        let labels = kmeans::cluster(&self.train.clone().normalised(), wanted.min(self.train.len()));
        let found = count_labels(&labels);
        let centroids = kmeans::means(&self.train, &labels, found);
        self.clustering(centroids, assign::unconstrained)
    }

    fn clustering(
        &self,
        centroids: Rows,
        assign: fn(&Activity, Embeddings, &Scorer) -> Vec<Assignment>,
    ) -> Clustering {
        if self.train.len() < 2 {
            return self.single();
        }
        let assignments = assign(self.activity, self.embeddings, &Scorer::new(&centroids));
        Clustering { assignments, centroids, warnings: self.warnings.clone() }
    }

    /// With fewer than two usable embeddings everybody is the same speaker (C7).
    fn single(&self) -> Clustering {
        let slot = |c, s| self.activity.is_active(c, s).then_some(0);
        let assignments = (0..self.activity.windows()).map(|c| std::array::from_fn(|s| slot(c, s))).collect();
        Clustering { assignments, centroids: self.centroids.clone(), warnings: self.warnings.clone() }
    }
}

/// Window and local speaker of the embeddings that are clustered, in order of time: enough frames of solo speech and
/// nothing but finite values, not all of them zero (C7).
pub fn train_slots(
    activity: &Activity,
    embeddings: Embeddings,
    min_solo_frames: usize,
) -> Vec<(usize, usize)> {
    let usable = |(c, s): &(usize, usize)| {
        let embedding = embeddings.get(*c, *s);
        activity.solo_frames(*c, *s) >= min_solo_frames
            && embedding.iter().all(|v| v.is_finite())
            && embedding.iter().any(|v| *v != 0.0)
    };
    (0..activity.windows()).flat_map(|c| (0..LOCAL_SPEAKERS).map(move |s| (c, s))).filter(usable).collect()
}

/// The embeddings of `slots`, `[slots, dim]`.
pub fn gather(embeddings: Embeddings, slots: &[(usize, usize)]) -> Rows {
    let values = slots.iter().flat_map(|&(c, s)| embeddings.get(c, s)).copied().map(f64::from);
    Rows::new(values.collect(), embeddings.dim())
}

/// Latent vectors of PLDA, `[n, D]` (C9).
pub fn latent_vectors(train: &Rows, plda: &Plda) -> Rows {
    let latent =
        train.as_slice().par_chunks(train.dim()).map(|embedding| plda.project(&plda.reduce(embedding)));
    Rows::new(latent.flatten_iter().collect(), plda.phi().len())
}

/// Means of the raw embeddings, weighted by responsibility, of the clusters that VBx kept (C10).
pub fn weighted_centroids(train: &Rows, vbx: &vbx::Vbx, min_prior: f64) -> Rows {
    let kept: Vec<usize> = (0..vbx.pi.len()).filter(|&k| vbx.pi[k] > min_prior).collect();
    let mut centroids = Rows::zeros(kept.len(), train.dim());
    let rows = centroids.as_mut_slice().par_chunks_exact_mut(train.dim());
    rows.zip(&kept).for_each(|(centroid, &k)| {
        let mut total = 0.0;
        for (embedding, gamma) in train.iter().zip(vbx.gamma.iter()) {
            total += gamma[k];
            centroid.iter_mut().zip(embedding).for_each(|(sum, v)| *sum += gamma[k] * v);
        }
        centroid.iter_mut().for_each(|v| *v /= total);
    });
    centroids
}

/// AHC labels (C8), of at most as many clusters as [`MAX_RESPONSIBILITIES`] allows.
fn initial_labels(train: &Rows, params: &Params, warnings: &mut Vec<String>) -> Vec<usize> {
    let points = train.clone().normalised();
    let labels = ahc::cluster(&points, params.threshold);
    let most = (MAX_RESPONSIBILITIES / points.len()).max(1);
    if count_labels(&labels) <= most {
        return labels;
    }
    warnings.push(format!(
        "This recording is very long and varied: only its {most} largest voice groups were compared."
    ));
    keep_largest(&points, labels, most)
}

/// Keeps the `most` largest clusters, the first of equals, and moves the points of the others to the nearest of
/// them. `points` are unit vectors.
pub fn keep_largest(points: &Rows, labels: Vec<usize>, most: usize) -> Vec<usize> {
    let clusters = count_labels(&labels);
    let mut sizes = vec![0usize; clusters];
    labels.iter().for_each(|&label| sizes[label] += 1);
    let mut kept: Vec<usize> = (0..clusters).collect();
    kept.sort_by_key(|&k| std::cmp::Reverse(sizes[k]));
    kept.truncate(most);
    kept.sort_unstable();
    let mut new_label = vec![None; clusters];
    kept.iter().enumerate().for_each(|(new, &old)| new_label[old] = Some(new));
    let centroids = kmeans::means(points, &labels, clusters);
    let distance = |row: &[f64], new: usize| vector::squared_distance(row, centroids.row(kept[new]));
    let nearest = |row: &[f64]| {
        (1..kept.len()).fold(0, |best, k| if distance(row, k) < distance(row, best) { k } else { best })
    };
    labels
        .iter()
        .zip(points.iter())
        .map(|(&old, row)| new_label[old].unwrap_or_else(|| nearest(row)))
        .collect()
}

/// The centroid when there is at most one usable embedding: that embedding, or NaN (C7).
fn mean_of_few(train: &Rows) -> Rows {
    if train.is_empty() { Rows::new(vec![f64::NAN; train.dim()], train.dim()) } else { train.clone() }
}

fn count_labels(labels: &[usize]) -> usize {
    labels.iter().max().map_or(0, |max| max + 1)
}
