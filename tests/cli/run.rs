//! Whole runs with stand-ins for decoder and engine.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use speakrs_app::cli::exit::Exit;
use speakrs_app::cli::progress::{Stop, Terminal, clock, time_left};
use speakrs_app::cli::run::{Summary, run};

use speakrs_app::pipeline::batch::Diarize;

use super::fakes::{FakeDecoder, FakeEngine, SETTINGS, args, at, folder, names, plan};

fn work(typed: &[&str]) -> Summary {
    let (plan, _) = plan(typed).unwrap();
    let terminal = Terminal::new(&args(typed));
    run(
        &plan,
        &SETTINGS,
        &FakeDecoder,
        [&FakeEngine as &dyn Diarize].as_slice().into(),
        &terminal,
        &Stop::never(),
    )
}

/// Names and content of everything below `folder`.
fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    names(folder).into_iter().map(|name| (name.clone(), fs::read(folder.join(name)).unwrap())).collect()
}

#[test]
fn one_bad_recording_does_not_stop_the_others() {
    let root = folder(&[
        ("1.wav", "hello"),
        ("2.wav", "bad"),
        ("3.wav", "crash"),
        ("4.wav", "burst"),
        ("5.wav", "silence"),
        ("6.wav", "an odd one"),
    ]);
    let summary = work(&[&at(&root, ""), "--output-dir", &at(&root, "out")]);
    assert_eq!((summary.done, summary.failed, summary.unfinished), (3, 3, 0));
    assert_eq!(summary.exit(), Exit::Failed);
    let out = root.path().join("out");
    assert_eq!(names(&out), ["1.rttm", "5.rttm", "6.rttm"]);
    assert_eq!(fs::read(out.join("5.rttm")).unwrap(), b"", "no speech is a result");
    assert!(fs::read_to_string(out.join("1.rttm")).unwrap().starts_with("SPEAKER 1 1 0.031 1.040 "));
}

#[test]
fn bytes_do_not_depend_on_the_number_of_decoders() {
    let texts: Vec<(String, String)> =
        (0..12).map(|i| (format!("take {i:02} é⚒.wav"), "odd ".repeat(i))).collect();
    let files: Vec<(&str, &str)> = texts.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let root = folder(&files);
    for jobs in ["1", "4"] {
        let out = at(&root, jobs);
        let summary = work(&[&at(&root, ""), "--output-dir", &out, "--jobs", jobs, "--format", "rttm,json"]);
        assert_eq!(summary.exit(), Exit::Done);
    }
    let one = contents(&root.path().join("1"));
    assert_eq!(one.len(), 24);
    assert_eq!(one, contents(&root.path().join("4")));
    let rttm = String::from_utf8(one["take 03 é⚒.rttm"].clone()).unwrap();
    assert!(rttm.lines().all(|line| line.split_whitespace().count() == 10 && line.contains(" take_03_é⚒ ")));
    assert!(String::from_utf8_lossy(&one["take 03 é⚒.json"]).contains(r#""file": "take 03 é⚒.wav""#));
}

#[cfg(unix)]
#[test]
fn a_name_that_is_not_text_is_kept_in_the_names_of_the_results() {
    use std::os::unix::ffi::OsStrExt;
    let root = folder(&[]);
    let path = |name: &[u8]| root.path().join(std::ffi::OsStr::from_bytes(name));
    fs::write(path(b"caf\xe9 1.wav"), "hello").unwrap();
    assert_eq!(work(&[&at(&root, "*.wav")]).exit(), Exit::Done);
    let rttm = fs::read_to_string(path(b"caf\xe9 1.rttm")).unwrap();
    assert!(rttm.starts_with("SPEAKER caf\u{fffd}_1 1 0.031 "), "{rttm}");
}

#[test]
fn a_result_that_cannot_be_written_fails_the_recording_but_not_its_other_results() {
    let root = folder(&[("a.wav", "hello"), ("a.rttm/x", "")]);
    let summary = work(&[&at(&root, "a.wav"), "--format", "rttm,json"]);
    assert_eq!((summary.done, summary.failed), (0, 1));
    assert_eq!(names(root.path()), ["a.json", "a.rttm/x", "a.wav"]);
}

#[test]
fn a_result_that_appears_meanwhile_is_not_replaced() {
    let root = folder(&[("a.wav", "hello")]);
    let file = at(&root, "a.wav");
    let (plan, _) = plan(&[&file]).unwrap();
    fs::write(root.path().join("a.rttm"), "mine").unwrap();
    let terminal = Terminal::new(&args(&[&file]));
    let summary = run(
        &plan,
        &SETTINGS,
        &FakeDecoder,
        [&FakeEngine as &dyn Diarize].as_slice().into(),
        &terminal,
        &Stop::never(),
    );
    assert_eq!(summary.exit(), Exit::Failed);
    assert_eq!(fs::read(root.path().join("a.rttm")).unwrap(), b"mine");
}

#[test]
fn rerunning_resumes() {
    let root = folder(&[("a.wav", "hello"), ("b.wav", "bad")]);
    let all = at(&root, "");
    assert_eq!(work(&[&all]).failed, 1);
    fs::write(root.path().join("b.wav"), "good now").unwrap();
    assert_eq!(work(&[&all, "--skip-existing"]).done, 1);
    assert_eq!(names(root.path()), ["a.rttm", "a.wav", "b.rttm", "b.wav"]);
}

#[test]
fn exit_codes() {
    let summary = Summary::default();
    assert_eq!(summary.exit().code(), 0);
    assert_eq!(Summary { failed: 1, done: 1, ..summary.clone() }.exit().code(), 1);
    assert_eq!(Summary { skipped: 1, ..summary.clone() }.exit().code(), 0);
    assert_eq!(Summary { failed: 1, signal: Some(2), ..summary.clone() }.exit().code(), 130);
    assert_eq!(Summary { signal: Some(15), ..summary }.exit().code(), 143);
}

#[test]
fn times() {
    assert_eq!(clock(7.54), "7.5 s");
    assert_eq!(clock(75.4), "1:15");
    assert_eq!(clock(4000.0), "1:06:40");
    assert_eq!(time_left(Duration::from_secs(10), 0, 100), None);
    assert_eq!(time_left(Duration::from_secs(10), 25, 100), Some(Duration::from_secs(30)));
}
