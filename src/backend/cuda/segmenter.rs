//! segmentation-3.0 on a GPU (C3), in FP32. Depends on `dispatch` and `launch`.

use super::dispatch::choose;
use super::error::CudaError;
use super::kernel::Op;
use super::launch::{Arg, Buffer, ConvLaunch, Epilogue, Gpu, Packed};
use super::tiles::tile;
use crate::backend::Precision;
use crate::models::embedding::ConvShape;
use crate::models::powerset::CLASSES;
use crate::models::segmentation::{
    CONV_CHANNELS, CONV_TAPS, GATES, HIDDEN, LINEAR, LSTM_LAYERS, LstmDirection, Norm, POOL, SINC_FILTERS,
    SINC_STRIDE, SINC_TAPS, SegmentationWeights,
};
use crate::models::windows::{WINDOW_FRAMES, WINDOW_SAMPLES, Windows};

const FRONT: &str = "sincnet.cu";
/// Outputs of the sinc filters for one window.
const FILTERED: usize = (WINDOW_SAMPLES - SINC_TAPS) / SINC_STRIDE + 1;
/// The same after pooling, and the outputs of the two further convolutions after theirs.
const LENGTHS: [usize; 3] = [FILTERED / POOL, (FILTERED / POOL - CONV_TAPS + 1) / POOL, WINDOW_FRAMES];
/// Samples from one window to the next that a full batch has room for: the default step.
const ROOM: usize = 16_000;
/// Channels of the front's last map: whole units of 8.
const FRONT_CHANNELS: usize = CONV_CHANNELS.next_multiple_of(8);
/// Gates of both directions.
const PROJECTED: usize = 2 * GATES * HIDDEN;
/// Columns of the convolutions' weights.
const CONV_WIDTH: usize = 64;
/// Fewest windows of a batch.
const LEAST_BATCH: usize = 8;

const _: () = assert!(
    LENGTHS[0] == tile("SINC_POOLED") as usize
        && LENGTHS[1] == tile("NORM_LONGEST") as usize
        && (LENGTHS[1] - CONV_TAPS + 1) / POOL == WINDOW_FRAMES
        && SINC_FILTERS == tile("SINC_FILTERS") as usize
        && SINC_TAPS == tile("SINC_TAPS") as usize
        && SINC_STRIDE == tile("SINC_STRIDE") as usize
        && HIDDEN == tile("LSTM_HIDDEN") as usize
        && LINEAR == tile("CLASSIFY_THREADS") as usize
        && CLASSES == tile("CLASSIFY_CLASSES") as usize
);

struct Affine {
    gain: Buffer,
    shift: Buffer,
}

struct TimeConv {
    weights: Buffer,
    bias: Buffer,
    inputs: usize,
}

struct Layer {
    op: ConvShape,
    raw: Buffer,
    packed: Option<Packed>,
    bias: Buffer,
    recurrent: Buffer,
}

/// Memory for a batch.
struct Work {
    batch: usize,
    samples: Buffer,
    starts: Buffer,
    offsets: Buffer,
    moments: Buffer,
    filtered: Buffer,
    positions: usize,
    pooled: Buffer,
    convs: [Buffer; 2],
    maps: [Buffer; 2],
    projected: Buffer,
    classes: Buffer,
    scores: Buffer,
}

/// The network with its weights on one GPU.
pub struct Segmenter {
    wave: (f32, f32),
    filters: Buffer,
    sums: Buffer,
    norms: [Affine; 3],
    convs: [TimeConv; 2],
    layers: Vec<Layer>,
    linears: [(Buffer, Buffer); 3],
    work: Work,
}

