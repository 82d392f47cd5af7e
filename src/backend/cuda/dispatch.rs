//! Which kernel computes which layer on which GPU: one table, of which the first row that fits is taken.
//! Depends on `kernel` and `device`.
//!
//! Thresholds are tiles per streaming multiprocessor, measured on an H200 (`kernels/README.md`).

use std::fmt;

use super::artifacts::Architecture;
use super::device::Device;
use super::kernel::*;
use crate::backend::Precision;
use crate::models::embedding::ConvShape;

/// Kinds of layers that rows of the table speak of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Layer {
    /// 3x3 from one channel.
    Stem,
    /// A basic block of two 3x3 at stride 1, 32 channels in and out. Where no row applies, its convolutions are launched
    /// one by one.
    Block,
    /// 3x3 at stride 1, 32 channels in and out.
    C32,
    /// 3x3 at stride 1, 64 channels in and out.
    C64,
    /// 3x3 at stride 1, 128 channels in and out or a multiple.
    Wide,
    /// 3x3 at stride 2.
    Halving,
    /// 1x1 at stride 2.
    Shortcut,
}

impl Layer {
    /// The kind of `op`, if there are kernels for it.
    pub fn of(op: &Op) -> Option<Self> {
        match op.shape {
            ConvShape { kernel: 3, stride: 1, input: 32, output: 32 } if op.block => Some(Self::Block),
            _ if op.block => None,
            ConvShape { kernel: 3, stride: 1, input: 1, output: 32 } => Some(Self::Stem),
            ConvShape { kernel: 3, stride: 1, input: 32, output: 32 } => Some(Self::C32),
            ConvShape { kernel: 3, stride: 1, input: 64, output: 64 } => Some(Self::C64),
            ConvShape { kernel: 3, stride: 1, input, output } if wide(input, output) => Some(Self::Wide),
            ConvShape { kernel: 3, stride: 2, input, output } if halving(input, output) => {
                Some(Self::Halving)
            }
            ConvShape { kernel: 1, stride: 2, input, output } if halving(input, output) => {
                Some(Self::Shortcut)
            }
            _ => None,
        }
    }
}

fn wide(input: usize, output: usize) -> bool {
    input > 0 && input.is_multiple_of(128) && output > 0 && output.is_multiple_of(128)
}

fn halving(input: usize, output: usize) -> bool {
    input > 0 && input.is_multiple_of(32) && output > 0 && output.is_multiple_of(64)
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Stem => "stem",
            Self::Block => "block 32",
            Self::C32 => "3x3 32",
            Self::C64 => "3x3 64",
            Self::Wide => "3x3 128+",
            Self::Halving => "3x3 s2",
            Self::Shortcut => "1x1 s2",
        })
    }
}

/// The GPUs that a row speaks of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum On {
    /// All.
    Any,
    /// Compute capability 8.0 and newer: TF32 on tensor cores.
    Tf32,
    /// 8.0, 9.0 and 10.x, whose tensor cores do more than three TF32 products for one FP32 multiply-add.
    Fast,
    /// 9.0 only: warpgroup products.
    Hopper,
}

impl On {
    fn holds(self, Architecture { major, minor }: Architecture) -> bool {
        match self {
            Self::Any => true,
            Self::Tf32 => major >= 8,
            Self::Fast => matches!((major, minor), (8 | 9, 0) | (10, _)),
            Self::Hopper => (major, minor) == (9, 0),
        }
    }
}

impl fmt::Display for On {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Any => "any",
            Self::Tf32 => ">= 8.0",
            Self::Fast => "8.0, 9.0, 10.x",
            Self::Hopper => "9.0",
        })
    }
}

/// When a row applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// Always.
    Always,
    /// If the named kernel computes the layer as well, and would make fewer tiles than this percentage of the
    /// multiprocessors.
    Fewer(&'static Kernel, u32),
    /// If the row's kernel makes at least this percentage of the multiprocessors in tiles.
    Fills(u32),
}

impl When {
    fn holds(self, kernel: &Kernel, device: &Device, op: &Op, batch: usize) -> bool {
        let reaches = |kernel: &Kernel, percent: u32| {
            kernel.blocks(op, batch) * 100 >= u64::from(device.sms) * u64::from(percent)
        };
        match self {
            Self::Always => true,
            Self::Fewer(other, percent) => other.computes(op) && !reaches(other, percent),
            Self::Fills(percent) => reaches(kernel, percent),
        }
    }
}

impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let times = |percent: u32| f64::from(percent) / 100.0;
        match self {
            Self::Always => f.pad("always"),
            Self::Fewer(kernel, percent) => {
                f.pad(&format!("tiles({}) < {} x SMs", kernel.entry, times(*percent)))
            }
            Self::Fills(percent) => f.pad(&format!("tiles >= {} x SMs", times(*percent))),
        }
    }
}

/// A row of the table.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// Layers.
    pub layer: Layer,
    /// Precision that is asked for.
    pub precision: Precision,
    /// GPUs.
    pub on: On,
    /// Condition.
    pub when: When,
    /// What runs.
    pub kernel: &'static Kernel,
}

const fn row(layer: Layer, precision: Precision, on: On, when: When, kernel: &'static Kernel) -> Rule {
    Rule { layer, precision, on, when, kernel }
}

use Layer::{Block, C32, C64, Halving, Shortcut, Stem, Wide};
use On::{Any, Fast, Hopper, Tf32};
use Precision::{Fp16 as FP16, Fp32 as FP32, Tf32 as TF32};
use When::{Always, Fewer, Fills};

/// The table. The last row for each layer and precision holds for every GPU, but for blocks. A row is skipped where its
/// kernel does not compute the layer: `n128` takes multiples of 128 channels out, `c32` 32 channels in.
#[rustfmt::skip]
pub static RULES: &[Rule] = &[
    row(Stem,     FP32, Any,    Always,                             &stem_f32),
    row(Stem,     TF32, Any,    Always,                             &stem_f32),
    row(Stem,     FP16, Any,    Always,                             &stem_f16),

    row(Block,    TF32, Hopper, Fills(1500),                        &block_tf32_c32),
    row(Block,    FP16, Hopper, Always,                             &block_f16_c32),

    row(C32,      FP32, Hopper, Always,                             &wgmma_tf32x3_c32),
    row(C32,      FP32, Fast,   Always,                             &mma_tf32x3_n32),
    row(C32,      FP32, Any,    Always,                             &conv3x3_f32_n32),
    row(C32,      TF32, Hopper, Always,                             &wgmma_tf32_c32),
    row(C32,      TF32, Tf32,   Always,                             &mma_tf32_n32),
    row(C32,      TF32, Any,    Always,                             &conv3x3_f32_n32),
    row(C32,      FP16, Any,    Always,                             &mma_f16_n32),

    row(C64,      FP32, Hopper, Always,                             &wgmma_tf32x3_n64),
    row(C64,      FP32, Fast,   Fewer(&mma_tf32x3_n64, 100),        &mma_tf32x3_n64_slim),
    row(C64,      FP32, Fast,   Always,                             &mma_tf32x3_n64),
    row(C64,      FP32, Any,    Always,                             &conv3x3_f32_n64),
    row(C64,      TF32, Hopper, Fewer(&wgmma_tf32_c64, 300),        &wgmma_tf32_n64),
    row(C64,      TF32, Hopper, Always,                             &wgmma_tf32_c64),
    row(C64,      TF32, Tf32,   Fewer(&mma_tf32_n64, 100),          &mma_tf32_n64_slim),
    row(C64,      TF32, Tf32,   Always,                             &mma_tf32_n64),
    row(C64,      TF32, Any,    Always,                             &conv3x3_f32_n64),
    row(C64,      FP16, Hopper, Fewer(&wgmma_f16_c64, 100),         &wgmma_f16_n64_small),
    row(C64,      FP16, Hopper, Always,                             &wgmma_f16_c64),
    row(C64,      FP16, Any,    Fewer(&mma_f16_n64, 100),           &mma_f16_n64_slim),
    row(C64,      FP16, Any,    Always,                             &mma_f16_n64),

    row(Wide,     FP32, Hopper, Fewer(&wgmma_tf32x3_n128, 50),      &wgmma_tf32x3_n64_small),
    row(Wide,     FP32, Hopper, Always,                             &wgmma_tf32x3_n128),
    row(Wide,     FP32, Fast,   Fewer(&mma_tf32x3_n64, 100),        &mma_tf32x3_n64_slim),
    row(Wide,     FP32, Fast,   Always,                             &mma_tf32x3_n64),
    row(Wide,     FP32, Any,    Always,                             &conv3x3_f32_n64),
    row(Wide,     TF32, Hopper, Fewer(&wgmma_tf32_n64_small, 50),   &wgmma_tf32_n32_small),
    row(Wide,     TF32, Hopper, Fewer(&wgmma_tf32_n64, 200),        &wgmma_tf32_n64_small),
    row(Wide,     TF32, Hopper, Fewer(&wgmma_tf32_n128, 250),       &wgmma_tf32_n64),
    row(Wide,     TF32, Hopper, Fills(400),                         &wgmma_tf32_n256),
    row(Wide,     TF32, Hopper, Always,                             &wgmma_tf32_n128),
    row(Wide,     TF32, Tf32,   Fewer(&mma_tf32_n64, 100),          &mma_tf32_n64_slim),
    row(Wide,     TF32, Tf32,   Always,                             &mma_tf32_n64),
    row(Wide,     TF32, Any,    Always,                             &conv3x3_f32_n64),
    row(Wide,     FP16, Hopper, Fewer(&wgmma_f16_n64_small, 50),    &wgmma_f16_n32_small),
    row(Wide,     FP16, Hopper, Fewer(&wgmma_f16_n128, 200),        &wgmma_f16_n64_small),
    row(Wide,     FP16, Hopper, Always,                             &wgmma_f16_n256),
    row(Wide,     FP16, Hopper, Always,                             &wgmma_f16_n128),
    row(Wide,     FP16, Any,    Fewer(&mma_f16_n64, 100),           &mma_f16_n64_slim),
    row(Wide,     FP16, Any,    Always,                             &mma_f16_n64),

    row(Halving,  FP32, Hopper, Fewer(&wgmma_tf32x3_s2_n128, 50),   &wgmma_tf32x3_s2_n64_small),
    row(Halving,  FP32, Hopper, Always,                             &wgmma_tf32x3_s2_n128),
    row(Halving,  FP32, Hopper, Fewer(&wgmma_tf32x3_s2_n64, 300),   &wgmma_tf32x3_s2_n64_small),
    row(Halving,  FP32, Hopper, Always,                             &wgmma_tf32x3_s2_n64),
    row(Halving,  FP32, Fast,   Fewer(&mma_tf32x3_s2_n64, 100),     &mma_tf32x3_s2_n64_slim),
    row(Halving,  FP32, Fast,   Always,                             &mma_tf32x3_s2_n64),
    row(Halving,  FP32, Any,    Always,                             &conv3x3s2_f32_n64),
    row(Halving,  TF32, Hopper, Fewer(&wgmma_tf32_s2_n128, 50),     &wgmma_tf32_s2_n64_small),
    row(Halving,  TF32, Hopper, Always,                             &wgmma_tf32_s2_n128),
    row(Halving,  TF32, Hopper, Always,                             &wgmma_tf32_s2_n64),
    row(Halving,  TF32, Tf32,   Fewer(&mma_tf32_s2_n64, 100),       &mma_tf32_s2_n64_slim),
    row(Halving,  TF32, Tf32,   Always,                             &mma_tf32_s2_n64),
    row(Halving,  TF32, Any,    Always,                             &conv3x3s2_f32_n64),
    row(Halving,  FP16, Hopper, Fewer(&wgmma_f16_s2_n128, 50),      &wgmma_f16_s2_n64_small),
    row(Halving,  FP16, Hopper, Always,                             &wgmma_f16_s2_n128),
    row(Halving,  FP16, Hopper, Fewer(&wgmma_f16_s2_c32, 300),      &wgmma_f16_s2_n64_small),
    row(Halving,  FP16, Hopper, Always,                             &wgmma_f16_s2_c32),
    row(Halving,  FP16, Any,    Fewer(&mma_f16_s2_n64, 100),        &mma_f16_s2_n64_slim),
    row(Halving,  FP16, Any,    Always,                             &mma_f16_s2_n64),

    row(Shortcut, FP32, Fast,   Always,                             &mma_tf32x3_1x1_n64),
    row(Shortcut, FP32, Any,    Always,                             &conv1x1s2_f32_n64),
    row(Shortcut, TF32, Tf32,   Always,                             &mma_tf32_1x1_n64),
    row(Shortcut, TF32, Any,    Always,                             &conv1x1s2_f32_n64),
    row(Shortcut, FP16, Any,    Always,                             &mma_f16_1x1_n64),
];

/// The row for `op` on `batch` windows: the first of [`RULES`] that speaks of the layer, the precision and the
/// architecture, whose condition holds and whose kernel computes `op`. `None` if there are no kernels for such a
/// convolution, or if a block is better launched as its convolutions.
pub fn choose(device: &Device, op: &Op, batch: usize, precision: Precision) -> Option<&'static Rule> {
    let layer = Layer::of(op)?;
    RULES.iter().find(|rule| {
        rule.layer == layer
            && rule.precision == precision
            && rule.on.holds(device.architecture)
            && rule.kernel.computes(op)
            && rule.when.holds(rule.kernel, device, op, batch)
    })
}
