//! Drags: ends of turns, turns, rubber band, range, play head.

use eframe::egui::{Key, Modifiers, PointerButton, Pos2, vec2};
use egui_kittest::kittest::Queryable;
use speakrs_app::gui::timeline::model::{Model, TurnId};
use speakrs_app::gui::timeline::{Event, SHORTEST_TURN};

use super::stage::{Places, Stage, Window, ids, minute, speakers, turn, window};
use crate::support::{CTRL, Hands};

fn drag(window: &mut Window, from: Pos2, to: Pos2, modifiers: Modifiers) -> Vec<Event> {
    window.drag(from, to, PointerButton::Primary, modifiers);
    // Keys stay down until after the button.
    window.button(to, PointerButton::Primary, false, modifiers);
    window.take_events()
}

/// The ends that a turn was given by the only event.
#[track_caller]
fn moved(events: &[Event], id: u64) -> (f64, f64) {
    let [Event::MoveBoundary { turn, start, end }] = events else { panic!("{events:?}") };
    assert_eq!(*turn, TurnId(id));
    (*start, *end)
}

#[test]
fn an_end_of_a_turn_follows_the_pointer() {
    let mut window = window(Stage::new(minute()));
    let (from, to) = (window.in_lane(39.9, "Ada"), window.in_lane(42.4, "Ada"));
    let (start, end) = moved(&drag(&mut window, from, to, Modifiers::NONE), 4);
    assert_eq!(start, 30.0);
    // It moves as far as the pointer, wherever it was taken hold of.
    assert!((end - 42.5).abs() < 0.08, "{end}");
    let (from, to) = (window.in_lane(5.1, "Ada"), window.in_lane(2.6, "Ada"));
    let (start, end) = moved(&drag(&mut window, from, to, Modifiers::NONE), 1);
    assert!((start - 2.5).abs() < 0.08 && end == 15.0, "{start} {end}");
}

#[test]
fn nothing_is_asked_for_before_the_drag_ends() {
    let mut window = window(Stage::new(minute()));
    let (from, to) = (window.in_lane(39.9, "Ada"), window.in_lane(43.0, "Ada"));
    window.drag(from, to, PointerButton::Primary, Modifiers::NONE);
    assert_eq!(window.take_events(), []);
    window.drop(to);
    moved(&window.take_events(), 4);
}

#[test]
fn an_end_snaps_to_boundaries_and_the_play_head_unless_alt_is_held() {
    for (near, expected) in [(44.8, 45.0), (24.85, 25.0), (20.2, 20.0), (42.8, 43.0)] {
        let mut stage = Stage::new(minute());
        stage.play_head = 43.0;
        let mut window = window(stage);
        let from = window.in_lane(39.99, "Ada");
        let to = Pos2::new(window.x(near), from.y);
        if expected > 30.0 {
            let (_, end) = moved(&drag(&mut window, from, to, Modifiers::NONE), 4);
            assert_eq!(end, expected);
            let (_, end) = moved(&drag(&mut window, from, to, Modifiers::ALT), 4);
            assert!(end != expected && (end - near).abs() < 0.08, "{end}");
        } else {
            let from = window.in_lane(30.05, "Ada");
            let (start, _) = moved(&drag(&mut window, from, to, Modifiers::NONE), 4);
            assert_eq!(start, expected);
        }
    }
}

#[test]
fn a_turn_keeps_a_least_length() {
    let mut window = window(Stage::new(minute()));
    let (from, to) = (window.in_lane(39.95, "Ada"), window.in_lane(2.0, "Ada"));
    let (start, end) = moved(&drag(&mut window, from, to, Modifiers::NONE), 4);
    assert_eq!((start, end), (30.0, 30.0 + SHORTEST_TURN));
    let (from, to) = (window.in_lane(30.05, "Ada"), window.in_lane(59.0, "Ada"));
    let (start, end) = moved(&drag(&mut window, from, to, Modifiers::NONE), 4);
    assert_eq!((start, end), (40.0 - SHORTEST_TURN, 40.0));
}

#[test]
fn an_end_stays_within_the_recording() {
    let mut window = window(Stage::new(minute()));
    let from = window.in_lane(49.95, "Ben");
    let (start, end) = moved(&drag(&mut window, from, from + vec2(2000.0, 0.0), Modifiers::NONE), 5);
    assert_eq!((start, end), (45.0, 60.0));
    let from = window.in_lane(5.05, "Ada");
    let (start, end) = moved(&drag(&mut window, from, from - vec2(2000.0, 0.0), Modifiers::NONE), 1);
    assert_eq!((start, end), (0.0, 15.0));
}

#[test]
fn a_turn_is_given_to_the_lane_that_it_is_dropped_on() {
    let mut window = window(Stage::new(minute()));
    let (from, to) = (window.in_lane(35.0, "Ada"), window.in_lane(35.0, "Cleo"));
    let expected = [Event::SelectTurns(ids([4])), Event::MoveTurns { turns: vec![TurnId(4)], speaker: 2 }];
    assert_eq!(drag(&mut window, from, to, Modifiers::NONE), expected);
}

