//! Draws what the layout placed. Many small shapes go into one mesh each.

use eframe::egui::{
    Align2, Color32, CornerRadius, FontId, Mesh, Painter, Pos2, Rangef, Rect, Shape, Stroke, StrokeKind,
    pos2, vec2,
};

use super::axis::{Axis, Tick, length};
use super::layout::{Piece, PieceKind, lane_margin};
use super::model::Model;
use super::stripes::striped;
use super::wave::Wave;
use crate::gui::theme::{Colors, SpeakerLook};

/// Narrowest turn with round corners and an outline, in points.
const ROUNDED: f32 = 6.0;

/// Opacity of a speaker who is not heard.
const DIMMED: f32 = 0.35;

/// Text sizes on the canvas.
pub const SMALL: f32 = 11.0;

/// Marks of the ruler: ticks and times.
pub fn ruler(painter: &Painter, rect: Rect, axis: &Axis, ticks: &[Tick], colors: &Colors) {
    let painter = painter.with_clip_rect(rect.intersect(painter.clip_rect()));
    painter.rect_filled(rect, 0.0, colors.panel);
    for tick in ticks {
        let x = axis.border(tick.second);
        let height = if tick.label.is_some() { 8.0 } else { 4.0 };
        let mark = axis.mark(x, Rangef::new(rect.bottom() - height, rect.bottom()));
        painter.rect_filled(mark, 0.0, colors.text_weak);
        if let Some(label) = &tick.label {
            let place = pos2(x + 4.0, rect.top() + 3.0);
            painter.text(place, Align2::LEFT_TOP, label, FontId::proportional(SMALL), colors.text_weak);
        }
    }
    painter.hline(rect.x_range(), rect.bottom() - 0.5, Stroke::new(1.0, colors.line));
}

/// Vertical lines at the labelled marks.
pub fn grid(painter: &Painter, rect: Rect, axis: &Axis, ticks: &[Tick], colors: &Colors) {
    let mut mesh = Mesh::default();
    for tick in ticks.iter().filter(|tick| tick.label.is_some()) {
        let x = axis.border(tick.second);
        mesh.add_colored_rect(axis.mark(x, rect.y_range()), colors.grid);
    }
    painter.add(mesh);
}

/// A waveform, a colour for each pixel column.
pub fn wave(painter: &Painter, rect: Rect, axis: &Axis, wave: &Wave, tint: impl Fn(usize) -> Color32) {
    let mut mesh = Mesh::default();
    let (middle, half) = (rect.center().y, rect.height() / 2.0 - 2.0);
    let thin = 0.5 * axis.pixel;
    for (column, &(low, high)) in wave.columns.iter().enumerate() {
        let left = axis.left + column as f32 * axis.pixel;
        let top = (middle - high * wave.gain * half).clamp(rect.top(), middle + half);
        let bottom = (middle - low * wave.gain * half).clamp(middle - half, rect.bottom());
        // Silence is a line of one pixel.
        let (top, bottom) = if bottom - top < axis.pixel {
            let y = (top + bottom) / 2.0;
            (y - thin, y + thin)
        } else {
            (top, bottom)
        };
        mesh.add_colored_rect(
            Rect::from_min_max(pos2(left, top), pos2(left + axis.pixel, bottom)),
            tint(column),
        );
    }
    painter.add(mesh);
}

/// Where several speak: a light ground with a bar above, fainter where they do so in a part of a pixel column.
pub fn overlaps(painter: &Painter, rect: Rect, shares: &[(f32, f32, f32)], colors: &Colors) {
    let mut mesh = Mesh::default();
    for &(left, right, part) in shares {
        let run = Rect::from_min_max(pos2(left, rect.top()), pos2(right, rect.bottom()));
        let color = colors.overlap.gamma_multiply(part.sqrt());
        mesh.add_colored_rect(run, color.gamma_multiply(0.16));
        mesh.add_colored_rect(run.with_max_y(rect.top() + 3.0), color);
    }
    painter.add(mesh);
}

/// How a lane is drawn.
pub struct LanePaint<'a> {
    /// Its speaker's look.
    pub look: &'a SpeakerLook,
    /// Whether the speaker is not heard.
    pub silent: bool,
    /// For each turn of the model whether it is selected; or nothing.
    pub selected: &'a [bool],
    /// Colours of the window.
    pub colors: &'a Colors,
}

