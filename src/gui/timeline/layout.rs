//! Where things go: pure functions from model and view to places on the screen.
//!
//! Work is bounded by what is in view, shapes by the pixels in view: turns of less than a few pixels are summed up as
//! the share of each pixel column that they fill.

use eframe::egui::{Rect, pos2, vec2};

use super::axis::Axis;
use super::model::{Lane, Model};
use super::stretches::Stretches;

/// Least width of a turn that is drawn by itself, in pixels.
const OWN_SHAPE: f64 = 3.0;

/// The rectangles of the timeline's parts; none overlap.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Regions {
    /// Buttons beside the overview.
    pub corner: Rect,
    /// The whole recording.
    pub overview: Rect,
    /// Beside the ruler.
    pub ruler_head: Rect,
    /// Marks of time.
    pub ruler: Rect,
    /// Beside the waveform.
    pub wave_head: Rect,
    /// Waveform of the part in view.
    pub wave: Rect,
    /// Names and turns of the speakers.
    pub lanes: Rect,
    /// Beside the errors.
    pub errors_head: Rect,
    /// Errors; empty without any.
    pub errors: Rect,
    /// Height of one lane.
    pub lane_height: f32,
}

/// Width of names and buttons at the left.
fn head_width(width: f32) -> f32 {
    if width < 560.0 { 132.0 } else { 216.0 }
}

/// Divides `all` for `lanes` speakers; `pixel` is the size of a physical pixel in points.
pub fn regions(all: Rect, lanes: usize, errors: bool, pixel: f32) -> Regions {
    let round = |x: f32| (x / pixel).round() * pixel;
    let (left, right) = (round(all.left()), round(all.right()));
    let middle = round(left + head_width(all.width())).min(right);
    let compact = all.height() < 300.0;
    let mut y = round(all.top());
    let mut row = |height: f32, gap: f32| {
        let (top, bottom) = (y, y + round(height));
        y = bottom + round(gap);
        let head = Rect::from_min_max(pos2(left, top), pos2(middle, bottom));
        (head, Rect::from_min_max(pos2(middle, top), pos2(right, bottom)))
    };
    let (corner, overview) = row(if compact { 28.0 } else { 40.0 }, 6.0);
    let (ruler_head, ruler) = row(24.0, 0.0);
    let (wave_head, wave) = row(if compact { 36.0 } else { 72.0 }, 1.0);
    let errors_height = if errors { 44.0 } else { 0.0 };
    let room = (round(all.bottom()) - wave.bottom() - round(1.0) - errors_height).max(0.0);
    let lane_height = round((room / lanes.max(1) as f32).clamp(34.0, 52.0));
    let lanes_height = room.min(lane_height * lanes as f32);
    let (lanes_head, lanes_body) = row(lanes_height, 0.0);
    let (errors_head, errors) = row(errors_height, 0.0);
    Regions {
        corner,
        overview,
        ruler_head,
        ruler,
        wave_head,
        wave,
        lanes: lanes_head.union(lanes_body),
        errors_head,
        errors,
        lane_height,
    }
}

/// What is drawn at one place of a lane.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PieceKind {
    /// One turn, by its index in [`Model::turns`].
    Turn(usize),
    /// Turns too narrow for shapes of their own.
    Share {
        /// The part of the pixel column that they fill, to 1.
        filled: f32,
        /// Whether one of them is selected.
        selected: bool,
    },
}

/// A shape of a lane.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Piece {
    /// Left edge in points.
    pub left: f32,
    /// Right edge in points.
    pub right: f32,
    /// What it is.
    pub kind: PieceKind,
}

/// The shapes of a lane, at most two for each pixel. `selected` has one entry for each turn of the model, or none.
pub fn pieces(lane: &Lane, axis: &Axis, selected: &[bool]) -> Vec<Piece> {
    let count = axis.pixels();
    let (from, to) = axis.columns();
    let mut filled = Vec::new();
    let mut picked = Vec::new();
    let mut pieces: Vec<Piece> = Vec::new();
    let mut covered = f64::NEG_INFINITY;
    let mut start_pixel = f64::NEG_INFINITY;
    for i in lane.stretches.touching(from, to) {
        let (start, end) = lane.stretches.spans()[i];
        if end < from || covered >= end {
            continue;
        }
        let turn = lane.turns[i] as usize;
        let (a, b) = (axis.place(start), axis.place(end));
        if b - a >= OWN_SHAPE {
            let left = axis.border(start).min(axis.right() - axis.pixel).max(axis.left);
            let right = axis.border(end).max(left + axis.pixel);
            let piece = Piece { left, right, kind: PieceKind::Turn(turn) };
            // A longer turn of the same start stands for both.
            match pieces.last_mut() {
                Some(last) if a.max(0.0).floor() == start_pixel => *last = Piece { left: last.left, ..piece },
                _ => pieces.push(piece),
            }
            start_pixel = a.max(0.0).floor();
        } else {
            if filled.is_empty() {
                filled = vec![0.0f32; count];
                picked = vec![false; count];
            }
            let is_selected = selected.get(turn).copied().unwrap_or(false);
            let (a, b) = (axis.place(start.max(covered)), b);
            fill(&mut filled, a, b, |column| picked[column] |= is_selected);
        }
        covered = covered.max(end);
    }
    let shares = filled.iter().enumerate().filter(|(_, part)| **part > 0.0).map(|(column, &part)| Piece {
        left: axis.left + column as f32 * axis.pixel,
        right: axis.left + (column + 1) as f32 * axis.pixel,
        kind: PieceKind::Share { filled: part.min(1.0), selected: picked[column] },
    });
    pieces.extend(shares);
    pieces
}

