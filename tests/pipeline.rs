//! The whole pipeline with the real models.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{LazyLock, Mutex};

use speakrs_app::app::cache::{Cache, Cached};
use speakrs_app::audio::{self, Channels, SAMPLE_RATE, SourceFacts, Waveform};
use speakrs_app::backend::Backend;
use speakrs_app::backend::cpu::CpuBackend;
use speakrs_app::clustering::SpeakerBounds;
use speakrs_app::models::ModelPack;
use speakrs_app::models::powerset;
use speakrs_app::models::windows::{Activity, DEFAULT_STEP_SAMPLES, Windows};
use speakrs_app::pipeline::batch::Diarize;
use speakrs_app::pipeline::{Diarization, Engine, Mode, Monitor, Settings, Stage, Voices};

use crate::support::fixtures::fixtures;
use crate::support::npy;

static ENGINE: LazyLock<Engine> = LazyLock::new(|| Engine::open(None, "cpu", None).expect("bundled models"));
static BACKEND: LazyLock<CpuBackend> =
    LazyLock::new(|| CpuBackend::new(&ModelPack::load(None).expect("bundled models")));

struct Quiet;

impl Monitor for Quiet {
    fn progress(&self, _: Stage, _: f32) {}
    fn cancelled(&self) -> bool {
        false
    }
}

fn settings(mode: Mode) -> Settings {
    Settings { mode, step: 1.0, speakers: SpeakerBounds::default(), voices: Voices::Mixed }
}

fn waveform(samples: Vec<f32>) -> Waveform {
    Waveform { samples, source: SourceFacts::default() }
}

fn clip(fixture: &str) -> Option<Vec<f32>> {
    let path = fixtures()?.join("parity").join(fixture).join("clip_16k.wav");
    let mut reader = hound::WavReader::open(path).expect("clip");
    Some(reader.samples::<i16>().map(|s| f32::from(s.expect("sample")) / 32_768.0).collect())
}

fn check_sound(result: &Diarization) {
    let inside = |start: f64, end: f64| 0.0 <= start && start < end && end <= result.duration;
    for list in [&result.segments, &result.exclusive] {
        assert!(list.iter().all(|s| inside(s.start, s.end) && s.speaker < result.speakers.len()));
        assert!(list.is_sorted_by(|a, b| (a.start, a.end) <= (b.start, b.end)));
    }
    assert!(result.exclusive.windows(2).all(|pair| pair[0].end <= pair[1].start + 1e-9));
    assert!(result.speakers.iter().all(|s| s.embedding.iter().all(|v| v.is_finite())));
}

#[test]
fn segmentation_from_audio_equals_the_capture() {
    for fixture in ["02_pyannote_sample", "04_three_speaker"] {
        let Some(samples) = clip(fixture) else { return };
        let windows = Windows::new(samples.len(), DEFAULT_STEP_SAMPLES);
        let activity = BACKEND
            .recording(&samples, &windows)
            .unwrap()
            .segment(&mut |_| ControlFlow::Continue(()))
            .expect("runs");
        let path = fixtures().expect("seen").join("parity").join(fixture).join("segmentations.npz");
        let expected = npy::load_npz(&path, "segmentations").to_f32();
        let actual: Vec<f32> = (0..activity.windows())
            .flat_map(|c| activity.window(c).as_flattened().to_vec())
            .map(f32::from)
            .collect();
        assert_eq!(actual.len(), expected.len());
        let frames = actual.chunks(3).zip(expected.chunks(3)).filter(|(a, b)| a != b).count();
        assert_eq!(frames, 0, "{fixture}: differing frames");
    }
}

#[test]
fn tiny_and_empty_recordings_are_done_without_error() {
    let tone = |i: usize| 0.3 * (i as f32 * 1000.0 * std::f32::consts::TAU / 16_000.0).sin();
    let noise = |i: usize| ((i as u32).wrapping_mul(2_654_435_761) >> 8) as f32 / 1e7 - 0.8;
    for mode in [Mode::Fast, Mode::Accurate] {
        for count in [0, 1, 100, 399, 400, 1_600, 80_000, 160_000, 160_001] {
            for make in [&(|_| 0.0f32) as &dyn Fn(usize) -> f32, &tone, &|i| 1e-4 * noise(i)] {
                let result = ENGINE
                    .diarize(&waveform((0..count).map(make).collect()), &settings(mode), &Quiet)
                    .unwrap_or_else(|e| panic!("{mode:?}, {count} samples: {e}"));
                check_sound(&result);
                assert_eq!(result.duration, count as f64 / f64::from(SAMPLE_RATE));
            }
        }
    }
}

