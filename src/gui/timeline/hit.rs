//! What is at a place on the screen: turns and their ends, boundaries to snap to, turns in a rubber band.

use eframe::egui::{Pos2, Rect};

use super::axis::{Axis, nearest};
use super::model::{Lane, Model, Selection, TurnId};

/// How near to a turn's edge the pointer takes hold of it, in points.
const EDGE_REACH: f32 = 5.0;

/// Narrowest turn whose edges can be dragged, in points.
const EDGE_WIDTH: f32 = 10.0;

/// How near to a turn a click still means it, in points.
const CLICK_REACH: f32 = 2.0;

/// How near to a boundary another one snaps to it, in points.
const SNAP_REACH: f32 = 7.0;

/// Which end of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edge {
    /// Where it begins.
    Start,
    /// Where it ends.
    End,
}

/// What the pointer is on, in a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hit {
    /// An end of a turn (index in [`Model::turns`]).
    Edge(usize, Edge),
    /// A turn.
    Body(usize),
    /// No turn.
    Nothing,
}

/// What is at the screen coordinate `x` of a lane.
pub fn hit(model: &Model, lane: &Lane, axis: &Axis, x: f32) -> Hit {
    let at = axis.second(x);
    let reach = f64::from(EDGE_REACH) * axis.view.scale;
    let near = lane.stretches.touching(at - reach, at + reach);
    let near = near.map(|i| lane.turns[i] as usize).filter(|&i| {
        let turn = &model.turns()[i];
        turn.end >= at - reach && turn.start <= at + reach
    });
    let (mut edge, mut body) = (None::<(f32, Hit)>, None::<(f64, Hit)>);
    for i in near {
        let turn = &model.turns()[i];
        let (left, right) = (axis.x(turn.start), axis.x(turn.end));
        let inside = left <= x && x <= right;
        if right - left >= EDGE_WIDTH {
            for (place, end) in [(left, Edge::Start), (right, Edge::End)] {
                // From inside, an edge has more room than from outside: turns that touch stay apart.
                let distance = (x - place).abs() + if inside { 0.0 } else { 1.0 };
                let reach = EDGE_REACH.min((right - left) / 4.0);
                if distance <= reach && edge.is_none_or(|(best, _)| distance < best) {
                    edge = Some((distance, Hit::Edge(i, end)));
                }
            }
        }
        let outside = (left - x).max(x - right).max(0.0);
        // Inside of several, the shortest is meant; outside of all, the nearest.
        let rank = if inside { turn.duration() * 1e-9 - 1.0 } else { f64::from(outside) };
        if outside <= CLICK_REACH && body.is_none_or(|(best, _)| rank < best) {
            body = Some((rank, Hit::Body(i)));
        }
    }
    edge.map(|e| e.1).or(body.map(|b| b.1)).unwrap_or(Hit::Nothing)
}

/// The second near `second` that a dragged boundary snaps to: another boundary of a turn, the play head, an end of the
/// recording or of the selected range. `moving` are the boundaries that are being dragged.
pub fn snap(
    model: &Model,
    selection: &Selection,
    axis: &Axis,
    play_head: f64,
    second: f64,
    moving: &[f64],
) -> Option<f64> {
    let reach = f64::from(SNAP_REACH) * axis.view.scale;
    let mut others = vec![0.0, model.duration(), play_head];
    others.extend(selection.range.into_iter().flat_map(|(from, to)| [from, to]));
    others.sort_by(f64::total_cmp);
    let found = [
        nearest(model.boundaries(), second, reach, |b| !moving.contains(&b)),
        nearest(&others, second, reach, |b| !moving.contains(&b)),
    ];
    found.into_iter().flatten().min_by(|a, b| (a - second).abs().total_cmp(&(b - second).abs()))
}

/// Turns that the rectangle from `a` to `b` touches; `top` is the upper edge of the first lane.
pub fn in_band(model: &Model, axis: &Axis, top: f32, lane_height: f32, a: Pos2, b: Pos2) -> Vec<TurnId> {
    let band = Rect::from_two_pos(a, b);
    let (from, to) = (axis.second(band.left()), axis.second(band.right()));
    let lanes = model.lanes().iter().enumerate().filter(|(number, _)| {
        let upper = top + *number as f32 * lane_height;
        band.bottom() >= upper && band.top() <= upper + lane_height
    });
    lanes
        .flat_map(|(_, lane)| {
            lane.stretches.touching(from, to).map(|i| &model.turns()[lane.turns[i] as usize])
        })
        .filter(|turn| turn.end >= from && turn.start <= to)
        .map(|turn| turn.id)
        .collect()
}
