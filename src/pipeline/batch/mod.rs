//! Many recordings: decoding runs ahead of inference, results are handed over as they finish.
//! Depends on `audio` and on `diarize()`; both come in through traits, so that tests can stand in for them.
//!
//! ```text
//! Feed ─► decoders (limits.decoders threads) ─► Shelf ─► engines (a thread each) ─► finished() in the calling thread
//! ```
//!
//! The feed may be a list or a queue that grows, shrinks and changes its order meanwhile. The shelf holds back the decoders: it counts recordings and samples. Several engines, such as one for each
//! device, may take from it. An engine whose device fails puts its recording back for the others and stops. In the place
//! of the last one the spare engine goes on; without a spare the failure is reported for each recording.

mod shelf;
mod split;

use std::any::Any;
use std::ffi::OsStr;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Instant;

use shelf::{Decoded, Shelf};

use super::{Diarization, Engine, Monitor, PipelineError, Settings, Stage, Voices};
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
        channels: Channels,
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

/// Decodes with [`audio::decode`].
#[derive(Debug, Clone, Copy)]
pub struct AudioFiles;

impl Decode for AudioFiles {
    fn decode(
        &self,
        path: &Path,
        channels: Channels,
        progress: &mut dyn FnMut(f32) -> ControlFlow<()>,
    ) -> Result<Waveform, AudioError> {
        audio::decode(path, channels, progress)
    }
}

/// A recording of a batch.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    /// What the caller knows it by.
    pub id: usize,
    /// Its file.
    pub path: PathBuf,
    /// Size of the file, from which its length is guessed.
    pub bytes: u64,
    /// How it is to be diarized.
    pub settings: Settings,
}

/// What a [`Feed`] has.
#[derive(Debug)]
pub enum Next {
    /// The next recording.
    Item(Item),
    /// None now; one may come.
    Later,
    /// None any more.
    End,
}

/// Where the recordings of a batch come from.
pub trait Feed: Sync {
    /// Takes the next recording out. Called from any thread, asked again and again after [`Next::Later`]; never blocks.
    fn next(&self) -> Next;
}

/// A list, from its first recording to its last.
pub struct List(Mutex<std::vec::IntoIter<Item>>);

impl List {
    /// A list of `items`.
    pub fn new(items: Vec<Item>) -> Self {
        Self(Mutex::new(items.into_iter()))
    }
}

impl Feed for List {
    fn next(&self) -> Next {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).next().map_or(Next::End, Next::Item)
    }
}

impl Item {
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
    fn stopped(&self) -> bool;
    /// Whether recording `item` should be given up as soon as possible.
    fn cancelled(&self, item: usize) -> bool {
        let _ = item;
        self.stopped()
    }
    /// See [`Monitor::kept`]; called for every channel where channels are told apart.
    fn kept(&self, item: usize, inference: &Path) {
        let _ = (item, inference);
    }
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

/// Works on all recordings of `feed` and calls `finished` in this thread, exactly once for each, in the order they finish.
///
/// A recording that fails does not affect the others, and a result does not depend on the order or the limits.
pub fn run(
    feed: &dyn Feed,
    decoder: &dyn Decode,
    engines: Engines,
    limits: &Limits,
    observer: &dyn Observer,
    finished: &mut dyn FnMut(usize, Result<Outcome, ItemError>),
) {
    let shelf = Shelf::new(feed, limits, engines.working.len(), observer);
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..limits.decoders.max(1) {
            let sender = sender.clone();
            let shelf = &shelf;
            scope.spawn(move || decode_loop(shelf, decoder, observer, &sender));
        }
        for &engine in engines.working {
            let sender = sender.clone();
            let shelf = &shelf;
            scope.spawn(move || diarize_loop(shelf, engine, engines.spare, observer, &sender));
        }
        drop(sender);
        for (item, result) in receiver {
            shelf.finished(item);
            finished(item, result);
        }
    });
    for item in shelf.unfinished() {
        finished(item, Err(ItemError::Cancelled));
    }
    while let Next::Item(item) = feed.next() {
        finished(item.id, Err(ItemError::Cancelled));
    }
}

type Results = mpsc::Sender<(usize, Result<Outcome, ItemError>)>;

fn decode_loop(shelf: &Shelf, decoder: &dyn Decode, observer: &dyn Observer, results: &Results) {
    while let Some((item, claim)) = shelf.claim() {
        let begin = Instant::now();
        let mut progress = |done| {
            observer.progress(item.id, Stage::Decode, done);
            if observer.cancelled(item.id) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let decoded = guarded(|| {
            let decoded = match item.settings.voices {
                Voices::Mixed => {
                    decoder.decode(&item.path, Channels::Mix, &mut progress).map(|waveform| vec![waveform])
                }
                Voices::Channels => split::decode(&item.path, decoder, &mut progress),
            };
            decoded.map_err(|error| match error {
                AudioError::Cancelled => ItemError::Cancelled,
                error => ItemError::Audio(error),
            })
        });
        match decoded {
            Ok(channels) => shelf.deliver(claim, Decoded { item, channels, decoding: begin.elapsed() }),
            Err(error) => {
                shelf.give_up(claim);
                let _ = results.send((item.id, Err(error)));
            }
        }
    }
}

fn diarize_loop(
    shelf: &Shelf,
    engine: &dyn Diarize,
    mut spare: Option<&Spare>,
    observer: &dyn Observer,
    results: &Results,
) {
    let mut substitute: Option<(Box<dyn Diarize>, String)> = None;
    while let Some(decoded) = shelf.take() {
        let Decoded { item, channels, .. } = &decoded;
        let monitor = ItemMonitor { item: item.id, observer };
        let mut device_failure = None;
        let engine = substitute.as_ref().map_or(engine, |(engine, _)| &**engine);
        let result = guarded(|| {
            let result = match item.settings.voices {
                Voices::Mixed => engine.diarize(&channels[0], &item.settings, &monitor),
                Voices::Channels => split::diarize(channels, engine, &item.settings, &monitor),
            };
            result.map_err(|error| match error {
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
                return shelf.put_back(decoded);
            }
            match spare.take().map(|open| open()) {
                Some(Ok(engine)) => {
                    tracing::warn!("{reason}; the CPU goes on");
                    substitute = Some((engine, format!("computed on the CPU, because {reason}")));
                    shelf.put_back(decoded);
                    continue;
                }
                Some(Err(error)) => tracing::warn!("{reason}; the CPU cannot go on: {error}"),
                None => {}
            }
        }
        let (id, decoding) = (decoded.item.id, decoded.decoding);
        let source = shelf.release(decoded);
        let outcome = result.map(|mut diarization| {
            diarization.timings.insert(0, (Stage::Decode, decoding.as_secs_f64()));
            diarization.warnings.extend(substitute.iter().map(|(_, note)| note.clone()));
            Outcome { diarization, source }
        });
        let _ = results.send((id, outcome));
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
        self.observer.cancelled(self.item)
    }
    fn kept(&self, inference: &Path) {
        self.observer.kept(self.item, inference);
    }
}
