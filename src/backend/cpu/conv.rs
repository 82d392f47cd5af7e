//! Convolutions of the trunk on channels-last maps: `[relu](conv(x) + bias [+ residual])`.

use std::cell::RefCell;

use rayon::prelude::*;

use super::gemm::{Output, gemm};
use super::winograd::Winograd;
use crate::math::simd::vectorised;
use crate::models::embedding::{Conv, ConvShape};

/// Output pixels that one task of the im2col path computes.
const TASK_PIXELS: usize = 128;

thread_local! {
    /// Work space of the task that runs on this thread. Tasks start no other tasks, so it is never shared.
    static SCRATCH: RefCell<Vec<f32>> = const { RefCell::new(Vec::new()) };
}

/// Lends `size` floats of arbitrary content to `task`.
pub(super) fn with_scratch<R>(size: usize, task: impl FnOnce(&mut [f32]) -> R) -> R {
    SCRATCH.with_borrow_mut(|scratch| {
        if scratch.len() < size {
            scratch.resize(size, 0.0);
        }
        task(&mut scratch[..size])
    })
}

/// An activation map, `[height, width, channels]`: height is the mel axis, width is time.
#[derive(Debug, Clone)]
pub(super) struct Map {
    pub height: usize,
    pub width: usize,
    pub channels: usize,
    pub data: Vec<f32>,
}

impl Map {
    /// Channels of row `y`, all columns.
    pub fn row(&self, y: usize) -> &[f32] {
        let size = self.width * self.channels;
        &self.data[y * size..(y + 1) * size]
    }
}

/// What follows the convolution and its bias.
#[derive(Clone, Copy)]
pub(super) enum Epilogue<'a> {
    /// Nothing.
    None,
    /// `relu(y)`.
    Relu,
    /// `relu(y + residual)`.
    ResidualRelu(&'a Map),
}

impl Epilogue<'_> {
    /// Applies bias and epilogue to `values`, whole pixels that start at pixel `(y, x)` of the output.
    #[inline(always)]
    pub fn apply(self, values: &mut [f32], bias: &[f32], y: usize, x: usize) {
        let channels = bias.len();
        match self {
            Self::None => {
                for pixel in values.chunks_exact_mut(channels) {
                    pixel.iter_mut().zip(bias).for_each(|(v, b)| *v += b);
                }
            }
            Self::Relu => {
                for pixel in values.chunks_exact_mut(channels) {
                    pixel.iter_mut().zip(bias).for_each(|(v, b)| *v = relu(*v + b));
                }
            }
            Self::ResidualRelu(map) => {
                let residual = &map.data[(y * map.width + x) * channels..][..values.len()];
                for (pixel, res) in values.chunks_exact_mut(channels).zip(residual.chunks_exact(channels)) {
                    for ((v, b), r) in pixel.iter_mut().zip(bias).zip(res) {
                        *v = relu(*v + b + r);
                    }
                }
            }
        }
    }
}

/// Keeps NaN, unlike `f32::max`.
#[inline(always)]
fn relu(v: f32) -> f32 {
    if v < 0.0 { 0.0 } else { v }
}

/// A convolution made ready for the CPU.
pub(super) struct CpuConv {
    pub shape: ConvShape,
    bias: Vec<f32>,
    method: Method,
}

enum Method {
    /// 3x3 at stride 1.
    Winograd(Winograd),
    /// Everything else: filters as column-major `[output, kernel * kernel * input]`.
    Im2col(Vec<f32>),
}

impl CpuConv {
    /// Packs `conv` for the method that suits its shape.
    pub fn new(conv: &Conv) -> Self {
        let ConvShape { kernel, stride, input, output } = conv.shape;
        let method = if kernel == 3 && stride == 1 && input > 1 {
            Method::Winograd(Winograd::new(&conv.weight, input, output))
        } else {
            let taps = kernel * kernel;
            let mut packed = vec![0.0; conv.weight.len()];
            for (i, &w) in conv.weight.iter().enumerate() {
                let (o, c, tap) = (i / (input * taps), i / taps % input, i % taps);
                packed[(tap * input + c) * output + o] = w;
            }
            Method::Im2col(packed)
        };
        Self { shape: conv.shape, bias: conv.bias.clone(), method }
    }

    /// Runs the convolution over `x`.
    pub fn run(&self, x: &Map, epilogue: Epilogue<'_>) -> Map {
        assert_eq!(x.channels, self.shape.input);
        let size = |n: usize| (n - 1) / self.shape.stride + 1;
        let (height, width, channels) = (size(x.height), size(x.width), self.shape.output);
        let mut out = Map { height, width, channels, data: vec![0.0; height * width * channels] };
        match &self.method {
            Method::Winograd(winograd) => winograd.run(x, &mut out, &self.bias, epilogue),
            Method::Im2col(filters) => self.im2col(x, filters, &mut out, epilogue),
        }
        out
    }

    fn im2col(&self, x: &Map, filters: &[f32], out: &mut Map, epilogue: Epilogue<'_>) {
        let depth = filters.len() / self.shape.output;
        let (width, channels) = (out.width, out.channels);
        out.data.par_chunks_mut(TASK_PIXELS * channels).enumerate().for_each(|(task, values)| {
            let first = task * TASK_PIXELS;
            let pixels = values.len() / channels;
            with_scratch(pixels * depth, |columns| {
                for (i, column) in columns.chunks_exact_mut(depth).enumerate() {
                    self.gather(x, (first + i) / width, (first + i) % width, column);
                }
                gemm(values, Output::Replace, filters, columns, channels);
            });
            let (y, x) = (first / width, first % width);
            vectorised!(epilogue.apply(values, &self.bias, y, x));
        });
    }

