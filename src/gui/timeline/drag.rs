//! What is being dragged, how a drag is called off, and what is said about it beside the pointer.

use std::collections::BTreeSet;

use super::axis::{View, clock, length};
use super::hit::Edge;
use super::model::{Model, TurnId};
use super::show::Frame;
use super::state::State;
use super::{Event, Input};

/// Which part of the overview's window is dragged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WindowPart {
    Left,
    Right,
    Whole,
}

/// What is being dragged.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Drag {
    /// An end of a turn; `offset` points between pointer and edge, `now` where the edge would be.
    Boundary { turn: TurnId, edge: Edge, offset: f32, now: f64 },
    /// Turns from one lane to another.
    Move { turns: Vec<TurnId>, from: usize, to: usize },
    /// A rubber band between two places (second, points below the first lane's top), which adds to `keep`; `before`
    /// was selected when it began.
    Band { start: (f64, f32), now: (f64, f32), keep: BTreeSet<TurnId>, before: BTreeSet<TurnId> },
    /// A stretch of time.
    Range { from: f64, to: f64 },
    /// The play head, which was at `before`.
    PlayHead { before: f64 },
    /// The overview's window; `offset` seconds between pointer and what it holds, `before` the view when it began.
    Window { part: WindowPart, offset: f64, before: Option<View> },
}

/// Ends the drag and takes back what it has changed so far.
pub(super) fn cancel(input: &Input<'_>, state: &mut State, events: &mut Vec<Event>) {
    match state.drag.take() {
        Some(Drag::Band { before, .. }) if before != input.selection.turns => {
            events.push(Event::SelectTurns(before));
        }
        Some(Drag::PlayHead { before }) => events.push(Event::Seek(before)),
        Some(Drag::Window { before, .. }) => state.view = before,
        _ => {}
    }
}

/// Start and end of a turn one end of which is at `now`; `None` without such a turn.
pub(super) fn with_boundary(model: &Model, turn: TurnId, edge: Edge, now: f64) -> Option<(f64, f64)> {
    let (_, turn) = model.turn(turn)?;
    Some(match edge {
        Edge::Start => (now, turn.end),
        Edge::End => (turn.start, now),
    })
}

/// What is said beside the pointer.
pub(super) fn note(drag: &Drag, frame: &Frame<'_>) -> Option<String> {
    match drag {
        Drag::Boundary { turn, edge, now, .. } => {
            let (start, end) = with_boundary(frame.input.model, *turn, *edge, *now)?;
            Some(format!("{}  ({})", clock(*now), length(end - start)))
        }
        Drag::Range { from, to } => {
            let (from, to) = (from.min(*to), from.max(*to));
            Some(format!("{} to {}  ({})", clock(from), clock(to), length(to - from)))
        }
        Drag::Move { turns, from, to } if from != to => {
            let name = frame.names.get(*to)?;
            let one = turns.len() == 1;
            Some(if one { format!("To {name}") } else { format!("{} turns to {name}", turns.len()) })
        }
        _ => None,
    }
}
