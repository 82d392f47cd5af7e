//! The bar at the bottom: what is computed on, what the user should know.

use eframe::egui::{Align, Layout, RichText, Ui};

use super::{View, icon};
use crate::gui::command::Command;
use crate::gui::state::{EngineState, Page};

/// Draws it.
pub fn show(ui: &mut Ui, view: &mut View<'_>) {
    let texts = view.texts;
    ui.horizontal(|ui| {
        match &view.state.engine {
            EngineState::Opening => {
                ui.spinner();
                ui.weak(texts.device_opening);
            }
            EngineState::Ready(opened) => {
                let text = format!("{} · {} · {}", opened.name, opened.precision, opened.model);
                let mut label = ui.small_button(text);
                if let Some(reason) = &opened.reason {
                    label = label.on_hover_text(reason);
                    ui.add(eframe::egui::Label::new(RichText::new(reason).small().weak()).truncate());
                }
                if label.clicked() {
                    view.ask(Command::Page(Page::Device));
                }
            }
            EngineState::Unusable(reason) => {
                let color = ui.visuals().error_fg_color;
                ui.label(RichText::new(format!("{}: {reason}", texts.device_none)).color(color));
            }
        }
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
            if let Some(reason) = &view.state.transport.unavailable {
                ui.weak(texts.no_sound).on_hover_text(reason);
            }
        });
    });
}

/// The latest things that the user should know, each with a button to forget it.
pub fn notices(ui: &mut Ui, view: &mut View<'_>) {
    let texts = view.texts;
    let all = &view.state.notices;
    for (index, notice) in all.iter().enumerate().rev().take(3) {
        ui.horizontal(|ui| {
            if icon(ui, "×", &format!("{}: {}", texts.dismiss, notice.text), true).clicked() {
                view.commands.push(Command::Dismiss(index));
            }
            let text = RichText::new(&notice.text);
            let text = if notice.bad { text.color(ui.visuals().error_fg_color) } else { text };
            ui.add(eframe::egui::Label::new(text).truncate()).on_hover_text(&notice.text);
        });
    }
}
