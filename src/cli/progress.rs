//! What the user sees on standard error: messages, progress bars, log; and the signals that stop the work.
//! Standard output stays free for data. A closed standard error never stops the work.

use std::collections::HashMap;
use std::env;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

use super::args::{Args, Color, LogFormat};
use super::run::Summary;
use crate::app::jobs::Job;
use crate::clustering::SpeakerBounds;
use crate::pipeline::Stage;
use crate::pipeline::batch::{Observer, Outcome};

/// Where messages go.
pub struct Terminal {
    format: LogFormat,
    quiet: bool,
    color: bool,
    screen: Screen,
}

impl Terminal {
    /// Sets up messages and the log as `args` and the environment wish.
    pub fn new(args: &Args) -> Self {
        let dumb = env::var_os("TERM").is_some_and(|term| term == "dumb");
        let terminal = io::stderr().is_terminal() && !dumb;
        let no_color = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let color = match args.color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => terminal && !no_color,
        };
        let bars = terminal && !args.quiet && args.log_format == LogFormat::Text;
        let screen = Screen { bars: bars.then(MultiProgress::new) };
        start_log(args, color, &screen);
        Self { format: args.log_format, quiet: args.quiet, color, screen }
    }

    /// Reports something that concerns no recording in particular.
    pub fn complain(&self, reason: &str) {
        match self.format {
            LogFormat::Text => self.print("31", reason),
            LogFormat::Json => tracing::error!("{reason}"),
        }
    }

    /// Says something that is good to know and concerns no recording in particular.
    pub fn note(&self, text: &str) {
        match self.format {
            LogFormat::Text if self.quiet => {}
            LogFormat::Text => self.print("", text),
            LogFormat::Json => tracing::info!("{text}"),
        }
    }

    /// Reports a recording that failed.
    pub fn fail(&self, path: &Path, reason: &str) {
        match self.format {
            LogFormat::Text => self.print("31", &format!("{}: {reason}", path.display())),
            LogFormat::Json => tracing::error!(file = %path.display(), reason, "failed"),
        }
    }

    /// Reports something odd that did not keep a recording from being done.
    pub fn warn(&self, path: &Path, reason: &str) {
        match self.format {
            LogFormat::Text if self.quiet => {}
            LogFormat::Text => self.print("33", &format!("{}: warning: {reason}", path.display())),
            LogFormat::Json => tracing::warn!(file = %path.display(), reason, "warning"),
        }
    }

    /// Reports a recording whose results are there already.
    pub fn skip(&self, path: &Path) {
        match self.format {
            LogFormat::Text if self.quiet => {}
            LogFormat::Text => self.print("", &format!("{}: skipped, has its results", path.display())),
            LogFormat::Json => tracing::info!(file = %path.display(), "skipped"),
        }
    }

    /// Reports a recording that is done.
    pub fn done(&self, job: &Job, outcome: &Outcome) {
        let Outcome { diarization, .. } = outcome;
        let seconds: f64 = diarization.timings.iter().map(|(_, seconds)| seconds).sum();
        let (speakers, turns) = (diarization.speakers.len(), diarization.segments.len());
        let file = job.input.display();
        if self.format == LogFormat::Text && !self.quiet {
            let found = match turns {
                0 => "no speech found".to_owned(),
                _ => format!("{}, {}", count(speakers, "speaker"), count(turns, "turn")),
            };
            let times = format!("{} of audio in {}", clock(diarization.duration), clock(seconds));
            self.print("", &format!("{file}: {found}, {times}"));
        }
        tracing::info!(
            %file,
            speakers,
            turns,
            duration = diarization.duration,
            seconds,
            stages = %stages(&diarization.timings),
            model = %diarization.model,
            device = %diarization.backend.device,
            precision = %diarization.backend.precision,
            mode = diarization.settings.mode.name(),
            "done"
        );
    }

    /// Reports how the batch went, in one line.
    pub fn summary(&self, summary: &Summary) {
        let &Summary { done, failed, skipped, unfinished, .. } = summary;
        let (audio, seconds) = (summary.audio, summary.elapsed.as_secs_f64());
        match self.format {
            LogFormat::Text if self.quiet => {}
            LogFormat::Text => self.print("", &summary_text(summary)),
            LogFormat::Json => {
                tracing::info!(done, failed, skipped, unfinished, audio, seconds, "summary");
            }
        }
    }

    /// Watches the work on `jobs`, with progress bars where they can be seen.
    pub fn watch<'a>(&self, jobs: &'a [Job], stop: &'a Stop) -> Watch<'a> {
        Watch { bars: self.screen.bars.as_ref().map(|screen| Bars::new(screen, jobs)), stop }
    }

    /// One line, control characters in file names made harmless.
    fn print(&self, color: &str, text: &str) {
        let name = match self.color && !color.is_empty() {
            true => format!("\x1b[{color}mspeakrs-app:\x1b[0m"),
            false => "speakrs-app:".to_owned(),
        };
        self.screen.write(format!("{name} {}\n", harmless(text)).as_bytes());
    }
}

