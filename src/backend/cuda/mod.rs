//! The networks on NVIDIA GPUs. Depends on `models` and `features`.
//!
//! [`dispatch`] is the table of kernels; [`segmenter`] and [`trunk`] run the two networks, `queue` fills segmentation's
//! batches, [`embedder`] batches and pools, [`features`] feeds the trunk, [`launch`] calls the driver.

pub mod artifacts;
pub mod device;
pub mod dispatch;
pub mod embedder;
pub mod error;
pub mod features;
pub mod kernel;
pub mod launch;
mod queue;
pub mod segmenter;
pub mod tiles;
pub mod trunk;

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{TryRecvError, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rayon::prelude::*;

use self::artifacts::{Architecture, Artifacts};
use self::device::Device;
use self::embedder::{Embedder, Part, Place, Window};
use self::error::CudaError;
use self::features::{Features, LogMel};
use self::launch::{Buffer, Gpu, Pending};
use self::queue::{Flight, Queue, Request};
use self::segmenter::{Part as Audio, Segmenter};
use super::blocks::{Block, blocks, has_speech, spoken_slices};
use super::{
    Backend, BackendError, BackendInfo, Embeddings, Observer, Precision, Progress, Recording, report,
};
use crate::features::{Fbank, MELS, SHIFT, frames_in, subtract_mean};
use crate::models::ModelPack;
use crate::models::embedding::{EMBEDDING_DIM, TIME_REDUCTION};
use crate::models::powerset;
use crate::models::windows::{Activity, LOCAL_SPEAKERS, WINDOW_FRAMES, WINDOW_SAMPLES, Windows};

/// Environment variable that makes the kernels be chosen as for a lower compute capability, such as 8.0.
pub const ARCHITECTURE_VARIABLE: &str = "SPEAKRS_APP_CUDA_ARCHITECTURE";

/// Recordings in work at a time: one-minute recordings that wait together fill a batch of segmentation on a large GPU,
/// while others are embedded and clustered.
const RECORDINGS: usize = 8;

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
    waiting: Queue,
    /// Number of recordings so far.
    recordings: AtomicU64,
}

/// What one recording at a time works with.
struct State {
    embedder: Embedder,
    segmenter: Segmenter,
    features: Features,
    flight: Flight,
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
            state: Mutex::new(State { embedder, segmenter, features, flight: Flight::default() }),
            waiting: Queue::default(),
            recordings: AtomicU64::new(0),
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
        let gpu = embedder.gpu();
        let audio = &gpu.upload("samples", samples).map_err(|error| self.failed(error))?;
        let (samples, step) = (samples.len(), windows.step());
        let mut values = Vec::new();
        for (first, count) in batches(range, segmenter.most(step)) {
            let part = Audio { audio, samples, first: windows.start_sample(first), step, count };
            let scores = segmenter.log_probabilities(gpu, &[part]);
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
    /// Windows that the GPU works on, while the next ones are made ready.
    flight: Option<(Vec<usize>, Vec<Window>, Vec<Pending>)>,
}

impl Slots {
    fn new(silence: &[f32], windows: &Windows) -> Self {
        Self { values: silence.repeat(windows.count() * LOCAL_SPEAKERS), flight: None }
    }

    /// Starts on the embeddings of `windows`, which have these `indices`, and stores those before; their number.
    fn turn(
        &mut self,
        embedder: &mut Embedder,
        precision: Precision,
        indices: Vec<usize>,
        windows: Vec<Window>,
    ) -> Result<usize, CudaError> {
        let pending = embedder.pool(precision, &windows)?;
        let before = self.flight.replace((indices, windows, pending));
        self.store(embedder, before)
    }

    /// All embeddings; `None` if a value did not fit FP16.
    fn finish(
        mut self,
        embedder: &mut Embedder,
        precision: Precision,
    ) -> Result<Option<Vec<f32>>, CudaError> {
        let last = self.flight.take();
        self.store(embedder, last)?;
        let fitted = precision != Precision::Fp16 || embedder.fitted()?;
        Ok(fitted.then_some(self.values))
    }

    /// Stores the embeddings of the speakers that have masks.
    fn store(
        &mut self,
        embedder: &mut Embedder,
        flight: Option<(Vec<usize>, Vec<Window>, Vec<Pending>)>,
    ) -> Result<usize, CudaError> {
        let Some((indices, windows, pending)) = flight else { return Ok(0) };
        let embedded = embedder.embeddings(pending)?;
        let rows = embedded.chunks_exact(LOCAL_SPEAKERS * EMBEDDING_DIM);
        for ((c, window), rows) in indices.iter().zip(&windows).zip(rows) {
            let slots = self.values[c * LOCAL_SPEAKERS * EMBEDDING_DIM..].chunks_exact_mut(EMBEDDING_DIM);
            for ((slot, row), mask) in slots.zip(rows.chunks_exact(EMBEDDING_DIM)).zip(&window.masks) {
                if mask.is_some() {
                    slot.copy_from_slice(row);
                }
            }
        }
        Ok(indices.len())
    }
}

/// One recording on the GPU.
struct OnGpu<'a> {
    backend: &'a CudaBackend,
    samples: &'a [f32],
    windows: &'a Windows,
    /// Tells it from the others.
    id: u64,
    /// The samples, unless memory is short.
    audio: Option<Buffer>,
}

