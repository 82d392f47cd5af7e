//! Frame times of the timeline without a graphics adapter: layout, painting and tessellation of 10 hours with 20,000
//! turns of 12 speakers in a window of 1920 x 1080 pixels.
//!
//! `cargo run --release --example bench_timeline [-- FRAMES]`

use std::collections::BTreeSet;
use std::time::Instant;

use eframe::egui::{
    Context, Event, Modifiers, MouseWheelSource, MouseWheelUnit, Pos2, RawInput, Rect, TouchPhase, pos2, vec2,
};
use speakrs_app::app::peaks::Peaks;
use speakrs_app::gui::theme;
use speakrs_app::gui::timeline::model::{ErrorKind, ErrorStretch, Model, Selection, Speaker, Turn, TurnId};
use speakrs_app::gui::timeline::{Detail, Input, State, show};
use speakrs_app::math::random::Random;

const DURATION: f64 = 36_000.0;
const TURNS: u64 = 20_000;
const SPEAKERS: usize = 12;
const SIZE: (f32, f32) = (1920.0, 1080.0);

fn main() -> anyhow::Result<()> {
    let frames: usize = std::env::args().nth(1).map_or(Ok(600), |a| a.parse())?;
    let mut bench = Bench::new(frames.max(1));
    println!("{:<44} {:>9} {:>9} {:>9}", "milliseconds a frame", "median", "99 %", "maximum");
    bench.time("whole recording", DURATION, |_, _| ());
    bench.selection.turns = (0..TURNS).map(TurnId).collect();
    bench.time("whole recording, all turns selected", DURATION, |_, _| ());
    bench.selection.turns.clear();
    bench.time("10 minutes", 600.0, |_, _| ());
    bench.time("10 seconds", 10.0, |_, _| ());
    bench.time("closest zoom", 0.01, |_, _| ());
    bench
        .time("scrolling through hours", 7200.0, |bench, i| bench.wheel(vec2(0.0, turning(i) * 40.0), false));
    bench.time("scrolling through minutes", 600.0, |bench, i| {
        bench.wheel(vec2(0.0, turning(i) * 40.0), false)
    });
    bench.time("zooming in and out", DURATION, |bench, i| bench.wheel(vec2(0.0, -turning(i) * 40.0), true));
    bench.time("playing 30 seconds", 30.0, |bench, i| bench.play_head = DURATION / 2.0 + i as f64 / 60.0);
    bench.time("whole recording, edited every frame", DURATION, |bench, i| bench.edit(i));
    bench.time("10 minutes, edited every frame", 600.0, |bench, i| bench.edit(i));
    bench.context.enable_accesskit();
    bench.time("10 minutes, with a screen reader", 600.0, |_, _| ());
    bench.time("whole recording, with a screen reader", DURATION, |_, _| ());
    Ok(())
}

/// Back and forth, 150 frames each.
fn turning(frame: usize) -> f32 {
    if frame % 300 < 150 { -1.0 } else { 1.0 }
}

struct Bench {
    frames: usize,
    context: Context,
    model: Model,
    peaks: Peaks,
    piece: Vec<f32>,
    play_head: f64,
    selection: Selection,
    state: State,
    events: Vec<Event>,
    time: f64,
}

impl Bench {
    fn new(frames: usize) -> Self {
        let context = Context::default();
        theme::install(&context);
        let mut random = Random::new(1);
        let piece: Vec<f32> =
            (0..16_000 * 60).map(|i| ((random.unit() - 0.5) * (f64::from(i) * 4e-4).sin()) as f32).collect();
        let mut peaks = Peaks::new();
        for _ in 0..(DURATION / 60.0) as usize {
            peaks.push(&piece);
        }
        Self {
            frames,
            context,
            model: model(0.0),
            peaks,
            piece,
            play_head: DURATION / 2.0,
            selection: Selection::default(),
            state: State::default(),
            events: Vec::new(),
            time: 0.0,
        }
    }

