//! The turns as screen readers see them: a list with an option for each turn in view, as long as these are few, else
//! for the one that keys start from.

use eframe::egui::{Rect, Response, Sense, Ui, UiBuilder, WidgetInfo, accesskit};

use super::axis::clock;
use super::layout::turn_rect;
use super::model::TurnId;
use super::show::{Frame, lane_rect};
use super::state::State;
use super::{Event, keys};

/// Most turns that are described.
const MOST: usize = 200;

/// Describes the list, and the turns in view unless they are too many; a turn that a screen reader clicks is selected.
pub(super) fn turns(
    ui: &mut Ui,
    canvas: &Response,
    content: Rect,
    frame: &Frame<'_>,
    state: &mut State,
    events: &mut Vec<Event>,
) {
    let model = frame.input.model;
    let described = ui.ctx().accesskit_node_builder(canvas.id, |node| {
        node.set_role(accesskit::Role::ListBox);
        node.set_label("Turns");
        node.set_value(format!("{} turns of {} speakers", model.turns().len(), model.lanes().len()));
        node.set_multiselectable();
    });
    if described.is_none() {
        return;
    }
    let mut seen = in_view(ui, content, frame);
    if seen.len() > MOST {
        seen = state.cursor.and_then(|turn| place(content, frame, turn)).into_iter().collect();
    }
    let builder = UiBuilder::new().id_salt("turns").max_rect(content).accessibility_parent(canvas.id);
    let child = ui.new_child(builder);
    for (turn, rect) in seen {
        let turn = &model.turns()[turn];
        let name = frame.name(turn.speaker);
        let selected = frame.input.selection.turns.contains(&turn.id);
        let response = child.interact(rect, canvas.id.with(turn.id), Sense::hover());
        let label = format!("{name}, {} to {}", clock(turn.start), clock(turn.end));
        response.widget_info(|| WidgetInfo::selected(accesskit::Role::ListBoxOption, true, selected, &label));
        ui.ctx().accesskit_node_builder(response.id, |node| {
            node.clear_toggled();
            node.set_selected(selected);
            node.add_action(accesskit::Action::Click);
        });
        if ui.input(|i| i.has_accesskit_action_request(response.id, accesskit::Action::Click)) {
            events.push(Event::SelectTurns(keys::picked(frame, state, turn.id, Default::default())));
        }
        if state.cursor == Some(turn.id) && selected {
            ui.ctx().accesskit_node_builder(canvas.id, |node| {
                node.set_active_descendant(response.id.accesskit_id());
            });
        }
    }
}

/// Turns in view with their places; at most one more than [`MOST`].
fn in_view(ui: &Ui, content: Rect, frame: &Frame<'_>) -> Vec<(usize, Rect)> {
    let (from, to) = frame.axis.range();
    let rows = frame.input.model.lanes().iter().enumerate().filter_map(|(number, lane)| {
        let row = lane_rect(content, frame.regions.lane_height, number).with_min_x(frame.axis.left);
        ui.is_rect_visible(row).then_some((lane, row))
    });
    let turns = rows.flat_map(|(lane, row)| {
        let seen = lane.stretches.touching(from, to).map(|i| lane.turns[i] as usize).filter(move |&i| {
            let turn = &frame.input.model.turns()[i];
            turn.end > from && turn.start < to
        });
        seen.filter_map(move |i| {
            let turn = &frame.input.model.turns()[i];
            Some((i, turn_rect(&frame.axis, row, turn.start, turn.end)?))
        })
    });
    turns.take(MOST + 1).collect()
}

/// Index and place of a turn, if it is in view.
fn place(content: Rect, frame: &Frame<'_>, turn: TurnId) -> Option<(usize, Rect)> {
    let model = frame.input.model;
    let (index, turn) = model.turn(turn)?;
    let row = lane_rect(content, frame.regions.lane_height, model.lane_of(turn.speaker)?);
    Some((index, turn_rect(&frame.axis, row.with_min_x(frame.axis.left), turn.start, turn.end)?))
}
