//! Wheel and pinch.

use eframe::egui::Ui;

use super::Input;
use super::layout::Regions;
use super::state::State;

/// Zooms at the pointer, and scrolls: sideways through time, up and down through lanes that do not fit, else also
/// through time.
pub(super) fn wheel(ui: &Ui, regions: Regions, input: &Input<'_>, state: &mut State) {
    let Some(pointer) = ui.input(|i| i.pointer.hover_pos()) else { return };
    if !ui.rect_contains_pointer(ui.max_rect()) {
        return;
    }
    let (zoom, scroll) = ui.input(|i| (f64::from(i.zoom_delta()), i.smooth_scroll_delta()));
    let before = state.view;
    let width = regions.wave.width();
    if zoom != 1.0 {
        let inside = regions.ruler.x_range().contains(pointer.x) && !regions.overview.contains(pointer);
        let x = if inside { pointer.x - regions.wave.left() } else { width / 2.0 };
        state.view = Some(state.present().zoomed(zoom, f64::from(x), state.duration, width));
    }
    let lanes_height = regions.lane_height * input.model.lanes().len() as f32;
    let lanes_scroll = lanes_height > regions.lanes.height() + 0.5 && regions.lanes.contains(pointer);
    let sideways = scroll.x + if lanes_scroll { 0.0 } else { scroll.y };
    if sideways != 0.0 {
        state.scroll_by(-f64::from(sideways) * state.present().scale);
    }
    ui.input_mut(|i| {
        i.smooth_scroll_delta.x = 0.0;
        if !lanes_scroll {
            i.smooth_scroll_delta.y = 0.0;
        }
    });
    let view = state.present();
    let in_view = (view.start..=view.start + view.length(width)).contains(&input.play_head);
    if state.view != before && input.playing && !in_view {
        state.follow = false;
    }
}
