//! Pointer, keys and pixels for tests of the window.

use std::sync::LazyLock;

use eframe::egui::{
    Color32, Event, Key, Modifiers, MouseWheelSource, MouseWheelUnit, PointerButton, Pos2, TouchPhase, Vec2,
    epaint::Primitive, epaint::WHITE_UV,
};
use egui_kittest::Harness;

/// Ctrl as it arrives on Linux and Windows.
pub const CTRL: Modifiers = Modifiers { ctrl: true, command: true, ..Modifiers::NONE };

/// Seconds of a frame in tests.
pub const FRAME: f32 = 1.0 / 60.0;

/// Whether pictures can be rendered here; says so if not.
pub fn adapter() -> bool {
    static FOUND: LazyLock<bool> =
        LazyLock::new(|| std::panic::catch_unwind(egui_kittest::wgpu::WgpuTestRenderer::new).is_ok());
    if !*FOUND {
        eprintln!("skipped: there is no graphics adapter (mesa-vulkan-drivers has one in software)");
    }
    *FOUND
}

/// What a user does with mouse and keyboard.
pub trait Hands {
    /// Presses or releases a mouse button.
    fn button(&mut self, at: Pos2, button: PointerButton, pressed: bool, modifiers: Modifiers);
    /// Clicks.
    fn click(&mut self, at: Pos2, button: PointerButton, modifiers: Modifiers);
    /// Presses the primary button at `from` and moves to `to` in steps.
    fn drag(&mut self, from: Pos2, to: Pos2, button: PointerButton, modifiers: Modifiers);
    /// Releases the primary button.
    fn drop(&mut self, at: Pos2);
    /// Turns the wheel by `delta` points, with the pointer at `at`.
    fn wheel(&mut self, at: Pos2, delta: Vec2, modifiers: Modifiers);
    /// Presses and releases a key.
    fn key(&mut self, modifiers: Modifiers, key: Key);
}

impl<State> Hands for Harness<'_, State> {
    fn button(&mut self, pos: Pos2, button: PointerButton, pressed: bool, modifiers: Modifiers) {
        self.event_modifiers(Event::PointerButton { pos, button, pressed, modifiers }, modifiers);
        self.run();
    }

    fn click(&mut self, at: Pos2, button: PointerButton, modifiers: Modifiers) {
        self.hover_at(at);
        self.button(at, button, true, modifiers);
        self.button(at, button, false, modifiers);
    }

    fn drag(&mut self, from: Pos2, to: Pos2, button: PointerButton, modifiers: Modifiers) {
        self.hover_at(from);
        self.event_modifiers(Event::PointerButton { pos: from, button, pressed: true, modifiers }, modifiers);
        self.event(Event::ModifiersChanged(modifiers));
        for step in 1..=4 {
            self.hover_at(from.lerp(to, step as f32 / 4.0));
        }
        self.step();
        self.event(Event::ModifiersChanged(Modifiers::NONE));
    }

    fn drop(&mut self, at: Pos2) {
        self.button(at, PointerButton::Primary, false, Modifiers::NONE);
    }

    fn wheel(&mut self, at: Pos2, delta: Vec2, modifiers: Modifiers) {
        self.hover_at(at);
        self.event_modifiers(
            Event::MouseWheel {
                unit: MouseWheelUnit::Point,
                delta,
                phase: TouchPhase::Move,
                modifiers,
                source: MouseWheelSource::Unknown,
            },
            modifiers,
        );
        self.run();
    }

    fn key(&mut self, modifiers: Modifiers, key: Key) {
        self.key_press_modifiers(modifiers, key);
        self.run();
    }
}

/// The colours of one row of pixels as any rasteriser draws the shapes, without text and textures.
pub fn pixel_row<State>(harness: &Harness<'_, State>, row: usize) -> Vec<Color32> {
    let scale = harness.ctx.pixels_per_point();
    let width = (harness.ctx.content_rect().width() * scale).round() as usize;
    let y = (row as f32 + 0.5) / scale;
    let mut pixels = vec![Color32::TRANSPARENT; width];
    for primitive in harness.ctx.tessellate(harness.output().shapes.clone(), scale) {
        let Primitive::Mesh(mesh) = primitive.primitive else { continue };
        if !primitive.clip_rect.y_range().contains(y) {
            continue;
        }
        for triangle in mesh.indices.chunks_exact(3) {
            let corners = [0, 1, 2].map(|i| mesh.vertices[triangle[i] as usize]);
            if corners.iter().any(|corner| corner.uv != WHITE_UV) {
                continue;
            }
            let xs = corners.map(|corner| corner.pos.x);
            let left = xs.into_iter().fold(f32::INFINITY, f32::min).max(primitive.clip_rect.left());
            let right = xs.into_iter().fold(f32::NEG_INFINITY, f32::max).min(primitive.clip_rect.right());
            let first = (left * scale - 0.5).ceil().max(0.0) as usize;
            for (column, pixel) in pixels.iter_mut().enumerate().skip(first) {
                let x = (column as f32 + 0.5) / scale;
                if x >= right {
                    break;
                }
                let Some(weights) = weights(corners.map(|corner| corner.pos), Pos2::new(x, y)) else {
                    continue;
                };
                let mixed = |channel: usize| {
                    let sum: f32 =
                        (0..3).map(|i| weights[i] * f32::from(corners[i].color.to_array()[channel])).sum();
                    sum.round() as u8
                };
                let [r, g, b, a] = [0, 1, 2, 3].map(mixed);
                *pixel = pixel.blend(Color32::from_rgba_premultiplied(r, g, b, a));
            }
        }
    }
    pixels
}

/// How much each corner counts at a place inside of a triangle.
fn weights([a, b, c]: [Pos2; 3], place: Pos2) -> Option<[f32; 3]> {
    let area = |a: Pos2, b: Pos2, c: Pos2| (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x);
    let whole = area(a, b, c);
    let parts = [area(b, c, place) / whole, area(c, a, place) / whole, area(a, b, place) / whole];
    parts.iter().all(|part| *part >= 0.0).then_some(parts)
}
