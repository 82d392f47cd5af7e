//! segmentation-3.0 on a GPU (C3), with products of FP32 accuracy on the tensor cores. Depends on `launch`.

use super::error::CudaError;
use super::launch::{Arg, Buffer, Gpu, Pending};
use super::tiles::tile;
use crate::models::powerset::CLASSES;
use crate::models::segmentation::{
    CONV_CHANNELS, CONV_TAPS, GATES, HIDDEN, LINEAR, LSTM_LAYERS, Linear, LstmDirection, Norm, POOL,
    SINC_FILTERS, SINC_STRIDE, SINC_TAPS, SegmentationWeights,
};
use crate::models::windows::{WINDOW_FRAMES, WINDOW_SAMPLES};

const FRONT: &str = "sincnet.cu";
/// Outputs of the sinc filters for one window.
const FILTERED: usize = (WINDOW_SAMPLES - SINC_TAPS) / SINC_STRIDE + 1;
/// The same after pooling, and the outputs of the two further convolutions after theirs.
const LENGTHS: [usize; 3] = [FILTERED / POOL, (FILTERED / POOL - CONV_TAPS + 1) / POOL, WINDOW_FRAMES];
/// Channels of the convolutions in memory.
const CONV_WIDTH: usize = tile("TIME_CONV_CHANNELS") as usize;
/// Channels of the three maps of the front in memory, of which [`CHANNELS`] count.
const WIDTHS: [usize; 3] = [SINC_FILTERS, CONV_WIDTH, CONV_WIDTH];
const CHANNELS: [usize; 3] = [SINC_FILTERS, CONV_CHANNELS, CONV_CHANNELS];
/// Frames of a tile whose statistics are computed together.
const TILES: [usize; 3] = {
    let conv = tile("TIME_CONV_TILE") as usize;
    [tile("SINC_POOL_TILE") as usize, conv, conv]
};
/// Samples from one window to the next that a full batch has room for: the default step.
const ROOM: usize = 16_000;
/// Outputs of a layer of the LSTM.
const STATES: usize = 2 * HIDDEN;
/// Gates of both directions.
const PROJECTED: usize = 2 * GATES * HIDDEN;
/// Bytes of a value that is split into two FP16.
const SPLIT: usize = 4;
/// Bytes of the recurrent weights of one direction.
const RECURRENT: usize = SPLIT * GATES * HIDDEN * HIDDEN;
/// Weights, gains and shifts must be smaller, so that FP16 holds every value that the kernels split (`split.cuh`).
const LIMIT: usize = tile("SPLIT_LIMIT") as usize;
const FP16_MAX: usize = tile("FP16_MAX") as usize;
/// Fewest and most windows of a batch. With more, the rows of tiles of a projection would not fit a grid.
const LEAST_BATCH: usize = 8;
const LARGEST_BATCH: usize = 14_000;

const _: () = assert!(
    WINDOW_SAMPLES == tile("SEG_SAMPLES") as usize
        && WINDOW_FRAMES == tile("SEG_FRAMES") as usize
        && FILTERED == tile("SINC_OUTPUTS") as usize
        && LENGTHS[0] == tile("SINC_FRAMES") as usize
        && LENGTHS[1] == tile("SINC_FRAMES2") as usize
        && (LENGTHS[1] - CONV_TAPS + 1) / POOL == WINDOW_FRAMES
        && SINC_FILTERS == tile("SINC_FILTERS") as usize
        && SINC_TAPS == tile("SINC_TAPS") as usize
        && HIDDEN == tile("SEG_HIDDEN") as usize
        && LINEAR == HIDDEN
        && CLASSES == tile("SEG_CLASSES") as usize
        && LIMIT * tile("SPLIT_SCALE") as usize <= FP16_MAX
        && LENGTHS[0] * LIMIT * LIMIT <= (FP16_MAX - LIMIT) * (FP16_MAX - LIMIT)
        && (STATES + 1) * LIMIT <= FP16_MAX
        && (WINDOW_FRAMES * LARGEST_BATCH).div_ceil(tile("PROJECT_TILE") as usize) <= 65_535
);

