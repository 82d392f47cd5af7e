//! One frame of the timeline, from the top to the bottom.

use std::borrow::Cow;

use eframe::egui::{
    Align2, Color32, FontId, Id, Rect, Response, ScrollArea, Sense, Stroke, Ui, UiBuilder, accesskit, pos2,
    scroll_area::ScrollSource, vec2,
};

use super::axis::{Axis, Tick, View, ticks};
use super::drag::{self, Drag};
use super::layout::{Regions, Voice, pieces, regions, runs, shares, voices};
use super::model::{ErrorKind, SpeakerId};
use super::state::State;
use super::wave::{Detail, Wave, wave};
use super::{Event, Input, access, heads, keys, lanes, overlay, overview, paint, time, wheel};
use crate::gui::theme::{Colors, SpeakerLook, colors, speaker};

/// Room that a labelled mark of the ruler needs, in points.
const TICK_ROOM: f32 = 92.0;

/// What all parts of one frame share.
pub(super) struct Frame<'a> {
    pub input: &'a Input<'a>,
    pub axis: Axis,
    pub regions: Regions,
    pub colors: Colors,
    /// One for each lane.
    pub looks: Vec<SpeakerLook>,
    /// What each lane's speaker is called; by the letter without a name.
    pub names: Vec<Cow<'a, str>>,
    /// Of the part with the turns, which takes the keys.
    pub canvas: Id,
}

impl Frame<'_> {
    /// What a speaker is called.
    pub fn name(&self, speaker: SpeakerId) -> &str {
        self.input.model.lane_of(speaker).map_or("", |lane| self.names[lane].as_ref())
    }

    /// Colour of a waveform where `voice` speaks.
    pub fn tint(&self, voice: Option<&Voice>) -> Color32 {
        let look = voice.and_then(|voice| self.looks.get(usize::from(voice.lane?)));
        look.map_or(self.colors.wave, |look| look.line)
    }

    /// The waveform; if it is not known, a bar where somebody speaks.
    pub fn wave(&self, axis: &Axis, detail: Option<Detail<'_>>, voices: &[Voice]) -> Wave {
        let bar = |voice: &Voice| (-0.4 * voice.speech.sqrt(), 0.4 * voice.speech.sqrt());
        match self.input.peaks {
            Some(peaks) => wave(peaks, detail, axis),
            None => Wave { columns: voices.iter().map(bar).collect(), gain: 1.0 },
        }
    }
}

/// Shows the timeline on all the room that is left in `ui`, and returns what the user asks for.
pub fn show(ui: &mut Ui, input: &Input<'_>, state: &mut State) -> Vec<Event> {
    let rect = ui.available_rect_before_wrap();
    ui.advance_cursor_after_rect(rect);
    let builder = UiBuilder::new()
        .id_salt("timeline")
        .max_rect(rect)
        .accessibility_role(accesskit::Role::Region)
        .accessibility_label("Timeline");
    let mut ui = ui.new_child(builder);
    ui.shrink_clip_rect(rect);
    let mut events = Vec::new();
    let pixel = 1.0 / ui.pixels_per_point();
    let regions = regions(rect, input.model.lanes().len(), input.model.has_errors(), pixel);
    place(&ui, input, state, regions, pixel);
    let Some(axis) = state.axis else { return events };
    let dark = ui.visuals().dark_mode;
    let lanes = input.model.lanes();
    let looks: Vec<SpeakerLook> = lanes.iter().map(|lane| speaker(lane.speaker.id, dark)).collect();
    let names = lanes.iter().zip(&looks).map(|(lane, look)| match lane.speaker.name.trim() {
        "" => Cow::Owned(format!("Speaker {}", look.letter)),
        name => Cow::Borrowed(name),
    });
    let (names, canvas) = (names.collect(), ui.scope_id().with("turns"));
    let frame = Frame { input, axis, regions, colors: colors(dark), looks, names, canvas };
    if state.drag.is_some() && keys::escaped(&ui) {
        drag::cancel(input, state, &mut events);
    }
    parts(&mut ui, &frame, state, &mut events);
    // The end of a drag goes unseen when the window loses the pointer.
    if !ui.input(|i| i.pointer.any_down()) {
        state.drag = None;
    }
    if state.present().clamped(state.duration, axis.width) != axis.view {
        ui.ctx().request_repaint();
    }
    events
}

