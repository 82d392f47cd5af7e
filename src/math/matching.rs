//! Optimal one-to-one matching of a few rows to many columns. Depends on nothing in this crate.

use std::array;

/// Rows of a matching.
const ROWS: usize = 3;

/// Matches as many rows as possible to different columns so that the sum of scores is largest.
///
/// `scores[r]` holds one finite score per column; all rows are equally long. Returns the column of each row, `None`
/// for rows left over when there are fewer columns than rows. Of equally good matchings the one with the lowest
/// columns wins, first row first; a matched row goes before an unmatched one.
///
/// Only the [`ROWS`] best columns of each row can matter: the other rows occupy at most `ROWS - 1` of them. So all
/// matchings among those are tried, which is exact and, unlike the general Hungarian method, linear in the columns.
pub fn best_matching(scores: [&[f64]; ROWS]) -> [Option<usize>; ROWS] {
    let columns = scores[0].len();
    let candidates: [Vec<Option<usize>>; ROWS] = array::from_fn(|r| {
        let mut options: Vec<_> = best_columns(scores[r]).into_iter().map(Some).collect();
        if columns < ROWS {
            options.push(None);
        }
        options
    });
    let mut best = [None; ROWS];
    let mut best_value = (0, f64::NEG_INFINITY);
    for &a in &candidates[0] {
        for &b in &candidates[1] {
            for &c in &candidates[2] {
                if clash(a, b) || clash(a, c) || clash(b, c) {
                    continue;
                }
                let choice = [a, b, c];
                let matched = choice.iter().flatten().count();
                let sum = (0..ROWS).filter_map(|r| choice[r].map(|k| scores[r][k])).sum::<f64>();
                if (matched, sum) > best_value {
                    (best, best_value) = (choice, (matched, sum));
                }
            }
        }
    }
    best
}

fn clash(a: Option<usize>, b: Option<usize>) -> bool {
    a.is_some() && a == b
}

/// The columns of the [`ROWS`] largest scores (the lower column first among equals), in column order.
fn best_columns(scores: &[f64]) -> Vec<usize> {
    let mut best: Vec<usize> = Vec::with_capacity(ROWS + 1);
    for (k, &score) in scores.iter().enumerate() {
        let place = best.iter().position(|&b| score > scores[b]).unwrap_or(best.len());
        best.insert(place, k);
        best.truncate(ROWS);
    }
    best.sort_unstable();
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn total_beats_greed() {
        let matching = best_matching([&[0.9, 0.8, 0.0], &[0.8, 0.1, 0.0], &[0.0, 0.0, 0.3]]);
        assert_eq!(matching, [Some(1), Some(0), Some(2)]);
    }

    #[test]
    fn one_column_goes_to_the_best_row() {
        assert_eq!(best_matching([&[0.1], &[0.5], &[0.4]]), [None, Some(0), None]);
        assert_eq!(best_matching([&[], &[], &[]]), [None; 3]);
    }

    #[test]
    fn ties_take_the_lowest_columns() {
        assert_eq!(best_matching([&[0.0; 5], &[0.0; 5], &[0.0; 5]]), [Some(0), Some(1), Some(2)]);
    }
}
