//! Questions to the user.

use eframe::egui::{Button, Context, Id, Key, Modal, RichText, TextEdit, Ui};

use super::View;
use crate::app::export::FORMATS;
use crate::gui::command::Command;
use crate::gui::state::{Dialog, Export, Scope};

/// Draws the open question, if there is one.
pub fn show(context: &Context, view: &mut View<'_>) {
    let Some(dialog) = &view.state.dialog else { return };
    let modal = Modal::new(Id::unique("dialog")).show(context, |ui| match dialog {
        Dialog::Rename { name, problem, .. } => rename(ui, view, name, problem.as_deref()),
        Dialog::Export(export) => ask_export(ui, view, export),
    });
    if modal.should_close() {
        view.ask(Command::CloseDialog);
    }
}

fn rename(ui: &mut Ui, view: &mut View<'_>, name: &str, problem: Option<&str>) {
    let texts = view.texts;
    ui.set_width(340.0);
    ui.heading(texts.rename_title);
    let mut typed = name.to_owned();
    let field = ui.add(TextEdit::singleline(&mut typed).desired_width(f32::INFINITY));
    field.widget_info(|| {
        eframe::egui::WidgetInfo::labeled(eframe::egui::Role::TextInput, true, texts.rename_title)
    });
    let accepted = field.lost_focus() && ui.input(|input| input.key_pressed(Key::Enter));
    if !field.has_focus() && !accepted && !ui.ctx().memory(|memory| memory.focused().is_some()) {
        field.request_focus();
    }
    if typed != name {
        view.ask(Command::TypeName(typed));
    }
    if let Some(problem) = problem {
        ui.label(RichText::new(problem).color(ui.visuals().error_fg_color));
    }
    ui.horizontal(|ui| {
        if ui.button(texts.ok).clicked() || accepted {
            view.ask(Command::GiveName);
        }
        if ui.button(texts.cancel).clicked() {
            view.ask(Command::CloseDialog);
        }
    });
}

fn ask_export(ui: &mut Ui, view: &mut View<'_>, export: &Export) {
    let texts = view.texts;
    let mut changed = export.clone();
    ui.set_width(460.0);
    ui.heading(texts.export_title);
    ui.strong(texts.export_which);
    let scopes = [
        (Scope::Open, texts.export_open),
        (Scope::Selected, texts.export_selected),
        (Scope::All, texts.export_all),
    ];
    for (scope, name) in scopes {
        ui.radio_value(&mut changed.scope, scope, name);
    }
    ui.add_space(6.0);
    ui.strong(texts.export_formats);
    for format in FORMATS {
        let mut on = changed.formats.contains(format.name);
        if ui.checkbox(&mut on, format!("{}: {}", format.name, format.about)).changed() {
            if on {
                changed.formats.insert(format.name);
            } else {
                changed.formats.remove(format.name);
            }
        }
    }
    ui.add_space(6.0);
    ui.strong(texts.export_where);
    if ui.radio(changed.folder.is_none(), texts.export_beside).clicked() {
        changed.folder = None;
    }
    ui.horizontal(|ui| {
        let _ = ui.radio(changed.folder.is_some(), texts.export_folder);
        if let Some(folder) = &changed.folder {
            ui.weak(folder.display().to_string());
        }
        if ui.button(texts.choose_folder).clicked() {
            view.ask(Command::ChooseExportFolder);
        }
    });
    ui.checkbox(&mut changed.replace, texts.export_replace);
    ui.add_space(8.0);
    ui.horizontal(|ui| {
        if ui.add_enabled(!changed.formats.is_empty(), Button::new(texts.export_title)).clicked() {
            view.ask(Command::Export(changed.clone()));
        }
        if ui.button(texts.cancel).clicked() {
            view.ask(Command::CloseDialog);
        }
    });
    if changed != *export {
        view.ask(Command::ChangeExport(changed));
    }
}
