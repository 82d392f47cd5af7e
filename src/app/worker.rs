//! Works through recordings in threads of its own, while a front end adds, reorders and cancels them.
//! Depends on `engines`, `jobs`, `export` and `pipeline::batch`.
//!
//! ```text
//! front end ─► waiting ─► batch::run ─► results written ─► events ─► front end
//!                            │                                ▲
//!                            └─► progress (looked at)         │
//! front end ─► another number of speakers ─► clustering only ─┘
//! ```

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::background::Wake;
use super::engines::{Choice, Engines};
use super::export::{self, Report};
use super::jobs::Job;
use crate::pipeline::batch::{self, AudioFiles, Feed, Item, ItemError, Limits, Next, Observer, Outcome};
use crate::pipeline::{Diarization, Mode, Monitor, Settings, Stage};

/// Least time between two calls of [`Wake`] for progress.
const PACE: Duration = Duration::from_millis(60);

/// What a recording is known by.
pub type TaskId = usize;

/// A recording to work on.
#[derive(Debug, Clone)]
pub struct Task {
    /// What it is known by; given once.
    pub id: TaskId,
    /// The recording and its results.
    pub job: Job,
    /// How it is to be diarized; the mode is ignored if `default_mode`.
    pub settings: Settings,
    /// Whether the models decide the mode.
    pub default_mode: bool,
    /// Whether results that are there already are replaced.
    pub replace: bool,
}

/// What the results are computed on.
#[derive(Debug, Clone, PartialEq)]
pub struct Opened {
    /// Devices, such as `cpu` or `cuda:0`.
    pub device: String,
    /// Their names in words.
    pub name: String,
    /// Arithmetic.
    pub precision: String,
    /// Name of the models.
    pub model: String,
    /// The mode that is used unless the user names one.
    pub mode: Mode,
    /// Why no GPU is used, if the choice was left to the program.
    pub reason: Option<String>,
}

/// News for the front end.
#[derive(Debug)]
pub enum Event {
    /// Models and devices are ready.
    Opened(Opened),
    /// They cannot be used; nothing will be worked on.
    NotOpened(String),
    /// A recording is done.
    Done {
        /// Which one.
        task: TaskId,
        /// What came out.
        outcome: Box<Outcome>,
        /// Results that were written.
        written: Vec<PathBuf>,
        /// Why others were not.
        problems: Vec<(PathBuf, String)>,
        /// The file that it can be clustered from again.
        inference: Option<PathBuf>,
    },
    /// A recording could not be worked on.
    Failed {
        /// Which one.
        task: TaskId,
        /// Why.
        reason: String,
    },
    /// A recording was given up because the front end wanted that.
    Cancelled {
        /// Which one.
        task: TaskId,
    },
    /// A recording was clustered again.
    Clustered {
        /// Which one.
        task: TaskId,
        /// The result; `None` if what the networks found is no longer there.
        result: Result<Option<Box<Diarization>>, String>,
    },
}

/// How far a recording is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// Which one.
    pub task: TaskId,
    /// The step it is in.
    pub stage: Stage,
    /// Share of that step that is done, 0 to 1.
    pub done: f32,
    /// Time since it was begun.
    pub elapsed: Duration,
}

struct Running {
    task: Task,
    stage: Stage,
    done: f32,
    begin: Instant,
    cancelled: bool,
    inference: Option<PathBuf>,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Task>,
    running: HashMap<TaskId, Running>,
    /// The batch in work takes no more recordings.
    ended: bool,
    quit: bool,
}

struct Shared {
    queue: Mutex<Queue>,
    added: Condvar,
    wake: Wake,
    started: Instant,
    /// Milliseconds from `started` to the last call of `wake` for progress.
    woken: AtomicU64,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a recording; `false` if there will be none.
    fn wait(&self) -> bool {
        let mut queue = self.lock();
        while !queue.quit && queue.waiting.is_empty() {
            queue = self.added.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        queue.ended = false;
        !queue.quit
    }
}

/// The mode of `task`, and its other settings.
fn settings(task: &Task, default: Mode) -> Settings {
    let mode = if task.default_mode { default } else { task.settings.mode };
    Settings { mode, ..task.settings }
}

/// A batch of what waits, until nothing does.
struct Waiting<'a> {
    shared: &'a Shared,
    mode: Mode,
}