impl Segmenter {
    /// Takes the network to the GPU, with memory for as many windows as fill its multiprocessors, or as fit.
    ///
    /// # Errors
    /// If there is not enough memory for the smallest batch.
    pub fn new(gpu: &mut Gpu, weights: &SegmentationWeights) -> Result<Self, CudaError> {
        let taps = SINC_TAPS.next_multiple_of(tile("SINC_CHUNK") as usize);
        let mut filters = vec![0f32; taps * SINC_FILTERS];
        for (i, &v) in weights.sinc.iter().enumerate() {
            filters[i % SINC_TAPS * SINC_FILTERS + i / SINC_TAPS] = v;
        }
        let sum = |taps: &[f32]| taps.iter().map(|&t| f64::from(t)).sum::<f64>() as f32;
        let sums: Vec<f32> = weights.sinc.chunks_exact(SINC_TAPS).map(sum).collect();
        let [norm0, norm1, norm2] = &weights.norms;
        let norms = [affine(gpu, norm0)?, affine(gpu, norm1)?, affine(gpu, norm2)?];
        let [conv0, conv1] = &weights.convs;
        let convs =
            [time_conv(gpu, &conv0.weight, &conv0.bias)?, time_conv(gpu, &conv1.weight, &conv1.bias)?];
        let layers = weights.lstm.iter().map(|layer| self::layer(gpu, layer)).collect::<Result<_, _>>()?;
        let [linear0, linear1] = &weights.linears;
        let linears = [
            (
                gpu.upload("weights", &transposed(&linear0.weight, LINEAR))?,
                gpu.upload("weights", &linear0.bias)?,
            ),
            (
                gpu.upload("weights", &transposed(&linear1.weight, LINEAR))?,
                gpu.upload("weights", &linear1.bias)?,
            ),
            (
                gpu.upload("weights", &weights.classifier.weight)?,
                gpu.upload("weights", &weights.classifier.bias)?,
            ),
        ];
        // Two directions fill the multiprocessors with groups of windows.
        let group = tile("LSTM_WINDOWS") as usize;
        let mut batch = (gpu.device().sms as usize / 2).max(2) * group;
        let work = loop {
            match Work::new(gpu, batch) {
                Ok(work) => break work,
                Err(CudaError::Memory { .. }) if batch > LEAST_BATCH => {
                    batch /= 2;
                    tracing::warn!(
                        "GPU memory is short; segmentation continues with batches of {batch} windows"
                    );
                }
                Err(error) => return Err(error),
            }
        };
        Ok(Self {
            wave: (weights.wave_norm.scale[0], weights.wave_norm.shift[0]),
            filters: gpu.upload("weights", &filters)?,
            sums: gpu.upload("weights", &sums)?,
            norms,
            convs,
            layers,
            linears,
            work,
        })
    }

    /// Most windows from window `first` on that go through the network together.
    pub fn most(&self, windows: &Windows) -> usize {
        if !windows.step().is_multiple_of(SINC_STRIDE) {
            let audio = (self.work.samples.len() / size_of::<f32>() - WINDOW_SAMPLES) / windows.step() + 1;
            return (self.work.positions / FILTERED).clamp(1, self.work.batch).min(audio);
        }
        let room = self.work.positions * SINC_STRIDE + SINC_TAPS - SINC_STRIDE;
        ((room - WINDOW_SAMPLES) / windows.step() + 1).min(self.work.batch)
    }

    /// The most probable class of every frame of windows `first..first + count`, `[count, WINDOW_FRAMES]`.
    ///
    /// # Errors
    /// If there are more than [`Segmenter::most`] or the GPU fails.
    pub fn classes(
        &mut self,
        gpu: &mut Gpu,
        samples: &[f32],
        windows: &Windows,
        first: usize,
        count: usize,
    ) -> Result<Vec<u8>, CudaError> {
        self.run(gpu, samples, windows, first, count, false)?;
        gpu.read("classes", &self.work.classes, count * WINDOW_FRAMES)
    }

    /// Log-probabilities of the same, `[count, WINDOW_FRAMES, CLASSES]`.
    ///
    /// # Errors
    /// As [`Segmenter::classes`].
    pub fn log_probabilities(
        &mut self,
        gpu: &mut Gpu,
        samples: &[f32],
        windows: &Windows,
        first: usize,
        count: usize,
    ) -> Result<Vec<f32>, CudaError> {
        self.run(gpu, samples, windows, first, count, true)?;
        gpu.read("scores", &self.work.scores, count * WINDOW_FRAMES * CLASSES)
    }

    fn run(
        &mut self,
        gpu: &mut Gpu,
        samples: &[f32],
        windows: &Windows,
        first: usize,
        count: usize,
        scores: bool,
    ) -> Result<(), CudaError> {
        let most = self.most(windows);
        if count > most {
            let context = "windows of a segmentation batch".into();
            return Err(CudaError::Index { context, actual: count as u64, most: most as u64 });
        }
        self.front(gpu, samples, windows, first, count)?;
        self.lstm(gpu, count)?;
        self.classify(gpu, count, scores)
    }