fn stages(timings: &[(Stage, f64)]) -> String {
    let stage = |(stage, seconds): &(Stage, f64)| format!("{stage:?} {seconds:.2} s").to_lowercase();
    timings.iter().map(stage).collect::<Vec<_>>().join(", ")
}

/// What the user asked for as to the number of speakers.
pub fn bounds_text(bounds: &SpeakerBounds) -> String {
    match (bounds.num, bounds.min, bounds.max) {
        (Some(exact), ..) => format!("exactly {exact}"),
        (None, None, None) => "counted".to_owned(),
        (None, Some(min), None) => format!("at least {min}"),
        (None, None, Some(max)) => format!("at most {max}"),
        (None, Some(min), Some(max)) => format!("{min} to {max}"),
    }
}

fn summary_text(summary: &Summary) -> String {
    let mut parts = vec![format!("{} done", summary.done)];
    for (number, what) in
        [(summary.failed, "failed"), (summary.skipped, "skipped"), (summary.unfinished, "not finished")]
    {
        if number > 0 {
            parts.push(format!("{number} {what}"));
        }
    }
    let mut text = parts.join(", ");
    let seconds = summary.elapsed.as_secs_f64();
    if summary.done > 0 && seconds > 0.0 {
        let speed = summary.audio / seconds;
        let (audio, seconds) = (clock(summary.audio), clock(seconds));
        text += &format!("; {audio} of audio in {seconds}, {speed:.1} times real time");
    }
    text
}

/// `text` on one line and without characters that a terminal would act upon.
fn harmless(text: &str) -> String {
    let harmless = |c: char| match c {
        '\n' => ' ',
        c if c.is_control() => char::REPLACEMENT_CHARACTER,
        c => c,
    };
    text.chars().map(harmless).collect()
}

fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// `75.4` gives `1:15`, `4000` gives `1:06:40`, short times keep a decimal: `7.5 s`.
pub fn clock(seconds: f64) -> String {
    if seconds < 60.0 {
        return format!("{seconds:.1} s");
    }
    let whole = seconds.round() as u64;
    let (hours, minutes, seconds) = (whole / 3600, whole / 60 % 60, whole % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{seconds:02}") } else { format!("{minutes}:{seconds:02}") }
}

/// Starts the log. `RUST_LOG` decides what it holds, else `-v` and `-q`.
fn start_log(args: &Args, color: bool, screen: &Screen) {
    let json = args.log_format == LogFormat::Json;
    // What libraries log about damaged files reaches the user as that file's error.
    let default = match (args.verbose, json) {
        _ if args.quiet => "off,speakrs_app=error",
        (0, false) => "off,speakrs_app=warn",
        (0, true) | (1, _) => "off,speakrs_app=info",
        _ => "info,speakrs_app=debug",
    };
    let wish = env::var("RUST_LOG").ok().filter(|wish| !wish.is_empty());
    let filter = wish.and_then(|wish| EnvFilter::try_new(wish).ok());
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter.unwrap_or_else(|| EnvFilter::new(default)))
        .with_writer(screen.clone())
        .with_ansi(color)
        .log_internal_errors(false);
    let _ = match json {
        true => log.json().flatten_event(true).with_target(false).try_init().is_ok(),
        false => log.without_time().with_target(false).try_init().is_ok(),
    };
}

/// Standard error, with the progress bars moved out of the way of what is written.
#[derive(Clone)]
struct Screen {
    bars: Option<MultiProgress>,
}

impl Screen {
    fn write(&self, bytes: &[u8]) {
        let write = || {
            // With standard error gone there is nobody to tell; the results matter more.
            let _ = io::stderr().lock().write_all(bytes);
        };
        match &self.bars {
            Some(bars) => bars.suspend(write),
            None => write(),
        }
    }
}

impl<'a> MakeWriter<'a> for Screen {
    type Writer = LogLine;

    fn make_writer(&'a self) -> LogLine {
        LogLine(self.clone())
    }
}

/// Takes one event of the log, which arrives in one piece.
struct LogLine(Screen);

