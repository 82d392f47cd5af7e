//! The diarization pipeline: `diarize()` lists its steps.

pub mod batch;

use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::audio::{SAMPLE_RATE, Waveform};
use crate::backend::{self, Backend, BackendError, BackendInfo, Embeddings, Opened, Precision, Progress};
use crate::clustering::{ClusteringError, Params, Plda, SpeakerBounds};
use crate::models::manifest::ClusteringDefaults;
use crate::models::windows::{Activity, WINDOW_SAMPLES, Windows};
use crate::models::{ModelPack, PackError};
use crate::timeline::Segment;
use crate::timeline::segment::{SegmentOptions, label};
use crate::timeline::turns::turns;

/// How embeddings are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Window by window, as pyannote does (C6).
    Accurate,
    /// The trunk runs once over the recording and every window pools its slice (C17).
    Fast,
}

impl Mode {
    /// Its name in options and results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Accurate => "accurate",
            Self::Fast => "fast",
        }
    }
}

/// What the speakers of a recording are told apart by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Voices {
    /// By their voices, in one mixed or chosen channel.
    #[default]
    Mixed,
    /// Every channel is one speaker, as in calls that are recorded with a channel for each side.
    Channels,
}

/// What the user chooses about a diarization; part of every result.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// How embeddings are computed.
    pub mode: Mode,
    /// Step between windows in seconds (C2).
    pub step: f64,
    /// Bounds on the number of speakers (C11).
    pub speakers: SpeakerBounds,
    /// What the speakers are told apart by.
    #[serde(default)]
    pub voices: Voices,
}

impl Settings {
    /// The windows of a recording of `samples` samples.
    ///
    /// # Errors
    /// [`PipelineError::Step`].
    pub fn windows(&self, samples: usize) -> Result<Windows, PipelineError> {
        Ok(Windows::new(samples, step_samples(self.step)?))
    }
}

/// A step of the pipeline, for progress and timings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// Reading, down-mixing and resampling.
    Decode,
    /// segmentation-3.0 on every window.
    Segmentation,
    /// Features and speaker embeddings.
    Embedding,
    /// AHC, PLDA, VBx and assignment, reconstruction.
    Clustering,
    /// Writing the results.
    Write,
}

/// Receives progress and may stop the work. Called from any thread.
pub trait Monitor: Sync {
    /// `stage` has done the share `done` (0 to 1) of its work.
    fn progress(&self, stage: Stage, done: f32);
    /// Whether the work should stop as soon as possible.
    fn cancelled(&self) -> bool;
    /// What the networks found is kept in the file `inference`, from which the recording can be clustered again.
    fn kept(&self, inference: &Path) {
        let _ = inference;
    }
}

/// One speaker of a recording (C16).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Speaker {
    /// Label: `SPEAKER_00`, `SPEAKER_01`, … in order of their index (C14).
    pub label: String,
    /// Centroid of the speaker's embeddings; zeros for a speaker that only counting produced (C13, C16).
    pub embedding: Vec<f32>,
}

/// The result for one recording. [`Segment::speaker`] indexes `speakers`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Diarization {
    /// Who spoke when, overlaps included; sorted by start, then end (C14).
    pub segments: Vec<Segment>,
    /// At most one speaker at a time (C15).
    pub exclusive: Vec<Segment>,
    /// The speakers in label order.
    pub speakers: Vec<Speaker>,
    /// Duration of the recording in seconds.
    pub duration: f64,
    /// The settings in force.
    pub settings: Settings,
    /// Name of the model pack.
    pub model: String,
    /// What it ran on.
    pub backend: BackendInfo,
    /// Plain-language notes (no speech found, speaker count out of reach, …).
    pub warnings: Vec<String>,
    /// Wall-clock seconds of each stage; not part of the written result, which must not depend on time.
    pub timings: Vec<(Stage, f64)>,
}

/// What the networks found in one recording.
#[derive(Debug, Clone)]
pub struct Inference {
    /// The windows of the recording.
    pub windows: Windows,
    /// Which local speakers are active (C4).
    pub activity: Activity,
    /// Their voices (C6).
    pub embeddings: Embeddings,
    /// Wall-clock seconds of each stage.
    pub timings: Vec<(Stage, f64)>,
}

