//! The WeSpeaker ResNet34 speaker-embedding network (C6): its convolutions in order of execution and its weights.

use super::weights::{Weights, WeightsError};
use crate::features::MELS;

/// Values in one embedding.
pub const EMBEDDING_DIM: usize = 256;
/// Time reduction of the trunk: one trunk frame stands for 8 fbank frames.
pub const TIME_REDUCTION: usize = 8;
/// Rows (reduced mel axis) of the trunk's output.
pub const TRUNK_ROWS: usize = MELS / TIME_REDUCTION;
/// Channels of the trunk's output.
pub const TRUNK_CHANNELS: usize = 256;
/// Values in one trunk frame.
pub const TRUNK_DIM: usize = TRUNK_ROWS * TRUNK_CHANNELS;
/// Channels and number of basic blocks of the four stages.
pub const STAGES: [(usize, usize); 4] = [(32, 3), (64, 4), (128, 6), (256, 3)];

/// What a convolution of the trunk computes. Padding is `kernel / 2`; there is no dilation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ConvShape {
    /// Kernel height and width: 3 or 1.
    pub kernel: usize,
    /// Stride along both axes: 1 or 2.
    pub stride: usize,
    /// Channels in.
    pub input: usize,
    /// Channels out.
    pub output: usize,
}

/// The convolutions in order of execution: a name, what each computes, and the rows of its input.
pub fn convolutions() -> Vec<(String, ConvShape, usize)> {
    let conv = |kernel, stride, input, output| ConvShape { kernel, stride, input, output };
    let mut all = vec![("stem".to_owned(), conv(3, 1, 1, STAGES[0].0), MELS)];
    let (mut input, mut height, mut block) = (STAGES[0].0, MELS, 0);
    for (stage, (channels, count)) in STAGES.into_iter().enumerate() {
        for index in 0..count {
            let stride = if stage > 0 && index == 0 { 2 } else { 1 };
            all.push((format!("block{block}.conv1"), conv(3, stride, input, channels), height));
            if input != channels {
                all.push((format!("block{block}.shortcut"), conv(1, stride, input, channels), height));
            }
            height = height.div_ceil(stride);
            all.push((format!("block{block}.conv2"), conv(3, 1, channels, channels), height));
            (input, block) = (channels, block + 1);
        }
    }
    all
}

/// A convolution with its batch normalisation folded into weights and bias.
#[derive(Debug, Clone)]
pub struct Conv {
    /// What it computes.
    pub shape: ConvShape,
    /// Row-major `[output, input, kernel, kernel]`.
    pub weight: Vec<f32>,
    /// `[output]`.
    pub bias: Vec<f32>,
}

/// A basic block: `relu(conv2(relu(conv1(x))) + shortcut(x))`.
#[derive(Debug, Clone)]
pub struct Block {
    /// First convolution, which carries the stride.
    pub conv1: Conv,
    /// Second convolution.
    pub conv2: Conv,
    /// 1x1 convolution of the identity path where the shape changes.
    pub shortcut: Option<Conv>,
}

/// Weights of the whole network.
#[derive(Debug, Clone)]
pub struct EmbeddingWeights {
    /// First convolution, from one channel to 32.
    pub stem: Conv,
    /// The 16 basic blocks in order.
    pub blocks: Vec<Block>,
    /// `resnet.seg_1`, row-major `[EMBEDDING_DIM, 2 * TRUNK_DIM]`: mean then standard deviation, each channel-major.
    pub linear: Vec<f32>,
    /// Bias of `resnet.seg_1`; also the embedding of a local speaker who never speaks (C6).
    pub linear_bias: Vec<f32>,
}

/// PyTorch's default epsilon of batch normalisation.
const BATCH_NORM_EPSILON: f64 = 1e-5;

impl EmbeddingWeights {
    /// Collects and folds the tensors of a WeSpeaker ResNet34 file.
    ///
    /// # Errors
    /// If a tensor is missing or has another shape.
    pub fn load(weights: &Weights<'_>) -> Result<Self, WeightsError> {
        let stem = folded(weights, "resnet.conv1", "resnet.bn1", 3, 1, 1, STAGES[0].0)?;
        let mut blocks = Vec::new();
        let mut input = STAGES[0].0;
        for (stage, (channels, count)) in STAGES.into_iter().enumerate() {
            for index in 0..count {
                let name = format!("resnet.layer{}.{index}", stage + 1);
                let stride = if stage > 0 && index == 0 { 2 } else { 1 };
                let conv = |conv: &str, bn: &str, kernel, stride, input| {
                    folded(
                        weights,
                        &format!("{name}.{conv}"),
                        &format!("{name}.{bn}"),
                        kernel,
                        stride,
                        input,
                        channels,
                    )
                };
                blocks.push(Block {
                    conv1: conv("conv1", "bn1", 3, stride, input)?,
                    conv2: conv("conv2", "bn2", 3, 1, channels)?,
                    shortcut: (input != channels)
                        .then(|| conv("shortcut.0", "shortcut.1", 1, stride, input))
                        .transpose()?,
                });
                input = channels;
            }
        }
        Ok(Self {
            stem,
            blocks,
            linear: weights.get("resnet.seg_1.weight", &[EMBEDDING_DIM, 2 * TRUNK_DIM])?,
            linear_bias: weights.get("resnet.seg_1.bias", &[EMBEDDING_DIM])?,
        })
    }
}

/// The convolution `conv` with the batch normalisation `bn` folded into it, computed in `f64`.
fn folded(
    weights: &Weights<'_>,
    conv: &str,
    bn: &str,
    kernel: usize,
    stride: usize,
    input: usize,
    output: usize,
) -> Result<Conv, WeightsError> {
    let mut weight = weights.get(&format!("{conv}.weight"), &[output, input, kernel, kernel])?;
    let norm = |part: &str| weights.get(&format!("{bn}.{part}"), &[output]);
    let (gamma, beta, mean, var) =
        (norm("weight")?, norm("bias")?, norm("running_mean")?, norm("running_var")?);
    let mut bias = vec![0.0; output];
    for (o, filter) in weight.chunks_exact_mut(input * kernel * kernel).enumerate() {
        let scale = f64::from(gamma[o]) / (f64::from(var[o]) + BATCH_NORM_EPSILON).sqrt();
        for w in filter {
            *w = (f64::from(*w) * scale) as f32;
        }
        bias[o] = (f64::from(beta[o]) - f64::from(mean[o]) * scale) as f32;
    }
    Ok(Conv { shape: ConvShape { kernel, stride, input, output }, weight, bias })
}
