//! Hatching, for speakers beyond the eighth.

use eframe::egui::{Color32, Mesh, Rect, pos2};

use crate::gui::theme::Pattern;

/// Distance of stripes in points.
const STRIPES: f32 = 8.0;

/// Adds the stripes of `pattern` inside `rect`; they are bound to the screen, so that neighbours continue them.
pub fn striped(mesh: &mut Mesh, rect: Rect, pattern: Pattern, color: Color32) {
    let directions: &[bool] = match pattern {
        Pattern::Plain => &[],
        Pattern::Rising => &[true],
        Pattern::Falling => &[false],
        Pattern::Crossed => &[true, false],
    };
    if rect.width() <= 0.0 || rect.height() <= 0.0 {
        return;
    }
    for &rising in directions {
        let mut foot = ((rect.left() - rect.height()) / STRIPES).floor() * STRIPES;
        while foot < rect.right() {
            stripe(mesh, rect, foot, rising, color);
            foot += STRIPES;
        }
    }
}

/// One slanted stripe from `foot` at one side to `foot + height` at the other, cut at the sides of `rect`.
fn stripe(mesh: &mut Mesh, rect: Rect, foot: f32, rising: bool, color: Color32) {
    let height = rect.height();
    let corners = [(foot, 0.0), (foot + 2.5, 0.0), (foot + 2.5 + height, height), (foot + height, height)];
    let points = clip(clip(corners.to_vec(), rect.left(), 1.0), rect.right(), -1.0);
    if points.len() < 3 {
        return;
    }
    let base = mesh.vertices.len() as u32;
    for &(x, up) in &points {
        let y = if rising { rect.bottom() - up } else { rect.top() + up };
        mesh.colored_vertex(pos2(x, y), color);
    }
    for i in 1..points.len() as u32 - 1 {
        mesh.add_triangle(base, base + i, base + i + 1);
    }
}

/// The part of a convex polygon at one side of the vertical line at `x`: right of it for a positive `side`.
fn clip(points: Vec<(f32, f32)>, x: f32, side: f32) -> Vec<(f32, f32)> {
    let inside = |p: (f32, f32)| (p.0 - x) * side >= 0.0;
    let mut kept = Vec::with_capacity(points.len() + 2);
    for (i, &a) in points.iter().enumerate() {
        let b = points[(i + 1) % points.len()];
        if inside(a) {
            kept.push(a);
        }
        if inside(a) != inside(b) {
            kept.push((x, a.1 + (b.1 - a.1) * (x - a.0) / (b.0 - a.0)));
        }
    }
    kept
}
