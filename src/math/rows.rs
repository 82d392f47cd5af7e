//! A list of vectors of equal length. Depends on `math::vector` only.

use super::vector;

/// Row-major `[len, dim]` matrix of f64, used as a list of vectors.
#[derive(Debug, Clone, PartialEq)]
pub struct Rows {
    data: Vec<f64>,
    dim: usize,
}

impl Rows {
    /// `len` rows of zeros.
    ///
    /// # Panics
    /// If `dim` is 0.
    pub fn zeros(len: usize, dim: usize) -> Self {
        Self::new(vec![0.0; len * dim], dim)
    }

    /// Wraps row-major `data`.
    ///
    /// # Panics
    /// If `dim` is 0 or the length of `data` is no multiple of it.
    pub fn new(data: Vec<f64>, dim: usize) -> Self {
        assert!(dim > 0 && data.len().is_multiple_of(dim), "{} values in rows of {dim}", data.len());
        Self { data, dim }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.data.len() / self.dim
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.data.is_empty()
    }

    /// Length of each row.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Row `i`.
    pub fn row(&self, i: usize) -> &[f64] {
        &self.data[i * self.dim..(i + 1) * self.dim]
    }

    /// Row `i`, writable.
    pub fn row_mut(&mut self, i: usize) -> &mut [f64] {
        &mut self.data[i * self.dim..(i + 1) * self.dim]
    }

    /// The rows in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[f64]> {
        self.data.chunks_exact(self.dim)
    }

    /// The values in row-major order.
    pub fn as_slice(&self) -> &[f64] {
        &self.data
    }

    /// The values in row-major order, writable.
    pub fn as_mut_slice(&mut self) -> &mut [f64] {
        &mut self.data
    }

    /// The same rows, each scaled to unit length.
    pub fn normalised(mut self) -> Self {
        self.data.chunks_exact_mut(self.dim).for_each(vector::normalise);
        self
    }
}
