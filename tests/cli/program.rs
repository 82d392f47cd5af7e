//! The real program: usage, messages, exit codes.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use speakrs_app::scoring::{Options, score};
use speakrs_app::timeline::rttm;

use super::fakes::{at, folder, names};

fn program(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_speakrs-app"));
    for name in ["RUST_LOG", "NO_COLOR", "SPEAKRS_APP_MODELS"] {
        command.env_remove(name);
    }
    // An open standard input that never ends shows that nothing waits for it.
    let mut child = command
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let stdin = child.stdin.take();
    let output = child.wait_with_output().unwrap();
    drop(stdin);
    output
}

/// Exit code and standard error; standard output must be empty.
fn run(arguments: &[&str]) -> (i32, String) {
    let output = program(&[&["--headless"], arguments].concat());
    assert!(output.stdout.is_empty(), "standard output is for data");
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn without_headless_it_says_so() {
    for arguments in [&[][..], &["a.wav"]] {
        let output = program(arguments);
        assert_eq!(output.status.code(), Some(2));
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(text.contains("--headless") && text.lines().count() == 1, "{text}");
    }
}

#[test]
fn help_and_version() {
    let help = program(&["--help"]);
    let text = String::from_utf8(help.stdout).unwrap();
    assert_eq!(help.status.code(), Some(0));
    for part in ["Exit codes:", "--skip-existing", "@LIST", "rttm", "json"] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
    let version = program(&["--version"]).stdout;
    assert_eq!(String::from_utf8(version).unwrap(), format!("speakrs-app {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn usage_errors() {
    for arguments in [
        &[][..],
        &["x.wav", "--frobnicate"],
        &["x.wav", "--format", "doc"],
        &["x.wav", "--num-speakers", "0"],
        &["x.wav", "--num-speakers", "two"],
        &["x.wav", "--num-speakers", "2", "--min-speakers", "1"],
        &["x.wav", "--num-speakers", "2", "--max-speakers", "3"],
        &["x.wav", "--min-speakers", "3", "--max-speakers", "2"],
        &["x.wav", "--step", "0"],
        &["x.wav", "--step", "11"],
        &["x.wav", "--overwrite", "--skip-existing"],
        &["x.wav", "--quiet", "-v"],
        &["x.wav", "--mode", "slow"],
        &["x.wav", "--device", "tpu"],
        &["x.wav", "--jobs", "0"],
    ] {
        let (code, text) = run(arguments);
        assert_eq!(code, 2, "{arguments:?}\n{text}");
        assert!(!text.is_empty());
    }
}

#[test]
fn a_gpu_cannot_be_had_yet() {
    let root = folder(&[("a.wav", "")]);
    for device in ["cuda", "cuda:1"] {
        let (code, text) = run(&[&at(&root, "a.wav"), "--device", device]);
        assert_eq!((code, text.lines().count()), (4, 1), "{text}");
        assert!(text.contains("not built into this version"), "{text}");
    }
}

#[test]
fn missing_models_are_an_environment_error_found_after_the_inputs() {
    let (code, text) = run(&["no-such.wav", "--models", "/no/such/models"]);
    assert_eq!(code, 1, "{text}");
    assert!(text.starts_with("speakrs-app: no-such.wav: no such file"), "{text}");
}

#[test]
fn nothing_to_do() {
    let root = folder(&[("notes.txt", ""), (".hidden.wav", "")]);
    for argument in [at(&root, ""), at(&root, "*.wav")] {
        let (code, text) = run(&[&argument]);
        assert_eq!(code, 3, "{text}");
        assert!(text.contains("no input matched"), "{text}");
    }
}

#[test]
fn skipping_everything_succeeds() {
    let root = folder(&[("a.wav", ""), ("a.rttm", "mine")]);
    let (code, text) = run(&[&at(&root, "a.wav"), "--skip-existing"]);
    assert_eq!(code, 0, "{text}");
    assert!(text.ends_with("speakrs-app: 0 done, 1 skipped\n"), "{text}");
    assert_eq!(run(&[&at(&root, "a.wav"), "--skip-existing", "--quiet"]), (0, String::new()));
    let (code, text) = run(&[&at(&root, "a.wav")]);
    assert_eq!(code, 1);
    assert!(text.contains("a.rttm: exists already (use --overwrite or --skip-existing)"), "{text}");
}

#[test]
fn text_posing_as_audio_fails_with_a_reason_and_leaves_nothing() {
    let root = folder(&[("a.wav", "this is no audio")]);
    let (code, text) = run(&[&at(&root, "a.wav")]);
    assert_eq!(code, 1, "{text}");
    assert!(text.starts_with(&format!("speakrs-app: {}: ", at(&root, "a.wav"))), "{text}");
    assert!(text.ends_with("speakrs-app: 0 done, 1 failed\n"), "{text}");
    assert_eq!(names(root.path()), ["a.wav"]);
}

/// A WAV file of silence at 16 kHz, mono, 16 bits; its data take no room on most disks.
fn silence(path: &str, seconds: u32) {
    let bytes = seconds * 32_000;
    let mut header = Vec::new();
    header.extend(b"RIFF");
    header.extend((36 + bytes).to_le_bytes());
    header.extend(b"WAVEfmt \x10\0\0\0\x01\0\x01\0\x80\x3e\0\0\0\x7d\0\0\x02\0\x10\0data");
    header.extend(bytes.to_le_bytes());
    let mut file = File::create(path).unwrap();
    file.write_all(&header).unwrap();
    file.set_len(44 + u64::from(bytes)).unwrap();
}

#[test]
fn text_posing_as_audio_does_not_stop_the_others() {
    let root = folder(&[("b.wav", "this is no audio")]);
    silence(&at(&root, "a.wav"), 1);
    silence(&at(&root, "c.wav"), 1);
    let (code, text) = run(&[&at(&root, ""), "--threads", "1"]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("speakrs-app: 2 done, 1 failed; "), "{text}");
    assert_eq!(names(root.path()), ["a.rttm", "a.wav", "b.wav", "c.rttm", "c.wav"]);
}

#[cfg(unix)]
#[test]
fn a_signal_stops_and_leaves_no_partial_file() {
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        let root = folder(&[]);
        silence(&at(&root, "long.wav"), 12 * 3600);
        let mut child = Command::new(env!("CARGO_BIN_EXE_speakrs-app"))
            .args(["--headless", "-v", &at(&root, "long.wav")])
            .env_remove("RUST_LOG")
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
        assert!(lines.any(|line| line.contains("models loaded")));
        Command::new("kill").args([&format!("-{signal}"), &child.id().to_string()]).status().unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(code));
        assert_eq!(lines.last().unwrap(), "speakrs-app: 0 done, 1 not finished");
        assert_eq!(names(root.path()), ["long.wav"]);
    }
}

#[test]
fn json_messages_are_one_object_a_line() {
    let root = folder(&[("a.wav", "this is no audio")]);
    let (_, text) = run(&[&at(&root, "a.wav"), "missing.wav", "--log-format", "json"]);
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let failed = lines.iter().filter(|line| line["message"] == "failed" && line["reason"].is_string());
    assert_eq!(failed.count(), 2, "{text}");
    assert_eq!(lines.last().unwrap()["failed"], 2, "{text}");
}

#[test]
fn colours_only_on_request() {
    let (_, plain) = run(&["missing.wav"]);
    assert!(!plain.contains('\u{1b}'));
    let (_, coloured) = run(&["missing.wav", "--color", "always"]);
    assert!(coloured.contains("\u{1b}[31mspeakrs-app:\u{1b}[0m missing.wav"), "{coloured}");
}

#[test]
fn file_names_cannot_steer_the_terminal() {
    let (_, text) = run(&["evil\u{1b}[2J\r.wav"]);
    assert!(!text.contains(['\u{1b}', '\r']), "{text}");
}

#[test]
fn a_closed_pipe_is_quiet() {
    for (arguments, code) in [(&["--headless", "missing.wav"][..], 1), (&["--help"], 0)] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_speakrs-app"));
        let mut child =
            command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop((child.stdout.take(), child.stderr.take()));
        assert_eq!(child.wait().unwrap().code(), Some(code));
    }
}

/// The README's main command. Vector units differ in rounding, which may move a boundary by a frame now and then, so
/// the turns are compared in time: 0.2 % of the speech is about one frame in every ten seconds.
#[test]
fn the_demo_recordings_give_the_expected_turns() {
    let root = folder(&[]);
    let demo = concat!(env!("CARGO_MANIFEST_DIR"), "/assets/demo");
    let (code, text) = run(&["--output-dir", &at(&root, "out"), demo]);
    assert_eq!(code, 0, "{text}");
    for (name, speakers) in [("meeting", 2), ("conversation", 2)] {
        let read = |folder: &Path| rttm::read(&folder.join(format!("{name}.rttm"))).unwrap();
        let expected = read(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/demo/expected")));
        let found = read(&root.path().join("out"));
        let options = Options { collar: 0.0, skip_overlap: false };
        let report = score(&expected, &found, None, options);
        assert_eq!(report.rows.len(), 1);
        assert_eq!(report.rows[0].hypothesis_speakers, speakers, "{name}");
        assert!(report.der.rate() <= 0.002, "{name}: {}", report.der.rate());
    }
}
