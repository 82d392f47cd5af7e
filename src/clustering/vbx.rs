//! Variational Bayes over a Gaussian mixture with a PLDA prior (C10): VBx without the hidden Markov model.
//! Depends on `math`.
//!
//! Landini, Profant, Diez, Burget: "Bayesian HMM clustering of x-vector sequences (VBx) in speaker diarization",
//! 2022. Symbols are the paper's: gamma responsibilities, pi priors, rho = V'y, alpha speaker means.

use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatMut, MatRef, Par};

use super::Params;
use crate::math::{Rows, vector};

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
    let (n, clusters, latent) = (y.len(), gamma.dim(), y.dim());
    let ratio = params.fa / params.fb;
    let constant = latent as f64 * std::f64::consts::TAU.ln();
    let g: Vec<f64> = y.iter().map(|row| -0.5 * (vector::dot(row, row) + constant)).collect();
    let mut rho = y.clone();
    for row in rho.as_mut_slice().chunks_exact_mut(latent) {
        row.iter_mut().zip(phi).for_each(|(v, phi)| *v *= phi.sqrt());
    }
    let mut pi = vec![1.0 / clusters as f64; clusters];
    let mut elbo: Vec<f64> = Vec::new();
    let mut alpha = Mat::zeros(clusters, latent);
    for _ in 0..params.max_iterations {
        matmul(alpha.as_mut(), Accum::Replace, view(&gamma).transpose(), view(&rho), ratio, Par::Seq);
        let speakers = Speakers::new(&mut alpha, &column_sums(&gamma), phi, ratio);
        {
            let gamma = MatMut::from_row_major_slice_mut(gamma.as_mut_slice(), n, clusters);
            matmul(gamma, Accum::Replace, view(&rho), alpha.transpose(), params.fa, Par::Seq);
        }
        let log_prior: Vec<f64> = pi.iter().map(|p| (p + 1e-8).ln()).collect();
        let mut evidence = 0.0;
        for (row, g) in gamma.as_mut_slice().chunks_exact_mut(clusters).zip(&g) {
            for (k, value) in row.iter_mut().enumerate() {
                *value += params.fa * (g - speakers.offset[k]) + log_prior[k];
            }
            let total = vector::log_sum_exp(row);
            row.iter_mut().for_each(|value| *value = (*value - total).exp());
            evidence += total;
        }
        pi = column_sums(&gamma);
        let total: f64 = pi.iter().sum();
        pi.iter_mut().for_each(|p| *p /= total);
        let bound = evidence + params.fb * 0.5 * speakers.regulariser;
        let gain = elbo.last().map(|last| bound - last);
        elbo.push(bound);
        if gain.is_some_and(|gain| gain < params.epsilon) {
            break;
        }
    }
    Vbx { gamma, pi, elbo }
}

/// Posterior of the speaker means, reduced to what the update of gamma and the ELBO need.
struct Speakers {
    /// `0.5 (invL + alpha^2) phi` of each cluster.
    offset: Vec<f64>,
    /// `sum(ln invL - invL - alpha^2 + 1)` over all clusters and dimensions.
    regulariser: f64,
}

impl Speakers {
    /// Turns `alpha`, which holds `Fa/Fb gamma' rho`, into the means, given the `counts` N_k of the clusters.
    fn new(alpha: &mut Mat<f64>, counts: &[f64], phi: &[f64], ratio: f64) -> Self {
        let mut offset = vec![0.0; counts.len()];
        let mut regulariser = 0.0;
        for (k, count) in counts.iter().enumerate() {
            for (d, phi) in phi.iter().enumerate() {
                let inverse = 1.0 / (1.0 + ratio * count * phi);
                let mean = inverse * alpha[(k, d)];
                alpha[(k, d)] = mean;
                offset[k] += 0.5 * (inverse + mean * mean) * phi;
                regulariser += inverse.ln() - inverse - mean * mean + 1.0;
            }
        }
        Self { offset, regulariser }
    }
}

fn view(rows: &Rows) -> MatRef<'_, f64> {
    MatRef::from_row_major_slice(rows.as_slice(), rows.len(), rows.dim())
}

fn column_sums(rows: &Rows) -> Vec<f64> {
    let mut sums = vec![0.0; rows.dim()];
    for row in rows.iter() {
        sums.iter_mut().zip(row).for_each(|(sum, v)| *sum += v);
    }
    sums
}
