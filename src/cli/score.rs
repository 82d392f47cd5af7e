//! `speakrs-app score REF HYP`: scores turns that are there already, without audio or models.

use std::collections::{BTreeMap, HashSet};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Parser, ValueEnum};

use super::args::Args;
use super::exit::Exit;
use super::plan::Plan;
use super::progress::Terminal;
use super::run::Summary;
use crate::app::export::write;
use crate::app::scores::{Comparison, Form, Order, View, render};
use crate::timeline::rttm::{self, Rttm};
use crate::timeline::uem;

const AFTER_HELP: &str = "\
REF and HYP:
  an RTTM file of one or many recordings, or a folder of RTTM files (FILE.rttm, not those in folders below).
  Recordings are matched by the name in the RTTM lines.

The figures:
  DER  missed + false alarm + confusion over reference speech, with the best one-to-one mapping of speakers.
  A collar is the time left out on EACH SIDE of every reference boundary: 0.25 here is what tools that take the
  total width call 0.5. Turns of one speaker that overlap or touch are merged first, on both sides.
  A recording without a hypothesis counts as all missed and is named; one without a reference is not scored.

Exit codes:
  0  everything was scored      1  something could not be read, scored or written      2  the command line is wrong";

/// Scores speaker turns (RTTM) against a reference: DER and JER.
#[derive(Debug, Parser)]
#[command(name = "speakrs-app score", bin_name = "speakrs-app score", version, max_term_width = 110, after_help = AFTER_HELP)]
struct ScoreArgs {
    /// The true turns
    #[arg(value_name = "REF")]
    reference: PathBuf,

    /// The turns to judge
    #[arg(value_name = "HYP")]
    hypothesis: PathBuf,

    /// Score the regions of this UEM file [default: from the first to the last turn of both sides]
    #[arg(long, value_name = "FILE")]
    uem: Option<PathBuf>,

    /// Seconds left out on each side of a reference boundary; the table shows 0.25 beside it, or 0 beside 0.25
    #[arg(long, value_name = "SECONDS", default_value = "0", value_parser = seconds)]
    collar: f64,

    /// Leave out where two or more reference speakers talk at once
    #[arg(long)]
    skip_overlap: bool,

    #[command(flatten)]
    form: ReportArgs,

    /// Form of the report
    #[arg(long, value_name = "FORM", value_enum, default_value = "table")]
    format: ScoreForm,

    /// Write the report to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// What both ways to score share.
#[derive(Debug, Clone, clap::Args)]
pub struct ReportArgs {
    /// Order of the rows of a score report
    #[arg(long, value_name = "ORDER", value_enum, default_value = "name")]
    pub sort: Sort,

    /// Add a total for every number of reference speakers
    #[arg(long, value_name = "WHAT", value_enum)]
    pub by: Option<Group>,

    /// Add purity and coverage
    #[arg(long)]
    pub purity: bool,
}

/// Order of the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Sort {
    /// By name
    Name,
    /// Worst first
    Error,
}

/// What recordings are grouped by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Group {
    /// The number of reference speakers
    #[value(alias = "SPEAKERS")]
    Speakers,
}

/// Form of the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ScoreForm {
    /// Aligned columns
    Table,
    /// Everything, with the mapping of speakers and every error in time
    Json,
    /// Comma-separated values
    Csv,
    /// A Markdown table
    Md,
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if (0.0..=60.0).contains(&value) => Ok(value),
        _ => Err("expected seconds from 0 to 60".into()),
    }
}

impl ReportArgs {
    /// The view with `collar` first and the other usual one beside it.
    pub fn view(&self, form: Form, collar: f64, skip_overlap: bool) -> View {
        View {
            form,
            order: if self.sort == Sort::Error { Order::Error } else { Order::Name },
            collars: [collar, if collar == 0.25 { 0.0 } else { 0.25 }],
            skip_overlap,
            purity: self.purity,
            by_speakers: self.by.is_some(),
        }
    }
}

/// Scores as `arguments` (those after the word `score`) say.
pub fn main(arguments: &[std::ffi::OsString]) -> Exit {
    let name = std::ffi::OsString::from("speakrs-app score");
    let args = match ScoreArgs::try_parse_from(std::iter::once(&name).chain(arguments)) {
        Ok(args) => args,
        Err(error) => {
            let _ = error.print();
            return if error.use_stderr() { Exit::Usage } else { Exit::Done };
        }
    };
    match score(&args) {
        Ok(()) => Exit::Done,
        Err(reason) => {
            say(&reason);
            Exit::Failed
        }
    }
}

