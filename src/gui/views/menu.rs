//! The menu that opens in the timeline.

use eframe::egui::{Context, Id, LayerId, Order, Popup, PopupCloseBehavior, Pos2, Ui};

use super::View;
use crate::app::document::{Edit, SpeakerId, TurnId};
use crate::gui::command::Command;
use crate::gui::timeline::Target;

/// A menu that is open.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Menu {
    /// What it is about.
    pub target: Target,
    /// Second that it was opened at.
    pub at: f64,
    /// Where.
    pub position: Pos2,
}

/// Draws it; `false` once it is closed.
pub fn show(context: &Context, view: &mut View<'_>, menu: &Menu) -> bool {
    let layer = LayerId::new(Order::Foreground, Id::unique("timeline menu"));
    let mut open = true;
    Popup::new(Id::unique("timeline menu"), context.clone(), menu.position, layer)
        .open_bool(&mut open)
        .close_behavior(PopupCloseBehavior::CloseOnClick)
        .layout(eframe::egui::Layout::top_down_justified(eframe::egui::Align::LEFT))
        .show(|ui| {
            ui.set_min_width(180.0);
            match menu.target {
                Target::Turn(turn) => of_turn(ui, view, TurnId(turn.0), menu.at),
                Target::Speaker(speaker) => of_speaker(ui, view, SpeakerId(speaker as u32)),
                Target::Time => of_time(ui, view, menu.at),
            }
        });
    open
}

fn speakers(view: &View<'_>) -> Vec<(SpeakerId, String)> {
    let document = view.state.opened().and_then(|(_, entry)| entry.document.as_ref());
    let voices = document.map(|document| document.speakers()).unwrap_or_default();
    voices.iter().map(|voice| (voice.id, voice.display().to_owned())).collect()
}

fn of_turn(ui: &mut Ui, view: &mut View<'_>, turn: TurnId, at: f64) {
    let texts = view.texts;
    let Some((open, entry)) = view.state.opened() else { return };
    let Some(found) = entry.document.as_ref().and_then(|document| document.turn(turn)).copied() else {
        return;
    };
    let mut turns: Vec<TurnId> = open.selection.turns.iter().map(|id| TurnId(id.0)).collect();
    if !turns.contains(&turn) {
        turns = vec![turn];
    }
    ui.menu_button(texts.move_to, |ui| {
        for (speaker, name) in speakers(view) {
            if speaker != found.speaker && ui.button(name).clicked() {
                view.ask(Command::Edit(Edit::Move { turns: turns.clone(), speaker }));
            }
        }
        ui.separator();
        if ui.button(texts.new_speaker).clicked() {
            view.ask(Command::Edit(Edit::SplitOff { turns: turns.clone() }));
        }
    });
    if ui.button(texts.cut_here).clicked() {
        view.ask(Command::Edit(Edit::Cut { turn, at }));
    }
    if ui.button(texts.delete).clicked() {
        view.ask(Command::Edit(Edit::Delete { turns }));
    }
    ui.separator();
    of_speaker(ui, view, found.speaker);
}

fn of_speaker(ui: &mut Ui, view: &mut View<'_>, speaker: SpeakerId) {
    let texts = view.texts;
    let lane = speaker.0 as usize;
    if ui.button(texts.rename).clicked() {
        view.ask(Command::AskName(lane));
    }
    ui.menu_button(texts.merge_into, |ui| {
        for (into, name) in speakers(view) {
            if into != speaker && ui.button(name).clicked() {
                view.ask(Command::Edit(Edit::Merge { from: speaker, into }));
            }
        }
    });
}

fn of_time(ui: &mut Ui, view: &mut View<'_>, at: f64) {
    let texts = view.texts;
    let Some((open, _)) = view.state.opened() else { return };
    let end = open.model.duration();
    let (start, end) = open.selection.range.unwrap_or((at, (at + 1.0).min(end)));
    ui.menu_button(texts.add_turn, |ui| {
        for (speaker, name) in speakers(view) {
            if ui.button(name).clicked() {
                view.ask(Command::Edit(Edit::Add { start, end, speaker: Some(speaker) }));
            }
        }
        ui.separator();
        if ui.button(texts.new_speaker).clicked() {
            view.ask(Command::Edit(Edit::Add { start, end, speaker: None }));
        }
    });
}
