//! What lies over the turns and over all parts: drags, the selected range, the play head, the focus.

use eframe::egui::{Rect, Response, Stroke, StrokeKind, Ui, pos2};

use super::drag::{Drag, note, with_boundary};
use super::layout::turn_rect;
use super::model::TurnId;
use super::paint;
use super::show::{Frame, lane_rect};
use super::state::State;

/// Selected range, play head, focus: over all parts.
pub(super) fn overlays(ui: &Ui, frame: &Frame<'_>, state: &State, canvas: &Response) {
    let Frame { axis, regions, colors, input, .. } = frame;
    let bottom = if input.model.has_errors() { regions.errors.bottom() } else { regions.lanes.bottom() };
    let all = Rect::from_min_max(regions.ruler.left_top(), pos2(axis.right(), bottom));
    let painter = ui.painter_at(all);
    let range = match state.drag {
        Some(Drag::Range { from, to }) => Some((from.min(to), from.max(to))),
        _ => input.selection.range,
    };
    if let Some(range) = range {
        paint::range(&painter, all, axis, range, colors.accent);
    }
    if let Some(Drag::Boundary { now, .. }) = state.drag {
        painter.rect_filled(axis.mark(axis.border(now), all.y_range()), 0.0, colors.accent);
    }
    let (from, to) = axis.range();
    if (from..=to).contains(&input.play_head) {
        // At the left edge, half of the handle lies over the heads.
        let painter = ui.painter_at(all.with_min_x(axis.left - 6.0));
        let x = axis.border(input.play_head);
        paint::play_head(&painter, axis, x, regions.ruler, bottom, colors.play_head);
    }
    ui.painter().vline(axis.left - 0.5, regions.ruler.top()..=bottom, Stroke::new(1.0, colors.line));
    if canvas.has_focus() {
        let ring = regions.lanes.with_min_x(axis.left);
        ui.painter().rect_stroke(ring, 2.0, Stroke::new(1.5, colors.accent), StrokeKind::Inside);
    }
    let text = state.drag.as_ref().and_then(|drag| note(drag, frame));
    if let (Some(text), Some(pointer)) = (text, ui.ctx().pointer_interact_pos()) {
        paint::note(&painter, pointer, all, &text, colors);
    }
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
            let Some((start, end)) = with_boundary(input.model, turn.id, *edge, *now) else { return };
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