fn score(args: &ScoreArgs) -> Result<(), String> {
    let read = |path: &Path| rttm::read(path).map_err(|error| error.to_string());
    let (reference, hypothesis) = (read(&args.reference), read(&args.hypothesis));
    // Both sides are read before either is complained about, so that one run shows all that is wrong.
    let (reference, hypothesis) = match (reference, hypothesis) {
        (Ok(reference), Ok(hypothesis)) => (reference, hypothesis),
        (Err(first), Err(second)) => {
            say(&first);
            return Err(second);
        }
        (Err(error), _) | (_, Err(error)) => return Err(error),
    };
    let uem = args.uem.as_deref().map(uem::read).transpose().map_err(|error| error.to_string())?;
    note_skipped(&args.reference, &reference);
    note_skipped(&args.hypothesis, &hypothesis);
    let form = match args.format {
        ScoreForm::Table => Form::Table,
        ScoreForm::Json => Form::Json,
        ScoreForm::Csv => Form::Csv,
        ScoreForm::Md => Form::Markdown,
    };
    let view = args.form.view(form, args.collar, args.skip_overlap);
    let comparison = Comparison { reference, hypothesis, uem, provenance: BTreeMap::new() };
    let (text, messages) = render(&comparison, &view);
    messages.iter().for_each(|message| say(message));
    match &args.output {
        Some(path) => {
            write::atomically(path, text.as_bytes(), true).map_err(|e| format!("{}: {e}", path.display()))
        }
        None => print(&text),
    }
}

/// What the results of a batch are scored against.
pub struct Truth {
    reference: Rttm,
    uem: Option<uem::Uem>,
    view: View,
}

impl Truth {
    /// Reads `--reference` and `--uem`, before any work is done; `None` without `--reference`.
    ///
    /// # Errors
    /// One line if a file cannot be read or breaks its format.
    pub fn read(args: &Args) -> Result<Option<Self>, String> {
        let Some(reference) = &args.reference else { return Ok(None) };
        let reference = rttm::read(reference).map_err(|error| error.to_string())?;
        let uem = args.uem.as_deref().map(uem::read).transpose().map_err(|error| error.to_string())?;
        Ok(Some(Self { reference, uem, view: args.report.view(Form::Table, 0.0, false) }))
    }

    /// Prints how the recordings of `plan` fared. One that failed counts as all missed; the reference of recordings that
    /// are not in the batch is left out.
    pub fn score(
        mut self,
        plan: &Plan,
        summary: &Summary,
        provenance: BTreeMap<&'static str, String>,
        terminal: &Terminal,
    ) {
        let mut hypothesis = Rttm::default();
        let finished = summary.finished.iter().map(|&index| &plan.jobs[index]);
        for job in finished.chain(&plan.skipped) {
            let Some(path) = &job.rttm else { continue };
            match rttm::read_file(path) {
                // A recording without speech has no line that would tell its name.
                Ok(mut found) => {
                    let turns = found.recordings.remove(&job.uri).unwrap_or_default();
                    hypothesis.recordings.insert(job.uri.clone(), turns);
                }
                Err(error) => terminal.complain(&error.to_string()),
            }
        }
        let all = self.reference.recordings.len();
        let batch: HashSet<&str> =
            plan.jobs.iter().chain(&plan.skipped).map(|job| job.uri.as_str()).collect();
        self.reference.recordings.retain(|uri, _| batch.contains(uri.as_str()));
        let absent = all - self.reference.recordings.len();
        let comparison = Comparison { reference: self.reference, hypothesis, uem: self.uem, provenance };
        let (text, messages) = render(&comparison, &self.view);
        messages.iter().for_each(|message| terminal.complain(message));
        if absent > 0 {
            let what = if absent == 1 { "recording" } else { "recordings" };
            terminal.complain(&format!("{absent} {what} of the reference not in this batch, not scored"));
        }
        if !plan.skipped.is_empty() {
            let number = plan.skipped.len();
            let what = if number == 1 { "recording was" } else { "recordings were" };
            terminal.complain(&format!("{number} {what} skipped, scored from the RTTM that was there"));
        }
        if let Err(reason) = print(&text) {
            terminal.complain(&reason);
        }
    }
}

/// Other types of lines are allowed, but a file that holds nothing else is hardly what was meant.
fn note_skipped(path: &Path, rttm: &Rttm) {
    if rttm.skipped > 0 {
        let lines = if rttm.skipped == 1 { "line is" } else { "lines are" };
        say(&format!("{}: {} {lines} no SPEAKER line, skipped", path.display(), rttm.skipped));
    }
}

/// Writes to standard output; a reader who has seen enough (`| head`) is no error.
pub fn print(text: &str) -> Result<(), String> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(format!("cannot write the report: {error}"))
        }
        _ => Ok(()),
    }
}

fn say(message: &str) {
    let one_line: String = message.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let _ = writeln!(io::stderr(), "speakrs-app: {one_line}");
}
