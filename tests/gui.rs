//! The window, tested without a display.

mod support;
