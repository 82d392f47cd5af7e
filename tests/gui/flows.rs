//! The whole window without a display, with the real networks on the CPU.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command as Process;
use std::time::{Duration, Instant};

use eframe::egui::{self, Key, Modifiers};
use egui_kittest::Harness;
use egui_kittest::kittest::Queryable;
use speakrs_app::app::document::{Edit, SpeakerId};
use speakrs_app::app::engines::Choice;
use speakrs_app::app::export::by_name;
use speakrs_app::clustering::SpeakerBounds;
use speakrs_app::gui::Options;
use speakrs_app::gui::app::App;
use speakrs_app::gui::command::Command;
use speakrs_app::gui::state::{EngineState, Export, Page, Scope, Status};

/// Longest wait for the networks, on a machine that does much else.
const PATIENCE: Duration = Duration::from_secs(300);

fn demo(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/demo").join(name)
}

struct Window {
    harness: Harness<'static, App>,
    folder: tempfile::TempDir,
}

impl Window {
    fn open(inputs: &[PathBuf]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let options = Options {
            inputs: inputs.iter().map(OsString::from).collect(),
            choice: Choice {
                models: None,
                device: "cpu".into(),
                precision: None,
                cache: Some(folder.path().join("cache")),
            },
            formats: vec![by_name("rttm").expect("a format"), by_name("json").expect("a format")],
            folder: Some(folder.path().join("out")),
            mode: None,
            step: 1.0,
            decoders: 2,
        };
        let build = |context: &mut eframe::CreationContext<'_>| App::new(&context.egui_ctx, &options);
        let harness = Harness::builder()
            .with_size(egui::vec2(1180.0, 760.0))
            .with_os(egui::os::OperatingSystem::Nix)
            .build_eframe(build);
        Self { harness, folder }
    }

    fn out(&self, name: &str) -> PathBuf {
        self.folder.path().join("out").join(name)
    }

    fn app(&mut self) -> &mut App {
        self.harness.state_mut()
    }

    /// Draws until `ready`.
    fn wait(&mut self, what: &str, ready: impl Fn(&App) -> bool) {
        let begin = Instant::now();
        while !ready(self.harness.state()) {
            assert!(
                begin.elapsed() < PATIENCE,
                "waiting for {what}: {:?}",
                self.harness.state().state.notices
            );
            self.harness.step();
            std::thread::sleep(Duration::from_millis(5));
        }
        self.harness.step();
    }

    fn finish(&mut self) {
        self.wait("the recordings", |app| {
            !app.state.entries.is_empty() && app.state.entries.iter().all(|entry| !entry.status.is_open())
        });
    }

    fn click(&mut self, label: &str) {
        self.harness.get_by_label(label).click();
        self.harness.run_steps(3);
    }

    fn speakers(&mut self) -> usize {
        self.app().state.entries[0].document.as_ref().expect("a result").speakers().len()
    }

    /// The RTTM of the demo once it is `want`ed.
    fn wait_for_rttm(&mut self, what: &str, want: impl Fn(&str) -> bool) {
        let path = self.out("meeting.rttm");
        self.wait(what, |_| std::fs::read_to_string(&path).is_ok_and(|text| want(&text)));
    }
}

/// What the command line makes of the demo.
fn headless() -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let program = Process::new(env!("CARGO_BIN_EXE_speakrs-app"))
        .args(["--headless", "--device", "cpu", "--output-dir"])
        .arg(folder.path())
        .arg(demo("meeting.flac"))
        .output()
        .expect("the program");
    assert!(program.status.success(), "{}", String::from_utf8_lossy(&program.stderr));
    std::fs::read_to_string(folder.path().join("meeting.rttm")).expect("a result")
}

