//! The middle of the window before there is any recording.

use eframe::egui::{Button, RichText, Ui, vec2};

use super::View;
use crate::gui::command::Command;

/// Tells what to do.
pub fn show(ui: &mut Ui, view: &mut View<'_>) {
    let texts = view.texts;
    ui.vertical_centered(|ui| {
        ui.add_space((ui.available_height() * 0.3).max(20.0));
        ui.label(RichText::new(texts.empty_title).size(30.0).strong());
        ui.add_space(8.0);
        ui.label(RichText::new(texts.empty_text).size(17.0));
        ui.label(RichText::new(texts.empty_more).weak());
        ui.add_space(18.0);
        let size = vec2(200.0, 40.0);
        if ui.add_sized(size, Button::new(texts.add_files)).on_hover_text(texts.add_files_hint).clicked() {
            view.ask(Command::ChooseFiles);
        }
        if ui.add_sized(size, Button::new(texts.demo)).on_hover_text(texts.demo_hint).clicked() {
            view.ask(Command::AddDemo);
        }
    });
}
