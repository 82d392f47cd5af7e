//! What the pointer does to ruler, waveform and lanes.

use std::collections::BTreeSet;

use eframe::egui::{
    CursorIcon, Modifiers, PointerButton, Pos2, Rect, Response, Sense, Stroke, StrokeKind, Ui, pos2,
};

use super::axis::{clock, length};
use super::layout::{Edge, Hit, Regions, hit, in_band, snap, turn_rect};
use super::model::TurnId;
use super::show::{Frame, lane_rect};
use super::state::{Drag, State};
use super::{Event, Input, SHORTEST_TURN, Target, keys};

/// How near to the play head's handle it is taken hold of, in points.
const HANDLE_REACH: f32 = 6.0;

/// Zooms at the pointer, and scrolls: sideways through time, up and down through lanes that do not fit, else also
/// through time.
pub(super) fn wheel(ui: &Ui, regions: Regions, input: &Input<'_>, state: &mut State) {
    let Some(pointer) = ui.input(|i| i.pointer.hover_pos()) else { return };
    if !ui.rect_contains_pointer(ui.max_rect()) {
        return;
    }
    let (zoom, scroll) = ui.input(|i| (f64::from(i.zoom_delta()), i.smooth_scroll_delta()));
    let before = state.view;
    let width = regions.wave.width();
    if zoom != 1.0 {
        let inside = regions.ruler.x_range().contains(pointer.x) && !regions.overview.contains(pointer);
        let x = if inside { pointer.x - regions.wave.left() } else { width / 2.0 };
        state.view = Some(state.present().zoomed(zoom, f64::from(x), state.duration, width));
    }
    let lanes_height = regions.lane_height * input.model.lanes().len() as f32;
    let lanes_scroll = lanes_height > regions.lanes.height() + 0.5 && regions.lanes.contains(pointer);
    let sideways = scroll.x + if lanes_scroll { 0.0 } else { scroll.y };
    if sideways != 0.0 {
        state.scroll_by(-f64::from(sideways) * state.present().scale);
    }
    ui.input_mut(|i| {
        i.smooth_scroll_delta.x = 0.0;
        if !lanes_scroll {
            i.smooth_scroll_delta.y = 0.0;
        }
    });
    let view = state.present();
    let in_view = (view.start..=view.start + view.length(width)).contains(&input.play_head);
    if state.view != before && input.playing && !in_view {
        state.follow = false;
    }
}

/// The middle button moves what is under it.
fn pan(response: &Response, state: &mut State) {
    if response.dragged_by(PointerButton::Middle) {
        state.scroll_by(-f64::from(response.drag_delta().x) * state.present().scale);
    }
}

/// Scrolls while something is dragged over the left or right edge.
fn scroll_at_edges(ui: &Ui, pointer: Pos2, frame: &Frame<'_>, state: &mut State) {
    let over = (pointer.x - frame.axis.right()).max(0.0) + (pointer.x - frame.axis.left).min(0.0);
    if over != 0.0 {
        let seconds = f64::from(over) * frame.axis.view.scale * f64::from(ui.input(|i| i.stable_dt)) * 6.0;
        state.scroll_by(seconds);
        ui.ctx().request_repaint();
    }
}

/// The second of the recording under the pointer, to the millisecond; on a boundary near it unless Alt is held.
fn snapped(ui: &Ui, x: f32, frame: &Frame<'_>, moving: &[f64]) -> f64 {
    let Frame { input, axis, .. } = frame;
    let duration = input.model.duration();
    let second = axis.second(x.clamp(axis.left, axis.right())).clamp(0.0, duration);
    let free = ui.input(|i| i.modifiers.alt);
    let found =
        if free { None } else { snap(input.model, input.selection, axis, input.play_head, second, moving) };
    found.unwrap_or_else(|| ((second * 1000.0).round() / 1000.0).min(duration))
}

