//! Works through a plan: every recording is decoded, diarized, written and reported.

use std::time::{Duration, Instant};

use super::exit::Exit;
use super::plan::Plan;
use super::progress::{Stop, Terminal};
use crate::app::export::{self, Report};
use crate::app::jobs::Job;
use crate::pipeline::Settings;
use crate::pipeline::batch::{self, Decode, Engines, Item, ItemError, Limits, List, Outcome};

/// How the recordings fared.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Summary {
    /// All results are written.
    pub done: usize,
    /// Indices of the jobs that are done, in the order in which they were finished.
    pub finished: Vec<usize>,
    /// At least one result is not written.
    pub failed: usize,
    /// The results were there already.
    pub skipped: usize,
    /// Stopped before they were done.
    pub unfinished: usize,
    /// Seconds of audio in the recordings that are done.
    pub audio: f64,
    /// Time the work took.
    pub elapsed: Duration,
    /// The signal that stopped the work.
    pub signal: Option<u8>,
}

impl Summary {
    /// Number of recordings.
    pub fn total(&self) -> usize {
        self.done + self.failed + self.skipped + self.unfinished
    }

    /// What the exit code should say.
    pub fn exit(&self) -> Exit {
        match self.signal {
            Some(signal) => Exit::Signal(signal),
            None if self.failed + self.unfinished > 0 => Exit::Failed,
            None => Exit::Done,
        }
    }

    /// Both together.
    pub fn plus(self, other: Self) -> Self {
        Self {
            done: self.done + other.done,
            finished: [self.finished, other.finished].concat(),
            failed: self.failed + other.failed,
            skipped: self.skipped + other.skipped,
            unfinished: self.unfinished + other.unfinished,
            audio: self.audio + other.audio,
            elapsed: self.elapsed + other.elapsed,
            signal: self.signal.or(other.signal),
        }
    }
}

/// Works on the jobs of `plan`. One that fails does not stop the others; `stop` ends the work soon, and the
/// results written until then stay.
pub fn run(
    plan: &Plan,
    settings: &Settings,
    decoder: &dyn Decode,
    engines: Engines,
    terminal: &Terminal,
    stop: &Stop,
) -> Summary {
    let begin = Instant::now();
    let item = |(id, job): (usize, &Job)| Item {
        id,
        path: job.input.clone(),
        bytes: job.bytes,
        settings: *settings,
    };
    let feed = List::new(plan.jobs.iter().enumerate().map(item).collect());
    let watch = terminal.watch(&plan.jobs, stop);
    let mut summary = Summary::default();
    let mut finished = |item: usize, result: Result<Outcome, ItemError>| {
        let job: &Job = &plan.jobs[item];
        watch.finished(item);
        match result {
            Ok(outcome) => {
                if finish(job, &outcome, plan.replace, terminal) {
                    summary.done += 1;
                    summary.finished.push(item);
                } else {
                    summary.failed += 1;
                }
                summary.audio += outcome.diarization.duration;
            }
            Err(ItemError::Cancelled) => summary.unfinished += 1,
            Err(error) => {
                summary.failed += 1;
                terminal.fail(&job.input, &error.to_string());
            }
        }
    };
    let limits = Limits::new(plan.decoders);
    batch::run(&feed, decoder, engines, &limits, &watch, &mut finished);
    drop(watch);
    summary.elapsed = begin.elapsed();
    summary.signal = stop.signal();
    summary
}

/// Writes every result of a job, also after one could not be written; whether the job fully succeeded.
fn finish(job: &Job, outcome: &Outcome, replace: bool, terminal: &Terminal) -> bool {
    for warning in outcome.source.warnings.iter().chain(&outcome.diarization.warnings) {
        terminal.warn(&job.input, warning);
    }
    let Outcome { diarization, source } = outcome;
    let report = Report { path: &job.input, file: &job.file, uri: &job.uri, diarization, source };
    let mut complete = !job.incomplete;
    for output in &job.outputs {
        if let Err(error) = export::write_one(output.format, &report, &output.path, replace) {
            complete = false;
            terminal.fail(&job.input, &format!("{}: {error}", output.path.display()));
        }
    }
    if complete {
        terminal.done(job, outcome);
    }
    complete
}
