//! The best one-to-one mapping between two sets of speakers.

use std::collections::BTreeMap;

use pathfinding::kuhn_munkres::kuhn_munkres;
use pathfinding::matrix::Matrix;

/// Pairs rows with columns one to one such that the sum of `weights` (all positive, absent pairs weigh nothing) is
/// largest. Only pairs present in `weights` are returned, sorted by row.
pub(super) fn best(weights: &BTreeMap<(usize, usize), i64>) -> Vec<(usize, usize)> {
    let rows = distinct(weights.keys().map(|pair| pair.0));
    let columns = distinct(weights.keys().map(|pair| pair.1));
    if rows.is_empty() {
        return Vec::new();
    }
    // The solver wants no more rows than columns.
    let transposed = rows.len() > columns.len();
    let (short, long) = if transposed { (&columns, &rows) } else { (&rows, &columns) };
    let oriented = |a: usize, b: usize| if transposed { (b, a) } else { (a, b) };
    let matrix = Matrix::from_fn(short.len(), long.len(), |(i, j)| {
        weights.get(&oriented(short[i], long[j])).copied().unwrap_or(0)
    });
    let (_, assigned) = kuhn_munkres(&matrix);
    let mut pairs: Vec<_> = assigned.iter().enumerate().map(|(i, &j)| oriented(short[i], long[j])).collect();
    pairs.retain(|pair| weights.contains_key(pair));
    pairs.sort_unstable();
    pairs
}

fn distinct(indices: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut indices: Vec<usize> = indices.collect();
    indices.sort_unstable();
    indices.dedup();
    indices
}