impl OnGpu<'_> {
    /// The fbank frames, computed on the GPU. `None` if windows do not meet them or memory is short: then the CPU
    /// computes features window by window.
    fn log_mel(&self) -> Result<Option<LogMel>, BackendError> {
        let Self { backend, samples, windows, audio, .. } = self;
        let Some(audio) = audio.as_ref().filter(|_| windows.step().is_multiple_of(SHIFT)) else {
            return Ok(None);
        };
        let frames = frames_in(windows.start_sample(windows.count() - 1) + WINDOW_SAMPLES);
        let State { embedder, features, .. } = &mut *backend.state();
        match features.log_mel(embedder.gpu(), audio, samples.len(), frames) {
            Ok(log_mel) => Ok(Some(log_mel)),
            Err(CudaError::Memory { .. }) => {
                tracing::warn!("GPU memory is short; the features of this recording are computed on the CPU");
                Ok(None)
            }
            Err(error) => Err(backend.failed(error)),
        }
    }

    /// Passes `count` windows from window `first` on to the network. Without the whole recording on the GPU, the samples of
    /// these windows are taken there.
    fn request(
        &self,
        first: usize,
        count: usize,
    ) -> Result<std::sync::mpsc::Receiver<queue::Reply>, BackendError> {
        let Self { backend, samples, windows, id, audio } = self;
        let (reply, replies) = channel();
        let step = windows.step();
        let (audio, samples, windows) = match audio {
            Some(audio) => (audio.clone(), samples.len(), first..first + count),
            None => {
                let begin = windows.start_sample(first);
                let end = begin + (count - 1) * step + WINDOW_SAMPLES;
                let piece = &samples[begin.min(samples.len())..end.min(samples.len())];
                let uploaded = backend.state().embedder.gpu().upload("samples", piece);
                (uploaded.map_err(|error| backend.failed(error))?, piece.len(), 0..count)
            }
        };
        backend.waiting.push(Request { id: *id, audio, samples, step, windows, reply });
        Ok(replies)
    }

    fn embed_in(
        &self,
        precision: Precision,
        log_mel: Option<&LogMel>,
        activity: &Activity,
        progress: Progress<'_>,
    ) -> Result<Option<Vec<f32>>, BackendError> {
        let Self { backend, samples, windows, .. } = *self;
        let State { embedder, features, .. } = &mut *backend.state();
        let mut out = Slots::new(&backend.silence, windows);
        let width = frames_in(WINDOW_SAMPLES);
        let spoken: Vec<usize> = (0..windows.count()).filter(|&c| has_speech(activity, c)).collect();
        embedder.begin().map_err(|error| backend.failed(error))?;
        let mut done = 0;
        for batch in spoken.chunks(embedder.most(width)) {
            let fill = |gpu: &mut Gpu, buffer: &Buffer| {
                if let Some(log_mel) = log_mel {
                    let starts: Vec<usize> = batch.iter().map(|&c| windows.start_sample(c) / SHIFT).collect();
                    return features.windows(gpu, log_mel, &starts, width, buffer);
                }
                let of_window = |&c: &usize| {
                    let mut features = backend.fbank.log_mel(&windows.cut(samples, c));
                    subtract_mean(&mut features);
                    features
                };
                gpu.write(
                    "features",
                    buffer,
                    &batch.par_iter().map(of_window).flatten_iter().collect::<Vec<_>>(),
                )
            };
            embedder.run_trunk(precision, batch.len(), width, fill).map_err(|error| backend.failed(error))?;
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
            let stored = out.turn(embedder, precision, batch.to_vec(), pooled);
            done += stored.map_err(|error| backend.failed(error))?;
            report(progress, done, spoken.len())?;
        }
        out.finish(embedder, precision).map_err(|error| backend.failed(error))
    }

    fn embed_shared_in(
        &self,
        precision: Precision,
        log_mel: Option<&LogMel>,
        activity: &Activity,
        progress: Progress<'_>,
    ) -> Result<Option<Vec<f32>>, BackendError> {
        let Self { backend, samples, windows, .. } = *self;
        let State { embedder, features, .. } = &mut *backend.state();
        let mut out = Slots::new(&backend.silence, windows);
        let spoken = spoken_slices(windows, activity);
        let wanted: Vec<Block> =
            blocks(windows).into_iter().filter(|block| block.is_wanted(&spoken)).collect();
        embedder.begin().map_err(|error| backend.failed(error))?;
        let (mut carried, mut next) = (None, 0);
        for batch in wanted.chunk_by(|a, b| a.frames().len() == b.frames().len()) {
            let width = batch[0].frames().len();
            for batch in batch.chunks(embedder.most(width).max(1)) {
                let fill = |gpu: &mut Gpu, buffer: &Buffer| {
                    if let Some(log_mel) = log_mel {
                        let starts: Vec<usize> = batch.iter().map(|block| block.frames().start).collect();
                        return features.blocks(
                            gpu,
                            log_mel,
                            &starts,
                            width,
                            frames_in(WINDOW_SAMPLES),
                            buffer,
                        );
                    }
                    let of_block = |block: &Block| block.features(samples, &backend.fbank);
                    gpu.write(
                        "features",
                        buffer,
                        &batch.par_iter().map(of_block).flatten_iter().collect::<Vec<_>>(),
                    )
                };
                embedder
                    .run_trunk(precision, batch.len(), width, fill)
                    .map_err(|error| backend.failed(error))?;
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
                let indices = spoken[next..next + ready].iter().map(|(c, _)| *c).collect();
                let stored = out.turn(embedder, precision, indices, pooled);
                stored.map_err(|error| backend.failed(error))?;
                embedder.carry(precision, batch.len() - 1, width).map_err(|error| backend.failed(error))?;
                carried = Some(last.clone());
                next += ready;
                report(progress, last.core.end, last.total)?;
            }
        }
        out.finish(embedder, precision).map_err(|error| backend.failed(error))
    }
}