/// Why a recording could not be diarized.
#[derive(Debug, thiserror::Error)]
pub enum PipelineError {
    /// The step between windows is out of range.
    #[error("a step of {0} s is not within 0.0000625 s (one sample) and 10 s")]
    Step(f64),
    /// The backend failed.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// The bounds on the number of speakers contradict each other.
    #[error(transparent)]
    Clustering(#[from] ClusteringError),
    /// The caller asked to stop.
    #[error("cancelled")]
    Cancelled,
}

/// Why no recording can be diarized.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The models cannot be loaded.
    #[error(transparent)]
    Models(#[from] PackError),
    /// The device cannot be used.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// The pack's PLDA is unusable.
    #[error(transparent)]
    Plda(#[from] ClusteringError),
}

/// Models and device, loaded once and shared by all recordings.
pub struct Engine {
    backend: Box<dyn Backend>,
    device_reason: Option<String>,
    plda: Plda,
    params: Params,
    model: String,
    fingerprint: String,
    shared_trunk_validated: bool,
}

impl Engine {
    /// Loads the model pack in `models` (`None`: see [`crate::models::manifest::find_models`]) and opens `device`
    /// (`auto`, `cpu`, `cuda`, `cuda:N`) in `precision` (`None`: the fastest that keeps the accuracy).
    ///
    /// # Errors
    /// If models are missing or damaged, or the device cannot be used.
    pub fn open(
        models: Option<&Path>,
        device: &str,
        precision: Option<Precision>,
    ) -> Result<Self, EngineError> {
        let pack = ModelPack::load(models)?;
        let ClusteringDefaults { threshold, fa, fb, max_iterations } = pack.clustering;
        let Opened { backend, reason } = backend::open(device, precision, &pack)?;
        Ok(Self {
            backend,
            device_reason: reason,
            plda: Plda::new(pack.plda)?,
            params: Params { threshold, fa, fb, max_iterations, ..Params::default() },
            shared_trunk_validated: pack.shared_trunk_validated,
            fingerprint: pack.fingerprint,
            model: pack.name,
        })
    }

    /// What the networks run on.
    pub fn backend(&self) -> BackendInfo {
        self.backend.info().clone()
    }

    /// How many recordings should be in work at a time.
    pub fn recordings(&self) -> usize {
        self.backend.recordings()
    }

    /// Why the networks do not run on a GPU, if the choice of the device was left to the program.
    pub fn device_reason(&self) -> Option<&str> {
        self.device_reason.as_deref()
    }

    /// Name of the model pack.
    pub fn model(&self) -> &str {
        &self.model
    }

    /// The mode that is used unless the user names one: fast where the pack is validated for it (C17).
    pub fn default_mode(&self) -> Mode {
        if self.shared_trunk_validated { Mode::Fast } else { Mode::Accurate }
    }

    /// What the results of the networks depend on besides the recording: program, models and device.
    pub fn identity(&self) -> String {
        let BackendInfo { device, name, precision } = self.backend();
        let version = env!("CARGO_PKG_VERSION");
        format!("{version}\n{}\n{}\n{device}\n{name}\n{precision}", self.model, self.fingerprint)
    }

    /// Diarizes one recording: the pipeline C2-C16.
    ///
    /// # Errors
    /// See [`PipelineError`].
    pub fn diarize(
        &self,
        waveform: &Waveform,
        settings: &Settings,
        monitor: &dyn Monitor,
    ) -> Result<Diarization, PipelineError> {
        self.cluster(self.infer(waveform, settings, monitor)?, settings, monitor)
    }

    /// Runs the networks on one recording (C2-C6), which is all that takes long.
    ///
    /// # Errors
    /// See [`PipelineError`].
    pub fn infer(
        &self,
        waveform: &Waveform,
        settings: &Settings,
        monitor: &dyn Monitor,
    ) -> Result<Inference, PipelineError> {
        let samples = &waveform.samples;
        let windows = settings.windows(samples.len())?;
        let mut steps = Steps { monitor, timings: Vec::new() };
        let mut recording = self.backend.recording(samples, &windows)?;
        let activity = steps.run(Stage::Segmentation, |progress| Ok(recording.segment(progress)?))?;
        let embeddings = steps.run(Stage::Embedding, |progress| {
            Ok(match settings.mode {
                Mode::Accurate => recording.embed(&activity, progress)?,
                Mode::Fast => recording.embed_shared(&activity, progress)?,
            })
        })?;
        drop(recording);
        Ok(Inference { windows, activity, embeddings, timings: steps.timings })
    }

    /// Finds the speakers and their turns (C7-C16) in what the networks found.
    ///
    /// # Errors
    /// See [`PipelineError`].
    pub fn cluster(
        &self,
        inference: Inference,
        settings: &Settings,
        monitor: &dyn Monitor,
    ) -> Result<Diarization, PipelineError> {
        let Inference { windows, activity, embeddings, timings } = inference;
        let duration = windows.samples() as f64 / f64::from(SAMPLE_RATE);
        let options = SegmentOptions { duration, ..SegmentOptions::default() };
        let mut steps = Steps { monitor, timings };
        let turns = steps.run(Stage::Clustering, |_| {
            let (params, bounds, values) = (&self.params, &settings.speakers, &embeddings.values);
            Ok(turns(&windows, &activity, values, &self.plda, params, bounds, &options)?)
        })?;
        let speaker = |(index, embedding)| Speaker { label: label(index), embedding };
        Ok(Diarization {
            segments: turns.segments,
            exclusive: turns.exclusive,
            speakers: turns.embeddings.into_iter().enumerate().map(speaker).collect(),
            duration,
            settings: *settings,
            model: self.model.clone(),
            backend: BackendInfo { precision: embeddings.precision, ..self.backend() },
            warnings: turns.warnings,
            timings: steps.timings,
        })
    }
}

/// Runs the steps of one recording: times each, reports its progress and stops between them if asked to.
struct Steps<'a> {
    monitor: &'a dyn Monitor,
    timings: Vec<(Stage, f64)>,
}

impl Steps<'_> {
    fn run<T>(
        &mut self,
        stage: Stage,
        step: impl FnOnce(Progress<'_>) -> Result<T, PipelineError>,
    ) -> Result<T, PipelineError> {
        if self.monitor.cancelled() {
            return Err(PipelineError::Cancelled);
        }
        let start = Instant::now();
        let value = step(&mut |done| {
            self.monitor.progress(stage, done);
            if self.monitor.cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        self.monitor.progress(stage, 1.0);
        self.timings.push((stage, start.elapsed().as_secs_f64()));
        Ok(value)
    }
}

/// The step between windows in whole samples.
fn step_samples(seconds: f64) -> Result<usize, PipelineError> {
    let samples = (seconds * f64::from(SAMPLE_RATE)).round();
    if samples >= 1.0 && samples <= WINDOW_SAMPLES as f64 {
        Ok(samples as usize)
    } else {
        Err(PipelineError::Step(seconds))
    }
}
