//! The bundled networks against stored outputs of PyTorch.

use speakrs_app::backend::cpu::CpuBackend;
use speakrs_app::features::{Fbank, subtract_mean};
use speakrs_app::models::ModelPack;
use speakrs_app::models::windows::{WINDOW_SAMPLES, Windows};

use crate::support::fixtures::fixtures;
use crate::support::npy;

/// The folder of the reference outputs, or `None` after saying that it is absent.
fn reference(name: &str) -> Option<std::path::PathBuf> {
    fixtures().map(|fixtures| fixtures.join("../models/reference").join(name))
}

fn array(name: &str) -> Vec<f32> {
    npy::load(&reference(name).expect("seen before")).to_f32()
}

fn wave(path: &std::path::Path) -> Vec<f32> {
    let mut reader = hound::WavReader::open(path).expect("reference wave");
    reader.samples::<i16>().map(|s| f32::from(s.expect("sample")) / 32_768.0).collect()
}

fn backend() -> CpuBackend {
    CpuBackend::new(&ModelPack::load(None).expect("bundled models"))
}

fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let dot = |x: &[f32], y: &[f32]| x.iter().zip(y).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum::<f64>();
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

#[test]
fn fbank_equals_torchaudio() {
    for n in 0..2 {
        let Some(path) = reference(&format!("wave{n}.wav")) else { return };
        let mut features = Fbank::new(f32::EPSILON).log_mel(&wave(&path));
        subtract_mean(&mut features);
        let expected = array(&format!("fbank{n}.npy"));
        assert_eq!(features.len(), expected.len());
        let error = features.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        println!("fbank{n}: max error {error:e}");
        assert!(error < 1e-3, "wave{n}: {error}");
    }
}

#[test]
fn segmentation_equals_pytorch() {
    let backend = backend();
    for n in 0..2 {
        let Some(path) = reference(&format!("wave{n}.wav")) else { return };
        let windows = Windows::new(WINDOW_SAMPLES, WINDOW_SAMPLES);
        let scores = backend.log_probabilities(&wave(&path), &windows, 0..1);
        let expected = array(&format!("segmentation{n}.npy"));
        assert_eq!(scores.len(), expected.len());
        let error = scores.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        println!("segmentation{n}: max error {error:e}");
        assert!(error < 1e-3, "wave{n}: {error}");
    }
}

#[test]
fn embeddings_equal_pytorch() {
    let backend = backend();
    for n in 0..2 {
        let Some(_) = reference(&format!("fbank{n}.npy")) else { return };
        let masks: Vec<u8> = array(&format!("mask{n}.npy")).iter().map(|&v| v as u8).collect();
        let masks: Vec<Vec<u8>> = masks.chunks_exact(589).map(<[u8]>::to_vec).collect();
        let embeddings = backend.embed_features(&array(&format!("fbank{n}.npy")), &masks);
        let expected = array(&format!("embedding{n}.npy"));
        assert_eq!(embeddings.len(), expected.len());
        for (a, b) in embeddings.chunks_exact(256).zip(expected.chunks_exact(256)) {
            let cosine = cosine(a, b);
            println!("embedding{n}: 1 - cosine {:e}", 1.0 - cosine);
            assert!(cosine >= 0.99999, "wave{n}: {cosine}");
        }
    }
}
