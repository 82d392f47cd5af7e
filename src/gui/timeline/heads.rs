//! What stands at the left: buttons for the view, the time, and each speaker's name with its buttons.

use eframe::egui::{
    Align, Align2, Button, FontId, Layout, Rect, Response, RichText, Ui, UiBuilder, accesskit, pos2, vec2,
};

use super::axis::{clock, length};
use super::paint;
use super::show::Frame;
use super::state::State;
use super::{Event, Target};

/// Width below which a head has no room for buttons.
const ROOM_FOR_BUTTONS: f32 = 180.0;

/// Buttons beside the overview.
pub(super) fn corner(ui: &mut Ui, rect: Rect, frame: &Frame<'_>, state: &mut State) {
    let size = vec2(28.0, 28.0f32.min(rect.height()));
    let layout = Layout::left_to_right(Align::Center);
    let mut ui = ui.new_child(UiBuilder::new().id_salt("view").max_rect(rect).layout(layout));
    ui.spacing_mut().item_spacing.x = 4.0;
    ui.spacing_mut().button_padding = vec2(6.0, 2.0);
    ui.spacing_mut().interact_size.y = size.y;
    let mut button = |text: &str, name: &str, hint: &str| {
        let button = Button::new(RichText::new(text).size(14.0)).min_size(size);
        ui.add(button).on_hover_text(hint).accessible_name(name).clicked()
    };
    if button("−", "Zoom out", "Zoom out (-)") {
        state.zoom(1.0 / 1.5, frame.input.play_head);
    }
    if button("+", "Zoom in", "Zoom in (+)") {
        state.zoom(1.5, frame.input.play_head);
    }
    if button("Fit", "Show the whole recording", "Show the whole recording (F)") {
        state.fit();
    }
    if rect.width() >= ROOM_FOR_BUTTONS {
        let follow = Button::selectable(state.follow, RichText::new("Follow").size(13.0)).min_size(size);
        let response = ui.add(follow).on_hover_text("Keep the play head in view while playing (L)");
        if response.accessible_name("Follow the play head").clicked() {
            state.follow = !state.follow;
        }
    }
}

/// Where the play head is, beside the waveform.
pub(super) fn wave(ui: &Ui, frame: &Frame<'_>) {
    let (rect, colors) = (frame.regions.wave_head, &frame.colors);
    let painter = ui.painter_at(rect);
    let mut y = rect.top() + 6.0;
    let mut line = |text: String, font: FontId, color| {
        if y + font.size < rect.bottom() {
            painter.text(pos2(rect.left() + 12.0, y), Align2::LEFT_TOP, text, font.clone(), color);
        }
        y += font.size + 6.0;
    };
    let model = frame.input.model;
    line(clock(frame.input.play_head), FontId::monospace(17.0), colors.text);
    line(format!("of {}", clock(model.duration())), FontId::proportional(paint::SMALL), colors.text_weak);
    let overlap = model.overlaps().total();
    if overlap > 0.0 {
        line(
            format!("{} overlapping", length(overlap)),
            FontId::proportional(paint::SMALL),
            colors.text_weak,
        );
    }
    if let Some((from, to)) = frame.input.selection.range {
        let rect = frame.regions.ruler_head;
        let text = format!("{} selected", length(to - from));
        let place = pos2(rect.left() + 12.0, rect.center().y);
        painter.with_clip_rect(rect).text(
            place,
            Align2::LEFT_CENTER,
            text,
            FontId::proportional(paint::SMALL),
            colors.text,
        );
    }
}

