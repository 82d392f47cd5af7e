//! Opens the window with the graphics that are there.

use std::ffi::OsString;
use std::path::PathBuf;

use eframe::egui::{ViewportBuilder, vec2};
use eframe::{NativeOptions, Renderer};

use super::app::App;
use crate::app::engines::Choice;
use crate::app::export::Format;
use crate::pipeline::Mode;

/// What the window starts with.
#[derive(Debug, Clone)]
pub struct Options {
    /// Recordings and folders to add at once.
    pub inputs: Vec<OsString>,
    /// What is computed on.
    pub choice: Choice,
    /// Formats of the results that are written by themselves.
    pub formats: Vec<&'static Format>,
    /// Their folder; `None`: beside each recording.
    pub folder: Option<PathBuf>,
    /// The mode; `None`: what the models are validated for.
    pub mode: Option<Mode>,
    /// Seconds between windows.
    pub step: f64,
    /// Recordings decoded at the same time.
    pub decoders: usize,
}

/// Shows the window until it is closed.
///
/// # Errors
/// If no window can be had, in one sentence.
pub fn run(options: &Options) -> Result<(), String> {
    let mut reasons = Vec::new();
    for renderer in [Renderer::Wgpu, Renderer::Glow] {
        let native = NativeOptions {
            viewport: ViewportBuilder::default()
                .with_app_id("speakrs-app")
                .with_title("speakrs-app")
                .with_inner_size(vec2(1180.0, 760.0))
                .with_min_inner_size(vec2(640.0, 420.0))
                .with_drag_and_drop(true),
            renderer,
            persist_window: false,
            ..NativeOptions::default()
        };
        let options = options.clone();
        let create: eframe::AppCreator<'_> =
            Box::new(move |context| Ok(Box::new(App::new(&context.egui_ctx, &options))));
        match eframe::run_native("speakrs-app", native, create) {
            Ok(()) => return Ok(()),
            Err(error @ (eframe::Error::WinitEventLoop(_) | eframe::Error::Winit(_))) => {
                return Err(no_window(&error.to_string()));
            }
            Err(error) => {
                tracing::warn!("no window with {renderer}: {error}");
                reasons.push(error.to_string());
            }
        }
    }
    Err(no_window(&reasons.join("; ")))
}

fn no_window(reason: &str) -> String {
    format!("no window can be opened here: {reason} (use --headless FILES to work without one)")
}
