//! k-means for a given number of speakers (C11). Depends on `math`.
//!
//! Deterministic: greedy k-means++ seeding (Arthur and Vassilvitskii 2007) driven by a fixed generator, several
//! starts, Lloyd iterations until no label changes. The reference uses scikit-learn with a fixed seed, whose random
//! sequence no other program has; the optimum sought is the same.

use crate::math::random::Random;
use crate::math::simd::vectorised;
use crate::math::{Rows, vector};

/// Starts, of which the one with the smallest sum of squared distances is kept (C11).
const STARTS: u64 = 3;
/// Seed of the first start (C11).
const SEED: u64 = 42;
/// Most Lloyd iterations of one start.
const MAX_ITERATIONS: usize = 300;

/// Label of every point, for `clusters` clusters numbered by their first point.
///
/// Every label below `clusters` occurs, unless there are fewer distinct points than clusters; then each distinct
/// point has its own label.
///
/// # Panics
/// If `clusters` is 0.
pub fn cluster(points: &Rows, clusters: usize) -> Vec<usize> {
    assert!(clusters > 0, "no clusters");
    let mut best: Option<(f64, Vec<usize>)> = None;
    for start in 0..STARTS {
        let centres = seed(points, clusters, &mut Random::new(SEED + start));
        let (inertia, labels) = lloyd(points, centres);
        if best.as_ref().is_none_or(|(least, _)| inertia < *least) {
            best = Some((inertia, labels));
        }
    }
    best.map_or_else(Vec::new, |(_, labels)| number_by_first(labels))
}

/// Renumbers labels in the order of their first occurrence, without gaps.
fn number_by_first(mut labels: Vec<usize>) -> Vec<usize> {
    let mut order: Vec<Option<usize>> = vec![None; labels.iter().max().map_or(0, |max| max + 1)];
    let mut next = 0;
    for label in &mut labels {
        *label = *order[*label].get_or_insert_with(|| {
            next += 1;
            next - 1
        });
    }
    labels
}

/// Centres picked one after the other, each the best of `2 + ln(clusters)` draws in which far points are likelier.
/// Fewer than asked if all points coincide with a centre.
fn seed(points: &Rows, clusters: usize, random: &mut Random) -> Rows {
    let n = points.len();
    let trials = 2 + (clusters as f64).ln() as usize;
    let mut chosen = Vec::new();
    let mut nearest = vec![f64::INFINITY; n];
    while chosen.len() < clusters.min(n) {
        let total: f64 = nearest.iter().sum();
        if total == 0.0 {
            break;
        }
        let candidates: Vec<usize> = if chosen.is_empty() {
            vec![(random.unit() * n as f64) as usize]
        } else {
            (0..trials).map(|_| draw(&nearest, random.unit() * total)).collect()
        };
        let mut best: Option<(f64, usize, Vec<f64>)> = None;
        for candidate in candidates {
            let updated = nearest_with(points, candidate, &nearest);
            let inertia = updated.iter().sum();
            if best.as_ref().is_none_or(|(least, ..)| inertia < *least) {
                best = Some((inertia, candidate, updated));
            }
        }
        let Some((_, candidate, updated)) = best else { break };
        chosen.push(candidate);
        nearest = updated;
    }
    Rows::new(chosen.iter().flat_map(|&i| points.row(i)).copied().collect(), points.dim())
}

/// First index whose cumulated weight exceeds `target`; a point of weight 0 is never drawn.
fn draw(weights: &[f64], target: f64) -> usize {
    let mut sum = 0.0;
    let mut last = 0;
    for (i, &weight) in weights.iter().enumerate().filter(|(_, weight)| **weight > 0.0) {
        sum += weight;
        last = i;
        if sum > target {
            break;
        }
    }
    last
}

/// Squared distances to the nearest centre once point `centre` is one.
fn nearest_with(points: &Rows, centre: usize, nearest: &[f64]) -> Vec<f64> {
    vectorised!({
        let centre = points.row(centre);
        let mut updated = nearest.to_vec();
        for (row, least) in points.iter().zip(&mut updated) {
            *least = vector::squared_distance(row, centre).min(*least);
        }
        updated
    })
}

/// Lloyd iterations from `centres`; the sum of squared distances and the labels.
fn lloyd(points: &Rows, mut centres: Rows) -> (f64, Vec<usize>) {
    let mut labels = Vec::new();
    let mut inertia = 0.0;
    for _ in 0..MAX_ITERATIONS {
        let mut distances = Vec::new();
        let mut assigned = Vec::new();
        for (label, distance) in nearest_centres(points, &centres) {
            assigned.push(label);
            distances.push(distance);
        }
        fill_empty(&mut assigned, &mut distances, centres.len());
        inertia = distances.iter().sum();
        if assigned == labels {
            break;
        }
        labels = assigned;
        centres = means(points, &labels, centres.len());
    }
    (inertia, labels)
}

/// Label and squared distance of the nearest centre of every point, the first of equals.
fn nearest_centres(points: &Rows, centres: &Rows) -> Vec<(usize, f64)> {
    vectorised!({
        let mut result = Vec::with_capacity(points.len());
        for row in points.iter() {
            let mut best = (0, f64::INFINITY);
            for (k, centre) in centres.iter().enumerate() {
                if let Some(squared) = vector::squared_distance_below(row, centre, best.1) {
                    best = (k, squared);
                }
            }
            result.push(best);
        }
        result
    })
}

/// Gives every empty cluster the point farthest from its centre, out of clusters with several points.
fn fill_empty(labels: &mut [usize], distances: &mut [f64], clusters: usize) {
    let mut sizes = vec![0usize; clusters];
    labels.iter().for_each(|&label| sizes[label] += 1);
    for k in 0..clusters {
        if sizes[k] > 0 {
            continue;
        }
        let movable = (0..labels.len()).filter(|&i| sizes[labels[i]] > 1);
        // max_by takes the last of equals; reversed, that is the first point.
        if let Some(i) = movable.rev().max_by(|&a, &b| distances[a].total_cmp(&distances[b])) {
            sizes[labels[i]] -= 1;
            (labels[i], distances[i], sizes[k]) = (k, 0.0, 1);
        }
    }
}

/// Mean of the points of each cluster, `[clusters, dim]`; zeros for an empty one.
pub fn means(points: &Rows, labels: &[usize], clusters: usize) -> Rows {
    let mut sums = Rows::zeros(clusters, points.dim());
    let mut sizes = vec![0usize; clusters];
    for (row, &label) in points.iter().zip(labels) {
        sizes[label] += 1;
        sums.row_mut(label).iter_mut().zip(row).for_each(|(sum, v)| *sum += v);
    }
    for (k, &size) in sizes.iter().enumerate() {
        sums.row_mut(k).iter_mut().for_each(|v| *v /= size.max(1) as f64);
    }
    sums
}
