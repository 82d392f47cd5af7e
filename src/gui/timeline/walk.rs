//! Arrow keys: from turn to turn through time and lanes.

use std::collections::BTreeSet;

use eframe::egui::{Key, Modifiers, Ui};

use super::Event;
use super::keys::{cursor, pressed};
use super::model::TurnId;
use super::show::Frame;
use super::state::State;

/// Arrow keys.
pub(super) fn walk(ui: &Ui, frame: &Frame<'_>, state: &mut State, events: &mut Vec<Event>) {
    type Step = fn(&Frame<'_>, &State) -> Option<TurnId>;
    let steps: [(Key, Step); 4] = [
        (Key::ArrowLeft, |frame, state| in_time(frame, state, false)),
        (Key::ArrowRight, |frame, state| in_time(frame, state, true)),
        (Key::ArrowUp, |frame, state| in_lanes(frame, state, false)),
        (Key::ArrowDown, |frame, state| in_lanes(frame, state, true)),
    ];
    for (key, step) in steps {
        for modifiers in [Modifiers::SHIFT, Modifiers::NONE] {
            if !pressed(ui, modifiers, key) {
                continue;
            }
            if let Some(turn) = step(frame, state) {
                let mut turns = BTreeSet::from([turn]);
                if modifiers.shift {
                    turns.extend(&frame.input.selection.turns);
                } else {
                    state.anchor = Some(turn);
                }
                state.reveal(frame.input.model, turn);
                events.push(Event::SelectTurns(turns));
            }
        }
    }
}

/// The next or last turn in time; without a turn to start from, that beside the play head.
fn in_time(frame: &Frame<'_>, state: &State, forward: bool) -> Option<TurnId> {
    let turns = frame.input.model.turns();
    let index = match cursor(frame, state) {
        Some((i, _)) if forward => i + 1,
        Some((i, _)) => i.checked_sub(1)?,
        None => {
            let next = turns.partition_point(|t| t.start < frame.input.play_head);
            if forward { next } else { next.checked_sub(1)? }
        }
    };
    turns.get(index).map(|t| t.id)
}

/// The turn of the nearest lane below or above with turns, that is nearest in time.
fn in_lanes(frame: &Frame<'_>, state: &State, down: bool) -> Option<TurnId> {
    let model = frame.input.model;
    let Some((_, turn)) = cursor(frame, state) else { return in_time(frame, state, down) };
    let middle = (turn.start + turn.end) / 2.0;
    let mut lane = model.lane_of(turn.speaker)?;
    loop {
        lane = if down { lane + 1 } else { lane.checked_sub(1)? };
        let lane = model.lanes().get(lane)?;
        let distance = |&&i: &&u32| {
            let t = &model.turns()[i as usize];
            (t.start - middle).max(middle - t.end)
        };
        let nearest = lane.turns.iter().min_by(|a, b| distance(a).total_cmp(&distance(b)));
        if let Some(&i) = nearest {
            return Some(model.turns()[i as usize].id);
        }
    }
}
