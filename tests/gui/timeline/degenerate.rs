//! Nothing to show, too much to show, no room to show it.

use eframe::egui::accesskit::Role;
use eframe::egui::epaint::ClippedShape;
use eframe::egui::{Key, Modifiers, Pos2, Shape, Theme, vec2};
use egui_kittest::kittest::{NodeT, Queryable};
use speakrs_app::app::peaks::Peaks;
use speakrs_app::gui::timeline::model::{ErrorKind, ErrorStretch, Model, Speaker};

use super::stage::{Stage, Window, ids, minute, minute_with, speakers, turn, window, window_of};
use crate::support::{CTRL, Hands};

/// Everything is at a finite place and the fewest shapes suffice.
#[track_caller]
fn sound(window: &Window) {
    fn check(shape: &Shape) -> usize {
        if let Shape::Vec(shapes) = shape {
            return shapes.iter().map(check).sum();
        }
        let rect = shape.visual_bounding_rect();
        let nowhere = matches!(shape, Shape::Noop) || rect.min.x == f32::INFINITY;
        assert!(nowhere || rect.is_finite(), "{shape:?}");
        match shape {
            Shape::Mesh(mesh) => mesh.vertices.len(),
            _ => 1,
        }
    }
    let vertices: usize = window.output().shapes.iter().map(|ClippedShape { shape, .. }| check(shape)).sum();
    assert!(vertices < 200_000, "{vertices}");
}

/// Uses wheel, keys and mouse all over.
fn use_it(window: &mut Window) {
    sound(window);
    let size = window.ctx.content_rect().size();
    let places: Vec<Pos2> = [0.1, 0.3, 0.5, 0.7, 0.97]
        .into_iter()
        .flat_map(|x| [0.05, 0.15, 0.3, 0.6, 0.95].map(|y| Pos2::new(size.x * x, size.y * y)))
        .collect();
    for &place in &places {
        window.wheel(place, vec2(0.0, 300.0), CTRL);
        window.click(place, eframe::egui::PointerButton::Primary, Modifiers::NONE);
        window.drag(place, Pos2::ZERO, eframe::egui::PointerButton::Primary, Modifiers::NONE);
        window.drop(Pos2::ZERO);
        sound(window);
    }
    window.get_by_label("Turns").focus();
    window.run();
    for key in [
        Key::ArrowRight,
        Key::ArrowDown,
        Key::ArrowLeft,
        Key::ArrowUp,
        Key::End,
        Key::Plus,
        Key::Minus,
        Key::X,
        Key::Delete,
        Key::Enter,
        Key::F2,
        Key::Z,
        Key::E,
        Key::I,
        Key::O,
        Key::PageDown,
        Key::Home,
        Key::F,
    ] {
        window.key(Modifiers::NONE, key);
        sound(window);
    }
}

#[test]
fn no_recording() {
    let mut stage = Stage::new(Model::new(0.0, vec![], vec![], vec![]));
    stage.peaks = Some(Peaks::new());
    use_it(&mut window(stage));
}

#[test]
fn no_speakers_and_no_peaks() {
    use_it(&mut window(Stage::new(Model::new(60.0, vec![], vec![], vec![]))));
}

#[test]
fn speakers_without_turns() {
    let mut window = window(Stage::new(Model::new(0.0, vec![], speakers(["Ada", "Ben"]), vec![])));
    use_it(&mut window);
    assert_eq!(window.get_by_label("Turns").value().as_deref(), Some("0 turns of 2 speakers"));
}

#[test]
fn times_that_are_no_numbers() {
    let turns = vec![
        turn(1, 0, f64::NAN, 3.0),
        turn(2, 0, 1.0, f64::NAN),
        turn(3, 0, f64::NEG_INFINITY, f64::INFINITY),
        turn(4, 0, 5.0, 5.0),
        turn(5, 0, 7.0, 6.0),
        turn(6, 9, 1.0, 2.0),
        turn(7, 0, 1.0, 2.0),
    ];
    let errors = vec![
        ErrorStretch { start: f64::NAN, end: 2.0, kind: ErrorKind::Missed },
        ErrorStretch { start: 2.0, end: f64::INFINITY, kind: ErrorKind::Missed },
    ];
    for duration in [f64::NAN, f64::INFINITY, -1.0] {
        let model = Model::new(duration, turns.clone(), speakers(["Ada"]), errors.clone());
        assert_eq!((model.duration(), model.turns().len(), model.has_errors()), (2.0, 1, false));
        let mut stage = Stage::new(model);
        stage.play_head = f64::NAN;
        stage.selection.range = Some((f64::NAN, f64::INFINITY));
        let mut window = window(stage);
        sound(&window);
        window.state_mut().selection = Default::default();
        window.state_mut().play_head = 0.0;
        use_it(&mut window);
    }
}

