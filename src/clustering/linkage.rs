//! Centroid linkage on Euclidean distance (C8), by the generic algorithm of Müllner, "Modern hierarchical,
//! agglomerative clustering algorithms" (arXiv:1109.2378), figure 3. Depends on `math`.
//!
//! The algorithm asks a `Store` for distances. `Matrix` keeps all of them, as SciPy does, and reproduces its
//! merges including ties. Beyond [`MAX_MATRIX_POINTS`] points `Centroids` keeps only the centroids and computes
//! distances when they are asked for: the same tree up to rounding, slower, with memory linear in the points.

use pulp::Arch;
use rayon::prelude::*;

use super::heap::Heap;
use crate::math::{Rows, vector};

/// Most points for which all distances are kept: n(n-1)/2 f64, 256 MB here. A recording with dense speech brings
/// about 4,700 points an hour. Both ways take time that grows with the square of the points, and at this size the
/// one in linear memory is about a third slower.
pub const MAX_MATRIX_POINTS: usize = 8_000;

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
    merge_all(Centroids { rows: points.clone(), arch: Arch::new() }, points.len())
}

/// Distances between the clusters that are left; a cluster is named by the place of one of its points.
trait Store {
    /// Distance between the clusters at two different places.
    fn distance(&self, a: usize, b: usize) -> f64;
    /// The nearest cluster after place `a`, the first of equals.
    fn nearest_after(&self, a: usize, sizes: &[usize]) -> Option<(usize, f64)>;
    /// The clusters before place `a` that are nearer to it than `limits` says, ascending, with their distances.
    fn nearer_before(&self, a: usize, sizes: &[usize], limits: &Heap) -> Vec<(usize, f64)>;
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
        let (from, into, height) = closest_pair(&store, &mut heap, &mut neighbours, &sizes);
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
        for (a, distance) in store.nearer_before(into, &sizes, &heap) {
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
    store: &impl Store,
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
struct Matrix {
    /// `distances[condensed(a, b)]` for a < b, row by row.
    distances: Vec<f64>,
    n: usize,
}

impl Matrix {
    fn new(points: &Rows) -> Self {
        let n = points.len();
        let mut distances = vec![0.0; n * n.saturating_sub(1) / 2];
        let mut rows = Vec::with_capacity(n);
        let mut rest = distances.as_mut_slice();
        for a in 0..n {
            let (row, tail) = rest.split_at_mut(n - 1 - a);
            rows.push((a, row));
            rest = tail;
        }
        let arch = Arch::new();
        rows.into_par_iter().for_each(|(a, row)| {
            arch.dispatch(
                #[inline(always)]
                || {
                    for (i, distance) in row.iter_mut().enumerate() {
                        *distance = vector::squared_distance(points.row(a), points.row(a + 1 + i)).sqrt();
                    }
                },
            );
        });
        Self { distances, n }
    }

    fn condensed(&self, a: usize, b: usize) -> usize {
        let (a, b) = (a.min(b), a.max(b));
        a * self.n - a * (a + 1) / 2 + b - a - 1
    }
}

impl Store for Matrix {
    fn distance(&self, a: usize, b: usize) -> f64 {
        self.distances[self.condensed(a, b)]
    }

    fn nearest_after(&self, a: usize, sizes: &[usize]) -> Option<(usize, f64)> {
        if a + 1 >= self.n {
            return None;
        }
        let first = self.condensed(a, a + 1);
        let row = &self.distances[first..first + self.n - 1 - a];
        let mut best: Option<(usize, f64)> = None;
        for (i, (&distance, &size)) in row.iter().zip(&sizes[a + 1..]).enumerate() {
            if size > 0 && best.is_none_or(|(_, d)| distance < d) {
                best = Some((a + 1 + i, distance));
            }
        }
        best
    }

    fn nearer_before(&self, a: usize, sizes: &[usize], limits: &Heap) -> Vec<(usize, f64)> {
        (0..a)
            .filter(|&b| sizes[b] > 0)
            .map(|b| (b, self.distance(a, b)))
            .filter(|&(b, distance)| distance < limits.value(b))
            .collect()
    }

    fn merge(&mut self, from: usize, into: usize, height: f64, sizes: &[usize]) {
        let (x, y) = (sizes[from] as f64, sizes[into] as f64);
        let between = x * y * height * height / (x + y);
        for b in (0..self.n).filter(|&b| sizes[b] > 0 && b != from && b != into) {
            let (to_from, to_into) = (self.distance(b, from), self.distance(b, into));
            let squared = (x * to_from * to_from + y * to_into * to_into - between) / (x + y);
            let place = self.condensed(b, into);
            // Rounding can push the square of a zero distance below zero.
            self.distances[place] = squared.max(0.0).sqrt();
        }
    }
}

/// One centroid per cluster; distances are computed on demand.
struct Centroids {
    rows: Rows,
    arch: Arch,
}

impl Store for Centroids {
    fn distance(&self, a: usize, b: usize) -> f64 {
        vector::squared_distance(self.rows.row(a), self.rows.row(b)).sqrt()
    }

    fn nearest_after(&self, a: usize, sizes: &[usize]) -> Option<(usize, f64)> {
        let row = self.rows.row(a);
        let nearest_in = |task: &[usize], first: usize| {
            self.arch.dispatch(
                #[inline(always)]
                || {
                    let mut best: Option<(usize, f64)> = None;
                    for b in (first..first + task.len()).filter(|&b| sizes[b] > 0) {
                        let limit = best.map_or(f64::INFINITY, |(_, squared)| squared);
                        if let Some(squared) = vector::squared_distance_below(row, self.rows.row(b), limit) {
                            best = Some((b, squared));
                        }
                    }
                    best
                },
            )
        };
        sizes[a + 1..]
            .par_chunks(TASK)
            .enumerate()
            .filter_map(|(t, task)| nearest_in(task, a + 1 + t * TASK))
            .reduce_with(|best, other| if (other.1, other.0) < (best.1, best.0) { other } else { best })
            .map(|(b, squared)| (b, squared.sqrt()))
    }

    fn nearer_before(&self, a: usize, sizes: &[usize], limits: &Heap) -> Vec<(usize, f64)> {
        let row = self.rows.row(a);
        let nearer_in = |task: &[usize], first: usize| {
            self.arch.dispatch(
                #[inline(always)]
                || {
                    let mut nearer = Vec::new();
                    for b in (first..first + task.len()).filter(|&b| sizes[b] > 0) {
                        let limit = limits.value(b);
                        // The squared limit is only a filter and rounded up; the distances themselves decide.
                        let squared = limit * limit * (1.0 + 4.0 * f64::EPSILON);
                        let below = vector::squared_distance_below(row, self.rows.row(b), squared);
                        if let Some(distance) = below.map(f64::sqrt).filter(|&d| d < limit) {
                            nearer.push((b, distance));
                        }
                    }
                    nearer
                },
            )
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