    /// The input pixels under the kernel at output pixel `(y, x)`, zero outside the map.
    fn gather(&self, map: &Map, y: usize, x: usize, column: &mut [f32]) {
        let ConvShape { kernel, stride, input, .. } = self.shape;
        for (tap, values) in column.chunks_exact_mut(input).enumerate() {
            let row = (y * stride + tap / kernel).wrapping_sub(kernel / 2);
            let col = (x * stride + tap % kernel).wrapping_sub(kernel / 2);
            if row < map.height && col < map.width {
                values.copy_from_slice(&map.data[(row * map.width + col) * input..][..input]);
            } else {
                values.fill(0.0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Values in [-1, 1) from a linear congruential generator.
    fn noise(seed: u32, count: usize) -> Vec<f32> {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 23) as f32 - 1.0
        };
        (0..count).map(|_| next()).collect()
    }

    /// The sum as it stands in the definition, in `f64`, and the sum of the absolute terms.
    fn reference(conv: &Conv, x: &Map, y: usize, xx: usize, o: usize) -> (f64, f64) {
        let ConvShape { kernel, stride, input, .. } = conv.shape;
        let (mut sum, mut magnitude) = (f64::from(conv.bias[o]), f64::from(conv.bias[o]).abs());
        for tap in 0..kernel * kernel {
            let row = (y * stride + tap / kernel).wrapping_sub(kernel / 2);
            let col = (xx * stride + tap % kernel).wrapping_sub(kernel / 2);
            if row >= x.height || col >= x.width {
                continue;
            }
            for c in 0..input {
                let weight = conv.weight[(o * input + c) * kernel * kernel + tap];
                let term = f64::from(weight) * f64::from(x.data[(row * x.width + col) * input + c]);
                sum += term;
                magnitude += term.abs();
            }
        }
        (sum, magnitude)
    }

    fn check(shape: ConvShape, height: usize, width: usize, residual: bool, seed: u32) {
        let taps = shape.kernel * shape.kernel;
        let conv = Conv {
            shape,
            weight: noise(seed, shape.output * shape.input * taps),
            bias: noise(seed + 1, shape.output),
        };
        let data = noise(seed + 2, height * width * shape.input);
        let x = Map { height, width, channels: shape.input, data };
        let size = |n: usize| (n - 1) / shape.stride + 1;
        let (rows, columns) = (size(height), size(width));
        let data = noise(seed + 3, rows * columns * shape.output);
        let other = Map { height: rows, width: columns, channels: shape.output, data };
        let epilogue = if residual { Epilogue::ResidualRelu(&other) } else { Epilogue::None };
        let out = CpuConv::new(&conv).run(&x, epilogue);
        assert_eq!((out.height, out.width, out.channels), (rows, columns, shape.output));
        for (i, &value) in out.data.iter().enumerate() {
            let (pixel, o) = (i / shape.output, i % shape.output);
            let (mut sum, magnitude) = reference(&conv, &x, pixel / columns, pixel % columns, o);
            if residual {
                sum = (sum + f64::from(other.data[i])).max(0.0);
            }
            // FP32 rounding grows with the sum of the absolute terms; Winograd's transforms multiply it by less
            // than 32 for these points.
            let bound = 32.0 * f64::from(f32::EPSILON) * magnitude;
            assert!((f64::from(value) - sum).abs() <= bound, "{shape:?} at {i}: {value} against {sum}");
        }
    }

    #[test]
    fn every_shape_of_the_trunk_equals_the_definition() {
        let shape = |kernel, stride, input, output| ConvShape { kernel, stride, input, output };
        for (shape, height, width) in [
            (shape(3, 1, 1, 32), 16, 37),
            (shape(3, 1, 32, 32), 16, 37),
            (shape(3, 2, 32, 64), 16, 37),
            (shape(1, 2, 32, 64), 16, 37),
            (shape(3, 1, 64, 64), 10, 30),
            (shape(3, 2, 64, 128), 10, 30),
            (shape(3, 1, 128, 128), 10, 17),
            (shape(3, 2, 128, 256), 9, 13),
            (shape(3, 1, 256, 256), 10, 13),
        ] {
            check(shape, height, width, shape.stride == 1, 7);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        #[test]
        fn any_size_equals_the_definition(height in 1usize..14, width in 1usize..40, stride in 1usize..3, seed in 0u32..1000) {
            check(ConvShape { kernel: 3, stride, input: 8, output: 16 }, height, width, false, seed);
            check(ConvShape { kernel: 1, stride, input: 8, output: 16 }, height, width, true, seed);
        }
    }

    #[test]
    fn nan_passes_through_and_reaches_only_its_neighbourhood() {
        let shape = ConvShape { kernel: 3, stride: 1, input: 8, output: 8 };
        let conv = Conv { shape, weight: noise(1, 8 * 8 * 9), bias: vec![0.0; 8] };
        let mut x = Map { height: 20, width: 20, channels: 8, data: noise(2, 20 * 20 * 8) };
        x.data[(10 * 20 + 10) * 8] = f32::NAN;
        let out = CpuConv::new(&conv).run(&x, Epilogue::Relu);
        assert!(out.data[(10 * 20 + 10) * 8].is_nan());
        assert!(out.data[..8].iter().all(|v| v.is_finite()));
    }
}