/// Ruler and waveform: a click moves the play head, a drag selects a range or takes the play head along.
pub(super) fn time(
    ui: &Ui,
    rect: Rect,
    name: &str,
    frame: &Frame<'_>,
    state: &mut State,
    events: &mut Vec<Event>,
) {
    let response = ui.interact(rect, ui.scope_id().with(name), Sense::CLICK | Sense::DRAG);
    pan(&response, state);
    let handle = frame.axis.x(frame.input.play_head);
    let on_handle = |pointer: Pos2| name == "ruler" && (pointer.x - handle).abs() <= HANDLE_REACH;
    if response.drag_started_by(PointerButton::Primary)
        && let Some(origin) = ui.input(|i| i.pointer.press_origin())
    {
        keys::focus(ui, frame);
        state.drag = Some(if on_handle(origin) {
            Drag::PlayHead
        } else {
            let from = snapped(ui, origin.x, frame, &[]);
            Drag::Range { from, to: from }
        });
    }
    if let Some(pointer) =
        response.interact_pointer_pos().filter(|_| response.dragged_by(PointerButton::Primary))
    {
        let at = snapped(ui, pointer.x, frame, &[]);
        match &mut state.drag {
            Some(Drag::Range { to, .. }) => *to = at,
            Some(Drag::PlayHead) => {
                let second = frame.axis.second(pointer.x).clamp(0.0, frame.input.model.duration());
                events.push(Event::Seek(second));
            }
            _ => return,
        }
        scroll_at_edges(ui, pointer, frame, state);
    }
    if response.drag_stopped_by(PointerButton::Primary) {
        match state.drag.take() {
            Some(Drag::Range { from, to }) if from != to => {
                events.push(Event::SelectRange(Some((from.min(to), from.max(to)))));
            }
            _ => {}
        }
    }
    if let Some(pointer) = response.interact_pointer_pos() {
        let at = frame.axis.second(pointer.x).clamp(0.0, frame.input.model.duration());
        if response.clicked_by(PointerButton::Primary) {
            keys::focus(ui, frame);
            seek(at, frame, events);
        }
        if response.secondary_clicked() {
            events.push(Event::ContextMenu { target: Target::Time, at, position: pointer });
        }
    }
    if let Some(pointer) = response.hover_pos().filter(|_| state.drag.is_none()) {
        ui.ctx().set_cursor_icon(if on_handle(pointer) { CursorIcon::Grab } else { CursorIcon::Default });
    }
}

/// Moves the play head; a click outside of the selected range also drops it.
fn seek(at: f64, frame: &Frame<'_>, events: &mut Vec<Event>) {
    if frame.input.selection.range.is_some_and(|(from, to)| !(from..=to).contains(&at)) {
        events.push(Event::SelectRange(None));
    }
    events.push(Event::Seek(at));
}

/// The lane at a height, `top` being that of the first one.
fn lane_at(frame: &Frame<'_>, top: f32, y: f32) -> Option<usize> {
    let number = ((y - top) / frame.regions.lane_height).floor();
    (number >= 0.0 && (number as usize) < frame.input.model.lanes().len()).then_some(number as usize)
}

fn hit_at(frame: &Frame<'_>, top: f32, pointer: Pos2) -> Hit {
    let lane = lane_at(frame, top, pointer.y).and_then(|number| frame.input.model.lanes().get(number));
    let found = lane.map_or(Hit::Nothing, |lane| hit(frame.input.model, lane, &frame.axis, pointer.x));
    match found {
        Hit::Edge(turn, _) if !frame.input.editable => Hit::Body(turn),
        found => found,
    }
}

/// The lanes: select, move, change the ends of turns. `top` is the upper edge of the first lane, which may be scrolled
/// out of view.
pub(super) fn lanes(
    ui: &Ui,
    response: &Response,
    top: f32,
    frame: &Frame<'_>,
    state: &mut State,
    events: &mut Vec<Event>,
) {
    pan(response, state);
    if response.dragged_by(PointerButton::Middle) {
        ui.scroll_with_delta(eframe::egui::vec2(0.0, response.drag_delta().y));
    }
    if response.drag_started_by(PointerButton::Primary)
        && let Some(origin) = ui.input(|i| i.pointer.press_origin())
    {
        response.request_focus();
        state.drag = begin(ui, origin, top, frame, events);
    }
    if let Some(pointer) =
        response.interact_pointer_pos().filter(|_| response.dragged_by(PointerButton::Primary))
    {
        drag(ui, pointer, top, frame, state, events);
    }
    if response.drag_stopped_by(PointerButton::Primary)
        && let Some(drag) = state.drag.take()
    {
        finish(drag, frame, events);
    }
    if let Some(pointer) = response.interact_pointer_pos() {
        clicks(ui, response, pointer, hit_at(frame, top, pointer), frame, state, events);
    }
    if let Some(pointer) = response.hover_pos().filter(|_| state.drag.is_none()) {
        let found = hit_at(frame, top, pointer);
        ui.ctx().set_cursor_icon(match found {
            Hit::Edge(..) => CursorIcon::ResizeHorizontal,
            Hit::Body(_) => CursorIcon::PointingHand,
            Hit::Nothing => CursorIcon::Default,
        });
        if let Hit::Edge(turn, _) | Hit::Body(turn) = found {
            tooltip(response, turn, frame);
        }
    }
}

