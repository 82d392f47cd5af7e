//! What pointer and keys do to ruler, waveform and errors: all of them move the play head and select stretches of time.

use eframe::egui::{
    CursorIcon, EventFilter, Id, Key, Modifiers, PointerButton, Pos2, Rect, Response, Sense, Ui, WidgetInfo,
    accesskit,
};

use super::axis::clock;
use super::drag::Drag;
use super::hit::snap;
use super::show::Frame;
use super::state::State;
use super::{Event, Target, keys};

/// How near to the play head's handle it is taken hold of, in points.
const HANDLE_REACH: f32 = 6.0;

/// How far an arrow key moves the play head, in seconds; ten times as far with Shift.
pub(super) const STEP: f64 = 1.0;

/// The middle button moves what is under it.
pub(super) fn pan(response: &Response, state: &mut State) {
    if response.dragged_by(PointerButton::Middle) {
        state.scroll_by(-f64::from(response.drag_delta().x) * state.present().scale);
    }
}

/// Scrolls while something is dragged over the left or right edge.
pub(super) fn scroll_at_edges(ui: &Ui, pointer: Pos2, frame: &Frame<'_>, state: &mut State) {
    let over = (pointer.x - frame.axis.right()).max(0.0) + (pointer.x - frame.axis.left).min(0.0);
    if over != 0.0 {
        let seconds = f64::from(over) * frame.axis.view.scale * f64::from(ui.input(|i| i.stable_dt)) * 6.0;
        state.scroll_by(seconds);
        ui.ctx().request_repaint();
    }
}

/// The second of the recording at a screen coordinate.
pub(super) fn second(x: f32, frame: &Frame<'_>) -> f64 {
    frame.axis.second(x).clamp(0.0, frame.input.model.duration())
}

/// The second under the pointer, to the millisecond; on a boundary near it unless Alt is held.
pub(super) fn snapped(ui: &Ui, x: f32, frame: &Frame<'_>, moving: &[f64]) -> f64 {
    let Frame { input, axis, .. } = frame;
    let second = second(x.clamp(axis.left, axis.right()), frame);
    let free = ui.input(|i| i.modifiers.alt);
    let found =
        if free { None } else { snap(input.model, input.selection, axis, input.play_head, second, moving) };
    found.unwrap_or_else(|| ((second * 1000.0).round() / 1000.0).min(input.model.duration()))
}

/// Moves the play head; a click outside of the selected range also drops it.
pub(super) fn seek(at: f64, frame: &Frame<'_>, events: &mut Vec<Event>) {
    if frame.input.selection.range.is_some_and(|(from, to)| !(from..=to).contains(&at)) {
        events.push(Event::SelectRange(None));
    }
    events.push(Event::Seek(at));
}

/// The ruler: that of the waveform, and it holds the handle of the play head, which keys move too.
pub(super) fn ruler(ui: &Ui, rect: Rect, frame: &Frame<'_>, state: &mut State, events: &mut Vec<Event>) {
    let response = ui.interact(rect, ui.scope_id().with("ruler"), Sense::click_and_drag());
    strip(ui, &response, Some(frame.axis.x(frame.input.play_head)), frame, state, events);
    handle_keys(ui, &response, frame, state, events);
    ui.ctx().accesskit_node_builder(response.id, |node| {
        node.set_role(accesskit::Role::Slider);
        node.set_label("Play head");
        node.set_value(clock(frame.input.play_head));
        node.set_numeric_value(frame.input.play_head);
        node.set_min_numeric_value(0.0);
        node.set_max_numeric_value(frame.input.model.duration());
        node.set_numeric_value_step(STEP);
        node.add_action(accesskit::Action::Increment);
        node.add_action(accesskit::Action::Decrement);
        node.add_action(accesskit::Action::SetValue);
    });
}