#[test]
fn silence_has_no_speakers_and_says_so() {
    let result = ENGINE.diarize(&waveform(vec![0.0; 480_000]), &settings(Mode::Fast), &Quiet).expect("runs");
    assert!(result.segments.is_empty() && result.speakers.is_empty());
    assert!(!result.warnings.is_empty());
}

#[test]
fn a_known_conversation_has_its_two_speakers_in_both_modes() {
    let Some(samples) = clip("02_pyannote_sample") else { return };
    for mode in [Mode::Accurate, Mode::Fast] {
        let result = ENGINE.diarize(&waveform(samples.clone()), &settings(mode), &Quiet).expect("runs");
        check_sound(&result);
        assert_eq!(result.speakers.len(), 2, "{mode:?}");
        assert_eq!(result.settings.mode, mode);
    }
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let Some(samples) = clip("02_pyannote_sample") else { return };
    let windows = Windows::new(samples.len(), DEFAULT_STEP_SAMPLES);
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("pool");
        pool.install(|| {
            let go_on = &mut |_| ControlFlow::Continue(());
            let scores = BACKEND.log_probabilities(&samples, &windows, 0..windows.count());
            let activity = Activity::new(powerset::decode(&scores));
            let fast =
                BACKEND.recording(&samples, &windows).unwrap().embed_shared(&activity, go_on).expect("runs");
            let go_on = &mut |_| ControlFlow::Continue(());
            let short = Windows::new(16_000 * 12, DEFAULT_STEP_SAMPLES);
            let speech = Activity::new(vec![1; short.count() * 589 * 3]);
            let accurate = BACKEND
                .recording(&samples[..16_000 * 12], &short)
                .unwrap()
                .embed(&speech, go_on)
                .expect("runs");
            [scores, fast.values, accurate.values]
                .map(|v| v.into_iter().map(f32::to_bits).collect::<Vec<_>>())
        })
    };
    let one = run(1);
    assert!(run(2) == one && run(5) == one);
}

#[test]
fn speaker_bounds_are_kept_or_warned_about() {
    for fixture in ["02_pyannote_sample", "04_three_speaker"] {
        let Some(samples) = clip(fixture) else { return };
        let recording = waveform(samples[..16_000 * 20].to_vec());
        for (num, min, max) in [
            (Some(1), None, None),
            (Some(2), None, None),
            (Some(3), None, None),
            (Some(10), None, None),
            (None, Some(1), None),
            (None, Some(4), None),
            (None, None, Some(1)),
            (None, None, Some(2)),
            (None, Some(2), Some(3)),
            (None, Some(30), Some(40)),
        ] {
            let speakers = SpeakerBounds { num, min, max };
            let result = ENGINE
                .diarize(&recording, &Settings { speakers, ..settings(Mode::Fast) }, &Quiet)
                .expect("runs");
            check_sound(&result);
            let found = result.speakers.len();
            let most = num.or(max).unwrap_or(usize::MAX);
            let least = num.or(min).unwrap_or(0);
            assert!(found <= most, "{fixture}, {speakers:?}: {found}");
            assert!(found >= least || !result.warnings.is_empty(), "{fixture}, {speakers:?}: {found}");
        }
    }
}

#[test]
fn other_steps_work_and_impossible_ones_are_refused() {
    let Some(samples) = clip("02_pyannote_sample") else { return };
    let recording = waveform(samples);
    for step in [0.37, 2.0, 10.0, 1.000_06] {
        for mode in [Mode::Fast, Mode::Accurate] {
            let short = waveform(recording.samples[..16_000 * 13 + 7].to_vec());
            let result = ENGINE.diarize(&short, &Settings { step, ..settings(mode) }, &Quiet);
            check_sound(&result.unwrap_or_else(|e| panic!("{step} s: {e}")));
        }
    }
    for step in [0.0, -1.0, 10.1, f64::NAN, f64::INFINITY] {
        assert!(ENGINE.diarize(&recording, &Settings { step, ..settings(Mode::Fast) }, &Quiet).is_err());
    }
}

#[test]
fn cancelling_stops_at_once() {
    struct Stop;
    impl Monitor for Stop {
        fn progress(&self, _: Stage, _: f32) {}
        fn cancelled(&self) -> bool {
            true
        }
    }
    assert!(ENGINE.diarize(&waveform(vec![0.1; 16_000 * 600]), &settings(Mode::Fast), &Stop).is_err());
}