impl Feed for Waiting<'_> {
    fn next(&self) -> Next {
        let mut queue = self.shared.lock();
        if queue.ended {
            return Next::End;
        }
        if let Some(task) = queue.waiting.pop_front() {
            let (id, path, bytes) = (task.id, task.job.input.clone(), task.job.bytes);
            let settings = settings(&task, self.mode);
            let running = Running {
                task,
                stage: Stage::Decode,
                done: 0.0,
                begin: Instant::now(),
                cancelled: false,
                inference: None,
            };
            queue.running.insert(id, running);
            return Next::Item(Item { id, path, bytes, settings });
        }
        queue.ended = queue.running.is_empty();
        if queue.ended { Next::End } else { Next::Later }
    }
}

impl Observer for Shared {
    fn progress(&self, item: usize, stage: Stage, done: f32) {
        if let Some(running) = self.lock().running.get_mut(&item) {
            (running.stage, running.done) = (stage, done);
        }
        let now = self.started.elapsed().as_millis() as u64;
        let last = self.woken.load(Ordering::Relaxed);
        if now.saturating_sub(last) >= PACE.as_millis() as u64
            && self.woken.compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        {
            (self.wake)();
        }
    }

    fn stopped(&self) -> bool {
        self.lock().quit
    }

    fn cancelled(&self, item: usize) -> bool {
        let queue = self.lock();
        queue.quit || queue.running.get(&item).is_some_and(|running| running.cancelled)
    }

    fn kept(&self, item: usize, inference: &Path) {
        if let Some(running) = self.lock().running.get_mut(&item) {
            running.inference = Some(inference.to_owned());
        }
    }
}

/// A wish for another result of a recording.
struct Again {
    task: TaskId,
    inference: PathBuf,
    result: Box<Diarization>,
    settings: Settings,
}

/// Threads that work through recordings. Dropping it gives up what is in work and waits for the threads.
pub struct Worker {
    shared: Arc<Shared>,
    events: Receiver<Event>,
    again: Option<Sender<Again>>,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    /// Starts opening models and devices; recordings may be added at once. `decoders` are decoded at the same time.
    pub fn start(choice: Choice, decoders: usize, wake: Wake) -> Self {
        let shared = Arc::new(Shared {
            queue: Mutex::default(),
            added: Condvar::new(),
            wake,
            started: Instant::now(),
            woken: AtomicU64::new(0),
        });
        let (send, events) = channel();
        let (again, wishes) = channel();
        let work = {
            let shared = Arc::clone(&shared);
            move || work(&choice, decoders, &shared, &send, wishes)
        };
        let thread = thread::Builder::new().name("worker".into()).spawn(work);
        let thread = thread.inspect_err(|error| tracing::error!("cannot start a thread: {error}")).ok();
        Self { shared, events, again: Some(again), thread }
    }

    /// Adds a recording behind those that wait.
    pub fn add(&self, task: Task) {
        self.shared.lock().waiting.push_back(task);
        self.shared.added.notify_all();
    }

    /// Puts those that wait in this order; others stay behind them.
    pub fn reorder(&self, order: &[TaskId]) {
        let place: HashMap<TaskId, usize> = order.iter().enumerate().map(|(i, &id)| (id, i)).collect();
        let mut queue = self.shared.lock();
        queue
            .waiting
            .make_contiguous()
            .sort_by_key(|task| place.get(&task.id).copied().unwrap_or(usize::MAX));
    }

    /// Gives up a recording. One that waits is gone at once; for one in work an event comes as soon as it has stopped.
    pub fn cancel(&self, id: TaskId) -> Cancel {
        let mut queue = self.shared.lock();
        let before = queue.waiting.len();
        queue.waiting.retain(|task| task.id != id);
        if queue.waiting.len() < before {
            return Cancel::Waited;
        }
        match queue.running.get_mut(&id) {
            Some(running) => {
                running.cancelled = true;
                Cancel::Stopping
            }
            None => Cancel::Unknown,
        }
    }

    /// Asks for another result of a recording from what the networks found; an event brings it.
    pub fn cluster_again(&self, task: TaskId, inference: PathBuf, result: Diarization, settings: Settings) {
        if let Some(again) = &self.again {
            let _ = again.send(Again { task, inference, result: Box::new(result), settings });
        }
    }

    /// The news since the last call.
    pub fn events(&self) -> Vec<Event> {
        self.events.try_iter().collect()
    }

