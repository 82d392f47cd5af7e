//! Which results each recording gets, under which names; everything that can be checked before the work begins.
//! Depends on `inputs` and `export`.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

use super::export::write::{self, WriteError};
use super::export::{Format, Render};
use super::inputs::Input;
use crate::timeline::rttm;

/// A result file to be written.
#[derive(Debug, Clone)]
pub struct Output {
    /// Its format.
    pub format: &'static Format,
    /// Where it goes.
    pub path: PathBuf,
}

/// A recording and the results it gets.
#[derive(Debug, Clone)]
pub struct Job {
    /// Path of the recording.
    pub input: PathBuf,
    /// Size of the recording's file.
    pub bytes: u64,
    /// True name of the recording's file, without its folder.
    pub file: String,
    /// Name of the recording in formats that allow no white space.
    pub uri: String,
    /// Where its RTTM result is or will be, if one is wanted, also when `outputs` leaves it out as existing.
    pub rttm: Option<PathBuf>,
    /// The results to write.
    pub outputs: Vec<Output>,
    /// Whether a result that was asked for is known to be impossible, so that the job cannot fully succeed.
    pub incomplete: bool,
}

/// What to do about a result that is there already.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Existing {
    /// The recording fails.
    #[default]
    Refuse,
    /// It is replaced.
    Replace,
    /// It stays; a recording that has all its results is not worked on.
    Skip,
}

/// Why a recording cannot be worked on. The text does not repeat the path; the caller prints it.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// The result cannot go where it should.
    #[error("{}: {error}", .path.display())]
    Output {
        /// The result's path.
        path: PathBuf,
        /// What is wrong.
        error: WriteError,
    },
    /// Another recording would get the same result file.
    #[error("its results would have the same name as those of {}", .0.display())]
    Collision(PathBuf),
    /// The result would replace a recording.
    #[error("its result would replace the recording {}", .0.display())]
    OverInput(PathBuf),
}

/// Where results go and what they are.
#[derive(Debug, Clone)]
pub struct Wishes {
    /// Formats of the results.
    pub formats: Vec<&'static Format>,
    /// Folder of the results; `None`: beside the recording.
    pub folder: Option<PathBuf>,
    /// What to do about results that are there already.
    pub existing: Existing,
}

/// The work to do, and what is known not to be done.
#[derive(Debug, Default)]
pub struct Jobs {
    /// Recordings to work on.
    pub jobs: Vec<Job>,
    /// Recordings that have all their results already.
    pub skipped: Vec<Job>,
    /// Recordings that cannot be worked on, or results of theirs that cannot be written.
    pub failures: Vec<(PathBuf, JobError)>,
    /// Number of recordings that are not worked on because of a failure.
    pub failed: usize,
}

/// Names the results of `inputs` and checks that they can be written. Makes the folders of the results.
pub fn assign(inputs: Vec<Input>, wishes: &Wishes) -> Jobs {
    let names = name(&inputs, wishes.folder.as_deref());
    let recordings = Recordings::of(&inputs);
    let mut jobs = Jobs::default();
    let mut prepared = HashSet::new();
    for (input, name) in inputs.into_iter().zip(names) {
        let name = match name {
            Ok(name) => name,
            Err(error) => {
                jobs.failures.push((input.path, error));
                jobs.failed += 1;
                continue;
            }
        };
        let file = input.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let outputs = name.outputs(&wishes.formats);
        let rttm = outputs.iter().find(|output| output.format.name == "rttm");
        let mut job = Job {
            input: input.path,
            bytes: input.bytes,
            file,
            uri: uri(&name.base),
            rttm: rttm.map(|output| output.path.clone()),
            outputs,
            incomplete: false,
        };
        match check(&mut job, wishes.existing, &recordings, &mut prepared, &mut jobs.failures) {
            Ok(()) if !job.outputs.is_empty() => jobs.jobs.push(job),
            Ok(()) if job.incomplete => jobs.failed += 1,
            Ok(()) => jobs.skipped.push(job),
            Err(error) => {
                jobs.failures.push((job.input, error));
                jobs.failed += 1;
            }
        }
    }
    jobs
}

