//! The networks on NVIDIA GPUs. Depends on `models` and `features`.
//!
//! [`dispatch`] is the table of kernels; [`segmenter`] and [`trunk`] run the two networks, [`embedder`] batches and pools,
//! [`features`] feeds the trunk, [`launch`] calls the driver.

pub mod artifacts;
pub mod device;
pub mod dispatch;
pub mod embedder;
pub mod error;
pub mod features;
pub mod kernel;
pub mod launch;
pub mod segmenter;
pub mod tiles;
pub mod trunk;

use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rayon::prelude::*;

use self::artifacts::{Architecture, Artifacts};
use self::device::Device;
use self::embedder::{Embedder, Part, Place, Window};
use self::error::CudaError;
use self::features::Features;
use self::launch::{Buffer, Gpu};
use self::segmenter::Segmenter;
use super::blocks::{Block, blocks, has_speech, spoken_slices};
use super::{Backend, BackendError, BackendInfo, Embeddings, Observer, Precision, Progress, report};
use crate::features::{Fbank, MELS, SHIFT, frames_in, subtract_mean};
use crate::models::ModelPack;
use crate::models::embedding::{EMBEDDING_DIM, TIME_REDUCTION};
use crate::models::powerset;
use crate::models::windows::{Activity, LOCAL_SPEAKERS, WINDOW_FRAMES, WINDOW_SAMPLES, Windows};

/// Environment variable that makes the kernels be chosen as for a lower compute capability, such as 8.0.
pub const ARCHITECTURE_VARIABLE: &str = "SPEAKRS_APP_CUDA_ARCHITECTURE";

/// The prebuilt kernels, for the architecture that the environment forces if it does.
///
/// # Errors
/// If the variable makes no sense.
pub fn artifacts() -> Result<Artifacts, CudaError> {
    let artifacts = Artifacts::load()?;
    Ok(match std::env::var(ARCHITECTURE_VARIABLE) {
        Ok(text) if !text.is_empty() => artifacts.forced(text.parse::<Architecture>()?)?,
        _ => artifacts,
    })
}

/// The GPUs of this computer, with the reason if one cannot be used.
///
/// # Errors
/// If there is no usable driver.
pub fn devices() -> Result<Vec<(Device, Option<CudaError>)>, CudaError> {
    launch::devices(&artifacts()?)
}

/// The arithmetic for `wanted` on a GPU; without a wish the fastest whose embeddings keep the accuracy contract.
///
/// # Errors
/// If the GPU does not have it.
pub fn precision(device: &Device, wanted: Option<Precision>) -> Result<Precision, CudaError> {
    match wanted {
        Some(precision @ Precision::Tf32) if device.architecture.major < 8 => {
            Err(CudaError::Precision { precision, architecture: device.architecture })
        }
        Some(precision) => Ok(precision),
        None => Ok(Precision::Fp16),
    }
}

/// Both networks on a GPU.
pub struct CudaBackend {
    info: BackendInfo,
    fbank: Fbank,
    silence: Vec<f32>,
    state: Mutex<State>,
}

/// What one recording at a time works with.
struct State {
    embedder: Embedder,
    segmenter: Segmenter,
    features: Features,
}

impl CudaBackend {
    /// Prepares the networks of `pack` on GPU number `ordinal`.
    ///
    /// # Errors
    /// If the GPU cannot be used.
    pub fn new(pack: &ModelPack, ordinal: usize, wanted: Option<Precision>) -> Result<Self, CudaError> {
        let mut gpu = Gpu::open(ordinal, artifacts()?)?;
        let precision = precision(gpu.device(), wanted)?;
        let name = gpu.device().name.clone();
        let fbank = Fbank::new(pack.mel_floor);
        let features = Features::new(&mut gpu, &fbank)?;
        let segmenter = Segmenter::new(&mut gpu, &pack.segmentation)?;
        let embedder = Embedder::new(gpu, &pack.embedding)?;
        Ok(Self {
            info: BackendInfo { device: format!("cuda:{ordinal}"), name, precision },
            fbank,
            silence: pack.embedding.linear_bias.clone(),
            state: Mutex::new(State { embedder, segmenter, features }),
        })
    }