#[test]
fn an_empty_window_tells_what_to_do_and_has_the_demo() {
    let mut window = Window::open(&[]);
    window.harness.run_steps(2);
    window.harness.get_by_label("Who spoke when?");
    window.click("Try the demo");
    window.wait("the demo", |app| !app.state.entries.is_empty());
    assert_eq!(window.app().state.entries[0].name(), "meeting.flac");
    window.finish();
    assert_eq!(window.app().state.entries[0].status, Status::Done);
    assert!(window.out("meeting.json").is_file());
}

#[test]
fn a_recording_runs_is_corrected_undone_exported_and_scored() {
    let mut window = Window::open(&[demo("meeting.flac")]);
    window.finish();
    let found = std::fs::read_to_string(window.out("meeting.rttm")).expect("a result");
    assert_eq!(found, headless(), "the window and the command line give the same bytes");
    let EngineState::Ready(opened) = &window.app().state.engine else { panic!("no engine") };
    assert_eq!(opened.device, "cpu");
    let speakers = window.speakers();
    assert!(speakers >= 2, "{speakers}");

    // A name, typed into the question.
    window.app().apply(Command::AskName(0));
    window.harness.run_steps(2);
    window.app().apply(Command::TypeName("Ada".into()));
    window.click("OK");
    assert!(window.app().state.dialog.is_none());
    window.wait_for_rttm("the name in the result", |text| {
        text.contains(" Ada ") && !text.contains("SPEAKER_00")
    });

    // The same name for another speaker is refused beside the field.
    window.app().apply(Command::AskName(1));
    window.app().apply(Command::TypeName("Ada".into()));
    window.app().apply(Command::GiveName);
    window.harness.run_steps(2);
    assert!(window.app().state.dialog.is_some());
    window.app().apply(Command::CloseDialog);

    // Merging, and taking it back by keys.
    window.app().apply(Command::Edit(Edit::Merge { from: SpeakerId(1), into: SpeakerId(0) }));
    assert_eq!(window.speakers(), speakers - 1);
    window.harness.key_press_modifiers(Modifiers::COMMAND, Key::Z);
    window.harness.run_steps(2);
    assert_eq!(window.speakers(), speakers);
    window.harness.key_press_modifiers(Modifiers::COMMAND, Key::Z);
    window.harness.run_steps(2);
    window.wait_for_rttm("the first result again", |text| text == found);
    window.app().apply(Command::Redo);

    // Export of the open recording, with the name.
    let folder = window.folder.path().join("exported");
    let formats = ["csv", "textgrid"].into();
    let export = Export { scope: Scope::Open, formats, folder: Some(folder.clone()), replace: false };
    window.app().apply(Command::Export(export));
    window.wait("the export", |_| folder.join("meeting.TextGrid").is_file());
    assert!(std::fs::read_to_string(folder.join("meeting.csv")).expect("a table").contains("Ada"));

    // Scores, also after an edit.
    let reference = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/demo/meeting.reference.rttm");
    window.app().apply(Command::Evaluate(reference));
    window.wait("the scores", |app| app.state.evaluation.as_ref().is_some_and(|e| e.rows.len() == 1));
    window.app().apply(Command::Page(Page::Evaluation));
    window.harness.run_steps(2);
    window.harness.get_by_label("DER %");
    let before = window.app().state.evaluation.as_ref().expect("scores").total.rate();
    window.app().apply(Command::Edit(Edit::Merge { from: SpeakerId(1), into: SpeakerId(0) }));
    window.wait("new scores", |app| app.state.evaluation.as_ref().is_some_and(|e| e.total.rate() != before));
    let (open, _) = window.app().state.opened().expect("an open recording");
    assert!(open.model.has_errors());
}