/// Keeps the outputs that are to be written. An output that exists fails the recording; one that is
/// impossible is reported in `failures` and does not keep the others from being written.
fn check(
    job: &mut Job,
    existing: Existing,
    recordings: &Recordings,
    prepared: &mut HashSet<PathBuf>,
    failures: &mut Vec<(PathBuf, JobError)>,
) -> Result<(), JobError> {
    let mut kept = Vec::new();
    for output in std::mem::take(&mut job.outputs) {
        if let Some(recording) = recordings.replaced_by(&output) {
            return Err(JobError::OverInput(recording));
        }
        match output.format.check_target(&output.path, existing == Existing::Replace) {
            Ok(()) => kept.push(output),
            Err(WriteError::Exists) if existing == Existing::Skip => {}
            Err(error @ WriteError::Exists) => return Err(JobError::Output { path: output.path, error }),
            Err(error) => {
                failures.push((job.input.clone(), JobError::Output { path: output.path, error }));
                job.incomplete = true;
            }
        }
    }
    if let Some(output) = kept.first() {
        let folder = write::folder_of(&output.path);
        if !prepared.contains(folder) {
            write::prepare_folder(folder)
                .map_err(|error| JobError::Output { path: folder.to_owned(), error })?;
            prepared.insert(folder.to_owned());
        }
    }
    job.outputs = kept;
    Ok(())
}

/// Where the recordings are, links followed.
struct Recordings {
    files: HashSet<PathBuf>,
    folders: HashSet<PathBuf>,
}

impl Recordings {
    fn of(inputs: &[Input]) -> Self {
        let files: HashSet<PathBuf> = inputs.iter().map(|input| input.canonical.clone()).collect();
        let folders = files.iter().filter_map(|file| file.parent()).map(Path::to_owned).collect();
        Self { files, folders }
    }

    /// The recording that `output` would replace.
    fn replaced_by(&self, output: &Output) -> Option<PathBuf> {
        let path = fs::canonicalize(&output.path).ok()?;
        match output.format.render {
            Render::File(_) => self.files.contains(&path).then(|| output.path.clone()),
            Render::Folder { .. } if !self.folders.contains(&path) => None,
            Render::Folder { .. } => self.files.iter().find(|file| file.parent() == Some(&path)).cloned(),
        }
    }
}

/// Folder and file name, short of the format's extension, of a recording's results.
#[derive(Debug)]
struct Name {
    folder: PathBuf,
    base: OsString,
    /// Whether `base` is the recording's whole name.
    whole: bool,
}

impl Name {
    fn outputs(&self, formats: &[&'static Format]) -> Vec<Output> {
        let path = |format: &Format| {
            let mut name = self.base.clone();
            name.push(".");
            name.push(format.extension);
            self.folder.join(name)
        };
        formats.iter().map(|&format| Output { format, path: path(format) }).collect()
    }
}

/// Names the results after the recording without its extension. Where that is ambiguous, all recordings
/// concerned keep their extension (`a.wav` and `a.mp3` give `a.wav.rttm` and `a.mp3.rttm`).
fn name(inputs: &[Input], folder: Option<&Path>) -> Vec<Result<Name, JobError>> {
    let mut names: Vec<Name> = inputs
        .iter()
        .map(|input| Name {
            folder: match folder {
                Some(folder) => folder.join(&input.below),
                None => input.path.parent().unwrap_or(Path::new("")).to_owned(),
            },
            base: input.path.file_stem().unwrap_or_default().to_owned(),
            whole: false,
        })
        .collect();
    let folders: Vec<PathBuf> = names
        .iter()
        .map(|name| fs::canonicalize(write::folder_of(&name.folder.join("x"))).unwrap_or(name.folder.clone()))
        .collect();
    loop {
        let groups = group(&names, &folders);
        let mut changed = false;
        for &i in groups.values().filter(|members| members.len() > 1).flatten() {
            if !names[i].whole {
                names[i].base = inputs[i].path.file_name().unwrap_or_default().to_owned();
                names[i].whole = true;
                changed = true;
            }
        }
        if !changed {
            let mut clashes = HashMap::new();
            for members in groups.values().filter(|members| members.len() > 1) {
                for &i in members {
                    let other = if i == members[0] { members[1] } else { members[0] };
                    clashes.insert(i, inputs[other].path.clone());
                }
            }
            let settle = |(i, name)| clashes.remove(&i).map_or(Ok(name), |p| Err(JobError::Collision(p)));
            return names.into_iter().enumerate().map(settle).collect();
        }
    }
}

/// Indices of the recordings whose results would have the same path.
fn group(names: &[Name], folders: &[PathBuf]) -> HashMap<(PathBuf, OsString), Vec<usize>> {
    let mut groups: HashMap<_, Vec<usize>> = HashMap::new();
    for (i, name) in names.iter().enumerate() {
        // These systems take `A.rttm` and `a.rttm` for the same file.
        let base = match cfg!(any(windows, target_os = "macos")) {
            true => name.base.to_string_lossy().to_lowercase().into(),
            false => name.base.clone(),
        };
        groups.entry((folders[i].clone(), base)).or_default().push(i);
    }
    groups
}

/// A name without white space and control characters, as RTTM needs it.
pub fn uri(name: &OsStr) -> String {
    rttm::field(&name.to_string_lossy()).into_owned()
}
