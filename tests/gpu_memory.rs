//! A GPU most of whose memory others hold. Without a GPU these tests say so and pass; with `SPEAKRS_APP_REQUIRE_GPU=1`
//! they fail.
#![cfg(feature = "cuda")]

#[path = "gpu/support.rs"]
mod support;

use speakrs_app::backend::cuda::CudaBackend;
use speakrs_app::backend::cuda::error::CudaError;
use speakrs_app::backend::cuda::launch::{Buffer, Gpu};
use speakrs_app::backend::{Backend, Embeddings, Precision};
use speakrs_app::models::ModelPack;
use speakrs_app::models::embedding::EMBEDDING_DIM;
use speakrs_app::models::windows::{Activity, DEFAULT_STEP_SAMPLES, Windows};
use support::{demo, gpu};

const MIB: usize = 1 << 20;

/// Holds all memory of the GPU but `free` bytes, to within the size of the smallest piece.
fn hold_all_but(gpu: &mut Gpu, free: usize) -> Vec<Buffer> {
    let reserve = gpu.allocate("the reserve", free).expect("an idle GPU");
    let (mut held, mut piece) = (Vec::new(), 16 << 30);
    while piece >= 8 * MIB {
        match gpu.allocate("ballast", piece) {
            Ok(buffer) => held.push(buffer),
            Err(CudaError::Memory { .. }) => piece /= 2,
            Err(error) => panic!("{error}"),
        }
    }
    drop(reserve);
    gpu.finish().expect("nothing to fail");
    held
}

fn diarized(cuda: &CudaBackend, samples: &[f32], windows: &Windows) -> (Activity, [Embeddings; 2]) {
    let go_on = &mut |_| std::ops::ControlFlow::Continue(());
    let mut recording = cuda.recording(samples, windows).expect("a recording");
    let activity = recording.segment(go_on).expect("segmentation");
    let embeddings = [recording.embed(&activity, go_on), recording.embed_shared(&activity, go_on)];
    (activity, embeddings.map(|embeddings| embeddings.expect("embeddings")))
}

fn least_cosine(a: &[f32], b: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(a * b)).sum::<f64>();
    let rows = a.chunks(EMBEDDING_DIM).zip(b.chunks(EMBEDDING_DIM));
    rows.map(|(a, b)| dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()).fold(1.0, f64::min)
}

/// Smaller batches find the same: to the bit in segmentation, within the contract of a precision in embeddings, whose
/// kernels depend on the size of a batch. With less than the smallest batches need, the news is that memory is short.
#[test]
fn short_memory_makes_smaller_batches_and_then_a_clear_refusal() {
    let Some(mut gpu) = gpu() else { return };
    let pack = ModelPack::load(None).expect("bundled models");
    let open = |free: usize, gpu: &mut Gpu| {
        let held = hold_all_but(gpu, free);
        (CudaBackend::new(&pack, 0, Some(Precision::Fp32)), held)
    };
    let samples: Vec<f32> = demo("meeting.flac").into_iter().cycle().take(16_000 * 600).collect();
    let windows = Windows::new(samples.len(), DEFAULT_STEP_SAMPLES);
    let all = CudaBackend::new(&pack, 0, Some(Precision::Fp32)).expect("an idle GPU");
    let (activity, embeddings) = diarized(&all, &samples, &windows);
    drop(all);
    for free in [2048 * MIB, 1024 * MIB] {
        let (cuda, held) = open(free, &mut gpu);
        let (is, values) = diarized(&cuda.expect("room for small batches"), &samples, &windows);
        assert!(is == activity, "{} MiB: another segmentation", free / MIB);
        for (is, expected) in values.iter().zip(&embeddings) {
            let cosine = least_cosine(&is.values, &expected.values);
            println!("{} MiB: least cosine {cosine:.8}", free / MIB);
            assert!(cosine >= 0.999_999, "{} MiB: {cosine}", free / MIB);
        }
        drop(held);
    }
    let (cuda, _held) = open(64 * MIB, &mut gpu);
    match cuda {
        Err(error @ CudaError::Memory { .. }) => println!("64 MiB: {error}"),
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("64 MiB cannot be enough"),
    }
}
