//! From x-vectors to the space where PLDA's within-class covariance is the identity (C9). Depends on `math`.

use super::ClusteringError;
use crate::math::{Rows, vector};
use crate::models::pack::PldaArrays;

/// The centring, LDA and PLDA that turn an embedding into the input of VBx (C9).
///
/// With `W = inv(tr' tr)` and `B = inv((tr'/psi) tr)` the generalised eigenproblem `B v = phi W v`, `v' W v = 1` of
/// the reference has the closed solution `v_i = tr' e_i`, `phi_i = psi_i`: the rows of `tr` are the eigenvectors. So
/// nothing is decomposed here, the rows are only sorted by descending `psi`. (Signs of eigenvectors cancel in VBx.)
#[derive(Debug, Clone)]
pub struct Plda {
    mean1: Vec<f64>,
    mean2: Vec<f64>,
    /// Transposed: `[latent, dim]`.
    lda: Rows,
    mu: Vec<f64>,
    /// `[latent, latent]`, rows by descending `phi`.
    tr: Rows,
    phi: Vec<f64>,
}

impl Plda {
    /// Checks the shapes and prepares the transform.
    ///
    /// # Errors
    /// [`ClusteringError::Plda`] if the shapes do not fit each other, a value is not finite or a variance negative.
    pub fn new(arrays: PldaArrays) -> Result<Self, ClusteringError> {
        let PldaArrays { mean1, mean2, lda, mu, tr, psi } = arrays;
        let (dim, latent) = (mean1.len(), psi.len());
        let shapes = [mean2.len(), mu.len()] == [latent; 2]
            && lda.len() == dim * latent
            && tr.len() == latent * latent;
        if dim == 0 || latent == 0 || !shapes {
            return Err(ClusteringError::Plda("shapes do not fit each other"));
        }
        if ![&mean1, &mean2, &lda, &mu, &tr, &psi].into_iter().flatten().all(|v| v.is_finite()) {
            return Err(ClusteringError::Plda("a value is not finite"));
        }
        if psi.iter().any(|&v| v < 0.0) {
            return Err(ClusteringError::Plda("a between-class variance is negative"));
        }
        let mut order: Vec<usize> = (0..latent).collect();
        order.sort_by(|&a, &b| psi[b].total_cmp(&psi[a]));
        let transposed =
            (0..latent).flat_map(|j| (0..dim).map(move |i| i * latent + j)).map(|at| lda[at]).collect();
        let sorted = order.iter().flat_map(|&i| tr[i * latent..(i + 1) * latent].iter().copied()).collect();
        Ok(Self {
            mean1,
            mean2,
            lda: Rows::new(transposed, dim),
            mu,
            tr: Rows::new(sorted, latent),
            phi: order.iter().map(|&i| psi[i]).collect(),
        })
    }

    /// Length of the embeddings it takes.
    pub fn dim(&self) -> usize {
        self.mean1.len()
    }

    /// Between-class variances phi, descending (C9).
    pub fn phi(&self) -> &[f64] {
        &self.phi
    }

    /// The embedding centred, length-normalised and reduced by LDA: `post_xvec`, of length sqrt(latent) (C9).
    pub fn reduce(&self, embedding: &[f64]) -> Vec<f64> {
        let mut x: Vec<f64> = embedding.iter().zip(&self.mean1).map(|(v, mean)| v - mean).collect();
        scale_to(&mut x, (self.dim() as f64).sqrt());
        let mut y: Vec<f64> =
            self.lda.iter().zip(&self.mean2).map(|(row, mean)| vector::dot(row, &x) - mean).collect();
        scale_to(&mut y, (self.phi.len() as f64).sqrt());
        y
    }

    /// The latent vector of a [`reduce`](Self::reduce)d embedding: `post_plda` up to the signs of its values (C9).
    pub fn project(&self, reduced: &[f64]) -> Vec<f64> {
        let centred: Vec<f64> = reduced.iter().zip(&self.mu).map(|(v, mean)| v - mean).collect();
        self.tr.iter().map(|row| vector::dot(row, &centred)).collect()
    }
}

fn scale_to(x: &mut [f64], length: f64) {
    let factor = length / vector::norm(x);
    x.iter_mut().for_each(|v| *v *= factor);
}
