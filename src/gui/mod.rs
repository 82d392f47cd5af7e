//! The window. Depends on `app` and everything above it; writes no results by itself.
//!
//! ```text
//!  State (plain data) ─► views (read it, draw) ─► commands ─► App::apply ─► State
//!                                                                 │
//!                             worker, background (other threads) ◄┘ ─► events ─► App::logic ─► State
//! ```

pub mod app;
pub mod command;
pub mod state;
pub mod text;
pub mod theme;
pub mod timeline;
pub mod views;

mod apply;
mod news;
mod window;

pub use window::{Options, run};
