//! Times an ONNX model in rten: `bench-rten MODEL.onnx 1x998x80 REPETITIONS`.
//!
//! Prints the milliseconds of every run as a JSON list. Threads by `RTEN_NUM_THREADS`.

use std::time::Instant;

use rten::ModelOptions;
use rten_tensor::Tensor;
use rten_tensor::prelude::*;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let usage = "usage: bench-rten MODEL.onnx SHAPE REPETITIONS";
    let [path, shape, repetitions] =
        std::env::args().skip(1).collect::<Vec<_>>().try_into().map_err(|_| usage)?;
    let shape = shape.split('x').map(str::parse).collect::<Result<Vec<usize>, _>>()?;
    let repetitions: usize = repetitions.parse()?;
    let mut options = ModelOptions::with_all_ops();
    options.prepack_weights(true);
    let model = options.load_file(&path)?;

    let mut state = 1_u32;
    let noise = (0..shape.iter().product()).map(|_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 24) as f32 - 0.5
    });
    let input: Tensor<f32> = Tensor::from_data(shape.as_slice(), noise.collect::<Vec<_>>());

    let mut times = Vec::new();
    for _ in 0..=repetitions {
        let start = Instant::now();
        model.run_one(input.view().into(), None)?;
        times.push(start.elapsed().as_secs_f64() * 1000.0);
    }
    // The first run warms up.
    println!("{:?}", &times[1..]);
    Ok(())
}
