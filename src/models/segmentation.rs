//! The segmentation-3.0 network (PyanNet): its geometry and its weights (C3).

use super::powerset::CLASSES;
use super::weights::{Weights, WeightsError};

/// Sinc filters.
pub const SINC_FILTERS: usize = 80;
/// Taps of a sinc filter.
pub const SINC_TAPS: usize = 251;
/// Stride of the sinc convolution, in samples.
pub const SINC_STRIDE: usize = 10;
/// Size and stride of every max-pool.
pub const POOL: usize = 3;
/// Kernel of the two further convolutions.
pub const CONV_TAPS: usize = 5;
/// Channels of the two further convolutions.
pub const CONV_CHANNELS: usize = 60;
/// Hidden units of the LSTM in one direction.
pub const HIDDEN: usize = 128;
/// Gates of an LSTM cell, in PyTorch's order: input, forget, cell, output.
pub const GATES: usize = 4;
/// Layers of the LSTM.
pub const LSTM_LAYERS: usize = 4;
/// Units of the two linear layers.
pub const LINEAR: usize = 128;

/// Scale and shift of an instance normalisation.
#[derive(Debug, Clone)]
pub struct Norm {
    /// One scale a channel.
    pub scale: Vec<f32>,
    /// One shift a channel.
    pub shift: Vec<f32>,
}

/// A linear map, or a convolution over time.
#[derive(Debug, Clone)]
pub struct Linear {
    /// Row-major `[output, input]`, or `[output, input, taps]`.
    pub weight: Vec<f32>,
    /// `[output]`.
    pub bias: Vec<f32>,
}

/// One direction of one LSTM layer.
#[derive(Debug, Clone)]
pub struct LstmDirection {
    /// Values in one input frame.
    pub input: usize,
    /// Row-major `[GATES * HIDDEN, input]`.
    pub input_weight: Vec<f32>,
    /// Row-major `[GATES * HIDDEN, HIDDEN]`.
    pub hidden_weight: Vec<f32>,
    /// Sum of both biases, `[GATES * HIDDEN]`.
    pub bias: Vec<f32>,
}

/// Weights of the whole network.
#[derive(Debug, Clone)]
pub struct SegmentationWeights {
    /// Normalisation of the waveform (one channel).
    pub wave_norm: Norm,
    /// Row-major `[SINC_FILTERS, SINC_TAPS]`.
    pub sinc: Vec<f32>,
    /// Convolutions 2 and 3.
    pub convs: [Linear; 2],
    /// Normalisations after the three max-pools.
    pub norms: [Norm; 3],
    /// Forward and reverse direction of every layer.
    pub lstm: Vec<[LstmDirection; 2]>,
    /// The two linear layers.
    pub linears: [Linear; 2],
    /// Last layer: `[CLASSES, LINEAR]`.
    pub classifier: Linear,
}

impl SegmentationWeights {
    /// Collects the tensors of a PyanNet file with PyTorch's names.
    ///
    /// # Errors
    /// If a tensor is missing or has another shape.
    pub fn load(weights: &Weights<'_>) -> Result<Self, WeightsError> {
        let norm = |name: &str, channels| {
            Ok::<_, WeightsError>(Norm {
                scale: weights.get(&format!("{name}.weight"), &[channels])?,
                shift: weights.get(&format!("{name}.bias"), &[channels])?,
            })
        };
        let linear = |name: &str, shape: &[usize]| {
            Ok::<_, WeightsError>(Linear {
                weight: weights.get(&format!("{name}.weight"), shape)?,
                bias: weights.get(&format!("{name}.bias"), &shape[..1])?,
            })
        };
        let direction = |layer: usize, suffix: &str| {
            let input = if layer == 0 { CONV_CHANNELS } else { 2 * HIDDEN };
            let get =
                |kind: &str, shape: &[usize]| weights.get(&format!("lstm.{kind}_l{layer}{suffix}"), shape);
            let rows = GATES * HIDDEN;
            let mut bias = get("bias_ih", &[rows])?;
            bias.iter_mut().zip(get("bias_hh", &[rows])?).for_each(|(a, b)| *a += b);
            Ok::<_, WeightsError>(LstmDirection {
                input,
                input_weight: get("weight_ih", &[rows, input])?,
                hidden_weight: get("weight_hh", &[rows, HIDDEN])?,
                bias,
            })
        };
        Ok(Self {
            wave_norm: norm("sincnet.wav_norm1d", 1)?,
            sinc: weights.get("sincnet.conv1d.0.materialised_filters", &[SINC_FILTERS, 1, SINC_TAPS])?,
            convs: [
                linear("sincnet.conv1d.1", &[CONV_CHANNELS, SINC_FILTERS, CONV_TAPS])?,
                linear("sincnet.conv1d.2", &[CONV_CHANNELS, CONV_CHANNELS, CONV_TAPS])?,
            ],
            norms: [
                norm("sincnet.norm1d.0", SINC_FILTERS)?,
                norm("sincnet.norm1d.1", CONV_CHANNELS)?,
                norm("sincnet.norm1d.2", CONV_CHANNELS)?,
            ],
            lstm: (0..LSTM_LAYERS)
                .map(|layer| Ok([direction(layer, "")?, direction(layer, "_reverse")?]))
                .collect::<Result<_, WeightsError>>()?,
            linears: [linear("linear.0", &[LINEAR, 2 * HIDDEN])?, linear("linear.1", &[LINEAR, LINEAR])?],
            classifier: linear("classifier", &[CLASSES, LINEAR])?,
        })
    }
}
