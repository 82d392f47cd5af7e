//! Speakers can be told apart and read, in light and dark, by everyone.

use std::collections::HashSet;

use eframe::egui;
use speakrs_app::gui::theme::{Pattern, SHAPE_CONTRAST, TEXT_CONTRAST, colors, contrast, install, speaker};

#[test]
fn text_on_turns_can_be_read() {
    for dark in [false, true] {
        for id in 0..64 {
            let look = speaker(id, dark);
            assert!(contrast(look.text, look.fill) >= TEXT_CONTRAST, "{id} {dark}");
            assert!(contrast(look.text, look.stripe) >= TEXT_CONTRAST, "{id} {dark}");
            assert!(contrast(look.line, colors(dark).surface) >= SHAPE_CONTRAST, "{id} {dark}");
        }
    }
}

#[test]
fn other_colours_can_be_read() {
    for dark in [false, true] {
        let c = colors(dark);
        for behind in [c.surface, c.surface_alternate, c.panel] {
            for text in [c.text, c.text_weak] {
                assert!(contrast(text, behind) >= TEXT_CONTRAST, "{text:?} on {behind:?}");
            }
            for shape in [c.wave, c.accent, c.play_head, c.overlap, c.missed, c.false_alarm, c.confusion] {
                assert!(contrast(shape, behind) >= SHAPE_CONTRAST, "{shape:?} on {behind:?}");
            }
        }
    }
}

#[test]
fn the_measure_of_contrast_is_that_of_wcag() {
    assert!((contrast(egui::Color32::BLACK, egui::Color32::WHITE) - 21.0).abs() < 1e-4);
    // The well-known border case: #767676 on white is the lightest grey at 4.5.
    assert!(contrast(egui::Color32::from_gray(0x76), egui::Color32::WHITE) >= 4.5);
    assert!(contrast(egui::Color32::from_gray(0x77), egui::Color32::WHITE) < 4.5);
}

#[test]
fn the_first_speakers_look_different_and_keep_their_look() {
    let looks: HashSet<_> = (0..32).map(|id| (speaker(id, true).fill, speaker(id, true).pattern)).collect();
    assert_eq!(looks.len(), 32);
    assert_eq!(speaker(3, true).fill, speaker(11, true).fill);
    assert_eq!(speaker(7, true).pattern, Pattern::Plain);
    assert_ne!(speaker(8, true).pattern, Pattern::Plain);
    let letters: Vec<_> = [0, 1, 25, 26, 27, 51, 52, 701, 702].map(|id| speaker(id, true).letter).into();
    assert_eq!(letters, ["A", "B", "Z", "AA", "AB", "AZ", "BA", "ZZ", "AAA"]);
}

#[test]
fn the_window_follows_the_system() {
    let context = egui::Context::default();
    install(&context);
    for (system, dark) in [(egui::Theme::Dark, true), (egui::Theme::Light, false)] {
        let input = egui::RawInput { system_theme: Some(system), ..Default::default() };
        let mut seen = None;
        let output = context.run_ui(input, |ui| seen = Some(ui.visuals().dark_mode));
        output.drop_without_applying_deltas();
        assert_eq!(seen, Some(dark));
    }
}