/// What a drag that began at `origin` does.
fn begin(ui: &Ui, origin: Pos2, top: f32, frame: &Frame<'_>, events: &mut Vec<Event>) -> Option<Drag> {
    let Frame { input, axis, .. } = frame;
    let modifiers = ui.input(|i| i.modifiers);
    let found = if adds(modifiers) { Hit::Nothing } else { hit_at(frame, top, origin) };
    match found {
        Hit::Edge(turn, edge) => {
            let turn = &input.model.turns()[turn];
            let now = if edge == Edge::Start { turn.start } else { turn.end };
            Some(Drag::Boundary { turn: turn.id, edge, offset: origin.x - axis.x(now), now })
        }
        Hit::Body(turn) => {
            let id = input.model.turns()[turn].id;
            let turns = if input.selection.turns.contains(&id) {
                input.selection.turns.iter().copied().collect()
            } else {
                events.push(Event::SelectTurns([id].into()));
                vec![id]
            };
            let from = lane_at(frame, top, origin.y)?;
            input.editable.then_some(Drag::Move { turns, from, to: from })
        }
        Hit::Nothing => {
            let keep = if adds(modifiers) { input.selection.turns.clone() } else { BTreeSet::new() };
            let start = (axis.second(origin.x), origin.y - top);
            Some(Drag::Band { start, now: start, keep })
        }
    }
}

fn adds(modifiers: Modifiers) -> bool {
    modifiers.command || modifiers.shift
}

fn drag(ui: &Ui, pointer: Pos2, top: f32, frame: &Frame<'_>, state: &mut State, events: &mut Vec<Event>) {
    let Frame { input, axis, .. } = frame;
    match &mut state.drag {
        Some(Drag::Boundary { turn, edge, offset, now }) => {
            let Some((_, turn)) = input.model.turn(*turn) else { return };
            let at = snapped(ui, pointer.x - *offset, frame, &[turn.start, turn.end]);
            *now = match edge {
                Edge::Start => at.min(turn.end - SHORTEST_TURN).max(0.0),
                Edge::End => at.max(turn.start + SHORTEST_TURN),
            };
            ui.ctx().set_cursor_icon(CursorIcon::ResizeHorizontal);
        }
        Some(Drag::Move { to, .. }) => {
            let last = input.model.lanes().len().saturating_sub(1);
            let bottom = top + frame.regions.lane_height * last as f32;
            *to = lane_at(frame, top, pointer.y.clamp(top, bottom)).unwrap_or(*to);
            ui.ctx().set_cursor_icon(CursorIcon::Grabbing);
            return;
        }
        Some(Drag::Band { start, now, keep }) => {
            *now = (axis.second(pointer.x), pointer.y - top);
            let (a, b) = (pos2(axis.x(start.0), start.1 + top), pointer);
            let mut turns = keep.clone();
            turns.extend(in_band(input.model, axis, top, frame.regions.lane_height, a, b));
            if turns != input.selection.turns {
                events.push(Event::SelectTurns(turns));
            }
        }
        _ => return,
    }
    scroll_at_edges(ui, pointer, frame, state);
}

fn finish(drag: Drag, frame: &Frame<'_>, events: &mut Vec<Event>) {
    let model = frame.input.model;
    match drag {
        Drag::Boundary { turn, edge, now, .. } => {
            let Some((_, found)) = model.turn(turn) else { return };
            let (start, end) = match edge {
                Edge::Start => (now, found.end),
                Edge::End => (found.start, now),
            };
            if (start, end) != (found.start, found.end) {
                events.push(Event::MoveBoundary { turn, start, end });
            }
        }
        Drag::Move { turns, from, to } if from != to => {
            if let Some(lane) = model.lanes().get(to) {
                events.push(Event::MoveTurns { turns, speaker: lane.speaker.id });
            }
        }
        _ => {}
    }
}

