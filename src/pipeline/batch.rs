//! Many recordings: decoding runs ahead of inference, results are handed over as they finish.
//! Depends on `audio` and on `diarize()`; both come in through traits, so that tests can stand in for them.
//!
//! ```text
//! decoders (limits.decoders threads) ─► Shelf ─► engines (a thread each) ─► finished() in the calling thread
//! ```
//!
//! The shelf holds back the decoders: it counts recordings and samples. Several engines, such as one for each
//! device, may take from it. An engine whose device fails puts its recording back for the others and stops. In the place
//! of the last one the spare engine goes on; without a spare the failure is reported for each recording.

use std::any::Any;
use std::collections::VecDeque;
use std::ffi::OsStr;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use super::{Diarization, Engine, Monitor, PipelineError, Settings, Stage};
use crate::audio::{self, AudioError, Channels, SAMPLE_RATE, SourceFacts, Waveform};
use crate::backend::BackendError;

/// Turns a file into samples.
pub trait Decode: Sync {
    /// See [`audio::decode`].
    ///
    /// # Errors
    /// If the file cannot be decoded, or `progress` stops the decoding.
    fn decode(
        &self,
        path: &Path,
        progress: &mut dyn FnMut(f32) -> ControlFlow<()>,
    ) -> Result<Waveform, AudioError>;
}

/// Turns samples into who spoke when.
pub trait Diarize: Sync {
    /// See [`Engine::diarize`].
    ///
    /// # Errors
    /// See [`PipelineError`].
    fn diarize(
        &self,
        waveform: &Waveform,
        settings: &Settings,
        monitor: &dyn Monitor,
    ) -> Result<Diarization, PipelineError>;
}

impl Diarize for Engine {
    fn diarize(
        &self,
        waveform: &Waveform,
        settings: &Settings,
        monitor: &dyn Monitor,
    ) -> Result<Diarization, PipelineError> {
        Engine::diarize(self, waveform, settings, monitor)
    }
}

/// Makes the engine that goes on when all devices have failed, or tells why there is none.
pub type Spare<'a> = dyn Fn() -> Result<Box<dyn Diarize>, String> + Sync + 'a;

/// What the recordings of a batch are diarized by.
#[derive(Clone, Copy)]
pub struct Engines<'a> {
    /// A thread each. The same engine may be named several times, to have as many recordings in work.
    pub working: &'a [&'a dyn Diarize],
    /// Called once at most, after the last of them has failed.
    pub spare: Option<&'a Spare<'a>>,
}

impl<'a> From<&'a [&'a dyn Diarize]> for Engines<'a> {
    fn from(working: &'a [&'a dyn Diarize]) -> Self {
        Self { working, spare: None }
    }
}

/// Decodes with [`audio::decode`], all channels mixed.
#[derive(Debug, Clone, Copy)]
pub struct AudioFiles;

impl Decode for AudioFiles {
    fn decode(
        &self,
        path: &Path,
        progress: &mut dyn FnMut(f32) -> ControlFlow<()>,
    ) -> Result<Waveform, AudioError> {
        audio::decode(path, Channels::Mix, progress)
    }
}

/// A recording of a batch.
#[derive(Debug, Clone, Copy)]
pub struct Item<'a> {
    /// Its file.
    pub path: &'a Path,
    /// Size of the file, from which its length is guessed.
    pub bytes: u64,
}

impl Item<'_> {
    /// Guess of the decoded length. It decides only how many recordings are decoded at once, and is replaced
    /// by the true length afterwards. A sample at 16 kHz takes two bytes of 16-bit mono, one of FLAC, and half
    /// a byte of speech at 64 kbit/s; richer recordings are guessed too long, which costs some read-ahead.
    fn guess(&self) -> u64 {
        let extension = self.path.extension().map(|extension| extension.to_ascii_lowercase());
        match extension.as_deref().and_then(OsStr::to_str) {
            Some("wav" | "wave" | "aif" | "aiff" | "aifc" | "au" | "caf" | "rf64" | "w64") => self.bytes / 2,
            Some("flac") => self.bytes,
            _ => self.bytes.saturating_mul(2),
        }
    }
}

/// How far decoding may run ahead.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Number of decoding threads.
    pub decoders: usize,
    /// Samples held in memory at once, over all recordings. A recording that is longer is worked on alone.
    pub samples: u64,
}

impl Limits {
    /// `decoders` threads and four hours of audio, which take 0.9 GB.
    pub fn new(decoders: usize) -> Self {
        Self { decoders, samples: 4 * 3600 * u64::from(SAMPLE_RATE) }
    }
}

/// Receives progress of a batch and may stop it. Called from any thread.
pub trait Observer: Sync {
    /// Recording `item` has done the share `done` (0 to 1) of `stage`.
    fn progress(&self, item: usize, stage: Stage, done: f32);
    /// Whether the batch should stop as soon as possible.
    fn cancelled(&self) -> bool;
}

