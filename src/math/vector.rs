//! Operations on vectors of f64. Depends on nothing in this crate.
//!
//! Sums run over [`LANES`] interleaved partial sums in a fixed order: compilers can vectorise them, and the result
//! is the same on every processor.

const LANES: usize = 8;
/// Values added between two looks at the limit in [`squared_distance_below`].
const BLOCK: usize = 64;

/// `lanes` and the sum of `term` over both slices. By value, so that the sums stay in registers.
#[inline(always)]
fn accumulate(mut lanes: [f64; LANES], a: &[f64], b: &[f64], term: impl Fn(f64, f64) -> f64) -> [f64; LANES] {
    let (a, a_rest) = a.as_chunks::<LANES>();
    let (b, b_rest) = b.as_chunks::<LANES>();
    for (x, y) in a.iter().zip(b) {
        let terms: [f64; LANES] = std::array::from_fn(|i| term(x[i], y[i]));
        lanes = std::array::from_fn(|i| lanes[i] + terms[i]);
    }
    for (lane, (x, y)) in lanes.iter_mut().zip(a_rest.iter().zip(b_rest)) {
        *lane += term(*x, *y);
    }
    lanes
}

#[inline(always)]
fn total(lanes: &[f64; LANES]) -> f64 {
    ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]))
}

/// Inner product.
#[inline(always)]
pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    total(&accumulate([0.0; LANES], a, b, |x, y| x * y))
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
    total(&accumulate([0.0; LANES], a, b, |x, y| (x - y) * (x - y)))
}

/// [`squared_distance`] (to the last bit) of each of `a` to `b`: several sums at a time keep the processor busy.
///
/// # Panics
/// If the lengths differ.
#[inline(always)]
pub fn squared_distances<const N: usize>(a: [&[f64]; N], b: &[f64]) -> [f64; N] {
    let (blocks, rest) = b.as_chunks::<LANES>();
    let a = a.map(|a| {
        assert_eq!(a.len(), b.len());
        a.as_chunks::<LANES>()
    });
    let mut lanes = [[0.0; LANES]; N];
    for (k, y) in blocks.iter().enumerate() {
        for (lanes, (a, _)) in lanes.iter_mut().zip(&a) {
            let x = &a[k];
            let terms: [f64; LANES] = std::array::from_fn(|i| (x[i] - y[i]) * (x[i] - y[i]));
            *lanes = std::array::from_fn(|i| lanes[i] + terms[i]);
        }
    }
    std::array::from_fn(|n| total(&accumulate(lanes[n], a[n].1, rest, |x, y| (x - y) * (x - y))))
}

/// [`squared_distance`] (to the last bit) if it is below `limit`, else `None`, mostly without reading all values.
#[inline(always)]
pub fn squared_distance_below(a: &[f64], b: &[f64], limit: f64) -> Option<f64> {
    let mut lanes = [0.0; LANES];
    for (x, y) in a.chunks(BLOCK).zip(b.chunks(BLOCK)) {
        lanes = accumulate(lanes, x, y, |x, y| (x - y) * (x - y));
        if total(&lanes) >= limit {
            return None;
        }
    }
    Some(total(&lanes))
}

/// `exp(x)` for `x <= 0`, within 2 units in the last place; 0 below -708, where the true value is below 1e-307.
///
/// Plain products and sums, so that compilers can vectorise it. `exp(x) = 2^n exp(r)` with `|r| <= ln(2) / 2`, where
/// the Taylor series of degree 13 is off by 5e-18 at most.
#[inline(always)]
fn exp_of_negative(x: f64) -> f64 {
    /// Added to a small number it leaves the nearest integer in the lowest bits.
    const ROUND: f64 = 6_755_399_441_055_744.0;
    /// ln(2) in two parts; the product of the first with an integer below 2^11 is exact.
    const LN2: [f64; 2] = [0.693_147_180_369_123_8, 1.908_214_929_270_587_7e-10];
    const COEFFICIENTS: [f64; 14] = {
        let mut c = [1.0; 14];
        let mut i = 1;
        while i < 14 {
            c[i] = c[i - 1] / i as f64;
            i += 1;
        }
        c
    };
    let shifted = x * std::f64::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = (x - n * LN2[0]) - n * LN2[1];
    let series = COEFFICIENTS.iter().rev().fold(0.0, |sum, c| sum * r + c);
    let power = f64::from_bits(shifted.to_bits().wrapping_add(1023) << 52);
    if x < -708.0 { 0.0 } else { series * power }
}

/// Turns `values` into `exp(value)` over the sum of all, without overflow; returns the logarithm of the sum.
#[inline(always)]
pub fn softmax(values: &mut [f64]) -> f64 {
    let max = values.iter().fold(f64::NEG_INFINITY, |max, &v| if v > max { v } else { max });
    if !max.is_finite() {
        values.fill(f64::NAN);
        return max;
    }
    values.iter_mut().for_each(|v| *v = exp_of_negative(*v - max));
    let sum = total(&accumulate([0.0; LANES], values, values, |v, _| v));
    values.iter_mut().for_each(|v| *v /= sum);
    max + sum.ln()
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
        assert_eq!(squared_distances([&a, &b], &b), [expected, 0.0]);
        assert_eq!(squared_distance_below(&a, &b, f64::INFINITY), Some(expected));
        assert_eq!(squared_distance_below(&a, &b, expected), None);
    }

    #[test]
    fn softmax_is_exact_and_survives_extremes() {
        let exponents = (0..=70_800).map(|i| -0.01 * f64::from(i));
        for x in exponents {
            let (actual, expected) = (exp_of_negative(x), x.exp());
            // Both may be off by a unit in the last place or two.
            assert!((actual - expected).abs() <= 1e-15 * expected, "exp({x}) = {actual}, not {expected}");
        }
        assert_eq!([-708.1, -1e9, f64::NEG_INFINITY].map(exp_of_negative), [0.0; 3]);
        assert!(exp_of_negative(f64::NAN).is_nan());

        let mut values = [1e4, 1e4, -1e4];
        assert!((softmax(&mut values) - (1e4 + 2f64.ln())).abs() < 1e-9);
        assert_eq!(values, [0.5, 0.5, 0.0]);
        assert_eq!(softmax(&mut [f64::NEG_INFINITY; 2]), f64::NEG_INFINITY);
        let mut values = [0.0, f64::NAN];
        assert!(softmax(&mut values).is_nan() && values.iter().all(|v| v.is_nan()));
    }
}
