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
#[path = "gpu/support.rs"]
mod support;

use fixtures::fixtures;
use speakrs_app::backend::cuda::devices;
use support::{decoded, demo, gpu, gpu_with, skip};

fn has_gpu() -> bool {
    let usable = devices().map(|all| all.iter().any(|(_, reason)| reason.is_none()));
    usable.unwrap_or(false) || skip::<()>("no usable GPU").is_some()
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
