//! Keys, with the turns or the ruler in focus.

use eframe::egui::{Key, Modifiers};
use egui_kittest::kittest::{NodeT, Queryable};
use speakrs_app::gui::timeline::model::{ErrorKind, ErrorStretch, Model, TurnId};
use speakrs_app::gui::timeline::{Event, SHORTEST_TURN, Target};

use super::stage::{Places, Stage, Window, ids, minute, minute_with, speakers, turn, window};
use crate::support::{CTRL, Hands};

const NONE: Modifiers = Modifiers::NONE;
const SHIFT: Modifiers = Modifiers::SHIFT;
const ALT: Modifiers = Modifiers::ALT;

/// A window with the turns in focus.
fn focused(stage: Stage) -> Window {
    let mut window = window(stage);
    window.get_by_label("Turns").focus();
    window.run();
    window
}

fn press(window: &mut Window, modifiers: Modifiers, key: Key) -> Vec<Event> {
    window.key(modifiers, key);
    window.take_events()
}

/// Selects the turn as a click does, so that keys start from it.
fn pick(window: &mut Window, id: u64) {
    let speaker = window.state().model.turn(TurnId(id)).expect("turn").1.speaker;
    let name = window.state().model.lanes()[speaker].speaker.name.clone();
    let turn = *window.state().model.turn(TurnId(id)).expect("turn").1;
    let place = window.in_lane((turn.start + turn.end) / 2.0, &name);
    window.click(place, eframe::egui::PointerButton::Primary, NONE);
    assert_eq!(window.state().selection.turns, ids([id]));
    window.take_events();
}

#[test]
fn without_the_focus_keys_do_nothing() {
    let mut window = window(Stage::new(minute()).select([1]));
    for key in [Key::Delete, Key::ArrowRight, Key::X, Key::Enter, Key::Home, Key::Num2, Key::Plus] {
        assert_eq!(press(&mut window, NONE, key), []);
    }
    assert_eq!(window.state().timeline.visible(), (0.0, 60.0));
}

#[test]
fn arrows_walk_through_time() {
    let mut window = focused(Stage::new(minute()));
    for expected in 1..=6 {
        assert_eq!(press(&mut window, NONE, Key::ArrowRight), [Event::SelectTurns(ids([expected]))]);
    }
    assert_eq!(press(&mut window, NONE, Key::ArrowRight), []);
    assert_eq!(press(&mut window, NONE, Key::ArrowLeft), [Event::SelectTurns(ids([5]))]);
}

#[test]
fn they_start_at_the_play_head() {
    for (key, expected) in [(Key::ArrowRight, 4), (Key::ArrowLeft, 3)] {
        let mut stage = Stage::new(minute());
        stage.play_head = 29.0;
        assert_eq!(press(&mut focused(stage), NONE, key), [Event::SelectTurns(ids([expected]))]);
    }
}

#[test]
fn arrows_walk_through_lanes_to_the_nearest_turn() {
    let mut window = focused(Stage::new(minute()));
    pick(&mut window, 4);
    for (key, expected) in [(Key::ArrowDown, 5), (Key::ArrowDown, 3), (Key::ArrowUp, 2), (Key::ArrowUp, 1)] {
        assert_eq!(press(&mut window, NONE, key), [Event::SelectTurns(ids([expected]))], "{key:?}");
    }
    assert_eq!(press(&mut window, NONE, Key::ArrowUp), []);
}

#[test]
fn a_lane_without_turns_is_passed() {
    let turns = vec![turn(1, 0, 1.0, 2.0), turn(2, 2, 1.0, 2.0)];
    let mut window = focused(Stage::new(Model::new(60.0, turns, speakers(["Ada", "Ben", "Cleo"]), vec![])));
    press(&mut window, NONE, Key::ArrowRight);
    assert_eq!(press(&mut window, NONE, Key::ArrowDown), [Event::SelectTurns(ids([2]))]);
    assert_eq!(press(&mut window, NONE, Key::ArrowDown), []);
}

#[test]
fn with_shift_they_add() {
    let mut window = focused(Stage::new(minute()));
    pick(&mut window, 1);
    assert_eq!(press(&mut window, SHIFT, Key::ArrowRight), [Event::SelectTurns(ids([1, 2]))]);
    assert_eq!(press(&mut window, SHIFT, Key::ArrowDown), [Event::SelectTurns(ids([1, 2, 3]))]);
}