/// The turns of a lane that has the rectangle `rect`.
pub fn lane(
    painter: &Painter,
    rect: Rect,
    model: &Model,
    axis: &Axis,
    pieces: &[Piece],
    paint: &LanePaint<'_>,
) {
    let inner = rect.shrink2(vec2(0.0, lane_margin(rect.height())));
    let dim = |color: Color32| {
        if paint.silent { paint.colors.surface.lerp_to_gamma(color, DIMMED) } else { color }
    };
    let (fill, line) = (dim(paint.look.fill), dim(paint.look.line));
    let mut narrow = Mesh::default();
    let mut stripes = Mesh::default();
    let mut shapes = Vec::new();
    let mut texts = Vec::new();
    for piece in pieces {
        let place = Rect::from_min_max(pos2(piece.left, inner.top()), pos2(piece.right, inner.bottom()));
        match piece.kind {
            PieceKind::Share { filled, selected } => {
                // Many speakers of short turns fill little each: by the root they still show who speaks how much.
                let top = place.bottom() - (filled.sqrt() * place.height()).max(3.0);
                narrow
                    .add_colored_rect(place.with_min_y(top), if selected { paint.colors.text } else { fill });
            }
            PieceKind::Turn(turn) => {
                let selected = paint.selected.get(turn).copied().unwrap_or(false);
                let turn = &model.turns()[turn];
                if place.width() < ROUNDED {
                    narrow.add_colored_rect(place, if selected { paint.colors.text } else { line });
                    narrow.add_colored_rect(place.shrink2(vec2(axis.pixel, axis.pixel)), fill);
                } else {
                    let (from, to) = axis.range();
                    let (cut_left, cut_right) = (turn.start < from, turn.end > to);
                    turn_shapes(&mut shapes, place, [cut_left, cut_right], fill, line);
                    striped(&mut stripes, place.shrink(1.5), paint.look.pattern, dim(paint.look.stripe));
                    if selected {
                        outline(
                            &mut shapes,
                            place,
                            [cut_left, cut_right],
                            Stroke::new(2.0, paint.colors.text),
                        );
                    }
                    if !paint.silent {
                        texts.push((place, turn.duration()));
                    }
                }
            }
        }
    }
    let painter = painter.with_clip_rect(
        Rect::from_x_y_ranges(axis.left..=axis.right(), rect.y_range()).intersect(painter.clip_rect()),
    );
    painter.add(narrow);
    painter.extend(shapes);
    painter.add(stripes);
    for (place, duration) in texts {
        turn_text(&painter, place, duration, paint.look);
    }
}

/// Extends a rectangle over the sides at which the view cuts it, so that no edge is drawn there.
fn uncut(place: Rect, cut: [bool; 2]) -> Rect {
    let more = |cut: bool| if cut { 8.0 } else { 0.0 };
    Rect::from_min_max(
        pos2(place.left() - more(cut[0]), place.top()),
        pos2(place.right() + more(cut[1]), place.bottom()),
    )
}

fn turn_shapes(shapes: &mut Vec<Shape>, place: Rect, cut: [bool; 2], fill: Color32, line: Color32) {
    let radius = CornerRadius::same(3);
    let rect = uncut(place, cut);
    shapes.push(Shape::rect_filled(rect, radius, fill));
    if line != fill {
        shapes.push(Shape::rect_stroke(rect, radius, Stroke::new(1.0, line), StrokeKind::Inside));
    }
}

fn outline(shapes: &mut Vec<Shape>, place: Rect, cut: [bool; 2], stroke: Stroke) {
    shapes.push(Shape::rect_stroke(uncut(place, cut), CornerRadius::same(4), stroke, StrokeKind::Outside));
}

/// The letter of the speaker, and the duration where there is room.
fn turn_text(painter: &Painter, place: Rect, duration: f64, look: &SpeakerLook) {
    let font = FontId::proportional(12.0);
    let (middle, width) = (place.center().y, place.width());
    let letters = 8.0 * look.letter.len() as f32;
    if width >= 76.0 + letters {
        painter.text(
            pos2(place.left() + 7.0, middle),
            Align2::LEFT_CENTER,
            &look.letter,
            font.clone(),
            look.text,
        );
        painter.text(
            pos2(place.right() - 7.0, middle),
            Align2::RIGHT_CENTER,
            length(duration),
            font,
            look.text,
        );
    } else if width >= 8.0 + letters {
        painter.text(place.center(), Align2::CENTER_CENTER, &look.letter, font, look.text);
    }
}

