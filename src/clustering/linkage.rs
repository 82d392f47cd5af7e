//! Centroid linkage on Euclidean distance (C8), by the generic algorithm of Müllner, "Modern hierarchical,
//! agglomerative clustering algorithms" (arXiv:1109.2378), figure 3. Depends on `math`.
//!
//! The algorithm asks a `Store` for distances. `Matrix` keeps all of them, as SciPy does, and reproduces its
//! merges including ties. Beyond [`MAX_MATRIX_POINTS`] points `Centroids` keeps only the centroids and computes
//! distances when they are asked for: the same tree up to rounding, slower, with memory linear in the points.

use rayon::prelude::*;

use super::heap::Heap;
use crate::math::simd::vectorised;
use crate::math::{Rows, vector};

/// Most points for which all distances are kept: 256 MB of f64. A recording with dense speech brings about 4,700 points
/// an hour. Both ways take time that grows with the square of the points; the one in linear memory is slower.
pub const MAX_MATRIX_POINTS: usize = 5_600;

/// Rows of the matrix of distances that are computed together.
const ROWS: usize = 8;
/// Rows that are mirrored together, and clusters that are looked at together.
const SQUARE: usize = 32;

/// Points that one parallel task compares at least.
const TASK: usize = 1_024;

/// One merge of the tree. Ids below n are points, n + k is the cluster that merge k made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Merge {
    /// The smaller id.
    pub left: usize,
    /// The larger id.
    pub right: usize,
    /// Distance between the two centroids.
    pub height: f64,
}

/// The n - 1 merges of `points` `[n, dim]`, in the order of SciPy's `linkage(points, "centroid")`.
pub fn linkage(points: &Rows) -> Vec<Merge> {
    if points.len() <= MAX_MATRIX_POINTS {
        linkage_in_matrix(points)
    } else {
        linkage_in_linear_memory(points)
    }
}

/// [`linkage`] with all distances in memory.
pub fn linkage_in_matrix(points: &Rows) -> Vec<Merge> {
    merge_all(Matrix::new(points), points.len())
}

/// [`linkage`] with memory linear in the points.
pub fn linkage_in_linear_memory(points: &Rows) -> Vec<Merge> {
    merge_all(Centroids { rows: points.clone() }, points.len())
}

/// Distances between the clusters that are left; a cluster is named by the place of one of its points.
trait Store {
    /// Distance between the clusters at two different places.
    fn distance(&self, a: usize, b: usize) -> f64;
    /// The nearest cluster after place `a`, the first of equals.
    fn nearest_after(&mut self, a: usize, sizes: &[usize]) -> Option<(usize, f64)>;
    /// The clusters before place `a` that are nearer to it than `limits` says, ascending, with their distances. `a` was
    /// merged last.
    fn nearer_before(&self, a: usize, sizes: &[usize], limits: &[f64]) -> Vec<(usize, f64)>;
    /// Merges the cluster at `from`, `height` away, into the one at `into`. `sizes` are those before the merge.
    fn merge(&mut self, from: usize, into: usize, height: f64, sizes: &[usize]);
}

fn merge_all(mut store: impl Store, n: usize) -> Vec<Merge> {
    let mut merges = Vec::with_capacity(n.saturating_sub(1));
    // 0 marks places whose cluster was merged into a later place.
    let mut sizes = vec![1; n];
    let mut ids: Vec<usize> = (0..n).collect();
    let (mut neighbours, lower_bounds): (Vec<_>, Vec<_>) =
        (0..n.saturating_sub(1)).filter_map(|a| store.nearest_after(a, &sizes)).unzip();
    let mut heap = Heap::new(lower_bounds);
    for k in 0..n.saturating_sub(1) {
        let (from, into, height) = closest_pair(&mut store, &mut heap, &mut neighbours, &sizes);
        heap.remove_min();
        let (left, right) = (ids[from].min(ids[into]), ids[from].max(ids[into]));
        merges.push(Merge { left, right, height });
        store.merge(from, into, height, &sizes);
        sizes[into] += sizes[from];
        sizes[from] = 0;
        ids[into] = n + k;
        for a in 0..from {
            if sizes[a] > 0 && neighbours[a] == from {
                neighbours[a] = into;
            }
        }
        for (a, distance) in store.nearer_before(into, &sizes, heap.by_key()) {
            neighbours[a] = into;
            heap.set(a, distance);
        }
        if let Some((neighbour, distance)) = store.nearest_after(into, &sizes) {
            neighbours[into] = neighbour;
            heap.set(into, distance);
        }
    }
    merges
}

