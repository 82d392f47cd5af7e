//! Whole-model checks: embeddings on the GPU against those of the CPU.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::LazyLock;

use speakrs_app::backend::cpu::CpuBackend;
use speakrs_app::backend::cuda::{CudaBackend, embedder::BATCH};
use speakrs_app::backend::{Backend, Precision};
use speakrs_app::models::ModelPack;
use speakrs_app::models::embedding::EMBEDDING_DIM;
use speakrs_app::models::windows::{Activity, DEFAULT_STEP_SAMPLES, LOCAL_SPEAKERS, Windows};

use super::{decoded, demo, fixtures, has_gpu};

static PACK: LazyLock<ModelPack> = LazyLock::new(|| ModelPack::load(None).expect("bundled models"));
static CPU: LazyLock<CpuBackend> = LazyLock::new(|| CpuBackend::new(&PACK));

/// Least cosine between an embedding and the CPU's.
fn contract(precision: Precision) -> f64 {
    match precision {
        Precision::Fp32 => 0.999_999,
        Precision::Tf32 | Precision::Fp16 => 0.999_9,
    }
}

fn cuda(precision: Precision) -> CudaBackend {
    CudaBackend::new(&PACK, 0, Some(precision)).expect("a GPU")
}

fn least_cosine(a: &[f32], b: &[f32]) -> f64 {
    assert_eq!(a.len(), b.len());
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum::<f64>();
    let cosine = |(a, b): (&[f32], &[f32])| dot(a, b) / (dot(a, a) * dot(b, b)).sqrt();
    a.chunks_exact(EMBEDDING_DIM).zip(b.chunks_exact(EMBEDDING_DIM)).map(cosine).fold(1.0, f64::min)
}

fn go_on(_: f32) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn activity(samples: &[f32], windows: &Windows) -> Activity {
    CPU.segment(samples, windows, &mut go_on).expect("runs")
}

#[test]
fn embeddings_equal_the_cpu_s_in_every_precision_and_mode() {
    if !has_gpu() {
        return;
    }
    let samples = &demo("meeting.flac");
    let windows = Windows::new(samples.len(), DEFAULT_STEP_SAMPLES);
    let activity = activity(samples, &windows);
    let accurate = CPU.embed(samples, &windows, &activity, &mut go_on).unwrap().values;
    let fast = CPU.embed_shared(samples, &windows, &activity, &mut go_on).unwrap().values;
    for precision in Precision::ALL {
        let cuda = cuda(precision);
        let is = cuda.embed(samples, &windows, &activity, &mut go_on).unwrap();
        assert_eq!(is.precision, precision);
        let cosine = least_cosine(&is.values, &accurate);
        println!("{precision} accurate: least cosine {cosine:.8}");
        assert!(cosine >= contract(precision), "{precision} {cosine}");
        let is = cuda.embed_shared(samples, &windows, &activity, &mut go_on).unwrap();
        let cosine = least_cosine(&is.values, &fast);
        println!("{precision} fast: least cosine {cosine:.8}");
        assert!(cosine >= contract(precision), "{precision} {cosine}");
        // The same again, bit by bit: the first run launches, later ones replay a recording.
        for _ in 0..2 {
            let again = cuda.embed_shared(samples, &windows, &activity, &mut go_on).unwrap();
            assert!(again.values.iter().map(|v| v.to_bits()).eq(is.values.iter().map(|v| v.to_bits())));
        }
    }
}

/// All windows of the evaluation recordings, where they are at hand.
#[test]
fn embeddings_of_the_evaluation_recordings_keep_the_contract() {
    let Some(eval) = fixtures().map(|root| root.join("eval")).filter(|eval| eval.is_dir()) else { return };
    if !has_gpu() {
        return;
    }
    let backends = Precision::ALL.map(cuda);
    let (mut windows_seen, mut least) = (0, [[1f64; 2]; 3]);
    let files =
        walkdir::WalkDir::new(eval).sort_by_file_name().into_iter().map(|entry| entry.expect("readable"));
    let audio = |path: &Path| path.extension().is_some_and(|e| e == "mp3" || e == "flac" || e == "wav");
    for file in files.filter(|file| audio(file.path())) {
        let samples = &decoded(file.path());
        let windows = Windows::new(samples.len(), DEFAULT_STEP_SAMPLES);
        let activity = activity(samples, &windows);
        let accurate = CPU.embed(samples, &windows, &activity, &mut go_on).unwrap().values;
        let fast = CPU.embed_shared(samples, &windows, &activity, &mut go_on).unwrap().values;
        windows_seen += windows.count();
        for (cuda, least) in backends.iter().zip(&mut least) {
            let is = cuda.embed(samples, &windows, &activity, &mut go_on).unwrap().values;
            least[0] = least[0].min(least_cosine(&is, &accurate));
            let is = cuda.embed_shared(samples, &windows, &activity, &mut go_on).unwrap().values;
            least[1] = least[1].min(least_cosine(&is, &fast));
        }
    }
    for (precision, [accurate, fast]) in Precision::ALL.into_iter().zip(least) {
        println!("{precision}, {windows_seen} windows: least cosine {accurate:.8} accurate, {fast:.8} fast");
        assert!(accurate.min(fast) >= contract(precision), "{precision}");
    }
}

