//! What other threads do for the window: finding files, dialogs, reading sound, exporting, scoring.

use std::collections::HashMap;
use std::ffi::OsString;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::state::{EntryId, Evaluation, Media};
use super::timeline::model::{ErrorKind, ErrorStretch};
use crate::app::export::{self, Format, Report};
use crate::app::inputs::{self, Input};
use crate::app::jobs::{self, Existing, Job, Wishes};
use crate::app::peaks::Peaks;
use crate::audio::{self, Channels, SourceFacts};
use crate::pipeline::Diarization;
use crate::scoring::{self, Kind, Options};
use crate::timeline::rttm::{self, Rttm, Turn};

/// Recordings that were found, and what was not.
#[derive(Debug, Default)]
pub struct Found {
    /// Recordings, with the results that they get.
    pub recordings: Vec<(Input, Result<Job, String>)>,
    /// What cannot be worked on, and why.
    pub failures: Vec<(PathBuf, String)>,
    /// Folders without recordings.
    pub empty: Vec<PathBuf>,
}

/// What a thread has done.
#[derive(Debug)]
pub enum News {
    /// Recordings were found.
    Found(Found),
    /// The user chose files and folders to add.
    Chosen(Vec<OsString>),
    /// The user chose a folder for the export.
    ExportFolder(Option<PathBuf>),
    /// The user chose a reference.
    Reference(Option<PathBuf>),
    /// The sound of a recording was read.
    Sound(EntryId, Result<Media, String>),
    /// Results were written.
    Exported {
        /// How many.
        written: usize,
        /// Why others were not.
        problems: Vec<(PathBuf, String)>,
    },
    /// Edited results were written again.
    Saved(EntryId, Vec<(PathBuf, String)>),
    /// Results were scored.
    Scored(Result<Box<Evaluation>, String>),
    /// The devices were looked up.
    Devices(String),
}

