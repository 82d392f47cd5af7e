//! Single-threaded matrix products on column-major slices. Parallelism lies above, over independent products, so
//! that results do not depend on the number of threads.

use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};

/// What happens to the previous content of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Output {
    /// It is overwritten.
    Replace,
    /// The product is added to it.
    Add,
}

/// `out[m, n] (+)= a[m, k] * b[k, n]`, all column-major and dense: `n` and `k` follow from the lengths.
pub(super) fn gemm(out: &mut [f32], mode: Output, a: &[f32], b: &[f32], m: usize) {
    let (k, n) = (a.len() / m, out.len() / m);
    let accumulate = match mode {
        Output::Replace => Accum::Replace,
        Output::Add => Accum::Add,
    };
    matmul(
        MatMut::from_column_major_slice_mut(out, m, n),
        accumulate,
        MatRef::from_column_major_slice(a, m, k),
        MatRef::from_column_major_slice(b, k, n),
        1.0,
        Par::Seq,
    );
}

/// Column-major copy of the row-major matrix `[rows, columns]`.
pub(super) fn transposed(row_major: &[f32], rows: usize, columns: usize) -> Vec<f32> {
    (0..rows * columns).map(|i| row_major[(i % rows) * columns + i / rows]).collect()
}
