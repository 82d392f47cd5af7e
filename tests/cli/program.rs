//! The real program: usage, messages, exit codes.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use speakrs_app::app::export::FORMATS;
use speakrs_app::scoring::{Options, score};
use speakrs_app::timeline::rttm;

use super::fakes::{at, folder, names};

/// Hides every GPU, so that the same happens on every computer.
const NO_GPU: &str = "-1";

fn program(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_speakrs-app"));
    for name in ["RUST_LOG", "NO_COLOR", "SPEAKRS_APP_MODELS"] {
        command.env_remove(name);
    }
    command.env("CUDA_VISIBLE_DEVICES", NO_GPU);
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

/// Where no window can be had, one line says so and names the way out.
#[cfg(target_os = "linux")]
#[test]
fn without_a_display_one_line_names_headless() {
    for arguments in [&[][..], &["a.wav"]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_speakrs-app"));
        for name in ["DISPLAY", "WAYLAND_DISPLAY", "WAYLAND_SOCKET", "RUST_LOG"] {
            command.env_remove(name);
        }
        let output = command.args(arguments).stdin(Stdio::null()).output().unwrap();
        assert_eq!(output.status.code(), Some(if cfg!(feature = "gui") { 4 } else { 2 }));
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
fn a_device_that_cannot_be_used_is_named_with_the_reason() {
    let root = folder(&[("a.wav", "")]);
    let cases: [&[&str]; 5] = [
        &["--device", "cuda"],
        &["--device", "cuda:1"],
        &["--device", "cpu", "--precision", "fp16"],
        &["--precision", "tf32"],
        &["--device", "auto", "--precision", "fp16"],
    ];
    for device in cases {
        let (code, text) = run(&[&[at(&root, "a.wav").as_str()], device].concat());
        assert_eq!((code, text.lines().count()), (4, 1), "{device:?} {text}");
        let named =
            format!("speakrs-app: {}: ", device.iter().find(|a| a.starts_with('c')).unwrap_or(&"auto"));
        assert!(text.starts_with(&named), "{device:?} {text}");
        assert!(
            text.contains("NVIDIA driver") || text.contains("fp32 only") || text.contains("GPU"),
            "{text}"
        );
    }
}

#[test]
fn the_bench_prints_every_stage_and_leaves_nothing() {
    let root = folder(&[]);
    silence(&at(&root, "a.wav"), 12);
    let output =
        program(&["bench", &at(&root, "a.wav"), "--rounds", "2", "--device", "cpu", "--format", "json"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let seconds = |key: &str| json["stages"][key].as_f64().unwrap_or(f64::NAN);
    for stage in ["decode", "segmentation", "embedding", "clustering", "write"] {
        assert!(seconds(stage) >= 0.0, "{stage}: {text}");
    }
    assert!((json["audio"].as_f64().unwrap() - 12.0).abs() < 1e-9 && json["precision"] == "fp32", "{text}");
    let table = program(&["bench", &at(&root, "a.wav"), "--rounds", "1", "--device", "cpu"]);
    let table = String::from_utf8(table.stdout).unwrap();
    assert!(table.contains("\nas a batch ") && table.contains("\nsegmentation "), "{table}");
    assert_eq!(names(root.path()), ["a.wav"]);
    for (arguments, code) in [
        (&["bench"][..], 2),
        (&["bench", "missing.wav"], 3),
        (&["bench", "x.wav", "--device", "tpu"], 2),
        (&["bench", "x.wav", "--step", "0"], 2),
    ] {
        assert_eq!(program(arguments).status.code(), Some(code), "{arguments:?}");
    }
}

/// Drivers that cannot serve: an empty library, one of CUDA 11, the stand-in that toolkits bring.
#[test]
#[cfg(target_os = "linux")]
fn a_driver_that_cannot_serve_is_one_line_and_the_cpu_does_the_work() {
    let version = |number: u32, status: u32| {
        format!(
            "int cuInit(unsigned f) {{ return {status}; }} int cuDriverGetVersion(int *v) {{ *v = {number}; return 0; }} \
             int cuGetErrorString(int e, const char **s) {{ *s = \"stub library\"; return 0; }} \
             int cuTensorMapEncodeTiled(void) {{ return 0; }}"
        )
    };
    let cases = [
        ("int nothing;".into(), "the NVIDIA driver is too old: it supports no version that it tells"),
        (
            version(11_080, 0),
            "the NVIDIA driver is too old: it supports CUDA 11.8, needed is CUDA 12.0 or newer",
        ),
        (version(12_040, 34), "starting the NVIDIA driver: stub library (CUDA error 34)"),
    ];
    for (source, reason) in cases {
        let root = folder(&[("driver.c", source.as_str()), ("a.wav", "this is no audio")]);
        let library = at(&root, "libcuda.so.1");
        let built = Command::new("cc").args(["-shared", "-o", &library, &at(&root, "driver.c")]).status();
        if !built.is_ok_and(|status| status.success()) {
            return eprintln!("SKIPPED: no C compiler");
        }
        let run = |device: &str| {
            let output = Command::new(env!("CARGO_BIN_EXE_speakrs-app"))
                .args(["--headless", &at(&root, "a.wav"), "--device", device])
                .env("LD_LIBRARY_PATH", root.path())
                .output()
                .unwrap();
            (output.status.code(), String::from_utf8(output.stderr).unwrap())
        };
        let (code, text) = run("cuda");
        assert_eq!((code, text.lines().count()), (Some(4), 1), "{text}");
        assert!(text.starts_with(&format!("speakrs-app: cuda: {reason}")), "{text}");
        let (code, text) = run("auto");
        assert_eq!(code, Some(1), "{text}");
        assert!(text.starts_with(&format!("speakrs-app: computing on the CPU: {reason}")), "{text}");
    }
}

#[test]
fn devices_are_listed_with_the_reason_if_one_cannot_be_used() {
    let output = program(&["devices", "--explain"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0));
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 2, "{text}");
    assert!(lines[0].starts_with("cpu     ") && lines[1].starts_with("cuda    not usable: "), "{text}");
    for wrong in [&["--batch", "0"][..], &["--precision", "fp8"], &["x"]] {
        assert_eq!(program(&[&["devices"], wrong].concat()).status.code(), Some(2), "{wrong:?}");
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
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("speakrs-app: computing on the CPU: "), "{text}");
    assert!(lines[1].starts_with(&format!("speakrs-app: {}: ", at(&root, "a.wav"))), "{text}");
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
fn every_format_at_once() {
    let root = folder(&[]);
    silence(&at(&root, "a.wav"), 1);
    let formats = FORMATS.iter().map(|format| format.name).collect::<Vec<_>>().join(",");
    let run = |more: &[&str]| {
        let typed = [at(&root, "a.wav"), "--threads".into(), "1".into(), "--format".into(), formats.clone()];
        run(&[&typed.each_ref().map(String::as_str)[..], more].concat())
    };
    assert_eq!(run(&[]).0, 0);
    for format in FORMATS {
        assert!(root.path().join(format!("a.{}", format.extension)).exists(), "{}", format.name);
    }
    let (code, text) = run(&[]);
    assert!(code == 1 && text.contains("exists already"), "{text}");
    assert_eq!(run(&["--skip-existing"]).0, 0);
    assert_eq!(run(&["--overwrite"]).0, 0);
    std::fs::write(root.path().join("a.speakers/notes.txt"), "mine").unwrap();
    std::fs::remove_file(root.path().join("a.csv")).unwrap();
    let (code, text) = run(&["--overwrite"]);
    assert!(code == 1 && text.contains("a.speakers: holds notes.txt, which is not a result"), "{text}");
    assert!(root.path().join("a.csv").exists(), "the other results are written");
    assert_eq!(std::fs::read(root.path().join("a.speakers/notes.txt")).unwrap(), b"mine");
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
            .env("CUDA_VISIBLE_DEVICES", NO_GPU)
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

/// A batch with `--reference` prints the table to standard output, with what produced the hypothesis.
#[test]
fn a_batch_is_scored_against_a_reference() {
    let root = folder(&[]);
    let meeting = concat!(env!("CARGO_MANIFEST_DIR"), "/assets/demo/meeting.flac");
    let references = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/demo");
    let out = at(&root, "out");
    let output = program(&[
        "--headless",
        "--output-dir",
        &out,
        "--reference",
        references,
        "--by",
        "speakers",
        meeting,
    ]);
    let (table, messages) =
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert_eq!(output.status.code(), Some(0), "{messages}");
    assert!(messages.contains("1 recording of the reference not in this batch"), "{messages}");
    for part in [
        "meeting ",
        "TOTAL ",
        "2/3",
        "3 speakers, 1 of 1",
        "on each side",
        "precision fp32",
        "mode fast",
        "device ",
    ] {
        assert!(table.contains(part), "{part} in\n{table}");
    }
    // The same figures as from the files.
    let reference = format!("{references}/meeting.reference.rttm");
    let (_, again, _) = scored(&[&reference, &at(&root, "out/meeting.rttm")]);
    let row = |text: &str| text.lines().find(|line| line.starts_with("meeting ")).map(words).unwrap();
    assert_eq!(row(&table), row(&again));
    // A run that finds everything done scores what is there.
    let output =
        program(&["--headless", "--skip-existing", "--output-dir", &out, "--reference", references, meeting]);
    assert_eq!(row(&String::from_utf8(output.stdout).unwrap()), row(&again));
    assert!(
        String::from_utf8(output.stderr).unwrap().contains("1 recording was skipped, scored from the RTTM")
    );
}

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn a_reference_that_cannot_be_read_is_found_before_the_work() {
    let root = folder(&[("bad.rttm", "SPEAKER a 1 x 1 <NA> <NA> s <NA> <NA>\n"), ("a.wav", "no audio")]);
    let (code, text) = run(&["--reference", &at(&root, "bad.rttm"), &at(&root, "a.wav")]);
    assert!(code == 2 && text.contains("bad.rttm:1:") && text.lines().count() == 1, "{code} {text}");
    let (code, text) = run(&["--format", "json", "--reference", &at(&root, "bad.rttm"), &at(&root, "a.wav")]);
    assert!(code == 2 && text.contains("add rttm to --format"), "{code} {text}");
}

/// Exit code, standard output and standard error of `score`.
fn scored(arguments: &[&str]) -> (i32, String, String) {
    let output = program(&[&["score"], arguments].concat());
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

const REFERENCE: &str = "\
SPEAKER a 1 0 10 <NA> <NA> anna <NA> <NA>
SPEAKER a 1 8 4 <NA> <NA> anna <NA> <NA>
SPEAKER bé 1 0 5 <NA> <NA> ben <NA> <NA>
SPEAKER c 1 0 5 <NA> <NA> carl <NA> <NA>
";
const HYPOTHESIS: &str = "\
SPEAKER a 1 0 9 <NA> <NA> x <NA> <NA>
SPEAKER bé 1 0 5 <NA> <NA> y <NA> <NA>
SPEAKER d 1 0 5 <NA> <NA> z <NA> <NA>
";

#[test]
fn scores_are_printed_in_every_form() {
    let root = folder(&[("ref.rttm", REFERENCE), ("hyp.rttm", HYPOTHESIS)]);
    let (reference, hypothesis) = (&*at(&root, "ref.rttm"), &*at(&root, "hyp.rttm"));
    let (code, table, messages) = scored(&[reference, hypothesis]);
    assert_eq!(code, 0);
    // 3 of 12 s missed in a, 5 of 5 in c; the collar of 0.25 s leaves 11.5, 4.5 and 4.5 s.
    let row = |name: &str| words(table.lines().find(|line| line.starts_with(name)).unwrap());
    assert_eq!(row("a ")[1..9], ["12.000", "3.000", "25.00", "0.000", "0.00", "0.000", "0.00", "25.00"]);
    assert_eq!(row("a ")[9..], ["23.91", "25.00", "1/1", "+0"]);
    assert_eq!(row("TOTAL")[1..9], ["22.000", "8.000", "36.36", "0.000", "0.00", "0.000", "0.00", "36.36"]);
    assert_eq!(row("TOTAL")[9..], ["35.37", "41.67", "2/3", "0.33"]);
    for part in
        ["c: no hypothesis, scored as all missed", "d: no reference, not scored", "a: 1 turn that overlaps"]
    {
        assert!(messages.contains(part), "{part} in {messages}");
    }
    assert!(table.contains("exact in 2 of 3, off by one in 1"), "{table}");
    let widths: Vec<usize> = table.lines().take(2).map(|line| line.chars().count()).collect();
    assert_eq!(widths[0], widths[1], "columns line up");

    let (_, worst, _) = scored(&["--sort", "error", "--purity", reference, hypothesis]);
    assert!(worst.lines().nth(2).unwrap().starts_with("c ") && worst.contains("coverage"), "{worst}");

    let (_, csv, _) = scored(&["--format", "csv", reference, hypothesis]);
    let columns: Vec<usize> = csv.lines().map(|line| line.split(',').count()).collect();
    assert_eq!(columns, [13; 5], "{csv}");
    let (_, markdown, _) = scored(&["--format", "md", reference, hypothesis]);
    assert!(markdown.starts_with("| recording | speech s |"), "{markdown}");

    let (_, json, _) = scored(&["--format", "json", "--collar", "0.25", reference, hypothesis]);
    let document: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(document["settings"]["collars_per_side"], serde_json::json!([0.25, 0.0]));
    assert_eq!(document["missing"], serde_json::json!(["c"]));
    assert_eq!(document["recordings"][0]["mapping"][0]["hypothesis"], "x");
    assert_eq!(document["recordings"][0]["intervals"][0]["kind"], "correct");
    assert_eq!(document["total"][1]["missed"], 8.0);
}

#[test]
fn what_cannot_be_scored_is_named() {
    let root = folder(&[
        ("ref.rttm", REFERENCE),
        ("bad.rttm", "SPEAKER a 1 0 -1 <NA> <NA> x <NA> <NA>\n"),
        ("two/x.rttm", REFERENCE),
        ("two/y.rttm", REFERENCE),
    ]);
    let reference = &*at(&root, "ref.rttm");
    let (code, out, messages) = scored(&[reference, &at(&root, "bad.rttm")]);
    assert!(code == 1 && out.is_empty() && messages.contains("bad.rttm:1:"), "{code} {messages}");
    let (code, _, messages) = scored(&[&at(&root, "none"), &at(&root, "bad.rttm")]);
    assert!(code == 1 && messages.lines().count() == 2, "{code} {messages}");
    let (code, _, messages) = scored(&[&at(&root, "two"), reference]);
    assert!(code == 1 && messages.contains("x.rttm") && messages.contains("y.rttm"), "{code} {messages}");
    for wrong in [
        &["--collar", "-1", reference, reference][..],
        &[reference],
        &["--collar", "x", reference, reference],
    ] {
        assert_eq!(scored(wrong).0, 2, "{wrong:?}");
    }
    let report = at(&root, "report.csv");
    let (code, out, _) = scored(&["--format", "csv", "-o", &report, reference, reference]);
    assert!(code == 0 && out.is_empty());
    assert!(std::fs::read_to_string(&report).unwrap().contains("TOTAL,22.000,0.000"));
}
