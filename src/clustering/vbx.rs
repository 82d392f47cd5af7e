//! Variational Bayes over a Gaussian mixture with a PLDA prior (C10): VBx without the hidden Markov model.
//! Depends on `math`.
//!
//! Landini, Profant, Diez, Burget: "Bayesian HMM clustering of x-vector sequences (VBx) in speaker diarization",
//! 2022. Symbols are the paper's: gamma responsibilities, pi priors, rho = V'y, alpha speaker means.

use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use rayon::prelude::*;

use super::Params;
use crate::math::simd::vectorised;
use crate::math::{Rows, vector};

/// Vectors, or clusters, that one parallel task works on. Fixed, so that sums do not depend on the number of threads.
const TASK: usize = 64;

/// What VBx found for n vectors and K initial clusters.
#[derive(Debug, Clone)]
pub struct Vbx {
    /// Responsibilities, `[n, K]`.
    pub gamma: Rows,
    /// Priors, `[K]`; clusters that nobody needs fall towards 0.
    pub pi: Vec<f64>,
    /// Evidence lower bound after each iteration.
    pub elbo: Vec<f64>,
}

/// Initial responsibilities `[n, clusters]`: softmax of `smoothing` times the one-hot label (C10).
pub fn initial_gamma(labels: &[usize], clusters: usize, smoothing: f64) -> Rows {
    let others = 1.0 / (smoothing.exp() + (clusters - 1) as f64);
    let mut gamma = Rows::new(vec![others; labels.len() * clusters], clusters);
    for (i, &label) in labels.iter().enumerate() {
        gamma.row_mut(i)[label] = smoothing.exp() * others;
    }
    gamma
}

/// Refines `gamma` `[n, K]` for the latent vectors `y` `[n, D]` with between-class variances `phi` `[D]` (C10).
///
/// Runs `params.max_iterations` at most and stops after the second or a later one that gains less than
/// `params.epsilon` of ELBO, or loses some.
pub fn refine(y: &Rows, phi: &[f64], mut gamma: Rows, params: &Params) -> Vbx {
    let (clusters, latent) = (gamma.dim(), y.dim());
    let ratio = params.fa / params.fb;
    let constant = latent as f64 * std::f64::consts::TAU.ln();
    let g: Vec<f64> = y.iter().map(|row| -0.5 * (vector::dot(row, row) + constant)).collect();
    let mut rho = y.clone();
    for row in rho.as_mut_slice().chunks_exact_mut(latent) {
        row.iter_mut().zip(phi).for_each(|(v, phi)| *v *= phi.sqrt());
    }
    let mut pi = vec![1.0 / clusters as f64; clusters];
    let mut counts = column_sums(gamma.as_slice(), clusters);
    let mut elbo: Vec<f64> = Vec::new();
    for _ in 0..params.max_iterations {
        let speakers = Speakers::new(&gamma, &rho, &counts, phi, ratio);
        let log_prior: Vec<f64> = pi.iter().map(|p| (p + 1e-8).ln()).collect();
        let alpha = MatRef::from_row_major_slice(&speakers.alpha, clusters, latent);
        let update = |((gamma, rho), g): ((&mut [f64], &[f64]), &[f64])| {
            let rho = MatRef::from_row_major_slice(rho, g.len(), latent);
            let product = MatMut::from_row_major_slice_mut(gamma, g.len(), clusters);
            matmul(product, Accum::Replace, rho, alpha.transpose(), params.fa, Par::Seq);
            vectorised!({
                let mut evidence = 0.0;
                for (row, g) in gamma.chunks_exact_mut(clusters).zip(g) {
                    for ((value, offset), prior) in row.iter_mut().zip(&speakers.offset).zip(&log_prior) {
                        *value += params.fa * (g - offset) + prior;
                    }
                    evidence += vector::softmax(row);
                }
                (evidence, column_sums(gamma, clusters))
            })
        };
        let tasks = gamma
            .as_mut_slice()
            .par_chunks_mut(TASK * clusters)
            .zip(rho.as_slice().par_chunks(TASK * latent));
        let updates: Vec<(f64, Vec<f64>)> = tasks.zip(g.par_chunks(TASK)).map(update).collect();
        let evidence: f64 = updates.iter().map(|(evidence, _)| evidence).sum();
        let sums: Vec<f64> = updates.into_iter().flat_map(|(_, sums)| sums).collect();
        counts = column_sums(&sums, clusters);
        let total: f64 = counts.iter().sum();
        pi = counts.iter().map(|count| count / total).collect();
        let bound = evidence + params.fb * 0.5 * speakers.regulariser;
        let gain = elbo.last().map(|last| bound - last);
        elbo.push(bound);
        if gain.is_some_and(|gain| gain < params.epsilon) {
            break;
        }
    }
    Vbx { gamma, pi, elbo }
}

/// Posterior of the speaker means, and what the update of gamma and the ELBO need of it.
struct Speakers {
    /// The means, row-major `[K, D]`.
    alpha: Vec<f64>,
    /// `0.5 (invL + alpha^2) phi` of each cluster.
    offset: Vec<f64>,
    /// `sum(ln invL - invL - alpha^2 + 1)` over all clusters and dimensions.
    regulariser: f64,
}

impl Speakers {
    /// The means `Fa/Fb invL gamma' rho`, given the `counts` N_k of the clusters.
    fn new(gamma: &Rows, rho: &Rows, counts: &[f64], phi: &[f64], ratio: f64) -> Self {
        let latent = rho.dim();
        let mut alpha = vec![0.0; counts.len() * latent];
        let means = |(task, (alpha, counts)): (usize, (&mut [f64], &[f64]))| {
            let product = MatMut::from_row_major_slice_mut(alpha, counts.len(), latent);
            let gamma = view(gamma).subcols(task * TASK, counts.len());
            matmul(product, Accum::Replace, gamma.transpose(), view(rho), ratio, Par::Seq);
            let mut regulariser = 0.0;
            let offset = alpha.chunks_exact_mut(latent).zip(counts).map(|(alpha, count)| {
                let mut offset = 0.0;
                for (mean, phi) in alpha.iter_mut().zip(phi) {
                    let inverse = 1.0 / (1.0 + ratio * count * phi);
                    *mean *= inverse;
                    offset += 0.5 * (inverse + *mean * *mean) * phi;
                    regulariser += inverse.ln() - inverse - *mean * *mean + 1.0;
                }
                offset
            });
            let offset: Vec<f64> = offset.collect();
            (offset, regulariser)
        };
        let tasks = alpha.par_chunks_mut(TASK * latent).zip(counts.par_chunks(TASK)).enumerate();
        let (offsets, regularisers): (Vec<_>, Vec<f64>) = tasks.map(means).unzip();
        Self { alpha, offset: offsets.concat(), regulariser: regularisers.iter().sum() }
    }
}

fn view(rows: &Rows) -> MatRef<'_, f64> {
    MatRef::from_row_major_slice(rows.as_slice(), rows.len(), rows.dim())
}

/// Sums of the columns of row-major `[n, columns]`.
#[inline(always)]
fn column_sums(values: &[f64], columns: usize) -> Vec<f64> {
    let mut sums = vec![0.0; columns];
    for row in values.chunks_exact(columns) {
        sums.iter_mut().zip(row).for_each(|(sum, v)| *sum += v);
    }
    sums
}