    /// Log-probabilities of windows `range`, row-major `[windows, WINDOW_FRAMES, CLASSES]`.
    ///
    /// # Errors
    /// If the GPU fails.
    pub fn log_probabilities(
        &self,
        samples: &[f32],
        windows: &Windows,
        range: Range<usize>,
    ) -> Result<Vec<f32>, BackendError> {
        let State { embedder, segmenter, .. } = &mut *self.state();
        let mut values = Vec::new();
        for (first, count) in batches(range, segmenter.most(windows)) {
            let scores = segmenter.log_probabilities(embedder.gpu(), samples, windows, first, count);
            values.extend(scores.map_err(|error| self.failed(error))?);
        }
        Ok(values)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere leaves no half-done work behind that matters: every batch starts afresh.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failed(&self, error: CudaError) -> BackendError {
        BackendError::Failed { device: self.info.device.clone(), reason: error.to_string() }
    }

    /// Computes the fbank frames of the recording on the GPU. `false` if windows do not meet them or they do not fit the
    /// memory: then the CPU computes features window by window.
    fn load_features(
        &self,
        state: &mut State,
        samples: &[f32],
        windows: &Windows,
    ) -> Result<bool, BackendError> {
        if !windows.step().is_multiple_of(SHIFT) {
            return Ok(false);
        }
        let frames = frames_in(windows.start_sample(windows.count() - 1) + WINDOW_SAMPLES);
        match state.features.load(state.embedder.gpu(), samples, frames) {
            Ok(()) => Ok(true),
            Err(CudaError::Memory { .. }) => {
                tracing::warn!("GPU memory is short; the features of this recording are computed on the CPU");
                Ok(false)
            }
            Err(error) => Err(self.failed(error)),
        }
    }

    /// Runs `work` in the backend's precision, and in TF32 (before 8.0 in FP32) if a value does not fit FP16.
    fn with_fallback(
        &self,
        mut work: impl FnMut(Precision) -> Result<Option<Vec<f32>>, BackendError>,
    ) -> Result<Embeddings, BackendError> {
        let wider = || {
            let device = self.state().embedder.gpu().device().clone();
            precision(&device, Some(Precision::Tf32)).unwrap_or(Precision::Fp32)
        };
        let mut precision = self.info.precision;
        loop {
            if let Some(values) = work(precision)? {
                return Ok(Embeddings { values, precision });
            }
            let next = wider();
            tracing::warn!(
                "a value of the network does not fit {precision}; computing this recording in {next}"
            );
            precision = next;
        }
    }

    fn embed_in(
        &self,
        precision: Precision,
        samples: &[f32],
        windows: &Windows,
        activity: &Activity,
        progress: Progress<'_>,
    ) -> Result<Option<Vec<f32>>, BackendError> {
        let mut state = self.state();
        let on_gpu = self.load_features(&mut state, samples, windows)?;
        let State { embedder, features, .. } = &mut *state;
        let mut out = Slots::new(&self.silence, windows);
        let width = frames_in(WINDOW_SAMPLES);
        let spoken: Vec<usize> = (0..windows.count()).filter(|&c| has_speech(activity, c)).collect();
        let mut done = 0;
        for batch in spoken.chunks(embedder.most(precision, width)) {
            let fill = |gpu: &mut Gpu, buffer: &Buffer| {
                if on_gpu {
                    let starts: Vec<usize> = batch.iter().map(|&c| windows.start_sample(c) / SHIFT).collect();
                    return features.windows(gpu, &starts, width, buffer);
                }
                let of_window = |&c: &usize| {
                    let mut features = self.fbank.log_mel(&windows.cut(samples, c));
                    subtract_mean(&mut features);
                    features
                };
                gpu.write(
                    "features",
                    buffer,
                    &batch.par_iter().map(of_window).flatten_iter().collect::<Vec<_>>(),
                )
            };
            embedder.run_trunk(precision, batch.len(), width, fill).map_err(|error| self.failed(error))?;
            let frames = width.div_ceil(TIME_REDUCTION);
            let pooled: Vec<Window> = batch
                .iter()
                .enumerate()
                .map(|(index, &c)| Window {
                    part: Part { map: Place::Batch(index), width: frames, first: 0, count: frames },
                    rest: None,
                    masks: masks(activity, c),
                })
                .collect();
            let embedded = embedder.pool(precision, &pooled).map_err(|error| self.failed(error))?;
            let Some(embedded) = embedded else { return Ok(None) };
            out.fill(batch.iter().copied(), &pooled, &embedded);
            done += batch.len();
            report(progress, done, spoken.len())?;
        }
        Ok(Some(out.values))
    }

    fn embed_shared_in(
        &self,
        precision: Precision,
        samples: &[f32],
        windows: &Windows,
        activity: &Activity,
        progress: Progress<'_>,
    ) -> Result<Option<Vec<f32>>, BackendError> {
        let mut state = self.state();
        let on_gpu = self.load_features(&mut state, samples, windows)?;
        let State { embedder, features, .. } = &mut *state;
        let mut out = Slots::new(&self.silence, windows);
        let spoken = spoken_slices(windows, activity);
        let wanted: Vec<Block> =
            blocks(windows).into_iter().filter(|block| block.is_wanted(&spoken)).collect();
        let (mut carried, mut next) = (None, 0);
        for batch in wanted.chunk_by(|a, b| a.frames().len() == b.frames().len()) {
            let width = batch[0].frames().len();
            for batch in batch.chunks(embedder.most(precision, width).max(1)) {
                let fill = |gpu: &mut Gpu, buffer: &Buffer| {
                    if on_gpu {
                        let starts: Vec<usize> = batch.iter().map(|block| block.frames().start).collect();
                        return features.blocks(gpu, &starts, width, frames_in(WINDOW_SAMPLES), buffer);
                    }
                    let of_block = |block: &Block| block.features(samples, &self.fbank);
                    gpu.write(
                        "features",
                        buffer,
                        &batch.par_iter().map(of_block).flatten_iter().collect::<Vec<_>>(),
                    )
                };
                embedder
                    .run_trunk(precision, batch.len(), width, fill)
                    .map_err(|error| self.failed(error))?;
                let last = &batch[batch.len() - 1];
                let end = last.trunk_core().end;
                let ready = spoken[next..].iter().take_while(|(_, slice)| slice.end <= end).count();
                let maps: Vec<(Place, &Block)> = carried
                    .iter()
                    .map(|block| (Place::Carried, block))
                    .chain(batch.iter().enumerate().map(|(index, block)| (Place::Batch(index), block)))
                    .collect();
                let pooled: Vec<Window> = spoken[next..next + ready]
                    .iter()
                    .map(|(c, slice)| {
                        let mut parts = maps.iter().filter_map(|(map, block)| part(*map, block, slice));
                        let part = parts.next().expect("a wanted block for every slice");
                        Window { part, rest: parts.next(), masks: masks(activity, *c) }
                    })
                    .collect();
                let embedded = embedder.pool(precision, &pooled).map_err(|error| self.failed(error))?;
                let Some(embedded) = embedded else { return Ok(None) };
                out.fill(spoken[next..].iter().map(|(c, _)| *c), &pooled, &embedded);
                embedder.carry(precision, batch.len() - 1, width).map_err(|error| self.failed(error))?;
                carried = Some(last.clone());
                next += ready;
                report(progress, last.core.end, last.total)?;
            }
        }
        Ok(Some(out.values))
    }
}

/// `range` in batches of at most `most`: the first and the size of each.
fn batches(range: Range<usize>, most: usize) -> impl Iterator<Item = (usize, usize)> {
    let end = range.end;
    range.step_by(most).map(move |first| (first, most.min(end - first)))
}

/// The frames of `slice` in the core of `block`, whose output is `map`.
fn part(map: Place, block: &Block, slice: &Range<usize>) -> Option<Part> {
    let core = block.trunk_core();
    let (start, end) = (slice.start.max(core.start), slice.end.min(core.end));
    (start < end).then(|| Part {
        map,
        width: block.frames().len().div_ceil(TIME_REDUCTION),
        first: start - core.start + block.core_in_trunk().start,
        count: end - start,
    })
}

fn masks(activity: &Activity, c: usize) -> [Option<Vec<u8>>; LOCAL_SPEAKERS] {
    std::array::from_fn(|speaker| activity.embedding_mask(c, speaker))
}

/// The embeddings of all slots, those of silent local speakers already in place.
struct Slots {
    values: Vec<f32>,
}

impl Slots {
    fn new(silence: &[f32], windows: &Windows) -> Self {
        Self { values: silence.repeat(windows.count() * LOCAL_SPEAKERS) }
    }

