//! Batches of windows or blocks through trunk, pooling and linear layer. Depends on `trunk` and `launch`.

use std::collections::HashMap;

use super::error::CudaError;
use super::launch::{Buffer, Gpu, Graph, POOL_FRAMES, Pending, PoolJob, UNIT, dense_partial_bytes};
use super::trunk::{self, Maps, Step, Trunk, map_bytes_per_frame, output_bytes};
use crate::backend::Precision;
use crate::backend::blocks::FULL_BLOCK;
use crate::features::{MELS, frames_in};
use crate::models::embedding::{EMBEDDING_DIM, EmbeddingWeights, TRUNK_DIM};
use crate::models::windows::{LOCAL_SPEAKERS, WINDOW_SAMPLES};

/// Windows of a full batch: fills every multiprocessor several times over.
pub const BATCH: usize = 32;
/// Fewest windows whose memory holds a block of the shared trunk.
const LEAST_BATCH: usize = 8;
/// Windows that are pooled together.
const POOLED: usize = 64;

/// Where the frames that a window pools lie: in one or two maps of the trunk's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Which map.
    pub map: Place,
    /// Its width in trunk frames.
    pub width: usize,
    /// First frame.
    pub first: usize,
    /// Number of frames.
    pub count: usize,
}

/// A map in the memory of the trunk's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The one that [`Embedder::carry`] kept of the batch before.
    Carried,
    /// This one of the last batch.
    Batch(usize),
}

/// A window to pool.
#[derive(Debug, Clone)]
pub struct Window {
    /// Its first frames.
    pub part: Part,
    /// The rest, if the window straddles two maps.
    pub rest: Option<Part>,
    /// For each local speaker who speaks, the frames that count (C6); of any resolution.
    pub masks: [Option<Vec<u8>>; LOCAL_SPEAKERS],
}

/// The embedding network on one GPU.
pub struct Embedder {
    gpu: Gpu,
    trunk: Trunk,
    linear: Buffer,
    linear_bias: Buffer,
    maps: Maps,
    /// fbank frames of a batch that features, maps of 4-byte values and output have room for.
    frames: usize,
    /// One map that stays from the batch before, then those of the batch.
    output: Buffer,
    carried: usize,
    jobs: Buffer,
    statistics: Buffer,
    partial: Buffer,
    embeddings: Buffer,
    graphs: HashMap<(Precision, usize, usize), Option<Graph>>,
}

impl Embedder {
    /// Takes the network to the GPU, with memory for as many windows at a time as fit, at most [`BATCH`].
    ///
    /// # Errors
    /// If there is not enough memory for the smallest batch.
    pub fn new(mut gpu: Gpu, weights: &EmbeddingWeights) -> Result<Self, CudaError> {
        let trunk = Trunk::new(&mut gpu, weights)?;
        let linear = gpu.upload("weights", &weights.linear)?;
        let linear_bias = gpu.upload("weights", &weights.linear_bias)?;
        let rows = POOLED * LOCAL_SPEAKERS;
        let carried = output_bytes(Precision::Fp32, FULL_BLOCK);
        let mut batch = BATCH;
        let (frames, maps, output) = loop {
            let frames = batch * frames_in(WINDOW_SAMPLES);
            match working_memory(&mut gpu, batch, frames, carried) {
                Ok((maps, output)) => break (frames, maps, output),
                Err(CudaError::Memory { .. }) if batch > LEAST_BATCH => {
                    batch /= 2;
                    tracing::warn!("GPU memory is short; continuing with batches of {batch} windows");
                }
                Err(error) => return Err(error),
            }
        };
        Ok(Self {
            jobs: gpu.allocate("pooling", POOLED * size_of::<PoolJob>())?,
            statistics: gpu.allocate("pooling", rows * 2 * TRUNK_DIM * 4)?,
            partial: gpu.allocate("the linear layer", dense_partial_bytes(rows))?,
            embeddings: gpu.allocate("embeddings", rows * EMBEDDING_DIM * 4)?,
            graphs: HashMap::new(),
            gpu,
            trunk,
            linear,
            linear_bias,
            maps,
            frames,
            output,
            carried,
        })
    }

