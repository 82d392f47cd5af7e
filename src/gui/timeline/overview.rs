//! The strip above that shows the whole recording and the part in view, which can be dragged in it.

use eframe::egui::{CursorIcon, Key, PointerButton, Rect, Sense, Ui, accesskit, pos2};

use super::axis::{Axis, View, clock};
use super::drag::{Drag, WindowPart};
use super::layout::voices;
use super::paint;
use super::show::Frame;
use super::state::State;

/// Least width of the window, in points.
const LEAST_WINDOW: f32 = 8.0;

/// How near to an edge of the window it is taken hold of, in points.
const REACH: f32 = 5.0;

/// Shows the strip and moves the view.
pub(super) fn show(ui: &mut Ui, rect: Rect, frame: &Frame<'_>, state: &mut State) {
    let duration = frame.input.model.duration();
    let whole = Axis { view: View::all(duration, rect.width()), ..frame.axis };
    let id = ui.scope_id().with("overview");
    let response = ui.interact(rect, id, Sense::click_and_drag());
    let part = window(&whole, frame.axis.range(), rect);

    let middle_at = |second: f64| second - frame.axis.view.length(rect.width()) / 2.0;
    if response.drag_started_by(PointerButton::Primary)
        && let Some(origin) = ui.input(|i| i.pointer.press_origin())
    {
        response.request_focus();
        let at = whole.second(origin.x);
        let (from, to) = frame.axis.range();
        let (part, held) = match grip(part, origin.x) {
            Some(WindowPart::Left) => (WindowPart::Left, from),
            Some(WindowPart::Right) => (WindowPart::Right, to),
            Some(WindowPart::Whole) => (WindowPart::Whole, from),
            None => (WindowPart::Whole, middle_at(at)),
        };
        state.drag = Some(Drag::Window { part, offset: held - at, before: state.view });
    }
    if let (Some(Drag::Window { part, offset, .. }), Some(pointer)) =
        (&state.drag, response.interact_pointer_pos())
    {
        let (from, to) = frame.axis.range();
        let at = (whole.second(pointer.x) + offset).clamp(0.0, duration);
        match part {
            WindowPart::Whole => state.scroll_to(at),
            WindowPart::Left => resize(state, at.min(to), to),
            WindowPart::Right => resize(state, from, at.max(from)),
        }
    } else if response.clicked_by(PointerButton::Primary)
        && let Some(pointer) = response.interact_pointer_pos()
    {
        response.request_focus();
        state.scroll_to(middle_at(whole.second(pointer.x)));
    }
    if response.drag_stopped() && matches!(state.drag, Some(Drag::Window { .. })) {
        state.drag = None;
    }
    if let Some(pointer) = response.hover_pos() {
        ui.ctx().set_cursor_icon(match grip(part, pointer.x) {
            Some(WindowPart::Left | WindowPart::Right) => CursorIcon::ResizeHorizontal,
            Some(WindowPart::Whole) if response.dragged() => CursorIcon::Grabbing,
            Some(WindowPart::Whole) => CursorIcon::Grab,
            None => CursorIcon::Default,
        });
    }
    keys(ui, &response, frame, state);
    describe(ui, &response, frame);

    draw(ui, rect, &whole, frame, state);
    let active =
        response.hovered() || response.has_focus() || matches!(state.drag, Some(Drag::Window { .. }));
    paint::window(&ui.painter_at(rect), rect, part, active, &frame.colors);
}

/// Arrow keys and a screen reader's requests move the view by a tenth of its width.
fn keys(ui: &Ui, response: &eframe::egui::Response, frame: &Frame<'_>, state: &mut State) {
    let step = 0.1 * frame.axis.view.length(frame.axis.width);
    let asked = |action| ui.input(|i| i.num_accesskit_action_requests(response.id, action)) as f64;
    let mut steps = asked(accesskit::Action::Increment) - asked(accesskit::Action::Decrement);
    if response.has_focus() {
        let filter = eframe::egui::EventFilter { horizontal_arrows: true, ..Default::default() };
        ui.memory_mut(|memory| memory.set_focus_lock_filter(response.id, filter));
        ui.input(|i| {
            steps += i.num_presses(Key::ArrowRight) as f64 - i.num_presses(Key::ArrowLeft) as f64;
            steps += 10.0 * (i.num_presses(Key::PageDown) as f64 - i.num_presses(Key::PageUp) as f64);
        });
    }
    if steps != 0.0 {
        state.scroll_by(steps * step);
    }
}

fn describe(ui: &Ui, response: &eframe::egui::Response, frame: &Frame<'_>) {
    ui.ctx().accesskit_node_builder(response.id, |node| {
        let (from, to) = frame.axis.range();
        node.set_role(accesskit::Role::Slider);
        node.set_label("Part of the recording in view");
        node.set_value(format!("{} to {}", clock(from), clock(to)));
        node.set_numeric_value(from);
        node.set_min_numeric_value(0.0);
        node.set_max_numeric_value(frame.input.model.duration());
        node.add_action(accesskit::Action::Increment);
        node.add_action(accesskit::Action::Decrement);
    });
}

fn draw(ui: &Ui, rect: Rect, whole: &Axis, frame: &Frame<'_>, state: &mut State) {
    let painter = ui.painter_at(rect);
    painter.rect_filled(rect, 0.0, frame.colors.surface);
    let key = (frame.input.model.stamp(), whole.pixels());
    if state.overview.as_ref().is_none_or(|(stamp, width, _)| (*stamp, *width) != key) {
        state.overview = Some((key.0, key.1, voices(frame.input.model, whole)));
    }
    let voices = state.overview.as_ref().map_or(&[][..], |(_, _, voices)| voices);
    let wave = frame.wave(whole, None, voices);
    paint::wave(&painter, rect, whole, &wave, |column| frame.tint(voices.get(column)));
    if let Some(range) = frame.input.selection.range {
        paint::range(&painter, rect, whole, range, frame.colors.accent);
    }
    let mark = whole.mark(whole.border(frame.input.play_head), rect.y_range());
    painter.rect_filled(mark, 0.0, frame.colors.play_head);
}

/// The rectangle of the part in view.
fn window(whole: &Axis, (from, to): (f64, f64), rect: Rect) -> Rect {
    let (left, right) = (whole.border(from), whole.border(to));
    let least = LEAST_WINDOW.min(rect.width());
    let missing = (least - (right - left)).max(0.0);
    let left = (left - missing / 2.0).clamp(rect.left(), rect.right() - least);
    let right = right.max(left + least).min(rect.right());
    Rect::from_min_max(pos2(left, rect.top()), pos2(right, rect.bottom()))
}

fn grip(part: Rect, x: f32) -> Option<WindowPart> {
    let reach = REACH.min(part.width() / 4.0);
    if (x - part.left()).abs() <= reach {
        Some(WindowPart::Left)
    } else if (x - part.right()).abs() <= reach {
        Some(WindowPart::Right)
    } else {
        (part.left() < x && x < part.right()).then_some(WindowPart::Whole)
    }
}

fn resize(state: &mut State, from: f64, to: f64) {
    let Some(axis) = state.axis else { return };
    let scale = (to - from) / f64::from(axis.width);
    state.view = Some(View { start: from, scale }.clamped(state.duration, axis.width));
}