#[test]
fn ctrl_a_selects_all_and_escape_none() {
    let mut window = focused(Stage::new(minute()));
    assert_eq!(press(&mut window, CTRL, Key::A), [Event::SelectTurns(ids(1..=6))]);
    assert_eq!(press(&mut window, NONE, Key::Escape), [Event::SelectTurns(ids([]))]);
    assert!(window.get_by_label("Turns").is_focused());
    // With nothing to drop, it gives the focus up.
    assert_eq!(press(&mut window, NONE, Key::Escape), []);
    assert!(!window.get_by_label("Turns").is_focused());
}

#[test]
fn enter_plays() {
    let mut window = focused(Stage::new(minute()));
    assert_eq!(press(&mut window, NONE, Key::Enter), []);
    pick(&mut window, 3);
    assert_eq!(press(&mut window, NONE, Key::Enter), [Event::PlayTurn(TurnId(3))]);
    window.state_mut().selection = Default::default();
    window.state_mut().selection.range = Some((3.0, 4.0));
    assert_eq!(press(&mut window, NONE, Key::Enter), [Event::PlayRange(3.0, 4.0)]);
}

#[test]
fn space_is_left_to_the_window() {
    let mut window = focused(Stage::new(minute()).select([3]));
    assert_eq!(press(&mut window, NONE, Key::Space), []);
}

#[test]
fn delete_and_backspace_delete() {
    for key in [Key::Delete, Key::Backspace] {
        let mut window = focused(Stage::new(minute()).select([2, 4]));
        assert_eq!(press(&mut window, NONE, key), [Event::Delete(vec![TurnId(2), TurnId(4)])]);
    }
    assert_eq!(press(&mut focused(Stage::new(minute())), NONE, Key::Delete), []);
}

#[test]
fn turns_that_are_gone_are_not_asked_for() {
    let mut window = focused(Stage::new(minute()).select([2, 77]));
    assert_eq!(press(&mut window, NONE, Key::Delete), [Event::Delete(vec![TurnId(2)])]);
    let mut window = focused(Stage::new(minute()).select([77]));
    for key in [Key::Delete, Key::Num1, Key::Z, Key::F2] {
        assert_eq!(press(&mut window, NONE, key), []);
    }
}

#[test]
fn x_cuts_at_the_play_head() {
    let at = |second, selected: &[u64]| {
        let mut stage = Stage::new(minute()).select(selected.iter().copied());
        stage.play_head = second;
        press(&mut focused(stage), NONE, Key::X)
    };
    let cut = |turn, at| Event::Cut { turn: TurnId(turn), at };
    assert_eq!(at(35.0, &[]), [cut(4, 35.0)]);
    // Of those that overlap, the selected ones only.
    assert_eq!(at(12.0, &[]), [cut(1, 12.0), cut(2, 12.0)]);
    assert_eq!(at(12.0, &[2]), [cut(2, 12.0)]);
    // Neither at an end nor beside turns.
    assert_eq!(at(30.0, &[]), []);
    assert_eq!(at(22.0, &[]), []);
    assert_eq!(at(35.0, &[2]), []);
}

#[test]
fn digits_and_ctrl_arrows_give_turns_to_speakers() {
    let to = |speaker, turns: &[u64]| Event::MoveTurns {
        turns: turns.iter().copied().map(TurnId).collect(),
        speaker,
    };
    let mut window = focused(Stage::new(minute()).select([2, 5]));
    assert_eq!(press(&mut window, NONE, Key::Num1), [to(0, &[2, 5])]);
    assert_eq!(press(&mut window, NONE, Key::Num3), [to(2, &[2, 5])]);
    assert_eq!(press(&mut window, NONE, Key::Num4), []);
    pick(&mut window, 5);
    assert_eq!(press(&mut window, CTRL, Key::ArrowUp), [to(0, &[5])]);
    assert_eq!(press(&mut window, CTRL, Key::ArrowDown), [to(2, &[5])]);
    pick(&mut window, 4);
    assert_eq!(press(&mut window, CTRL, Key::ArrowUp), []);
}