/// A row of errors of one kind.
pub fn errors(painter: &Painter, row: Rect, runs: &[(f32, f32)], color: Color32) {
    let mut mesh = Mesh::default();
    for &(left, right) in runs {
        mesh.add_colored_rect(Rect::from_min_max(pos2(left, row.top()), pos2(right, row.bottom())), color);
    }
    painter.add(mesh);
}

/// The selected range over one part.
pub fn range(painter: &Painter, rect: Rect, axis: &Axis, (from, to): (f64, f64), color: Color32) {
    let (seen_from, seen_to) = axis.range();
    if to < seen_from || from > seen_to {
        return;
    }
    let (left, right) = (axis.border(from), axis.border(to));
    painter.rect_filled(Rect::from_x_y_ranges(left..=right, rect.y_range()), 0.0, color.gamma_multiply(0.2));
    if from >= seen_from {
        painter.rect_filled(axis.mark(left, rect.y_range()), 0.0, color);
    }
    if to <= seen_to {
        let mark = axis.mark(right, rect.y_range());
        painter.rect_filled(mark.translate(vec2(-mark.width(), 0.0)), 0.0, color);
    }
}

/// The play head at the pixel border `x` over all parts; `handle` is the ruler.
pub fn play_head(painter: &Painter, axis: &Axis, x: f32, handle: Rect, bottom: f32, color: Color32) {
    let line = axis.mark(x, Rangef::new(handle.center().y, bottom));
    painter.rect_filled(line.union(line.translate(vec2(-line.width(), 0.0))), 0.0, color);
    let top = handle.bottom() - 12.0;
    let points = vec![
        pos2(x - 6.0, top),
        pos2(x + 6.0, top),
        pos2(x + 6.0, top + 5.0),
        pos2(x, handle.bottom()),
        pos2(x - 6.0, top + 5.0),
    ];
    painter.add(Shape::convex_polygon(points, color, Stroke::NONE));
}

/// The part in view over the overview: all else is dimmed.
pub fn window(painter: &Painter, all: Rect, part: Rect, active: bool, colors: &Colors) {
    let veil = colors.surface.gamma_multiply(0.62);
    painter.rect_filled(all.with_max_x(part.left()), 0.0, veil);
    painter.rect_filled(all.with_min_x(part.right()), 0.0, veil);
    let stroke = Stroke::new(if active { 2.0 } else { 1.5 }, colors.accent);
    painter.rect_stroke(part, 3.0, stroke, StrokeKind::Inside);
    if part.width() >= 18.0 {
        for x in [part.left() + 4.0, part.right() - 4.0] {
            let half = all.height() * 0.2;
            painter.vline(
                x,
                part.center().y - half..=part.center().y + half,
                Stroke::new(1.5, colors.accent),
            );
        }
    }
}

/// A line of text on a plate beside the pointer, inside of `bounds`.
pub fn note(painter: &Painter, at: Pos2, bounds: Rect, text: &str, colors: &Colors) {
    let galley = painter.layout_no_wrap(text.to_owned(), FontId::proportional(12.0), colors.text);
    let size = galley.size() + vec2(12.0, 6.0);
    let x = (at.x + 14.0).min(bounds.right() - size.x).max(bounds.left());
    let y = (at.y - size.y - 8.0).max(bounds.top());
    let plate = Rect::from_min_size(pos2(x, y), size);
    painter.rect(plate, 4.0, colors.panel, Stroke::new(1.0, colors.line), StrokeKind::Inside);
    painter.galley(plate.min + vec2(6.0, 3.0), galley, colors.text);
}

/// A speaker's letter on the speaker's colour.
pub fn badge(painter: &Painter, rect: Rect, look: &SpeakerLook) {
    painter.rect(rect, 4.0, look.fill, Stroke::new(1.0, look.line), StrokeKind::Inside);
    let mut stripes = Mesh::default();
    striped(&mut stripes, rect.shrink(1.5), look.pattern, look.stripe);
    painter.add(stripes);
    let size = if look.letter.len() > 1 { 10.0 } else { 13.0 };
    painter.text(rect.center(), Align2::CENTER_CENTER, &look.letter, FontId::proportional(size), look.text);
}

/// The sign of playback, which few fonts have.
pub fn play_sign(painter: &Painter, middle: Pos2, color: Color32) {
    let points = [vec2(-3.0, -4.5), vec2(5.0, 0.0), vec2(-3.0, 4.5)].map(|by| middle + by);
    painter.add(Shape::convex_polygon(points.to_vec(), color, Stroke::NONE));
}
