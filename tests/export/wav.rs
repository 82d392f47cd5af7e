//! The sound of each speaker, and that nothing but our own files is ever replaced.

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use speakrs_app::app::export::write::WriteError;
use speakrs_app::app::export::{ExportError, by_name};
use speakrs_app::app::inputs;
use speakrs_app::app::jobs::{self, Existing, JobError, Jobs, Wishes};
use speakrs_app::audio::{self, Channels};

use super::{Case, cases, recording};

fn export(case: &Case, recording: &Path, result: &Path, replace: bool) -> Result<(), ExportError> {
    case.write("wav", recording, result, replace)
}

/// Sorted names of what is in `folder`, hidden entries too.
fn listed(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = names.map(|name| name.to_str().unwrap().to_owned()).collect();
    names.sort();
    names
}

fn samples(path: &Path) -> Vec<i16> {
    let mut reader = hound::WavReader::open(path).unwrap();
    let spec = reader.spec();
    assert_eq!((spec.channels, spec.sample_rate, spec.bits_per_sample), (1, 16_000, 16));
    reader.samples().map(Result::unwrap).collect()
}

fn two() -> Case {
    let turns = [(0.25, 0.5, 0), (0.0, 1.0, 1), (0.375, 0.75, 0), (1.5, 2.0, 0)];
    Case::new("a.wav", 2.0, &["Ann", "Bob"], &turns)
}

/// A folder with a recording `a.wav` of two seconds; the path of its result.
fn prepared() -> (tempfile::TempDir, PathBuf, PathBuf) {
    let root = tempfile::tempdir().unwrap();
    let (path, result) = (root.path().join("a.wav"), root.path().join("a.speakers"));
    recording(&path, 32_000);
    (root, path, result)
}

#[test]
fn every_file_is_as_long_as_the_recording_and_silent_where_others_talk() {
    let (root, path, result) = prepared();
    let original = samples(&path);
    export(&two(), &path, &result, false).unwrap();
    assert_eq!(listed(root.path()), ["a.speakers", "a.wav"]);
    assert_eq!(listed(&result), ["01 Ann.wav", "02 Bob.wav"]);
    let heard = |name: &str, spans: &[(usize, usize)]| {
        let sample =
            |i: usize| if spans.iter().any(|&(from, to)| (from..to).contains(&i)) { original[i] } else { 0 };
        let expected: Vec<i16> = (0..original.len()).map(sample).collect();
        assert!(samples(&result.join(name)) == expected, "{name}");
    };
    heard("01 Ann.wav", &[(4000, 12_000), (24_000, 32_000)]);
    heard("02 Bob.wav", &[(0, 16_000)]);
}

#[test]
fn the_files_are_sound_to_our_own_reader() {
    let (_root, path, result) = prepared();
    export(&two(), &path, &result, false).unwrap();
    let decoded =
        audio::decode(&result.join("02 Bob.wav"), Channels::Mix, &mut |_| ControlFlow::Continue(()));
    let decoded = decoded.unwrap();
    assert_eq!((decoded.samples.len(), decoded.source.warnings), (32_000, Vec::new()));
    let bytes = fs::read(result.join("02 Bob.wav")).unwrap();
    let size = u32::from_le_bytes(bytes[4..8].try_into().unwrap());
    assert_eq!(size as usize + 8, bytes.len());
}

#[test]
fn samples_out_of_range_are_clipped() {
    let root = tempfile::tempdir().unwrap();
    let (path, result) = (root.path().join("a.wav"), root.path().join("a.speakers"));
    let format = hound::SampleFormat::Float;
    let spec =
        hound::WavSpec { channels: 1, sample_rate: 16_000, bits_per_sample: 32, sample_format: format };
    let mut writer = hound::WavWriter::create(&path, spec).unwrap();
    [2.0f32, -2.0, 1.0, 0.5].iter().for_each(|&sample| writer.write_sample(sample).unwrap());
    writer.finalize().unwrap();
    export(&Case::new("a.wav", 0.00025, &["A"], &[(0.0, 0.00025, 0)]), &path, &result, false).unwrap();
    assert_eq!(samples(&result.join("01 A.wav")), [i16::MAX, i16::MIN, i16::MAX, 16_384]);
}

