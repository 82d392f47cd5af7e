//! Batches: limits, order, failures, cancellation.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use speakrs_app::audio::{AudioError, Channels, SourceFacts, Waveform};
use speakrs_app::backend::BackendError;
use speakrs_app::pipeline::batch::{
    Decode, Diarize, Engines, Feed, Item, ItemError, Limits, List, Next, Observer, Outcome, run,
};
use speakrs_app::pipeline::{Diarization, Monitor, PipelineError, Settings, Stage, Voices};
use speakrs_app::timeline::Segment;

use super::fakes::{SETTINGS, diarization};

/// Decodes `LENGTH` in the name to that many samples and keeps count of what is in memory.
#[derive(Default)]
struct Counted {
    held: AtomicU64,
    most: AtomicU64,
    decoding: AtomicUsize,
    most_decoding: AtomicUsize,
}

impl Decode for Counted {
    fn decode(
        &self,
        path: &Path,
        _: Channels,
        _: &mut dyn FnMut(f32) -> ControlFlow<()>,
    ) -> Result<Waveform, AudioError> {
        let length: u64 = path.to_str().unwrap().parse().unwrap();
        let decoding = self.decoding.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_decoding.fetch_max(decoding, Ordering::SeqCst);
        let held = self.held.fetch_add(length, Ordering::SeqCst) + length;
        self.most.fetch_max(held, Ordering::SeqCst);
        std::thread::sleep(Duration::from_millis(1));
        self.decoding.fetch_sub(1, Ordering::SeqCst);
        Ok(Waveform { samples: vec![0.0; length as usize], source: SourceFacts::default() })
    }
}

impl Diarize for Counted {
    fn diarize(
        &self,
        waveform: &Waveform,
        settings: &Settings,
        _: &dyn Monitor,
    ) -> Result<Diarization, PipelineError> {
        std::thread::sleep(Duration::from_millis(2));
        self.held.fetch_sub(waveform.samples.len() as u64, Ordering::SeqCst);
        Ok(diarization(Vec::new(), *settings))
    }
}

#[derive(Default)]
struct Watch {
    stop: AtomicBool,
}

impl Observer for Watch {
    fn progress(&self, _: usize, _: Stage, _: f32) {}
    fn stopped(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }
}

/// Runs a batch and returns the result of each item, which must come exactly once.
fn results(
    paths: &[PathBuf],
    decoder: &dyn Decode,
    engines: Engines,
    limits: Limits,
    watch: &Watch,
) -> Vec<Result<Outcome, ItemError>> {
    let bytes = |path: &Path| path.to_str().unwrap().parse::<u64>().map_or(1, |length| length / 2);
    let item = |(id, path): (usize, &PathBuf)| Item {
        id,
        path: path.clone(),
        bytes: bytes(path),
        settings: SETTINGS,
    };
    let feed = List::new(paths.iter().enumerate().map(item).collect());
    let mut results: Vec<_> = paths.iter().map(|_| None).collect();
    run(&feed, decoder, engines, &limits, watch, &mut |item, result| {
        assert!(results[item].replace(result).is_none(), "item {item} came twice");
    });
    results.into_iter().map(|result| result.expect("every item is reported")).collect()
}

#[test]
fn memory_and_decoders_stay_within_their_limits() {
    let lengths = [100, 40, 60, 20, 20, 20, 20, 80, 100, 500, 10, 10, 10, 10, 100];
    let paths: Vec<PathBuf> = lengths.iter().map(|length| length.to_string().into()).collect();
    for (decoders, engines) in [(1, 1), (3, 1), (3, 2)] {
        let fake = Counted::default();
        let engines = vec![&fake as &dyn Diarize; engines];
        let limits = Limits { decoders, samples: 100 };
        let results = results(&paths, &fake, engines.as_slice().into(), limits, &Watch::default());
        assert!(results.iter().all(Result::is_ok));
        assert_eq!(fake.most.load(Ordering::SeqCst), 500, "the one that is longer than the limit goes alone");
        assert!(fake.most_decoding.load(Ordering::SeqCst) <= decoders);
        assert_eq!(fake.held.load(Ordering::SeqCst), 0);
    }
}

#[test]
fn waiting_recordings_are_bounded_in_number() {
    let paths = vec![PathBuf::from("2"); 40];
    let fake = Counted::default();
    results(
        &paths,
        &fake,
        [&fake as &dyn Diarize].as_slice().into(),
        Limits { decoders: 2, samples: 1000 },
        &Watch::default(),
    );
    let most = fake.most.load(Ordering::SeqCst) / 2;
    assert!(most <= 5, "{most} recordings in memory: 4 read ahead and 1 in the engine");
}

/// A device that does a number of recordings and then fails for good.
struct Failing {
    left: AtomicUsize,
    name: &'static str,
}