    /// Times frames that show `seconds` from the middle of the recording; before each of them, and counted in, `act`.
    fn time(&mut self, name: &str, seconds: f64, act: impl Fn(&mut Self, usize)) {
        let middle = DURATION / 2.0;
        self.play_head = middle;
        self.state.show_range(middle - seconds / 2.0, middle + seconds / 2.0);
        self.events.push(Event::PointerMoved(pos2(1000.0, 400.0)));
        for _ in 0..10 {
            self.frame();
        }
        let mut times: Vec<f64> = (0..self.frames)
            .map(|i| {
                let start = Instant::now();
                act(self, i);
                self.frame();
                start.elapsed().as_secs_f64() * 1e3
            })
            .collect();
        times.sort_by(f64::total_cmp);
        let at = |part: f64| times[((times.len() - 1) as f64 * part).round() as usize];
        println!("{name:<44} {:>9.2} {:>9.2} {:>9.2}", at(0.5), at(0.99), at(1.0));
    }

    fn frame(&mut self) {
        self.time += 1.0 / 60.0;
        let raw = RawInput {
            screen_rect: Some(Rect::from_min_size(Pos2::ZERO, SIZE.into())),
            time: Some(self.time),
            events: std::mem::take(&mut self.events),
            ..Default::default()
        };
        let (none, state) = (BTreeSet::new(), &mut self.state);
        let range = state.wanted_detail();
        let piece =
            &self.piece[..range.as_ref().map_or(0, |r| (r.end - r.start) as usize).min(self.piece.len())];
        let input = Input {
            model: &self.model,
            peaks: Some(&self.peaks),
            detail: range.map(|range| Detail { first: range.start, samples: piece }),
            play_head: self.play_head,
            playing: true,
            selection: &self.selection,
            solo: &none,
            muted: &none,
            editable: true,
        };
        let output = self.context.run_ui(raw, |ui| {
            show(ui, &input, state);
        });
        let scale = output.pixels_per_point;
        std::hint::black_box(self.context.tessellate(output.shapes.clone(), scale));
        output.drop_without_applying_deltas();
    }

    fn wheel(&mut self, delta: eframe::egui::Vec2, zoom: bool) {
        let modifiers = if zoom { Modifiers { ctrl: true, ..Modifiers::COMMAND } } else { Modifiers::NONE };
        self.events.push(Event::ModifiersChanged(modifiers));
        self.events.push(Event::MouseWheel {
            unit: MouseWheelUnit::Point,
            delta,
            phase: TouchPhase::Move,
            modifiers,
            source: MouseWheelSource::Unknown,
        });
        self.events.push(Event::ModifiersChanged(Modifiers::NONE));
    }

    /// Builds the model anew, as after an edit.
    fn edit(&mut self, frame: usize) {
        self.model = model(frame as f64 * 1e-3);
    }
}

/// Turns that follow and often overlap each other, moved by `shift` seconds.
fn model(shift: f64) -> Model {
    let mut random = Random::new(2);
    let turns = (0..TURNS).map(|id| {
        let start = id as f64 / TURNS as f64 * (DURATION - 20.0) + shift;
        let speaker = (random.unit() * SPEAKERS as f64) as usize;
        Turn { id: TurnId(id), start, end: start + 0.3 + 4.0 * random.unit() * random.unit(), speaker }
    });
    let speakers = (0..SPEAKERS).map(|id| Speaker { id, name: format!("Speaker {}", id + 1) }).collect();
    let mut random = Random::new(3);
    let errors = (0..TURNS / 4).map(|i| ErrorStretch {
        start: i as f64 * 7.0,
        end: i as f64 * 7.0 + 2.0 * random.unit(),
        kind: ErrorKind::ALL[(random.unit() * 3.0) as usize],
    });
    Model::new(DURATION, turns.collect(), speakers, errors.collect())
}
