//! Where the captures of the reference pipeline and the evaluation recordings are.

use std::path::PathBuf;

/// The folder with captures of the reference pipeline, which are not part of the repository. Without it tests that
/// need them are skipped, with a note; on CI that is an error.
pub fn fixtures() -> Option<PathBuf> {
    let path = std::env::var_os("SPEAKRS_APP_FIXTURES").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/fixtures")),
        PathBuf::from,
    );
    if path.is_dir() {
        return Some(path);
    }
    assert!(std::env::var("CI").as_deref() != Ok("true"), "no fixtures at {}", path.display());
    eprintln!("SKIPPED: no fixtures at {}; set SPEAKRS_APP_FIXTURES", path.display());
    None
}
