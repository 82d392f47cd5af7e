//! Lanes, waveform, ruler and play head agree to a pixel, ten hours into a recording.

use eframe::egui::{Color32, Rect, Theme};
use egui_kittest::kittest::Queryable;
use speakrs_app::app::peaks::Peaks;
use speakrs_app::gui::theme::{colors, speaker};
use speakrs_app::gui::timeline::axis::{Axis, View, ticks};
use speakrs_app::gui::timeline::model::{Model, Turn};

use super::stage::{Places, Stage, Window, speakers, turn, window_of};
use crate::support::{adapter, pixel_row};

const RATE: f64 = 16_000.0;
const DURATION: f64 = 36_000.0;

/// Seconds in view, always up to the end: from the closest zoom to the whole recording.
const ZOOMS: [f64; 7] = [0.01, 0.5, 5.0, 60.0, 700.0, 7_000.0, DURATION];

/// The least room between labels of the ruler, in points.
const TICK_ROOM: f32 = 92.0;

fn alone(turns: Vec<Turn>) -> Model {
    Model::new(DURATION, turns, speakers(["Ada"]), vec![])
}

fn show_last(window: &mut Window, seconds: f64) {
    window.state_mut().timeline.show_range(DURATION - seconds, DURATION);
    window.run();
}

fn axis(window: &Window) -> Axis {
    let ((from, to), rect) = (window.state().timeline.visible(), window.turns());
    let view = View { start: from, scale: (to - from) / f64::from(rect.width()) };
    Axis { view, left: rect.left(), width: rect.width(), pixel: 1.0 / window.ctx.pixels_per_point() }
}

/// Two labelled marks of the ruler in the middle of the view.
fn marks(axis: &Axis) -> (f64, f64) {
    let labelled: Vec<f64> =
        ticks(axis, TICK_ROOM).into_iter().filter(|t| t.label.is_some()).map(|t| t.second).collect();
    let (from, to) = axis.range();
    let near = |part: f64| {
        let at = from + part * (to - from);
        labelled.iter().copied().min_by(|a, b| (a - at).abs().total_cmp(&(b - at).abs())).expect("marks")
    };
    (near(0.3), near(0.7))
}

/// A second before a stretch, in view and off all marks.
fn before(stretch: (f64, f64)) -> f64 {
    stretch.0 - 0.37 * (stretch.1 - stretch.0)
}

/// Loud in the stretches, silent elsewhere.
fn loudness(stretches: &[(f64, f64)], sample: u64) -> f32 {
    let second = sample as f64 / RATE;
    let loud = stretches.iter().any(|s| s.0 <= second && second < s.1);
    if !loud {
        0.0
    } else if sample.is_multiple_of(2) {
        0.8
    } else {
        -0.8
    }
}

/// The peaks of the whole recording.
fn peaks(stretches: &[(f64, f64)]) -> Peaks {
    let mut ends: Vec<u64> =
        stretches.iter().flat_map(|s| [s.0, s.1]).map(|s| (s * RATE).round() as u64).collect();
    ends.push((DURATION * RATE) as u64);
    ends.sort_unstable();
    let (silence, loud): (Vec<f32>, Vec<f32>) =
        (vec![0.0; 1 << 20], (0..1 << 20).map(|i| if i % 2 == 0 { 0.8 } else { -0.8 }).collect());
    let mut peaks = Peaks::new();
    for (number, end) in ends.into_iter().enumerate() {
        let block = if number % 2 == 0 { &silence } else { &loud };
        while peaks.samples() < end {
            peaks.push(&block[..block.len().min((end - peaks.samples()) as usize)]);
        }
    }
    peaks
}

/// Column of the first pixel from `from` on that is, or is not, one of `wanted`.
fn find(row: &[Color32], from: usize, wanted: &[Color32], is: bool) -> Option<usize> {
    let near =
        |a: Color32, b: Color32| a.to_array().iter().zip(b.to_array()).all(|(a, b)| a.abs_diff(b) <= 2);
    let found = row[from..].iter().position(|&pixel| wanted.iter().any(|&color| near(pixel, color)) == is);
    found.map(|column| from + column)
}

/// Most columns of a waveform at the closest zoom that do not reach a height because it falls between two samples.
const GAP: usize = 3;

/// Where something begins and ends in a row.
fn ends(row: &[Color32], axis: &Axis, wanted: &[Color32]) -> (usize, usize) {
    let left = (axis.left / axis.pixel).round() as usize;
    let first = find(row, left, wanted, true)
        .unwrap_or_else(|| panic!("{wanted:?} at {} s a point", axis.view.scale));
    let mut end = find(row, first, wanted, false).expect("it ends");
    while let Some(next) = find(row, end, wanted, true).filter(|next| next - end <= GAP) {
        end = find(row, next, wanted, false).expect("it ends");
    }
    (first, end)
}

