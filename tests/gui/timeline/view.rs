//! Zooming and scrolling.

use eframe::egui::{Key, Modifiers, Theme, vec2};
use egui_kittest::kittest::Queryable;
use speakrs_app::gui::timeline::axis::CLOSEST;
use speakrs_app::gui::timeline::model::{Model, TurnId};

use super::stage::{Places, Stage, Window, minute, speakers, turn, window, window_of};
use crate::support::{CTRL, Hands};

const HOURS: f64 = 36_000.0;

fn second_at(window: &Window, x: f32) -> f64 {
    let (from, to) = window.state().timeline.visible();
    let rect = window.turns();
    from + f64::from(x - rect.left()) / f64::from(rect.width()) * (to - from)
}

fn seen(window: &Window) -> f64 {
    let (from, to) = window.state().timeline.visible();
    to - from
}

fn focused(stage: Stage) -> Window {
    let mut window = window(stage);
    window.get_by_label("Turns").focus();
    window.run();
    window
}

fn ten_hours() -> Model {
    Model::new(HOURS, vec![turn(1, 0, HOURS - 1.0, HOURS)], speakers(["Ada"]), vec![])
}

#[test]
fn the_wheel_zooms_and_the_time_under_the_pointer_stays() {
    for part in ["Waveform", "Play head", "Turns"] {
        let mut window = window(Stage::new(ten_hours()));
        let place = window.get_by_label(part).rect().left_top() + vec2(301.0, 5.0);
        let under = second_at(&window, place.x);
        for _ in 0..60 {
            let scale = seen(&window) / f64::from(window.turns().width());
            window.wheel(place, vec2(0.0, 100.0), CTRL);
            assert!((second_at(&window, place.x) - under).abs() < 0.01 * scale + 1e-9, "{part}");
        }
        // All the way in, and out again.
        assert!((seen(&window) / f64::from(window.turns().width()) / CLOSEST - 1.0).abs() < 1e-6);
        for _ in 0..80 {
            window.wheel(place, vec2(0.0, -100.0), CTRL);
        }
        assert_eq!(window.state().timeline.visible(), (0.0, HOURS));
        assert_eq!(window.take_events(), []);
    }
}

#[test]
fn at_the_end_of_the_recording_too() {
    let mut window = window(Stage::new(ten_hours()));
    let place = window.turns().right_top() + vec2(-1.0, 3.0);
    let under = second_at(&window, place.x);
    for _ in 0..60 {
        window.wheel(place, vec2(0.0, 100.0), CTRL);
    }
    assert!((second_at(&window, place.x) - under).abs() < CLOSEST, "{}", second_at(&window, place.x));
}

#[test]
fn the_wheel_scrolls_through_time_where_all_lanes_fit() {
    let mut window = window(Stage::new(minute()));
    window.state_mut().timeline.show_range(20.0, 30.0);
    window.run();
    let (place, length) = (window.turns().center(), seen(&window));
    let points = |window: &Window, from: f64| {
        (window.state().timeline.visible().0 - from) / length * f64::from(window.turns().width())
    };
    for (delta, modifiers, expected) in [
        (vec2(0.0, -50.0), Modifiers::NONE, 50.0),
        (vec2(0.0, 50.0), Modifiers::NONE, -50.0),
        (vec2(-50.0, 0.0), Modifiers::NONE, 50.0),
        (vec2(0.0, -50.0), Modifiers::SHIFT, 50.0),
    ] {
        let from = window.state().timeline.visible().0;
        window.wheel(place, delta, modifiers);
        assert!((points(&window, from) - expected).abs() < 0.01, "{delta} {}", points(&window, from));
        assert!((seen(&window) - length).abs() < 1e-9);
    }
}

#[test]
fn it_stops_at_both_ends() {
    let mut window = window(Stage::new(minute()));
    window.state_mut().timeline.show_range(20.0, 30.0);
    window.run();
    let place = window.turns().center();
    for (delta, sought) in [(1e5, 0.0), (-1e5, 60.0)] {
        for _ in 0..3 {
            window.wheel(place, vec2(delta, 0.0), Modifiers::NONE);
        }
        let (from, to) = window.state().timeline.visible();
        assert!((if sought == 0.0 { from } else { to } - sought).abs() < 1e-9, "{from} {to}");
    }
}

#[test]
fn lanes_that_do_not_fit_scroll_up_and_down_and_time_only_sideways() {
    let names: Vec<String> = (1..=40).map(|i| format!("Speaker {i}")).collect();
    let model = Model::new(60.0, vec![], speakers(names.iter().map(String::as_str)), vec![]);
    let mut window = window(Stage::new(model));
    window.state_mut().timeline.show_range(20.0, 30.0);
    window.run();
    let (place, before) = (window.turns().center(), window.state().timeline.visible());
    let top = window.get_by_label("Speaker 3").rect().top();
    window.wheel(place, vec2(0.0, -20.0), Modifiers::NONE);
    assert_eq!(window.get_by_label("Speaker 3").rect().top(), top - 20.0);
    assert_eq!(window.state().timeline.visible(), before);
    window.wheel(place, vec2(-20.0, 0.0), Modifiers::NONE);
    assert!(window.state().timeline.visible().0 > before.0);
    assert_eq!(window.get_by_label("Speaker 3").rect().top(), top - 20.0);
    // Over the waveform the wheel is for the time.
    let before = window.state().timeline.visible();
    let wave = window.get_by_label("Waveform").rect().center();
    window.wheel(wave, vec2(0.0, -20.0), Modifiers::NONE);
    assert!(window.state().timeline.visible().0 > before.0);
}

