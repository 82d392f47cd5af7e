//! Names and buttons of the speakers.

use eframe::egui::{Key, Modifiers, PointerButton};
use egui_kittest::kittest::Queryable;
use speakrs_app::gui::timeline::{Event, Target};

use super::stage::{Places, Stage, ids, minute, window};
use crate::support::Hands;

#[test]
fn buttons_play_solo_and_mute() {
    let mut window = window(Stage::new(minute()));
    let buttons: [(&str, Event); 4] = [
        ("Play Ben", Event::PlaySpeaker(1)),
        ("Solo Ben", Event::ToggleSolo(1)),
        ("Mute Ada", Event::ToggleMute(0)),
        ("Solo Cleo", Event::ToggleSolo(2)),
    ];
    for (name, expected) in buttons {
        window.get_by_label(name).click();
        window.run();
        assert_eq!(window.take_events(), [expected]);
    }
    assert_eq!((window.state().solo.len(), window.state().muted.len()), (2, 1));
}

#[test]
fn they_work_by_keys_and_for_screen_readers() {
    let mut window = window(Stage::new(minute()));
    window.get_by_label("Mute Ben").focus();
    window.run();
    window.key(Modifiers::NONE, Key::Space);
    assert_eq!(window.take_events(), [Event::ToggleMute(1)]);
    window.get_by_label("Solo Ben").click_accesskit();
    window.run();
    assert_eq!(window.take_events(), [Event::ToggleSolo(1)]);
}

#[test]
fn all_parts_can_be_reached_by_tab() {
    let mut window = window(Stage::new(minute()));
    let mut missing: Vec<&str> = vec![
        "Zoom out",
        "Zoom in",
        "Show the whole recording",
        "Follow the play head",
        "Part of the recording in view",
        "Play head",
        "Turns",
        "Ada",
        "Play Ada",
        "Solo Ada",
        "Mute Ada",
        "Cleo",
        "Mute Cleo",
    ];
    for _ in 0..30 {
        window.key(Modifiers::NONE, Key::Tab);
        missing.retain(|name| !window.get_by_label(name).is_focused());
    }
    assert_eq!(missing, Vec::<&str>::new());
}

#[test]
fn a_click_on_the_name_selects_all_turns() {
    let mut window = window(Stage::new(minute()));
    window.get_by_label("Ada").click();
    window.run();
    assert_eq!(window.take_events(), [Event::SelectTurns(ids([1, 4, 6]))]);
    window.get_by_label("Cleo").focus();
    window.run();
    window.key(Modifiers::NONE, Key::Enter);
    assert_eq!(window.take_events(), [Event::SelectTurns(ids([3]))]);
}

#[test]
fn a_double_click_or_f2_renames() {
    let mut window = window(Stage::new(minute()));
    let place = window.get_by_label("Ben").rect().left_center() + eframe::egui::vec2(4.0, 0.0);
    for _ in 0..2 {
        window.click(place, PointerButton::Primary, Modifiers::NONE);
    }
    assert_eq!(window.take_events(), [Event::SelectTurns(ids([2, 5])), Event::RenameRequest(1)]);
    window.get_by_label("Cleo").focus();
    window.run();
    window.key(Modifiers::NONE, Key::F2);
    assert_eq!(window.take_events(), [Event::RenameRequest(2)]);
}

#[test]
fn the_menu_of_a_speaker_opens_by_button_and_keys() {
    let mut window = window(Stage::new(minute()));
    window.get_by_label("Ben").click_secondary();
    window.run();
    let events = window.take_events();
    assert!(matches!(events[..], [Event::ContextMenu { target: Target::Speaker(1), .. }]), "{events:?}");
    window.get_by_label("Cleo").focus();
    window.run();
    window.key(Modifiers::SHIFT, Key::F10);
    let events = window.take_events();
    let [Event::ContextMenu { target: Target::Speaker(2), position, .. }] = events[..] else {
        panic!("{events:?}")
    };
    assert!(window.get_by_label("Cleo").rect().expand(1.0).contains(position));
}
