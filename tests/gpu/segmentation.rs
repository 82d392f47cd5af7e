//! Segmentation and features on the GPU against those of the CPU.

use std::path::Path;

use speakrs_app::backend::Precision;
use speakrs_app::backend::cpu::CpuBackend;
use speakrs_app::backend::cuda::CudaBackend;
use speakrs_app::backend::cuda::features::Features;
use speakrs_app::features::{Fbank, MELS, SHIFT, frames_in, subtract_mean, subtract_sliding_mean};
use speakrs_app::models::ModelPack;
use speakrs_app::models::powerset::decode;
use speakrs_app::models::windows::{DEFAULT_STEP_SAMPLES, WINDOW_SAMPLES, Windows};

use super::{Noise, decoded, demo, fixtures, gpu, has_gpu};

/// Largest difference of log-probabilities, and frames whose class differs.
fn difference(cuda: &CudaBackend, cpu: &CpuBackend, samples: &[f32], windows: &Windows) -> (f32, usize) {
    let is = cuda.log_probabilities(samples, windows, 0..windows.count()).unwrap();
    let should = cpu.log_probabilities(samples, windows, 0..windows.count());
    assert_eq!(is.len(), should.len());
    let largest = is.iter().zip(&should).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    let frames = |scores: &[f32]| decode(scores).chunks_exact(3).map(<[u8]>::to_vec).collect::<Vec<_>>();
    let different = frames(&is).iter().zip(&frames(&should)).filter(|(a, b)| a != b).count();
    assert!(is.iter().all(|v| v.is_finite()));
    (largest, different)
}

/// The class of a frame is the same wherever the CPU's is clear: 1e-3 is a tenth of the margins that flip in practice
/// (C4), and FP32 sums of other orders differ by that much over four layers of 589 steps at the most.
#[test]
fn segmentation_equals_the_cpu_s() {
    if !has_gpu() {
        return;
    }
    let pack = ModelPack::load(None).expect("bundled models");
    let (cpu, cuda) = (CpuBackend::new(&pack), CudaBackend::new(&pack, 0, None).expect("a GPU"));
    let meeting = demo("meeting.flac");
    let long: Vec<f32> = meeting.iter().copied().cycle().take(16_000 * 320 + 77).collect();
    let mut noise = Noise(23);
    let cases: [(&str, Vec<f32>, usize); 7] = [
        ("meeting", meeting.clone(), DEFAULT_STEP_SAMPLES),
        ("a step off the filters' stride", meeting.clone(), 33_333),
        ("a long step", meeting.clone(), WINDOW_SAMPLES),
        ("more windows than a batch", long, DEFAULT_STEP_SAMPLES),
        ("a short recording", meeting[..50_000].to_vec(), DEFAULT_STEP_SAMPLES),
        ("silence", vec![0.0; 200_000], DEFAULT_STEP_SAMPLES),
        ("noise", noise.vec(170_000), DEFAULT_STEP_SAMPLES),
    ];
    for (name, samples, step) in cases {
        let windows = Windows::new(samples.len(), step);
        let (largest, different) = difference(&cuda, &cpu, &samples, &windows);
        println!(
            "{name}: {} windows, largest difference {largest:.1e}, {different} frames differ",
            windows.count()
        );
        assert!(largest < 1e-3 && different == 0, "{name}");
    }
}