    /// The GPU.
    pub fn gpu(&mut self) -> &mut Gpu {
        &mut self.gpu
    }

    /// Most inputs of `width` fbank frames in a batch.
    pub fn most(&self, width: usize) -> usize {
        self.frames / width
    }

    /// Runs the trunk on `batch` inputs of `width` fbank frames, whose features `fill` writes into the buffer that it gets,
    /// row-major `[batch, width, MELS]`.
    ///
    /// # Errors
    /// If the batch is larger than [`Embedder::most`] or the GPU fails.
    pub fn run_trunk(
        &mut self,
        precision: Precision,
        batch: usize,
        width: usize,
        fill: impl FnOnce(&mut Gpu, &Buffer) -> Result<(), CudaError>,
    ) -> Result<(), CudaError> {
        if batch > self.most(width) {
            let most = self.most(width) as u64;
            return Err(CudaError::Index { context: "inputs of a batch".into(), actual: batch as u64, most });
        }
        fill(&mut self.gpu, &self.maps.features)?;
        self.launch_trunk(precision, batch, width)
    }

    /// Runs the trunk on the features that are there. Sizes that recur are recorded at their second use and replayed.
    ///
    /// # Errors
    /// If the GPU fails.
    pub fn launch_trunk(
        &mut self,
        precision: Precision,
        batch: usize,
        width: usize,
    ) -> Result<(), CudaError> {
        let recurs = width == frames_in(WINDOW_SAMPLES) || width == FULL_BLOCK;
        let key = (precision, batch, width);
        if let Some(Some(graph)) = self.graphs.get_mut(&key) {
            return self.gpu.replay(graph);
        }
        let steps = trunk::plan(self.gpu.device(), precision, batch, width)?;
        let output = self.output.part(self.carried, self.output.len() - self.carried);
        let (trunk, maps) = (&mut self.trunk, &self.maps);
        if !recurs || !self.graphs.contains_key(&key) {
            trunk.prepare(&mut self.gpu, &steps)?;
            trunk.run(&mut self.gpu, &steps, batch, maps, &output, &mut |_, _, _| Ok(()))?;
            if recurs {
                self.graphs.insert(key, None);
            }
            return Ok(());
        }
        let mut graph =
            self.gpu.record(|gpu| trunk.run(gpu, &steps, batch, maps, &output, &mut |_, _, _| Ok(())))?;
        self.gpu.replay(&mut graph)?;
        self.graphs.insert(key, Some(graph));
        Ok(())
    }

    /// Runs the trunk launch by launch on one input and shows `observe` every output: what lies inside of a block that is
    /// one launch is never in memory.
    ///
    /// # Errors
    /// If the GPU fails.
    pub fn trace(
        &mut self,
        precision: Precision,
        features: &[f32],
        observe: &mut dyn FnMut(&Step, &[u8]),
    ) -> Result<(), CudaError> {
        let width = features.len() / MELS;
        let steps = trunk::plan(self.gpu.device(), precision, 1, width)?;
        self.trunk.prepare(&mut self.gpu, &steps)?;
        self.gpu.write("features", &self.maps.features, features)?;
        self.gpu.fill(&self.maps.overflow, 0)?;
        let output = self.output.part(self.carried, self.output.len() - self.carried);
        self.trunk.run(&mut self.gpu, &steps, 1, &self.maps, &output, &mut |gpu, step, map| {
            let bytes = step.op.output_len(1) * trunk::value_bytes(precision);
            observe(step, &gpu.read::<u8>("a map", map, bytes)?);
            Ok(())
        })
    }

    /// Keeps output map `index` of the last batch for windows that straddle it and the next batch.
    ///
    /// # Errors
    /// If the map is wider than a block.
    pub fn carry(&mut self, precision: Precision, index: usize, width: usize) -> Result<(), CudaError> {
        let bytes = output_bytes(precision, width);
        let from = self.output.part(self.carried + index * bytes, bytes);
        self.gpu.copy(&from, &self.output.part(0, self.carried))
    }

