//! Resolves what was typed into a checked plan: recordings, results, settings. After this no argument is
//! looked at again, and nothing that can be known beforehand goes wrong later.

use std::fmt::Display;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use super::args::Args;
use crate::app::export::write::WriteError;
use crate::app::inputs;
use crate::app::jobs::{self, Existing, Job, JobError, Wishes};
use crate::audio::SAMPLE_RATE;
use crate::backend::Precision;
use crate::clustering::SpeakerBounds;
use crate::models::windows::{DEFAULT_STEP_SAMPLES, WINDOW_SAMPLES};
use crate::pipeline::{Mode, Settings, Voices};

/// The work to do.
#[derive(Debug)]
pub struct Plan {
    /// Recordings to work on, with their results.
    pub jobs: Vec<Job>,
    /// Recordings that have their results already.
    pub skipped: Vec<Job>,
    /// Arguments that stand for nothing.
    pub empty: Vec<PathBuf>,
    /// Number of recordings that have failed already.
    pub failed: usize,
    /// Whether results that are there already are replaced.
    pub replace: bool,
    /// Number of decoding threads.
    pub decoders: usize,
    /// Number of threads for the computation.
    pub threads: Option<usize>,
    /// Device to compute on.
    pub device: String,
    /// Arithmetic; `None` leaves the choice to the program.
    pub precision: Option<Precision>,
    /// Folder of the cache.
    pub cache: Option<PathBuf>,
    /// Folder of the models.
    pub models: Option<PathBuf>,
    /// The mode, if the user names one.
    pub mode: Option<Mode>,
    /// Seconds between windows.
    pub step: f64,
    speakers: SpeakerBounds,
}

/// Something that cannot be done, found while planning.
#[derive(Debug)]
pub struct Refusal {
    /// What the user named.
    pub path: PathBuf,
    /// Why.
    pub reason: String,
}

impl Refusal {
    fn new(path: &Path, reason: &dyn Display) -> Self {
        Self { path: path.to_owned(), reason: reason.to_string() }
    }
}

/// What is wrong with the command line.
#[derive(Debug, thiserror::Error)]
#[error("{0} (see --help)")]
pub struct PlanError(String);

impl Plan {
    /// Checks `args` and finds the recordings. What has to be left out comes as refusals beside the plan.
    /// Makes the folders of the results, to find out whether they can be written to.
    ///
    /// # Errors
    /// If the arguments contradict each other or make no sense.
    pub fn new(args: &Args) -> Result<(Self, Vec<Refusal>), PlanError> {
        let plan = Self::settings_of(args)?;
        if args.inputs.is_empty() {
            return Err(PlanError("no input given; name files, folders or patterns".into()));
        }
        if args.reference.is_some() && !args.format.iter().any(|format| format.name == "rttm") {
            return Err(PlanError("--reference scores RTTM results: add rttm to --format".into()));
        }

        let found = inputs::find(&args.inputs, args.recursive);
        let mut refusals: Vec<Refusal> =
            found.failures.iter().map(|(path, error)| Refusal::new(path, error)).collect();
        let jobs = jobs::assign(found.inputs, &wishes(args));
        let failed = refusals.len() + jobs.failed;
        refusals.extend(jobs.failures.iter().map(|(path, error)| Refusal::new(path, &hinted(error))));
        Ok((Self { jobs: jobs.jobs, skipped: jobs.skipped, empty: found.empty, failed, ..plan }, refusals))
    }

    /// The settings in `args`, checked, without any recording.
    ///
    /// # Errors
    /// If they contradict each other or make no sense.
    pub fn settings_of(args: &Args) -> Result<Self, PlanError> {
        let step = step(args.step)?;
        let speakers = speakers(args)?;
        check_device(&args.device)?;
        Ok(Self {
            jobs: Vec::new(),
            skipped: Vec::new(),
            empty: Vec::new(),
            failed: 0,
            replace: args.overwrite,
            decoders: args.jobs.get(),
            threads: args.threads.map(NonZeroUsize::get),
            device: args.device.clone(),
            precision: args.precision.into(),
            cache: args.cache.clone().filter(|path| !path.as_os_str().is_empty()),
            models: args.models.clone().filter(|path| !path.as_os_str().is_empty()),
            mode: args.mode.map(Mode::from),
            step,
            speakers,
        })
    }

    /// The settings of every recording; `default` is the mode unless the user names one.
    pub fn settings(&self, default: Mode) -> Settings {
        let mode = self.mode.unwrap_or(default);
        Settings { mode, step: self.step, speakers: self.speakers, voices: Voices::Mixed }
    }
}

/// The error, and what the user can do about it.
fn hinted(error: &JobError) -> String {
    let hint = match error {
        JobError::Output { error: WriteError::Exists, .. } => "use --overwrite or --skip-existing",
        JobError::Output { .. } => "choose another folder with --output-dir",
        JobError::Collision(_) => "work on them one at a time with different --output-dir",
        JobError::OverInput(_) => "choose another folder with --output-dir",
    };
    format!("{error} ({hint})")
}

fn wishes(args: &Args) -> Wishes {
    let mut formats = args.format.clone();
    let mut seen = Vec::new();
    formats.retain(|format| {
        !seen.contains(&format.name) && {
            seen.push(format.name);
            true
        }
    });
    let existing = match (args.overwrite, args.skip_existing) {
        (true, _) => Existing::Replace,
        (_, true) => Existing::Skip,
        _ => Existing::Refuse,
    };
    Wishes { formats, folder: args.output_dir.clone(), existing }
}

/// The step in seconds, a whole number of samples.
pub(super) fn step(typed: Option<f64>) -> Result<f64, PlanError> {
    let rate = f64::from(SAMPLE_RATE);
    let Some(seconds) = typed else { return Ok(DEFAULT_STEP_SAMPLES as f64 / rate) };
    let longest = WINDOW_SAMPLES as f64 / rate;
    if !(seconds > 0.0 && seconds <= longest) {
        return Err(PlanError(format!("--step {seconds}: must be above 0 and at most {longest}")));
    }
    let samples = (seconds * rate).round();
    if samples < 1.0 || (seconds * rate - samples).abs() > 1e-6 {
        let reason = format!("--step {seconds}: must be a whole number of samples (1/{SAMPLE_RATE} s)");
        return Err(PlanError(reason));
    }
    Ok(samples / rate)
}

fn speakers(args: &Args) -> Result<SpeakerBounds, PlanError> {
    if let (Some(min), Some(max)) = (args.min_speakers, args.max_speakers)
        && min > max
    {
        let reason = format!("--min-speakers {min} is above --max-speakers {max}");
        return Err(PlanError(reason));
    }
    Ok(SpeakerBounds {
        num: args.num_speakers.map(NonZeroUsize::get),
        min: args.min_speakers.map(NonZeroUsize::get),
        max: args.max_speakers.map(NonZeroUsize::get),
    })
}

/// Whether `device` is the name of a device, be it there or not.
pub(super) fn check_device(device: &str) -> Result<(), PlanError> {
    let gpu = |part: &str| part.strip_prefix("cuda:").is_some_and(|number| number.parse::<u16>().is_ok());
    let parts: Vec<&str> = device.split(',').collect();
    let twice = parts.iter().enumerate().any(|(index, part)| parts[..index].contains(part));
    let known = matches!(device, "auto" | "cpu" | "cuda") || (parts.iter().all(|part| gpu(part)) && !twice);
    if !known {
        let reason =
            format!("--device {device}: must be auto, cpu, cuda, cuda:N or a list such as cuda:0,cuda:1");
        return Err(PlanError(reason));
    }
    Ok(())
}
