//! Places on the screen, hits and snapping, without a window.

use std::collections::BTreeSet;

use eframe::egui::{Rect, pos2};
use proptest::prelude::*;
use speakrs_app::gui::timeline::axis::{Axis, CLOSEST, View, clock, length, ticks};
use speakrs_app::gui::timeline::hit::{Edge, Hit, hit, in_band, snap};
use speakrs_app::gui::timeline::layout::{PieceKind, pieces, regions, runs, shares, voices};
use speakrs_app::gui::timeline::model::{Lane, Model, Selection};

use super::stage::{ids, minute, speakers, turn};

/// 600 pixels that show the seconds from `start` on, `scale` each.
fn axis(start: f64, scale: f64) -> Axis {
    Axis { view: View { start, scale }, left: 100.0, width: 600.0, pixel: 1.0 }
}

/// One speaker with these turns, in a recording of 1000 s.
fn one(spans: &[(f64, f64)]) -> Model {
    let turns = spans.iter().enumerate().map(|(i, &(start, end))| turn(i as u64, 0, start, end));
    Model::new(1000.0, turns.collect(), speakers(["Ada"]), vec![])
}

fn lane(model: &Model) -> &Lane {
    &model.lanes()[0]
}

#[test]
fn overlaps_are_those_of_different_speakers() {
    assert_eq!(minute().overlaps().spans(), [(10.0, 15.0)]);
    // Not of one speaker, not where turns only touch.
    assert_eq!(one(&[(0.0, 5.0), (3.0, 8.0)]).overlaps().spans(), []);
    let turns = vec![turn(1, 0, 0.0, 5.0), turn(2, 1, 5.0, 8.0)];
    assert_eq!(Model::new(9.0, turns, speakers(["A", "B"]), vec![]).overlaps().spans(), []);
    // A change among three does not divide it.
    let turns = vec![turn(1, 0, 0.0, 9.0), turn(2, 1, 1.0, 4.0), turn(3, 2, 4.0, 8.0), turn(4, 0, 2.0, 3.0)];
    assert_eq!(Model::new(9.0, turns, speakers(["A", "B", "C"]), vec![]).overlaps().spans(), [(1.0, 8.0)]);
}

#[test]
fn narrow_turns_are_summed_up_by_the_part_of_the_pixel() {
    // One second a pixel: a quarter and a half in the tenth, all of the twelfth.
    let model = one(&[(10.0, 10.25), (10.5, 11.0), (12.0, 13.0), (20.0, 60.0)]);
    let found = pieces(lane(&model), &axis(0.0, 1.0), &[false, true, false, false]);
    let share = |left, filled, selected| (left, left + 1.0, PieceKind::Share { filled, selected });
    let expected = [(120.0, 160.0, PieceKind::Turn(3)), share(110.0, 0.75, true), share(112.0, 1.0, false)];
    let found: Vec<_> = found.iter().map(|piece| (piece.left, piece.right, piece.kind)).collect();
    assert_eq!(found, expected);
}

#[test]
fn runs_join_where_no_pixel_lies_between() {
    let model = one(&[(10.0, 12.0), (12.2, 14.0), (16.0, 16.1), (30.0, 30.0001)]);
    let found = runs(&lane(&model).stretches, &axis(0.0, 1.0));
    assert_eq!(found, [(110.0, 114.0), (116.0, 117.0), (130.0, 131.0)]);
}

#[test]
fn a_waveform_is_coloured_by_who_speaks_for_half_of_the_pixel() {
    let turns = vec![
        turn(1, 0, 10.0, 10.4),
        turn(2, 1, 10.4, 11.0),
        turn(3, 0, 11.0, 12.0),
        turn(4, 0, 13.0, 13.25),
        turn(5, 1, 13.5, 13.625),
    ];
    let model = Model::new(100.0, turns, speakers(["A", "B"]), vec![]);
    let found = voices(&model, &axis(0.0, 1.0));
    let lanes: Vec<_> = found[9..14].iter().map(|voice| voice.lane).collect();
    assert_eq!((found.len(), lanes), (600, vec![None, Some(1), Some(0), None, None]));
    assert_eq!((found[9].speech, found[11].speech, found[13].speech), (0.0, 1.0, 0.25));
}

#[test]
fn overlaps_are_as_strong_as_the_part_of_the_pixel() {
    let model = one(&[(10.0, 12.0), (12.25, 12.5), (14.5, 15.0)]);
    let found = shares(&lane(&model).stretches, &axis(0.0, 1.0));
    assert_eq!(found, [(110.0, 112.0, 1.0), (112.0, 113.0, 0.25), (114.0, 115.0, 0.5)]);
    // A run does not go on over a gap.
    let model = one(&[(10.0, 11.0), (12.0, 13.0)]);
    assert_eq!(shares(&lane(&model).stretches, &axis(0.0, 1.0)).len(), 2);
}