    /// The convolutional front: its output goes to the first map.
    fn front(
        &self,
        gpu: &mut Gpu,
        samples: &[f32],
        windows: &Windows,
        first: usize,
        count: usize,
    ) -> Result<(), CudaError> {
        let Work { samples: audio, starts, offsets, moments, filtered, pooled, convs, maps, .. } = &self.work;
        let (begin, step) = (windows.start_sample(first), windows.step());
        let span = (count - 1) * step + WINDOW_SAMPLES;
        let there = &samples[begin.min(samples.len())..(begin + span).min(samples.len())];
        gpu.write("samples", audio, there)?;
        let first_samples: Vec<u32> = (0..count).map(|w| (w * step) as u32).collect();
        gpu.write("starts", starts, &first_samples)?;
        gpu.call(
            (FRONT, "wave_moments"),
            [count, 1, 1],
            tile("NORM_THREADS"),
            0,
            &[
                Arg::In("samples", audio, 4 * there.len()),
                Arg::In("starts", starts, 4 * count),
                Arg::Out("moments", moments, 16 * count),
                Arg::Size("window", WINDOW_SAMPLES),
                Arg::Size("samples", there.len()),
                Arg::F32(self.wave.0),
                Arg::F32(self.wave.1),
            ],
        )?;
        // Windows share the filters' output where their starts meet the filters' stride, else each has its own.
        let shared = step.is_multiple_of(SINC_STRIDE);
        let (rows, positions) =
            if shared { (1, (span - SINC_TAPS) / SINC_STRIDE + 1) } else { (count, FILTERED) };
        let output = 4 * rows * SINC_FILTERS * positions;
        gpu.call(
            (FRONT, "sinc_filter"),
            [positions.div_ceil(tile("SINC_POSITIONS") as usize), rows, 1],
            tile("SINC_THREADS"),
            0,
            &[
                Arg::In("samples", audio, 4 * there.len()),
                Arg::In("filters", &self.filters, self.filters.len()),
                Arg::Out("output", filtered, output),
                Arg::Size("first", 0),
                Arg::Size("step", step),
                Arg::Size("positions", positions),
                Arg::Size("samples", there.len()),
            ],
        )?;
        let place = |w: usize| if shared { w * step / SINC_STRIDE } else { w * SINC_FILTERS * positions };
        gpu.write("offsets", offsets, &(0..count).map(|w| place(w) as u32).collect::<Vec<_>>())?;
        gpu.call(
            (FRONT, "sinc_pool"),
            [SINC_FILTERS, count, 1],
            tile("NORM_THREADS"),
            0,
            &[
                Arg::In("input", filtered, output),
                Arg::In("offsets", offsets, 4 * count),
                Arg::In("moments", moments, 16 * count),
                Arg::In("sums", &self.sums, 4 * SINC_FILTERS),
                Arg::In("gain", &self.norms[0].gain, 4 * SINC_FILTERS),
                Arg::In("shift", &self.norms[0].shift, 4 * SINC_FILTERS),
                Arg::Out("output", pooled, 4 * count * SINC_FILTERS * LENGTHS[0]),
                Arg::U64(positions as u64),
            ],
        )?;
        self.time_conv(gpu, 0, count, pooled, &convs[0])?;
        self.normalise(gpu, "normalise", 1, count, &convs[0], None)?;
        self.time_conv(gpu, 1, count, &convs[0], &convs[1])?;
        self.normalise(gpu, "normalise_to_map", 2, count, &convs[1], Some(&maps[0]))
    }

    fn time_conv(
        &self,
        gpu: &mut Gpu,
        index: usize,
        count: usize,
        input: &Buffer,
        output: &Buffer,
    ) -> Result<(), CudaError> {
        let TimeConv { weights, bias, inputs } = &self.convs[index];
        let (length, pooled) = (LENGTHS[index], LENGTHS[index + 1]);
        gpu.call(
            (FRONT, "time_conv"),
            [pooled.div_ceil(tile("TIME_CONV_POSITIONS") as usize), count, 1],
            tile("TIME_CONV_THREADS"),
            0,
            &[
                Arg::In("input", input, 4 * count * inputs * length),
                Arg::In("weights", weights, weights.len()),
                Arg::In("bias", bias, 4 * CONV_CHANNELS),
                Arg::Out("output", output, 4 * count * CONV_CHANNELS * pooled),
                Arg::Size("inputs", *inputs),
                Arg::Size("length", length),
                Arg::Size("channels", CONV_CHANNELS),
                Arg::Size("pooled", pooled),
            ],
        )
    }

