//! The window, tested without a display.

#[path = "gui/flows.rs"]
mod flows;
#[path = "gui/theme.rs"]
mod theme;