/// What came out for one recording.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Who spoke when.
    pub diarization: Diarization,
    /// What it was decoded from.
    pub source: SourceFacts,
}

/// Why nothing came out for one recording.
#[derive(Debug, thiserror::Error)]
pub enum ItemError {
    /// It could not be decoded.
    #[error(transparent)]
    Audio(AudioError),
    /// It could not be diarized.
    #[error(transparent)]
    Pipeline(PipelineError),
    /// A defect of the program; the other recordings are not affected.
    #[error("internal error: {0}")]
    Panic(String),
    /// The batch was stopped before it was done.
    #[error("cancelled")]
    Cancelled,
}

/// Works on all `items` and calls `finished` in this thread, exactly once for each, in the order they finish.
///
/// A recording that fails does not affect the others, and a result does not depend on the order or the limits.
pub fn run(
    items: &[Item],
    decoder: &dyn Decode,
    engines: Engines,
    settings: &Settings,
    limits: &Limits,
    observer: &dyn Observer,
    finished: &mut dyn FnMut(usize, Result<Outcome, ItemError>),
) {
    let shelf = Shelf::new(items, limits, engines.working.len(), observer);
    let (sender, receiver) = mpsc::channel();
    let mut missing = vec![true; items.len()];
    thread::scope(|scope| {
        for _ in 0..limits.decoders.clamp(1, items.len().max(1)) {
            let sender = sender.clone();
            let shelf = &shelf;
            scope.spawn(move || decode_loop(shelf, decoder, observer, &sender));
        }
        for &engine in engines.working {
            let sender = sender.clone();
            let shelf = &shelf;
            scope.spawn(move || diarize_loop(shelf, engine, engines.spare, settings, observer, &sender));
        }
        drop(sender);
        for (item, result) in receiver {
            missing[item] = false;
            finished(item, result);
        }
    });
    for (item, _) in missing.iter().enumerate().filter(|(_, missing)| **missing) {
        finished(item, Err(ItemError::Cancelled));
    }
}

type Results = mpsc::Sender<(usize, Result<Outcome, ItemError>)>;

fn decode_loop(shelf: &Shelf, decoder: &dyn Decode, observer: &dyn Observer, results: &Results) {
    while let Some(claim) = shelf.claim() {
        let begin = Instant::now();
        let mut progress = |done| {
            observer.progress(claim.item, Stage::Decode, done);
            if observer.cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let decoded = guarded(|| {
            decoder.decode(shelf.items[claim.item].path, &mut progress).map_err(|error| match error {
                AudioError::Cancelled => ItemError::Cancelled,
                error => ItemError::Audio(error),
            })
        });
        match decoded {
            Ok(waveform) => shelf.deliver(&claim, waveform, begin.elapsed()),
            Err(error) => {
                shelf.give_up(&claim);
                let _ = results.send((claim.item, Err(error)));
            }
        }
    }
}

fn diarize_loop(
    shelf: &Shelf,
    engine: &dyn Diarize,
    mut spare: Option<&Spare>,
    settings: &Settings,
    observer: &dyn Observer,
    results: &Results,
) {
    let mut substitute: Option<(Box<dyn Diarize>, String)> = None;
    while let Some(Decoded { item, waveform, decoding }) = shelf.take() {
        let monitor = ItemMonitor { item, observer };
        let mut device_failure = None;
        let engine = substitute.as_ref().map_or(engine, |(engine, _)| &**engine);
        let result = guarded(|| {
            engine.diarize(&waveform, settings, &monitor).map_err(|error| match error {
                PipelineError::Backend(BackendError::Failed { .. }) => {
                    device_failure = Some(error.to_string());
                    ItemError::Pipeline(error)
                }
                PipelineError::Cancelled | PipelineError::Backend(BackendError::Cancelled) => {
                    ItemError::Cancelled
                }
                error => ItemError::Pipeline(error),
            })
        });
        if let Some(reason) = device_failure {
            if shelf.retires() {
                tracing::warn!("{reason}; its recordings go to the other devices");
                return shelf.put_back(Decoded { item, waveform, decoding });
            }
            match spare.take().map(|open| open()) {
                Some(Ok(engine)) => {
                    tracing::warn!("{reason}; the CPU goes on");
                    substitute = Some((engine, format!("computed on the CPU, because {reason}")));
                    shelf.put_back(Decoded { item, waveform, decoding });
                    continue;
                }
                Some(Err(error)) => tracing::warn!("{reason}; the CPU cannot go on: {error}"),
                None => {}
            }
        }
        let Waveform { samples, source } = waveform;
        let held = samples.len() as u64;
        drop(samples);
        shelf.release(held);
        let outcome = result.map(|mut diarization| {
            diarization.timings.insert(0, (Stage::Decode, decoding.as_secs_f64()));
            diarization.warnings.extend(substitute.iter().map(|(_, note)| note.clone()));
            Outcome { diarization, source }
        });
        let _ = results.send((item, outcome));
    }
}

/// Runs the work on one recording; a panic becomes its error. Nothing that the work can leave half-changed
/// outlives it: the waveform is dropped, and the engine keeps no state from one recording to the next.
fn guarded<T>(work: impl FnOnce() -> Result<T, ItemError>) -> Result<T, ItemError> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(ItemError::Panic(panic_text(&*panic))))
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "unknown".to_owned())
}

