//! Times the embedding network on a GPU: whole passes of the trunk (recorded, replayed), blocks of the shared trunk, and
//! each layer on its own with its share of the floor. One JSON object a line; `tests/bench/trunk.py` runs it beside cuDNN.
//!
//!     cargo run --release --example bench_gpu -- [--layers] [--segmentation]
//!
//! Floors are the longer of products and traffic on one H200: FP32 60, TF32 495, FP16 790 TFLOP/s, 4.3 TB/s.

use std::time::Instant;

use serde_json::json;
use speakrs_app::backend::Precision;
use speakrs_app::backend::cuda::embedder::Embedder;
use speakrs_app::backend::cuda::kernel::{Arithmetic, Family};
use speakrs_app::backend::cuda::launch::{BlockLaunch, ConvLaunch, Epilogue, Gpu};
use speakrs_app::backend::cuda::segmenter::{Part, Segmenter};
use speakrs_app::backend::cuda::{artifacts, error::CudaError, trunk};
use speakrs_app::features::MELS;
use speakrs_app::models::ModelPack;
use speakrs_app::models::windows::DEFAULT_STEP_SAMPLES;

const WINDOW: usize = 998;
const BLOCK: usize = 6_320;
const BYTES_PER_SECOND: f64 = 4.3e12;

fn main() -> anyhow::Result<()> {
    let start = Instant::now();
    let pack = ModelPack::load(None)?;
    let loaded = start.elapsed();
    let gpu = Gpu::open(0, artifacts()?)?;
    let opened = start.elapsed();
    let device = gpu.device().clone();
    let mut embedder = Embedder::new(gpu, &pack.embedding)?;
    embedder.launch_trunk(Precision::Fp16, 1, WINDOW)?;
    embedder.gpu().finish()?;
    let ready = start.elapsed();
    println!(
        "{}",
        json!({"device": device.name, "architecture": device.architecture.to_string(),
               "seconds to load models": loaded.as_secs_f64(), "to open the GPU": (opened - loaded).as_secs_f64(),
               "to the end of the first pass": (ready - opened).as_secs_f64()})
    );
    let only_segmentation = std::env::args().any(|argument| argument == "--segmentation");
    for precision in Precision::ALL.into_iter().filter(|_| !only_segmentation) {
        for (width, batches) in [(WINDOW, &[1, 2, 4, 8, 16, 31, 32][..]), (BLOCK, &[1, 5])] {
            for &batch in batches {
                let us = pass(&mut embedder, precision, batch, width)?;
                println!(
                    "{}",
                    json!({"pass": precision, "width": width, "batch": batch, "us": us / batch as f64,
                           "us per second of audio": us / batch as f64 / width as f64 * 100.0})
                );
            }
        }
    }
    let mut segmenter = Segmenter::new(embedder.gpu(), &pack.segmentation)?;
    let samples: Vec<f32> = (0..16_000 * 400).map(|i| ((i * 7919) % 2003) as f32 / 2003.0 - 0.5).collect();
    let audio = embedder.gpu().upload("samples", &samples)?;
    for count in [1, 8, 32, 64, 132, segmenter.batch()] {
        let part =
            Part { audio: &audio, samples: samples.len(), first: 0, step: DEFAULT_STEP_SAMPLES, count };
        let mut run = || {
            let gpu = embedder.gpu();
            let pending = segmenter.classes(gpu, &[part])?;
            gpu.collect::<u8>(pending).map(drop)
        };
        run()?;
        let us = median(|| {
            let start = Instant::now();
            run()?;
            Ok(start.elapsed().as_secs_f64() * 1e6)
        })?;
        println!("{}", json!({"segmentation": count, "us": us / count as f64}));
    }
    if std::env::args().any(|argument| argument == "--layers") {
        for precision in Precision::ALL {
            for batch in [1, 32] {
                layers(embedder.gpu(), precision, batch)?;
            }
        }
    }
    Ok(())
}

/// Microseconds of one whole pass: the median of 7 rounds of 10.
fn pass(embedder: &mut Embedder, precision: Precision, batch: usize, width: usize) -> Result<f64, CudaError> {
    let features: Vec<f32> = (0..batch * width * MELS).map(|i| (i % 97) as f32 / 50.0 - 1.0).collect();
    embedder.run_trunk(precision, batch, width, |gpu, buffer| gpu.write("features", buffer, &features))?;
    embedder.launch_trunk(precision, batch, width)?;
    median(|| {
        embedder.gpu().finish()?;
        let start = Instant::now();
        for _ in 0..10 {
            embedder.launch_trunk(precision, batch, width)?;
        }
        embedder.gpu().finish()?;
        Ok(start.elapsed().as_secs_f64() * 1e5)
    })
}