/// Many windows and blocks: full batches, tails, windows that straddle blocks and batches.
#[test]
fn long_recordings_pool_across_blocks_and_batches() {
    if !has_gpu() {
        return;
    }
    // A recording of 7.5 minutes: more blocks than a batch holds, and windows off the block grid.
    let samples: Vec<f32> = demo("meeting.flac").iter().copied().cycle().take(16_000 * 450 + 1234).collect();
    let windows = Windows::new(samples.len(), 3 * DEFAULT_STEP_SAMPLES + 161);
    let speech = Activity::new(vec![1; windows.count() * 589 * LOCAL_SPEAKERS]);
    let fast = CPU.embed_shared(&samples, &windows, &speech, &mut go_on).unwrap().values;
    for precision in [Precision::Fp32, Precision::Fp16] {
        let is = cuda(precision).embed_shared(&samples, &windows, &speech, &mut go_on).unwrap().values;
        let cosine = least_cosine(&is, &fast);
        println!("{precision} {} windows: least cosine {cosine:.8}", windows.count());
        assert!(cosine >= contract(precision), "{precision} {cosine}");
    }
}

/// What stands beside a window in its batch does not matter, nor how large the batch is.
#[test]
fn a_window_s_embedding_does_not_depend_on_its_batch() {
    if !has_gpu() {
        return;
    }
    let samples = demo("meeting.flac");
    let step = DEFAULT_STEP_SAMPLES / 4;
    let all = Windows::new(samples.len().min(160_000 + (BATCH + 2) * step), step);
    let speech = |windows: &Windows| Activity::new(vec![1; windows.count() * 589 * LOCAL_SPEAKERS]);
    for precision in Precision::ALL {
        let cuda = cuda(precision);
        let together = cuda.embed(&samples[..all.samples()], &all, &speech(&all), &mut go_on).unwrap().values;
        let mut different = 0;
        for c in 0..BATCH + 3 {
            let start = all.start_sample(c);
            let alone = Windows::new(160_000, DEFAULT_STEP_SAMPLES);
            let window = all.cut(&samples[..all.samples()], c);
            let values = cuda.embed(&window, &alone, &speech(&alone), &mut go_on).unwrap().values;
            let row = LOCAL_SPEAKERS * EMBEDDING_DIM;
            let beside = &together[c * row..(c + 1) * row];
            different +=
                usize::from(!values.iter().map(|v| v.to_bits()).eq(beside.iter().map(|v| v.to_bits())));
            assert!(
                least_cosine(&values, beside) >= contract(precision),
                "{precision} window {c} at {start}"
            );
        }
        println!("{precision}: {different} of {} windows differ in bits alone", BATCH + 3);
    }
}

#[test]
fn values_beyond_fp16_are_computed_again_in_a_wider_precision() {
    if !has_gpu() {
        return;
    }
    let mut pack = ModelPack::load(None).expect("bundled models");
    // The stem's output grows beyond 65,504; what follows takes it back.
    let scale = 1e6;
    pack.embedding.stem.weight.iter_mut().chain(&mut pack.embedding.stem.bias).for_each(|v| *v *= scale);
    let noise: Vec<f32> = {
        let mut noise = super::Noise(3);
        noise.vec(16_000 * 25)
    };
    let windows = Windows::new(noise.len(), DEFAULT_STEP_SAMPLES);
    let speech = Activity::new(vec![1; windows.count() * 589 * LOCAL_SPEAKERS]);
    let cuda = CudaBackend::new(&pack, 0, Some(Precision::Fp16)).expect("a GPU");
    for shared in [false, true] {
        let embeddings = match shared {
            false => cuda.embed(&noise, &windows, &speech, &mut go_on),
            true => cuda.embed_shared(&noise, &windows, &speech, &mut go_on),
        }
        .unwrap();
        assert_eq!(embeddings.precision, Precision::Tf32);
        assert!(embeddings.values.iter().all(|v| v.is_finite()));
    }
}

#[test]
fn work_stops_when_asked_to() {
    if !has_gpu() {
        return;
    }
    let windows = Windows::new(16_000 * 200, DEFAULT_STEP_SAMPLES);
    let speech = Activity::new(vec![1; windows.count() * 589 * LOCAL_SPEAKERS]);
    let samples = vec![0.1; 16_000 * 200];
    let mut calls = 0;
    let result = cuda(Precision::Fp16).embed(&samples, &windows, &speech, &mut |_| {
        calls += 1;
        ControlFlow::Break(())
    });
    assert!(matches!(result, Err(speakrs_app::backend::BackendError::Cancelled)));
    assert_eq!(calls, 1);
}