/// Finds the view of this frame: wheel and pinch first, then the play head.
fn place(ui: &Ui, input: &Input<'_>, state: &mut State, regions: Regions, pixel: f32) {
    let (left, width) = (regions.wave.left(), regions.wave.width().max(pixel));
    state.duration = input.model.duration().max(0.1);
    state.axis = Some(Axis { view: View::all(state.duration, width), left, width, pixel });
    wheel::wheel(ui, regions, input, state);
    let moving = input.playing && state.follow && state.drag.is_none();
    let view = state.present().clamped(state.duration, width);
    let shown = view.length(width);
    if moving && !(view.start..view.start + 0.95 * shown).contains(&input.play_head) {
        state.scroll_to(input.play_head - 0.05 * shown);
    }
    let view = state.present().clamped(state.duration, width);
    if state.view.is_some() {
        state.view = Some(view);
    }
    state.axis = Some(Axis { view, left, width, pixel });
}

fn parts(ui: &mut Ui, frame: &Frame<'_>, state: &mut State, events: &mut Vec<Event>) {
    let Frame { axis, regions, colors, .. } = frame;
    let marks = ticks(axis, TICK_ROOM);
    let heads_column =
        Rect::from_min_max(regions.ruler_head.left_top(), pos2(axis.left, ui.max_rect().bottom()));
    ui.painter().rect_filled(heads_column.with_max_y(regions.errors.bottom()), 0.0, colors.panel);
    overview::show(ui, regions.overview, frame, state);
    heads::corner(ui, regions.corner, frame, state);

    time::ruler(ui, regions.ruler, frame, state, events);
    time::area(ui, regions.wave, ui.scope_id().with("wave"), "Waveform", frame, state, events);
    paint::ruler(ui.painter(), regions.ruler, axis, &marks, colors);
    wave_strip(ui, frame, &marks);
    heads::wave(ui, frame);

    let canvas = rows(ui, frame, &marks, state, events);
    if frame.input.model.lanes().is_empty() {
        let room = ui.max_rect().with_min_y(regions.lanes.bottom());
        let font = FontId::proportional(14.0);
        ui.painter_at(room).text(room.center(), Align2::CENTER_CENTER, "No speakers", font, colors.text_weak);
    }
    if frame.input.model.has_errors() {
        time::area(ui, regions.errors, ui.scope_id().with("errors"), "Errors", frame, state, events);
        errors(ui, frame, &marks);
    }
    keys::keys(ui, &canvas, frame, state, events);
    overlay::overlays(ui, frame, state, &canvas);
}

fn wave_strip(ui: &Ui, frame: &Frame<'_>, marks: &[Tick]) {
    let (rect, axis) = (frame.regions.wave, &frame.axis);
    let painter = ui.painter_at(rect);
    painter.rect_filled(rect, 0.0, frame.colors.surface);
    paint::grid(&painter, rect, axis, marks, &frame.colors);
    paint::overlaps(&painter, rect, &shares(frame.input.model.overlaps(), axis), &frame.colors);
    let voices = voices(frame.input.model, axis);
    let wave = frame.wave(axis, frame.input.detail, &voices);
    paint::wave(&painter, rect, axis, &wave, |column| frame.tint(voices.get(column)));
    painter.hline(rect.x_range(), rect.bottom() - 0.5, Stroke::new(1.0, frame.colors.line));
}

/// The lanes with their heads, which scroll up and down where they do not fit.
fn rows(
    ui: &mut Ui,
    frame: &Frame<'_>,
    marks: &[Tick],
    state: &mut State,
    events: &mut Vec<Event>,
) -> Response {
    let Frame { axis, regions, .. } = frame;
    let count = frame.input.model.lanes().len();
    let mut inner = ui.new_child(UiBuilder::new().id_salt("lanes").max_rect(regions.lanes));
    inner.spacing_mut().item_spacing = vec2(0.0, 0.0);
    let area = ScrollArea::vertical()
        .auto_shrink(false)
        .scroll_source(ScrollSource { drag: ScrollSource::NONE.drag, ..ScrollSource::ALL });
    let shown = area.show(&mut inner, |ui| {
        let size = vec2(regions.lanes.width(), regions.lane_height * count as f32);
        let (_, content) = ui.allocate_space(size);
        let body = content.with_min_x(axis.left).with_max_x(axis.right());
        let canvas = ui.interact(body.intersect(ui.clip_rect()), frame.canvas, Sense::click_and_drag());
        if let Some(lane) = state.reveal_lane.take() {
            ui.scroll_to_rect(lane_rect(content, regions.lane_height, lane), None);
        }
        lanes::lanes(ui, &canvas, content.top(), frame, state, events);
        lane_rows(ui, content, frame, marks, state, events);
        access::turns(ui, &canvas, content, frame, state, events);
        overlay::previews(ui, content, frame, state);
        canvas
    });
    shown.inner
}

