//! The window, tested without a display.

#[path = "gui/flows.rs"]
mod flows;
#[path = "gui/support.rs"]
mod support;
#[path = "gui/theme.rs"]
mod theme;
#[path = "gui/timeline.rs"]
mod timeline;
