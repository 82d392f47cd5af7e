//! Operations on vectors of f64. Depends on nothing in this crate.
//!
//! Sums run over [`LANES`] interleaved partial sums in a fixed order: compilers can vectorise them, and the result
//! is the same on every processor.

const LANES: usize = 8;
/// Values added between two looks at the limit in [`squared_distance_below`].
const BLOCK: usize = 64;

/// Adds the sum of `term` over both slices to `lanes`.
#[inline(always)]
fn accumulate(lanes: &mut [f64; LANES], a: &[f64], b: &[f64], term: impl Fn(f64, f64) -> f64) {
    let (a, a_rest) = a.as_chunks::<LANES>();
    let (b, b_rest) = b.as_chunks::<LANES>();
    for (x, y) in a.iter().zip(b) {
        for i in 0..LANES {
            lanes[i] += term(x[i], y[i]);
        }
    }
    for (i, (x, y)) in a_rest.iter().zip(b_rest).enumerate() {
        lanes[i] += term(*x, *y);
    }
}

#[inline(always)]
fn total(lanes: &[f64; LANES]) -> f64 {
    ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]))
}

/// Inner product.
#[inline(always)]
pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut lanes = [0.0; LANES];
    accumulate(&mut lanes, a, b, |x, y| x * y);
    total(&lanes)
}

/// Euclidean length.
#[inline(always)]
pub fn norm(a: &[f64]) -> f64 {
    dot(a, a).sqrt()
}

/// Scales `a` to unit length. A zero vector becomes NaN, as everywhere in the reference pipeline.
pub fn normalise(a: &mut [f64]) {
    let length = norm(a);
    a.iter_mut().for_each(|v| *v /= length);
}

/// Squared Euclidean distance.
#[inline(always)]
pub fn squared_distance(a: &[f64], b: &[f64]) -> f64 {
    let mut lanes = [0.0; LANES];
    accumulate(&mut lanes, a, b, |x, y| (x - y) * (x - y));
    total(&lanes)
}

/// [`squared_distance`] (to the last bit) if it is below `limit`, else `None`, mostly without reading all values.
#[inline(always)]
pub fn squared_distance_below(a: &[f64], b: &[f64], limit: f64) -> Option<f64> {
    let mut lanes = [0.0; LANES];
    for (x, y) in a.chunks(BLOCK).zip(b.chunks(BLOCK)) {
        accumulate(&mut lanes, x, y, |x, y| (x - y) * (x - y));
        if total(&lanes) >= limit {
            return None;
        }
    }
    Some(total(&lanes))
}

/// `ln(sum(exp(values)))` without overflow.
pub fn log_sum_exp(values: &[f64]) -> f64 {
    let max = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if !max.is_finite() {
        return max;
    }
    max + values.iter().map(|v| (v - max).exp()).sum::<f64>().ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_cover_lengths_that_are_no_multiple_of_the_lanes() {
        let a: Vec<f64> = (0..70).map(f64::from).collect();
        let b = vec![1.0; 70];
        assert_eq!(dot(&a, &b), 69.0 * 70.0 / 2.0);
        let expected: f64 = a.iter().map(|v| (v - 1.0) * (v - 1.0)).sum();
        assert_eq!(squared_distance(&a, &b), expected);
        assert_eq!(squared_distance_below(&a, &b, f64::INFINITY), Some(expected));
        assert_eq!(squared_distance_below(&a, &b, expected), None);
    }

    #[test]
    fn log_sum_exp_survives_extremes() {
        assert_eq!(log_sum_exp(&[f64::NEG_INFINITY; 2]), f64::NEG_INFINITY);
        assert!((log_sum_exp(&[1e4, 1e4]) - (1e4 + 2f64.ln())).abs() < 1e-9);
    }
}
