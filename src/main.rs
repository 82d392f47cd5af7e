//! The `speakrs-app` program.

fn main() {}
