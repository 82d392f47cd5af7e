//! The list of recordings: how each fares, what can be done with it.

use eframe::egui::{
    Align, Frame, Key, Layout, Modifiers, ProgressBar, Response, RichText, Role, ScrollArea, Sense, Ui,
    UiBuilder, WidgetInfo,
};

use super::{View, icon, roughly};
use crate::gui::command::Command;
use crate::gui::state::{Entry, EntryId, Status};
use crate::gui::text::Texts;
use crate::pipeline::Stage;

/// Height of a row without extra lines, for those that are not in view.
const ROW: f32 = 58.0;

/// Draws it.
pub fn show(ui: &mut Ui, view: &mut View<'_>) {
    let texts = view.texts;
    ui.add_space(4.0);
    ui.horizontal(|ui| {
        ui.strong(texts.recordings);
        let done = view.state.entries.iter().filter(|entry| entry.status == Status::Done).count();
        ui.weak(format!("{done}/{}", view.state.entries.len()));
        if let Some(left) = view.state.time_left() {
            ui.weak(format!("≈ {}", roughly(left)));
        }
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
            let open: Vec<EntryId> =
                view.state.entries.iter().filter(|e| e.status.is_open()).map(|e| e.id).collect();
            if !open.is_empty()
                && ui.small_button(texts.cancel_all).on_hover_text(texts.cancel_all_hint).clicked()
            {
                view.ask(Command::Cancel(open));
            } else if done > 0 && ui.small_button(texts.remove_done).clicked() {
                view.ask(Command::RemoveDone);
            }
        });
    });
    ui.separator();
    ScrollArea::vertical().auto_shrink(false).show_rows(ui, ROW, view.state.entries.len(), |ui, range| {
        for index in range {
            row(ui, view, index);
        }
    });
}

fn row(ui: &mut Ui, view: &mut View<'_>, index: usize) {
    let state = view.state;
    let entry = &state.entries[index];
    let texts = view.texts;
    let selected = state.selected.contains(&entry.id);
    let opened = state.open.as_ref().is_some_and(|open| open.entry == entry.id);
    let scope = UiBuilder::new().id_salt(("entry", entry.id)).sense(Sense::click_and_drag());
    let response = ui
        .scope_builder(scope, |ui| {
            ui.set_height(ROW - ui.spacing().item_spacing.y);
            let visuals = ui.visuals();
            let fill = match (selected, opened) {
                (true, _) => visuals.selection.bg_fill,
                (_, true) => visuals.widgets.inactive.weak_bg_fill,
                _ => visuals.panel_fill,
            };
            Frame::new().fill(fill).corner_radius(5.0).inner_margin(6.0).show(ui, |ui| {
                ui.set_width(ui.available_width());
                ui.horizontal(|ui| {
                    ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
                        buttons(ui, view, index);
                        ui.with_layout(Layout::left_to_right(Align::Center), |ui| {
                            ui.add(eframe::egui::Label::new(entry.name()).truncate().selectable(false))
                                .on_hover_text(entry.input.path.display().to_string());
                        });
                    });
                });
                second_line(ui, entry, texts);
            });
        })
        .response;
    let described = format!("{}, {}", entry.name(), words(entry, texts));
    response.widget_info(|| WidgetInfo::selected(Role::Button, true, selected, &described));
    act(&response, view, index);
}

/// Progress, or how it ended.
fn second_line(ui: &mut Ui, entry: &Entry, texts: &Texts) {
    match &entry.status {
        Status::Running { stage, fraction, left } => {
            let mut text = stage_name(*stage, texts).to_owned();
            if let Some(left) = left {
                text += &format!(", {}", roughly(*left));
            }
            ui.add(ProgressBar::new(*fraction as f32).text(RichText::new(text).small()).desired_height(15.0));
        }
        Status::Failed(_) => {
            let color = ui.visuals().error_fg_color;
            let text = RichText::new(words(entry, texts)).small().color(color);
            ui.add(eframe::egui::Label::new(text).truncate()).on_hover_text(words(entry, texts));
        }
        _ if !entry.problems.is_empty() => {
            let color = ui.visuals().warn_fg_color;
            let text = RichText::new(words(entry, texts)).small().color(color);
            ui.add(eframe::egui::Label::new(text).truncate()).on_hover_text(words(entry, texts));
        }
        _ => {
            ui.add(eframe::egui::Label::new(RichText::new(words(entry, texts)).small().weak()).truncate());
        }
    }
}

/// How the recording fares.
fn words(entry: &Entry, texts: &Texts) -> String {
    match &entry.status {
        Status::Waiting => texts.status_waiting.to_owned(),
        Status::Running { stage, fraction, .. } => {
            format!("{}, {:.0} %", stage_name(*stage, texts), 100.0 * fraction)
        }
        Status::Stopping => texts.status_stopping.to_owned(),
        Status::Failed(reason) => reason.clone(),
        Status::Cancelled => texts.status_cancelled.to_owned(),
        Status::Done => match (entry.problems.first(), &entry.document) {
            (Some((path, reason)), _) => {
                format!("{}: {reason}", path.file_name().unwrap_or_default().to_string_lossy())
            }
            (None, Some(document)) => {
                let speakers = document.speakers().len();
                let edited = if document.edited() { format!(" · {}", texts.edited) } else { String::new() };
                let length = crate::gui::timeline::axis::clock(document.duration());
                format!("{length} · {speakers} {}{edited}", texts.speakers.to_lowercase())
            }
            (None, None) => texts.status_done.to_owned(),
        },
    }
}

