//! The open recording: what it is, the number of speakers, its timeline.

use eframe::egui::{Button, DragValue, RichText, ScrollArea, Ui};

use super::View;
use crate::app::document::Document;
use crate::clustering::SpeakerBounds;
use crate::gui::command::Command;
use crate::gui::state::{Entry, Open, Sound, Status};
use crate::gui::timeline::{self, Detail, Input};
use crate::pipeline::Voices;

/// Most speakers that can be asked for.
const MOST: usize = 50;

/// Draws it.
pub fn show(ui: &mut Ui, view: &mut View<'_>, timeline: &mut timeline::State) {
    let texts = view.texts;
    let Some((open, entry)) = view.state.opened() else {
        ui.centered_and_justified(|ui| ui.weak(texts.choose_recording));
        return;
    };
    let Some(document) = &entry.document else {
        head(ui, view, open, entry, None);
        let text = match &entry.status {
            Status::Failed(reason) => reason.as_str(),
            Status::Cancelled => texts.status_cancelled,
            _ => texts.status_waiting,
        };
        if !matches!(entry.status, Status::Running { .. }) {
            ui.centered_and_justified(|ui| ui.label(text));
        } else {
            ui.centered_and_justified(|ui| ui.spinner());
        }
        return;
    };
    head(ui, view, open, entry, Some(document));
    if document.turns().is_empty() {
        ui.weak(texts.no_speech);
    }
    let warnings = document.source().warnings.iter().chain(&document.original().warnings);
    for warning in warnings.take(4) {
        ui.label(RichText::new(warning).small().color(ui.visuals().warn_fg_color));
    }
    let input = Input {
        model: &open.model,
        peaks: match &open.sound {
            Sound::Ready(media) => Some(&media.peaks),
            _ => None,
        },
        detail: open.detail.as_ref().map(|(first, samples)| Detail { first: *first, samples }),
        play_head: view.state.transport.position,
        playing: view.state.transport.playing,
        selection: &open.selection,
        solo: &open.solo,
        muted: &open.muted,
        editable: true,
    };
    let events = timeline::show(ui, &input, timeline);
    view.commands.extend(events.into_iter().map(Command::Timeline));
}

/// Name, facts and the number of speakers.
fn head(ui: &mut Ui, view: &mut View<'_>, open: &Open, entry: &Entry, document: Option<&Document>) {
    let texts = view.texts;
    ui.horizontal_wrapped(|ui| {
        ui.heading(entry.name());
        if let Some(document) = document {
            let result = document.original();
            ui.weak(format!(
                "{} · {} · {}",
                result.backend.name,
                result.backend.precision,
                result.settings.mode.name()
            ));
        }
        match &open.sound {
            Sound::Loading => drop(ui.weak(texts.loading_audio)),
            Sound::Failed(reason) => {
                drop(ui.label(RichText::new(reason).small().color(ui.visuals().warn_fg_color)))
            }
            Sound::Ready(_) => {}
        }
    });
    ScrollArea::horizontal()
        .id_salt("speakers")
        .show(ui, |ui| ui.horizontal(|ui| bounds(ui, view, open, entry)));
}

/// The number of speakers, and what they are told apart by.
fn bounds(ui: &mut Ui, view: &mut View<'_>, open: &Open, entry: &Entry) {
    let texts = view.texts;
    let SpeakerBounds { num, min, max } = open.bounds;
    let enabled =
        entry.voices == Voices::Mixed && !matches!(entry.status, Status::Running { .. } | Status::Stopping);
    let mut wanted = open.bounds;
    ui.add_enabled_ui(enabled, |ui| {
        ui.label(texts.speakers);
        let any = open.bounds == SpeakerBounds::default();
        if ui.radio(any, texts.any_number).clicked() {
            wanted = SpeakerBounds::default();
        }
        if ui.radio(num.is_some(), texts.exactly).clicked() {
            let now = entry.document.as_ref().map_or(2, |document| document.speakers().len());
            wanted = SpeakerBounds { num: Some(now.clamp(1, MOST)), ..SpeakerBounds::default() };
        }
        if let Some(mut count) = num {
            ui.add(DragValue::new(&mut count).range(1..=MOST));
            wanted.num = Some(count).filter(|_| wanted == open.bounds).or(wanted.num);
        }
        let bounded = min.is_some() || max.is_some();
        if ui.radio(bounded, texts.between).clicked() {
            wanted = SpeakerBounds { num: None, min: Some(1), max: Some(8) };
        }
        if bounded {
            let (mut least, mut most) = (min.unwrap_or(1), max.unwrap_or(MOST));
            ui.add(DragValue::new(&mut least).range(1..=most));
            ui.label(texts.and);
            ui.add(DragValue::new(&mut most).range(least..=MOST));
            if wanted == open.bounds {
                wanted = SpeakerBounds { num: None, min: Some(least), max: Some(most) };
            }
        }
    });
    if wanted != open.bounds {
        view.ask(Command::TypeBounds(wanted));
    }
    let changed = open.bounds != entry.bounds;
    if ui.add_enabled(changed && enabled, Button::new(texts.apply)).on_hover_text(texts.apply_hint).clicked()
    {
        view.ask(Command::Bounds(entry.id, open.bounds));
    }
    if entry.clustering {
        ui.spinner();
    }
    ui.separator();
    let mut channels = entry.voices == Voices::Channels;
    let several = entry.document.as_ref().is_none_or(|document| document.source().channels > 1);
    let idle = !matches!(entry.status, Status::Running { .. } | Status::Stopping);
    let checkbox = eframe::egui::Checkbox::new(&mut channels, texts.channels_are_speakers);
    if ui.add_enabled(several && idle, checkbox).on_hover_text(texts.channels_hint).changed() {
        let voices = if channels { Voices::Channels } else { Voices::Mixed };
        view.ask(Command::Voices(entry.id, voices));
    }
}
