//! The window, tested without a display.
