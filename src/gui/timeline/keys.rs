//! What the keyboard does while the turns have the focus: everything that the pointer can do.
//!
//! ← → walk through the turns in time, ↑ ↓ through the lanes; with Shift they add to the selection, with Ctrl ↑ ↓ give
//! the selected turns to the speaker above or below, and Alt ← → move the end of a turn (with Shift its start).
//! 1 to 9 give the selected turns to that speaker; Enter plays, Delete deletes, X cuts at the play head, F2 renames.
//! Ctrl ← → move the play head (with Shift further), Home and End to the ends, E to the next error (with Shift the
//! last); I and O let the selected range begin and end at it.
//! + and - zoom, F shows all, Z the selection, Page Up and Page Down scroll, L follows the play head.

use std::collections::BTreeSet;

use eframe::egui::{EventFilter, Key, Modifiers, Response, Ui, pos2};

use super::model::{ErrorKind, Turn, TurnId};
use super::show::Frame;
use super::state::State;
use super::{Event, SHORTEST_TURN, Target, time, walk};

/// How far a key moves an end of a turn, in seconds.
const NUDGE: f64 = 0.01;

const DIGITS: [Key; 9] =
    [Key::Num1, Key::Num2, Key::Num3, Key::Num4, Key::Num5, Key::Num6, Key::Num7, Key::Num8, Key::Num9];

/// Gives the turns the focus.
pub(super) fn focus(ui: &Ui, frame: &Frame<'_>) {
    ui.memory_mut(|memory| memory.request_focus(frame.canvas));
}

/// The selection after a click on a turn: alone, with Ctrl one more or less, with Shift all up to it.
pub(super) fn picked(
    frame: &Frame<'_>,
    state: &mut State,
    turn: TurnId,
    modifiers: Modifiers,
) -> BTreeSet<TurnId> {
    let (input, model) = (frame.input, frame.input.model);
    state.cursor = Some(turn);
    let mut turns = if modifiers.command { input.selection.turns.clone() } else { BTreeSet::new() };
    let ends = state.anchor.and_then(|anchor| Some((model.turn(anchor)?, model.turn(turn)?)));
    if let (true, Some((a, b))) = (modifiers.shift, ends) {
        let (first, last) = (a.0.min(b.0), a.0.max(b.0));
        let lanes = [a.1, b.1].map(|t| model.lane_of(t.speaker).unwrap_or(0));
        let between = |t: &&Turn| {
            model
                .lane_of(t.speaker)
                .is_some_and(|l| lanes[0].min(lanes[1]) <= l && l <= lanes[0].max(lanes[1]))
        };
        turns.extend(model.turns()[first..=last].iter().filter(between).map(|t| t.id));
        return turns;
    }
    state.anchor = Some(turn);
    if !(modifiers.command && turns.remove(&turn)) {
        turns.insert(turn);
    }
    turns
}

/// Acts on the keys that were pressed.
pub(super) fn keys(
    ui: &Ui,
    canvas: &Response,
    frame: &Frame<'_>,
    state: &mut State,
    events: &mut Vec<Event>,
) {
    if !canvas.has_focus() {
        return;
    }
    // Without something to leave, Escape gives the focus up.
    let escape = state.drag.is_some() || *frame.input.selection != Default::default();
    let filter = EventFilter { horizontal_arrows: true, vertical_arrows: true, escape, tab: false };
    ui.memory_mut(|memory| memory.set_focus_lock_filter(canvas.id, filter));
    if escape && pressed(ui, Modifiers::NONE, Key::Escape) {
        leave(frame, events);
    }
    walk::walk(ui, frame, state, events);
    zoom(ui, frame, state);
    play_head(ui, frame, state, events);
    if pressed(ui, Modifiers::COMMAND, Key::A) {
        events.push(Event::SelectTurns(frame.input.model.turns().iter().map(|t| t.id).collect()));
    }
    if pressed(ui, Modifiers::NONE, Key::Enter) {
        events.extend(play(frame, state));
    }
    if menu_pressed(ui) {
        menu(canvas, frame, state, events);
    }
    if let Some((_, turn)) = cursor(frame, state).filter(|_| pressed(ui, Modifiers::NONE, Key::F2)) {
        events.push(Event::RenameRequest(turn.speaker));
    }
    if frame.input.editable {
        edit(ui, frame, state, events);
    }
}

