//! What can be computed on, and what runs there.

use eframe::egui::{RichText, ScrollArea, Ui};

use super::View;

/// Draws it.
pub fn show(ui: &mut Ui, view: &mut View<'_>) {
    let Some(text) = &view.state.devices else {
        ui.spinner();
        return;
    };
    ScrollArea::both().auto_shrink(false).show(ui, |ui| {
        ui.add(eframe::egui::Label::new(RichText::new(text).monospace()).extend());
    });
}