fn stage_name(stage: Stage, texts: &Texts) -> &'static str {
    match stage {
        Stage::Decode => texts.stage_decode,
        Stage::Segmentation => texts.stage_segmentation,
        Stage::Embedding => texts.stage_embedding,
        Stage::Clustering => texts.stage_clustering,
        Stage::Write => texts.stage_write,
    }
}

/// What can be done with a recording, from right to left.
fn buttons(ui: &mut Ui, view: &mut View<'_>, index: usize) {
    let (entry, texts) = (&view.state.entries[index], view.texts);
    let (id, name) = (entry.id, entry.name());
    let labelled = |action: &str| format!("{action}: {name}");
    if entry.status.is_open() {
        let enabled = entry.status != Status::Stopping;
        if icon(ui, "×", &labelled(texts.cancel), enabled).clicked() {
            view.ask(Command::Cancel(vec![id]));
        }
    } else {
        if icon(ui, "×", &labelled(texts.remove), true).clicked() {
            view.ask(Command::Remove(vec![id]));
        }
        if icon(ui, "↻", &labelled(texts.retry), true).clicked() {
            view.ask(Command::Retry(vec![id], false));
        }
    }
}

/// Clicks, keys, dragging and the menu of a row.
fn act(response: &Response, view: &mut View<'_>, index: usize) {
    let state = view.state;
    let id = state.entries[index].id;
    if response.clicked() {
        let modifiers = response.ctx.input(|input| input.modifiers);
        let mut selection: Vec<EntryId> = state.selected.iter().copied().collect();
        if modifiers.command {
            match selection.iter().position(|&other| other == id) {
                Some(at) => drop(selection.remove(at)),
                None => selection.push(id),
            }
        } else if modifiers.shift {
            let anchor = state.open.as_ref().map_or(id, |open| open.entry);
            let from = state.entries.iter().position(|entry| entry.id == anchor).unwrap_or(index);
            selection =
                state.entries[from.min(index)..=from.max(index)].iter().map(|entry| entry.id).collect();
        } else {
            selection = vec![id];
            view.ask(Command::Open(id));
        }
        view.ask(Command::Select(selection));
        response.request_focus();
    }
    if response.has_focus() {
        keys(response, view, index);
    }
    if response.drag_stopped()
        && let Some(pointer) = response.ctx.input(|input| input.pointer.interact_pos())
    {
        let rows = ((pointer.y - response.rect.center().y) / ROW).round() as isize;
        if rows != 0 {
            view.ask(Command::Shift(id, rows));
        }
    }
    let texts = view.texts;
    response.context_menu(|ui| {
        let entry = &view.state.entries[index];
        let open = entry.status.is_open();
        let ids = match view.state.selected.contains(&id) {
            true => view.state.selected.iter().copied().collect(),
            false => vec![id],
        };
        if open && ui.button(texts.cancel).clicked() {
            view.ask(Command::Cancel(ids.clone()));
        }
        if !open && ui.button(texts.retry).clicked() {
            view.ask(Command::Retry(ids.clone(), false));
        }
        if !entry.problems.is_empty() && ui.button(texts.replace_results).clicked() {
            view.ask(Command::Retry(ids.clone(), true));
        }
        if ui.button(texts.move_up).clicked() {
            view.ask(Command::Shift(id, -1));
        }
        if ui.button(texts.move_down).clicked() {
            view.ask(Command::Shift(id, 1));
        }
        if let Some(folder) = entry.written.first().and_then(|path| path.parent())
            && ui.button(texts.show_folder).clicked()
        {
            view.ask(Command::ShowFolder(folder.to_owned()));
        }
        if ui.button(texts.remove).clicked() {
            view.ask(Command::Remove(ids));
        }
    });
}

fn keys(response: &Response, view: &mut View<'_>, index: usize) {
    let entries = &view.state.entries;
    let id = entries[index].id;
    let pressed =
        |modifiers: Modifiers, key: Key| response.ctx.input_mut(|input| input.consume_key(modifiers, key));
    if pressed(Modifiers::ALT, Key::ArrowUp) {
        view.ask(Command::Shift(id, -1));
    } else if pressed(Modifiers::ALT, Key::ArrowDown) {
        view.ask(Command::Shift(id, 1));
    } else if pressed(Modifiers::NONE, Key::Enter) {
        view.ask(Command::Open(id));
        view.ask(Command::Select(vec![id]));
    } else if pressed(Modifiers::NONE, Key::Delete) {
        view.ask(Command::Remove(vec![id]));
    } else if pressed(Modifiers::NONE, Key::Escape) {
        view.ask(Command::Cancel(vec![id]));
    }
}