impl Diarize for Failing {
    fn diarize(
        &self,
        _: &Waveform,
        settings: &Settings,
        _: &dyn Monitor,
    ) -> Result<Diarization, PipelineError> {
        std::thread::sleep(Duration::from_millis(2));
        let take = |left: usize| left.checked_sub(1);
        if self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take).is_err() {
            let (device, reason) = (self.name.into(), "it fell off the bus".into());
            return Err(PipelineError::Backend(BackendError::Failed { device, reason }));
        }
        let mut done = diarization(Vec::new(), *settings);
        done.backend.device = self.name.into();
        Ok(done)
    }
}

#[test]
fn recordings_of_a_failing_device_go_to_the_others() {
    let paths = vec![PathBuf::from("2"); 30];
    let decoder = Counted::default();
    let run = |lives: [usize; 2], slots: usize| {
        let devices = [("cuda:0", lives[0]), ("cuda:1", lives[1])]
            .map(|(name, left)| Failing { left: AtomicUsize::new(left), name });
        let engines: Vec<&dyn Diarize> =
            devices.iter().flat_map(|device| std::iter::repeat_n(device as &dyn Diarize, slots)).collect();
        let results = results(&paths, &decoder, engines.as_slice().into(), Limits::new(2), &Watch::default());
        let by = |name: &str| {
            results.iter().flatten().filter(|outcome| outcome.diarization.backend.device == name).count()
        };
        (by("cuda:0"), by("cuda:1"), results.iter().filter(|result| result.is_err()).count())
    };
    for slots in [1, 3] {
        assert_eq!(run([3, 1000], slots), (3, 27, 0), "the second does the rest");
        assert_eq!(run([0, 1000], slots), (0, 30, 0));
        // Uneven devices share the work, and the last recording is not lost when its device fails with it.
        let (first, second, failed) = run([29, 1000], slots);
        assert!(first > 0 && second > 0 && first + second == 30 && failed == 0, "{first} {second} {failed}");
        // Where none is left every recording is reported once.
        assert_eq!(run([4, 5], slots), (4, 5, 21));
    }
}

/// The CPU goes on with the recording in whose middle the last GPU failed, and its results say so.
#[test]
fn the_spare_engine_goes_on_when_all_devices_have_failed() {
    let paths = vec![PathBuf::from("2"); 30];
    let decoder = Counted::default();
    for slots in [1, 3] {
        let gpu = Failing { left: AtomicUsize::new(7), name: "cuda:0" };
        let opened = AtomicUsize::new(0);
        let spare = || {
            opened.fetch_add(1, Ordering::SeqCst);
            Ok(Box::new(Failing { left: AtomicUsize::new(1000), name: "cpu" }) as Box<dyn Diarize>)
        };
        let working = vec![&gpu as &dyn Diarize; slots];
        let engines = Engines { working: &working, spare: Some(&spare) };
        let results = results(&paths, &decoder, engines, Limits::new(2), &Watch::default());
        assert_eq!(opened.load(Ordering::SeqCst), 1);
        let done = results.iter().map(|result| &result.as_ref().unwrap().diarization);
        let (gpu, cpu): (Vec<&Diarization>, Vec<_>) = done.partition(|done| done.backend.device == "cuda:0");
        assert_eq!((gpu.len(), cpu.len()), (7, 23));
        assert!(gpu.iter().all(|done| done.warnings.is_empty()));
        assert!(cpu.iter().all(|done| done.warnings.join(";").contains("on the CPU, because")), "{cpu:?}");

        let gpu = Failing { left: AtomicUsize::new(7), name: "cuda:0" };
        let working = vec![&gpu as &dyn Diarize; slots];
        let none = || Err("there are no models".to_owned());
        let engines = Engines { working: &working, spare: Some(&none) };
        let results = self::results(&paths, &decoder, engines, Limits::new(2), &Watch::default());
        assert_eq!(results.iter().filter(|result| result.is_err()).count(), 23);
    }
}

#[test]
fn an_empty_batch_ends() {
    let fake = Counted::default();
    assert!(
        results(&[], &fake, [&fake as &dyn Diarize].as_slice().into(), Limits::new(2), &Watch::default())
            .is_empty()
    );
}

/// An engine that works until it is cancelled, and asks for that itself.
struct Endless<'a>(&'a Watch);

impl Diarize for Endless<'_> {
    fn diarize(
        &self,
        _: &Waveform,
        _: &Settings,
        monitor: &dyn Monitor,
    ) -> Result<Diarization, PipelineError> {
        self.0.stop.store(true, Ordering::SeqCst);
        while !monitor.cancelled() {
            std::thread::sleep(Duration::from_millis(1));
        }
        Err(PipelineError::Cancelled)
    }
}

#[test]
fn cancelling_ends_the_batch_and_accounts_for_every_recording() {
    let paths = vec![PathBuf::from("100"); 30];
    let watch = Watch::default();
    let results = results(
        &paths,
        &Counted::default(),
        [&Endless(&watch) as &dyn Diarize].as_slice().into(),
        Limits::new(2),
        &watch,
    );
    assert!(results.iter().all(|result| matches!(result, Err(ItemError::Cancelled))));
}

