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
use super::blocks::{Block, blocks, has_speech, spoken_slices};
use super::{Backend, BackendError, BackendInfo, Embeddings, Observer, Precision, Progress, report};
use crate::features::{Fbank, MELS, frames_in, subtract_mean};
use crate::models::ModelPack;
use crate::models::embedding::{EMBEDDING_DIM, TRUNK_DIM};
use crate::models::windows::{Activity, LOCAL_SPEAKERS, WINDOW_SAMPLES, Windows};

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

    /// Trunk frames of the core of `block`.
    fn shared_block(&self, samples: &[f32], block: &Block) -> Vec<f32> {
        let mut frames = self.trunk.run(&block.features(samples, &self.fbank), &|_, _, _| {});
        let core = block.core_in_trunk();
        frames.truncate(core.end * TRUNK_DIM);
        frames.drain(..core.start * TRUNK_DIM);
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
        self.segmentation.activity(samples, windows, progress)
    }

    fn embed(
        &self,
        samples: &[f32],
        windows: &Windows,
        activity: &Activity,
        progress: Progress<'_>,
    ) -> Result<Embeddings, BackendError> {
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
        Ok(Embeddings { values: out, precision: Precision::Fp32 })
    }

    fn embed_shared(
        &self,
        samples: &[f32],
        windows: &Windows,
        activity: &Activity,
        progress: Progress<'_>,
    ) -> Result<Embeddings, BackendError> {
        let mut out = self.silent_slots(windows.count());
        let spoken = spoken_slices(windows, activity);
        let blocks = blocks(windows);
        // Trunk frames in `held` start at trunk frame `origin`; windows are pooled as soon as their last one is there.
        let (mut held, mut origin, mut next) = (Vec::<f32>::new(), 0, 0);
        for block in &blocks {
            let trunk_core = block.trunk_core();
            let wanted = block.is_wanted(&spoken[next..]);
            if wanted {
                held.extend(self.shared_block(samples, block));
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
            report(progress, block.core.end, block.total)?;
        }
        Ok(Embeddings { values: out, precision: Precision::Fp32 })
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

/// The processor's model name as the operating system tells it, else its architecture.
pub fn processor_name() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    name.map_or_else(|| std::env::consts::ARCH.to_owned(), |(_, name)| name.trim().to_owned())
}