/// A speaker's name, time and buttons.
pub(super) fn lane(ui: &mut Ui, rect: Rect, frame: &Frame<'_>, number: usize, events: &mut Vec<Event>) {
    let lane = &frame.input.model.lanes()[number];
    let (speaker, look) = (lane.speaker.id, &frame.looks[number]);
    let badge = Rect::from_center_size(pos2(rect.left() + 22.0, rect.center().y), vec2(24.0, 24.0));
    let painter = ui.painter_at(rect.intersect(ui.clip_rect()));
    painter.rect_filled(rect.with_max_y(rect.bottom() - 1.0), 0.0, frame.colors.panel);
    paint::badge(&painter, badge, look);
    let buttons = if rect.width() >= ROOM_FOR_BUTTONS { 3.0 * 22.0 + 10.0 } else { 4.0 };
    let text = Rect::from_min_max(
        pos2(badge.right() + 8.0, rect.top()),
        pos2(rect.right() - buttons, rect.bottom()),
    );
    let middle = rect.center().y;

    let name = RichText::new(&lane.speaker.name).size(14.0).color(frame.colors.text);
    let name_rect = Rect::from_min_max(pos2(text.left(), middle - 16.0), pos2(text.right(), middle + 2.0));
    let mut inner = ui.new_child(
        UiBuilder::new()
            .id_salt(("lane", speaker))
            .max_rect(name_rect)
            .layout(Layout::left_to_right(Align::Center)),
    );
    inner.spacing_mut().button_padding = vec2(0.0, 0.0);
    inner.spacing_mut().interact_size.y = 18.0;
    let response = inner.add(Button::new(name).frame(false).truncate());
    name_events(ui, &response, frame, number, events);
    let time = format!("{}  ·  {}", length(lane.total), turns(lane.turns.len()));
    painter.with_clip_rect(text.intersect(painter.clip_rect())).text(
        pos2(text.left(), middle + 3.0),
        Align2::LEFT_TOP,
        &time,
        FontId::proportional(paint::SMALL),
        frame.colors.text_weak,
    );
    ui.ctx().accesskit_node_builder(response.id, |node| {
        node.set_label(lane.speaker.name.clone());
        node.set_description(format!("Speaker {}, {time}", look.letter));
    });
    if rect.width() >= ROOM_FOR_BUTTONS {
        voice(ui, rect, frame, number, events);
    }
}

fn turns(count: usize) -> String {
    if count == 1 { "1 turn".to_owned() } else { format!("{count} turns") }
}

fn name_events(ui: &Ui, response: &Response, frame: &Frame<'_>, number: usize, events: &mut Vec<Event>) {
    let lane = &frame.input.model.lanes()[number];
    let speaker = lane.speaker.id;
    let hint = "Click to select all turns, double-click to rename";
    let response = response.clone().on_hover_text(format!("{}\n{hint}", lane.speaker.name));
    if response.double_clicked() {
        events.push(Event::RenameRequest(speaker));
    } else if response.clicked() {
        let turns = lane.turns.iter().map(|&i| frame.input.model.turns()[i as usize].id);
        events.push(Event::SelectTurns(turns.collect()));
    }
    if response.secondary_clicked() {
        let position = response.interact_pointer_pos().unwrap_or(response.rect.left_bottom());
        events.push(Event::ContextMenu {
            target: Target::Speaker(speaker),
            at: frame.input.play_head,
            position,
        });
    }
    if response.has_focus() && ui.input(|i| i.key_pressed(eframe::egui::Key::F2)) {
        events.push(Event::RenameRequest(speaker));
    }
}

/// Play, solo and mute.
fn voice(ui: &mut Ui, rect: Rect, frame: &Frame<'_>, number: usize, events: &mut Vec<Event>) {
    let speaker = frame.input.model.lanes()[number].speaker.id;
    let name = &frame.input.model.lanes()[number].speaker.name;
    let (solo, muted) = (frame.input.solo.contains(&speaker), frame.input.muted.contains(&speaker));
    let kinds = [
        ("▶", "Play", "Play a sample of this speaker", None, Event::PlaySpeaker(speaker)),
        ("S", "Solo", "Hear this speaker alone", Some(solo), Event::ToggleSolo(speaker)),
        ("M", "Mute", "Do not hear this speaker", Some(muted), Event::ToggleMute(speaker)),
    ];
    for (i, (text, action, hint, state, event)) in kinds.into_iter().enumerate() {
        let left = rect.right() - 8.0 - (3 - i) as f32 * 22.0;
        let place = Rect::from_min_size(pos2(left, rect.center().y - 10.0), vec2(20.0, 20.0));
        let mut inner = ui.new_child(UiBuilder::new().id_salt((action, speaker)).max_rect(place));
        inner.spacing_mut().button_padding = vec2(0.0, 0.0);
        inner.spacing_mut().interact_size = vec2(20.0, 20.0);
        let size = if state.is_some() { 11.5 } else { 9.5 };
        let mut text = RichText::new(text).monospace().size(size);
        if state == Some(true) {
            text = text.strong();
        }
        let button =
            Button::new(text).min_size(place.size()).selected(state == Some(true)).corner_radius(4.0);
        let label = format!("{action} {name}");
        let response = inner.add(button).on_hover_text(hint);
        ui.ctx().accesskit_node_builder(response.id, |node| {
            node.set_label(label.clone());
            match state {
                Some(on) => node.set_toggled(on.into()),
                None => node.set_role(accesskit::Role::Button),
            }
        });
        if response.clicked() {
            events.push(event);
        }
    }
}