impl Drop for OnGpu<'_> {
    fn drop(&mut self) {
        self.backend.waiting.remove(self.id);
    }
}

impl Recording for OnGpu<'_> {
    fn segment(&mut self, progress: Progress<'_>) -> Result<Activity, BackendError> {
        let (backend, total) = (self.backend, self.windows.count());
        let most = match self.audio {
            Some(_) => total,
            None => backend.state().segmenter.most(self.windows.step()),
        };
        let mut data = vec![0; total * WINDOW_FRAMES * LOCAL_SPEAKERS];
        let mut done = 0;
        while done < total {
            let (first, mut missing) = (done, most.min(total - done));
            let replies = self.request(first, missing)?;
            while missing > 0 {
                let received = {
                    let State { embedder, segmenter, flight, .. } = &mut *backend.state();
                    let received = replies.try_recv();
                    if received == Err(TryRecvError::Empty) {
                        flight.serve(&backend.waiting, segmenter, embedder.gpu());
                    }
                    received
                };
                let lost = || "the work of another recording broke off".to_owned();
                let failed = |reason| BackendError::Failed { device: backend.info.device.clone(), reason };
                let (window, classes) = match received {
                    Err(TryRecvError::Empty) => continue,
                    Err(TryRecvError::Disconnected) => Err(lost()),
                    Ok(reply) => reply,
                }
                .map_err(failed)?;
                // Without the whole recording on the GPU, windows are numbered from the first one there.
                let window = if self.audio.is_some() { window } else { first + window };
                let slots = data[window * WINDOW_FRAMES * LOCAL_SPEAKERS..].chunks_exact_mut(LOCAL_SPEAKERS);
                for (slot, &class) in slots.zip(&classes) {
                    slot.copy_from_slice(&powerset::MEMBERS[usize::from(class)]);
                }
                let count = classes.len() / WINDOW_FRAMES;
                (done, missing) = (done + count, missing - count);
                report(progress, done, total)?;
            }
        }
        Ok(Activity::new(data))
    }

    fn embed(&mut self, activity: &Activity, progress: Progress<'_>) -> Result<Embeddings, BackendError> {
        let log_mel = self.log_mel()?;
        self.backend.with_fallback(|precision| self.embed_in(precision, log_mel.as_ref(), activity, progress))
    }

    fn embed_shared(
        &mut self,
        activity: &Activity,
        progress: Progress<'_>,
    ) -> Result<Embeddings, BackendError> {
        let log_mel = self.log_mel()?;
        self.backend
            .with_fallback(|precision| self.embed_shared_in(precision, log_mel.as_ref(), activity, progress))
    }
}

impl Backend for CudaBackend {
    fn info(&self) -> &BackendInfo {
        &self.info
    }

    fn recordings(&self) -> usize {
        RECORDINGS
    }

    fn recording<'a>(
        &'a self,
        samples: &'a [f32],
        windows: &'a Windows,
    ) -> Result<Box<dyn Recording + 'a>, BackendError> {
        let audio = match self.state().embedder.gpu().upload("the recording", samples) {
            Ok(audio) => Some(audio),
            Err(CudaError::Memory { .. }) => {
                tracing::warn!("GPU memory is short; this recording goes to the GPU in pieces");
                None
            }
            Err(error) => return Err(self.failed(error)),
        };
        let id = self.recordings.fetch_add(1, Ordering::Relaxed);
        Ok(Box::new(OnGpu { backend: self, samples, windows, id, audio }))
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
