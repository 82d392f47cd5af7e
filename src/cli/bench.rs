//! `speakrs-app bench FILES`: how fast this computer is, stage by stage. Results are computed, compared and thrown away.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, bail};
use clap::{Parser, ValueEnum};
use serde::Serialize;

use super::args;
use super::exit::Exit;
use super::plan::{check_device, step};
use crate::app::export::{Report, rttm, write};
use crate::app::inputs::{self, Input};
use crate::audio::{Channels, SAMPLE_RATE, Waveform};
use crate::backend::{self, BackendInfo};
use crate::clustering::SpeakerBounds;
use crate::pipeline::batch::{self, AudioFiles, Decode, Diarize, Item, Limits, List, Observer};
use crate::pipeline::{Engine, Mode, Monitor, Settings, Stage, Voices};

const AFTER_HELP: &str = "\
Every recording is worked on by itself on the first device, --rounds times, and all of them together once more as a batch on all devices, where decoding and
clustering overlap with the networks. The times are medians over the rounds; the results of all rounds must be equal.
Files are read through the operating system's cache. Start-up (models, device) is not part of the times.";

/// Measures the speed of every stage on FILES; writes no results.
#[derive(Debug, Parser)]
#[command(name = "speakrs-app bench", bin_name = "speakrs-app bench", version, max_term_width = 110, after_help = AFTER_HELP)]
struct BenchArgs {
    /// Recordings, folders, quoted patterns or @lists
    #[arg(value_name = "FILES", required = true)]
    inputs: Vec<OsString>,

    /// Descend into the folders of folders
    #[arg(long)]
    recursive: bool,

    /// Rounds to take the median of
    #[arg(long, value_name = "N", default_value = "3")]
    rounds: NonZeroUsize,

    /// How embeddings are computed [default: the fastest one that the models are validated for]
    #[arg(long, value_enum)]
    mode: Option<args::Mode>,

    /// Seconds between analysis windows, more than 0 and at most 10
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
    step: Option<f64>,

    /// Device to compute on: auto, cpu, cuda, cuda:N or several GPUs such as cuda:0,cuda:1
    #[arg(long, default_value = "auto")]
    device: String,

    /// Arithmetic of the embedding network
    #[arg(long, value_enum, default_value = "auto")]
    precision: args::Precision,

    /// Folder of the models [default: the ones that come with the program]
    #[arg(long, value_name = "DIR", env = "SPEAKRS_APP_MODELS")]
    models: Option<PathBuf>,

    /// Recordings decoded at the same time in the batch
    #[arg(long, value_name = "N", default_value = "2")]
    jobs: NonZeroUsize,

    /// Threads for the computation [default: one per processor core]
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,

    /// Form of the report
    #[arg(long, value_name = "FORM", value_enum, default_value = "table")]
    format: Form,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    /// For people
    Table,
    /// One JSON object
    Json,
}

/// What was measured.
#[derive(Debug, Serialize)]
struct Measured {
    version: &'static str,
    model: String,
    device: String,
    device_name: String,
    precision: String,
    mode: &'static str,
    step: f64,
    threads: usize,
    recordings: usize,
    rounds: usize,
    /// Seconds of audio.
    audio: f64,
    /// Seconds from the start of the program's work to loaded models and an open device.
    startup: f64,
    /// Seconds of each stage, over all recordings.
    stages: BTreeMap<Stage, f64>,
    /// Seconds of all stages.
    total: f64,
    /// Seconds of the batch, without writing.
    batch: f64,
    /// Most memory of the process, in bytes, where the operating system tells.
    peak_memory: Option<u64>,
}

