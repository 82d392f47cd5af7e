//! 3x3 convolutions at stride 1 by Winograd's F(4x4, 3x3) (Lavin and Gray, 2015): 36 products of matrices give
//! 16 output pixels a tile, a quarter of the multiplications of the direct sum. The interpolation points 0, ±1,
//! ±2 cost about one decimal digit of FP32; the trunk's embeddings move by less than 1e-6 in cosine.

use rayon::prelude::*;

use super::conv::{Epilogue, Map, with_scratch};
use super::gemm::{Output, gemm};
use crate::math::simd::vectorised;

/// Output pixels of a tile along one axis.
const TILE: usize = 4;
/// Input pixels of a tile along one axis.
const PATCH: usize = TILE + 2;
/// Values of a transformed tile.
const POINTS: usize = PATCH * PATCH;
/// Channels that are transformed at once; one AVX-512 or two AVX registers.
const LANES: usize = 8;
/// Floats that the transformed tiles of one task should take: 2 MB. Larger products gain more than a private cache
/// of half that size would; 256 KB made the trunk 13 % slower.
const TASK_FLOATS: usize = 512 * 1024;

/// Floats between the matrices of two points beyond their size: keeps them apart in the sets of a cache.
const POINT_GAP: usize = 16;

/// One channel group of one pixel; arithmetic by element.
#[derive(Clone, Copy)]
struct Lane([f32; LANES]);

impl Lane {
    const ZERO: Self = Self([0.0; LANES]);

    #[inline(always)]
    fn load(values: &[f32], at: usize) -> Self {
        let mut lane = Self::ZERO;
        lane.0.copy_from_slice(&values[at..at + LANES]);
        lane
    }

    #[inline(always)]
    fn store(self, values: &mut [f32], at: usize) {
        values[at..at + LANES].copy_from_slice(&self.0);
    }
}

macro_rules! by_element {
    ($trait:ident, $method:ident, $op:tt) => {
        impl std::ops::$trait for Lane {
            type Output = Self;

            #[inline(always)]
            fn $method(mut self, other: Self) -> Self {
                for l in 0..LANES {
                    self.0[l] $op other.0[l];
                }
                self
            }
        }
    };
}

by_element!(Add, add, +=);
by_element!(Sub, sub, -=);

impl std::ops::Mul<Lane> for f32 {
    type Output = Lane;

    #[inline(always)]
    fn mul(self, mut lane: Lane) -> Lane {
        for l in 0..LANES {
            lane.0[l] *= self;
        }
        lane
    }
}

/// The transformed filters of one convolution.
pub(super) struct Winograd {
    /// For every point a column-major `[output, input]` matrix.
    filters: Vec<f32>,
    input: usize,
    output: usize,
}

/// Rows of the filter transform G.
const FILTER: [[f64; 3]; PATCH] = [
    [1.0 / 4.0, 0.0, 0.0],
    [-1.0 / 6.0, -1.0 / 6.0, -1.0 / 6.0],
    [-1.0 / 6.0, 1.0 / 6.0, -1.0 / 6.0],
    [1.0 / 24.0, 1.0 / 12.0, 1.0 / 6.0],
    [1.0 / 24.0, -1.0 / 12.0, 1.0 / 6.0],
    [0.0, 0.0, 1.0],
];

/// `B^T d` along one axis.
#[inline(always)]
fn transform_input([d0, d1, d2, d3, d4, d5]: [Lane; PATCH]) -> [Lane; PATCH] {
    let (even, odd) = (d4 - 4.0 * d2, d3 - 4.0 * d1);
    let (even2, odd2) = (d4 - d2, 2.0 * (d3 - d1));
    [4.0 * d0 - 5.0 * d2 + d4, even + odd, even - odd, even2 + odd2, even2 - odd2, 4.0 * d1 - 5.0 * d3 + d5]
}

/// `A^T m` along one axis.
#[inline(always)]
fn transform_output([m0, m1, m2, m3, m4, m5]: [Lane; PATCH]) -> [Lane; TILE] {
    let (sum1, diff1) = (m1 + m2, m1 - m2);
    let (sum2, diff2) = (m3 + m4, m3 - m4);
    [m0 + sum1 + sum2, diff1 + 2.0 * diff2, sum1 + 4.0 * sum2, diff1 + 8.0 * diff2 + m5]
}

/// Consecutive tiles of one row of tiles, with the output pixels that they make.
struct Task<'a> {
    tile_row: usize,
    first_tile: usize,
    tiles: usize,
    /// Up to [`TILE`] rows of output pixels.
    rows: Vec<&'a mut [f32]>,
}

impl Winograd {
    /// Transforms the filters `weight`, row-major `[output, input, 3, 3]`, in `f64`.
    pub fn new(weight: &[f32], input: usize, output: usize) -> Self {
        assert!(input.is_multiple_of(LANES) && output.is_multiple_of(LANES));
        let mut filters = vec![0.0; POINTS * input * output];
        for (index, filter) in weight.as_chunks::<9>().0.iter().enumerate() {
            let (o, i) = (index / input, index % input);
            for point in 0..POINTS {
                let (u, v) = (FILTER[point / PATCH], FILTER[point % PATCH]);
                let value: f64 = (0..9).map(|t| u[t / 3] * v[t % 3] * f64::from(filter[t])).sum();
                filters[(point * input + i) * output + o] = value as f32;
            }
        }
        Self { filters, input, output }
    }