/// A queue that others change while the batch runs; the batch ends with the command to do so.
#[derive(Default)]
struct Queue {
    waiting: Mutex<VecDeque<Item>>,
    ended: AtomicBool,
}

impl Queue {
    fn push(&self, id: usize, length: usize) {
        let path = length.to_string().into();
        self.waiting.lock().unwrap().push_back(Item {
            id,
            path,
            bytes: length as u64 / 2,
            settings: SETTINGS,
        });
    }
}

impl Feed for Queue {
    fn next(&self) -> Next {
        let ended = self.ended.load(Ordering::SeqCst);
        match self.waiting.lock().unwrap().pop_front() {
            Some(item) => Next::Item(item),
            None if ended => Next::End,
            None => Next::Later,
        }
    }
}

/// An engine that works on the recording of length 7 until that one is cancelled.
struct Patient;

impl Diarize for Patient {
    fn diarize(
        &self,
        waveform: &Waveform,
        settings: &Settings,
        monitor: &dyn Monitor,
    ) -> Result<Diarization, PipelineError> {
        while waveform.samples.len() == 7 {
            if monitor.cancelled() {
                return Err(PipelineError::Cancelled);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(diarization(Vec::new(), *settings))
    }
}

struct CancelOne(AtomicUsize);

impl Observer for CancelOne {
    fn progress(&self, _: usize, _: Stage, _: f32) {}
    fn stopped(&self) -> bool {
        false
    }
    fn cancelled(&self, item: usize) -> bool {
        self.0.load(Ordering::SeqCst) == item
    }
}

#[test]
fn recordings_may_join_during_the_run_and_one_may_be_cancelled() {
    let queue = Queue::default();
    let cancel = CancelOne(AtomicUsize::new(usize::MAX));
    queue.push(3, 5);
    let mut results = Vec::new();
    run(
        &queue,
        &Counted::default(),
        [&Patient as &dyn Diarize].as_slice().into(),
        &Limits::new(2),
        &cancel,
        &mut |item, result| {
            results.push((item, result.map(drop).map_err(|error| error.to_string())));
            match item {
                3 => {
                    queue.push(9, 7);
                    queue.push(4, 6);
                    cancel.0.store(9, Ordering::SeqCst);
                }
                4 => queue.ended.store(true, Ordering::SeqCst),
                _ => {}
            }
        },
    );
    results.sort_by_key(|(item, _)| *item);
    assert_eq!(results, [(3, Ok(())), (4, Ok(())), (9, Err("cancelled".into()))]);
}

/// Channel 0 is silent after its first half, channel 1 before.
struct Call;

impl Decode for Call {
    fn decode(
        &self,
        _: &Path,
        channels: Channels,
        _: &mut dyn FnMut(f32) -> ControlFlow<()>,
    ) -> Result<Waveform, AudioError> {
        let Channels::One(channel) = channels else { panic!("{channels:?}") };
        let source = SourceFacts { channels: 2, ..SourceFacts::default() };
        Ok(Waveform { samples: vec![f32::from(channel); 10], source })
    }
}

impl Diarize for Call {
    fn diarize(
        &self,
        waveform: &Waveform,
        settings: &Settings,
        _: &dyn Monitor,
    ) -> Result<Diarization, PipelineError> {
        assert_eq!(settings.speakers.num, Some(1));
        let turns: &[(f64, f64)] =
            if waveform.samples[0] == 0.0 { &[(0.0, 2.0), (3.0, 4.0)] } else { &[(1.5, 2.5)] };
        let turn = |&(start, end): &(f64, f64)| Segment { start, end, speaker: 0 };
        Ok(diarization(turns.iter().map(turn).collect(), *settings))
    }
}

#[test]
fn channels_can_be_the_speakers() {
    let settings = Settings { voices: Voices::Channels, ..SETTINGS };
    let item = Item { id: 0, path: "call".into(), bytes: 1, settings };
    let mut found = None;
    run(
        &List::new(vec![item]),
        &Call,
        [&Call as &dyn Diarize].as_slice().into(),
        &Limits::new(1),
        &Watch::default(),
        &mut |_, result| found = Some(result.unwrap().diarization),
    );
    let found = found.unwrap();
    let turns = |segments: &[Segment]| -> Vec<(f64, f64, String)> {
        segments.iter().map(|s| (s.start, s.end, found.speakers[s.speaker].label.clone())).collect()
    };
    let (left, right) = ("CHANNEL_1".to_owned(), "CHANNEL_2".to_owned());
    let all = [(0.0, 2.0, left.clone()), (1.5, 2.5, right.clone()), (3.0, 4.0, left.clone())];
    assert_eq!(turns(&found.segments), all);
    assert_eq!(turns(&found.exclusive), [(0.0, 2.0, left.clone()), (2.0, 2.5, right), (3.0, 4.0, left)]);
    assert_eq!(found.settings, settings);
}