/// Whether a key was pressed with exactly these modifiers.
pub(super) fn pressed(ui: &Ui, modifiers: Modifiers, key: Key) -> bool {
    ui.input_mut(|i| i.modifiers.matches_exact(modifiers) && i.consume_key(modifiers, key))
}

/// Whether a key was pressed that opens menus.
pub(super) fn menu_pressed(ui: &Ui) -> bool {
    pressed(ui, Modifiers::SHIFT, Key::F10) || pressed(ui, Modifiers::NONE, Key::Menu)
}

/// Whether Escape was pressed, which then does nothing else.
pub(super) fn escaped(ui: &Ui) -> bool {
    ui.input_mut(|i| {
        let pressed = i.key_pressed(Key::Escape);
        i.consume_key(Modifiers::NONE, Key::Escape);
        pressed
    })
}

/// Drops the selection.
fn leave(frame: &Frame<'_>, events: &mut Vec<Event>) {
    if !frame.input.selection.turns.is_empty() {
        events.push(Event::SelectTurns(BTreeSet::new()));
    }
    if frame.input.selection.range.is_some() {
        events.push(Event::SelectRange(None));
    }
}

/// The turn that keys act on: the last one picked, if it still exists.
pub(super) fn cursor<'a>(frame: &Frame<'a>, state: &State) -> Option<(usize, &'a Turn)> {
    frame.input.model.turn(state.cursor?)
}

/// Keys that change the part in view.
fn zoom(ui: &Ui, frame: &Frame<'_>, state: &mut State) {
    let input = frame.input;
    let closer = [Key::Plus, Key::Equals]
        .into_iter()
        .any(|key| pressed(ui, Modifiers::NONE, key) || pressed(ui, Modifiers::SHIFT, key));
    if closer {
        state.zoom(1.5, input.play_head);
    }
    if pressed(ui, Modifiers::NONE, Key::Minus) {
        state.zoom(1.0 / 1.5, input.play_head);
    }
    if pressed(ui, Modifiers::NONE, Key::F) {
        state.fit();
    }
    if let Some((from, to)) = selected_time(frame).filter(|_| pressed(ui, Modifiers::NONE, Key::Z)) {
        state.show_range(from, to);
    }
    if pressed(ui, Modifiers::NONE, Key::L) {
        state.follow = !state.follow;
    }
    let (from, to) = state.visible();
    for (key, screens) in [(Key::PageUp, -0.9), (Key::PageDown, 0.9)] {
        if pressed(ui, Modifiers::NONE, key) {
            state.scroll_by(screens * (to - from));
        }
    }
}

/// Keys that move the play head, or select from or to it.
fn play_head(ui: &Ui, frame: &Frame<'_>, state: &mut State, events: &mut Vec<Event>) {
    let (head, duration) = (frame.input.play_head, frame.input.model.duration());
    for (key, at) in [(Key::Home, 0.0), (Key::End, duration)] {
        if pressed(ui, Modifiers::NONE, key) {
            state.scroll_to(at);
            events.push(Event::Seek(at));
        }
    }
    for (key, by) in [(Key::ArrowLeft, -time::STEP), (Key::ArrowRight, time::STEP)] {
        if pressed(ui, Modifiers::COMMAND, key) {
            time::step(by, frame, state, events);
        } else if pressed(ui, Modifiers::COMMAND | Modifiers::SHIFT, key) {
            time::step(10.0 * by, frame, state, events);
        }
    }
    let (from, to) = frame.input.selection.range.unwrap_or((0.0, duration));
    if pressed(ui, Modifiers::NONE, Key::I) && head < duration {
        events.push(Event::SelectRange(Some((head, if to > head { to } else { duration }))));
    }
    if pressed(ui, Modifiers::NONE, Key::O) && head > 0.0 {
        events.push(Event::SelectRange(Some((if from < head { from } else { 0.0 }, head))));
    }
    for (modifiers, forward) in [(Modifiers::NONE, true), (Modifiers::SHIFT, false)] {
        if let Some(at) = next_error(frame, forward).filter(|_| pressed(ui, modifiers, Key::E)) {
            time::step(at - head, frame, state, events);
        }
    }
}

