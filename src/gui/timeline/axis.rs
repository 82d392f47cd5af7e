//! The part of the recording that is in view, its place on the screen, and the marks of the ruler.
//!
//! All arithmetic is in f64 seconds; only finished screen coordinates are f32. At 10 hours and the closest zoom, times
//! are exact to a millionth of a point.

use eframe::egui::{Rangef, Rect};

/// Closest zoom: seconds a point.
pub const CLOSEST: f64 = 1e-4;

/// What is in view. Plain numbers, so that they can be kept with the document.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct View {
    /// Second at the left edge.
    pub start: f64,
    /// Seconds a point (a pixel on screens of normal density).
    pub scale: f64,
}

impl View {
    /// The whole recording on `width` points.
    pub fn all(duration: f64, width: f32) -> Self {
        Self { start: 0.0, scale: widest(duration, width) }
    }

    /// Seconds in view on `width` points.
    pub fn length(&self, width: f32) -> f64 {
        self.scale * f64::from(width)
    }

    /// This view, within the recording and the limits of zoom.
    pub fn clamped(self, duration: f64, width: f32) -> Self {
        let scale = self.scale.clamp(CLOSEST, widest(duration, width));
        let start = self.start.min(duration - scale * f64::from(width)).max(0.0);
        Self { start, scale }
    }

    /// `factor` times closer, with the second at `x` points from the left edge staying where it is.
    pub fn zoomed(self, factor: f64, x: f64, duration: f64, width: f32) -> Self {
        let scale = (self.scale / factor).clamp(CLOSEST, widest(duration, width));
        Self { start: self.start + x * (self.scale - scale), scale }.clamped(duration, width)
    }

    /// The seconds `from` to `to` with a little room on both sides.
    pub fn around(from: f64, to: f64, duration: f64, width: f32) -> Self {
        let length = (to - from).max(CLOSEST) * 1.1;
        let scale = (length / f64::from(width.max(1.0))).clamp(CLOSEST, widest(duration, width));
        let start = (from + to - scale * f64::from(width)) / 2.0;
        Self { start, scale }.clamped(duration, width)
    }
}

fn widest(duration: f64, width: f32) -> f64 {
    (duration / f64::from(width.max(1.0))).max(CLOSEST)
}

/// A view on the screen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Axis {
    /// What is in view.
    pub view: View,
    /// Left edge in points.
    pub left: f32,
    /// Width in points.
    pub width: f32,
    /// Points of a physical pixel; `left` and `width` are whole pixels.
    pub pixel: f32,
}

impl Axis {
    /// Screen coordinate of a second, in points; far outside of the view it stops at a million. What is no number lies
    /// to the left.
    pub fn x(&self, second: f64) -> f32 {
        let x = f64::from(self.left) + (second - self.view.start) / self.view.scale;
        if x.is_nan() { -1e6 } else { x.clamp(-1e6, 1e6) as f32 }
    }

    /// Second at a screen coordinate in points.
    pub fn second(&self, x: f32) -> f64 {
        self.view.start + (f64::from(x) - f64::from(self.left)) * self.view.scale
    }

    /// Seconds at the left and the right edge.
    pub fn range(&self) -> (f64, f64) {
        (self.view.start, self.view.start + self.view.length(self.width))
    }

    /// Screen coordinate of the pixel border nearest to a second, within the view.
    pub fn border(&self, second: f64) -> f32 {
        let pixels = ((self.x(second) - self.left) / self.pixel).round();
        self.left + pixels.clamp(0.0, self.pixels() as f32) * self.pixel
    }

    /// A line one point wide, in whole pixels, whose first column begins at the pixel border `x`.
    pub fn mark(&self, x: f32, y: Rangef) -> Rect {
        let width = (1.0 / self.pixel).round().max(1.0) * self.pixel;
        Rect::from_x_y_ranges(x..=x + width, y)
    }

    /// Position of a second in pixels from the left edge, which may lie outside of the view.
    pub fn place(&self, second: f64) -> f64 {
        (second - self.view.start) / (self.view.scale * f64::from(self.pixel))
    }