struct Affine {
    gain: Buffer,
    shift: Buffer,
}

/// Weights as fragments, split into two FP16, with their bias.
struct Packed {
    weights: Buffer,
    bias: Buffer,
}

struct Layer {
    projection: Packed,
    recurrent: Buffer,
}

/// Memory for a batch.
struct Work {
    batch: usize,
    /// Samples from the first window's start to the last one's end that there is room for.
    span: usize,
    /// Outputs of the sinc filters.
    positions: usize,
    moments: Buffer,
    filtered: Buffer,
    maps: [Buffer; 3],
    partial: [Buffer; 3],
    factors: [Buffer; 3],
    front: Buffer,
    projected: Buffer,
    states: [Buffer; 2],
    classes: Buffer,
    scores: Buffer,
}

/// Windows of one recording, which follow one another.
#[derive(Clone, Copy)]
pub struct Part<'a> {
    /// Samples, behind whose end there are zeros.
    pub audio: &'a Buffer,
    /// Their number.
    pub samples: usize,
    /// Where the first window begins, in samples.
    pub first: usize,
    /// Samples from one window to the next.
    pub step: usize,
    /// Number of windows.
    pub count: usize,
}

/// The network with its weights on one GPU.
pub struct Segmenter {
    wave: (f32, f32),
    filters: Buffer,
    sums: Buffer,
    norms: [Affine; 3],
    convs: [Packed; 2],
    layers: Vec<Layer>,
    linears: [Packed; 2],
    classifier: (Buffer, Buffer),
    work: Work,
}

impl Segmenter {
    /// Takes the network to the GPU, with memory for as many windows as fill its multiprocessors, or as fit.
    ///
    /// # Errors
    /// If there is not enough memory for the smallest batch, or a weight is too large.
    pub fn new(gpu: &mut Gpu, weights: &SegmentationWeights) -> Result<Self, CudaError> {
        let mut filters = vec![0f32; tile("SINC_TAPS_PADDED") as usize * SINC_FILTERS];
        for (i, &v) in weights.sinc.iter().enumerate() {
            filters[i % SINC_TAPS * SINC_FILTERS + i / SINC_TAPS] = v;
        }
        let sum = |taps: &[f32]| taps.iter().map(|&t| f64::from(t)).sum::<f64>() as f32;
        let sums: Vec<f32> = weights.sinc.chunks_exact(SINC_TAPS).map(sum).collect();
        let [norm0, norm1, norm2] = &weights.norms;
        let norms = [
            affine(gpu, "sincnet.norm1d.0", norm0)?,
            affine(gpu, "sincnet.norm1d.1", norm1)?,
            affine(gpu, "sincnet.norm1d.2", norm2)?,
        ];
        let [conv0, conv1] = &weights.convs;
        let convs = [
            pack(gpu, "sincnet.conv1d.1", conv0, CONV_TAPS, [SINC_FILTERS, WIDTHS[0], CONV_WIDTH])?,
            pack(gpu, "sincnet.conv1d.2", conv1, CONV_TAPS, [CONV_CHANNELS, WIDTHS[1], CONV_WIDTH])?,
        ];
        let layers = weights
            .lstm
            .iter()
            .enumerate()
            .map(|(index, directions)| layer(gpu, index, directions))
            .collect::<Result<_, _>>()?;
        let [linear0, linear1] = &weights.linears;
        let linears = [
            pack(gpu, "linear.0", linear0, 1, [STATES, STATES, LINEAR])?,
            pack(gpu, "linear.1", linear1, 1, [LINEAR, LINEAR, LINEAR])?,
        ];
        let classifier = (
            gpu.upload("weights", &weights.classifier.weight)?,
            gpu.upload("weights", &weights.classifier.bias)?,
        );
        let filters = gpu.upload("weights", &filters)?;
        let sums = gpu.upload("weights", &sums)?;
        // Two directions fill the multiprocessors with groups of windows.
        let group = tile("LSTM_WINDOWS") as usize;
        let mut batch = (gpu.device().sms as usize / 2 * group).clamp(2 * group, LARGEST_BATCH);
        let work = loop {
            match Work::new(gpu, batch) {
                Ok(work) => break work,
                Err(CudaError::Memory { .. }) if batch > LEAST_BATCH => {
                    batch = (batch / 2).next_multiple_of(group);
                    tracing::warn!(
                        "GPU memory is short; segmentation continues with batches of {batch} windows"
                    );
                }
                Err(error) => return Err(error),
            }
        };
        let wave = (weights.wave_norm.scale[0], weights.wave_norm.shift[0]);
        Ok(Self { wave, filters, sums, norms, convs, layers, linears, classifier, work })
    }

