//! The application behind the window: takes in what other threads have done, draws the views, does what they ask for.

use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use eframe::egui::{
    Align2, CentralPanel, Color32, Context, Event, FontId, Id, Key, LayerId, Modifiers, Order, Panel, Ui,
};

use super::command::Command;
use super::news::{self, Found, News};
use super::state::{Dialog, EngineState, Entry, Page, Sound, State, Status};
use super::text::{ENGLISH, Texts};
use super::views::{self, View, menu::Menu};
use super::window::Options;
use super::{theme, timeline};
use crate::app::background::{Background, Wake};
use crate::app::document::{Document, Edit};
use crate::app::worker::{self, Worker};

/// Time after the last edit until written results are brought up to date.
const CALM: Duration = Duration::from_millis(800);

/// State, threads and views.
pub struct App {
    /// What is shown.
    pub state: State,
    pub(super) timeline: timeline::State,
    pub(super) menu: Option<Menu>,
    pub(super) worker: Worker,
    /// Files, exports and scores, in order.
    pub(super) files: Background<News>,
    /// Dialogs of the system, which wait for the user.
    pub(super) dialogs: Background<News>,
    /// The sound of recordings.
    pub(super) sounds: Background<News>,
    pub(super) options: Options,
    texts: &'static Texts,
    /// When the last edit was, in seconds of the window's clock, if written results are behind.
    pub(super) edited: Option<f64>,
}

impl App {
    /// Starts the threads and adds the recordings that the program was started with.
    pub fn new(context: &Context, options: &Options) -> Self {
        theme::install(context);
        let wake: Wake = {
            let context = context.clone();
            Arc::new(move || context.request_repaint())
        };
        let worker = Worker::start(options.choice.clone(), options.decoders, Arc::clone(&wake));
        let start = |name: &str| Background::start(name, Arc::clone(&wake));
        let mut app = Self {
            state: State::default(),
            timeline: timeline::State::default(),
            menu: None,
            worker,
            files: start("files"),
            dialogs: start("dialogs"),
            sounds: start("sounds"),
            options: options.clone(),
            texts: &ENGLISH,
            edited: None,
        };
        app.state.transport.unavailable = Some("this version does not play sound yet".into());
        if !options.inputs.is_empty() {
            app.add(options.inputs.clone());
        }
        app
    }

    /// Adds recordings and folders to the queue.
    pub(super) fn add(&mut self, arguments: Vec<OsString>) {
        let (formats, folder) = (self.options.formats.clone(), self.options.folder.clone());
        self.files.add(move || News::Found(news::find(&arguments, &formats, folder.as_deref())));
    }

    /// Takes in what other threads have done.
    fn take_in(&mut self) {
        let mut results = self.files.results();
        results.extend(self.dialogs.results());
        results.extend(self.sounds.results());
        for result in results {
            match result {
                Ok(news) => self.take_news(news),
                Err(reason) => self.state.notice(reason, true),
            }
        }
        for event in self.worker.events() {
            self.take_event(event);
        }
        for progress in self.worker.progress() {
            let speed = self.state.speed.clone();
            let Some(entry) = self.state.entry_mut(progress.task) else { continue };
            if matches!(entry.status, Status::Waiting | Status::Running { .. }) {
                let fraction = speed.fraction(progress.stage, progress.done);
                let left = speed.left(fraction, progress.elapsed, entry.input.bytes);
                entry.status = Status::Running { stage: progress.stage, fraction, left };
            }
        }
    }

    fn take_news(&mut self, news: News) {
        match news {
            News::Found(found) => self.take_found(found),
            News::Chosen(paths) if paths.is_empty() => {}
            News::Chosen(paths) => self.add(paths),
            News::ExportFolder(folder) => {
                if let (Some(Dialog::Export(export)), Some(folder)) = (&mut self.state.dialog, folder) {
                    export.folder = Some(folder);
                }
            }
            News::Reference(path) => {
                if let Some(path) = path {
                    self.apply(Command::Evaluate(path));
                }
            }
            News::Sound(id, sound) => {
                if let Some(open) = self.state.open.as_mut().filter(|open| open.entry == id) {
                    open.sound = sound.map_or_else(Sound::Failed, Sound::Ready);
                }
            }
            News::Exported { written, problems } => {
                if written > 0 {
                    self.state.notice(format!("{written} files written"), false);
                }
                for (path, reason) in problems {
                    self.state.notice(format!("{}: {reason}", path.display()), true);
                }
            }
            News::Saved(id, problems) => {
                if let Some(entry) = self.state.entry_mut(id) {
                    entry.problems = problems;
                }
            }
            News::Scored(Ok(evaluation)) => {
                self.state.evaluation = Some(*evaluation);
                self.state.refresh();
            }
            News::Scored(Err(reason)) => {
                self.state.reference = None;
                self.state.notice(reason, true);
            }
            News::Devices(text) => self.state.devices = Some(text),
        }
    }

