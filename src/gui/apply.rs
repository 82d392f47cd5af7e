//! Does what the views ask for.

use std::ffi::OsString;

use super::app::App;
use super::command::Command;
use super::news::{self, Finished, News};
use super::state::{Dialog, EntryId, Export, Open, Page, Scope, Sound, Status};
use super::timeline::model::{Model, Selection, TurnId as LaneTurn};
use super::timeline::{self, Event};
use super::views::menu::Menu;
use crate::app::devices;
use crate::app::document::{Edit, SpeakerId, TurnId};
use crate::app::export::{FORMATS, Format, Report, rttm};
use crate::app::worker::{Cancel, Task};
use crate::clustering::SpeakerBounds;
use crate::pipeline::{Mode, Settings, Voices};

/// The recording that comes with the program.
const DEMO: &[u8] = include_bytes!("../../assets/demo/meeting.flac");

impl App {
    /// Does one command.
    pub fn apply(&mut self, command: Command) {
        match command {
            Command::ChooseFiles => self.dialogs.add(|| {
                let files = rfd::FileDialog::new().pick_files().unwrap_or_default();
                News::Chosen(files.into_iter().map(OsString::from).collect())
            }),
            Command::ChooseFolder => self.dialogs.add(|| {
                News::Chosen(rfd::FileDialog::new().pick_folder().into_iter().map(OsString::from).collect())
            }),
            Command::Add(paths) => self.add(paths),
            Command::AddDemo => self.add_demo(),
            Command::Select(ids) => self.state.selected = ids.into_iter().collect(),
            Command::Open(id) => self.open(id),
            Command::Cancel(ids) => ids.into_iter().for_each(|id| self.cancel(id)),
            Command::Retry(ids, replace) => ids.into_iter().for_each(|id| self.retry(id, replace)),
            Command::Remove(ids) => ids.into_iter().for_each(|id| self.remove(id)),
            Command::RemoveDone => {
                let done = self.state.entries.iter().filter(|entry| entry.status == Status::Done);
                let done: Vec<EntryId> = done.map(|entry| entry.id).collect();
                done.into_iter().for_each(|id| self.remove(id));
            }
            Command::Shift(id, places) => self.shift(id, places),
            Command::TypeBounds(bounds) => {
                if let Some(open) = &mut self.state.open {
                    open.bounds = bounds;
                }
            }
            Command::Bounds(id, bounds) => self.bounds(id, bounds),
            Command::Voices(id, voices) => self.voices(id, voices),
            Command::Edit(edit) => self.edit(edit),
            Command::Undo => self.undo(true),
            Command::Redo => self.undo(false),
            Command::Timeline(event) => self.timeline_event(event),
            Command::AskName(speaker) => {
                let name = self.document().and_then(|d| d.speaker(SpeakerId(speaker as u32)));
                let name = name.map(|voice| voice.display().to_owned()).unwrap_or_default();
                self.state.dialog = Some(Dialog::Rename { speaker, name, problem: None });
            }
            Command::TypeName(typed) => {
                if let Some(Dialog::Rename { name, problem, .. }) = &mut self.state.dialog {
                    (*name, *problem) = (typed, None);
                }
            }
            Command::GiveName => self.give_name(),
            Command::AskExport => self.ask_export(),
            Command::ChangeExport(changed) => self.state.dialog = Some(Dialog::Export(changed)),
            Command::ChooseExportFolder => {
                self.dialogs.add(|| News::ExportFolder(rfd::FileDialog::new().pick_folder()));
            }
            Command::Export(export) => self.export(&export),
            Command::ChooseReference(folder) => self.dialogs.add(move || {
                let dialog = rfd::FileDialog::new();
                News::Reference(if folder {
                    dialog.pick_folder()
                } else {
                    dialog.add_filter("RTTM", &["rttm"]).pick_file()
                })
            }),
            Command::Evaluate(path) => {
                self.state.reference = Some(path);
                self.score();
            }
            Command::ForgetReference => {
                (self.state.reference, self.state.evaluation) = (None, None);
                self.state.refresh();
            }
            Command::Page(page) => {
                self.state.page = page;
                if page == Page::Device && self.state.devices.is_none() {
                    let precision = self.options.choice.precision;
                    self.files.add(move || News::Devices(devices::text(true, precision, 32, 998)));
                }
            }
            Command::CloseDialog => self.state.dialog = None,
            Command::Dismiss(index) => {
                if index < self.state.notices.len() {
                    self.state.notices.remove(index);
                }
            }
            // These need the window itself.
            Command::Copy | Command::ShowFolder(_) => {}
        }
    }