/// Waveform and errors: a click moves the play head, a drag selects a range.
pub(super) fn area(
    ui: &Ui,
    rect: Rect,
    id: Id,
    label: &str,
    frame: &Frame<'_>,
    state: &mut State,
    events: &mut Vec<Event>,
) {
    let response = ui.interact(rect, id, Sense::CLICK | Sense::DRAG);
    strip(ui, &response, None, frame, state, events);
    response.widget_info(|| WidgetInfo::labeled(accesskit::Role::Image, true, label));
}

/// What the pointer does; `handle` is where the play head can be taken hold of.
fn strip(
    ui: &Ui,
    response: &Response,
    handle: Option<f32>,
    frame: &Frame<'_>,
    state: &mut State,
    events: &mut Vec<Event>,
) {
    pan(response, state);
    let on_handle = |pointer: Pos2| handle.is_some_and(|x| (pointer.x - x).abs() <= HANDLE_REACH);
    if response.drag_started_by(PointerButton::Primary)
        && let Some(origin) = ui.input(|i| i.pointer.press_origin())
    {
        keys::focus(ui, frame);
        state.drag = Some(if on_handle(origin) {
            Drag::PlayHead { before: frame.input.play_head }
        } else {
            let from = snapped(ui, origin.x, frame, &[]);
            Drag::Range { from, to: from }
        });
    }
    let pointer = response.interact_pointer_pos();
    if let Some(pointer) = pointer.filter(|_| response.dragged_by(PointerButton::Primary)) {
        drag(ui, pointer, frame, state, events);
    }
    if response.drag_stopped_by(PointerButton::Primary)
        && let Some(Drag::Range { from, to }) = state.drag.take()
        && from != to
    {
        events.push(Event::SelectRange(Some((from.min(to), from.max(to)))));
    }
    if let Some(pointer) = pointer {
        let at = second(pointer.x, frame);
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

fn drag(ui: &Ui, pointer: Pos2, frame: &Frame<'_>, state: &mut State, events: &mut Vec<Event>) {
    match &mut state.drag {
        Some(Drag::Range { to, .. }) => *to = snapped(ui, pointer.x, frame, &[]),
        Some(Drag::PlayHead { .. }) => events.push(Event::Seek(second(pointer.x, frame))),
        _ => return,
    }
    scroll_at_edges(ui, pointer, frame, state);
}

/// Arrow keys and a screen reader's requests move the play head.
fn handle_keys(ui: &Ui, response: &Response, frame: &Frame<'_>, state: &mut State, events: &mut Vec<Event>) {
    let asked = |action| ui.input(|i| i.num_accesskit_action_requests(response.id, action)) as f64;
    let mut steps = asked(accesskit::Action::Increment) - asked(accesskit::Action::Decrement);
    if response.has_focus() {
        let filter = EventFilter { horizontal_arrows: true, ..Default::default() };
        ui.memory_mut(|memory| memory.set_focus_lock_filter(response.id, filter));
        for (key, by) in [(Key::ArrowLeft, -1.0), (Key::ArrowRight, 1.0)] {
            if keys::pressed(ui, Modifiers::SHIFT, key) {
                steps += 10.0 * by;
            } else if keys::pressed(ui, Modifiers::NONE, key) {
                steps += by;
            }
        }
    }
    if steps != 0.0 {
        step(steps * STEP, frame, state, events);
    }
    let wanted = ui.input(|i| {
        let requests = i.accesskit_action_requests(response.id, accesskit::Action::SetValue);
        let number = |data: &Option<accesskit::ActionData>| match data {
            Some(accesskit::ActionData::NumericValue(value)) => Some(*value),
            _ => None,
        };
        requests.filter_map(|request| number(&request.data)).last()
    });
    if let Some(at) = wanted.filter(|at| at.is_finite()) {
        step(at - frame.input.play_head, frame, state, events);
    }
}

/// Moves the play head by a number of seconds, and the view with it.
pub(super) fn step(by: f64, frame: &Frame<'_>, state: &mut State, events: &mut Vec<Event>) {
    let at = (frame.input.play_head + by).clamp(0.0, frame.input.model.duration());
    state.reveal_time(at, at);
    events.push(Event::Seek(at));
}