/// Runs the subcommand with what was typed behind `bench`.
pub fn main(typed: &[OsString]) -> Exit {
    let name = OsString::from("speakrs-app bench");
    let args = match BenchArgs::try_parse_from(std::iter::once(&name).chain(typed)) {
        Ok(args) => args,
        Err(error) => {
            let _ = error.print();
            return if error.use_stderr() { Exit::Usage } else { Exit::Done };
        }
    };
    let complain = |text: &str| {
        let _ = writeln!(io::stderr(), "speakrs-app: {text}");
    };
    let step = match check_device(&args.device).and_then(|()| step(args.step)) {
        Ok(step) => step,
        Err(error) => {
            complain(&error.to_string());
            return Exit::Usage;
        }
    };
    let found = inputs::find(&args.inputs, args.recursive);
    for (path, reason) in &found.failures {
        complain(&format!("{}: {reason}", path.display()));
    }
    if !found.failures.is_empty() || found.inputs.is_empty() {
        complain("nothing was measured: every recording must be there");
        return Exit::NoInput;
    }
    match measure(&args, step, &found.inputs) {
        Ok(measured) => {
            let text = match args.format {
                Form::Table => table(&measured),
                Form::Json => serde_json::to_string_pretty(&measured).expect("plain data") + "\n",
            };
            let _ = io::stdout().lock().write_all(text.as_bytes());
            Exit::Done
        }
        Err(error) => {
            complain(&format!("{error:#}"));
            Exit::Failed
        }
    }
}

/// Nobody watches, nobody stops it.
struct Unwatched;

impl Monitor for Unwatched {
    fn progress(&self, _: Stage, _: f32) {}
    fn cancelled(&self) -> bool {
        false
    }
}

impl Observer for Unwatched {
    fn progress(&self, _: usize, _: Stage, _: f32) {}
    fn stopped(&self) -> bool {
        false
    }
}