    fn document(&self) -> Option<&crate::app::document::Document> {
        self.state.opened().and_then(|(_, entry)| entry.document.as_ref())
    }

    /// Writes the demo where it can be read from, and adds it.
    fn add_demo(&mut self) {
        let folder = std::env::temp_dir().join("speakrs-app-demo");
        let (formats, results) = (self.options.formats.clone(), self.options.folder.clone());
        self.files.add(move || {
            let path = folder.join("meeting.flac");
            let written = std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(&path, DEMO));
            News::Found(match written {
                Ok(()) => news::find(&[path.into_os_string()], &formats, results.as_deref()),
                Err(error) => {
                    let failures = vec![(path, error.to_string())];
                    news::Found { failures, ..news::Found::default() }
                }
            })
        });
    }

    /// Passes an entry on to the worker.
    pub(super) fn enqueue(&mut self, id: EntryId, replace: bool) {
        let (mode, step) = (self.options.mode, self.options.step);
        let Some(entry) = self.state.entry_mut(id) else { return };
        let Some(job) = entry.job.clone() else { return };
        entry.status = Status::Waiting;
        let (speakers, voices) = (entry.bounds, entry.voices);
        let settings = Settings { mode: mode.unwrap_or(Mode::Fast), step, speakers, voices };
        // What this entry wrote before is its own to replace.
        let own =
            !job.outputs.is_empty() && job.outputs.iter().all(|output| entry.written.contains(&output.path));
        self.worker.add(Task { id, job, settings, default_mode: mode.is_none(), replace: replace || own });
        self.reorder();
    }

    fn reorder(&self) {
        let order: Vec<EntryId> = self.state.entries.iter().map(|entry| entry.id).collect();
        self.worker.reorder(&order);
    }

    fn open(&mut self, id: EntryId) {
        self.state.page = Page::Timeline;
        if self.state.open.as_ref().is_some_and(|open| open.entry == id) {
            return;
        }
        let Some(entry) = self.state.entry(id) else { return };
        let path = entry.input.path.clone();
        self.state.open = Some(Open {
            entry: id,
            model: Model::new(0.0, Vec::new(), Vec::new(), Vec::new()),
            selection: Selection::default(),
            solo: Default::default(),
            muted: Default::default(),
            sound: Sound::Loading,
            detail: None,
            bounds: entry.bounds,
        });
        self.state.transport.position = 0.0;
        self.state.transport.playing = false;
        self.timeline = timeline::State::default();
        self.menu = None;
        self.state.refresh();
        self.sounds.add(move || News::Sound(id, news::sound(&path)));
    }

    fn cancel(&mut self, id: EntryId) {
        let outcome = self.worker.cancel(id);
        let Some(entry) = self.state.entry_mut(id) else { return };
        match outcome {
            Cancel::Waited if entry.document.is_some() => entry.status = Status::Done,
            Cancel::Waited => entry.status = Status::Cancelled,
            Cancel::Stopping => entry.status = Status::Stopping,
            Cancel::Unknown => {}
        }
    }

    fn retry(&mut self, id: EntryId, replace: bool) {
        let (formats, folder) = (self.options.formats.clone(), self.options.folder.clone());
        let Some(entry) = self.state.entry_mut(id).filter(|entry| !entry.status.is_open()) else { return };
        if entry.job.is_none() {
            match news::assign(vec![entry.input.clone()], &formats, folder.as_deref()).pop() {
                Some((_, Ok(job))) => entry.job = Some(job),
                Some((_, Err(reason))) => return entry.status = Status::Failed(reason),
                None => return,
            }
        }
        self.enqueue(id, replace);
    }

    fn remove(&mut self, id: EntryId) {
        self.worker.cancel(id);
        let place = self.state.entries.iter().position(|entry| entry.id == id);
        self.state.entries.retain(|entry| entry.id != id);
        self.state.selected.remove(&id);
        if self.state.open.as_ref().is_some_and(|open| open.entry == id) {
            self.state.open = None;
            let next = place.and_then(|place| self.state.entries.get(place).or(self.state.entries.last()));
            if let Some(next) = next.map(|entry| entry.id) {
                self.open(next);
            }
        }
    }

    fn shift(&mut self, id: EntryId, places: isize) {
        let Some(from) = self.state.entries.iter().position(|entry| entry.id == id) else { return };
        let last = self.state.entries.len() as isize - 1;
        let to = (from as isize + places).clamp(0, last) as usize;
        let entry = self.state.entries.remove(from);
        self.state.entries.insert(to, entry);
        self.reorder();
    }

    fn bounds(&mut self, id: EntryId, bounds: SpeakerBounds) {
        if let Err(error) = bounds.range() {
            return self.state.notice(error.to_string(), true);
        }
        let Some(entry) = self.state.entry_mut(id) else { return };
        entry.bounds = bounds;
        match (&entry.document, entry.inference.clone()) {
            (Some(document), Some(inference)) => {
                let result = document.original().clone();
                let settings = Settings { speakers: bounds, ..result.settings };
                entry.clustering = true;
                self.worker.cluster_again(id, inference, result, settings);
            }
            _ => self.run_afresh(id),
        }
    }

    fn voices(&mut self, id: EntryId, voices: Voices) {
        let Some(entry) = self.state.entry_mut(id) else { return };
        entry.voices = voices;
        self.run_afresh(id);
    }

    /// Runs a recording with the settings that it has now, unless it is in work.
    fn run_afresh(&mut self, id: EntryId) {
        if self.worker.cancel(id) != Cancel::Stopping {
            self.enqueue(id, false);
        }
    }

    fn edit(&mut self, edit: Edit) {
        let Some(id) = self.state.open.as_ref().map(|open| open.entry) else { return };
        let Some(document) = self.state.entry_mut(id).and_then(|entry| entry.document.as_mut()) else {
            return;
        };
        match document.apply(edit) {
            Ok(()) => self.touched(id),
            Err(error) => self.state.notice(error.to_string(), true),
        }
    }

    fn undo(&mut self, back: bool) {
        let Some(id) = self.state.open.as_ref().map(|open| open.entry) else { return };
        let Some(document) = self.state.entry_mut(id).and_then(|entry| entry.document.as_mut()) else {
            return;
        };
        let done = if back { document.undo() } else { document.redo() };
        if done.is_some() {
            self.touched(id);
        }
    }

    /// A document has changed.
    pub(super) fn touched(&mut self, id: EntryId) {
        if self.state.open.as_ref().is_some_and(|open| open.entry == id) {
            self.state.refresh();
        }
        // The window's clock is known in `ui` only.
        self.edited = Some(f64::INFINITY);
        self.score();
    }

    /// Brings the written results of edited recordings up to date.
    pub(super) fn save(&mut self) {
        for entry in &mut self.state.entries {
            let (Some(document), Some(job)) = (&entry.document, &entry.job) else { continue };
            if document.revision() == entry.saved || entry.written.is_empty() {
                continue;
            }
            entry.saved = document.revision();
            let (id, written, job) = (entry.id, entry.written.clone(), job.clone());
            let finished = Finished {
                input: entry.input.clone(),
                uri: job.uri.clone(),
                diarization: document.diarization(),
                source: document.source().clone(),
            };
            self.files.add(move || news::save(id, &finished, &job, &written));
        }
    }

    fn give_name(&mut self) {
        let Some(Dialog::Rename { speaker, name, .. }) = self.state.dialog.clone() else { return };
        let Some(id) = self.state.open.as_ref().map(|open| open.entry) else { return };
        let Some(document) = self.state.entry_mut(id).and_then(|entry| entry.document.as_mut()) else {
            return;
        };
        let edit = Edit::Rename { speaker: SpeakerId(speaker as u32), name };
        match document.apply(edit) {
            Ok(()) => {
                self.state.dialog = None;
                self.touched(id);
            }
            Err(error) => {
                if let Some(Dialog::Rename { problem, .. }) = &mut self.state.dialog {
                    *problem = Some(error.to_string());
                }
            }
        }
    }

    fn ask_export(&mut self) {
        let scope = if self.state.selected.len() > 1 { Scope::Selected } else { Scope::Open };
        let scope = if self.document().is_none() { Scope::All } else { scope };
        let formats = [FORMATS[0].name].into();
        self.state.dialog = Some(Dialog::Export(Export { scope, formats, folder: None, replace: false }));
    }

    fn export(&mut self, export: &Export) {
        self.state.dialog = None;
        let open = self.state.open.as_ref().map(|open| open.entry);
        let wanted = |id: EntryId| match export.scope {
            Scope::Open => open == Some(id),
            Scope::Selected => self.state.selected.contains(&id),
            Scope::All => true,
        };
        let finished: Vec<Finished> = self
            .state
            .entries
            .iter()
            .filter(|entry| wanted(entry.id))
            .filter_map(|entry| {
                let document = entry.document.as_ref()?;
                Some(Finished {
                    input: entry.input.clone(),
                    uri: entry.uri(),
                    diarization: document.diarization(),
                    source: document.source().clone(),
                })
            })
            .collect();
        let formats: Vec<&'static Format> =
            FORMATS.iter().filter(|format| export.formats.contains(format.name)).collect();
        let (folder, replace) = (export.folder.clone(), export.replace);
        self.files.add(move || news::export(&finished, &formats, folder.as_deref(), replace));
    }

    /// The open recording's turns as RTTM.
    pub(super) fn rttm(&self) -> Option<String> {
        let (_, entry) = self.state.opened()?;
        let document = entry.document.as_ref()?;
        let diarization = document.diarization();
        let (file, uri) = (entry.name(), entry.uri());
        let report = Report {
            path: &entry.input.path,
            file: &file,
            uri: &uri,
            diarization: &diarization,
            source: document.source(),
        };
        String::from_utf8(rttm::render(&report)).ok()
    }

    /// Scores all results against the reference, if there is one.
    pub(super) fn score(&mut self) {
        let Some(path) = self.state.reference.clone() else { return };
        let result = |entry: &super::state::Entry| {
            Some((entry.id, entry.uri(), entry.document.as_ref()?.diarization()))
        };
        let results: Vec<_> = self.state.entries.iter().filter_map(result).collect();
        self.files.add(move || News::Scored(news::score(&path, &results)));
    }

    fn timeline_event(&mut self, event: Event) {
        let turn = |id: LaneTurn| TurnId(id.0);
        let speaker = |id: usize| SpeakerId(id as u32);
        let Some(open) = &mut self.state.open else { return };
        match event {
            Event::Seek(second) => self.state.transport.position = second,
            Event::SelectTurns(turns) => open.selection.turns = turns,
            Event::SelectRange(range) => open.selection.range = range,
            Event::ToggleSolo(id) => {
                if !open.solo.remove(&id) {
                    open.solo.insert(id);
                }
            }
            Event::ToggleMute(id) => {
                if !open.muted.remove(&id) {
                    open.muted.insert(id);
                }
            }
            Event::MoveBoundary { turn: id, start, end } => {
                self.edit(Edit::Bounds { turn: turn(id), start, end });
            }
            Event::MoveTurns { turns, speaker: to } => {
                let turns = turns.into_iter().map(turn).collect();
                self.edit(Edit::Move { turns, speaker: speaker(to) });
            }
            Event::Delete(turns) => self.edit(Edit::Delete { turns: turns.into_iter().map(turn).collect() }),
            Event::Cut { turn: id, at } => self.edit(Edit::Cut { turn: turn(id), at }),
            Event::RenameRequest(id) => self.apply(Command::AskName(id)),
            Event::ContextMenu { target, at, position } => self.menu = Some(Menu { target, at, position }),
            Event::PlayTurn(_) | Event::PlayRange(..) | Event::PlaySpeaker(_) => {}
        }
    }

    /// Keeps the samples around the part in view, where the timeline needs them.
    pub(super) fn refine(&mut self) {
        let Some(open) = &mut self.state.open else { return };
        let Sound::Ready(media) = &open.sound else { return };
        let Some(wanted) = self.timeline.wanted_detail() else {
            open.detail = None;
            return;
        };
        let end = wanted.end.min(media.samples.len() as u64) as usize;
        let start = (wanted.start as usize).min(end);
        let same =
            |(first, samples): &(u64, Vec<f32>)| *first == start as u64 && samples.len() == end - start;
        if !open.detail.as_ref().is_some_and(same) {
            let scale = 1.0 / f32::from(i16::MAX);
            let samples = media.samples[start..end].iter().map(|&v| f32::from(v) * scale).collect();
            open.detail = Some((start as u64, samples));
        }
    }
}
