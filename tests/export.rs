//! Export formats, beyond RTTM and JSON.

mod formats;
mod readers;
mod wav;

use std::path::Path;

use speakrs_app::app::export::{ExportError, Report, by_name, write_one};
use speakrs_app::audio::SourceFacts;
use speakrs_app::backend::{BackendInfo, Precision};
use speakrs_app::clustering::SpeakerBounds;
use speakrs_app::pipeline::{Diarization, Mode, Settings, Speaker, Voices};
use speakrs_app::timeline::Segment;

/// A result; times in seconds.
#[derive(Clone)]
struct Case {
    file: &'static str,
    duration: f64,
    speakers: Vec<String>,
    turns: Vec<(f64, f64, usize)>,
}

impl Case {
    fn new(file: &'static str, duration: f64, speakers: &[&str], turns: &[(f64, f64, usize)]) -> Self {
        let speakers = speakers.iter().map(|name| (*name).to_owned()).collect();
        Self { file, duration, speakers, turns: turns.to_vec() }
    }

    fn diarization(&self) -> Diarization {
        let segment = |&(start, end, speaker): &(f64, f64, usize)| Segment { start, end, speaker };
        let speaker = |label: &String| Speaker { label: label.clone(), embedding: vec![0.5] };
        Diarization {
            segments: self.turns.iter().map(segment).collect(),
            exclusive: Vec::new(),
            speakers: self.speakers.iter().map(speaker).collect(),
            duration: self.duration,
            settings: Settings {
                mode: Mode::Fast,
                step: 1.0,
                speakers: SpeakerBounds { num: None, min: None, max: None },
                voices: Voices::Mixed,
            },
            model: "bundled".into(),
            backend: BackendInfo { device: "cpu".into(), name: "Test".into(), precision: Precision::Fp32 },
            warnings: Vec::new(),
            timings: Vec::new(),
        }
    }

    /// Writes the result in `format` to `result`.
    fn write(&self, format: &str, recording: &Path, result: &Path, replace: bool) -> Result<(), ExportError> {
        let (diarization, source) = (self.diarization(), SourceFacts::default());
        let (diarization, source) = (&diarization, &source);
        let report = Report { path: recording, file: self.file, uri: "uri", diarization, source };
        write_one(by_name(format).unwrap(), &report, result, replace)
    }

    /// The result in a format that needs no recording.
    fn text(&self, format: &str) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("result");
        self.write(format, Path::new("none"), &path, false).unwrap();
        String::from_utf8(std::fs::read(path).unwrap()).unwrap()
    }
}

/// A recording of `samples` samples at 16 kHz, none of which is 0.
fn recording(path: &Path, samples: usize) -> Vec<i16> {
    let format = hound::SampleFormat::Int;
    let spec =
        hound::WavSpec { channels: 1, sample_rate: 16_000, bits_per_sample: 16, sample_format: format };
    let mut writer = hound::WavWriter::create(path, spec).unwrap();
    let samples: Vec<i16> = (0..samples)
        .map(|i| (i as i16).wrapping_mul(31))
        .map(|s| if s == 0 { i16::MIN } else { s })
        .collect();
    samples.iter().for_each(|&sample| writer.write_sample(sample).unwrap());
    writer.finalize().unwrap();
    samples
}

/// Results that are hard to write. Their times are whole milliseconds.
fn cases() -> Vec<Case> {
    let names = [
        "plain",
        "two words",
        "say \"cheese\"",
        "tab\there",
        "line\nbreak\r\nand another",
        "<v Bob> & </v> --> ]]>",
        "a, b; c",
        "日本語の話者",
        "محمد علي",
        "🎤 é e\u{301}",
        &"長".repeat(100),
        "CON",
        "..",
        "a/b\\c:d*e?f",
        "{\\an8}",
        " \u{a0} ",
        "null\0byte \u{7f}\u{85}\u{2028}\u{ffff}",
        "=1+1",
        "trailing dot.",
    ];
    let name_turns: Vec<(f64, f64, usize)> =
        (0..names.len()).map(|i| (i as f64, i as f64 + 0.75, i)).collect();
    vec![
        Case::new("silence.wav", 3.5, &[], &[]),
        Case::new("no sound at all.flac", 0.0, &[], &[]),
        Case::new("short.mp3", 1.0, &["A"], &[(0.5, 0.501, 0)]),
        Case::new("whole.ogg", 2.0, &["A"], &[(0.0, 2.0, 0)]),
        Case::new(
            "overlaps.wav",
            10.25,
            &["A", "B"],
            &[
                (0.0, 2.0, 0),
                (1.0, 3.0, 0),
                (1.5, 1.75, 1),
                (1.5, 2.5, 1),
                (3.0, 4.0, 0),
                (3.0, 9.0, 1),
                (9.5, 10.25, 0),
            ],
        ),
        Case::new(
            "ten hours.m4a",
            36_000.5,
            &["A", "B"],
            &[(0.001, 3599.999, 0), (3600.0, 35_999.999, 1), (36_000.25, 36_000.5, 0)],
        ),
        Case::new("who is \"who\" & <why>.wav", 20.0, &names, &name_turns),
        Case::new(
            "same.wav",
            4.0,
            &["Ann", "Ann", "Ann (2)", "ann"],
            &[(0.0, 1.0, 0), (1.0, 2.0, 1), (2.0, 3.0, 2), (3.0, 4.0, 3)],
        ),
    ]
}