    /// Stores the embeddings of the speakers that have masks.
    fn fill(&mut self, indices: impl Iterator<Item = usize>, windows: &[Window], embedded: &[f32]) {
        let rows = embedded.chunks_exact(LOCAL_SPEAKERS * EMBEDDING_DIM);
        for ((c, window), rows) in indices.zip(windows).zip(rows) {
            let slots = self.values[c * LOCAL_SPEAKERS * EMBEDDING_DIM..].chunks_exact_mut(EMBEDDING_DIM);
            for ((slot, row), mask) in slots.zip(rows.chunks_exact(EMBEDDING_DIM)).zip(&window.masks) {
                if mask.is_some() {
                    slot.copy_from_slice(row);
                }
            }
        }
    }
}

impl Backend for CudaBackend {
    fn info(&self) -> &BackendInfo {
        &self.info
    }

    fn segment(
        &self,
        samples: &[f32],
        windows: &Windows,
        progress: Progress<'_>,
    ) -> Result<Activity, BackendError> {
        let State { embedder, segmenter, .. } = &mut *self.state();
        let mut data = Vec::with_capacity(windows.count() * WINDOW_FRAMES * LOCAL_SPEAKERS);
        for (first, count) in batches(0..windows.count(), segmenter.most(windows)) {
            let classes = segmenter.classes(embedder.gpu(), samples, windows, first, count);
            let classes = classes.map_err(|error| self.failed(error))?;
            data.extend(classes.iter().flat_map(|&class| powerset::MEMBERS[usize::from(class)]));
            report(progress, first + count, windows.count())?;
        }
        Ok(Activity::new(data))
    }

