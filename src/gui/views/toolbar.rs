//! The row of buttons at the top.

use eframe::egui::{Button, Layout, Ui};

use super::View;
use crate::app::document::Kind;
use crate::gui::command::Command;
use crate::gui::state::Page;

/// Draws it.
pub fn show(ui: &mut Ui, view: &mut View<'_>) {
    let texts = view.texts;
    ui.horizontal_wrapped(|ui| {
        if ui.button(texts.add_files).on_hover_text(texts.add_files_hint).clicked() {
            view.ask(Command::ChooseFiles);
        }
        if ui.button(texts.add_folder).on_hover_text(texts.add_folder_hint).clicked() {
            view.ask(Command::ChooseFolder);
        }
        ui.separator();
        let document = view.state.opened().and_then(|(_, entry)| entry.document.as_ref());
        let (undo, redo) = document.map_or((None, None), |d| (d.can_undo(), d.can_redo()));
        if ui
            .add_enabled(undo.is_some(), Button::new(texts.undo))
            .on_hover_text(hint(undo, "Ctrl+Z"))
            .clicked()
        {
            view.ask(Command::Undo);
        }
        if ui
            .add_enabled(redo.is_some(), Button::new(texts.redo))
            .on_hover_text(hint(redo, "Ctrl+Shift+Z"))
            .clicked()
        {
            view.ask(Command::Redo);
        }
        ui.separator();
        let any = view.state.entries.iter().any(|entry| entry.document.is_some());
        if ui.add_enabled(any, Button::new(texts.export)).on_hover_text(texts.export_hint).clicked() {
            view.ask(Command::AskExport);
        }
        if ui
            .add_enabled(document.is_some(), Button::new(texts.copy_rttm))
            .on_hover_text(texts.copy_hint)
            .clicked()
        {
            view.ask(Command::Copy);
        }
        ui.with_layout(Layout::right_to_left(eframe::egui::Align::Center), |ui| {
            let pages = [
                (Page::Device, texts.page_device),
                (Page::Evaluation, texts.page_evaluation),
                (Page::Timeline, texts.page_timeline),
            ];
            for (page, name) in pages {
                if ui.selectable_label(view.state.page == page, name).clicked() {
                    view.ask(Command::Page(page));
                }
            }
        });
    });
}

fn hint(kind: Option<Kind>, keys: &str) -> String {
    match kind {
        Some(kind) => format!("{} ({keys})", name(kind)),
        None => keys.to_owned(),
    }
}

/// A kind of edit in a word or two.
fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::Rename => "rename",
        Kind::Merge => "merge",
        Kind::SplitOff => "split off",
        Kind::Move => "move",
        Kind::Delete => "delete",
        Kind::Cut => "cut",
        Kind::Bounds => "boundary",
        Kind::Add => "add",
        Kind::Replace => "number of speakers",
    }
}