    /// Forgets that values did not fit FP16.
    ///
    /// # Errors
    /// If the GPU fails.
    pub fn begin(&mut self) -> Result<(), CudaError> {
        self.gpu.fill(&self.maps.overflow, 0)
    }

    /// Whether all values of the trunk since [`Embedder::begin`] fitted FP16, if that was their precision.
    ///
    /// # Errors
    /// If the GPU fails.
    pub fn fitted(&mut self) -> Result<bool, CudaError> {
        Ok(self.gpu.read::<u32>("the overflow word", &self.maps.overflow, 1)? == [0])
    }

    /// Starts on an embedding for each local speaker of each of `windows`, of the trunk's last batch.
    ///
    /// # Errors
    /// If the GPU fails.
    pub fn pool(&mut self, precision: Precision, windows: &[Window]) -> Result<Vec<Pending>, CudaError> {
        let mut pending = Vec::with_capacity(windows.len().div_ceil(POOLED));
        for windows in windows.chunks(POOLED) {
            let jobs: Vec<PoolJob> = windows.iter().map(|window| self.job(precision, window)).collect();
            self.gpu.pool(trunk::stored(precision), &self.output, &jobs, &self.jobs, &self.statistics)?;
            let rows = jobs.len() * LOCAL_SPEAKERS;
            let Self { statistics, linear, linear_bias, partial, embeddings, .. } = self;
            self.gpu.dense(rows, statistics, linear, linear_bias, partial, embeddings)?;
            pending.push(self.gpu.read_later("embeddings", &self.embeddings, 4 * rows * EMBEDDING_DIM)?);
        }
        Ok(pending)
    }

    /// Waits for embeddings, row-major `[windows, LOCAL_SPEAKERS, EMBEDDING_DIM]`; those of absent masks are the bias.
    ///
    /// # Errors
    /// If the GPU fails.
    pub fn embeddings(&mut self, pending: Vec<Pending>) -> Result<Vec<f32>, CudaError> {
        let mut values = Vec::new();
        for pending in pending {
            values.extend(self.gpu.collect::<f32>(pending)?);
        }
        Ok(values)
    }

    fn job(&self, precision: Precision, window: &Window) -> PoolJob {
        let map = |width| TRUNK_DIM * width * trunk::value_bytes(precision);
        let unit = |part: Part| {
            let start = match part.map {
                Place::Carried => 0,
                Place::Batch(index) => self.carried + index * map(part.width),
            };
            (start / UNIT + part.first) as u32
        };
        let rest = window.rest.unwrap_or(Part { count: 0, ..window.part });
        PoolJob {
            unit0: unit(window.part),
            pitch0: window.part.width as u32,
            count0: window.part.count as u32,
            unit1: unit(rest),
            pitch1: rest.width as u32,
            mask: window.masks.each_ref().map(|mask| bits(mask.as_deref())),
        }
    }
}

/// Memory for `batch` windows of together `frames` fbank frames.
fn working_memory(
    gpu: &mut Gpu,
    batch: usize,
    frames: usize,
    carried: usize,
) -> Result<(Maps, Buffer), CudaError> {
    let map = frames * map_bytes_per_frame(Precision::Fp32);
    let maps = Maps {
        features: gpu.allocate("features", frames * MELS * 4)?,
        maps: [gpu.allocate("maps", map)?, gpu.allocate("maps", map)?, gpu.allocate("maps", map)?],
        overflow: gpu.upload("the overflow word", &[0u32])?,
    };
    let outputs = batch * output_bytes(Precision::Fp32, frames_in(WINDOW_SAMPLES));
    Ok((maps, gpu.allocate("the trunk's output", carried + outputs)?))
}

/// The mask resampled to trunk frames by nearest neighbour (C6), as bits.
fn bits(mask: Option<&[u8]>) -> [u32; 4] {
    let mut words = [0; 4];
    if let Some(mask) = mask {
        for t in (0..POOL_FRAMES).filter(|t| mask[t * mask.len() / POOL_FRAMES] == 1) {
            words[t / 32] |= 1 << (t % 32);
        }
    }
    words
}
