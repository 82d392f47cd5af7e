//! What the pointer does to the lanes: select turns, move their ends, give them to other speakers.

use std::collections::BTreeSet;

use eframe::egui::{CursorIcon, Modifiers, PointerButton, Pos2, Response, Ui, pos2, vec2};

use super::axis::{clock, length};
use super::drag::{Drag, with_boundary};
use super::hit::{Edge, Hit, hit, in_band};
use super::show::Frame;
use super::state::State;
use super::time::{pan, scroll_at_edges, second, seek, snapped};
use super::{Event, SHORTEST_TURN, Target, keys};

/// How near to the first or last lane in view a drag scrolls the lanes, in points.
const SCROLL_ZONE: f32 = 14.0;

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
        ui.scroll_with_delta(vec2(0.0, response.drag_delta().y));
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
            Some(Drag::Band { start, now: start, keep, before: input.selection.turns.clone() })
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
            // A turn that is shorter already stays as it is rather than growing.
            let shortest = SHORTEST_TURN.min(turn.duration());
            *now = match edge {
                Edge::Start => at.min(turn.end - shortest),
                Edge::End => at.max(turn.start + shortest),
            };
            ui.ctx().set_cursor_icon(CursorIcon::ResizeHorizontal);
        }
        Some(Drag::Move { to, .. }) => {
            let last = input.model.lanes().len().saturating_sub(1);
            let bottom = top + frame.regions.lane_height * last as f32;
            *to = lane_at(frame, top, pointer.y.clamp(top, bottom)).unwrap_or(*to);
            ui.ctx().set_cursor_icon(CursorIcon::Grabbing);
            scroll_lanes(ui, pointer, top, frame);
            return;
        }
        Some(Drag::Band { start, now, keep, .. }) => {
            *now = (axis.second(pointer.x), pointer.y - top);
            scroll_lanes(ui, pointer, top, frame);
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

/// Scrolls the lanes while something is dragged to the first or last one in view.
fn scroll_lanes(ui: &Ui, pointer: Pos2, top: f32, frame: &Frame<'_>) {
    let seen = frame.regions.lanes;
    let bottom = top + frame.regions.lane_height * frame.input.model.lanes().len() as f32;
    let below = (pointer.y - seen.bottom() + SCROLL_ZONE).clamp(0.0, (bottom - seen.bottom()).max(0.0));
    let above = (seen.top() + SCROLL_ZONE - pointer.y).clamp(0.0, (seen.top() - top).max(0.0));
    if below > 0.5 || above > 0.5 {
        ui.scroll_with_delta(vec2(0.0, (above - below) * ui.input(|i| i.stable_dt) * 30.0));
        ui.ctx().request_repaint();
    }
}

fn finish(drag: Drag, frame: &Frame<'_>, events: &mut Vec<Event>) {
    let model = frame.input.model;
    match drag {
        Drag::Boundary { turn, edge, now, .. } => {
            let Some((start, end)) = with_boundary(model, turn, edge, now) else { return };
            if model.turn(turn).is_some_and(|(_, found)| (start, end) != (found.start, found.end)) {
                events.push(Event::MoveBoundary { turn, start, end });
            }
        }
        Drag::Move { mut turns, from, to } if from != to => {
            turns.retain(|&turn| model.turn(turn).is_some());
            if let Some(lane) = model.lanes().get(to).filter(|_| !turns.is_empty()) {
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
    let input = frame.input;
    let at = second(pointer.x, frame);
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
    let turn = &frame.input.model.turns()[turn];
    let name = frame.name(turn.speaker);
    response.clone().on_hover_ui_at_pointer(|ui| {
        ui.strong(name);
        ui.label(format!("{} to {}", clock(turn.start), clock(turn.end)));
        ui.label(length(turn.duration()));
    });
}