impl Write for LogLine {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Whether a signal asks to stop. A second one ends the program at once.
pub struct Stop {
    signal: Arc<AtomicUsize>,
}

impl Stop {
    /// Stopped by nothing.
    pub fn never() -> Self {
        Self { signal: Arc::default() }
    }

    /// Stopped by SIGINT and SIGTERM.
    ///
    /// # Errors
    /// If the operating system refuses to register them.
    pub fn on_signals() -> io::Result<Self> {
        let stop = Self::never();
        let again = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // In this order: the first signal finds `again` unset and sets it.
            flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&again))?;
            flag::register(signal, Arc::clone(&again))?;
            flag::register_usize(signal, Arc::clone(&stop.signal), signal as usize)?;
        }
        Ok(stop)
    }

    /// The signal that asked to stop.
    pub fn signal(&self) -> Option<u8> {
        match self.signal.load(Ordering::Relaxed) {
            0 => None,
            signal => u8::try_from(signal).ok(),
        }
    }
}

/// Follows a batch: draws its progress and passes on the wish to stop.
pub struct Watch<'a> {
    bars: Option<Bars<'a>>,
    stop: &'a Stop,
}

impl Watch<'_> {
    /// Recording `item` needs no bar any more.
    pub fn finished(&self, item: usize) {
        if let Some(bars) = &self.bars {
            bars.finished(item);
        }
    }
}

impl Observer for Watch<'_> {
    fn progress(&self, item: usize, stage: Stage, done: f32) {
        if let Some(bars) = &self.bars {
            bars.progress(item, stage, done);
        }
    }
    fn stopped(&self) -> bool {
        self.stop.signal().is_some()
    }
}

/// A bar over all recordings and one for each that is being worked on.
struct Bars<'a> {
    screen: MultiProgress,
    jobs: &'a [Job],
    begin: Instant,
    total: ProgressBar,
    state: Mutex<BarState>,
}

#[derive(Default)]
struct BarState {
    active: HashMap<usize, (Stage, ProgressBar)>,
    bytes_done: u64,
}

const STEPS: u64 = 1000;

impl<'a> Bars<'a> {
    fn new(screen: &MultiProgress, jobs: &'a [Job]) -> Self {
        let total = screen.add(ProgressBar::new(jobs.len() as u64));
        total.set_style(style("{bar:24} {pos} of {len} recordings, {elapsed} so far{msg}"));
        Self { screen: screen.clone(), jobs, begin: Instant::now(), total, state: Mutex::default() }
    }

    fn progress(&self, item: usize, stage: Stage, done: f32) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (current, bar) = state.active.entry(item).or_insert_with(|| {
            let bar = self.screen.insert_before(&self.total, ProgressBar::new(STEPS));
            bar.set_style(style("{bar:24} {percent:>3} % {msg}, {eta} left"));
            bar.set_message(bar_text(&self.jobs[item], stage));
            (stage, bar)
        });
        if *current != stage {
            *current = stage;
            // The measured speed, and so the time left, starts afresh with each stage.
            bar.reset();
            bar.set_message(bar_text(&self.jobs[item], stage));
        }
        bar.set_position((f64::from(done.clamp(0.0, 1.0)) * STEPS as f64) as u64);
    }

    fn finished(&self, item: usize) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, bar)) = state.active.remove(&item) {
            bar.finish_and_clear();
            self.screen.remove(&bar);
        }
        state.bytes_done += self.jobs[item].bytes;
        let bytes = self.jobs.iter().map(|job| job.bytes).sum();
        let left = time_left(self.begin.elapsed(), state.bytes_done, bytes).filter(|left| !left.is_zero());
        let left = left.map(|left| format!(", about {} left", clock(left.as_secs_f64())));
        self.total.set_message(left.unwrap_or_default());
        self.total.inc(1);
    }
}

impl Drop for Bars<'_> {
    fn drop(&mut self) {
        self.total.finish_and_clear();
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

fn bar_text(job: &Job, stage: Stage) -> String {
    let stage = match stage {
        Stage::Decode => "reading",
        Stage::Segmentation => "finding speech",
        Stage::Embedding => "comparing voices",
        Stage::Clustering => "telling speakers apart",
        Stage::Write => "writing",
    };
    harmless(&format!("{}: {stage}", job.file))
}

/// Time that the rest takes at the speed so far.
pub fn time_left(elapsed: Duration, done: u64, all: u64) -> Option<Duration> {
    let left = all.checked_sub(done)?;
    (done > 0).then(|| elapsed.mul_f64(left as f64 / done as f64))
}