fn clicks(
    ui: &Ui,
    response: &Response,
    pointer: Pos2,
    found: Hit,
    frame: &Frame<'_>,
    state: &mut State,
    events: &mut Vec<Event>,
) {
    let Frame { input, axis, .. } = frame;
    let at = axis.second(pointer.x).clamp(0.0, input.model.duration());
    let turn = match found {
        Hit::Edge(turn, _) | Hit::Body(turn) => Some(input.model.turns()[turn].id),
        Hit::Nothing => None,
    };
    if response.double_clicked_by(PointerButton::Primary) {
        events.extend(turn.map(Event::PlayTurn));
    } else if response.clicked_by(PointerButton::Primary) {
        response.request_focus();
        let modifiers = ui.input(|i| i.modifiers);
        match turn {
            Some(turn) => events.push(Event::SelectTurns(keys::picked(frame, state, turn, modifiers))),
            None => {
                if !input.selection.turns.is_empty() && !adds(modifiers) {
                    events.push(Event::SelectTurns(BTreeSet::new()));
                }
                seek(at, frame, events);
            }
        }
    }
    if response.secondary_clicked() {
        response.request_focus();
        if let Some(turn) = turn.filter(|turn| !input.selection.turns.contains(turn)) {
            events.push(Event::SelectTurns(keys::picked(frame, state, turn, Modifiers::NONE)));
        }
        let target = turn.map_or(Target::Time, Target::Turn);
        events.push(Event::ContextMenu { target, at, position: pointer });
    }
}

fn tooltip(response: &Response, turn: usize, frame: &Frame<'_>) {
    let model = frame.input.model;
    let turn = &model.turns()[turn];
    let name = model.lane_of(turn.speaker).map_or("", |lane| model.lanes()[lane].speaker.name.as_str());
    response.clone().on_hover_ui_at_pointer(|ui| {
        ui.strong(name);
        ui.label(format!("{} to {}", clock(turn.start), clock(turn.end)));
        ui.label(length(turn.duration()));
    });
}

/// Shows in the lanes what a drag would do.
pub(super) fn previews(ui: &Ui, content: Rect, frame: &Frame<'_>, state: &State) {
    let Frame { input, axis, colors, regions, .. } = frame;
    let body = content.with_min_x(axis.left).with_max_x(axis.right());
    let painter = ui.painter_at(body.intersect(ui.clip_rect()));
    let row = |number| lane_rect(content, regions.lane_height, number).with_min_x(axis.left);
    let of = |id: TurnId| {
        let (_, turn) = input.model.turn(id)?;
        Some((*turn, input.model.lane_of(turn.speaker)?))
    };
    match &state.drag {
        Some(Drag::Boundary { turn, edge, now, .. }) => {
            let Some((turn, lane)) = of(*turn) else { return };
            let (start, end) = match edge {
                Edge::Start => (*now, turn.end),
                Edge::End => (turn.start, *now),
            };
            if let Some(old) = turn_rect(axis, row(lane), turn.start, turn.end) {
                painter.rect_filled(old, 3.0, colors.surface.gamma_multiply(0.7));
            }
            if let Some(new) = turn_rect(axis, row(lane), start, end) {
                painter.rect_filled(new, 3.0, frame.looks[lane].fill);
                painter.rect_stroke(new, 3.0, Stroke::new(2.0, colors.accent), StrokeKind::Outside);
            }
        }
        Some(Drag::Move { turns, from, to }) if from != to => {
            let (seen_from, seen_to) = axis.range();
            let seen = turns
                .iter()
                .filter_map(|&id| of(id))
                .filter(|(t, _)| t.end >= seen_from && t.start <= seen_to);
            for (turn, lane) in seen.take(axis.pixels()) {
                if let Some(old) = turn_rect(axis, row(lane), turn.start, turn.end) {
                    painter.rect_filled(old, 3.0, colors.surface.gamma_multiply(0.7));
                }
                if let Some(new) = turn_rect(axis, row(*to), turn.start, turn.end) {
                    painter.rect_filled(new, 3.0, frame.looks[*to].fill.gamma_multiply(0.85));
                    painter.rect_stroke(new, 3.0, Stroke::new(2.0, colors.accent), StrokeKind::Outside);
                }
            }
        }
        Some(Drag::Band { start, now, .. }) => {
            let place = |(second, below): (f64, f32)| pos2(axis.x(second), below + content.top());
            let band = Rect::from_two_pos(place(*start), place(*now));
            painter.rect_filled(band, 0.0, colors.accent.gamma_multiply(0.15));
            painter.rect_stroke(band, 0.0, Stroke::new(1.0, colors.accent), StrokeKind::Inside);
        }
        _ => {}
    }
}
