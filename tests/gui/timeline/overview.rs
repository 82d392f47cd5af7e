//! The strip with the whole recording.

use eframe::egui::{Key, Modifiers, PointerButton, Pos2, pos2, vec2};
use egui_kittest::kittest::{NodeT, Queryable};

use super::stage::{Places, Stage, Window, minute, window};
use crate::support::Hands;

const STRIP: &str = "Part of the recording in view";

fn zoomed() -> Window {
    let mut window = window(Stage::new(minute()));
    window.state_mut().timeline.show_range(20.0, 29.0);
    window.run();
    window
}

/// A place in the strip, by its second.
fn at(window: &Window, second: f64) -> Pos2 {
    let rect = window.get_by_label(STRIP).rect();
    pos2(rect.left() + (second / 60.0) as f32 * rect.width(), rect.center().y)
}

fn drag(window: &mut Window, from: f64, to: f64) {
    let (from, to) = (at(window, from), at(window, to));
    window.drag(from, to, PointerButton::Primary, Modifiers::NONE);
    window.drop(to);
}

#[track_caller]
fn shows(window: &Window, from: f64, to: f64) {
    let seen = window.state().timeline.visible();
    assert!((seen.0 - from).abs() < 0.1 && (seen.1 - to).abs() < 0.1, "{seen:?} instead of {from}, {to}");
}

#[test]
fn the_window_can_be_dragged() {
    let mut window = zoomed();
    let (from, to) = window.state().timeline.visible();
    drag(&mut window, 24.0, 44.0);
    shows(&window, from + 20.0, to + 20.0);
    drag(&mut window, 44.0, 2.0);
    shows(&window, 0.0, to - from);
    assert_eq!(window.take_events(), []);
}

#[test]
fn its_sides_zoom() {
    let mut window = zoomed();
    let (from, to) = window.state().timeline.visible();
    drag(&mut window, to, 50.0);
    shows(&window, from, 50.0);
    drag(&mut window, from, 5.0);
    shows(&window, 5.0, 50.0);
    // Not through each other.
    drag(&mut window, 5.0, 58.0);
    let seen = window.state().timeline.visible();
    assert!(seen.0 < seen.1 && seen.1 <= 60.0, "{seen:?}");
}

#[test]
fn a_click_or_a_drag_beside_it_centres_there() {
    let mut window = zoomed();
    let (from, to) = window.state().timeline.visible();
    let half = (to - from) / 2.0;
    let place = at(&window, 45.0);
    window.click(place, PointerButton::Primary, Modifiers::NONE);
    shows(&window, 45.0 - half, 45.0 + half);
    drag(&mut window, 10.0, 15.0);
    shows(&window, 15.0 - half, 15.0 + half);
}

#[test]
fn escape_puts_the_view_back() {
    let mut window = zoomed();
    let before = window.state().timeline.visible();
    let (from, to) = (at(&window, 24.0), at(&window, 50.0));
    window.drag(from, to, PointerButton::Primary, Modifiers::NONE);
    assert_ne!(window.state().timeline.visible(), before);
    window.key(Modifiers::NONE, Key::Escape);
    window.hover_at(to + vec2(9.0, 0.0));
    window.drop(to);
    assert_eq!(window.state().timeline.visible(), before);
}

#[test]
fn keys_and_screen_readers_move_it() {
    let mut window = zoomed();
    window.get_by_label(STRIP).focus();
    window.run();
    let (from, to) = window.state().timeline.visible();
    let step = 0.1 * (to - from);
    window.key(Modifiers::NONE, Key::ArrowRight);
    shows(&window, from + step, to + step);
    window.key(Modifiers::NONE, Key::PageDown);
    shows(&window, from + 11.0 * step, to + 11.0 * step);
    window.key(Modifiers::NONE, Key::PageUp);
    window.key(Modifiers::NONE, Key::ArrowLeft);
    shows(&window, from, to);
    window.get_by_label(STRIP).increment_accesskit();
    window.run();
    shows(&window, from + step, to + step);
    window.get_by_label(STRIP).decrement_accesskit();
    window.run();
    shows(&window, from, to);
    let node = window.get_by_label(STRIP).accesskit_node();
    assert!(node.value().expect("value").starts_with("0:00:19.5"), "{:?}", node.value());
}

#[test]
fn the_play_head_is_left_alone() {
    let mut window = zoomed();
    window.state_mut().play_head = 7.0;
    drag(&mut window, 24.0, 44.0);
    assert_eq!(window.state().play_head, 7.0);
}