#[test]
fn the_trace_shows_every_layer_and_ends_in_the_result() {
    let Some(samples) = clip("02_pyannote_sample") else { return };
    let window = &samples[..160_000];
    let seen = Mutex::new(Vec::new());
    BACKEND
        .trace(window, &|name, shape, values| {
            assert_eq!(shape.iter().product::<usize>(), values.len(), "{name}");
            seen.lock().expect("no panic").push((name.to_owned(), values.to_vec()));
        })
        .expect("runs");
    let seen = seen.into_inner().expect("no panic");
    for name in [
        "sinc",
        "conv1",
        "conv2",
        "lstm3.reverse",
        "linear1",
        "features",
        "stem",
        "block0.conv1",
        "block15",
        "trunk",
    ] {
        assert!(seen.iter().any(|(n, _)| n == name), "{name} is missing");
    }
    let scores = BACKEND.log_probabilities(window, &Windows::new(160_000, 160_000), 0..1);
    assert!(seen.iter().any(|(name, values)| name == "log_probabilities" && *values == scores));
}

/// Panics if asked for anything: the networks must not run.
struct NoNetworks;

impl Monitor for NoNetworks {
    fn progress(&self, stage: Stage, done: f32) {
        assert!(!matches!(stage, Stage::Segmentation | Stage::Embedding) || done == 1.0, "{stage:?} runs");
    }
    fn cancelled(&self) -> bool {
        false
    }
}

#[test]
fn a_cached_recording_is_clustered_without_the_networks_and_gives_the_same() {
    let folder = tempfile::tempdir().expect("folder");
    let cache = Cache::open(folder.path()).expect("writable");
    let cached = Cached { engine: &ENGINE, cache: &cache };
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/demo/meeting.flac");
    let go_on = &mut |_| ControlFlow::Continue(());
    let waveform = audio::decode(&demo, Channels::Mix, go_on).expect("a bundled recording");
    let files = || std::fs::read_dir(folder.path()).expect("folder").count();
    let strip = |mut d: Diarization| {
        d.timings.clear();
        d
    };
    for mode in [Mode::Fast, Mode::Accurate] {
        let settings =
            Settings { mode, step: 2.0, speakers: SpeakerBounds::default(), voices: Voices::Mixed };
        let fresh = strip(ENGINE.diarize(&waveform, &settings, &Quiet).expect("runs"));
        assert_eq!(strip(cached.diarize(&waveform, &settings, &Quiet).expect("runs")), fresh);
        assert_eq!(strip(cached.diarize(&waveform, &settings, &NoNetworks).expect("runs")), fresh);
        let three = SpeakerBounds { num: Some(3), ..SpeakerBounds::default() };
        let three = Settings { speakers: three, ..settings };
        let again = strip(cached.diarize(&waveform, &three, &NoNetworks).expect("runs"));
        assert_eq!(again, strip(ENGINE.diarize(&waveform, &three, &Quiet).expect("runs")));
        assert!(again.speakers.len() == 3 || !again.warnings.is_empty());
    }
    assert_eq!(files(), 2);

    // Another step, mode or sample is another file.
    let settings =
        Settings { mode: Mode::Fast, step: 2.0, speakers: SpeakerBounds::default(), voices: Voices::Mixed };
    let path = cache.path(&ENGINE, &waveform, &settings);
    let other = Settings { step: 1.0, ..settings };
    assert_ne!(cache.path(&ENGINE, &waveform, &other), path);
    let mut changed = waveform.clone();
    changed.samples[77] += 1e-6;
    assert_ne!(cache.path(&ENGINE, &changed, &settings), path);

    // Damage of any kind is noticed; the recording is computed again and the file replaced.
    let windows = settings.windows(waveform.samples.len()).expect("a valid step");
    let good = std::fs::read(&path).expect("the file");
    assert!(cache.load(&path, &windows).is_some());
    let mut flipped = good.clone();
    flipped[good.len() / 2] ^= 1;
    let longer = [good.as_slice(), &[0]].concat();
    let cases =
        [Vec::new(), b"x".to_vec(), good[..good.len() - 1].to_vec(), good[..100].to_vec(), flipped, longer];
    for bytes in cases {
        std::fs::write(&path, bytes).expect("written");
        assert!(cache.load(&path, &windows).is_none());
    }
    let fresh = strip(ENGINE.diarize(&waveform, &settings, &Quiet).expect("runs"));
    assert_eq!(strip(cached.diarize(&waveform, &settings, &Quiet).expect("runs")), fresh);
    assert_eq!(std::fs::read(&path).expect("the file"), good);
    // A file of another recording under this name does not fit.
    assert!(cache.load(&path, &Windows::new(waveform.samples.len() + 1, windows.step())).is_none());
}
