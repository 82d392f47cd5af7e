//! What the tests on a GPU share.

use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;

use speakrs_app::audio::{self, Channels};
use speakrs_app::backend::cuda::artifacts;
use speakrs_app::backend::cuda::artifacts::Artifacts;
use speakrs_app::backend::cuda::launch::Gpu;

/// The first GPU, or the news that there is none.
pub fn gpu() -> Option<Gpu> {
    gpu_with(artifacts().expect("artifacts"))
}

pub fn gpu_with(artifacts: Artifacts) -> Option<Gpu> {
    match Gpu::open(0, artifacts) {
        Ok(gpu) => Some(gpu),
        Err(error) => skip(&error.to_string()),
    }
}

/// Samples of a recording in `assets/demo`.
pub fn demo(name: &str) -> Vec<f32> {
    decoded(&Path::new("assets/demo").join(name))
}

pub fn decoded(path: &Path) -> Vec<f32> {
    let go_on = &mut |_| ControlFlow::Continue(());
    audio::decode(path, Channels::Mix, go_on).expect("a recording").samples
}

pub fn skip<T>(reason: &str) -> Option<T> {
    assert!(std::env::var_os("SPEAKRS_APP_REQUIRE_GPU").is_none_or(|v| v != "1"), "{reason}");
    // Not `eprintln!`, which a passing test keeps to itself.
    let _ = writeln!(std::io::stderr(), "SKIPPED, no GPU: {reason}");
    None
}