#[test]
fn all_selected_turns_move_together() {
    let mut window = window(Stage::new(minute()).select([1, 4]));
    let (from, to) = (window.in_lane(35.0, "Ada"), window.in_lane(35.0, "Ben"));
    let expected = [Event::MoveTurns { turns: vec![TurnId(1), TurnId(4)], speaker: 1 }];
    assert_eq!(drag(&mut window, from, to, Modifiers::NONE), expected);
}

#[test]
fn below_the_last_lane_it_is_given_to_the_last() {
    let mut window = window(Stage::new(minute()).select([4]));
    let from = window.in_lane(35.0, "Ada");
    let expected = [Event::MoveTurns { turns: vec![TurnId(4)], speaker: 2 }];
    assert_eq!(drag(&mut window, from, from + vec2(0.0, 900.0), Modifiers::NONE), expected);
}

#[test]
fn a_turn_dropped_on_its_own_lane_stays() {
    let mut window = window(Stage::new(minute()).select([4]));
    let (from, to) = (window.in_lane(32.0, "Ada"), window.in_lane(37.0, "Ada"));
    assert_eq!(drag(&mut window, from, to, Modifiers::NONE), []);
}

#[test]
fn where_nothing_may_be_changed_drags_only_select() {
    let mut stage = Stage::new(minute());
    stage.editable = false;
    let mut window = window(stage);
    let (from, to) = (window.in_lane(39.95, "Ada"), window.in_lane(42.0, "Cleo"));
    assert_eq!(drag(&mut window, from, to, Modifiers::NONE), [Event::SelectTurns(ids([4]))]);
}

#[test]
fn a_rubber_band_selects_the_turns_that_it_touches() {
    let mut window = window(Stage::new(minute()));
    let (from, to) = (window.in_lane(17.0, "Ada"), window.in_lane(27.0, "Cleo"));
    drag(&mut window, from, to, Modifiers::NONE);
    assert_eq!(window.state().selection.turns, ids([2, 3]));
    // Begun anywhere, back over itself, it takes away again.
    let (from, to) = (window.in_lane(57.0, "Cleo"), window.in_lane(47.0, "Ben"));
    window.drag(from, to, PointerButton::Primary, Modifiers::NONE);
    assert_eq!(window.state().selection.turns, ids([5]));
    window.hover_at(from - vec2(20.0, 0.0));
    window.run();
    assert_eq!(window.state().selection.turns, ids([]));
    window.drop(from);
}

#[test]
fn with_ctrl_or_shift_a_rubber_band_adds_even_from_inside_of_a_turn() {
    for modifiers in [CTRL, Modifiers::SHIFT] {
        let mut window = window(Stage::new(minute()).select([5]));
        let (from, to) = (window.in_lane(27.0, "Cleo"), window.in_lane(36.0, "Ada"));
        drag(&mut window, from, to, modifiers);
        assert_eq!(window.state().selection.turns, ids([3, 4, 5]));
    }
}

#[test]
fn a_drag_over_ruler_or_waveform_selects_a_range() {
    for part in ["Waveform", "Play head"] {
        let mut window = window(Stage::new(minute()));
        let (a, b) = (window.in_part(22.0, part), window.in_part(33.3, part));
        for (from, to) in [(a, b), (b, a)] {
            let events = drag(&mut window, from, to, Modifiers::NONE);
            let [Event::SelectRange(Some((from, to)))] = events[..] else { panic!("{events:?}") };
            assert!((from - 22.0).abs() < 0.04 && (to - 33.3).abs() < 0.04, "{from} {to}");
        }
    }
}

#[test]
fn a_range_snaps_to_turns() {
    let mut window = window(Stage::new(minute()));
    let (from, to) = (window.in_part(24.8, "Waveform"), window.in_part(40.2, "Waveform"));
    let events = drag(&mut window, from, to, Modifiers::NONE);
    assert_eq!(events, [Event::SelectRange(Some((25.0, 40.0)))]);
}

#[test]
fn the_handle_of_the_play_head_takes_it_along() {
    let mut stage = Stage::new(minute());
    stage.play_head = 20.0;
    let mut window = window(stage);
    let (from, to) = (window.in_part(20.0, "Play head"), window.in_part(52.0, "Play head"));
    let events = drag(&mut window, from, to, Modifiers::NONE);
    assert!(events.len() > 2 && events.iter().all(|e| matches!(e, Event::Seek(_))), "{events:?}");
    assert!((window.state().play_head - 52.0).abs() < 0.04);
}