fn measure(args: &BenchArgs, step: f64, inputs: &[Input]) -> anyhow::Result<Measured> {
    let start = Instant::now();
    rayon::ThreadPoolBuilder::new()
        .num_threads(args.threads.map_or(0, NonZeroUsize::get))
        .build_global()
        .context("cannot start the threads")?;
    let open = |device: &String| Engine::open(args.models.as_deref(), device, args.precision.into());
    let engines = backend::resolve(&args.device).iter().map(open).collect::<Result<Vec<_>, _>>()?;
    let engine = &engines[0];
    let startup = start.elapsed().as_secs_f64();
    if let Some(reason) = engine.device_reason() {
        let _ = writeln!(io::stderr(), "speakrs-app: computing on the CPU: {reason}");
    }
    let mode = args.mode.map_or(engine.default_mode(), Mode::from);
    let settings = Settings { mode, step, speakers: SpeakerBounds::default(), voices: Voices::Mixed };
    let folder = std::env::temp_dir().join(format!("speakrs-app-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let rounds = rounds(args, inputs, &engines, &settings, &folder);
    let _ = std::fs::remove_dir_all(&folder);
    let (stages, batch, audio) = rounds?;
    let backends: Vec<BackendInfo> = engines.iter().map(Engine::backend).collect();
    let all = |text: fn(&BackendInfo) -> String| backends.iter().map(text).collect::<Vec<_>>().join(", ");
    Ok(Measured {
        version: env!("CARGO_PKG_VERSION"),
        model: engine.model().to_owned(),
        device: all(|backend| backend.device.clone()),
        device_name: all(|backend| backend.name.clone()),
        precision: backends[0].precision.to_string(),
        mode: mode.name(),
        step,
        threads: rayon::current_num_threads(),
        recordings: inputs.len(),
        rounds: args.rounds.get(),
        audio,
        startup,
        total: stages.values().sum(),
        stages,
        batch,
        peak_memory: peak_memory(),
    })
}

/// Median seconds of every stage and of the batch, and seconds of audio.
type Rounds = (BTreeMap<Stage, f64>, f64, f64);

fn rounds(
    args: &BenchArgs,
    inputs: &[Input],
    engines: &[Engine],
    settings: &Settings,
    folder: &std::path::Path,
) -> anyhow::Result<Rounds> {
    let mut seconds = BTreeMap::<Stage, Vec<f64>>::new();
    let (mut batches, mut audio) = (Vec::new(), 0.0);
    let mut first = vec![None; inputs.len()];
    for round in 0..args.rounds.get() {
        audio = 0.0;
        for (input, first) in inputs.iter().zip(&mut first) {
            let name = input.path.display();
            let begin = Instant::now();
            let waveform: Waveform = AudioFiles
                .decode(&input.path, Channels::Mix, &mut |_| ControlFlow::Continue(()))
                .with_context(|| name.to_string())?;
            let mut times = vec![(Stage::Decode, begin.elapsed().as_secs_f64())];
            audio += waveform.samples.len() as f64 / f64::from(SAMPLE_RATE);
            let result =
                engines[0].diarize(&waveform, settings, &Unwatched).with_context(|| name.to_string())?;
            times.extend(&result.timings);
            let begin = Instant::now();
            let (path, source) = (&input.path, &waveform.source);
            let report = Report { path, file: "x", uri: "x", diarization: &result, source };
            let bytes = rttm::render(&report);
            write::atomically(&folder.join("x"), &bytes, true).context("a result cannot be written")?;
            times.push((Stage::Write, begin.elapsed().as_secs_f64()));
            if *first.get_or_insert_with(|| bytes.clone()) != bytes {
                bail!("{name}: round {} gave another result than the first", round + 1);
            }
            for (stage, time) in times {
                let stage = seconds.entry(stage).or_default();
                stage.resize(round + 1, 0.0);
                stage[round] += time;
            }
        }
        let item = |(id, input): (usize, &Input)| Item {
            id,
            path: input.path.clone(),
            bytes: input.bytes,
            settings: *settings,
        };
        let feed = List::new(inputs.iter().enumerate().map(item).collect());
        let slots: Vec<&dyn Diarize> = engines
            .iter()
            .flat_map(|engine| std::iter::repeat_n(engine as &dyn Diarize, engine.recordings()))
            .collect();
        let (begin, mut failed) = (Instant::now(), None);
        batch::run(
            &feed,
            &AudioFiles,
            slots.as_slice().into(),
            &Limits::new(args.jobs.get()),
            &Unwatched,
            &mut |_, result| {
                failed = failed.take().or(result.err());
            },
        );
        batches.push(begin.elapsed().as_secs_f64());
        if let Some(error) = failed {
            return Err(error).context("the batch failed");
        }
    }
    let stages = seconds.into_iter().map(|(stage, times)| (stage, median(times))).collect();
    Ok((stages, median(batches), audio))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 { values[middle] } else { (values[middle - 1] + values[middle]) / 2.0 }
}

/// The most memory that the process has had, as Linux tells it.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok().map(|kib| kib << 10)
}

fn table(measured: &Measured) -> String {
    let Measured { version, model, device, device_name, precision, mode, step, threads, .. } = measured;
    let mut text = format!(
        "speakrs-app {version}, {model}, {mode}, step {step} s\n{device}: {device_name}, {precision}, {threads} threads\n\
         {} recordings, {:.1} s of audio, medians of {} rounds, start-up {:.2} s\n\n{:14} {:>10} {:>13}\n",
        measured.recordings,
        measured.audio,
        measured.rounds,
        measured.startup,
        "stage",
        "seconds",
        "x real time",
    );
    let mut row = |name: &str, seconds: f64| {
        let speed = measured.audio / seconds.max(1e-9);
        let _ = writeln!(text, "{name:14} {seconds:10.4} {speed:13.1}");
    };
    for (stage, &seconds) in &measured.stages {
        row(&format!("{stage:?}").to_lowercase(), seconds);
    }
    row("one by one", measured.total);
    row("as a batch", measured.batch);
    if let Some(bytes) = measured.peak_memory {
        let _ = writeln!(text, "\nmost memory: {} MiB", bytes >> 20);
    }
    text
}
