//! The timeline: what it makes of pointer and keys, what screen readers are told, where things are drawn.

#[path = "timeline/stage.rs"]
mod stage;

#[path = "timeline/degenerate.rs"]
mod degenerate;
#[path = "timeline/drags.rs"]
mod drags;
#[path = "timeline/heads.rs"]
mod heads;
#[path = "timeline/keys.rs"]
mod keys;
#[path = "timeline/layout.rs"]
mod layout;
#[path = "timeline/names.rs"]
mod names;
#[path = "timeline/overview.rs"]
mod overview;
#[path = "timeline/pixels.rs"]
mod pixels;
#[path = "timeline/pointer.rs"]
mod pointer;
#[path = "timeline/snapshots.rs"]
mod snapshots;
#[path = "timeline/view.rs"]
mod view;