#[test]
fn many_speakers() {
    let names: Vec<String> = (1..=200).map(|i| format!("Speaker {i}")).collect();
    let turns = (0..2000).map(|i| turn(i, (i * 7 % 200) as usize, i as f64, i as f64 + 3.0)).collect();
    let model = Model::new(2003.0, turns, speakers(names.iter().map(String::as_str)), vec![]);
    use_it(&mut window(Stage::new(model)));
}

#[test]
fn many_turns_are_drawn_with_few_shapes() {
    let turns =
        (0..20_000).map(|i| turn(i, (i % 12) as usize, i as f64 * 1.8, i as f64 * 1.8 + 2.5)).collect();
    let names: Vec<String> = (1..=12).map(|i| format!("Speaker {i}")).collect();
    let model = Model::new(36_000.0, turns, speakers(names.iter().map(String::as_str)), vec![]);
    let mut window = window(Stage::new(model).select(0..20_000));
    use_it(&mut window);
    window.key(CTRL, Key::A);
    sound(&window);
    assert_eq!(window.state().selection.turns, ids(0..20_000));
}

#[test]
fn turns_over_turns_of_the_same_speaker() {
    let turns = (0..50).map(|i| turn(i, 0, i as f64 / 10.0, 60.0 - i as f64 / 10.0)).collect();
    use_it(&mut window(Stage::new(Model::new(60.0, turns, speakers(["Ada"]), vec![]))));
}

#[test]
fn no_room() {
    let errors = vec![ErrorStretch { start: 1.0, end: 2.0, kind: ErrorKind::Confusion }];
    for size in [(17.0, 17.0), (17.0, 400.0), (150.0, 60.0), (149.0, 300.0), (400.0, 17.0), (3000.0, 20.0)] {
        for pixels_per_point in [1.0, 1.5, 3.0] {
            let mut stage = Stage::new(minute_with(errors.clone()));
            stage.peaks = Some(Peaks::of(&vec![0.5; 16_000]));
            let mut window = window_of(stage, size, pixels_per_point, Theme::Light);
            sound(&window);
            for _ in 0..3 {
                window.wheel(Pos2::new(size.0 / 2.0, size.1 / 2.0), vec2(10.0, 100.0), CTRL);
            }
            window.set_size(vec2(900.0, 300.0));
            window.run();
            sound(&window);
        }
    }
}

#[test]
fn an_absurdly_long_recording() {
    let year = 3.2e7;
    let turns = vec![turn(1, 0, 0.0, 1.0), turn(2, 0, year - 1.0, year)];
    use_it(&mut window(Stage::new(Model::new(year, turns, speakers(["Ada"]), vec![]))));
}

#[test]
fn a_recording_of_one_sample() {
    let mut stage = Stage::new(Model::new(
        1.0 / 16_000.0,
        vec![turn(1, 0, 0.0, 1.0 / 16_000.0)],
        speakers(["A"]),
        vec![],
    ));
    stage.peaks = Some(Peaks::of(&[1.0]));
    stage.detail = Some((0, vec![1.0]));
    use_it(&mut window(stage));
}

#[test]
fn names_of_all_kinds() {
    let names = ["", "  ", "王小明・佐藤", "محمد علي", "A\u{202e}B\nC\tD", "🎤🎤", &"long ".repeat(2000)];
    let names: Vec<Speaker> =
        names.into_iter().enumerate().map(|(id, name)| Speaker { id, name: name.to_owned() }).collect();
    let turns = (0..names.len()).map(|i| turn(i as u64, i, i as f64, i as f64 + 5.0)).collect();
    let mut window = window(Stage::new(Model::new(60.0, turns, names, vec![])));
    use_it(&mut window);
    window.get_by_label("王小明・佐藤");
    window.get_by_label("Solo محمد علي");
    // Nothing of a long name reaches into the turns.
    let turns = window.get_by_label("Turns").rect();
    let heads =
        window.get_all_by_label_contains("long ").filter(|n| n.accesskit_node().role() == Role::Button);
    let rights: Vec<f32> = heads.map(|head| head.rect().right()).collect();
    assert!(rights.len() == 4 && rights.iter().all(|&right| right < turns.left()), "{rights:?}");
}

#[test]
fn a_speaker_without_a_name_still_has_one_for_screen_readers() {
    let window = window(Stage::new(Model::new(9.0, vec![], speakers([""]), vec![])));
    window.get_by_label("Speaker A");
    window.get_by_label("Mute Speaker A");
}

#[test]
fn the_model_changes_every_frame() {
    let mut window = window(Stage::new(minute()).select([1, 2, 3]));
    window.get_by_label("Turns").focus();
    window.run();
    for i in 0..20_usize {
        let names: Vec<String> = (0..i % 4).map(|i| format!("S{i}")).collect();
        let turns = (0..i as u64).map(|t| turn(t, t as usize % 4, t as f64, t as f64 + 4.0)).collect();
        window.state_mut().model =
            Model::new(i as f64, turns, speakers(names.iter().map(String::as_str)), vec![]);
        window.key(Modifiers::NONE, [Key::ArrowRight, Key::ArrowDown, Key::X, Key::Plus][i % 4]);
        sound(&window);
    }
}
