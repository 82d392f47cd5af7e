//! Stand-ins for decoder and engine. What they do depends on the text in the "recording".

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Parser;
use speakrs_app::audio::{AudioError, Channels, SourceFacts, Waveform};
use speakrs_app::backend::{BackendInfo, Precision};
use speakrs_app::cli::args::Args;
use speakrs_app::cli::plan::{Plan, PlanError, Refusal};
use speakrs_app::clustering::SpeakerBounds;
use speakrs_app::pipeline::batch::{Decode, Diarize};
use speakrs_app::pipeline::{Diarization, Mode, Monitor, PipelineError, Settings, Speaker, Stage, Voices};
use speakrs_app::timeline::Segment;

pub const SETTINGS: Settings = Settings {
    mode: Mode::Fast,
    step: 1.0,
    speakers: SpeakerBounds { num: None, min: None, max: None },
    voices: Voices::Mixed,
};

/// One sample for each byte; `bad` does not decode, `crash` panics.
pub struct FakeDecoder;

impl Decode for FakeDecoder {
    fn decode(
        &self,
        path: &Path,
        _: Channels,
        progress: &mut dyn FnMut(f32) -> ControlFlow<()>,
    ) -> Result<Waveform, AudioError> {
        let text = fs::read_to_string(path).expect("fake recordings are text");
        match text.as_str() {
            "bad" => return Err(AudioError::Unsupported("no audio in it".into())),
            "crash" => panic!("decoder bug"),
            _ => {}
        }
        if progress(1.0).is_break() {
            return Err(AudioError::Cancelled);
        }
        let source = SourceFacts {
            codec: "text".into(),
            sample_rate: 8000,
            channels: 2,
            frames: text.len() as u64 / 2,
            warnings: if text.contains("odd") { vec!["it is odd".into()] } else { Vec::new() },
        };
        Ok(Waveform { samples: text.bytes().map(f32::from).collect(), source })
    }
}

/// Turns whose times come from the samples; none for `silence`, a panic for `burst`.
pub struct FakeEngine;

impl Diarize for FakeEngine {
    fn diarize(
        &self,
        waveform: &Waveform,
        settings: &Settings,
        monitor: &dyn Monitor,
    ) -> Result<Diarization, PipelineError> {
        let text: String = waveform.samples.iter().map(|&s| char::from(s as u8)).collect();
        assert_ne!(text, "burst", "engine bug");
        monitor.progress(Stage::Segmentation, 0.5);
        if monitor.cancelled() {
            return Err(PipelineError::Cancelled);
        }
        // Recordings finish in another order than they begin.
        std::thread::sleep(Duration::from_millis((text.len() % 3) as u64));
        let mut segments: Vec<Segment> = waveform.samples.iter().enumerate().map(fake_turn).collect();
        if text == "silence" {
            segments.clear();
        }
        Ok(diarization(segments, *settings))
    }
}

fn fake_turn((i, sample): (usize, &f32)) -> Segment {
    let start = i as f64 + 0.031;
    Segment { start, end: start + f64::from(*sample) / 100.0, speaker: i % 2 }
}

pub fn diarization(segments: Vec<Segment>, settings: Settings) -> Diarization {
    let speaker = |label: &str| Speaker { label: label.into(), embedding: vec![0.5, -0.25] };
    Diarization {
        exclusive: segments.iter().copied().take(1).collect(),
        segments,
        speakers: vec![speaker("SPEAKER_00"), speaker("SPEAKER_01")],
        duration: 12.5,
        settings,
        model: "bundled".into(),
        backend: BackendInfo { device: "cpu".into(), name: "Test".into(), precision: Precision::Fp32 },
        warnings: Vec::new(),
        timings: Vec::new(),
    }
}

/// A folder with the given files in it; the text is also what the fakes see.
pub fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

/// Sorted names of everything below `folder`.
pub fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = walkdir::WalkDir::new(folder)
        .into_iter()
        .map(Result::unwrap)
        .filter(|entry| entry.file_type().is_file())
        .map(|entry| entry.path().strip_prefix(folder).unwrap().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

pub fn args(typed: &[&str]) -> Args {
    Args::try_parse_from(["speakrs-app", "--headless", "--quiet"].iter().chain(typed)).unwrap()
}

pub fn plan(typed: &[&str]) -> Result<(Plan, Vec<Refusal>), PlanError> {
    Plan::new(&args(typed))
}

/// `folder/name` as text.
pub fn at(folder: &tempfile::TempDir, name: &str) -> String {
    folder.path().join(name).to_str().unwrap().to_owned()
}

/// File names of `paths`.
pub fn bare(paths: impl IntoIterator<Item = PathBuf>) -> Vec<String> {
    paths.into_iter().map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect()
}