    /// Physical pixels from the left to the right edge.
    pub fn pixels(&self) -> usize {
        (self.width / self.pixel).round().max(0.0) as usize
    }

    /// Seconds at the borders of the pixel columns, from the first left one to the last right one.
    pub fn columns(&self) -> (f64, f64) {
        let length = self.view.scale * f64::from(self.pixel) * self.pixels() as f64;
        (self.view.start, self.view.start + length)
    }

    /// Right edge in points.
    pub fn right(&self) -> f32 {
        self.left + self.width
    }
}

/// A mark of the ruler.
#[derive(Debug, Clone, PartialEq)]
pub struct Tick {
    /// Where, in seconds.
    pub second: f64,
    /// What to write beside it; minor marks have nothing.
    pub label: Option<String>,
}

/// Distances of labelled marks in milliseconds, and how many parts minor marks divide them into.
const STEPS: [(u64, u64); 24] = [
    (1, 1),
    (2, 2),
    (5, 5),
    (10, 5),
    (20, 4),
    (50, 5),
    (100, 5),
    (200, 4),
    (500, 5),
    (1_000, 5),
    (2_000, 4),
    (5_000, 5),
    (10_000, 5),
    (15_000, 3),
    (30_000, 3),
    (60_000, 4),
    (120_000, 4),
    (300_000, 5),
    (600_000, 5),
    (900_000, 3),
    (1_800_000, 3),
    (3_600_000, 4),
    (7_200_000, 4),
    (21_600_000, 6),
];

/// Marks in view, labelled ones at least `room` points apart.
pub fn ticks(axis: &Axis, room: f32) -> Vec<Tick> {
    let least = f64::from(room) * axis.view.scale * 1000.0;
    let &(step, parts) =
        STEPS.iter().find(|(step, _)| *step as f64 >= least).unwrap_or(&STEPS[STEPS.len() - 1]);
    let minor = step / parts;
    let (from, to) = axis.range();
    let first = (from.max(0.0) * 1000.0 / minor as f64).ceil() as u64;
    let last = (to.max(0.0) * 1000.0 / minor as f64).floor() as u64;
    // A view of several days has more marks than its smallest step foresees.
    let every = ((last.saturating_sub(first)) / 2000 + 1) as usize;
    (first..=last)
        .step_by(every)
        .map(|i| {
            let ms = i * minor;
            Tick { second: ms as f64 / 1000.0, label: ms.is_multiple_of(step).then(|| label(ms, step)) }
        })
        .collect()
}

fn label(ms: u64, step: u64) -> String {
    let whole = format!("{}:{:02}:{:02}", ms / 3_600_000, ms / 60_000 % 60, ms / 1000 % 60);
    if step >= 1000 { whole } else { format!("{whole}.{:03}", ms % 1000) }
}

/// A second as h:mm:ss.mmm.
pub fn clock(second: f64) -> String {
    label((second.max(0.0) * 1000.0).round() as u64, 1)
}

/// A length of time in few characters: 0.35 s, 12.3 s, 4:05, 1:02:03.
pub fn length(seconds: f64) -> String {
    match seconds {
        s if s < 0.995 => format!("{s:.2} s"),
        s if s < 59.95 => format!("{s:.1} s"),
        s => {
            let whole = s.round() as u64;
            let (hours, minutes, seconds) = (whole / 3600, whole / 60 % 60, whole % 60);
            if hours > 0 {
                format!("{hours}:{minutes:02}:{seconds:02}")
            } else {
                format!("{minutes}:{seconds:02}")
            }
        }
    }
}

/// The second nearest to `second` among `boundaries` (in order) that `allowed` lets through, if within `reach` seconds.
pub fn nearest(boundaries: &[f64], second: f64, reach: f64, allowed: impl Fn(f64) -> bool) -> Option<f64> {
    let first = boundaries.partition_point(|&b| b < second - reach);
    let near = boundaries[first..].iter().copied().take_while(|&b| b <= second + reach);
    near.filter(|&b| allowed(b)).min_by(|a, b| (a - second).abs().total_cmp(&(b - second).abs()))
}