    fn take_found(&mut self, found: Found) {
        for path in found.empty {
            self.state.notice(format!("{}: {}", path.display(), self.texts.no_recordings_in), true);
        }
        for (path, reason) in found.failures {
            self.state.notice(format!("{}: {reason}", path.display()), true);
        }
        for (input, job) in found.recordings {
            if self.state.holds(&input.canonical).is_some() {
                self.state.notice(format!("{}: {}", input.path.display(), self.texts.already_listed), false);
                continue;
            }
            let id = self.state.next_id;
            self.state.next_id += 1;
            match job {
                Ok(job) => {
                    self.state.entries.push(Entry::new(id, input, Some(job)));
                    self.enqueue(id, false);
                }
                Err(reason) => {
                    let status = Status::Failed(reason);
                    self.state.entries.push(Entry { status, ..Entry::new(id, input, None) });
                }
            }
            if self.state.open.is_none() {
                self.apply(Command::Open(id));
                self.apply(Command::Select(vec![id]));
            }
        }
    }

    fn take_event(&mut self, event: worker::Event) {
        match event {
            worker::Event::Opened(opened) => self.state.engine = EngineState::Ready(opened),
            worker::Event::NotOpened(reason) => self.state.engine = EngineState::Unusable(reason),
            worker::Event::Done { task, outcome, written, problems, inference } => {
                let timings = outcome.diarization.timings.clone();
                let Some(entry) = self.state.entry_mut(task) else { return };
                entry.status = Status::Done;
                let bounds = entry.bounds;
                entry.document = Some(Document::new(outcome.diarization, outcome.source));
                (entry.written, entry.problems, entry.inference) = (written, problems, inference);
                entry.saved = 0;
                let bytes = entry.input.bytes;
                self.state.speed.learn(&timings, bytes);
                if let Some(open) = self.state.open.as_mut().filter(|open| open.entry == task) {
                    open.bounds = bounds;
                    self.timeline = timeline::State::default();
                }
                self.state.refresh();
                self.score();
            }
            worker::Event::Failed { task, reason } => {
                if let Some(entry) = self.state.entry_mut(task) {
                    entry.status = Status::Failed(reason);
                }
            }
            worker::Event::Cancelled { task } => {
                if let Some(entry) = self.state.entry_mut(task) {
                    entry.status = if entry.document.is_some() { Status::Done } else { Status::Cancelled };
                }
            }
            worker::Event::Clustered { task, result } => {
                let Some(entry) = self.state.entry_mut(task) else { return };
                entry.clustering = false;
                let name = entry.name();
                match (result, &mut entry.document) {
                    (Ok(Some(result)), Some(document)) => {
                        let warnings = result.warnings.clone();
                        let replaced = document.apply(Edit::Replace(result));
                        warnings
                            .into_iter()
                            .for_each(|text| self.state.notice(format!("{name}: {text}"), false));
                        if let Err(error) = replaced {
                            self.state.notice(format!("{name}: {error}"), true);
                        }
                        self.touched(task);
                    }
                    (Ok(_), _) => self.apply(Command::Retry(vec![task], false)),
                    (Err(reason), _) => self.state.notice(format!("{name}: {reason}"), true),
                }
            }
        }
    }