    /// Normalises `x` in place, or into `map`.
    fn normalise(
        &self,
        gpu: &mut Gpu,
        entry: &'static str,
        index: usize,
        count: usize,
        x: &Buffer,
        map: Option<&Buffer>,
    ) -> Result<(), CudaError> {
        let (length, Affine { gain, shift }) = (LENGTHS[index], &self.norms[index]);
        let bytes = 4 * count * CONV_CHANNELS * length;
        let channels = if map.is_some() { FRONT_CHANNELS } else { CONV_CHANNELS };
        gpu.call(
            (FRONT, entry),
            [channels, count, 1],
            tile("NORM_THREADS"),
            0,
            &[
                map.map_or(Arg::Out("values", x, bytes), |_| Arg::In("values", x, bytes)),
                Arg::In("gain", gain, 4 * CONV_CHANNELS),
                Arg::In("shift", shift, 4 * CONV_CHANNELS),
                map.map_or(Arg::Null, |map| Arg::Out("map", map, 4 * count * FRONT_CHANNELS * length)),
                Arg::Size("channels", CONV_CHANNELS),
                Arg::Size("length", length),
            ],
        )
    }

    /// All layers, from the first map on; the output is in the map that `LSTM_LAYERS` swaps leave.
    fn lstm(&mut self, gpu: &mut Gpu, count: usize) -> Result<(), CudaError> {
        let frames = count * WINDOW_FRAMES;
        // FP32 kernels have no use for the word.
        let overflow = self.work.starts.part(0, 4);
        for (index, layer) in self.layers.iter_mut().enumerate() {
            let (from, to) = (&self.work.maps[index % 2], &self.work.maps[(index + 1) % 2]);
            let op = Op::conv(layer.op, 1, frames);
            let rule = choose(gpu.device(), &op, 1, Precision::Fp32)
                .ok_or_else(|| CudaError::NoKernel(op.to_string()))?;
            if layer.packed.is_none() {
                layer.packed = Some(gpu.pack(rule.kernel, layer.op, &layer.raw)?);
            }
            gpu.conv(&ConvLaunch {
                kernel: rule.kernel,
                op,
                batch: 1,
                x: from,
                weights: layer.packed.as_ref().expect("packed above"),
                bias: &layer.bias,
                epilogue: Epilogue::Bias,
                y: &self.work.projected,
                overflow: &overflow,
            })?;
            let old = gpu.device().architecture.major < 8;
            let shared = if old { tile("LSTM_SHARED_75") } else { tile("LSTM_SHARED") };
            gpu.call(
                ("lstm.cu", "lstm"),
                [count.div_ceil(tile("LSTM_WINDOWS") as usize), 2, 1],
                tile("LSTM_THREADS"),
                shared,
                &[
                    Arg::In("projections", &self.work.projected, 4 * PROJECTED * frames),
                    Arg::In("weights", &layer.recurrent, 4 * 2 * GATES * HIDDEN * HIDDEN),
                    Arg::Out("output", to, 4 * 2 * HIDDEN * frames),
                    Arg::Size("windows", count),
                    Arg::Size("frames", WINDOW_FRAMES),
                ],
            )?;
        }
        Ok(())
    }

    fn classify(&self, gpu: &mut Gpu, count: usize, scores: bool) -> Result<(), CudaError> {
        let frames = count * WINDOW_FRAMES;
        let [(weights0, bias0), (weights1, bias1), (weights2, bias2)] = &self.linears;
        let Work { maps, classes, scores: out, .. } = &self.work;
        gpu.call(
            ("classify.cu", "classify"),
            [frames.div_ceil(tile("CLASSIFY_FRAMES") as usize), 1, 1],
            tile("CLASSIFY_THREADS"),
            0,
            &[
                Arg::In("input", &maps[LSTM_LAYERS % 2], 4 * 2 * HIDDEN * frames),
                Arg::In("weights", weights0, 4 * 2 * HIDDEN * LINEAR),
                Arg::In("bias", bias0, 4 * LINEAR),
                Arg::In("weights", weights1, 4 * LINEAR * LINEAR),
                Arg::In("bias", bias1, 4 * LINEAR),
                Arg::In("weights", weights2, 4 * CLASSES * LINEAR),
                Arg::In("bias", bias2, 4 * CLASSES),
                Arg::Out("classes", classes, frames),
                if scores { Arg::Out("scores", out, 4 * CLASSES * frames) } else { Arg::Null },
                Arg::Size("frames", frames),
                Arg::Size("padding", 0),
            ],
        )
    }
}

