//! A document around the timeline, as far as its tests need one.

use std::collections::BTreeSet;

use eframe::egui::{Pos2, Rect, Theme, pos2, vec2};
use egui_kittest::Harness;
use egui_kittest::kittest::Queryable;
use speakrs_app::app::peaks::Peaks;
use speakrs_app::gui::theme;
use speakrs_app::gui::timeline::model::{ErrorStretch, Model, Selection, Speaker, SpeakerId, Turn, TurnId};
use speakrs_app::gui::timeline::{Detail, Event, Input, State, show};

use crate::support::FRAME;

/// The document and what the timeline asked for. Selection, play head, solo and mute follow the events at once.
pub struct Stage {
    pub model: Model,
    pub peaks: Option<Peaks>,
    /// First sample and samples.
    pub detail: Option<(u64, Vec<f32>)>,
    pub play_head: f64,
    pub playing: bool,
    pub selection: Selection,
    pub solo: BTreeSet<SpeakerId>,
    pub muted: BTreeSet<SpeakerId>,
    pub editable: bool,
    pub timeline: State,
    pub events: Vec<Event>,
}

impl Stage {
    pub fn new(model: Model) -> Self {
        Self {
            model,
            peaks: None,
            detail: None,
            play_head: 0.0,
            playing: false,
            selection: Selection::default(),
            solo: BTreeSet::new(),
            muted: BTreeSet::new(),
            editable: true,
            timeline: State::default(),
            events: Vec::new(),
        }
    }

    pub fn select(mut self, turns: impl IntoIterator<Item = u64>) -> Self {
        self.selection.turns = ids(turns);
        self
    }

    fn apply(&mut self, event: &Event) {
        let toggle = |set: &mut BTreeSet<SpeakerId>, speaker| {
            if !set.remove(&speaker) {
                set.insert(speaker);
            }
        };
        match event {
            Event::Seek(at) => self.play_head = *at,
            Event::SelectTurns(turns) => self.selection.turns.clone_from(turns),
            Event::SelectRange(range) => self.selection.range = *range,
            Event::ToggleSolo(speaker) => toggle(&mut self.solo, *speaker),
            Event::ToggleMute(speaker) => toggle(&mut self.muted, *speaker),
            _ => {}
        }
    }

    /// Shows the timeline once.
    pub fn show(&mut self, ui: &mut eframe::egui::Ui) {
        let input = Input {
            model: &self.model,
            peaks: self.peaks.as_ref(),
            detail: self.detail.as_ref().map(|(first, samples)| Detail { first: *first, samples }),
            play_head: self.play_head,
            playing: self.playing,
            selection: &self.selection,
            solo: &self.solo,
            muted: &self.muted,
            editable: self.editable,
        };
        let events = show(ui, &input, &mut self.timeline);
        for event in &events {
            self.apply(event);
        }
        self.events.extend(events);
    }
}

pub fn ids(turns: impl IntoIterator<Item = u64>) -> BTreeSet<TurnId> {
    turns.into_iter().map(TurnId).collect()
}

pub fn turn(id: u64, speaker: SpeakerId, start: f64, end: f64) -> Turn {
    Turn { id: TurnId(id), start, end, speaker }
}

pub fn speakers<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<Speaker> {
    names.into_iter().enumerate().map(|(id, name)| Speaker { id, name: name.to_owned() }).collect()
}

/// A minute with three speakers.
pub fn minute() -> Model {
    minute_with(Vec::new())
}

pub fn minute_with(errors: Vec<ErrorStretch>) -> Model {
    let turns = vec![
        turn(1, 0, 5.0, 15.0),
        turn(2, 1, 10.0, 20.0),
        turn(3, 2, 25.0, 30.0),
        turn(4, 0, 30.0, 40.0),
        turn(5, 1, 45.0, 50.0),
        turn(6, 0, 50.0, 50.5),
    ];
    Model::new(60.0, turns, speakers(["Ada", "Ben", "Cleo"]), errors)
}

pub type Window = Harness<'static, Stage>;

/// A window of usual size.
pub fn window(stage: Stage) -> Window {
    window_of(stage, (1016.0, 416.0), 1.0, Theme::Dark)
}

pub fn window_of(stage: Stage, size: (f32, f32), pixels_per_point: f32, look: Theme) -> Window {
    Harness::builder()
        .with_size(vec2(size.0, size.1))
        .with_pixels_per_point(pixels_per_point)
        .with_theme(look)
        .with_step_dt(FRAME)
        .with_max_steps(60)
        .with_accessibility_check(true)
        .allow_missing_glyphs()
        .with_context_setup(theme::install)
        .build_ui_state(|ui, stage: &mut Stage| stage.show(ui), stage)
}

/// Where things are, by what the window tells screen readers.
pub trait Places {
    /// The part with the turns.
    fn turns(&self) -> Rect;
    /// Screen coordinate of a second.
    fn x(&self, second: f64) -> f32;
    /// The middle of a speaker's lane, at a second.
    fn in_lane(&self, second: f64, speaker: &str) -> Pos2;
    /// In ruler or waveform.
    fn in_part(&self, second: f64, part: &str) -> Pos2;
    /// What was asked for since the last call.
    fn take_events(&mut self) -> Vec<Event>;
}

impl Places for Window {
    fn turns(&self) -> Rect {
        self.get_by_label("Turns").rect()
    }

    fn x(&self, second: f64) -> f32 {
        let (from, to) = self.state().timeline.visible();
        let rect = self.turns();
        (f64::from(rect.left()) + (second - from) / (to - from) * f64::from(rect.width())) as f32
    }

    fn in_lane(&self, second: f64, speaker: &str) -> Pos2 {
        pos2(self.x(second), self.get_by_label(speaker).rect().center().y + 6.0)
    }

    fn in_part(&self, second: f64, part: &str) -> Pos2 {
        pos2(self.x(second), self.get_by_label(part).rect().center().y)
    }

    fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.state_mut().events)
    }
}