/// Recordings of the reference captures and the evaluation, where they are at hand: not one frame differs.
#[test]
fn no_frame_of_the_evaluation_recordings_differs() {
    let Some(root) = fixtures() else { return };
    if !has_gpu() {
        return;
    }
    let pack = ModelPack::load(None).expect("bundled models");
    let (cpu, cuda) = (CpuBackend::new(&pack), CudaBackend::new(&pack, 0, None).expect("a GPU"));
    let audio = |path: &Path| path.extension().is_some_and(|e| e == "mp3" || e == "flac" || e == "wav");
    let (mut recordings, mut windows_seen, mut worst, mut all) = (0, 0, 0f32, 0);
    for folder in ["eval", "parity"] {
        let files = walkdir::WalkDir::new(root.join(folder)).sort_by_file_name().into_iter().flatten();
        for file in files.filter(|file| audio(file.path())) {
            let samples = decoded(file.path());
            let windows = Windows::new(samples.len(), DEFAULT_STEP_SAMPLES);
            let (largest, different) = difference(&cuda, &cpu, &samples, &windows);
            (recordings, windows_seen) = (recordings + 1, windows_seen + windows.count());
            (worst, all) = (worst.max(largest), all + different);
            if different > 0 {
                println!("{}: {different} frames differ", file.path().display());
            }
        }
    }
    println!(
        "{recordings} recordings, {windows_seen} windows: largest difference {worst:.1e}, {all} frames differ"
    );
    assert_eq!(all, 0);
}

/// What stands beside a window in its batch does not matter.
#[test]
fn a_window_s_segmentation_does_not_depend_on_its_batch() {
    if !has_gpu() {
        return;
    }
    let pack = ModelPack::load(None).expect("bundled models");
    let cuda = CudaBackend::new(&pack, 0, Some(Precision::Fp32)).expect("a GPU");
    let samples = demo("meeting.flac");
    let windows = Windows::new(samples.len(), DEFAULT_STEP_SAMPLES);
    let together = cuda.log_probabilities(&samples, &windows, 0..windows.count()).unwrap();
    for c in 0..windows.count() {
        let alone = cuda.log_probabilities(&samples, &windows, c..c + 1).unwrap();
        let beside = &together[c * alone.len()..][..alone.len()];
        assert!(alone.iter().map(|v| v.to_bits()).eq(beside.iter().map(|v| v.to_bits())), "window {c}");
    }
}

#[test]
fn features_equal_the_cpu_s() {
    let Some(mut gpu) = gpu() else { return };
    let mut samples = demo("meeting.flac");
    samples.extend(vec![0.0; 1000]);
    let span = frames_in(WINDOW_SAMPLES);
    for floor in [f32::EPSILON, 10.0] {
        let fbank = Fbank::new(floor);
        let mut features = Features::new(&mut gpu, &fbank).unwrap();
        // The recording ends within the frames: zeros follow.
        let frames = frames_in(samples.len()) + 50;
        let mut padded = samples.clone();
        padded.resize((frames - 1) * SHIFT + 400, 0.0);
        let log_mel = fbank.log_mel(&padded);
        features.load(&mut gpu, &samples, frames).unwrap();

        let starts = [0, 100, 777, frames - span];
        let out = gpu.allocate("features", 4 * starts.len() * span * MELS).unwrap();
        features.windows(&mut gpu, &starts, span, &out).unwrap();
        let is: Vec<f32> = gpu.read("features", &out, starts.len() * span * MELS).unwrap();
        let should = starts.iter().flat_map(|&start| {
            let mut rows = log_mel[start * MELS..(start + span) * MELS].to_vec();
            subtract_mean(&mut rows);
            rows
        });
        let largest = is.iter().zip(should).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        println!("floor {floor}: windows, largest difference {largest:.1e}");
        assert!(largest < 1e-3, "{largest}");

        let (starts, rows) = ([0, 333, frames - 1500], 1500);
        let out = gpu.allocate("features", 4 * starts.len() * rows * MELS).unwrap();
        features.blocks(&mut gpu, &starts, rows, span, &out).unwrap();
        let is: Vec<f32> = gpu.read("features", &out, starts.len() * rows * MELS).unwrap();
        let should =
            starts.iter().flat_map(|&start| subtract_sliding_mean(&log_mel, start..start + rows, span));
        let largest = is.iter().zip(should).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        println!("floor {floor}: blocks, largest difference {largest:.1e}");
        assert!(largest < 1e-3, "{largest}");
        let beyond = [frames - span + 1];
        assert!(features.windows(&mut gpu, &beyond, span, &out).is_err());
    }
}