impl Work {
    fn new(gpu: &mut Gpu, batch: usize) -> Result<Self, CudaError> {
        let span = (batch - 1) * ROOM + WINDOW_SAMPLES;
        let positions = (span - SINC_TAPS) / SINC_STRIDE + 1;
        let frames = batch * WINDOW_FRAMES;
        let mut floats = |what: &str, count: usize| gpu.allocate(what, 4 * count);
        Ok(Self {
            batch,
            samples: floats("samples", span)?,
            starts: floats("starts", batch)?,
            offsets: floats("offsets", batch)?,
            moments: floats("moments", 4 * batch)?,
            filtered: floats("filtered audio", SINC_FILTERS * positions)?,
            positions,
            pooled: floats("filtered audio", batch * SINC_FILTERS * LENGTHS[0])?,
            convs: [
                floats("convolutions", batch * CONV_CHANNELS * LENGTHS[1])?,
                floats("convolutions", batch * CONV_CHANNELS * LENGTHS[2])?,
            ],
            maps: [floats("LSTM states", 2 * HIDDEN * frames)?, floats("LSTM states", 2 * HIDDEN * frames)?],
            projected: floats("LSTM inputs", PROJECTED * frames)?,
            classes: floats("classes", frames.div_ceil(4))?,
            scores: floats("scores", CLASSES * frames)?,
        })
    }
}

fn affine(gpu: &mut Gpu, norm: &Norm) -> Result<Affine, CudaError> {
    Ok(Affine { gain: gpu.upload("weights", &norm.scale)?, shift: gpu.upload("weights", &norm.shift)? })
}

/// `[CONV_CHANNELS, inputs, CONV_TAPS]` to `[inputs, CONV_TAPS, CONV_WIDTH]`.
fn time_conv(gpu: &mut Gpu, weight: &[f32], bias: &[f32]) -> Result<TimeConv, CudaError> {
    let inputs = weight.len() / (CONV_CHANNELS * CONV_TAPS);
    let padded = inputs.next_multiple_of(tile("TIME_CONV_STEP") as usize);
    let mut weights = vec![0f32; padded * CONV_TAPS * CONV_WIDTH];
    for (i, &v) in weight.iter().enumerate() {
        let (channel, rest) = (i / (inputs * CONV_TAPS), i % (inputs * CONV_TAPS));
        weights[rest * CONV_WIDTH + channel] = v;
    }
    Ok(TimeConv { weights: gpu.upload("weights", &weights)?, bias: gpu.upload("weights", bias)?, inputs })
}

/// Both directions of a layer. The four gates of a hidden unit stand beside each other: they are one unit of the map of
/// projections, and four neighbouring threads of the recurrence.
fn layer(gpu: &mut Gpu, directions: &[LstmDirection; 2]) -> Result<Layer, CudaError> {
    let given = directions[0].input;
    let input = given.next_multiple_of(8);
    let mut raw = vec![0f32; PROJECTED * input];
    let (mut bias, mut recurrent) = (vec![0f32; PROJECTED], vec![0f32; PROJECTED * HIDDEN]);
    for (d, direction) in directions.iter().enumerate() {
        for (gate, unit) in (0..GATES).flat_map(|gate| (0..HIDDEN).map(move |unit| (gate, unit))) {
            let (from, thread) = (gate * HIDDEN + unit, unit * GATES + gate);
            let row = d * GATES * HIDDEN + thread;
            raw[row * input..][..given].copy_from_slice(&direction.input_weight[from * given..][..given]);
            bias[row] = direction.bias[from];
            for k in 0..HIDDEN {
                recurrent[(d * HIDDEN + k) * GATES * HIDDEN + thread] =
                    direction.hidden_weight[from * HIDDEN + k];
            }
        }
    }
    Ok(Layer {
        op: ConvShape { kernel: 1, stride: 1, input, output: PROJECTED },
        raw: gpu.upload("weights", &raw)?,
        packed: None,
        bias: gpu.upload("weights", &bias)?,
        recurrent: gpu.upload("weights", &recurrent)?,
    })
}

/// `[rows, columns]` to `[columns, rows]`.
fn transposed(values: &[f32], rows: usize) -> Vec<f32> {
    let columns = values.len() / rows;
    (0..values.len()).map(|i| values[i % rows * columns + i / rows]).collect()
}
