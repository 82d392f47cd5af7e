//! What the timeline remembers from frame to frame: the view, the drag that goes on, the turn that keys start from.

use std::ops::Range;

use super::axis::{Axis, View};
use super::drag::Drag;
use super::layout::Voice;
use super::model::{Model, TurnId};
use super::wave::wants_detail;
use crate::audio::SAMPLE_RATE;

/// View, drag and keyboard position of one timeline.
#[derive(Debug)]
pub struct State {
    /// Whether the view follows the play head while it moves.
    pub follow: bool,
    /// `None` shows the whole recording.
    pub(super) view: Option<View>,
    /// The axis of the last frame.
    pub(super) axis: Option<Axis>,
    pub(super) duration: f64,
    pub(super) drag: Option<Drag>,
    /// The turn that arrow keys start from, and the one that a selection by shift starts from.
    pub(super) cursor: Option<TurnId>,
    pub(super) anchor: Option<TurnId>,
    /// A lane to scroll to.
    pub(super) reveal_lane: Option<usize>,
    /// The colours of the overview, with the model and the width that they are for.
    pub(super) overview: Option<(u64, usize, Vec<Voice>)>,
}

impl Default for State {
    fn default() -> Self {
        Self {
            follow: true,
            view: None,
            axis: None,
            duration: 0.0,
            drag: None,
            cursor: None,
            anchor: None,
            reveal_lane: None,
            overview: None,
        }
    }
}

impl State {
    /// Seconds in view in the last frame.
    pub fn visible(&self) -> (f64, f64) {
        self.axis.map_or((0.0, self.duration), |axis| axis.range())
    }

    /// Samples that [`super::Input::detail`] should hold for the present zoom: those in view and as many on both
    /// sides. `None` where the peaks are as fine as the screen.
    pub fn wanted_detail(&self) -> Option<Range<u64>> {
        let axis = self.axis.filter(wants_detail)?;
        let (from, to) = axis.range();
        let sample = |second: f64| (second.max(0.0) * f64::from(SAMPLE_RATE)) as u64;
        Some(sample(2.0 * from - to)..sample(2.0 * to - from))
    }

    /// Shows the whole recording.
    pub fn fit(&mut self) {
        self.view = None;
    }

    /// Shows these seconds, with a little room around.
    pub fn show_range(&mut self, from: f64, to: f64) {
        self.view = Some(View::around(from, to, self.duration, self.width()));
    }

    /// Zooms by `factor` (more than 1 is closer) while the given second stays where it is, or the middle if it is not
    /// in view.
    pub fn zoom(&mut self, factor: f64, at: f64) {
        let (from, to) = self.visible();
        let at = if (from..=to).contains(&at) { at } else { (from + to) / 2.0 };
        let view = self.present();
        self.view = Some(view.zoomed(factor, (at - view.start) / view.scale, self.duration, self.width()));
    }

    /// Makes a turn the one that keys start from, and scrolls to it if it is not in view.
    pub fn reveal(&mut self, model: &Model, turn: TurnId) {
        if let Some((_, found)) = model.turn(turn) {
            self.cursor = Some(turn);
            self.reveal_lane = model.lane_of(found.speaker);
            self.reveal_time(found.start, found.end);
        }
    }

    /// Scrolls to these seconds if they are not in view.
    pub fn reveal_time(&mut self, start: f64, end: f64) {
        let (from, to) = self.visible();
        let length = to - from;
        let fits = end - start < 0.8 * length;
        let seen =
            if fits { from <= start && end <= to } else { from <= start && start <= from + 0.5 * length };
        if !seen {
            let start = if start < from || !fits { start - 0.1 * length } else { end - 0.9 * length };
            self.scroll_to(start);
        }
    }

    /// Puts a second at the left edge.
    pub(super) fn scroll_to(&mut self, start: f64) {
        let view = self.present();
        self.view = Some(View { start, ..view }.clamped(self.duration, self.width()));
    }

    /// Moves the view by a number of seconds.
    pub(super) fn scroll_by(&mut self, seconds: f64) {
        self.scroll_to(self.present().start + seconds);
    }

    pub(super) fn present(&self) -> View {
        self.view.unwrap_or_else(|| View::all(self.duration, self.width()))
    }

    fn width(&self) -> f32 {
        self.axis.map_or(1000.0, |axis| axis.width)
    }
}