#[test]
fn escape_calls_off_every_drag() {
    let selected = ids([5]);
    let ways = [
        ((39.95, "Ada"), (43.0, "Ada")), // an end of a turn
        ((47.0, "Ben"), (47.0, "Cleo")), // a turn
        ((22.0, "Ada"), (33.0, "Cleo")), // a rubber band
    ];
    for ((from, lane), (to, other)) in ways {
        let mut window = window(Stage::new(minute()).select([5]));
        let (from, to) = (window.in_lane(from, lane), window.in_lane(to, other));
        window.drag(from, to, PointerButton::Primary, Modifiers::NONE);
        window.key(Modifiers::NONE, Key::Escape);
        window.drop(to);
        assert_eq!(window.state().selection.turns, selected, "{lane} {other}");
        let events = window.take_events();
        assert!(events.iter().all(|e| matches!(e, Event::SelectTurns(_))), "{events:?}");
        // The next one still selects: Escape did not reach it.
        window.key(Modifiers::NONE, Key::Escape);
        assert_eq!(window.take_events(), [Event::SelectTurns(ids([]))]);
    }
}

#[test]
fn escape_calls_off_a_range_and_puts_the_play_head_back() {
    let mut stage = Stage::new(minute());
    stage.play_head = 20.0;
    let mut window = window(stage);
    let (from, to) = (window.in_part(30.0, "Waveform"), window.in_part(40.0, "Waveform"));
    window.drag(from, to, PointerButton::Primary, Modifiers::NONE);
    window.key(Modifiers::NONE, Key::Escape);
    window.drop(to);
    assert_eq!(window.take_events(), []);
    let (from, to) = (window.in_part(20.0, "Play head"), window.in_part(40.0, "Play head"));
    window.drag(from, to, PointerButton::Primary, Modifiers::NONE);
    window.key(Modifiers::NONE, Key::Escape);
    window.drop(to);
    assert_eq!(window.take_events().last(), Some(&Event::Seek(20.0)));
    assert_eq!(window.state().play_head, 20.0);
}

#[test]
fn a_turn_that_vanishes_under_the_pointer_is_let_go() {
    for to in [(39.95, "Ada"), (35.0, "Cleo")] {
        let mut window = window(Stage::new(minute()).select([4]));
        let from = window.in_lane(if to.1 == "Ada" { 39.95 } else { 35.0 }, "Ada");
        let to = window.in_lane(to.0 + 2.0, to.1);
        window.drag(from, to, PointerButton::Primary, Modifiers::NONE);
        window.state_mut().model =
            Model::new(60.0, vec![turn(9, 0, 1.0, 2.0)], speakers(["Ada", "Ben", "Cleo"]), vec![]);
        window.hover_at(to + vec2(3.0, 0.0));
        window.run();
        window.drop(to);
        assert_eq!(window.take_events(), []);
    }
}

#[test]
fn a_drag_over_the_edge_scrolls_and_goes_on() {
    let mut window = window(Stage::new(minute()));
    window.state_mut().timeline.show_range(20.0, 30.0);
    window.run();
    let from = window.in_part(25.0, "Waveform");
    let outside = from + vec2(600.0, 0.0);
    window.drag(from, outside, PointerButton::Primary, Modifiers::NONE);
    window.run_steps(60);
    window.drop(outside);
    let events = window.take_events();
    let [Event::SelectRange(Some((start, end)))] = events[..] else { panic!("{events:?}") };
    assert!((start - 25.0).abs() < 0.01 && end > 35.0, "{start} {end}");
    assert!(window.state().timeline.visible().0 > 25.0);
}

#[test]
fn a_drag_to_a_lane_out_of_view_scrolls_to_it() {
    let names: Vec<String> = (1..=40).map(|i| format!("Speaker {i}")).collect();
    let speakers = speakers(names.iter().map(String::as_str));
    let stage = Stage::new(Model::new(60.0, vec![turn(1, 0, 10.0, 50.0)], speakers, vec![])).select([1]);
    let mut window = window(stage);
    let from = window.in_lane(30.0, "Speaker 1");
    let to = Pos2::new(from.x, window.turns().bottom() - 2.0);
    window.drag(from, to, PointerButton::Primary, Modifiers::NONE);
    for _ in 0..200 {
        window.step();
    }
    window.drop(to);
    let events = window.take_events();
    assert_eq!(events, [Event::MoveTurns { turns: vec![TurnId(1)], speaker: 39 }]);
    assert!(window.query_by_label("Speaker 40").is_some());
}

#[test]
fn the_middle_button_moves_the_view() {
    let mut window = window(Stage::new(minute()));
    window.state_mut().timeline.show_range(20.0, 30.0);
    window.run();
    let before = window.state().timeline.visible().0;
    for place in [window.in_lane(25.0, "Ada"), window.in_part(25.0, "Waveform")] {
        let second = |window: &Window, x: f32| {
            let (from, to) = window.state().timeline.visible();
            let rect = window.turns();
            from + f64::from((x - rect.left()) / rect.width()) * (to - from)
        };
        let held = second(&window, place.x);
        window.drag(place, place + vec2(60.0, 0.0), PointerButton::Middle, Modifiers::NONE);
        window.button(place, PointerButton::Middle, false, Modifiers::NONE);
        assert!((second(&window, place.x + 60.0) - held).abs() < 0.1);
    }
    assert!(window.state().timeline.visible().0 < before);
    assert_eq!(window.take_events(), []);
}