    /// How far the recordings in work are.
    pub fn progress(&self) -> Vec<Progress> {
        let queue = self.shared.lock();
        let progress = |(&task, running): (&TaskId, &Running)| Progress {
            task,
            stage: running.stage,
            done: running.done,
            elapsed: running.begin.elapsed(),
        };
        queue.running.iter().map(progress).collect()
    }
}

/// What became of a wish to give up a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cancel {
    /// It waited, and is gone.
    Waited,
    /// It is in work and will stop soon.
    Stopping,
    /// It is neither.
    Unknown,
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.shared.lock().quit = true;
        self.shared.added.notify_all();
        self.again = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The work of the thread: opens the engines, then one batch after another.
fn work(choice: &Choice, decoders: usize, shared: &Shared, send: &Sender<Event>, wishes: Receiver<Again>) {
    let tell = |event| {
        let _ = send.send(event);
        (shared.wake)();
    };
    let engines = match Engines::open(choice) {
        Ok(engines) => engines,
        Err(error) => return tell(Event::NotOpened(error.to_string())),
    };
    let engine = engines.first();
    let mode = engines.default_mode();
    tell(Event::Opened(Opened {
        device: engines.all(|backend| backend.device.clone()),
        name: engines.all(|backend| backend.name.clone()),
        precision: engine.backend().precision.to_string(),
        model: engine.model().to_owned(),
        mode,
        reason: engine.device_reason().map(str::to_owned),
    }));
    thread::scope(|scope| {
        let (engines, tell) = (&engines, &tell);
        scope.spawn(move || again(engines, &wishes, shared, tell));
        while shared.wait() {
            let feed = Waiting { shared, mode };
            let limits = Limits::new(decoders);
            let mut finished = |id, result| tell(finish(shared, id, result));
            engines.lend(|engines| batch::run(&feed, &AudioFiles, engines, &limits, shared, &mut finished));
        }
    });
}

/// Writes the results of a recording.
fn finish(shared: &Shared, id: TaskId, result: Result<Outcome, ItemError>) -> Event {
    let running = shared.lock().running.remove(&id);
    let (outcome, running) = match (result, running) {
        (Ok(outcome), Some(running)) if !running.cancelled => (outcome, running),
        (Ok(_) | Err(ItemError::Cancelled), _) => return Event::Cancelled { task: id },
        (Err(error), _) => return Event::Failed { task: id, reason: error.to_string() },
    };
    let job = &running.task.job;
    let (written, problems) = write_results(job, &outcome, running.task.replace);
    Event::Done { task: id, outcome: Box::new(outcome), written, problems, inference: running.inference }
}

/// Writes all results of `job`: those that were written, and why others were not.
fn write_results(job: &Job, outcome: &Outcome, replace: bool) -> (Vec<PathBuf>, Vec<(PathBuf, String)>) {
    let report = Report {
        path: &job.input,
        file: &job.file,
        uri: &job.uri,
        diarization: &outcome.diarization,
        source: &outcome.source,
    };
    let (mut written, mut problems) = (Vec::new(), Vec::new());
    for output in &job.outputs {
        match export::write_one(output.format, &report, &output.path, replace) {
            Ok(()) => written.push(output.path.clone()),
            Err(error) => problems.push((output.path.clone(), error.to_string())),
        }
    }
    (written, problems)
}

/// The wishes for other results, one after the other; of several for a recording, the last one counts.
fn again(engines: &Engines, wishes: &Receiver<Again>, shared: &Shared, tell: &dyn Fn(Event)) {
    while let Ok(first) = wishes.recv() {
        let mut open = vec![first];
        open.extend(wishes.try_iter());
        for (index, wish) in open.iter().enumerate() {
            if open[index + 1..].iter().any(|later| later.task == wish.task) {
                continue;
            }
            let Again { task, inference, result, settings } = wish;
            let clustered = engines.cluster_again(inference, result, settings, &Unseen { shared });
            let result = clustered.map(|found| found.map(Box::new)).map_err(|error| error.to_string());
            tell(Event::Clustered { task: *task, result });
        }
    }
}

/// Nobody looks at the progress of clustering again.
struct Unseen<'a> {
    shared: &'a Shared,
}

impl Monitor for Unseen<'_> {
    fn progress(&self, _: Stage, _: f32) {}
    fn cancelled(&self) -> bool {
        self.shared.stopped()
    }
}
