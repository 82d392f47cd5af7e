//! What is drawn. Views read the state and return commands; they change nothing and wait for nothing.

pub mod device;
pub mod dialogs;
pub mod empty;
pub mod evaluation;
pub mod menu;
pub mod queue;
pub mod recording;
pub mod status;
pub mod toolbar;

use std::time::Duration;

use eframe::egui::{Button, Response, RichText, Role, Ui, WidgetInfo};

use super::command::Command;
use super::state::State;
use super::text::Texts;

/// What every view gets.
pub struct View<'a> {
    /// What is shown.
    pub state: &'a State,
    /// The texts of the user's language.
    pub texts: &'static Texts,
    /// What the user asks for.
    pub commands: &'a mut Vec<Command>,
}

impl View<'_> {
    /// Adds a command.
    pub fn ask(&mut self, command: Command) {
        self.commands.push(command);
    }
}

/// A button with a sign, a name for those who do not see it, and a hint. The sign is in the fixed-width font, which has
/// more of them.
pub fn icon(ui: &mut Ui, sign: &str, name: &str, enabled: bool) -> Response {
    let response =
        ui.add_enabled(enabled, Button::new(RichText::new(sign).monospace().size(16.0)).frame(false));
    response.widget_info(|| WidgetInfo::labeled(Role::Button, enabled, name));
    response.on_hover_text(name)
}

/// A duration for people, such as `2 min`.
pub fn roughly(duration: Duration) -> String {
    let seconds = duration.as_secs_f64().ceil() as u64;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds.div_ceil(60)),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}