#[test]
fn buttons_and_keys_zoom_about_the_play_head() {
    let mut stage = Stage::new(minute());
    stage.play_head = 45.0;
    let mut window = focused(stage);
    let x = window.x(45.0);
    type Way = (fn(&mut Window), bool);
    let ways: [Way; 5] = [
        (|w| w.key(Modifiers::NONE, Key::Plus), true),
        (|w| w.key(Modifiers::SHIFT, Key::Equals), true),
        (|w| w.get_by_label("Zoom in").click(), true),
        (|w| w.key(Modifiers::NONE, Key::Minus), false),
        (|w| w.get_by_label("Zoom out").click(), false),
    ];
    for (act, closer) in ways {
        let before = seen(&window);
        act(&mut window);
        window.run();
        assert_eq!(seen(&window) < before, closer);
        assert!((window.x(45.0) - x).abs() < 0.05, "{}", window.x(45.0));
    }
}

#[test]
fn fit_shows_all_by_button_and_key() {
    let mut window = focused(Stage::new(minute()));
    let ways: [fn(&mut Window); 2] =
        [|w| w.get_by_label("Show the whole recording").click(), |w| w.key(Modifiers::NONE, Key::F)];
    for act in ways {
        window.get_by_label("Turns").focus();
        window.state_mut().timeline.show_range(20.0, 30.0);
        window.run();
        act(&mut window);
        window.run();
        assert_eq!(window.state().timeline.visible(), (0.0, 60.0));
    }
}

#[test]
fn z_shows_what_is_selected() {
    let mut window = focused(Stage::new(minute()).select([2, 3]));
    window.key(Modifiers::NONE, Key::Z);
    let (from, to) = window.state().timeline.visible();
    assert!(from < 10.0 && to > 30.0 && to - from < 23.0, "{from} {to}");
}

#[test]
fn page_keys_scroll_by_nearly_a_screen() {
    let mut window = focused(Stage::new(minute()));
    window.state_mut().timeline.show_range(0.0, 9.0);
    window.run();
    let (before, length) = (window.state().timeline.visible().0, seen(&window));
    window.key(Modifiers::NONE, Key::PageDown);
    assert!((window.state().timeline.visible().0 - before - 0.9 * length).abs() < 1e-6);
    window.key(Modifiers::NONE, Key::PageUp);
    assert!((window.state().timeline.visible().0 - before).abs() < 1e-6);
}

#[test]
fn walking_to_a_turn_out_of_view_shows_it() {
    let mut window = focused(Stage::new(minute()));
    window.state_mut().timeline.show_range(0.0, 12.0);
    window.run();
    for _ in 0..5 {
        window.key(Modifiers::NONE, Key::ArrowRight);
    }
    let (from, to) = window.state().timeline.visible();
    assert!(from <= 45.0 && 50.0 <= to, "{from} {to}");
}

#[test]
fn revealing_a_turn_scrolls_to_its_lane() {
    let names: Vec<String> = (1..=40).map(|i| format!("Speaker {i}")).collect();
    let turns = vec![turn(1, 38, 10.0, 20.0)];
    let model = Model::new(60.0, turns, speakers(names.iter().map(String::as_str)), vec![]);
    let mut window = window(Stage::new(model));
    assert!(window.query_by_label("Speaker 39").is_none());
    let stage = window.state_mut();
    stage.timeline.reveal(&stage.model, TurnId(1));
    window.run();
    let head = window.get_by_label("Speaker 39").rect();
    assert!(window.turns().y_range().contains(head.center().y));
}

#[test]
fn the_view_follows_the_moving_play_head_until_told_otherwise() {
    let mut stage = Stage::new(minute());
    stage.playing = true;
    let mut window = focused(stage);
    window.state_mut().timeline.show_range(0.0, 9.0);
    window.run();
    let follow = |window: &mut Window, at: f64| {
        window.state_mut().play_head = at;
        window.run();
        let (from, to) = window.state().timeline.visible();
        from <= at && at <= to
    };
    assert!(follow(&mut window, 5.0) && follow(&mut window, 9.7) && follow(&mut window, 40.0));
    // Who scrolls away wants to look elsewhere.
    let place = window.turns().center();
    window.wheel(place, vec2(5000.0, 0.0), Modifiers::NONE);
    assert!(!window.state().timeline.follow);
    assert!(!follow(&mut window, 41.0));
    window.get_by_label("Follow the play head").click();
    window.run();
    assert!(follow(&mut window, 42.0));
    window.get_by_label("Turns").focus();
    window.run();
    window.key(Modifiers::NONE, Key::L);
    assert!(!follow(&mut window, 55.0));
}

#[test]
fn the_same_part_stays_in_view_when_the_recording_changes_its_turns_or_the_window_its_size() {
    let mut window = window_of(Stage::new(minute()), (1016.0, 416.0), 1.5, Theme::Light);
    window.state_mut().timeline.show_range(20.0, 30.0);
    window.run();
    let before = window.state().timeline.visible();
    window.state_mut().model = Model::new(60.0, vec![turn(1, 0, 1.0, 2.0)], speakers(["Ada"]), vec![]);
    window.run();
    assert_eq!(window.state().timeline.visible(), before);
    window.set_size(vec2(816.0, 416.0));
    window.run();
    assert!((window.state().timeline.visible().0 - before.0).abs() < 1e-9);
}
