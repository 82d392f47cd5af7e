//! The CUDA backend against the CPU's. Without a GPU these tests say so and pass; with `SPEAKRS_APP_REQUIRE_GPU=1` they
//! fail.
#![cfg(feature = "cuda")]

#[path = "support/fixtures.rs"]
mod fixtures;

#[path = "gpu/conv.rs"]
mod conv;
#[path = "gpu/embeddings.rs"]
mod embeddings;
#[path = "gpu/guards.rs"]
mod guards;
#[path = "gpu/segmentation.rs"]
mod segmentation;

use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;

use fixtures::fixtures;
use speakrs_app::audio::{self, Channels};
use speakrs_app::backend::cuda::artifacts::Artifacts;
use speakrs_app::backend::cuda::launch::Gpu;
use speakrs_app::backend::cuda::{artifacts, devices};

/// The first GPU, or the news that there is none.
fn gpu() -> Option<Gpu> {
    gpu_with(artifacts().expect("artifacts"))
}

fn gpu_with(artifacts: Artifacts) -> Option<Gpu> {
    match Gpu::open(0, artifacts) {
        Ok(gpu) => Some(gpu),
        Err(error) => skip(&error.to_string()),
    }
}

/// Samples of a recording in `assets/demo`.
fn demo(name: &str) -> Vec<f32> {
    decoded(&Path::new("assets/demo").join(name))
}

fn decoded(path: &Path) -> Vec<f32> {
    let go_on = &mut |_| ControlFlow::Continue(());
    audio::decode(path, Channels::Mix, go_on).expect("a recording").samples
}

fn has_gpu() -> bool {
    let usable = devices().map(|all| all.iter().any(|(_, reason)| reason.is_none()));
    usable.unwrap_or(false) || skip::<()>("no usable GPU").is_some()
}

fn skip<T>(reason: &str) -> Option<T> {
    assert!(std::env::var_os("SPEAKRS_APP_REQUIRE_GPU").is_none_or(|v| v != "1"), "{reason}");
    // Not `eprintln!`, which a passing test keeps to itself.
    let _ = writeln!(std::io::stderr(), "SKIPPED, no GPU: {reason}");
    None
}

/// Numbers between -1 and 1 from a linear congruential generator.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> f32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    }

    fn vec(&mut self, len: usize) -> Vec<f32> {
        (0..len).map(|_| self.next()).collect()
    }

    fn below(&mut self, end: usize) -> usize {
        ((f64::from(self.next()) + 1.0) / 2.0 * end as f64).min(end as f64 - 1.0) as usize
    }
}