    /// Convolves `x` into `out`, which has the same height and width.
    pub fn run(&self, x: &Map, out: &mut Map, bias: &[f32], epilogue: Epilogue<'_>) {
        let task_tiles = (TASK_FLOATS / (POINTS * (self.input + self.output))).max(16);
        let (width, channels) = (out.width, out.channels);
        let mut tasks = Vec::new();
        for (tile_row, rows) in out.data.chunks_mut(TILE * width * channels).enumerate() {
            let mut pieces: Vec<_> = rows
                .chunks_mut(width * channels)
                .map(|row| row.chunks_mut(task_tiles * TILE * channels))
                .collect();
            let mut first_tile = 0;
            while first_tile * TILE < width {
                let rows: Vec<_> = pieces.iter_mut().filter_map(Iterator::next).collect();
                let tiles = (rows[0].len() / channels).div_ceil(TILE);
                tasks.push(Task { tile_row, first_tile, tiles, rows });
                first_tile += tiles;
            }
        }
        tasks.into_par_iter().for_each(|task| self.run_task(x, task, bias, epilogue));
    }

    fn run_task(&self, x: &Map, mut task: Task<'_>, bias: &[f32], epilogue: Epilogue<'_>) {
        let (inputs, outputs) = (self.input * task.tiles, self.output * task.tiles);
        let size = POINTS * (inputs + outputs + 2 * POINT_GAP) + PATCH * PATCH * self.input;
        with_scratch(size, |scratch| {
            let (transformed, rest) = scratch.split_at_mut(POINTS * (inputs + POINT_GAP));
            let (products, patch) = rest.split_at_mut(POINTS * (outputs + POINT_GAP));
            vectorised!(self.gather(x, &task, transformed, patch));
            for point in 0..POINTS {
                gemm(
                    &mut products[point * (outputs + POINT_GAP)..][..outputs],
                    Output::Replace,
                    &self.filters[point * self.input * self.output..][..self.input * self.output],
                    &transformed[point * (inputs + POINT_GAP)..][..inputs],
                    self.output,
                );
            }
            vectorised!(self.scatter(products, &mut task));
            let (y, x) = (task.tile_row * TILE, task.first_tile * TILE);
            vectorised!(for (dy, row) in task.rows.iter_mut().enumerate() {
                epilogue.apply(row, bias, y + dy, x);
            });
        });
    }

    /// Transforms the input of every tile: `transformed` becomes `[POINTS, tiles, input]` with gaps between points.
    #[inline(always)]
    fn gather(&self, x: &Map, task: &Task<'_>, transformed: &mut [f32], patch: &mut [f32]) {
        let (c, tiles) = (self.input, task.tiles);
        let stride = tiles * c + POINT_GAP;
        // Row and column of the patch's corner, plus the one pixel of padding.
        let top = task.tile_row * TILE;
        for tile in 0..tiles {
            let left = (task.first_tile + tile) * TILE;
            let inside = top >= 1 && top + PATCH <= x.height + 1 && left >= 1 && left + PATCH <= x.width + 1;
            if !inside {
                pad_patch(x, top, left, patch);
            }
            let row = |r: usize| -> &[f32] {
                if inside {
                    &x.data[((top + r - 1) * x.width + left - 1) * c..][..PATCH * c]
                } else {
                    &patch[r * PATCH * c..][..PATCH * c]
                }
            };
            let rows: [&[f32]; PATCH] = std::array::from_fn(row);
            for channel in (0..c).step_by(LANES) {
                let mut columns = [[Lane::ZERO; PATCH]; PATCH];
                for (r, row) in rows.into_iter().enumerate() {
                    let line = transform_input(std::array::from_fn(|i| Lane::load(row, i * c + channel)));
                    for (column, lane) in columns.iter_mut().zip(line) {
                        column[r] = lane;
                    }
                }
                for (v, column) in columns.into_iter().enumerate() {
                    for (u, lane) in transform_input(column).into_iter().enumerate() {
                        lane.store(transformed, (u * PATCH + v) * stride + tile * c + channel);
                    }
                }
            }
        }
    }

    /// Transforms the products `[POINTS, tiles, output]` of every tile back into output pixels.
    #[inline(always)]
    fn scatter(&self, products: &[f32], task: &mut Task<'_>) {
        let (c, tiles) = (self.output, task.tiles);
        let stride = tiles * c + POINT_GAP;
        for tile in 0..tiles {
            for channel in (0..c).step_by(LANES) {
                let lines: [[Lane; TILE]; PATCH] = std::array::from_fn(|v| {
                    transform_output(std::array::from_fn(|u| {
                        Lane::load(products, (u * PATCH + v) * stride + tile * c + channel)
                    }))
                });
                for (dy, row) in task.rows.iter_mut().enumerate() {
                    let column = std::array::from_fn(|v| lines[v][dy]);
                    let pixels = row.len() / c;
                    for (dx, lane) in transform_output(column).into_iter().enumerate() {
                        let x = tile * TILE + dx;
                        if x < pixels {
                            lane.store(row, x * c + channel);
                        }
                    }
                }
            }
        }
    }
}

/// Copies the patch whose corner is one pixel above and left of `(top, left)`, with zeros outside the map.
fn pad_patch(x: &Map, top: usize, left: usize, patch: &mut [f32]) {
    let c = x.channels;
    for (i, pixel) in patch.chunks_exact_mut(c).enumerate() {
        let (row, col) = ((top + i / PATCH).wrapping_sub(1), (left + i % PATCH).wrapping_sub(1));
        if row < x.height && col < x.width {
            pixel.copy_from_slice(&x.data[(row * x.width + col) * c..][..c]);
        } else {
            pixel.fill(0.0);
        }
    }
}