#[test]
fn edges_are_hit_from_both_sides_and_touching_turns_stay_apart() {
    let model = one(&[(10.0, 20.0), (20.0, 30.0), (40.0, 40.05)]);
    // Ten pixels a second.
    let at = |second: f64, by: f32| {
        let axis = axis(0.0, 0.1);
        hit(&model, lane(&model), &axis, axis.x(second) + by)
    };
    assert_eq!(at(10.0, -3.0), Hit::Edge(0, Edge::Start));
    assert_eq!(at(10.0, 3.0), Hit::Edge(0, Edge::Start));
    assert_eq!(at(20.0, -2.0), Hit::Edge(0, Edge::End));
    assert_eq!(at(20.0, 2.0), Hit::Edge(1, Edge::Start));
    assert_eq!(at(30.0, 4.0), Hit::Edge(1, Edge::End));
    assert_eq!(at(30.0, 6.0), Hit::Nothing);
    assert_eq!(at(15.0, 0.0), Hit::Body(0));
    assert_eq!(at(10.0, -9.0), Hit::Nothing);
    // Too narrow for edges, but not for a click.
    assert_eq!(at(40.0, 0.0), Hit::Body(2));
    assert_eq!(at(40.0, -1.5), Hit::Body(2));
}

#[test]
fn of_turns_over_turns_the_shortest_is_hit() {
    let model = one(&[(0.0, 50.0), (10.0, 30.0), (15.0, 20.0)]);
    let body = |second| hit(&model, lane(&model), &axis(0.0, 0.1), axis(0.0, 0.1).x(second));
    assert_eq!((body(17.5), body(25.0), body(40.0)), (Hit::Body(2), Hit::Body(1), Hit::Body(0)));
}

#[test]
fn snapping_takes_the_nearest_within_reach_but_not_what_moves() {
    let (model, selection) = (minute(), Selection { range: Some((22.0, 23.0)), ..Default::default() });
    let at = |second, moving: &[f64]| snap(&model, &selection, &axis(0.0, 0.1), 33.0, second, moving);
    assert_eq!(at(10.3, &[]), Some(10.0));
    assert_eq!(at(10.8, &[]), None);
    assert_eq!(at(10.3, &[10.0]), None);
    assert_eq!(at(22.4, &[]), Some(22.0));
    assert_eq!(at(32.6, &[]), Some(33.0));
    assert_eq!(at(59.5, &[]), Some(60.0));
    assert_eq!(at(0.5, &[]), Some(0.0));
    assert_eq!(at(30.2, &[30.0]), None);
}

#[test]
fn a_band_takes_the_lanes_that_it_touches() {
    let model = minute();
    let band = |x: [f64; 2], y: [f32; 2]| {
        let axis = axis(0.0, 0.1);
        let corner = |i: usize| pos2(axis.x(x[i]), y[i]);
        in_band(&model, &axis, 200.0, 40.0, corner(0), corner(1)).into_iter().collect::<BTreeSet<_>>()
    };
    assert_eq!(band([0.0, 60.0], [210.0, 230.0]), ids([1, 4, 6]));
    assert_eq!(band([60.0, 0.0], [270.0, 230.0]), ids([1, 2, 4, 5, 6]));
    assert_eq!(band([16.0, 18.0], [0.0, 500.0]), ids([2]));
    assert_eq!(band([21.0, 24.0], [0.0, 500.0]), ids([]));
    assert_eq!(band([0.0, 60.0], [100.0, 190.0]), ids([]));
}

#[test]
fn marks_of_the_ruler_are_round_and_apart() {
    // From the closest zoom to one day in view.
    for exponent in 0..30 {
        let axis = axis(35_990.0, CLOSEST * 1.6_f64.powi(exponent));
        let found = ticks(&axis, 92.0);
        let labels: Vec<_> = found.iter().filter(|tick| tick.label.is_some()).collect();
        assert!(found.len() < 200, "{}", found.len());
        for pair in labels.windows(2) {
            let apart = axis.x(pair[1].second) - axis.x(pair[0].second);
            assert!((91.9..520.0).contains(&apart), "{exponent}: {apart}");
            assert_ne!(pair[0].label, pair[1].label);
        }
        assert!(found.iter().all(|tick| (tick.second * 1000.0).fract() < 1e-6));
    }
    let at = |scale| ticks(&axis(0.0, scale), 92.0).into_iter().find_map(|t| t.label).expect("a label");
    assert_eq!((at(0.1).as_str(), at(0.001).as_str()), ("0:00:00", "0:00:00.000"));
}