/// Finds recordings and names their results.
pub fn find(arguments: &[OsString], formats: &[&'static Format], folder: Option<&Path>) -> Found {
    let found = inputs::find(arguments, true);
    let failures = found.failures.iter().map(|(path, error)| (path.clone(), error.to_string()));
    let failures = failures.collect();
    let recordings = assign(found.inputs, formats, folder);
    Found { recordings, failures, empty: found.empty }
}

/// Names the results of `inputs`. Whether they may replace others is decided when they are written.
pub fn assign(
    inputs: Vec<Input>,
    formats: &[&'static Format],
    folder: Option<&Path>,
) -> Vec<(Input, Result<Job, String>)> {
    let wishes =
        Wishes { formats: formats.to_vec(), folder: folder.map(Path::to_owned), existing: Existing::Replace };
    let assigned = jobs::assign(inputs.clone(), &wishes);
    let mut jobs: HashMap<PathBuf, Job> =
        assigned.jobs.into_iter().map(|job| (job.input.clone(), job)).collect();
    let reasons: HashMap<PathBuf, String> =
        assigned.failures.iter().map(|(path, error)| (path.clone(), error.to_string())).collect();
    let result = |input: Input| {
        let job = jobs.remove(&input.path);
        let reason =
            || reasons.get(&input.path).cloned().unwrap_or_else(|| "its results cannot be written".into());
        let job = job.ok_or_else(reason);
        (input, job)
    };
    inputs.into_iter().map(result).collect()
}

/// Reads the sound of a recording.
pub fn sound(path: &Path) -> Result<Media, String> {
    let waveform = audio::decode(path, Channels::Mix, &mut |_| ControlFlow::Continue(()));
    let samples = waveform.map_err(|error| error.to_string())?.samples;
    let peaks = Peaks::of(&samples);
    let whole = |v: &f32| (v.clamp(-1.0, 1.0) * f32::from(i16::MAX)).round() as i16;
    Ok(Media { peaks: Arc::new(peaks), samples: Arc::new(samples.iter().map(whole).collect()) })
}

/// A result to be written.
#[derive(Debug)]
pub struct Finished {
    /// Its recording.
    pub input: Input,
    /// What the recording is called in RTTM.
    pub uri: String,
    /// Who spoke when.
    pub diarization: Diarization,
    /// What it was decoded from.
    pub source: SourceFacts,
}

impl Finished {
    /// Writes it in one format.
    fn write(&self, format: &'static Format, path: &Path, replace: bool) -> Result<(), String> {
        let file = self.input.path.file_name().unwrap_or_default().to_string_lossy();
        let report = Report {
            path: &self.input.path,
            file: &file,
            uri: &self.uri,
            diarization: &self.diarization,
            source: &self.source,
        };
        export::write_one(format, &report, path, replace).map_err(|error| error.to_string())
    }
}

/// Writes results in `formats`, beside their recordings or into `folder`.
pub fn export(
    results: &[Finished],
    formats: &[&'static Format],
    folder: Option<&Path>,
    replace: bool,
) -> News {
    let inputs = results.iter().map(|result| result.input.clone()).collect();
    let (mut written, mut problems) = (0, Vec::new());
    for (result, (input, job)) in results.iter().zip(assign(inputs, formats, folder)) {
        match job {
            Err(reason) => problems.push((input.path, reason)),
            Ok(job) => {
                for output in &job.outputs {
                    match result.write(output.format, &output.path, replace) {
                        Ok(()) => written += 1,
                        Err(reason) => problems.push((output.path.clone(), reason)),
                    }
                }
            }
        }
    }
    News::Exported { written, problems }
}

/// Writes the results of an edited recording again.
pub fn save(id: EntryId, result: &Finished, job: &Job, written: &[PathBuf]) -> News {
    let outputs = job.outputs.iter().filter(|output| written.contains(&output.path));
    let problem = |output: &jobs::Output| {
        let reason = result.write(output.format, &output.path, true).err()?;
        Some((output.path.clone(), reason))
    };
    News::Saved(id, outputs.filter_map(problem).collect())
}

/// Scores results against the reference at `path`: collar 0, overlap scored.
///
/// # Errors
/// If the reference cannot be read, in plain words.
pub fn score(path: &Path, results: &[(EntryId, String, Diarization)]) -> Result<Box<Evaluation>, String> {
    let reference = rttm::read(path).map_err(|error| error.to_string())?;
    let turns = |result: &Diarization| -> Vec<Turn> {
        let turn =
            |s: &crate::timeline::Segment| Turn::new(s.start, s.end, &result.speakers[s.speaker].label);
        result.segments.iter().map(turn).collect()
    };
    let options = Options { collar: 0.0, skip_overlap: false };
    let (mut rows, mut errors, mut without) = (Vec::new(), Vec::new(), Vec::new());
    let mut total = scoring::Der::default();
    for (id, uri, result) in results {
        let Some(truth) = reference.recordings.get(uri) else {
            without.push(*id);
            continue;
        };
        let of = |turns: Vec<Turn>| Rttm { recordings: [(uri.clone(), turns)].into(), skipped: 0 };
        let found = turns(result);
        let report = scoring::score(&of(truth.clone()), &of(found.clone()), None, options);
        rows.extend(report.rows.into_iter().map(|row| (*id, row)));
        total.total += report.der.total;
        total.missed += report.der.missed;
        total.false_alarm += report.der.false_alarm;
        total.confusion += report.der.confusion;
        let stretch = |interval: scoring::Interval| {
            let kind = match interval.kind {
                Kind::Correct => return None,
                Kind::Missed => ErrorKind::Missed,
                Kind::FalseAlarm => ErrorKind::FalseAlarm,
                Kind::Confusion => ErrorKind::Confusion,
            };
            Some(ErrorStretch { start: interval.start, end: interval.end, kind })
        };
        let stretches = scoring::confusion(truth, &found, None, options).into_iter().filter_map(stretch);
        errors.push((*id, stretches.collect()));
    }
    Ok(Box::new(Evaluation { reference: path.to_owned(), rows, total, errors, without }))
}