#[test]
fn names_are_distinct_and_safe_on_every_system() {
    for case in cases() {
        let (root, path) = (tempfile::tempdir().unwrap(), PathBuf::from("x.wav"));
        let (path, result) = (root.path().join(path), root.path().join("x.speakers"));
        recording(&path, 16_000);
        let mut case = case;
        case.duration = 1.0;
        export(&case, &path, &result, false).unwrap();
        let names = listed(&result);
        assert_eq!(names.len(), case.speakers.len(), "{}", case.file);
        for name in &names {
            let bad = |c: char| c.is_control() || r#"<>:"/\|?*"#.contains(c);
            assert!(!name.contains(bad) && name.len() < 130 && !name.contains(" .wav"), "{name}");
        }
        let mut folded: Vec<String> = names.iter().map(|name| name.to_lowercase()).collect();
        folded.dedup();
        assert_eq!(folded.len(), names.len(), "{names:?}");
    }
    let many: Vec<String> = (0..101).map(|i| format!("v{i}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let (_root, path, result) = prepared();
    export(&Case::new("a.wav", 2.0, &many, &[]), &path, &result, false).unwrap();
    assert_eq!((&listed(&result)[0], &listed(&result)[100]), (&"001 v0.wav".into(), &"101 v100.wav".into()));
}

#[test]
fn the_same_result_gives_the_same_bytes() {
    let (root, path, result) = prepared();
    let again = root.path().join("b.speakers");
    export(&two(), &path, &result, false).unwrap();
    export(&two(), &path, &again, false).unwrap();
    for name in listed(&result) {
        assert!(fs::read(result.join(&name)).unwrap() == fs::read(again.join(&name)).unwrap(), "{name}");
    }
}

#[test]
fn no_speech_gives_an_empty_folder_which_can_be_replaced() {
    let (_root, path, result) = prepared();
    export(&Case::new("a.wav", 2.0, &[], &[]), &path, &result, false).unwrap();
    assert_eq!(listed(&result), [""; 0]);
    export(&two(), &path, &result, true).unwrap();
    assert_eq!(listed(&result).len(), 2);
}

#[test]
fn a_recording_that_is_gone_or_another_one_is_one_line_and_leaves_nothing() {
    let (root, path, result) = prepared();
    fs::remove_file(&path).unwrap();
    let error = export(&two(), &path, &result, false).unwrap_err().to_string();
    assert!(error.starts_with("the recording cannot be decoded again: cannot read the file: "), "{error}");
    recording(&path, 16_000);
    let error = export(&two(), &path, &result, false).unwrap_err();
    assert!(matches!(error, ExportError::OtherRecording), "{error}");
    assert_eq!(listed(root.path()), ["a.wav"]);
}

#[test]
fn our_own_folder_is_replaced_only_if_allowed() {
    let (root, path, result) = prepared();
    export(&two(), &path, &result, false).unwrap();
    let renamed = Case { speakers: vec!["Zoe".into(), "Bob".into()], ..two() };
    let error = export(&renamed, &path, &result, false).unwrap_err();
    assert!(matches!(error, ExportError::Write(WriteError::Exists)), "{error}");
    assert_eq!(listed(&result), ["01 Ann.wav", "02 Bob.wav"]);
    export(&renamed, &path, &result, true).unwrap();
    assert_eq!(listed(&result), ["01 Zoe.wav", "02 Bob.wav"]);
    assert_eq!(listed(root.path()), ["a.speakers", "a.wav"], "nothing temporary is left");
}

#[test]
fn what_others_wrote_is_never_replaced() {
    type Add = fn(&Path);
    let add: [(&str, Add); 4] = [
        ("notes.txt", |folder| fs::write(folder.join("notes.txt"), "mine").unwrap()),
        ("03 Cleo.wav", |folder| drop(recording(&folder.join("03 Cleo.wav"), 32_000))),
        (".hidden.wav", |folder| fs::write(folder.join(".hidden.wav"), "").unwrap()),
        ("sub.wav", |folder| fs::create_dir(folder.join("sub.wav")).unwrap()),
    ];
    for (name, add) in add {
        let (root, path, result) = prepared();
        export(&two(), &path, &result, false).unwrap();
        add(&result);
        let before = listed(&result);
        let error = export(&two(), &path, &result, true).unwrap_err().to_string();
        assert_eq!(error, format!("holds {name}, which is not a result, so it cannot be replaced"));
        assert_eq!(listed(&result), before);
        assert_eq!(listed(root.path()), ["a.speakers", "a.wav"]);
    }
    let (_root, path, result) = prepared();
    fs::write(&result, "mine").unwrap();
    let error = export(&two(), &path, &result, true).unwrap_err();
    assert!(matches!(error, ExportError::Write(WriteError::NotAFolder)), "{error}");
    assert_eq!(fs::read(&result).unwrap(), b"mine");
}

#[cfg(unix)]
#[test]
fn links_are_not_ours() {
    let (root, path, result) = prepared();
    export(&two(), &path, &root.path().join("elsewhere"), false).unwrap();
    std::os::unix::fs::symlink("elsewhere", &result).unwrap();
    let error = export(&two(), &path, &result, true).unwrap_err();
    assert!(matches!(error, ExportError::Write(WriteError::NotAFolder)), "{error}");
    fs::remove_file(&result).unwrap();
    fs::create_dir(&result).unwrap();
    std::os::unix::fs::symlink("../elsewhere/01 Ann.wav", result.join("01 Ann.wav")).unwrap();
    let error = export(&two(), &path, &result, true).unwrap_err();
    assert!(matches!(error, ExportError::Write(WriteError::Foreign(_))), "{error}");
    assert_eq!(listed(&root.path().join("elsewhere")).len(), 2);
}

fn assigned(arguments: &[&Path], recursive: bool, existing: Existing) -> Jobs {
    let arguments: Vec<_> = arguments.iter().map(|path| path.as_os_str().to_owned()).collect();
    let found = inputs::find(&arguments, recursive);
    jobs::assign(found.inputs, &Wishes { formats: vec![by_name("wav").unwrap()], folder: None, existing })
}

#[test]
fn jobs_know_folders_of_results() {
    let (root, path, result) = prepared();
    let jobs = assigned(&[&path], false, Existing::Refuse);
    assert_eq!((jobs.jobs.len(), &jobs.jobs[0].outputs[0].path), (1, &result));
    export(&two(), &path, &result, false).unwrap();
    let jobs = assigned(&[&path], false, Existing::Refuse);
    assert!(matches!(&jobs.failures[0].1, JobError::Output { error: WriteError::Exists, .. }));
    assert_eq!(assigned(&[&path], false, Existing::Skip).skipped.len(), 1);
    assert_eq!(assigned(&[&path], false, Existing::Replace).jobs.len(), 1);
    // The folder of results is no folder of recordings, unless it is named.
    let jobs = assigned(&[root.path()], true, Existing::Replace);
    assert_eq!(jobs.jobs.iter().map(|job| &job.input).collect::<Vec<_>>(), [&path]);
    // One of its files is a recording now, which must not be replaced.
    let jobs = assigned(&[&path, &result], false, Existing::Replace);
    let named: Vec<&PathBuf> = jobs.jobs.iter().map(|job| &job.input).collect();
    assert_eq!(named, [&result.join("01 Ann.wav"), &result.join("02 Bob.wav")]);
    assert!(matches!(&jobs.failures[..], [(failed, JobError::OverInput(_))] if *failed == path));
}