/// The two closest clusters. Entries of the heap are lower bounds; those met on the way are made exact.
fn closest_pair(
    store: &mut impl Store,
    heap: &mut Heap,
    neighbours: &mut [usize],
    sizes: &[usize],
) -> (usize, usize, f64) {
    // Every entry needs to be made exact once at most.
    for _ in 0..sizes.len() {
        let (a, bound) = heap.min();
        if store.distance(a, neighbours[a]) == bound {
            break;
        }
        let Some((neighbour, distance)) = store.nearest_after(a, sizes) else { break };
        neighbours[a] = neighbour;
        heap.set(a, distance);
    }
    let (a, height) = heap.min();
    (a, neighbours[a], height)
}

/// All distances, updated by the Lance-Williams formula.
///
/// The matrix is square, so that every search reads one row from left to right. A merge writes one row only. Other rows
/// take the changed column over when they are read next, which most never are.
struct Matrix {
    /// `[n, n]`.
    distances: Vec<f64>,
    n: usize,
    /// For every place infinity if its cluster is no more, else 0.
    gone: Vec<f64>,
    /// For every row the number of merges that it knows.
    knows: Vec<usize>,
    /// Places of the clusters that merges made, with the number of the merge, ascending.
    merged: Vec<(usize, usize)>,
    merges: usize,
}

impl Matrix {
    fn new(points: &Rows) -> Self {
        let n = points.len();
        let mut distances = vec![0.0; n * n];
        distances.par_chunks_mut(ROWS * n).enumerate().for_each(|(task, rows)| {
            vectorised!(distance_rows(points, task * ROWS, rows));
        });
        mirror(&mut distances, n, 0);
        Self { distances, n, gone: vec![0.0; n], knows: vec![0; n], merged: Vec::new(), merges: 0 }
    }

    fn row(&self, a: usize) -> &[f64] {
        &self.distances[a * self.n..(a + 1) * self.n]
    }

    /// Brings row `a` up to date.
    fn refresh(&mut self, a: usize) {
        let known = self.knows[a];
        for &(b, _) in self.merged.iter().rev().take_while(|(_, merge)| *merge > known) {
            self.distances[a * self.n + b] = self.distances[b * self.n + a];
        }
        self.knows[a] = self.merges;
    }
}

/// Distances of the points from `first` on, a row of `rows` each, to one another and to all points behind them.
#[inline(always)]
fn distance_rows(points: &Rows, first: usize, rows: &mut [f64]) {
    let n = points.len();
    let count = rows.len() / n;
    // Each point is fetched once for all rows.
    for b in first..n {
        let point = points.row(b);
        for i in (0..count - count % 4).step_by(4) {
            let four = std::array::from_fn(|k| points.row(first + i + k));
            let squared: [f64; 4] = vector::squared_distances(four, point);
            for (k, squared) in squared.into_iter().enumerate() {
                rows[(i + k) * n + b] = squared.sqrt();
            }
        }
        for i in count - count % 4..count {
            rows[i * n + b] = vector::squared_distance(points.row(first + i), point).sqrt();
        }
    }
}

/// Copies what is right of the diagonal to its left, for `rows` of length `n`, of which row 0 has the number `first`.
fn mirror(rows: &mut [f64], n: usize, first: usize) {
    let count = rows.len() / n;
    if count <= SQUARE {
        for i in 0..count {
            for j in i + 1..count {
                rows[j * n + first + i] = rows[i * n + first + j];
            }
        }
        return;
    }
    let half = count / 2;
    let (head, tail) = rows.split_at_mut(half * n);
    tail.par_chunks_mut(SQUARE * n).enumerate().for_each(|(task, rows)| {
        for (i, from) in head.chunks_exact(n).enumerate() {
            let from = &from[first + half + task * SQUARE..];
            for (row, &distance) in rows.chunks_exact_mut(n).zip(from) {
                row[first + i] = distance;
            }
        }
    });
    rayon::join(|| mirror(head, n, first), || mirror(tail, n, first + half));
}

impl Store for Matrix {
    fn distance(&self, a: usize, b: usize) -> f64 {
        let (row, column) = if self.knows[a] >= self.knows[b] { (a, b) } else { (b, a) };
        self.distances[row * self.n + column]
    }

    fn nearest_after(&mut self, a: usize, _: &[usize]) -> Option<(usize, f64)> {
        self.refresh(a);
        let (row, gone) = (&self.row(a)[a + 1..], &self.gone[a + 1..]);
        let least = vectorised!(least_sum(row, gone));
        let place = row.iter().zip(gone).position(|(distance, gone)| distance + gone == least)?;
        least.is_finite().then_some((a + 1 + place, least))
    }

    fn nearer_before(&self, a: usize, _: &[usize], limits: &[f64]) -> Vec<(usize, f64)> {
        let (row, gone, limits) = (&self.row(a)[..a], &self.gone[..a], &limits[..a]);
        vectorised!({
            let mut nearer = Vec::new();
            for first in (0..a).step_by(SQUARE) {
                let block = first..a.min(first + SQUARE);
                let (row, gone, limits) = (&row[block.clone()], &gone[block.clone()], &limits[block]);
                let is_nearer = |((d, gone), limit): ((&f64, &f64), &f64)| d + gone < *limit;
                // Most blocks have none; to look at all of one without a branch is quick.
                if row.iter().zip(gone).zip(limits).fold(false, |any, entry| any | is_nearer(entry)) {
                    let entries = row.iter().zip(gone).zip(limits).enumerate();
                    let found = entries.filter(|(_, entry)| is_nearer(*entry));
                    nearer.extend(found.map(|(i, ((distance, _), _))| (first + i, *distance)));
                }
            }
            nearer
        })
    }

