//! From cluster centroids to a cluster for every local speaker of every window (C12). Depends on `math` and `models`.

use std::array;

use rayon::prelude::*;

use crate::math::matching::best_matching;
use crate::math::{Rows, vector};
use crate::models::windows::{Activity, LOCAL_SPEAKERS};

/// Cluster of each local speaker of one window; `None` where the speaker is inactive or left over (-2 in C12).
pub type Assignment = [Option<usize>; LOCAL_SPEAKERS];

/// Embeddings of all local speakers, row-major `[windows, LOCAL_SPEAKERS, dim]`.
#[derive(Debug, Clone, Copy)]
pub struct Embeddings<'a> {
    data: &'a [f32],
    dim: usize,
}

impl<'a> Embeddings<'a> {
    /// Wraps row-major `data`.
    pub fn new(data: &'a [f32], dim: usize) -> Self {
        Self { data, dim }
    }

    /// The embedding of local speaker `s` in window `c`.
    pub fn get(&self, c: usize, s: usize) -> &'a [f32] {
        let at = (c * LOCAL_SPEAKERS + s) * self.dim;
        &self.data[at..at + self.dim]
    }

    /// Length of each embedding.
    pub fn dim(&self) -> usize {
        self.dim
    }
}

/// Similarity of embeddings to centroids: `2 - cosine distance` (C12).
#[derive(Debug, Clone)]
pub struct Scorer {
    unit_centroids: Rows,
}

impl Scorer {
    /// Scores against `centroids` `[clusters, dim]`.
    pub fn new(centroids: &Rows) -> Self {
        Self { unit_centroids: centroids.clone().normalised() }
    }

    /// One score per cluster; NaN if the embedding or the centroid is not finite or zero.
    pub fn scores(&self, embedding: &[f32]) -> Vec<f64> {
        let embedding: Vec<f64> = embedding.iter().copied().map(f64::from).collect();
        let length = vector::norm(&embedding);
        self.unit_centroids.iter().map(|centroid| 1.0 + vector::dot(&embedding, centroid) / length).collect()
    }

    /// Scores of all local speakers of window `c`.
    fn window(&self, embeddings: Embeddings, c: usize) -> [Vec<f64>; LOCAL_SPEAKERS] {
        array::from_fn(|s| self.scores(embeddings.get(c, s)))
    }
}

/// The scores that stand in where there is none (C6, C12).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Floor {
    /// For every score of an inactive local speaker.
    pub inactive: f64,
    /// For a score that is NaN.
    pub nan: f64,
}

impl Floor {
    /// The smallest score of all local speakers, inactive ones included, stands in for NaN. Inactive speakers get 1
    /// less, unless there is any NaN: then they get the same, as in the reference.
    pub fn new(windows: usize, embeddings: Embeddings, scorer: &Scorer) -> Self {
        let of_window = |c| {
            let scores = scorer.window(embeddings, c);
            let fold =
                |(least, any_nan): (f64, bool), score: &f64| (least.min(*score), any_nan | score.is_nan());
            scores.iter().flatten().fold((f64::INFINITY, false), fold)
        };
        let both = |(a, a_nan): (f64, bool), (b, b_nan): (f64, bool)| (a.min(b), a_nan | b_nan);
        let (mut least, any_nan) =
            (0..windows).into_par_iter().map(of_window).reduce(|| (f64::INFINITY, false), both);
        if !least.is_finite() {
            least = 0.0;
        }
        Self { inactive: if any_nan { least } else { least - 1.0 }, nan: least }
    }
}

/// Matches the local speakers of each window to different clusters so that the scores add up to the most (C12).
///
/// With fewer clusters than active speakers some speakers are left over.
pub fn constrained(activity: &Activity, embeddings: Embeddings, scorer: &Scorer) -> Vec<Assignment> {
    let floor = Floor::new(activity.windows(), embeddings, scorer);
    (0..activity.windows())
        .into_par_iter()
        .map(|c| {
            let active: [bool; LOCAL_SPEAKERS] = array::from_fn(|s| activity.is_active(c, s));
            let mut scores = scorer.window(embeddings, c);
            for (scores, active) in scores.iter_mut().zip(active) {
                for score in scores {
                    if !active {
                        *score = floor.inactive;
                    } else if score.is_nan() {
                        *score = floor.nan;
                    }
                }
            }
            let matching = best_matching(scores.each_ref().map(Vec::as_slice));
            array::from_fn(|s| matching[s].filter(|_| active[s]))
        })
        .collect()
}

/// Gives each active local speaker its best cluster, the first of equals, whatever the others of its window get
/// (C12, after k-means).
pub fn unconstrained(activity: &Activity, embeddings: Embeddings, scorer: &Scorer) -> Vec<Assignment> {
    let best = |scores: Vec<f64>| {
        (1..scores.len()).fold(0, |best, k| if scores[k] > scores[best] { k } else { best })
    };
    (0..activity.windows())
        .into_par_iter()
        .map(|c| {
            array::from_fn(|s| activity.is_active(c, s).then(|| best(scorer.scores(embeddings.get(c, s)))))
        })
        .collect()
}
