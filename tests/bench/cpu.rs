//! Milliseconds a window of the CPU backend's two networks, and of the shared trunk a second of audio, as JSON lines.
//!
//! `cargo run --release --example bench_cpu [-- REPETITIONS]`; threads by `RAYON_NUM_THREADS`.

use std::ops::ControlFlow;
use std::time::Instant;

use speakrs_app::backend::Backend;
use speakrs_app::backend::cpu::CpuBackend;
use speakrs_app::models::ModelPack;
use speakrs_app::models::windows::{Activity, DEFAULT_STEP_SAMPLES, LOCAL_SPEAKERS, WINDOW_FRAMES, Windows};

fn main() -> anyhow::Result<()> {
    let repetitions: usize = std::env::args().nth(1).map_or(Ok(7), |a| a.parse())?;
    let backend = CpuBackend::new(&ModelPack::load(None)?);
    // Noise with a slow envelope: the arithmetic does not depend on the signal.
    let mut state = 1u32;
    let samples: Vec<f32> = (0..16_000 * 120)
        .map(|i| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let noise = (state >> 8) as f32 / (1 << 24) as f32 - 0.5;
            noise * 0.2 * (1.0 + (i as f32 * 2e-4).sin())
        })
        .collect();
    let windows = Windows::new(samples.len(), DEFAULT_STEP_SAMPLES);
    let speech = Activity::new(vec![1; windows.count() * WINDOW_FRAMES * LOCAL_SPEAKERS]);
    let few = Windows::new(16_000 * 13, DEFAULT_STEP_SAMPLES);
    let few_speech = Activity::new(vec![1; few.count() * WINDOW_FRAMES * LOCAL_SPEAKERS]);
    let go_on = &mut |_| ControlFlow::Continue(());
    median("segmentation", "ms_per_window", repetitions, windows.count() as f64, || {
        backend.recording(&samples, &windows).unwrap().segment(go_on).map(drop)
    })?;
    let go_on = &mut |_| ControlFlow::Continue(());
    median("trunk", "ms_per_window", repetitions, few.count() as f64, || {
        backend.recording(&samples[..few.samples()], &few).unwrap().embed(&few_speech, go_on).map(drop)
    })?;
    let go_on = &mut |_| ControlFlow::Continue(());
    median("shared_trunk", "ms_per_second_of_audio", repetitions, 120.0, || {
        backend.recording(&samples, &windows).unwrap().embed_shared(&speech, go_on).map(drop)
    })
}

fn median<E: std::error::Error + Send + Sync + 'static>(
    what: &str,
    unit: &str,
    repetitions: usize,
    items: f64,
    mut run: impl FnMut() -> Result<(), E>,
) -> anyhow::Result<()> {
    run()?;
    let mut times = Vec::new();
    for _ in 0..repetitions {
        let start = Instant::now();
        run()?;
        times.push(start.elapsed().as_secs_f64() * 1000.0 / items);
    }
    times.sort_by(f64::total_cmp);
    let (low, mid, high) = (times[0], times[times.len() / 2], times[times.len() - 1]);
    let threads = rayon::current_num_threads();
    println!(
        "{{\"what\":\"{what}\",\"{unit}\":{mid:.3},\"min\":{low:.3},\"max\":{high:.3},\"threads\":{threads}}}"
    );
    Ok(())
}
