//! Pictures of the timeline, light and dark, to look at and to compare with.
//!
//! `UPDATE_SNAPSHOTS=1 cargo test --release --test gui snapshots` draws them anew.

use eframe::egui::{Modifiers, PointerButton, Theme, vec2};
use egui_kittest::{OsThreshold, SnapshotOptions, SnapshotResults};
use speakrs_app::app::peaks::Peaks;
use speakrs_app::gui::timeline::model::{ErrorKind, ErrorStretch, Model, Turn};
use speakrs_app::math::random::Random;

use super::stage::{Places, Stage, Window, ids, speakers, turn, window_of};
use crate::support::{Hands, adapter};

const RATE: usize = 16_000;
const WIDE: (f32, f32) = (1216.0, 516.0);

/// People who take turns and sometimes fall into each other's word.
fn talk(duration: f64, people: usize, seed: u64) -> Vec<Turn> {
    let mut random = Random::new(seed);
    let (mut at, mut turns, mut last) = (1.0, Vec::new(), 0);
    while at < duration - 12.0 {
        let next = (last + 1 + (random.unit() * random.unit() * (people - 1) as f64) as usize) % people;
        let long = 0.6 + 9.0 * random.unit() * random.unit();
        turns.push(turn(turns.len() as u64, next, at, at + long));
        at += long + 1.8 * random.unit() - 0.7;
        last = next;
    }
    turns
}

/// Syllables where somebody speaks, a little noise elsewhere.
fn speech(duration: f64, turns: &[Turn]) -> Vec<f32> {
    let mut random = Random::new(5);
    let mut samples: Vec<f32> =
        (0..(duration * RATE as f64) as usize).map(|_| (random.unit() as f32 - 0.5) * 0.006).collect();
    for turn in turns {
        let loud = 0.25 + 0.5 * random.unit();
        let (first, last) = ((turn.start * RATE as f64) as usize, (turn.end * RATE as f64) as usize);
        let (mut syllable, mut left, mut long) = (0.0, 0, 1);
        for sample in samples.iter_mut().take(last).skip(first) {
            if left == 0 {
                long = (RATE as f64 * (0.06 + 0.22 * random.unit())) as usize;
                left = long;
                syllable = if random.unit() < 0.12 { 0.03 } else { 0.25 + 0.75 * random.unit() };
            }
            left -= 1;
            let swell = (std::f64::consts::PI * left as f64 / long as f64).sin();
            *sample += (loud * syllable * swell * (random.unit() - 0.5) * 2.0) as f32;
        }
    }
    samples
}

fn meeting() -> Stage {
    let names = ["Ada Lovelace", "Ben", "Cleo Marchetti-Vandenberghe", "Dmitri", "Speaker 5"];
    let turns = talk(480.0, 5, 11);
    let samples = speech(480.0, &turns);
    let error = |start, end, kind| ErrorStretch { start, end, kind };
    let errors = vec![
        error(62.0, 64.5, ErrorKind::Missed),
        error(81.0, 81.4, ErrorKind::Missed),
        error(70.5, 72.0, ErrorKind::FalseAlarm),
        error(74.0, 79.5, ErrorKind::Confusion),
        error(95.0, 96.0, ErrorKind::Confusion),
    ];
    let mut stage = Stage::new(Model::new(480.0, turns, speakers(names), errors));
    stage.peaks = Some(Peaks::of(&samples));
    stage.play_head = 78.4;
    stage
}

/// Twelve people, ten hours.
fn congress() -> Stage {
    let duration = 36_000.0;
    let turns = talk(duration, 12, 3);
    let names: Vec<String> = (1..=12).map(|i| format!("Speaker {i}")).collect();
    let mut peaks = Peaks::new();
    let piece = speech(600.0, &turns);
    for _ in 0..60 {
        peaks.push(&piece);
    }
    let mut stage =
        Stage::new(Model::new(duration, turns, speakers(names.iter().map(String::as_str)), vec![]));
    stage.peaks = Some(peaks);
    stage.play_head = 12_345.0;
    stage
}

/// Takes a picture of `stage` after `act`, light and dark.
fn picture(name: &str, size: (f32, f32), stage: impl Fn() -> Stage, act: impl Fn(&mut Window)) {
    if !adapter() {
        return;
    }
    // Letters are drawn by the program itself; only the edges of shapes depend on the adapter.
    let options = SnapshotOptions::new().threshold(1.0).max_failed_pixels(OsThreshold::new(20));
    let mut results = SnapshotResults::new();
    for (look, theme) in [("light", Theme::Light), ("dark", Theme::Dark)] {
        let mut window = window_of(stage(), size, 1.0, theme);
        act(&mut window);
        results.add(window.try_snapshot_options(format!("timeline_{name}_{look}"), &options));
    }
}

#[test]
fn a_meeting() {
    let stage = || {
        let mut stage = meeting();
        stage.selection.turns = ids([13, 14]);
        stage.muted = [3].into();
        stage
    };
    picture("meeting", WIDE, stage, |window| {
        window.state_mut().timeline.show_range(52.0, 104.0);
        window.run();
    });
}

#[test]
fn a_selected_range_and_the_closest_zoom() {
    let stage = || {
        let mut stage = meeting();
        stage.selection.range = Some((78.43, 78.47));
        stage
    };
    picture("closest", WIDE, stage, |window| {
        window.state_mut().timeline.show_range(78.4, 78.5);
        window.run();
        let samples = speech(480.0, window.state().model.turns());
        let range = window.state().timeline.wanted_detail().expect("a close zoom");
        let piece = samples[range.start as usize..range.end as usize].to_vec();
        window.state_mut().detail = Some((range.start, piece));
        window.run();
    });
}

#[test]
fn a_turn_on_its_way_to_another_lane() {
    picture("move", WIDE, meeting, |window| {
        window.state_mut().timeline.show_range(52.0, 104.0);
        window.run();
        let long = |t: &&Turn| t.start > 55.0 && t.duration() > 4.0;
        let turn = *window.state().model.turns().iter().find(long).expect("a long turn");
        let name = window.state().model.lanes()[turn.speaker].speaker.name.clone();
        let from = window.in_lane((turn.start + turn.end) / 2.0, &name);
        let to = window.in_lane((turn.start + turn.end) / 2.0 + 1.0, "Speaker 5");
        window.drag(from, to, PointerButton::Primary, Modifiers::NONE);
    });
}

#[test]
fn ten_hours_of_twelve_speakers() {
    picture("congress", (1416.0, 816.0), congress, |_| ());
}

#[test]
fn a_narrow_window() {
    picture("narrow", (516.0, 276.0), meeting, |window| {
        window.state_mut().timeline.show_range(52.0, 72.0);
        window.run();
        window.wheel(window.turns().center(), vec2(0.0, -10.0), Modifiers::NONE);
    });
}

#[test]
fn before_anything_is_known() {
    let stage = || {
        let mut stage = Stage::new(Model::new(480.0, vec![], vec![], vec![]));
        stage.peaks = Some(Peaks::of(&speech(120.0, &[turn(0, 0, 3.0, 110.0)])));
        stage
    };
    picture("decoding", (1216.0, 316.0), stage, |_| ());
}