    /// Most windows of a batch.
    pub fn batch(&self) -> usize {
        self.work.batch
    }

    /// Most windows of a [`Part`] with `step` samples from one to the next.
    pub fn most(&self, step: usize) -> usize {
        let samples = (self.work.span - WINDOW_SAMPLES) / step + 1;
        let filtered =
            if step.is_multiple_of(SINC_STRIDE) { samples } else { self.work.positions / FILTERED };
        samples.min(filtered).clamp(1, self.work.batch)
    }

    /// Starts on the most probable class of every frame of the windows of `parts`, `[windows, WINDOW_FRAMES]` of u8.
    ///
    /// # Errors
    /// If there are more than [`Segmenter::batch`], a part has more than [`Segmenter::most`], or the GPU fails.
    pub fn classes(&mut self, gpu: &mut Gpu, parts: &[Part<'_>]) -> Result<Pending, CudaError> {
        let count = self.run(gpu, parts, false)?;
        gpu.read_later("classes", &self.work.classes, count * WINDOW_FRAMES)
    }

    /// Log-probabilities of the same, `[windows, WINDOW_FRAMES, CLASSES]`.
    ///
    /// # Errors
    /// As [`Segmenter::classes`].
    pub fn log_probabilities(&mut self, gpu: &mut Gpu, parts: &[Part<'_>]) -> Result<Vec<f32>, CudaError> {
        let count = self.run(gpu, parts, true)?;
        gpu.read("scores", &self.work.scores, count * WINDOW_FRAMES * CLASSES)
    }

    fn run(&self, gpu: &mut Gpu, parts: &[Part<'_>], scores: bool) -> Result<usize, CudaError> {
        let count = parts.iter().map(|part| part.count).sum();
        let largest = parts.iter().map(|part| (part.count, self.most(part.step)));
        for (actual, most) in largest.chain([(count, self.work.batch)]) {
            if actual > most {
                let context = "windows of a segmentation batch".into();
                return Err(CudaError::Index { context, actual: actual as u64, most: most as u64 });
            }
        }
        let mut at = 0;
        for part in parts.iter().filter(|part| part.count > 0) {
            self.filter(gpu, part, at)?;
            at += part.count;
        }
        if count == 0 {
            return Ok(0);
        }
        for index in 0..2 {
            self.normalise(gpu, index, count)?;
            self.time_conv(gpu, index, count)?;
        }
        self.normalise(gpu, 2, count)?;
        self.split(gpu, count)?;
        let mut input = (&self.work.front, CONV_WIDTH);
        for (index, layer) in self.layers.iter().enumerate() {
            let output = &self.work.states[index % 2];
            self.lstm(gpu, layer, input, output, count)?;
            input = (output, STATES);
        }
        self.classify(gpu, count, scores)?;
        Ok(count)
    }

    /// Sinc filters, magnitude and pooling of `part`, whose first window is window `at` of the batch.
    fn filter(&self, gpu: &mut Gpu, part: &Part<'_>, at: usize) -> Result<(), CudaError> {
        let Work { moments, filtered, maps, partial, .. } = &self.work;
        let Part { audio, samples, first, step, count } = *part;
        let span = (count - 1) * step + WINDOW_SAMPLES;
        let moments = &moments.part(8 * at, 8 * count);
        let map = &maps[0].part(map_bytes(0, at), map_bytes(0, count));
        let statistics = &partial[0].part(partial_bytes(0, at), partial_bytes(0, count));
        let source = [
            Arg::In("samples", audio, 4 * samples),
            Arg::U64(samples as u64),
            Arg::U64(first as u64),
            Arg::U64(step as u64),
        ];
        let [audio, length, start, apart] = source;
        gpu.call(
            (FRONT, "wave_moments"),
            [count, 1, 1],
            tile("MOMENT_THREADS"),
            0,
            &[
                audio,
                length,
                start,
                apart,
                Arg::Out("moments", moments, 8 * count),
                Arg::F32(self.wave.0),
                Arg::F32(self.wave.1),
            ],
        )?;
        // Windows share the filters' output where their starts meet the filters' stride, else each has its own.
        let shared = step.is_multiple_of(SINC_STRIDE);
        let (segments, positions, window_step) = if shared {
            (1, (span - SINC_TAPS) / SINC_STRIDE + 1, step / SINC_STRIDE)
        } else {
            (count, FILTERED, FILTERED)
        };
        let output = 4 * segments * SINC_FILTERS * positions;
        gpu.call(
            (FRONT, "sinc_filter"),
            [positions.div_ceil(tile("SINC_TILE") as usize), segments, 1],
            tile("SINC_THREADS"),
            0,
            &[
                audio,
                length,
                start,
                apart,
                Arg::In("filters", &self.filters, self.filters.len()),
                Arg::Out("output", filtered, output),
                Arg::Size("positions", positions),
                Arg::Size("padding", 0),
            ],
        )?;
        gpu.call(
            (FRONT, "sinc_pool"),
            [LENGTHS[0].div_ceil(TILES[0]), count, 1],
            tile("SINC_POOL_THREADS"),
            0,
            &[
                Arg::In("input", filtered, output),
                Arg::In("moments", moments, 8 * count),
                Arg::In("sums", &self.sums, 4 * SINC_FILTERS),
                Arg::Out("output", map, map_bytes(0, count)),
                Arg::Out("statistics", statistics, partial_bytes(0, count)),
                Arg::U64(0),
                Arg::U64(window_step as u64),
            ],
        )
    }

    /// What normalises map `index`, from the statistics of its tiles.
    fn normalise(&self, gpu: &mut Gpu, index: usize, count: usize) -> Result<(), CudaError> {
        let Affine { gain, shift } = &self.norms[index];
        gpu.call(
            (FRONT, "norm_factors"),
            [count, 1, 1],
            tile("NORM_THREADS"),
            0,
            &[
                Arg::In("statistics", &self.work.partial[index], partial_bytes(index, count)),
                Arg::In("gain", gain, 4 * CHANNELS[index]),
                Arg::In("shift", shift, 4 * CHANNELS[index]),
                Arg::Out("factors", &self.work.factors[index], factor_bytes(index, count)),
                Arg::Size("frames", LENGTHS[index]),
                Arg::Size("frames of a tile", TILES[index]),
                Arg::Size("channels", CHANNELS[index]),
                Arg::Size("width", WIDTHS[index]),
            ],
        )
    }

    /// Convolution over time and pooling, from map `index` to the next.
    fn time_conv(&self, gpu: &mut Gpu, index: usize, count: usize) -> Result<(), CudaError> {
        let Work { maps, partial, factors, .. } = &self.work;
        let Packed { weights, bias } = &self.convs[index];
        let next = index + 1;
        gpu.call(
            (FRONT, ["time_conv80", "time_conv60"][index]),
            [LENGTHS[next].div_ceil(TILES[next]), count, 1],
            tile("TIME_CONV_THREADS"),
            0,
            &[
                Arg::In("input", &maps[index], map_bytes(index, count)),
                Arg::In("factors", &factors[index], factor_bytes(index, count)),
                Arg::In("weights", weights, SPLIT * CONV_TAPS * WIDTHS[index] * CONV_WIDTH),
                Arg::In("bias", bias, 4 * CONV_WIDTH),
                Arg::Out("output", &maps[next], map_bytes(next, count)),
                Arg::Out("statistics", &partial[next], partial_bytes(next, count)),
                Arg::Size("frames", LENGTHS[index]),
                Arg::Size("pooled frames", LENGTHS[next]),
            ],
        )
    }

    /// Normalises the last map of the front and splits it for the LSTM.
    fn split(&self, gpu: &mut Gpu, count: usize) -> Result<(), CudaError> {
        let Work { maps, factors, front, .. } = &self.work;
        const THREADS: u32 = tile("SPLIT_THREADS");
        gpu.call(
            (FRONT, "normalise_split"),
            [(count * WINDOW_FRAMES * CONV_WIDTH / 4).div_ceil(THREADS as usize), 1, 1],
            THREADS,
            0,
            &[
                Arg::In("input", &maps[2], map_bytes(2, count)),
                Arg::In("factors", &factors[2], factor_bytes(2, count)),
                Arg::Out("output", front, SPLIT * count * WINDOW_FRAMES * CONV_WIDTH),
                Arg::Size("frames", WINDOW_FRAMES),
                Arg::Size("windows", count),
            ],
        )
    }

    /// One layer in both directions, from `input` and its width.
    fn lstm(
        &self,
        gpu: &mut Gpu,
        layer: &Layer,
        (input, width): (&Buffer, usize),
        output: &Buffer,
        count: usize,
    ) -> Result<(), CudaError> {
        let (rows, projected) = (count * WINDOW_FRAMES, &self.work.projected);
        let Packed { weights, bias } = &layer.projection;
        let old = gpu.device().architecture.major < 8;
        let shared = |new: u32, old_one: u32| if old { old_one } else { new };
        gpu.call(
            ("lstm.cu", "lstm_project"),
            [PROJECTED / 128, rows.div_ceil(tile("PROJECT_TILE") as usize), 1],
            tile("PROJECT_THREADS"),
            shared(tile("PROJECT_SHARED"), tile("PROJECT_SHARED_75")),
            &[
                Arg::In("input", input, SPLIT * rows * width),
                Arg::In("weights", weights, SPLIT * width * PROJECTED),
                Arg::In("bias", bias, 4 * PROJECTED),
                Arg::Out("projections", projected, 4 * rows * PROJECTED),
                Arg::Size("rows", rows),
                Arg::Size("width", width),
            ],
        )?;
        gpu.call(
            ("lstm.cu", "lstm"),
            [count.div_ceil(tile("LSTM_WINDOWS") as usize), 2, 1],
            tile("LSTM_THREADS"),
            tile("LSTM_SHARED"),
            &[
                Arg::In("projections", projected, 4 * rows * PROJECTED),
                Arg::In("weights", &layer.recurrent, 2 * RECURRENT),
                Arg::Out("output", output, SPLIT * rows * STATES),
                Arg::Size("windows", count),
                Arg::Size("frames", WINDOW_FRAMES),
            ],
        )
    }

    fn classify(&self, gpu: &mut Gpu, count: usize, scores: bool) -> Result<(), CudaError> {
        let rows = count * WINDOW_FRAMES;
        let [first, second] = &self.linears;
        let (weights, bias) = &self.classifier;
        let Work { states, classes, scores: out, .. } = &self.work;
        gpu.call(
            ("classify.cu", "classify"),
            [rows.div_ceil(tile("CLASSIFY_ROWS") as usize), 1, 1],
            tile("CLASSIFY_THREADS"),
            0,
            &[
                Arg::In("input", &states[(LSTM_LAYERS - 1) % 2], SPLIT * rows * STATES),
                Arg::In("weights", &first.weights, SPLIT * STATES * LINEAR),
                Arg::In("bias", &first.bias, 4 * LINEAR),
                Arg::In("weights", &second.weights, SPLIT * LINEAR * LINEAR),
                Arg::In("bias", &second.bias, 4 * LINEAR),
                Arg::In("weights", weights, 4 * CLASSES * LINEAR),
                Arg::In("bias", bias, 4 * CLASSES),
                if scores { Arg::Out("scores", out, 4 * CLASSES * rows) } else { Arg::Null },
                Arg::Out("classes", classes, rows),
                Arg::Size("rows", rows),
                Arg::Size("padding", 0),
            ],
        )
    }
}

impl Work {
    fn new(gpu: &mut Gpu, batch: usize) -> Result<Self, CudaError> {
        let span = (batch - 1) * ROOM + WINDOW_SAMPLES;
        let positions = (span - SINC_TAPS) / SINC_STRIDE + 1;
        let rows = batch * WINDOW_FRAMES;
        let mut each = |what: &str, bytes: fn(usize, usize) -> usize| {
            Ok::<_, CudaError>([
                gpu.allocate(what, bytes(0, batch))?,
                gpu.allocate(what, bytes(1, batch))?,
                gpu.allocate(what, bytes(2, batch))?,
            ])
        };
        let (maps, partial) = (each("convolutions", map_bytes)?, each("statistics", partial_bytes)?);
        let factors = each("statistics", factor_bytes)?;
        let mut state = || gpu.allocate("LSTM states", SPLIT * rows * STATES);
        let states = [state()?, state()?];
        Ok(Self {
            batch,
            span,
            positions,
            moments: gpu.allocate("moments", 8 * batch)?,
            filtered: gpu.allocate("filtered audio", 4 * SINC_FILTERS * positions)?,
            maps,
            partial,
            factors,
            front: gpu.allocate("LSTM inputs", SPLIT * rows * CONV_WIDTH)?,
            projected: gpu.allocate("LSTM inputs", 4 * rows * PROJECTED)?,
            states,
            classes: gpu.allocate("classes", rows)?,
            scores: gpu.allocate("scores", 4 * CLASSES * rows)?,
        })
    }
}

/// Bytes of map `index` of the front.
fn map_bytes(index: usize, count: usize) -> usize {
    4 * count * LENGTHS[index] * WIDTHS[index]
}

/// Bytes of the statistics of its tiles: mean and squared deviations of every channel.
fn partial_bytes(index: usize, count: usize) -> usize {
    8 * count * LENGTHS[index].div_ceil(TILES[index]) * WIDTHS[index]
}

/// Bytes of what normalises it: four numbers a channel.
fn factor_bytes(index: usize, count: usize) -> usize {
    16 * count * WIDTHS[index]
}

fn affine(gpu: &mut Gpu, name: &str, norm: &Norm) -> Result<Affine, CudaError> {
    check(name, &norm.scale)?;
    check(name, &norm.shift)?;
    Ok(Affine { gain: gpu.upload("weights", &norm.scale)?, shift: gpu.upload("weights", &norm.shift)? })
}

fn check(name: &str, weights: &[f32]) -> Result<(), CudaError> {
    match weights.iter().find(|v| v.is_nan() || v.abs() >= LIMIT as f32) {
        Some(&value) => Err(CudaError::Weight { name: name.into(), value, limit: LIMIT as f32 }),
        None => Ok(()),
    }
}

/// A layer of `[channels, width, columns]`: inputs, those with padding, outputs with padding.
fn pack(
    gpu: &mut Gpu,
    name: &str,
    linear: &Linear,
    taps: usize,
    [channels, width, columns]: [usize; 3],
) -> Result<Packed, CudaError> {
    let packed = Packed::new(gpu, taps * width, columns)?;
    packed.fill(gpu, name, (&linear.weight, &linear.bias), taps, channels, 0..columns, false)?;
    Ok(packed)
}

impl Packed {
    fn new(gpu: &mut Gpu, inputs: usize, columns: usize) -> Result<Self, CudaError> {
        Ok(Self {
            weights: gpu.allocate("packed weights", SPLIT * inputs * columns)?,
            bias: gpu.allocate("packed weights", 4 * columns)?,
        })
    }

    /// Packs the rows `[channels, taps]` of `weight` into the columns from `range` on; columns without a row are zeros.
    #[expect(clippy::too_many_arguments, reason = "what the kernel has to know")]
    fn fill(
        &self,
        gpu: &mut Gpu,
        name: &str,
        (weight, bias): (&[f32], &[f32]),
        taps: usize,
        channels: usize,
        range: std::ops::Range<usize>,
        gates: bool,
    ) -> Result<(), CudaError> {
        check(name, weight)?;
        check(name, bias)?;
        let columns = self.bias.len() / 4;
        let inputs = self.weights.len() / (SPLIT * columns);
        let rows = bias.len();
        assert!(weight.len() == rows * channels * taps && rows <= range.len() && range.end <= columns);
        let (weight, bias) = (gpu.upload("weights", weight)?, gpu.upload("weights", bias)?);
        const THREADS: u32 = tile("PACK_THREADS");
        // A lane packs 4 weights of a fragment.
        let threads = inputs * range.len() / 4;
        gpu.call(
            ("split_pack.cu", "pack_split"),
            [threads.div_ceil(THREADS as usize), 1, 1],
            THREADS,
            0,
            &[
                Arg::In("weights", &weight, 4 * rows * channels * taps),
                Arg::In("bias", &bias, 4 * rows),
                Arg::Out("packed weights", &self.weights, SPLIT * inputs * columns),
                Arg::Out("packed bias", &self.bias, 4 * columns),
                Arg::Size("rows", rows),
                Arg::Size("channels", channels),
                Arg::Size("taps", taps),
                Arg::Size("width", inputs / taps),
                Arg::Size("columns", columns),
                Arg::Size("first", range.start),
                Arg::Size("count", range.len()),
                Arg::Size("gates", usize::from(gates)),
            ],
        )
    }
}

/// Both directions of a layer.
fn layer(gpu: &mut Gpu, index: usize, directions: &[LstmDirection; 2]) -> Result<Layer, CudaError> {
    let channels = directions[0].input;
    let width = if index == 0 { CONV_WIDTH } else { STATES };
    let projection = Packed::new(gpu, width, PROJECTED)?;
    let recurrent = gpu.allocate("packed weights", 2 * RECURRENT)?;
    for (d, direction) in directions.iter().enumerate() {
        let suffix = if d == 0 { "" } else { "_reverse" };
        let name = format!("lstm.weight_ih_l{index}{suffix}");
        let columns = d * PROJECTED / 2..(d + 1) * PROJECTED / 2;
        let weights = (&direction.input_weight[..], &direction.bias[..]);
        projection.fill(gpu, &name, weights, 1, channels, columns, true)?;
        check(&format!("lstm.weight_hh_l{index}{suffix}"), &direction.hidden_weight)?;
        let raw = gpu.upload("weights", &direction.hidden_weight)?;
        const THREADS: u32 = tile("PACK_THREADS");
        // A thread packs 8 weights.
        gpu.call(
            ("split_pack.cu", "pack_recurrent"),
            [(GATES * HIDDEN * HIDDEN / 8).div_ceil(THREADS as usize), 1, 1],
            THREADS,
            0,
            &[
                Arg::In("weights", &raw, 4 * GATES * HIDDEN * HIDDEN),
                Arg::Out("packed weights", &recurrent.part(d * RECURRENT, RECURRENT), RECURRENT),
            ],
        )?;
    }
    Ok(Layer { projection, recurrent })
}
