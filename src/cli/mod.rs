//! The command line: what was typed ([`args`]) is resolved and checked once ([`plan`]), then done ([`run`]).
//! Depends on `app` and `pipeline`. The only module that writes to the terminal.

pub mod args;
pub mod bench;
pub mod devices;
pub mod exit;
pub mod plan;
pub mod progress;
pub mod run;
pub mod score;

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::panic;
#[cfg(feature = "gui")]
use std::path::PathBuf;

use anyhow::Context;
use clap::Parser;

use args::Args;
use exit::Exit;
use plan::{Plan, Refusal};
use progress::{Stop, Terminal};
use run::Summary;
use score::Truth;

use crate::app::engines::{Choice, Engines};
#[cfg(feature = "gui")]
use crate::gui;
use crate::pipeline::batch::AudioFiles;

/// Runs the program and tells how it ended.
pub fn main() -> Exit {
    let typed: Vec<OsString> = env::args_os().collect();
    let subcommand: Option<fn(&[OsString]) -> Exit> = match typed.get(1).and_then(|word| word.to_str()) {
        Some("score") => Some(score::main),
        Some("devices") => Some(devices::main),
        Some("bench") => Some(bench::main),
        _ => None,
    };
    if let Some(subcommand) = subcommand {
        return subcommand(&typed[2..]);
    }
    let args = match Args::try_parse_from(&typed) {
        Ok(args) => args,
        Err(error) => {
            let _ = error.print();
            return if error.use_stderr() { Exit::Usage } else { Exit::Done };
        }
    };
    let terminal = Terminal::new(&args);
    panic::set_hook(Box::new(|panic| tracing::error!("internal error: {panic}")));
    if !args.headless {
        return window(&args, &terminal);
    }
    headless(&args, &terminal)
}

/// Opens the window with the recordings that `args` name.
#[cfg(feature = "gui")]
fn window(args: &Args, terminal: &Terminal) -> Exit {
    let plan = match Plan::settings_of(args) {
        Ok(plan) => plan,
        Err(error) => {
            terminal.complain(&error.to_string());
            return Exit::Usage;
        }
    };
    let threads = rayon::ThreadPoolBuilder::new().num_threads(plan.threads.unwrap_or(0)).build_global();
    if let Err(error) = threads {
        terminal.complain(&format!("cannot start the threads: {error}"));
        return Exit::Environment;
    }
    let choice =
        Choice { models: plan.models, device: plan.device, precision: plan.precision, cache: plan.cache };
    let options = gui::Options {
        inputs: args.inputs.clone(),
        choice: Choice { cache: choice.cache.or_else(own_cache), ..choice },
        formats: args.format.clone(),
        folder: args.output_dir.clone(),
        mode: plan.mode,
        step: plan.step,
        decoders: plan.decoders,
    };
    match gui::run(&options) {
        Ok(()) => Exit::Done,
        Err(reason) => {
            terminal.complain(&reason);
            Exit::Environment
        }
    }
}

/// Where the window keeps what the networks find, so that another number of speakers takes a moment.
#[cfg(feature = "gui")]
fn own_cache() -> Option<PathBuf> {
    let folders = directories::ProjectDirs::from("", "", "speakrs-app")?;
    Some(folders.cache_dir().join("inference"))
}

#[cfg(not(feature = "gui"))]
fn window(_: &Args, terminal: &Terminal) -> Exit {
    terminal.complain("this program was built without the window; use --headless FILES");
    Exit::Usage
}

/// Works on the recordings that `args` name, without a window.
fn headless(args: &Args, terminal: &Terminal) -> Exit {
    let (plan, refusals) = match Plan::new(args) {
        Ok(plan) => plan,
        Err(error) => {
            terminal.complain(&error.to_string());
            return Exit::Usage;
        }
    };
    let truth = match Truth::read(args) {
        Ok(truth) => truth,
        Err(reason) => {
            terminal.complain(&reason);
            return Exit::Usage;
        }
    };
    for path in &plan.empty {
        terminal.warn(path, "no recordings found");
    }
    refusals.iter().for_each(|Refusal { path, reason }| terminal.fail(path, reason));
    plan.skipped.iter().for_each(|job| terminal.skip(&job.input));
    let before = Summary { failed: plan.failed, skipped: plan.skipped.len(), ..Summary::default() };
    if plan.jobs.is_empty() {
        if before.total() == 0 {
            terminal.complain("no input matched");
            return Exit::NoInput;
        }
        if let Some(truth) = truth {
            truth.score(&plan, &before, BTreeMap::new(), terminal);
        }
        terminal.summary(&before);
        return before.exit();
    }
    match work(&plan, terminal, truth) {
        Ok(summary) => {
            let summary = before.plus(summary);
            terminal.summary(&summary);
            summary.exit()
        }
        Err(error) => {
            terminal.complain(&format!("{error:#}"));
            Exit::Environment
        }
    }
}

/// Opens the models, works through the jobs and scores the results if there is a reference.
fn work(plan: &Plan, terminal: &Terminal, truth: Option<Truth>) -> anyhow::Result<Summary> {
    let stop = Stop::on_signals().context("cannot handle signals")?;
    rayon::ThreadPoolBuilder::new()
        .num_threads(plan.threads.unwrap_or(0))
        .build_global()
        .context("cannot start the threads")?;
    let choice = Choice {
        models: plan.models.clone(),
        device: plan.device.clone(),
        precision: plan.precision,
        cache: plan.cache.clone(),
    };
    let engines = Engines::open(&choice)?;
    let engine = engines.first();
    if let Some(reason) = engine.device_reason() {
        terminal.note(&format!("computing on the CPU: {reason}"));
    }
    let settings = plan.settings(engine.default_mode());
    let speakers = settings.speakers;
    let precision = engine.backend().precision.to_string();
    tracing::info!(
        model = engine.model(),
        device = engines.all(|backend| backend.device.clone()),
        device_name = engines.all(|backend| backend.name.clone()),
        precision,
        mode = settings.mode.name(),
        step = settings.step,
        num_speakers = speakers.num,
        min_speakers = speakers.min,
        max_speakers = speakers.max,
        recordings = plan.jobs.len(),
        "models loaded"
    );
    let summary = engines.lend(|engines| run::run(plan, &settings, &AudioFiles, engines, terminal, &stop));
    if let Some(truth) = truth {
        let provenance = BTreeMap::from([
            ("model", engine.model().to_owned()),
            ("device", engines.all(|backend| format!("{} ({})", backend.device, backend.name))),
            ("precision", precision),
            ("mode", settings.mode.name().to_owned()),
            ("step", format!("{} s", settings.step)),
            ("speakers", progress::bounds_text(&speakers)),
        ]);
        truth.score(plan, &summary, provenance, terminal);
    }
    Ok(summary)
}
