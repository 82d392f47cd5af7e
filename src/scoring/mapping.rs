//! The best one-to-one mapping between two sets of speakers.

use pathfinding::kuhn_munkres::kuhn_munkres;
use pathfinding::matrix::Matrix;

use super::Tally;

/// Pairs reference with hypothesis speakers (indices into the names of the tally) one to one, such that the pairs
/// share the most time in all. Pairs that share none are left out.
pub fn mapping(tally: &Tally) -> Vec<(usize, usize)> {
    let weights = &tally.shared;
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
