//! The ResNet34 trunk, the pooling and the last linear layer (C6).

use rayon::prelude::*;

use super::conv::{CpuConv, Epilogue, Map};
use super::gemm::{Output, gemm, transposed};
use crate::backend::Observer;
use crate::features::MELS;
use crate::math::simd::vectorised;
use crate::models::embedding::{EMBEDDING_DIM, EmbeddingWeights, TRUNK_CHANNELS, TRUNK_DIM, TRUNK_ROWS};

struct CpuBlock {
    conv1: CpuConv,
    conv2: CpuConv,
    shortcut: Option<CpuConv>,
}

/// The network up to pooling. Any height and width.
pub(super) struct Trunk {
    stem: CpuConv,
    blocks: Vec<CpuBlock>,
}

impl Trunk {
    pub fn new(weights: &EmbeddingWeights) -> Self {
        let block = |b: &crate::models::embedding::Block| CpuBlock {
            conv1: CpuConv::new(&b.conv1),
            conv2: CpuConv::new(&b.conv2),
            shortcut: b.shortcut.as_ref().map(CpuConv::new),
        };
        Self { stem: CpuConv::new(&weights.stem), blocks: weights.blocks.iter().map(block).collect() }
    }

    /// Trunk frames of `features`, row-major `[fbank frames, MELS]`: row-major
    /// `[ceil(fbank frames / 8), TRUNK_DIM]`, a trunk frame being `[TRUNK_ROWS, TRUNK_CHANNELS]`.
    pub fn run(&self, features: &[f32], observe: Observer<'_>) -> Vec<f32> {
        let width = features.len() / MELS;
        let input = Map { height: MELS, width, channels: 1, data: transposed(features, width, MELS) };
        let mut x = self.stem.run(&input, Epilogue::Relu);
        report(observe, "stem", &x);
        for (index, block) in self.blocks.iter().enumerate() {
            let hidden = block.conv1.run(&x, Epilogue::Relu);
            let identity = block.shortcut.as_ref().map(|conv| conv.run(&x, Epilogue::None));
            let out = block.conv2.run(&hidden, Epilogue::ResidualRelu(identity.as_ref().unwrap_or(&x)));
            report(observe, &format!("block{index}.conv1"), &hidden);
            report(observe, &format!("block{index}"), &out);
            x = out;
        }
        to_frames(&x)
    }
}

fn report(observe: Observer<'_>, name: &str, map: &Map) {
    observe(name, &[map.height, map.width, map.channels], &map.data);
}

/// `[height, width, channels]` to `[width, height, channels]`.
fn to_frames(map: &Map) -> Vec<f32> {
    let mut frames = vec![0.0; map.data.len()];
    frames.par_chunks_exact_mut(TRUNK_DIM).enumerate().for_each(|(t, frame)| {
        for (y, values) in frame.chunks_exact_mut(TRUNK_CHANNELS).enumerate() {
            values.copy_from_slice(&map.row(y)[t * TRUNK_CHANNELS..][..TRUNK_CHANNELS]);
        }
    });
    frames
}

/// Statistics pooling under a mask and the linear layer behind it.
pub(super) struct Head {
    /// Column-major `[EMBEDDING_DIM, 2 * TRUNK_DIM]`, in the order of a trunk frame.
    linear: Vec<f32>,
    bias: Vec<f32>,
}

impl Head {
    pub fn new(weights: &EmbeddingWeights) -> Self {
        let mut linear = vec![0.0; weights.linear.len()];
        for (i, &w) in weights.linear.iter().enumerate() {
            let (o, column) = (i / (2 * TRUNK_DIM), i % (2 * TRUNK_DIM));
            let (statistic, c, y) =
                (column / TRUNK_DIM, column % TRUNK_DIM / TRUNK_ROWS, column % TRUNK_ROWS);
            linear[(statistic * TRUNK_DIM + y * TRUNK_CHANNELS + c) * EMBEDDING_DIM + o] = w;
        }
        Self { linear, bias: weights.linear_bias.clone() }
    }

    /// The embedding of a local speaker who never speaks: pooling gives zeros, the bias remains (C6).
    pub fn silence(&self) -> &[f32] {
        &self.bias
    }

    /// One embedding for every row `[2 * TRUNK_DIM]` of `statistics`.
    pub fn embed(&self, statistics: &[f32]) -> Vec<f32> {
        let rows = statistics.len() / (2 * TRUNK_DIM);
        let mut out = vec![0.0; rows * EMBEDDING_DIM];
        gemm(&mut out, Output::Replace, &self.linear, statistics, EMBEDDING_DIM);
        for row in out.chunks_exact_mut(EMBEDDING_DIM) {
            row.iter_mut().zip(&self.bias).for_each(|(v, b)| *v += b);
        }
        out
    }
}

/// Weighted mean and unbiased standard deviation over trunk frames `[frames, TRUNK_DIM]` (C6). `mask` is
/// resampled to the trunk frames by nearest neighbour.
pub(super) fn pool(frames: &[f32], mask: &[u8]) -> Vec<f32> {
    let count = frames.len() / TRUNK_DIM;
    let chosen: Vec<&[f32]> = frames
        .chunks_exact(TRUNK_DIM)
        .enumerate()
        .filter(|(t, _)| mask[t * mask.len() / count] == 1)
        .map(|(_, frame)| frame)
        .collect();
    let mut out = vec![0.0; 2 * TRUNK_DIM];
    vectorised!(statistics(&chosen, &mut out));
    out
}

/// With weights of 0 and 1 both the sum of the weights and that of their squares is the number of frames.
#[inline(always)]
fn statistics(frames: &[&[f32]], out: &mut [f32]) {
    const EPSILON: f32 = 1e-8;
    let weight = frames.len() as f32 + EPSILON;
    let (mean, deviation) = out.split_at_mut(TRUNK_DIM);
    for frame in frames {
        mean.iter_mut().zip(*frame).for_each(|(m, v)| *m += v);
    }
    mean.iter_mut().for_each(|m| *m /= weight);
    for frame in frames {
        for ((d, v), m) in deviation.iter_mut().zip(*frame).zip(&*mean) {
            *d += (v - m) * (v - m);
        }
    }
    let freedom = weight - frames.len() as f32 / weight + EPSILON;
    deviation.iter_mut().for_each(|d| *d = (*d / freedom).sqrt());
}