/// The rectangle of a lane, with its head.
pub(super) fn lane_rect(content: Rect, height: f32, number: usize) -> Rect {
    let top = content.top() + number as f32 * height;
    Rect::from_min_max(pos2(content.left(), top), pos2(content.right(), top + height))
}

fn lane_rows(
    ui: &mut Ui,
    content: Rect,
    frame: &Frame<'_>,
    marks: &[Tick],
    state: &State,
    events: &mut Vec<Event>,
) {
    let Frame { axis, colors, input, .. } = frame;
    let selected = selected(input);
    let target = match &state.drag {
        Some(Drag::Move { from, to, .. }) if from != to => Some(*to),
        _ => None,
    };
    for (number, lane) in input.model.lanes().iter().enumerate() {
        let row = lane_rect(content, frame.regions.lane_height, number);
        if !ui.is_rect_visible(row) {
            continue;
        }
        let body = row.with_min_x(axis.left).with_max_x(axis.right());
        let ground = if number % 2 == 0 { colors.surface } else { colors.surface_alternate };
        ui.painter().rect_filled(body, 0.0, ground);
        paint::grid(ui.painter(), body, axis, marks, colors);
        if target == Some(number) {
            ui.painter().rect_filled(body, 0.0, colors.accent.gamma_multiply(0.14));
        }
        let paint = paint::LanePaint {
            look: &frame.looks[number],
            silent: input.silent(lane.speaker.id),
            selected: &selected,
            colors,
        };
        paint::lane(ui.painter(), body, input.model, axis, &pieces(lane, axis, &selected), &paint);
        ui.painter().hline(row.x_range(), row.bottom() - 0.5, Stroke::new(1.0, colors.line));
        heads::lane(ui, row.with_max_x(axis.left), frame, number, events);
    }
}

/// For each turn of the model whether it is selected; nothing if none is.
fn selected(input: &Input<'_>) -> Vec<bool> {
    if input.selection.turns.is_empty() {
        return Vec::new();
    }
    let mut selected = vec![false; input.model.turns().len()];
    for &id in &input.selection.turns {
        if let Some((i, _)) = input.model.turn(id) {
            selected[i] = true;
        }
    }
    selected
}

/// The rows of errors, one for each kind.
fn errors(ui: &Ui, frame: &Frame<'_>, marks: &[Tick]) {
    let (body, head) = (frame.regions.errors, frame.regions.errors_head);
    let painter = ui.painter_at(body.union(head));
    painter.rect_filled(head, 0.0, frame.colors.panel);
    painter.rect_filled(body, 0.0, frame.colors.surface);
    paint::grid(&painter, body, &frame.axis, marks, &frame.colors);
    painter.hline(head.left()..=body.right(), body.top() + 0.5, Stroke::new(1.0, frame.colors.line));
    let height = (body.height() - 5.0) / 3.0;
    for (number, kind) in ErrorKind::ALL.into_iter().enumerate() {
        let color = match kind {
            ErrorKind::Missed => frame.colors.missed,
            ErrorKind::FalseAlarm => frame.colors.false_alarm,
            ErrorKind::Confusion => frame.colors.confusion,
        };
        let stretches = frame.input.model.errors(kind);
        let top = body.top() + 3.0 + number as f32 * height;
        let row = Rect::from_x_y_ranges(body.x_range(), top + 1.5..=top + height - 1.5);
        paint::errors(&painter, row, &runs(stretches, &frame.axis), color);
        heads::error(ui, head.with_min_y(row.top()).with_max_y(row.bottom()), kind, color, frame);
    }
}
