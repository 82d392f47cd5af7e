//! The comparison with a reference, as a table.

use eframe::egui::{Grid, ScrollArea, Ui};

use super::View;
use crate::gui::command::Command;
use crate::gui::state::Page;
use crate::scoring::Der;

/// Draws it.
pub fn show(ui: &mut Ui, view: &mut View<'_>) {
    let texts = view.texts;
    ui.horizontal_wrapped(|ui| {
        if ui.button(texts.reference_file).clicked() {
            view.ask(Command::ChooseReference(false));
        }
        if ui.button(texts.reference_folder).clicked() {
            view.ask(Command::ChooseReference(true));
        }
        if view.state.reference.is_some() && ui.button(texts.reference_clear).clicked() {
            view.ask(Command::ForgetReference);
        }
        if let Some(path) = &view.state.reference {
            ui.weak(path.display().to_string());
        }
    });
    let Some(evaluation) = &view.state.evaluation else {
        ui.add_space(20.0);
        ui.weak(texts.reference_none);
        return;
    };
    ui.weak(texts.evaluation_note);
    ui.separator();
    ScrollArea::both().auto_shrink(false).show(ui, |ui| {
        Grid::new("evaluation").striped(true).num_columns(7).spacing([24.0, 6.0]).show(ui, |ui| {
            for title in [
                texts.column_recording,
                texts.column_der,
                texts.column_missed,
                texts.column_false,
                texts.column_confusion,
                texts.column_jer,
                texts.column_speakers,
            ] {
                ui.strong(title);
            }
            ui.end_row();
            for (id, row) in &evaluation.rows {
                if ui.link(&row.uri).clicked() {
                    view.commands.extend([Command::Open(*id), Command::Page(Page::Timeline)]);
                }
                figures(ui, &row.der);
                ui.monospace(percent(row.jer.rate()));
                ui.monospace(format!("{} / {}", row.hypothesis_speakers, row.reference_speakers));
                ui.end_row();
            }
            ui.strong(texts.total);
            figures(ui, &evaluation.total);
            ui.end_row();
            for id in &evaluation.without {
                ui.label(view.state.entry(*id).map(|entry| entry.name()).unwrap_or_default());
                ui.weak(texts.without_reference);
                ui.end_row();
            }
        });
    });
}

fn figures(ui: &mut Ui, der: &Der) {
    let share = |seconds: f64| percent(if der.total > 0.0 { seconds / der.total } else { 0.0 });
    for text in [percent(der.rate()), share(der.missed), share(der.false_alarm), share(der.confusion)] {
        ui.monospace(text);
    }
}

fn percent(share: f64) -> String {
    format!("{:6.2}", 100.0 * share)
}