#[test]
fn alt_arrows_move_the_ends() {
    let mut window = focused(Stage::new(minute()));
    pick(&mut window, 4);
    let moved = |start, end| [Event::MoveBoundary { turn: TurnId(4), start, end }];
    assert_eq!(press(&mut window, ALT, Key::ArrowRight), moved(30.0, 40.0 + 0.01));
    assert_eq!(press(&mut window, ALT, Key::ArrowLeft), moved(30.0, 40.0 - 0.01));
    assert_eq!(press(&mut window, ALT | SHIFT, Key::ArrowRight), moved(30.0 + 0.01, 40.0));
    assert_eq!(press(&mut window, ALT | SHIFT, Key::ArrowLeft), moved(30.0 - 0.01, 40.0));
}

#[test]
fn they_stop_at_the_least_length_and_at_the_ends_of_the_recording() {
    let turns = vec![turn(1, 0, 0.0, 60.0), turn(2, 1, 30.0, 30.0 + SHORTEST_TURN)];
    let mut window = focused(Stage::new(Model::new(60.0, turns, speakers(["Ada", "Ben"]), vec![])));
    pick(&mut window, 1);
    assert_eq!(press(&mut window, ALT, Key::ArrowRight), []);
    assert_eq!(press(&mut window, ALT | SHIFT, Key::ArrowLeft), []);
    pick(&mut window, 2);
    assert_eq!(press(&mut window, ALT, Key::ArrowLeft), []);
    assert_eq!(press(&mut window, ALT | SHIFT, Key::ArrowRight), []);
}

#[test]
fn where_nothing_may_be_changed_keys_change_nothing() {
    let mut stage = Stage::new(minute());
    stage.editable = false;
    stage.play_head = 35.0;
    let mut window = focused(stage);
    pick(&mut window, 4);
    for (modifiers, key) in [
        (NONE, Key::Delete),
        (NONE, Key::X),
        (NONE, Key::Num1),
        (CTRL, Key::ArrowDown),
        (ALT, Key::ArrowLeft),
        (ALT | SHIFT, Key::ArrowLeft),
    ] {
        assert_eq!(press(&mut window, modifiers, key), [], "{key:?}");
    }
}

#[test]
fn keys_of_the_windows_menu_pass() {
    let mut window = focused(Stage::new(minute()).select([4]));
    for key in [Key::X, Key::Z, Key::F, Key::L, Key::E, Key::I, Key::O, Key::Num1, Key::Delete] {
        for modifiers in [CTRL, ALT] {
            assert_eq!(press(&mut window, modifiers, key), [], "{key:?}");
        }
    }
    assert_eq!(window.state().timeline.visible(), (0.0, 60.0));
    assert!(window.state().timeline.follow);
}

#[test]
fn f2_renames_the_speaker_of_the_turn() {
    let mut window = focused(Stage::new(minute()));
    pick(&mut window, 3);
    assert_eq!(press(&mut window, NONE, Key::F2), [Event::RenameRequest(2)]);
}

#[test]
fn the_menu_opens_by_keys() {
    let mut window = focused(Stage::new(minute()));
    for (modifiers, key) in [(SHIFT, Key::F10), (NONE, Key::Menu)] {
        pick(&mut window, 4);
        let x = window.x(30.0);
        let events = press(&mut window, modifiers, key);
        let [Event::ContextMenu { target, at, position }] = events[..] else { panic!("{events:?}") };
        assert_eq!((target, at), (Target::Turn(TurnId(4)), 30.0));
        assert!((position.x - x).abs() < 0.5 && window.turns().y_range().contains(position.y));
    }
    window.state_mut().selection = Default::default();
    let events = press(&mut window, SHIFT, Key::F10);
    assert!(matches!(events[..], [Event::ContextMenu { target: Target::Time, .. }]), "{events:?}");
}

