//! The window, tested without a display.

#[path = "gui/theme.rs"]
mod theme;