struct ItemMonitor<'a> {
    item: usize,
    observer: &'a dyn Observer,
}

impl Monitor for ItemMonitor<'_> {
    fn progress(&self, stage: Stage, done: f32) {
        self.observer.progress(self.item, stage, done);
    }
    fn cancelled(&self) -> bool {
        self.observer.cancelled()
    }
}

/// What decoders put down and engines take.
struct Shelf<'a> {
    items: &'a [Item<'a>],
    limits: Limits,
    observer: &'a dyn Observer,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// The first item that no decoder has claimed.
    next: usize,
    /// Number of items being decoded.
    decoding: usize,
    /// Engines that have not failed.
    engines: usize,
    /// Items in an engine, which may come back.
    working: usize,
    /// Items waiting for an engine.
    ready: VecDeque<Decoded>,
    /// Samples in memory: guessed ones of items being decoded, true ones of items waiting or in an engine.
    held: u64,
}

/// The right to decode an item, with the samples reserved for it.
struct Claim {
    item: usize,
    reserved: u64,
}

struct Decoded {
    item: usize,
    waveform: Waveform,
    decoding: Duration,
}

/// How often a waiting thread looks for a cancellation, which nothing signals to it.
const PATIENCE: Duration = Duration::from_millis(50);

impl<'a> Shelf<'a> {
    fn new(items: &'a [Item<'a>], limits: &Limits, engines: usize, observer: &'a dyn Observer) -> Self {
        let state = Mutex::new(State { engines, ..State::default() });
        Self { items, limits: *limits, observer, state, changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `ready` gives an answer; `None` if the batch is cancelled.
    fn wait<T>(&self, mut ready: impl FnMut(&mut State) -> ControlFlow<Option<T>>) -> Option<T> {
        let mut state = self.lock();
        loop {
            if self.observer.cancelled() {
                return None;
            }
            if let ControlFlow::Break(answer) = ready(&mut state) {
                self.changed.notify_all();
                return answer;
            }
            state = self.changed.wait_timeout(state, PATIENCE).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The next item to decode, once there is room for it; `None` if none is left.
    fn claim(&self) -> Option<Claim> {
        self.wait(|state| {
            let Some(item) = self.items.get(state.next) else { return ControlFlow::Break(None) };
            let reserved = item.guess();
            let ahead = state.decoding + state.ready.len();
            let fits = ahead < 2 * self.limits.decoders
                && state.held.saturating_add(reserved) <= self.limits.samples;
            if !fits && (state.held > 0 || ahead > 0) {
                return ControlFlow::Continue(());
            }
            let claim = Claim { item: state.next, reserved };
            state.next += 1;
            state.decoding += 1;
            state.held += reserved;
            ControlFlow::Break(Some(claim))
        })
    }

    fn deliver(&self, claim: &Claim, waveform: Waveform, decoding: Duration) {
        let mut state = self.lock();
        state.held = state.held - claim.reserved + waveform.samples.len() as u64;
        state.decoding -= 1;
        state.ready.push_back(Decoded { item: claim.item, waveform, decoding });
        self.changed.notify_all();
    }

    fn give_up(&self, claim: &Claim) {
        let mut state = self.lock();
        state.held -= claim.reserved;
        state.decoding -= 1;
        self.changed.notify_all();
    }

    /// The next item to diarize; `None` if none will come any more.
    fn take(&self) -> Option<Decoded> {
        self.wait(|state| match state.ready.pop_front() {
            Some(decoded) => {
                state.working += 1;
                ControlFlow::Break(Some(decoded))
            }
            None if state.next == self.items.len() && state.decoding == 0 && state.working == 0 => {
                ControlFlow::Break(None)
            }
            None => ControlFlow::Continue(()),
        })
    }

    /// Whether an engine whose device failed may stop because there are others.
    fn retires(&self) -> bool {
        let mut state = self.lock();
        let others = state.engines > 1;
        state.engines -= usize::from(others);
        others
    }

    /// Gives an item back for another engine.
    fn put_back(&self, decoded: Decoded) {
        let mut state = self.lock();
        state.working -= 1;
        state.ready.push_front(decoded);
        self.changed.notify_all();
    }

    /// Forgets an item that an engine is done with.
    fn release(&self, samples: u64) {
        let mut state = self.lock();
        state.held -= samples;
        state.working -= 1;
        self.changed.notify_all();
    }
}