#[test]
fn the_play_head_moves_by_keys() {
    let mut stage = Stage::new(minute());
    stage.play_head = 20.0;
    let mut window = focused(stage);
    for (modifiers, key, expected) in [
        (CTRL, Key::ArrowRight, 21.0),
        (CTRL, Key::ArrowLeft, 20.0),
        (CTRL | SHIFT, Key::ArrowRight, 30.0),
        (CTRL | SHIFT, Key::ArrowLeft, 20.0),
        (NONE, Key::End, 60.0),
        (CTRL, Key::ArrowRight, 60.0),
        (NONE, Key::Home, 0.0),
        (CTRL, Key::ArrowLeft, 0.0),
    ] {
        assert_eq!(press(&mut window, modifiers, key), [Event::Seek(expected)], "{key:?}");
    }
}

#[test]
fn the_view_follows_a_play_head_that_keys_move() {
    let mut window = focused(Stage::new(minute()));
    window.state_mut().timeline.show_range(0.0, 5.0);
    for _ in 0..3 {
        press(&mut window, CTRL | SHIFT, Key::ArrowRight);
    }
    let (from, to) = window.state().timeline.visible();
    assert!(from < 30.0 && 30.0 < to && to - from < 6.0, "{from} {to}");
}

#[test]
fn the_range_begins_and_ends_at_the_play_head() {
    let mut window = focused(Stage::new(minute()));
    for (head, key, expected) in [
        (20.0, Key::I, (20.0, 60.0)),
        (30.0, Key::O, (20.0, 30.0)),
        (25.0, Key::I, (25.0, 30.0)),
        (40.0, Key::I, (40.0, 60.0)),
        (10.0, Key::O, (0.0, 10.0)),
    ] {
        window.state_mut().play_head = head;
        assert_eq!(press(&mut window, NONE, key), [Event::SelectRange(Some(expected))]);
    }
    window.state_mut().play_head = 0.0;
    assert_eq!(press(&mut window, NONE, Key::O), []);
    window.state_mut().play_head = 60.0;
    assert_eq!(press(&mut window, NONE, Key::I), []);
    assert_eq!(press(&mut window, NONE, Key::Escape), [Event::SelectRange(None)]);
}

#[test]
fn e_goes_from_error_to_error() {
    let error = |start, kind| ErrorStretch { start, end: start + 1.0, kind };
    let errors = vec![
        error(10.0, ErrorKind::Missed),
        error(30.0, ErrorKind::Missed),
        error(20.0, ErrorKind::Confusion),
        error(40.0, ErrorKind::FalseAlarm),
    ];
    let mut window = focused(Stage::new(minute_with(errors)));
    for expected in [10.0, 20.0, 30.0, 40.0] {
        assert_eq!(press(&mut window, NONE, Key::E), [Event::Seek(expected)]);
    }
    assert_eq!(press(&mut window, NONE, Key::E), []);
    for expected in [30.0, 20.0, 10.0] {
        assert_eq!(press(&mut window, SHIFT, Key::E), [Event::Seek(expected)]);
    }
    assert_eq!(press(&mut window, SHIFT, Key::E), []);
}

#[test]
fn the_ruler_moves_the_play_head_by_keys_and_for_screen_readers() {
    let mut stage = Stage::new(minute());
    stage.play_head = 20.0;
    let mut window = window(stage);
    window.get_by_label("Play head").focus();
    window.run();
    assert_eq!(press(&mut window, NONE, Key::ArrowRight), [Event::Seek(21.0)]);
    assert_eq!(press(&mut window, SHIFT, Key::ArrowLeft), [Event::Seek(11.0)]);
    assert!(window.get_by_label("Play head").is_focused());
    type Ask = (fn(&Window), f64);
    let ask: [Ask; 4] = [
        (|w| w.get_by_label("Play head").increment_accesskit(), 12.0),
        (|w| w.get_by_label("Play head").decrement_accesskit(), 11.0),
        (|w| w.get_by_label("Play head").set_value_accesskit(33.25), 33.25),
        (|w| w.get_by_label("Play head").set_value_accesskit(1e9), 60.0),
    ];
    for (ask, expected) in ask {
        ask(&window);
        window.run();
        assert_eq!(window.take_events(), [Event::Seek(expected)]);
    }
    window.get_by_label("Play head").set_value_accesskit(f64::NAN);
    window.run();
    assert_eq!(window.take_events(), []);
    let node = window.get_by_label("Play head").accesskit_node();
    assert_eq!((node.value().as_deref(), node.numeric_value()), (Some("0:01:00.000"), Some(60.0)));
}