#[test]
fn another_number_of_speakers_takes_clustering_only_and_can_be_undone() {
    let mut window = Window::open(&[demo("meeting.flac")]);
    window.finish();
    let speakers = window.speakers();
    let id = window.app().state.entries[0].id;
    assert!(window.app().state.entries[0].inference.as_ref().is_some_and(|path| path.is_file()));
    let one = SpeakerBounds { num: Some(1), ..SpeakerBounds::default() };
    window.app().apply(Command::Bounds(id, one));
    assert_eq!(window.app().state.entries[0].status, Status::Done, "the networks do not run again");
    window.wait("one speaker", |app| !app.state.entries[0].clustering);
    assert_eq!(window.speakers(), 1);
    window.wait_for_rttm("the result with one speaker", |text| !text.contains("SPEAKER_01"));
    window.app().apply(Command::Undo);
    assert_eq!(window.speakers(), speakers);

    // Without the file the networks run again.
    let inference = window.app().state.entries[0].inference.clone().expect("a file");
    std::fs::remove_file(inference).expect("it can be deleted");
    window.app().apply(Command::Bounds(id, one));
    window.wait("the new run", |app| app.state.entries[0].status.is_open());
    window.finish();
    assert_eq!(window.speakers(), 1);
}

#[test]
fn recordings_are_dropped_cancelled_refused_and_run_again() {
    let mut window = Window::open(&[]);
    let bad = window.folder.path().join("bad.wav");
    std::fs::write(&bad, b"not sound").expect("a file");
    let missing = window.folder.path().join("missing.wav");
    let paths = [demo("conversation.mp3"), bad, missing, demo("meeting.flac")];
    window.app().apply(Command::Add(paths.iter().map(OsString::from).collect()));
    window.wait("the queue", |app| app.state.entries.len() == 3);
    assert!(
        window.app().state.notices.iter().any(|notice| notice.bad && notice.text.contains("missing.wav"))
    );
    let first = window.app().state.entries[0].id;
    window.wait("the first one", |app| matches!(app.state.entries[0].status, Status::Running { .. }));
    window.app().apply(Command::Cancel(vec![first]));
    window.finish();
    let state = &window.app().state;
    assert_eq!(state.entries[0].status, Status::Cancelled);
    assert!(matches!(&state.entries[1].status, Status::Failed(reason) if !reason.is_empty()));
    assert_eq!(state.entries[2].status, Status::Done, "a bad file does not stop the rest");
    assert!(!window.out("conversation.rttm").exists());

    // Added once more, a recording is not listed twice.
    window.app().apply(Command::Add(vec![demo("meeting.flac").into()]));
    window.wait("the notice", |app| app.state.notices.iter().any(|n| n.text.contains("already")));
    assert_eq!(window.app().state.entries.len(), 3);

    // Its own results are replaced when it runs again.
    let last = window.app().state.entries[2].id;
    window.app().apply(Command::Retry(vec![last], false));
    window.finish();
    assert_eq!(window.app().state.entries[2].problems, []);

    window.app().apply(Command::Shift(last, -2));
    assert_eq!(window.app().state.entries[0].id, last);
    window.app().apply(Command::Remove(vec![last]));
    assert_eq!(window.app().state.entries.len(), 2);
}

#[test]
fn results_of_others_are_not_replaced_unasked() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut window = Window::open(&[]);
    let out = window.folder.path().join("out");
    std::fs::create_dir_all(&out).expect("a folder");
    std::fs::write(out.join("meeting.rttm"), "mine").expect("a file");
    let copy = folder.path().join("meeting.flac");
    std::fs::copy(demo("meeting.flac"), &copy).expect("a copy");
    window.app().apply(Command::Add(vec![copy.into()]));
    window.finish();
    let entry = &window.app().state.entries[0];
    assert_eq!(entry.status, Status::Done);
    assert_eq!(entry.problems.len(), 1, "{:?}", entry.problems);
    assert_eq!(std::fs::read_to_string(out.join("meeting.rttm")).expect("it stays"), "mine");
    let id = entry.id;
    window.app().apply(Command::Retry(vec![id], true));
    window.finish();
    assert!(window.app().state.entries[0].problems.is_empty());
    assert_ne!(std::fs::read_to_string(out.join("meeting.rttm")).expect("a result"), "mine");
}