    fn embed(
        &self,
        samples: &[f32],
        windows: &Windows,
        activity: &Activity,
        progress: Progress<'_>,
    ) -> Result<Embeddings, BackendError> {
        self.with_fallback(|precision| self.embed_in(precision, samples, windows, activity, progress))
    }

    fn embed_shared(
        &self,
        samples: &[f32],
        windows: &Windows,
        activity: &Activity,
        progress: Progress<'_>,
    ) -> Result<Embeddings, BackendError> {
        self.with_fallback(|precision| self.embed_shared_in(precision, samples, windows, activity, progress))
    }

    fn trace(&self, samples: &[f32], observe: Observer<'_>) -> Result<(), BackendError> {
        let windows = Windows::new(samples.len().min(WINDOW_SAMPLES), WINDOW_SAMPLES);
        let mut features = self.fbank.log_mel(&windows.cut(samples, 0));
        subtract_mean(&mut features);
        observe("features", &[frames_in(WINDOW_SAMPLES), MELS], &features);
        let precision = self.info.precision;
        self.state()
            .embedder
            .trace(precision, &features, &mut |step, bytes| {
                let shape = [step.op.height_out(), step.op.width_out(), step.op.shape.output];
                let name = step.name.strip_suffix(".conv2").unwrap_or(&step.name);
                observe(name, &shape, &trunk::to_rows(step, bytes, precision));
            })
            .map_err(|error| self.failed(error))
    }
}