/// Whether all is in the columns of the seconds `from` and `to`; `row` gives the pixels at a height in points.
fn check(window: &Window, (from, to): (f64, f64), mut row: impl FnMut(f32) -> Vec<Color32>) {
    let (axis, dark) = (axis(window), colors(true));
    let look = speaker(0, true);
    let part = |name: &str| -> Rect { window.get_by_label(name).rect() };
    let (wave, ruler, turns) = (part("Waveform"), part("Play head"), part("Turns"));
    let exact = [from, to].map(|second| f64::from(axis.left / axis.pixel) + axis.place(second));
    let sample = 1.0 / (RATE * axis.view.scale * f64::from(axis.pixel));
    let agrees = |what: &str, column: usize, exact: f64| {
        // In f64, a pixel at ten hours is exact to a thousandth. Where a sample is as wide as a pixel, a waveform that is
        // loud up to an instant ends with the sample before it.
        let last = if what == "waveform" && sample > 0.5 { sample } else { 0.0 };
        assert!(
            (column as f64 - exact).abs() <= 1.001 + last,
            "{what} at column {column} instead of {exact} ({} s a pixel)",
            axis.view.scale * f64::from(axis.pixel)
        );
    };

    let lane = ends(&row(turns.top() + 14.0), &axis, &[look.fill, look.line]);
    let loud = ends(&row(wave.center().y - 16.0), &axis, &[look.line, dark.wave]);
    for (what, found) in [("turn", lane), ("waveform", loud)] {
        agrees(what, found.0, exact[0]);
        agrees(what, found.1, exact[1]);
    }
    let most = 1 + if sample > 0.5 { sample.ceil() as usize } else { 0 };
    assert!(lane.0.abs_diff(loud.0) <= most && lane.1.abs_diff(loud.1) <= most, "{lane:?} {loud:?}");

    let marks = row(ruler.bottom() - 6.0);
    for (exact, near) in exact.into_iter().zip([lane.0, lane.1]) {
        let mark = find(&marks, near.saturating_sub(1), &[dark.text_weak], true).expect("a mark");
        agrees("mark", mark, exact);
        assert!(mark.abs_diff(near) <= 1, "{mark} {near}");
    }

    // The play head is two points wide, with its middle at its time.
    let exact = f64::from(axis.left / axis.pixel) + axis.place(window.state().play_head);
    let head = ends(&row(wave.top() + 8.0), &axis, &[dark.play_head]);
    let half = f64::from(1.0 / axis.pixel).round();
    agrees("play head", head.0, exact - half);
    agrees("play head", head.1, exact + half);
}

#[test]
fn lanes_waveform_and_ruler_agree_to_a_pixel_after_ten_hours() {
    let rendered = adapter();
    for pixels_per_point in [1.0, 1.25, 2.0] {
        let size = (1016.0, 416.0);
        let mut window = window_of(Stage::new(alone(vec![])), size, pixels_per_point, Theme::Dark);
        let stretches = ZOOMS.map(|seconds| {
            show_last(&mut window, seconds);
            marks(&axis(&window))
        });
        let turns = stretches.iter().enumerate().map(|(i, s)| turn(i as u64, 0, s.0, s.1)).collect();
        window.state_mut().model = alone(turns);
        window.state_mut().peaks = Some(peaks(&stretches));
        for (seconds, stretch) in ZOOMS.into_iter().zip(stretches) {
            window.state_mut().play_head = before(stretch);
            show_last(&mut window, seconds);
            let wanted = window.state().timeline.wanted_detail();
            window.state_mut().detail =
                wanted.map(|range| (range.start, range.map(|sample| loudness(&stretches, sample)).collect()));
            window.run();
            let scale = pixels_per_point;
            check(&window, stretch, |y| pixel_row(&window, (y * scale) as usize));
            if rendered {
                let image = window.render().expect("a picture");
                check(&window, stretch, |y| {
                    let y = (y * scale) as u32;
                    let pixel = |x| image.get_pixel(x, y).0;
                    (0..image.width()).map(pixel).map(|[r, g, b, _]| Color32::from_rgb(r, g, b)).collect()
                });
            }
        }
    }
}

#[test]
fn the_check_sees_a_shift_of_two_pixels() {
    let mut window = window_of(Stage::new(alone(vec![])), (1016.0, 416.0), 1.0, Theme::Dark);
    show_last(&mut window, 700.0);
    let axis = axis(&window);
    let stretch = marks(&axis);
    let shift = 2.0 * axis.view.scale;
    window.state_mut().model = alone(vec![turn(0, 0, stretch.0, stretch.1)]);
    window.state_mut().play_head = before(stretch);
    for (by, sound) in [(0.0, true), (shift, false), (-shift, false)] {
        window.state_mut().peaks = Some(peaks(&[(stretch.0 + by, stretch.1 + by)]));
        window.run();
        let check = || check(&window, stretch, |y| pixel_row(&window, y as usize));
        assert_eq!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(check)).is_ok(), sound, "{by}");
    }
}