/// Start of the next or last error.
fn next_error(frame: &Frame<'_>, forward: bool) -> Option<f64> {
    let head = frame.input.play_head;
    let starts = ErrorKind::ALL.into_iter().filter_map(|kind| {
        let spans = frame.input.model.errors(kind).spans();
        if forward {
            spans.get(spans.partition_point(|&(start, _)| start <= head))
        } else {
            spans.get(spans.partition_point(|&(start, _)| start < head).checked_sub(1)?)
        }
    });
    starts.map(|&(start, _)| start).reduce(if forward { f64::min } else { f64::max })
}

/// From the first start to the last end of what is selected.
pub(super) fn selected_time(frame: &Frame<'_>) -> Option<(f64, f64)> {
    let selection = frame.input.selection;
    let turns = selection.turns.iter().filter_map(|&id| frame.input.model.turn(id));
    let spans = turns.map(|(_, t)| (t.start, t.end)).chain(selection.range);
    spans.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
}

fn play(frame: &Frame<'_>, state: &State) -> Option<Event> {
    let selection = frame.input.selection;
    let turn = cursor(frame, state).map(|(_, t)| t.id).filter(|id| selection.turns.contains(id));
    match (turn.or(selection.turns.first().copied()), selection.range) {
        (Some(turn), _) => Some(Event::PlayTurn(turn)),
        (None, Some((from, to))) => Some(Event::PlayRange(from, to)),
        (None, None) => None,
    }
}

/// The menu of the selected turn, at the turn.
fn menu(canvas: &Response, frame: &Frame<'_>, state: &State, events: &mut Vec<Event>) {
    let turn = cursor(frame, state).filter(|(_, t)| frame.input.selection.turns.contains(&t.id));
    let at = turn.map_or(frame.input.play_head, |(_, t)| t.start);
    let x = frame.axis.x(at).clamp(frame.axis.left, frame.axis.right());
    let target = turn.map_or(Target::Time, |(_, t)| Target::Turn(t.id));
    events.push(Event::ContextMenu { target, at, position: pos2(x, canvas.rect.center().y) });
}

/// Keys that change turns.
fn edit(ui: &Ui, frame: &Frame<'_>, state: &State, events: &mut Vec<Event>) {
    let (input, model) = (frame.input, frame.input.model);
    let known = |turn: &TurnId| model.turn(*turn).is_some();
    let turns: Vec<TurnId> = input.selection.turns.iter().copied().filter(known).collect();
    let to_lane = |lane: usize| {
        let speaker = model.lanes().get(lane)?.speaker.id;
        (!turns.is_empty()).then(|| Event::MoveTurns { turns: turns.clone(), speaker })
    };
    if pressed(ui, Modifiers::NONE, Key::Delete) || pressed(ui, Modifiers::NONE, Key::Backspace) {
        events.extend((!turns.is_empty()).then(|| Event::Delete(turns.clone())));
    }
    for (lane, key) in DIGITS.into_iter().enumerate() {
        if pressed(ui, Modifiers::NONE, key) {
            events.extend(to_lane(lane));
        }
    }
    if pressed(ui, Modifiers::NONE, Key::X) {
        let here = model.turns_at(input.play_head).map(|i| model.turns()[i].id);
        let cut = here.filter(|id| turns.is_empty() || input.selection.turns.contains(id));
        events.extend(cut.map(|turn| Event::Cut { turn, at: input.play_head }));
    }
    let Some((_, turn)) = cursor(frame, state).filter(|(_, t)| input.selection.turns.contains(&t.id)) else {
        return;
    };
    let lane = model.lane_of(turn.speaker).unwrap_or(0);
    if pressed(ui, Modifiers::COMMAND, Key::ArrowUp) {
        events.extend(lane.checked_sub(1).and_then(to_lane));
    }
    if pressed(ui, Modifiers::COMMAND, Key::ArrowDown) {
        events.extend(to_lane(lane + 1));
    }
    for (key, by) in [(Key::ArrowLeft, -NUDGE), (Key::ArrowRight, NUDGE)] {
        let (mut start, mut end) = (turn.start, turn.end);
        if pressed(ui, Modifiers::ALT | Modifiers::SHIFT, key) {
            start = (start + by).min(end - SHORTEST_TURN).max(0.0);
        } else if pressed(ui, Modifiers::ALT, key) {
            end = (end + by).max(start + SHORTEST_TURN).min(model.duration());
        }
        if (start, end) != (turn.start, turn.end) {
            events.push(Event::MoveBoundary { turn: turn.id, start, end });
        }
    }
}
