//! Clicks, and what they select.

use eframe::egui::{Modifiers, PointerButton, Pos2};
use speakrs_app::gui::timeline::model::TurnId;
use speakrs_app::gui::timeline::{Event, Target};

use super::stage::{Places, Stage, Window, ids, minute, window};
use crate::support::{CTRL, Hands};

fn click(window: &mut Window, at: Pos2, modifiers: Modifiers) -> Vec<Event> {
    window.click(at, PointerButton::Primary, modifiers);
    window.take_events()
}

/// The second of the only event, which moves the play head.
#[track_caller]
fn sought(events: &[Event]) -> f64 {
    let [Event::Seek(at)] = events else { panic!("{events:?}") };
    *at
}

#[test]
fn a_click_on_ruler_waveform_or_empty_lane_moves_the_play_head() {
    let mut window = window(Stage::new(minute()));
    for second in [0.0, 3.3, 22.0, 42.5, 59.9] {
        let places = [
            window.in_part(second, "Play head"),
            window.in_part(second, "Waveform"),
            window.in_lane(second, "Cleo"),
        ];
        for place in places {
            let at = sought(&click(&mut window, place, Modifiers::NONE));
            assert!((at - second).abs() < 0.04, "{at} instead of {second}");
        }
    }
}

#[test]
fn a_click_on_a_turn_selects_it_and_leaves_the_play_head() {
    let mut window = window(Stage::new(minute()));
    let turn = window.in_lane(8.0, "Ada");
    assert_eq!(click(&mut window, turn, Modifiers::NONE), [Event::SelectTurns(ids([1]))]);
    let other = window.in_lane(27.0, "Cleo");
    assert_eq!(click(&mut window, other, Modifiers::NONE), [Event::SelectTurns(ids([3]))]);
}

#[test]
fn where_speakers_overlap_each_lane_selects_its_own_turn() {
    let mut window = window(Stage::new(minute()));
    for (speaker, turn) in [("Ada", 1), ("Ben", 2)] {
        let place = window.in_lane(12.5, speaker);
        assert_eq!(click(&mut window, place, Modifiers::NONE), [Event::SelectTurns(ids([turn]))]);
    }
}

#[test]
fn a_click_beside_all_turns_drops_selected_turns_and_range() {
    let mut stage = Stage::new(minute()).select([1, 2]);
    stage.selection.range = Some((10.0, 20.0));
    let mut window = window(stage);
    let place = window.in_lane(55.0, "Ben");
    let events = click(&mut window, place, Modifiers::NONE);
    assert_eq!(events[..2], [Event::SelectTurns(ids([])), Event::SelectRange(None)]);
    assert!(matches!(events[2..], [Event::Seek(_)]), "{events:?}");
}

#[test]
fn a_click_inside_of_the_range_keeps_it() {
    let mut stage = Stage::new(minute());
    stage.selection.range = Some((10.0, 20.0));
    let mut window = window(stage);
    let place = window.in_part(15.0, "Waveform");
    sought(&click(&mut window, place, Modifiers::NONE));
}

#[test]
fn ctrl_adds_and_takes_away() {
    let mut window = window(Stage::new(minute()));
    for (second, speaker, expected) in [
        (8.0, "Ada", vec![1]),
        (27.0, "Cleo", vec![1, 3]),
        (18.0, "Ben", vec![1, 2, 3]),
        (27.0, "Cleo", vec![1, 2]),
    ] {
        let place = window.in_lane(second, speaker);
        assert_eq!(click(&mut window, place, CTRL), [Event::SelectTurns(ids(expected))]);
    }
}

#[test]
fn shift_selects_all_between_in_time_and_lanes() {
    let mut window = window(Stage::new(minute()));
    let first = window.in_lane(8.0, "Ada");
    click(&mut window, first, Modifiers::NONE);
    // Cleo's turn 3 lies between in time, but not between the lanes.
    let last = window.in_lane(47.0, "Ben");
    assert_eq!(click(&mut window, last, Modifiers::SHIFT), [Event::SelectTurns(ids([1, 2, 4, 5]))]);
    // The first end stays.
    let other = window.in_lane(27.0, "Cleo");
    assert_eq!(click(&mut window, other, Modifiers::SHIFT), [Event::SelectTurns(ids([1, 2, 3]))]);
}

#[test]
fn a_double_click_plays_the_turn() {
    let mut window = window(Stage::new(minute()));
    let place = window.in_lane(35.0, "Ada");
    click(&mut window, place, Modifiers::NONE);
    assert_eq!(click(&mut window, place, Modifiers::NONE), [Event::PlayTurn(TurnId(4))]);
}

#[test]
fn a_narrow_turn_can_be_clicked() {
    let mut window = window(Stage::new(minute()));
    let place = window.in_lane(50.25, "Ada");
    assert_eq!(click(&mut window, place, Modifiers::NONE), [Event::SelectTurns(ids([6]))]);
}

#[test]
fn the_right_button_selects_a_turn_and_opens_its_menu() {
    let mut window = window(Stage::new(minute()));
    let place = window.in_lane(35.0, "Ada");
    window.click(place, PointerButton::Secondary, Modifiers::NONE);
    let events = window.take_events();
    assert_eq!(events[0], Event::SelectTurns(ids([4])));
    let [_, Event::ContextMenu { target: Target::Turn(TurnId(4)), at, position }] = events[..] else {
        panic!("{events:?}")
    };
    assert!((at - 35.0).abs() < 0.04 && position == place, "{at} {position}");
}

#[test]
fn the_menu_of_a_selected_turn_is_for_all_selected() {
    let mut window = window(Stage::new(minute()).select([1, 4]));
    let place = window.in_lane(35.0, "Ada");
    window.click(place, PointerButton::Secondary, Modifiers::NONE);
    let events = window.take_events();
    assert!(matches!(events[..], [Event::ContextMenu { target: Target::Turn(TurnId(4)), .. }]), "{events:?}");
}

#[test]
fn the_menu_beside_turns_is_about_the_time() {
    let mut window = window(Stage::new(minute()));
    let places =
        [window.in_lane(55.0, "Cleo"), window.in_part(55.0, "Waveform"), window.in_part(55.0, "Play head")];
    for place in places {
        window.click(place, PointerButton::Secondary, Modifiers::NONE);
        let events = window.take_events();
        let [Event::ContextMenu { target: Target::Time, at, .. }] = events[..] else { panic!("{events:?}") };
        assert!((at - 55.0).abs() < 0.04, "{at}");
    }
}
