//! Small numerical helpers around well-kept crates. Depends on nothing else here.
