//! The CPU backend: FP32 on all cores. Parallel tasks are cut by the geometry alone, so that results do not depend on
//! the number of threads.

mod activation;
mod conv;
mod gemm;
mod lstm;
mod segmentation;
mod simd;
mod sincnet;
mod trunk;
mod winograd;

use std::ops::Range;

use rayon::prelude::*;

use self::segmentation::Segmentation;
use self::trunk::{Head, Trunk, pool};
use super::{Backend, BackendError, BackendInfo, Observer, Precision, Progress};
use crate::features::{FRAME, Fbank, MELS, SHIFT, frames_in, subtract_mean, subtract_sliding_mean};
use crate::models::ModelPack;
use crate::models::embedding::{EMBEDDING_DIM, TIME_REDUCTION, TRUNK_DIM};
use crate::models::powerset;
use crate::models::windows::{Activity, LOCAL_SPEAKERS, WINDOW_SAMPLES, Windows};

/// Windows that go through segmentation together: enough for full matrix products in the LSTM.
const GROUP: usize = 16;
/// fbank frames of one block of the shared trunk: 60 s (C17).
const BLOCK: usize = 6_000;
/// fbank frames on both sides of a block: more than half the trunk's receptive field, a multiple of
/// [`TIME_REDUCTION`] (C17).
const MARGIN: usize = 160;
/// Embeddings whose linear layer is one matrix product.
const HEAD_ROWS: usize = 32;

/// The networks, prepared for the CPU.
pub struct CpuBackend {
    info: BackendInfo,
    segmentation: Segmentation,
    trunk: Trunk,
    head: Head,
    fbank: Fbank,
}

impl CpuBackend {
    /// Prepares the networks of `pack`.
    pub fn new(pack: &ModelPack) -> Self {
        Self {
            info: BackendInfo { device: "cpu".into(), name: processor_name(), precision: Precision::Fp32 },
            segmentation: Segmentation::new(&pack.segmentation),
            trunk: Trunk::new(&pack.embedding),
            head: Head::new(&pack.embedding),
            fbank: Fbank::new(pack.mel_floor),
        }
    }

    /// Log-probabilities of windows `range`, row-major `[windows, WINDOW_FRAMES, CLASSES]`.
    pub fn log_probabilities(&self, samples: &[f32], windows: &Windows, range: Range<usize>) -> Vec<f32> {
        self.segmentation.run(samples, windows, range, &|_, _, _| {})
    }

    /// The embedding of one window from its features, row-major `[fbank frames, MELS]` with the mean removed, under
    /// each of `masks`.
    pub fn embed_features(&self, features: &[f32], masks: &[Vec<u8>]) -> Vec<f32> {
        let frames = self.trunk.run(features, &|_, _, _| {});
        let statistics: Vec<f32> = masks.iter().flat_map(|mask| pool(&frames, mask)).collect();
        self.head.embed(&statistics)
    }

    /// Embeddings of all slots, those of silent local speakers already in place.
    fn silent_slots(&self, windows: usize) -> Vec<f32> {
        self.head.silence().repeat(windows * LOCAL_SPEAKERS)
    }

    /// Embeds the pooled `slots` and stores the result in `out`, `[windows, LOCAL_SPEAKERS, EMBEDDING_DIM]`.
    fn finish(&self, slots: Vec<Slot>, out: &mut [f32]) {
        let embedded: Vec<Vec<f32>> = slots
            .par_chunks(HEAD_ROWS)
            .map(|slots| {
                self.head.embed(&slots.iter().flat_map(|s| s.statistics.iter().copied()).collect::<Vec<_>>())
            })
            .collect();
        let rows = embedded.iter().flat_map(|chunk| chunk.chunks_exact(EMBEDDING_DIM));
        for (slot, row) in slots.iter().zip(rows) {
            out[(slot.window * LOCAL_SPEAKERS + slot.speaker) * EMBEDDING_DIM..][..EMBEDDING_DIM]
                .copy_from_slice(row);
        }
    }

    /// Trunk frames of fbank frames `core` of a recording of `total` fbank frames (C17).
    fn shared_block(&self, samples: &[f32], core: Range<usize>, total: usize) -> Vec<f32> {
        let span = frames_in(WINDOW_SAMPLES);
        let block = core.start.saturating_sub(MARGIN)..(core.end + MARGIN).min(total);
        let source = block.start.saturating_sub(span / 2)..(block.end + span / 2).min(total);
        let end = (source.end - 1) * SHIFT + FRAME;
        let mut audio = samples[(source.start * SHIFT).min(samples.len())..end.min(samples.len())].to_vec();
        audio.resize(end - source.start * SHIFT, 0.0);
        let log_mel = self.fbank.log_mel(&audio);
        let rows = block.start - source.start..block.end - source.start;
        let features = subtract_sliding_mean(&log_mel, rows, span);
        let mut frames = self.trunk.run(&features, &|_, _, _| {});
        let first = (core.start - block.start) / TIME_REDUCTION;
        let count = core.len().div_ceil(TIME_REDUCTION);
        frames.truncate((first + count) * TRUNK_DIM);
        frames.drain(..first * TRUNK_DIM);
        frames
    }
}

/// The pooled statistics of one local speaker.
struct Slot {
    window: usize,
    speaker: usize,
    statistics: Vec<f32>,
}

/// Pools `frames` of window `c` for each of its active local speakers.
fn pool_window(frames: &[f32], activity: &Activity, c: usize) -> Vec<Slot> {
    (0..LOCAL_SPEAKERS)
        .filter_map(|speaker| {
            let mask = activity.embedding_mask(c, speaker)?;
            Some(Slot { window: c, speaker, statistics: pool(frames, &mask) })
        })
        .collect()
}