    /// Keys that work wherever the focus is, unless a text is being typed.
    fn keys(&self, ui: &Ui, commands: &mut Vec<Command>) {
        let typing =
            ui.ctx().memory(|memory| memory.focused().is_some()) && ui.ctx().egui_wants_keyboard_input();
        let pressed = |modifiers, key| ui.ctx().input_mut(|input| input.consume_key(modifiers, key));
        let shift = Modifiers::COMMAND | Modifiers::SHIFT;
        if pressed(shift, Key::O) {
            commands.push(Command::ChooseFolder);
        } else if pressed(Modifiers::COMMAND, Key::O) {
            commands.push(Command::ChooseFiles);
        }
        if typing || self.state.dialog.is_some() {
            return;
        }
        if pressed(shift, Key::Z) || pressed(Modifiers::COMMAND, Key::Y) {
            commands.push(Command::Redo);
        } else if pressed(Modifiers::COMMAND, Key::Z) {
            commands.push(Command::Undo);
        }
        if pressed(Modifiers::COMMAND, Key::E) {
            commands.push(Command::AskExport);
        }
        for (key, page) in
            [(Key::Num1, Page::Timeline), (Key::Num2, Page::Evaluation), (Key::Num3, Page::Device)]
        {
            if pressed(Modifiers::COMMAND, key) {
                commands.push(Command::Page(page));
            }
        }
        let pasted: Vec<OsString> = ui.ctx().input(|input| {
            let texts = input.events.iter().filter_map(|event| match event {
                Event::Paste(text) => Some(text.clone()),
                _ => None,
            });
            texts.flat_map(|text| paths(&text)).collect()
        });
        if !pasted.is_empty() {
            commands.push(Command::Add(pasted));
        }
    }
}

/// The paths in pasted text: one a line, also as `file://` addresses.
fn paths(text: &str) -> Vec<OsString> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.map(|line| line.trim_matches('"').trim_start_matches("file://").into()).collect()
}

impl eframe::App for App {
    fn logic(&mut self, context: &Context, _: &mut eframe::Frame) {
        self.take_in();
        let dropped: Vec<OsString> = context.input(|input| {
            input.raw.dropped_files.iter().map(|file| file.path().as_os_str().to_owned()).collect()
        });
        if !dropped.is_empty() {
            self.add(dropped);
        }
        self.refine();
        let now = context.input(|input| input.time);
        match self.edited {
            Some(since) if now - since >= CALM.as_secs_f64() => {
                self.edited = None;
                self.save();
            }
            Some(_) => context.request_repaint_after(CALM),
            None => {}
        }
    }

    fn ui(&mut self, ui: &mut Ui, _: &mut eframe::Frame) {
        let mut commands = Vec::new();
        self.keys(ui, &mut commands);
        let context = ui.ctx().clone();
        let mut menu_open = true;
        {
            let mut view = View { state: &self.state, texts: self.texts, commands: &mut commands };
            Panel::top("toolbar").show(ui, |ui| views::toolbar::show(ui, &mut view));
            Panel::bottom("status").show(ui, |ui| {
                views::status::notices(ui, &mut view);
                views::status::show(ui, &mut view);
            });
            if !self.state.entries.is_empty() {
                Panel::left("queue").default_size(290.0).min_size(200.0).show(ui, |ui| {
                    views::queue::show(ui, &mut view);
                });
            }
            CentralPanel::default().show(ui, |ui| match self.state.page {
                Page::Timeline if self.state.entries.is_empty() => views::empty::show(ui, &mut view),
                Page::Timeline => views::recording::show(ui, &mut view, &mut self.timeline),
                Page::Evaluation => views::evaluation::show(ui, &mut view),
                Page::Device => views::device::show(ui, &mut view),
            });
            if let Some(menu) = &self.menu {
                menu_open = views::menu::show(&context, &mut view, menu);
            }
            views::dialogs::show(&context, &mut view);
        }
        if !menu_open {
            self.menu = None;
        }
        if context.input(|input| !input.raw.hovered_files.is_empty()) {
            drop_hint(&context, self.texts.drop_here);
        }
        for command in commands {
            match command {
                Command::Copy => {
                    if let Some(text) = self.rttm() {
                        context.copy_text(text);
                    }
                }
                Command::ShowFolder(folder) => {
                    context.open_url(eframe::egui::OpenUrl::new_tab(format!("file://{}", folder.display())));
                }
                command => self.apply(command),
            }
        }
        if self.edited == Some(f64::INFINITY) {
            self.edited = Some(context.input(|input| input.time));
            context.request_repaint_after(CALM);
        }
    }
}

/// Says over everything that files can be dropped.
fn drop_hint(context: &Context, text: &str) {
    let painter = context.layer_painter(LayerId::new(Order::Foreground, Id::unique("drop hint")));
    let area = context.content_rect();
    painter.rect_filled(area, 0.0, Color32::from_black_alpha(170));
    painter.text(area.center(), Align2::CENTER_CENTER, text, FontId::proportional(32.0), Color32::WHITE);
}
