//! The ResNet34 trunk on a GPU (C6): its 36 convolutions, one a launch or a whole basic block a launch. Depends on
//! `dispatch` and `launch`.

use std::cell::Cell;
use std::collections::HashMap;

use super::device::Device;
use super::dispatch::{self, Rule};
use super::error::CudaError;
use super::kernel::{Arithmetic, Kernel, Op, Packing};
use super::launch::{BlockLaunch, Buffer, ConvLaunch, Epilogue, Gpu, Packed};
use crate::backend::Precision;
use crate::features::MELS;
use crate::models::embedding::{EmbeddingWeights, STAGES, TIME_REDUCTION, TRUNK_DIM, convolutions};

/// A launch and the row of the table that chose its kernel.
#[derive(Debug, Clone)]
pub struct Step {
    /// Name, such as `block3.conv1`, or `block3` for a whole block.
    pub name: String,
    /// What it computes.
    pub op: Op,
    /// The row.
    pub rule: &'static Rule,
    /// Index of its first convolution.
    pub first: usize,
}

/// What is launched for `batch` inputs of `width` fbank frames, in order of execution.
///
/// # Errors
/// [`CudaError::NoKernel`], which the tests exclude for this network.
pub fn plan(
    device: &Device,
    precision: Precision,
    batch: usize,
    width: usize,
) -> Result<Vec<Step>, CudaError> {
    let all = convolutions();
    let mut steps: Vec<Step> = Vec::with_capacity(all.len());
    for (first, (name, shape, height)) in all.iter().enumerate() {
        if steps.last().is_some_and(|step| step.first + step.op.convolutions() > first) {
            continue;
        }
        let op = Op::conv(*shape, *height, width.div_ceil(MELS / height));
        let choose = |op: Op| dispatch::choose(device, &op, batch, precision).map(|rule| (op, rule));
        // A block whose convolutions have one shape has no shortcut convolution between them.
        let block = name.strip_suffix(".conv1").filter(|_| all[first + 1].1 == *shape);
        let whole = block.and_then(|name| choose(op.twice()).map(|found| (name, found)));
        let (name, (op, rule)) = match whole {
            Some(whole) => whole,
            None => (name.as_str(), choose(op).ok_or_else(|| CudaError::NoKernel(format!("{name}: {op}")))?),
        };
        steps.push(Step { name: name.into(), op, rule, first });
    }
    Ok(steps)
}

/// How the values of the trunk's maps are stored.
pub fn stored(precision: Precision) -> Arithmetic {
    match precision {
        Precision::Fp16 => Arithmetic::Fp16,
        _ => Arithmetic::Fp32,
    }
}

/// Bytes of a value in the trunk's maps.
pub fn value_bytes(precision: Precision) -> usize {
    stored(precision).value_bytes()
}

/// Bytes of the largest map for each fbank frame of an input.
pub fn map_bytes_per_frame(precision: Precision) -> usize {
    STAGES[0].0 * MELS * value_bytes(precision)
}

/// Bytes of the trunk's output for an input of `width` fbank frames.
pub fn output_bytes(precision: Precision, width: usize) -> usize {
    TRUNK_DIM * width.div_ceil(TIME_REDUCTION) * value_bytes(precision)
}

/// Memory that the trunk works in.
pub struct Maps {
    /// Features in, FP32 `[batch, fbank frames, MELS]`.
    pub features: Buffer,
    /// Three maps, of which a block reads one and writes the others.
    pub maps: [Buffer; 3],
    /// Word that is set to 1 when a value does not fit FP16.
    pub overflow: Buffer,
}

struct Conv {
    weights: Buffer,
    bias: Buffer,
    packed: HashMap<(Packing, u32), Packed>,
}

impl Conv {
    /// The weights in the order of `kernel`.
    fn packed(&self, kernel: &'static Kernel) -> Result<&Packed, CudaError> {
        let key = (kernel.packing(), kernel.channels);
        self.packed.get(&key).ok_or(CudaError::Packing { kernel: kernel.entry })
    }
}

/// The network up to pooling.
pub struct Trunk {
    convs: Vec<Conv>,
}

/// Sees the output of every launch.
pub type Inspect<'a> = &'a mut dyn FnMut(&mut Gpu, &Step, &Buffer) -> Result<(), CudaError>;