fn has_speech(activity: &Activity, c: usize) -> bool {
    (0..LOCAL_SPEAKERS).any(|s| activity.is_active(c, s))
}

impl Backend for CpuBackend {
    fn info(&self) -> &BackendInfo {
        &self.info
    }

    fn segment(
        &self,
        samples: &[f32],
        windows: &Windows,
        progress: Progress<'_>,
    ) -> Result<Activity, BackendError> {
        let count = windows.count();
        let groups: Vec<Range<usize>> =
            (0..count).step_by(GROUP).map(|c| c..(c + GROUP).min(count)).collect();
        let mut data = Vec::new();
        for batch in groups.chunks(rayon::current_num_threads()) {
            let decoded: Vec<Vec<u8>> = batch
                .par_iter()
                .map(|group| powerset::decode(&self.log_probabilities(samples, windows, group.clone())))
                .collect();
            data.extend(decoded.into_iter().flatten());
            report(progress, batch[batch.len() - 1].end, count)?;
        }
        Ok(Activity::new(data))
    }

    fn embed(
        &self,
        samples: &[f32],
        windows: &Windows,
        activity: &Activity,
        progress: Progress<'_>,
    ) -> Result<Vec<f32>, BackendError> {
        let mut out = self.silent_slots(windows.count());
        let spoken: Vec<usize> = (0..windows.count()).filter(|&c| has_speech(activity, c)).collect();
        let mut done = 0;
        for batch in spoken.chunks(rayon::current_num_threads()) {
            let slots: Vec<Vec<Slot>> = batch
                .par_iter()
                .map(|&c| {
                    let mut features = self.fbank.log_mel(&windows.cut(samples, c));
                    subtract_mean(&mut features);
                    let frames = self.trunk.run(&features, &|_, _, _| {});
                    pool_window(&frames, activity, c)
                })
                .collect();
            for slots in slots {
                self.finish(slots, &mut out);
            }
            done += batch.len();
            report(progress, done, spoken.len())?;
        }
        Ok(out)
    }

    fn embed_shared(
        &self,
        samples: &[f32],
        windows: &Windows,
        activity: &Activity,
        progress: Progress<'_>,
    ) -> Result<Vec<f32>, BackendError> {
        let mut out = self.silent_slots(windows.count());
        let spoken: Vec<(usize, Range<usize>)> = (0..windows.count())
            .filter(|&c| has_speech(activity, c))
            .map(|c| (c, trunk_slice(windows, c)))
            .collect();
        let total = frames_in(windows.start_sample(windows.count() - 1) + WINDOW_SAMPLES);
        // Trunk frames in `held` start at trunk frame `origin`; windows are pooled as soon as their last one is there.
        let (mut held, mut origin, mut next) = (Vec::<f32>::new(), 0, 0);
        for start in (0..total).step_by(BLOCK) {
            let core = start..(start + BLOCK).min(total);
            let trunk_core = start / TIME_REDUCTION..core.end.div_ceil(TIME_REDUCTION);
            let wanted =
                spoken[next..].iter().any(|(_, s)| s.start < trunk_core.end && s.end > trunk_core.start);
            if wanted {
                held.extend(self.shared_block(samples, core.clone(), total));
            } else {
                held.resize(held.len() + trunk_core.len() * TRUNK_DIM, 0.0);
            }
            let ready = spoken[next..].iter().take_while(|(_, slice)| slice.end <= trunk_core.end).count();
            let slots: Vec<Slot> = spoken[next..next + ready]
                .par_iter()
                .flat_map_iter(|(c, slice)| {
                    let frames = &held[(slice.start - origin) * TRUNK_DIM..(slice.end - origin) * TRUNK_DIM];
                    pool_window(frames, activity, *c)
                })
                .collect();
            self.finish(slots, &mut out);
            next += ready;
            let keep = spoken.get(next).map_or(trunk_core.end, |(_, slice)| slice.start.min(trunk_core.end));
            held.drain(..(keep - origin) * TRUNK_DIM);
            origin = keep;
            report(progress, core.end, total)?;
        }
        Ok(out)
    }

    fn trace(&self, samples: &[f32], observe: Observer<'_>) -> Result<(), BackendError> {
        let windows = Windows::new(samples.len().min(WINDOW_SAMPLES), WINDOW_SAMPLES);
        self.segmentation.run(samples, &windows, 0..1, observe);
        let mut features = self.fbank.log_mel(&windows.cut(samples, 0));
        subtract_mean(&mut features);
        observe("features", &[frames_in(WINDOW_SAMPLES), MELS], &features);
        let frames = self.trunk.run(&features, observe);
        observe("trunk", &[frames.len() / TRUNK_DIM, TRUNK_DIM], &frames);
        Ok(())
    }
}

/// Trunk frames that window `c` pools: `[round(start / 8), + 125)` (C17).
fn trunk_slice(windows: &Windows, c: usize) -> Range<usize> {
    let start = windows.start_sample(c) as f64 / (SHIFT * TIME_REDUCTION) as f64;
    let first = start.round_ties_even() as usize;
    first..first + frames_in(WINDOW_SAMPLES).div_ceil(TIME_REDUCTION)
}

fn report(progress: Progress<'_>, done: usize, total: usize) -> Result<(), BackendError> {
    match progress(done as f32 / total as f32) {
        std::ops::ControlFlow::Continue(()) => Ok(()),
        std::ops::ControlFlow::Break(()) => Err(BackendError::Cancelled),
    }
}

/// The processor's model name as the operating system tells it, else its architecture.
fn processor_name() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    name.map_or_else(|| std::env::consts::ARCH.to_owned(), |(_, name)| name.trim().to_owned())
}