/// Every distinct layer or block on its own: 20 launches recorded, replayed 7 times.
fn layers(gpu: &mut Gpu, precision: Precision, batch: usize) -> Result<(), CudaError> {
    let (mut seen, mut all) = (Vec::new(), trunk::plan(gpu.device(), precision, batch, WINDOW)?);
    for step in &all {
        if !seen.contains(&step.op) {
            seen.push(step.op);
        }
    }
    let (mut sum, mut floors) = (0.0, 0.0);
    for op in seen {
        let times = all.iter().filter(|step| step.op == op).count();
        let step = all.iter_mut().find(|step| step.op == op).expect("a layer");
        let (kernel, shape) = (step.rule.kernel, op.shape);
        let bytes = kernel.arithmetic.value_bytes();
        let stem = kernel.family == Family::Stem;
        let input = op.input_len(batch) * if stem { 4 } else { bytes };
        let output = op.output_len(batch) * bytes;
        let x = gpu.allocate("input", input)?;
        let y = gpu.allocate("output", output)?;
        let residual = gpu.allocate("residual", output)?;
        gpu.fill(&x, 0x11)?;
        gpu.fill(&residual, 0x11)?;
        let count = shape.output * shape.input * shape.kernel * shape.kernel;
        let raw: Vec<f32> = (0..count).map(|i| (i % 89) as f32 / 1000.0 - 0.04).collect();
        let raw = gpu.upload("weights", &raw)?;
        let weights = gpu.pack(kernel, shape, &raw)?;
        let bias = gpu.upload("bias", &vec![0.1f32; shape.output])?;
        let overflow = gpu.upload("overflow", &[0u32])?;
        // Half of the layers at stride 1 add a residual; blocks read theirs as the input.
        let adds = shape.stride == 1 && !stem && !op.block;
        let mut us = [0.0; 2];
        for (us, adds) in us.iter_mut().zip([false, adds]) {
            let epilogue = match (adds, shape.kernel) {
                (true, _) => Epilogue::ResidualRelu(&residual),
                (_, 1) => Epilogue::Bias,
                _ => Epilogue::Relu,
            };
            let (x, y, bias, overflow) = (&x, &y, &bias, &overflow);
            let run = |gpu: &mut Gpu| {
                if op.block {
                    let (weights, bias) = ([&weights; 2], [bias; 2]);
                    return gpu.block(&BlockLaunch { kernel, op, batch, x, weights, bias, y, overflow });
                }
                let weights = &weights;
                gpu.conv(&ConvLaunch { kernel, op, batch, x, weights, bias, epilogue, y, overflow })
            };
            run(gpu)?;
            let mut graph = gpu.record(|gpu| (0..20).try_for_each(|_| run(gpu)))?;
            gpu.replay(&mut graph)?;
            *us = median(|| Ok(f64::from(gpu.time(|gpu| gpu.replay(&mut graph))?) * 1e3 / 20.0))?;
        }
        let us = if adds { (us[0] + us[1]) / 2.0 } else { us[0] };
        let flop = 2.0 * op.products(batch) as f64;
        let traffic = (input + output) as f64 + if adds { output as f64 / 2.0 } else { 0.0 };
        let peak = match kernel.arithmetic {
            Arithmetic::Fp32 => 60e12,
            Arithmetic::Tf32x3 => 495e12 / 3.0,
            Arithmetic::Tf32 => 495e12,
            Arithmetic::Fp16 => 790e12,
        };
        let floor = (flop / peak).max(traffic / BYTES_PER_SECOND) * 1e6;
        (sum, floors) = (sum + us * times as f64, floors + floor * times as f64);
        println!(
            "{}",
            json!({"layer": op.to_string(), "times": times, "precision": precision, "batch": batch,
                   "kernel": kernel.entry, "us": us / batch as f64, "TFLOP/s": flop / us / 1e6,
                   "GB/s": traffic / us / 1e3, "share of floor": floor / us})
        );
    }
    let batch_f = batch as f64;
    println!(
        "{}",
        json!({"sum of layers": precision, "batch": batch, "us": sum / batch_f, "floor": floors / batch_f})
    );
    Ok(())
}

fn median(mut measure: impl FnMut() -> Result<f64, CudaError>) -> Result<f64, CudaError> {
    let mut values = (0..7).map(|_| measure()).collect::<Result<Vec<f64>, _>>()?;
    values.sort_by(f64::total_cmp);
    Ok(values[values.len() / 2])
}