impl Trunk {
    /// Takes the weights to the GPU.
    ///
    /// # Errors
    /// If there is not enough memory.
    pub fn new(gpu: &mut Gpu, weights: &EmbeddingWeights) -> Result<Self, CudaError> {
        let blocks = weights
            .blocks
            .iter()
            .flat_map(|block| [Some(&block.conv1), block.shortcut.as_ref(), Some(&block.conv2)]);
        let convs = std::iter::once(Some(&weights.stem)).chain(blocks).flatten().map(|conv| {
            Ok(Conv {
                weights: gpu.upload("weights", &conv.weight)?,
                bias: gpu.upload("weights", &conv.bias)?,
                packed: HashMap::new(),
            })
        });
        Ok(Self { convs: convs.collect::<Result<_, CudaError>>()? })
    }

    /// Packs the weights for every kernel of `steps` that has not got them yet.
    ///
    /// # Errors
    /// If there is not enough memory.
    pub fn prepare(&mut self, gpu: &mut Gpu, steps: &[Step]) -> Result<(), CudaError> {
        for step in steps {
            let kernel = step.rule.kernel;
            let key = (kernel.packing(), kernel.channels);
            for conv in &mut self.convs[step.first..][..step.op.convolutions()] {
                if !conv.packed.contains_key(&key) {
                    conv.packed.insert(key, gpu.pack(kernel, step.op.shape, &conv.weights)?);
                }
            }
        }
        Ok(())
    }

    /// Launches `steps` on `batch` inputs in `memory`; the last map goes to `out`. The weights must be prepared.
    ///
    /// # Errors
    /// If a launch fails.
    pub fn run(
        &self,
        gpu: &mut Gpu,
        steps: &[Step],
        batch: usize,
        memory: &Maps,
        out: &Buffer,
        inspect: Inspect<'_>,
    ) -> Result<(), CudaError> {
        let at = Cell::new(0);
        let mut layer = |gpu: &mut Gpu, x: &Buffer, epilogue: Epilogue<'_>, y: &Buffer| {
            let step = &steps[at.replace(at.get() + 1)];
            let (kernel, op, overflow) = (step.rule.kernel, step.op, &memory.overflow);
            let conv = &self.convs[step.first];
            let (weights, bias) = (conv.packed(kernel)?, &conv.bias);
            if op.block {
                let second = &self.convs[step.first + 1];
                let (weights, bias) = ([weights, second.packed(kernel)?], [bias, &second.bias]);
                gpu.block(&BlockLaunch { kernel, op, batch, x, weights, bias, y, overflow })?;
            } else {
                gpu.conv(&ConvLaunch { kernel, op, batch, x, weights, bias, epilogue, y, overflow })?;
            }
            inspect(gpu, step, y)
        };
        let [mut x, hidden, mut spare] = memory.maps.each_ref();
        layer(gpu, &memory.features, Epilogue::Relu, x)?;
        let last = STAGES.iter().map(|(_, blocks)| blocks).sum::<usize>() - 1;
        let mut block = 0;
        for (stage, (_, blocks)) in STAGES.into_iter().enumerate() {
            for first in (0..blocks).map(|index| index == 0) {
                let whole = steps[at.get()].op.block;
                if !whole {
                    layer(gpu, x, Epilogue::Relu, hidden)?;
                }
                // The identity path needs its own map where the shape changes; then the block's input is free.
                let (identity, y) = if first && stage > 0 {
                    layer(gpu, x, Epilogue::Bias, spare)?;
                    (spare, x)
                } else {
                    (x, spare)
                };
                let y = if block == last { out } else { y };
                layer(gpu, if whole { x } else { hidden }, Epilogue::ResidualRelu(identity), y)?;
                (x, spare) = (y, identity);
                block += 1;
            }
        }
        Ok(())
    }
}

/// The values of a map of `step`'s output for one input, row-major `[height, width, channels]`.
pub fn to_rows(step: &Step, bytes: &[u8], precision: Precision) -> Vec<f32> {
    let (height, width, channels) = (step.op.height_out(), step.op.width_out(), step.op.shape.output);
    let values: Vec<f32> = match precision {
        Precision::Fp16 => {
            bytes.as_chunks().0.iter().map(|b| half::f16::from_le_bytes(*b).to_f32()).collect()
        }
        _ => bytes.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect(),
    };
    let unit = super::launch::UNIT / value_bytes(precision);
    let mut rows = vec![0.0; values.len()];
    for (from, v) in values.into_iter().enumerate() {
        let (inside, pixel) = (from % unit, from / unit % (height * width));
        let channel = from / unit / (height * width) * unit + inside;
        rows[pixel * channels + channel] = v;
    }
    rows
}
