//! The window. Depends on `app` and everything above it; writes no results by itself.
//!
//! State (plain data) → views (read it, draw) → commands (change it). Work happens in other threads.

pub mod theme;
pub mod timeline;
