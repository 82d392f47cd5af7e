//! What screen readers are told.

use egui_kittest::kittest::{NodeT, Queryable};
use speakrs_app::gui::timeline::Event;
use speakrs_app::gui::timeline::model::{ErrorKind, ErrorStretch, Model};

use super::stage::{Places, Stage, ids, minute, minute_with, speakers, turn, window};
use crate::support::Hands;

const TURN_4: &str = "Ada, 0:00:30.000 to 0:00:40.000";

#[test]
fn every_turn_in_view_is_told() {
    let mut window = window(Stage::new(minute()).select([4]));
    assert_eq!(window.get_by_label("Turns").value().as_deref(), Some("6 turns of 3 speakers"));
    assert_eq!(window.get_by_label(TURN_4).accesskit_node().is_selected(), Some(true));
    let other = window.get_by_label("Cleo, 0:00:25.000 to 0:00:30.000");
    assert_eq!(other.accesskit_node().is_selected(), Some(false));
    assert_eq!(window.get_all_by_label_contains(" to 0:00:").count(), 6);
    window.state_mut().timeline.show_range(0.0, 9.0);
    window.run();
    assert!(window.query_by_label(TURN_4).is_none());
}

#[test]
fn turns_stand_where_they_are_drawn() {
    let window = window(Stage::new(minute()));
    let rect = window.get_by_label(TURN_4).rect();
    assert!((rect.left() - window.x(30.0)).abs() < 1.0 && (rect.right() - window.x(40.0)).abs() < 1.0);
    assert!(rect.contains(window.in_lane(35.0, "Ada")));
}

#[test]
fn a_screen_reader_selects_a_turn_by_a_click() {
    let mut window = window(Stage::new(minute()));
    window.get_by_label(TURN_4).click_accesskit();
    window.run();
    assert_eq!(window.take_events(), [Event::SelectTurns(ids([4]))]);
}

#[test]
fn the_turn_that_keys_picked_is_the_active_one_even_among_thousands() {
    for count in [3, 5000] {
        let turns = (0..count).map(|i| turn(i, 0, i as f64, i as f64 + 1.0)).collect();
        let stage = Stage::new(Model::new(count as f64, turns, speakers(["Ada"]), vec![]));
        let mut window = window(stage);
        window.get_by_label("Turns").focus();
        window.run();
        window.key(eframe::egui::Modifiers::NONE, eframe::egui::Key::ArrowRight);
        let active = window.get_by_label("Ada, 0:00:00.000 to 0:00:01.000").accesskit_node();
        assert!(active.is_focused(), "{count}");
    }
}

#[test]
fn speakers_errors_and_times_are_told() {
    let error = |start, kind| ErrorStretch { start, end: start + 2.0, kind };
    let errors =
        vec![error(1.0, ErrorKind::Missed), error(2.0, ErrorKind::Missed), error(4.0, ErrorKind::FalseAlarm)];
    let mut stage = Stage::new(minute_with(errors));
    stage.play_head = 1.5;
    stage.muted = [1].into();
    let window = window(stage);
    for name in ["Missed  3.0 s", "False alarm  2.0 s", "Confused  0.00 s", "Errors", "Timeline"] {
        window.get_by_label(name);
    }
    window.get_by_label("0:00:01.500 of 0:01:00.000, 5.0 s overlapping");
    let ben = window.get_by_label("Ben").accesskit_node();
    assert_eq!(ben.description().as_deref(), Some("Speaker B, 15.0 s  ·  2 turns"));
    let toggled = |name| window.get_by_label(name).accesskit_node().toggled();
    assert_ne!(toggled("Mute Ben"), toggled("Mute Ada"));
    assert_eq!(toggled("Mute Ada"), toggled("Solo Ben"));
}
