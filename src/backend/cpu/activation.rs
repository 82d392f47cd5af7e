//! Logistic and hyperbolic tangent functions as straight-line code that the compiler turns into vector code.

/// e^x with a relative error below 2e-7, for `x` in [-87, 88]; clamped outside, NaN stays NaN.
#[inline(always)]
fn exp(x: f32) -> f32 {
    // Adding 1.5 * 2^23 rounds to an integer, which then stands in the low bits.
    const ROUND: f32 = 12_582_912.0;
    // ln 2 in two parts: n * LN2_HIGH is exact for every n in range.
    const LN2_HIGH: f32 = 0.693_359_4;
    const LN2_LOW: f32 = -2.121_944_4e-4;
    let x = if x < -87.0 { -87.0 } else { x };
    let x = if x > 88.0 { 88.0 } else { x };
    let shifted = x * std::f32::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = x - n * LN2_HIGH - n * LN2_LOW;
    // Taylor series; |r| <= ln(2) / 2.
    let mut p = 1.0 / 5040.0;
    for c in [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0] {
        p = p * r + c;
    }
    p * f32::from_bits((shifted.to_bits() << 23).wrapping_add(127 << 23))
}

/// `1 / (1 + e^-x)`, absolute error below 2e-7.
#[inline(always)]
pub(super) fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

/// Hyperbolic tangent, absolute error below 4e-7.
#[inline(always)]
pub(super) fn tanh(x: f32) -> f32 {
    2.0 * sigmoid(2.0 * x) - 1.0
}

#[cfg(test)]
mod tests {
    use super::{exp, sigmoid, tanh};

    #[test]
    fn errors_stay_below_the_stated_bounds() {
        for i in -88_000..=88_000 {
            let x = i as f32 / 1000.0;
            let reference = f64::from(x);
            if x >= -87.0 {
                let relative = (f64::from(exp(x)) / reference.exp() - 1.0).abs();
                assert!(relative < 2e-7, "exp({x}): {relative}");
            }
            let error = (f64::from(sigmoid(x)) - 1.0 / (1.0 + (-reference).exp())).abs();
            assert!(error < 2e-7, "sigmoid({x}): {error}");
            let error = (f64::from(tanh(x)) - reference.tanh()).abs();
            assert!(error < 4e-7, "tanh({x}): {error}");
        }
    }

    #[test]
    fn special_values() {
        assert_eq!(sigmoid(f32::INFINITY), 1.0);
        assert!(sigmoid(f32::NEG_INFINITY) < 1e-37);
        assert!(sigmoid(f32::NAN).is_nan());
        assert_eq!(tanh(f32::NEG_INFINITY), -1.0);
    }
}