/// Adds the stretch from `a` to `b`, in pixels from the left edge, to the columns that it touches.
fn fill(columns: &mut [f32], a: f64, b: f64, mut touched: impl FnMut(usize)) {
    let (a, b) = (a.max(0.0), b.min(columns.len() as f64));
    let mut column = a as usize;
    while (column as f64) < b {
        columns[column] += (((column + 1) as f64).min(b) - (column as f64).max(a)) as f32;
        touched(column);
        column += 1;
    }
}

/// Who speaks in a pixel column.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Voice {
    /// The lane that speaks for at least half of the column.
    pub lane: Option<u16>,
    /// The part of the column in which the lane that speaks most does so.
    pub speech: f32,
}

/// Who speaks in each pixel column.
pub fn voices(model: &Model, axis: &Axis) -> Vec<Voice> {
    let mut voices = vec![Voice::default(); axis.pixels()];
    let mut filled = vec![0.0f32; axis.pixels()];
    for (number, lane) in model.lanes().iter().enumerate() {
        cover(&lane.stretches, axis, &mut filled);
        for (voice, filled) in voices.iter_mut().zip(&mut filled) {
            if *filled > voice.speech {
                let lane = (*filled >= 0.5).then_some(number as u16);
                *voice = Voice { lane, speech: filled.min(1.0) };
            }
            *filled = 0.0;
        }
    }
    voices
}

/// Adds to each pixel column the part of it that `stretches` cover.
fn cover(stretches: &Stretches, axis: &Axis, filled: &mut [f32]) {
    let (from, to) = axis.columns();
    let mut covered = from;
    for &(start, end) in &stretches.spans()[stretches.touching(from, to)] {
        if end > covered {
            fill(filled, axis.place(start.max(covered)), axis.place(end), |_| ());
            covered = end;
        }
    }
}

/// Runs of pixel columns that `stretches` cover in equal parts: left and right edge, and the part.
pub fn shares(stretches: &Stretches, axis: &Axis) -> Vec<(f32, f32, f32)> {
    let mut filled = vec![0.0f32; axis.pixels()];
    cover(stretches, axis, &mut filled);
    let edge = |column: usize| axis.left + column as f32 * axis.pixel;
    let mut shares: Vec<(f32, f32, f32)> = Vec::new();
    let mut open = false;
    for (column, part) in filled.into_iter().map(|part| part.min(1.0)).enumerate() {
        match shares.last_mut() {
            Some(last) if open && last.2 == part => last.1 = edge(column + 1),
            _ if part > 0.0 => shares.push((edge(column), edge(column + 1), part)),
            _ => {}
        }
        open = part > 0.0;
    }
    shares
}

/// The places of `stretches` on pixel borders, at least a pixel wide each, joined where no pixel lies between them.
pub fn runs(stretches: &Stretches, axis: &Axis) -> Vec<(f32, f32)> {
    let (from, to) = axis.columns();
    let mut runs: Vec<(f32, f32)> = Vec::new();
    for &(start, end) in &stretches.spans()[stretches.touching(from, to)] {
        if end < from {
            continue;
        }
        let left = axis.border(start).min(axis.right() - axis.pixel).max(axis.left);
        let right = axis.border(end).max(left + axis.pixel);
        match runs.last_mut() {
            Some(last) if left < last.1 + 0.5 * axis.pixel => last.1 = last.1.max(right),
            _ => runs.push((left, right)),
        }
    }
    runs
}

/// The rectangle of a turn in its lane, within the view; `None` if it is not in view.
pub fn turn_rect(axis: &Axis, lane: Rect, start: f64, end: f64) -> Option<Rect> {
    let (left, right) = (axis.x(start).max(axis.left), axis.x(end).min(axis.right()));
    let inner = lane.shrink2(vec2(0.0, lane_margin(lane.height())));
    (left <= right).then(|| Rect::from_min_max(pos2(left, inner.top()), pos2(right, inner.bottom())))
}

/// Room above and below the turns of a lane.
pub fn lane_margin(height: f32) -> f32 {
    if height < 40.0 { 4.0 } else { 6.0 }
}
