//! Agglomerative clustering with centroid linkage (C8). Depends on `math`; the linkage itself is in `linkage`.
//!
//! Numbers the clusters as SciPy's `fcluster` does, because their order becomes the order of the speakers.

use super::linkage::{Merge, linkage};
use crate::math::Rows;

/// Flat cluster of every row: the largest subtrees of the centroid linkage in which no merge is higher than
/// `threshold` (C8).
///
/// `points` is `[n, dim]`, L2-normalised by the caller. Labels count from 0 without gaps. Centroid linkage can
/// invert, so the largest merge of the whole subtree decides, not the topmost one.
pub fn cluster(points: &Rows, threshold: f64) -> Vec<usize> {
    match points.len() {
        0 => Vec::new(),
        n => flat_labels(&linkage(points), n, threshold),
    }
}

/// Cuts the tree of `n` leaves at `threshold`; labels in SciPy's order: left subtree, right subtree, then leaves
/// that hang directly on a node (C8).
pub fn flat_labels(tree: &[Merge], n: usize, threshold: f64) -> Vec<usize> {
    let highest = highest_merges(tree, n);
    let mut labels = vec![0; n];
    let mut clusters = 0;
    let mut new_cluster = || {
        clusters += 1;
        clusters - 1
    };
    let mut stack: Vec<_> =
        tree.len().checked_sub(1).map(|root| Visit::Subtrees(root, None)).into_iter().collect();
    while let Some(visit) = stack.pop() {
        match visit {
            Visit::Subtrees(node, above) => {
                let cluster = above.or_else(|| (highest[node] <= threshold).then(&mut new_cluster));
                stack.push(Visit::Leaves(node, cluster));
                let subtrees = [tree[node].right, tree[node].left].into_iter().filter(|&child| child >= n);
                stack.extend(subtrees.map(|child| Visit::Subtrees(child - n, cluster)));
            }
            Visit::Leaves(node, cluster) => {
                for leaf in [tree[node].left, tree[node].right].into_iter().filter(|&child| child < n) {
                    labels[leaf] = cluster.unwrap_or_else(&mut new_cluster);
                }
            }
        }
    }
    labels
}

/// A step of the walk over the tree: a merge and the flat cluster that it lies in, if that is known by then.
enum Visit {
    Subtrees(usize, Option<usize>),
    Leaves(usize, Option<usize>),
}

/// Height of the highest merge in the subtree of every merge.
fn highest_merges(tree: &[Merge], n: usize) -> Vec<f64> {
    let mut highest: Vec<f64> = Vec::with_capacity(tree.len());
    for merge in tree {
        let below = [merge.left, merge.right].into_iter().filter(|&child| child >= n);
        let height = below.map(|child| highest[child - n]).fold(merge.height, f64::max);
        highest.push(height);
    }
    highest
}
