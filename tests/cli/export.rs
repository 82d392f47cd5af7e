//! What result files hold, and that they appear whole or not at all.

use std::fs;

use speakrs_app::app::export::write::{WriteError, atomically};
use speakrs_app::app::export::{ExportError, FORMATS, Format, Render, Report, by_name, write_one};
use speakrs_app::audio::SourceFacts;
use speakrs_app::timeline::Segment;

use super::fakes::{SETTINGS, diarization, folder, names};

fn render(format: &str, segments: Vec<Segment>) -> String {
    let source = SourceFacts {
        codec: "mp3".into(),
        sample_rate: 44_100,
        channels: 2,
        frames: 551_250,
        warnings: vec!["one packet is damaged".into()],
    };
    let report = Report {
        path: "a \"b\".mp3".as_ref(),
        file: "a \"b\".mp3",
        uri: "a_\"b\"",
        diarization: &diarization(segments, SETTINGS),
        source: &source,
    };
    let Render::File(render) = by_name(format).unwrap().render else { panic!("{format} is no file") };
    String::from_utf8(render(&report)).unwrap()
}

fn turns() -> Vec<Segment> {
    vec![
        Segment { start: 2.0, end: 3.0004, speaker: 1 },
        Segment { start: 0.031, end: 1.5, speaker: 0 },
        Segment { start: 5.0, end: 5.0004, speaker: 0 },
    ]
}

#[test]
fn rttm() {
    assert_eq!(
        render("rttm", turns()),
        "SPEAKER a_\"b\" 1 0.031 1.469 <NA> <NA> SPEAKER_00 <NA> <NA>\n\
         SPEAKER a_\"b\" 1 2.000 1.000 <NA> <NA> SPEAKER_01 <NA> <NA>\n"
    );
    assert_eq!(render("rttm", Vec::new()), "");
}

#[test]
fn json() {
    let expected = format!(
        r#"{{
  "version": 1,
  "app": "speakrs-app",
  "app_version": "{}",
  "model": "bundled",
  "device": "cpu",
  "device_name": "Test",
  "precision": "fp32",
  "mode": "fast",
  "file": "a \"b\".mp3",
  "uri": "a_\"b\"",
  "duration": 12.5,
  "sample_rate": 16000,
  "source": {{
    "codec": "mp3",
    "sample_rate": 44100,
    "channels": 2,
    "frames": 551250
  }},
  "settings": {{
    "mode": "fast",
    "step": 1.0,
    "speakers": {{"num": null, "min": null, "max": null}},
    "voices": "mixed"
  }},
  "speakers": [
    {{"label": "SPEAKER_00", "embedding": [0.5, -0.25]}},
    {{"label": "SPEAKER_01", "embedding": [0.5, -0.25]}}
  ],
  "segments": [
    {{"start": 0.031, "end": 1.5, "speaker": "SPEAKER_00"}}
  ],
  "exclusive": [
    {{"start": 0.031, "end": 1.5, "speaker": "SPEAKER_00"}}
  ],
  "warnings": [
    "one packet is damaged"
  ]
}}
"#,
        env!("CARGO_PKG_VERSION")
    );
    assert_eq!(render("json", vec![turns()[1]]), expected);
    let empty: serde_json::Value = serde_json::from_str(&render("json", Vec::new())).unwrap();
    assert_eq!(empty["segments"], serde_json::json!([]));
}

#[test]
fn formats_have_distinct_names_and_extensions() {
    for (i, a) in FORMATS.iter().enumerate() {
        for b in &FORMATS[..i] {
            assert!(a.name != b.name && a.extension != b.extension);
        }
    }
}

#[test]
fn files_are_written_whole_or_not_at_all() {
    let root = folder(&[("old", "old"), ("dir/x", "")]);
    let at = |name: &str| root.path().join(name);
    atomically(&at("new"), b"new", false).unwrap();
    assert_eq!(fs::read(at("new")).unwrap(), b"new");
    assert!(matches!(atomically(&at("old"), b"new", false), Err(WriteError::Exists)));
    assert_eq!(fs::read(at("old")).unwrap(), b"old");
    atomically(&at("old"), b"new", true).unwrap();
    assert_eq!(fs::read(at("old")).unwrap(), b"new");
    assert!(matches!(atomically(&at("dir"), b"new", true), Err(WriteError::NotAFile)));
    assert!(matches!(atomically(&at("none/x"), b"new", true), Err(WriteError::Unwritable(_))));
    let long = "n".repeat(255);
    atomically(&at(&long), b"long", false).unwrap();
    assert_eq!(names(root.path()), ["dir/x", "new", &long, "old"]);
}

#[test]
fn a_write_protected_file_is_not_replaced() {
    let root = folder(&[("a.rttm", "mine")]);
    let path = root.path().join("a.rttm");
    let mut permissions = fs::metadata(&path).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(&path, permissions).unwrap();
    assert!(matches!(atomically(&path, b"new", true), Err(WriteError::Protected)));
    assert_eq!(fs::read(&path).unwrap(), b"mine");
}

#[test]
fn a_panic_in_a_format_is_its_error() {
    let broken = Format { render: Render::File(|_| panic!("a bug")), ..*by_name("json").unwrap() };
    let root = folder(&[]);
    let path = root.path().join("a.json");
    let source = SourceFacts::default();
    let diarization = diarization(turns(), SETTINGS);
    let report =
        Report { path: "a".as_ref(), file: "a", uri: "a", diarization: &diarization, source: &source };
    let error = write_one(&broken, &report, &path, false).unwrap_err();
    assert_eq!(error.to_string(), "internal error in the json export");
    assert_eq!(names(root.path()), [""; 0]);
    write_one(by_name("json").unwrap(), &report, &path, false).unwrap();
    let error = write_one(by_name("json").unwrap(), &report, &path, false).unwrap_err();
    assert!(matches!(error, ExportError::Write(WriteError::Exists)), "{error}");
}