#[test]
fn times_are_written_short() {
    assert_eq!(clock(36_001.234_5), "10:00:01.235");
    assert_eq!(clock(-1.0), "0:00:00.000");
    let written = [0.0, 0.994, 0.999, 12.34, 59.96, 245.4, 3599.6, 36_000.0].map(length);
    assert_eq!(written, ["0.00 s", "0.99 s", "1.0 s", "12.3 s", "1:00", "4:05", "1:00:00", "10:00:00"]);
}

#[test]
fn parts_never_overlap_and_lie_on_pixels() {
    for (width, height) in [(1.0, 1.0), (200.0, 100.0), (555.3, 299.9), (1919.7, 1080.2)] {
        for (lanes, errors, pixel) in [(0, true, 1.0), (3, false, 0.8), (200, true, 1.0 / 3.0)] {
            let all = Rect::from_min_max(pos2(3.3, 7.7), pos2(3.3 + width, 7.7 + height));
            let r = regions(all, lanes, errors, pixel);
            let parts = [r.corner, r.overview, r.ruler_head, r.ruler, r.wave_head, r.wave, r.lanes, r.errors];
            for (i, a) in parts.iter().enumerate() {
                for edge in [a.left(), a.right(), a.top(), a.bottom()] {
                    let pixels = edge / pixel;
                    assert!((pixels - pixels.round()).abs() < 0.01, "{edge}");
                }
                for b in &parts[i + 1..] {
                    let both = a.intersect(*b);
                    assert!(both.width() <= 0.01 || both.height() <= 0.01, "{a} {b}");
                }
            }
        }
    }
}

proptest! {
    /// Every turn in view is drawn, no piece lies where nobody speaks, and there are at most two for each pixel.
    #[test]
    fn pieces_are_where_turns_are(
        spans in prop::collection::vec((0.0..1000.0f64, 0.001..30.0f64), 0..80),
        start in 0.0..900.0f64,
        zoom in 0.0..9.0f64,
        pixel in prop::sample::select(vec![1.0f32, 0.8, 0.5]),
    ) {
        let spans: Vec<_> = spans.into_iter().map(|(from, long)| (from, (from + long).min(1000.0))).collect();
        let model = one(&spans);
        let axis = Axis { pixel, ..axis(start, 1e-3 * 4f64.powf(zoom / 2.0)) };
        let found = pieces(lane(&model), &axis, &[]);
        prop_assert!(found.len() <= 2 * axis.pixels());
        let seen = axis.columns();
        let drawn = |x: f32| found.iter().any(|piece| piece.left <= x && x <= piece.right);
        for (from, to) in spans.iter().copied().filter(|s| s.1 > seen.0 && s.0 < seen.1) {
            let middle = (from.max(seen.0) + to.min(seen.1)) / 2.0;
            prop_assert!(drawn(axis.x(middle).clamp(axis.left, axis.right())), "{from} {to}");
        }
        for piece in &found {
            prop_assert!(axis.left <= piece.left && piece.left < piece.right && piece.right <= axis.right() + 0.01);
            let (from, to) = (axis.second(piece.left - pixel), axis.second(piece.right + pixel));
            prop_assert!(spans.iter().any(|s| s.1 >= from && s.0 <= to), "{piece:?}");
        }
    }

    /// Zooming keeps the second under the pointer unless the recording's ends or the closest zoom are in the way.
    #[test]
    fn zooming_keeps_the_second_under_the_pointer(
        duration in 1.0..1e6f64, start in 0.0..1.0f64, zoom in 0.0..1.0f64, factor in 0.1..10.0f64, x in 0.0..600.0f64,
    ) {
        let all = View::all(duration, 600.0);
        let view = View { start: start * duration, scale: all.scale * (1e-6f64).powf(zoom) }.clamped(duration, 600.0);
        let zoomed = view.zoomed(factor, x, duration, 600.0);
        let (before, after) = (view.start + x * view.scale, zoomed.start + x * zoomed.scale);
        prop_assert!(zoomed.start >= 0.0 && zoomed.start + zoomed.length(600.0) <= duration.max(600.0 * CLOSEST) * (1.0 + 1e-9));
        let at_end = zoomed.start == 0.0 || zoomed.start + zoomed.length(600.0) >= duration * (1.0 - 1e-9);
        prop_assert!(at_end || (before - after).abs() <= 1e-9 * duration, "{before} {after}");
    }
}
