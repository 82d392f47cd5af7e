//! What may be typed. Nothing is looked up or checked here beyond the form of each value.

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::builder::PossibleValue;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgAction, Parser, ValueEnum};

use super::score::ReportArgs;
use crate::app::export::{self, FORMATS, Format};
use crate::backend;
use crate::pipeline;

const AFTER_HELP: &str = "\
Inputs:
  FILE        any recording, whatever its extension
  DIR         the recordings in it (by extension; hidden ones are skipped); --recursive descends, but not into
              folders of results (NAME.speakers)
  'PATTERN'   *, ?, [..] and ** are expanded also where the shell does not; quote them
  @LIST       a UTF-8 text file with one file or folder per line, relative to the current folder;
              blank lines and lines that begin with # are skipped
  A recording that is named more than once is worked on once. To name a file that begins with @, write ./@name.

Results:
  a.wav gives a.rttm beside it, or in --output-dir, where the folders below a DIR or PATTERN are kept.
  The format wav gives a folder, a.speakers; it is replaced only if nothing but such results is in it.
  Should a.wav and a.mp3 meet, they give a.wav.rttm and a.mp3.rttm.
  Results appear whole or not at all. Messages go to standard error.

Scoring:
  speakrs-app score REF HYP  compares RTTM files without any audio; see speakrs-app score --help

Devices:
  speakrs-app devices        lists the GPUs and says which can be used; see speakrs-app devices --help
  speakrs-app bench FILES    measures the speed of every stage here; see speakrs-app bench --help

Exit codes:
  0    every recording is done (one without speech counts as done)
  1    at least one recording failed; the others are done
  2    the command line is wrong
  3    no recording was found
  4    the models or the requested device cannot be used
  130  stopped by Ctrl-C (SIGINT); 143 by SIGTERM. Finished results stay.";

/// Tells who spoke when in recordings. Works offline.
#[derive(Debug, Clone, Parser)]
#[command(name = "speakrs-app", bin_name = "speakrs-app", version, max_term_width = 110, after_help = AFTER_HELP)]
pub struct Args {
    /// Recordings, folders, quoted patterns or @lists
    #[arg(value_name = "FILES")]
    pub inputs: Vec<OsString>,

    /// Work on FILES without opening a window
    #[arg(long)]
    pub headless: bool,

    /// Put the results into this folder, which is made if need be [default: beside each recording]
    #[arg(long, value_name = "DIR")]
    pub output_dir: Option<PathBuf>,

    /// Format of the results; several may be given, separated by commas
    #[arg(long, value_name = "FORMAT", value_delimiter = ',', default_value = FORMATS[0].name,
          value_parser = format_parser())]
    pub format: Vec<&'static Format>,

    /// Descend into the folders of folders
    #[arg(long)]
    pub recursive: bool,

    /// Replace results that are there already
    #[arg(long, conflicts_with = "skip_existing")]
    pub overwrite: bool,

    /// Leave out recordings whose results are there already
    #[arg(long)]
    pub skip_existing: bool,

    /// Score the results against this RTTM file, or folder of them; recordings are matched by their stem
    #[arg(long, value_name = "RTTM")]
    pub reference: Option<PathBuf>,

    /// With --reference: score the regions of this UEM file
    #[arg(long, value_name = "FILE", requires = "reference")]
    pub uem: Option<PathBuf>,

    /// With --reference
    #[command(flatten)]
    pub report: ReportArgs,

    /// Exact number of speakers
    #[arg(long, value_name = "N", conflicts_with_all = ["min_speakers", "max_speakers"])]
    pub num_speakers: Option<NonZeroUsize>,

    /// Fewest speakers
    #[arg(long, value_name = "N")]
    pub min_speakers: Option<NonZeroUsize>,

    /// Most speakers
    #[arg(long, value_name = "N")]
    pub max_speakers: Option<NonZeroUsize>,

    /// How embeddings are computed [default: the fastest one that the models are validated for]
    #[arg(long, value_enum)]
    pub mode: Option<Mode>,

    /// Seconds between analysis windows, more than 0 and at most 10
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
    pub step: Option<f64>,

    /// Device to compute on: auto, cpu, cuda, cuda:N or several GPUs such as cuda:0,cuda:1
    #[arg(long, default_value = "auto")]
    pub device: String,

    /// Arithmetic of the embedding network: auto takes the fastest that keeps the accuracy (on a CPU fp32)
    #[arg(long, value_enum, default_value = "auto")]
    pub precision: Precision,

    /// Folder of the models [default: the ones that come with the program]
    #[arg(long, value_name = "DIR", env = "SPEAKRS_APP_MODELS")]
    pub models: Option<PathBuf>,

    /// Keep what the networks find in this folder: the same recording with another number of speakers then takes
    /// clustering only. About 18 MB per hour of audio; files in it may be deleted
    #[arg(long, value_name = "DIR", env = "SPEAKRS_APP_CACHE")]
    pub cache: Option<PathBuf>,

    /// Recordings decoded at the same time
    #[arg(long, value_name = "N", default_value = "2")]
    pub jobs: NonZeroUsize,

    /// Threads for the computation [default: one per processor core]
    #[arg(long, value_name = "N")]
    pub threads: Option<NonZeroUsize>,

    /// Print errors only
    #[arg(short, long, conflicts_with = "verbose")]
    pub quiet: bool,

    /// Print more about the work; -vv even more (RUST_LOG, if set, decides instead)
    #[arg(short, long, action = ArgAction::Count)]
    pub verbose: u8,

    /// Form of the messages on standard error; json gives one object per line and no progress bars
    #[arg(long, value_name = "FORM", value_enum, default_value = "text")]
    pub log_format: LogFormat,

    /// Colours in messages; auto honours NO_COLOR and TERM=dumb
    #[arg(long, value_name = "WHEN", value_enum, default_value = "auto")]
    pub color: Color,
}

/// How embeddings are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// Window by window, as pyannote does
    Accurate,
    /// The network runs once over the recording
    Fast,
}

impl From<Mode> for pipeline::Mode {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Accurate => Self::Accurate,
            Mode::Fast => Self::Fast,
        }
    }
}

/// Arithmetic of the embedding network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Precision {
    /// The fastest that keeps the accuracy of the embeddings
    Auto,
    /// 32-bit floating point, or an error of that class
    Fp32,
    /// Operands rounded to 10 bits of mantissa (GPUs from compute capability 8.0 on)
    Tf32,
    /// 16-bit operands, 32-bit sums (GPUs)
    Fp16,
}

impl From<Precision> for Option<backend::Precision> {
    fn from(precision: Precision) -> Self {
        match precision {
            Precision::Auto => None,
            Precision::Fp32 => Some(backend::Precision::Fp32),
            Precision::Tf32 => Some(backend::Precision::Tf32),
            Precision::Fp16 => Some(backend::Precision::Fp16),
        }
    }
}

/// Form of the messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Lines for people
    Text,
    /// One JSON object per line
    Json,
}

/// When to use colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal that has them
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// Looks formats up in the table, so that a format added there is known here.
fn format_parser() -> impl TypedValueParser<Value = &'static Format> {
    let names = FORMATS.iter().map(|format| PossibleValue::new(format.name).help(format.about));
    PossibleValuesParser::new(names)
        .map(|name| export::by_name(&name).expect("the parser lets through only names from the table"))
}