    fn merge(&mut self, from: usize, into: usize, height: f64, sizes: &[usize]) {
        self.refresh(from);
        self.refresh(into);
        let (x, y) = (sizes[from] as f64, sizes[into] as f64);
        let between = x * y * height * height / (x + y);
        let n = self.n;
        let (head, tail) = self.distances.split_at_mut(from.max(into) * n);
        let (low, high) = (&mut head[from.min(into) * n..][..n], &mut tail[..n]);
        let (to_from, to_into) = if from < into { (low, high) } else { (high, low) };
        // The whole row, also where a cluster is no more: that is quicker than to choose.
        vectorised!({
            for (to_into, to_from) in to_into.iter_mut().zip(&*to_from) {
                let squared = (x * to_from * to_from + y * *to_into * *to_into - between) / (x + y);
                // Rounding can push the square of a zero distance below zero.
                *to_into = squared.max(0.0).sqrt();
            }
        });
        self.gone[from] = f64::INFINITY;
        self.merges += 1;
        self.knows[into] = self.merges;
        self.merged.retain(|&(place, _)| place != from && place != into);
        self.merged.push((into, self.merges));
    }
}

/// The least of the sums of `a` and `b`, infinity if there is none.
#[inline(always)]
fn least_sum(a: &[f64], b: &[f64]) -> f64 {
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<8>(), b.as_chunks::<8>());
    let mut least = [f64::INFINITY; 8];
    for (a, b) in a.iter().zip(b) {
        least = std::array::from_fn(|i| if a[i] + b[i] < least[i] { a[i] + b[i] } else { least[i] });
    }
    let rest = a_rest.iter().zip(b_rest).map(|(a, b)| a + b);
    least.into_iter().chain(rest).fold(f64::INFINITY, f64::min)
}

/// One centroid per cluster; distances are computed on demand.
struct Centroids {
    rows: Rows,
}

impl Store for Centroids {
    fn distance(&self, a: usize, b: usize) -> f64 {
        vector::squared_distance(self.rows.row(a), self.rows.row(b)).sqrt()
    }

    fn nearest_after(&mut self, a: usize, sizes: &[usize]) -> Option<(usize, f64)> {
        let row = self.rows.row(a);
        let nearest_in = |task: &[usize], first: usize| {
            vectorised!({
                let mut best: Option<(usize, f64)> = None;
                for b in (first..first + task.len()).filter(|&b| sizes[b] > 0) {
                    let limit = best.map_or(f64::INFINITY, |(_, squared)| squared);
                    if let Some(squared) = vector::squared_distance_below(row, self.rows.row(b), limit) {
                        best = Some((b, squared));
                    }
                }
                best
            })
        };
        sizes[a + 1..]
            .par_chunks(TASK)
            .enumerate()
            .filter_map(|(t, task)| nearest_in(task, a + 1 + t * TASK))
            .reduce_with(|best, other| if (other.1, other.0) < (best.1, best.0) { other } else { best })
            .map(|(b, squared)| (b, squared.sqrt()))
    }

    fn nearer_before(&self, a: usize, sizes: &[usize], limits: &[f64]) -> Vec<(usize, f64)> {
        let row = self.rows.row(a);
        let nearer_in = |task: &[usize], first: usize| {
            vectorised!({
                let mut nearer = Vec::new();
                for b in (first..first + task.len()).filter(|&b| sizes[b] > 0) {
                    let limit = limits[b];
                    // The squared limit is only a filter and rounded up; the distances themselves decide.
                    let squared = limit * limit * (1.0 + 4.0 * f64::EPSILON);
                    let below = vector::squared_distance_below(row, self.rows.row(b), squared);
                    if let Some(distance) = below.map(f64::sqrt).filter(|&d| d < limit) {
                        nearer.push((b, distance));
                    }
                }
                nearer
            })
        };
        let tasks = sizes[..a].par_chunks(TASK).enumerate();
        tasks.flat_map_iter(|(t, task)| nearer_in(task, t * TASK)).collect()
    }

    fn merge(&mut self, from: usize, into: usize, _height: f64, sizes: &[usize]) {
        let share = sizes[from] as f64 / (sizes[from] + sizes[into]) as f64;
        let from = self.rows.row(from).to_vec();
        for (y, x) in self.rows.row_mut(into).iter_mut().zip(&from) {
            *y += share * (x - *y);
        }
    }
}
