//! Every convolution kernel against sums in FP64, on noise and on the activations of the trunk.

use std::collections::BTreeMap;

use half::f16;
use rayon::prelude::*;
use speakrs_app::backend::Precision;
use speakrs_app::backend::cuda::dispatch::choose;
use speakrs_app::backend::cuda::kernel::{Arithmetic, Family, KERNELS, Kernel, Op};
use speakrs_app::backend::cuda::launch::{BlockLaunch, Buffer, ConvLaunch, Epilogue, Gpu, Packed};
use speakrs_app::backend::{Backend, cpu::CpuBackend};
use speakrs_app::models::ModelPack;
use speakrs_app::models::embedding::{Conv, ConvShape, EmbeddingWeights, convolutions};

use super::{Noise, demo, gpu};
const BATCHES: [usize; 6] = [1, 4, 7, 32, 33, 64];
/// Outputs of a layer that are computed again in FP64; every region of the map, and corners always.
const SAMPLES: usize = 400;

/// One layer or block with its input `[height, width, channels]` for each of a few windows, which fill a batch in turn.
struct Case {
    name: String,
    op: Op,
    conv: Conv,
    /// The second convolution of a block.
    second: Option<Conv>,
    inputs: Vec<Vec<f32>>,
    residual: bool,
}

/// `[height, width, channels]` to the units of a map.
fn to_map(rows: &[f32], op: &Op, channels: usize, arithmetic: Arithmetic, stem: bool) -> Vec<u8> {
    let (height, width) = (op.height, op.width);
    if stem {
        // Features are in time order.
        let at = |t: usize, mel: usize| rows[mel * width + t].to_le_bytes();
        return (0..width).flat_map(|t| (0..height).flat_map(move |mel| at(t, mel))).collect();
    }
    let unit = 16 / arithmetic.value_bytes();
    let mut bytes = Vec::with_capacity(rows.len() * arithmetic.value_bytes());
    for group in 0..channels / unit {
        for pixel in 0..height * width {
            for v in &rows[pixel * channels + group * unit..][..unit] {
                match arithmetic {
                    Arithmetic::Fp16 => bytes.extend(f16::from_f32(*v).to_le_bytes()),
                    _ => bytes.extend(v.to_le_bytes()),
                }
            }
        }
    }
    bytes
}

/// The value at `channel`, `pixel` of a map of `pixels` pixels.
fn value(map: &[u8], channel: usize, pixel: usize, pixels: usize, arithmetic: Arithmetic) -> f32 {
    let bytes = arithmetic.value_bytes();
    let unit = 16 / bytes;
    let at = ((channel / unit * pixels + pixel) * unit + channel % unit) * bytes;
    match arithmetic {
        Arithmetic::Fp16 => f16::from_le_bytes(map[at..at + 2].try_into().unwrap()).to_f32(),
        _ => f32::from_le_bytes(map[at..at + 4].try_into().unwrap()),
    }
}

/// Sum and sum of magnitudes, in FP64, of the products behind one output.
fn products(case: &Case, input: &[f32], half: bool, channel: usize, row: usize, col: usize) -> (f64, f64) {
    let ConvShape { kernel, stride, input: channels, .. } = case.op.shape;
    let round = |v: f32| f64::from(if half { f16::from_f32(v).to_f32() } else { v });
    let (mut sum, mut magnitude) =
        (f64::from(case.conv.bias[channel]), f64::from(case.conv.bias[channel].abs()));
    for ky in 0..kernel {
        for kx in 0..kernel {
            let (y, x) = (row * stride + ky, col * stride + kx);
            let (y, x) = (y.wrapping_sub(kernel / 2), x.wrapping_sub(kernel / 2));
            if y >= case.op.height || x >= case.op.width {
                continue;
            }
            for c in 0..channels {
                let w = case.conv.weight[((channel * channels + c) * kernel + ky) * kernel + kx];
                let product = round(input[(y * case.op.width + x) * channels + c]) * f64::from(w);
                sum += product;
                magnitude += product.abs();
            }
        }
    }
    (sum, magnitude)
}

/// Output of a block in FP64 and the bound of its error: the second convolution adds up the errors of the map between.
fn of_block(case: &Case, input: &[f32], arithmetic: Arithmetic, channel: usize, pixel: usize) -> (f64, f64) {
    let second = case.second.as_ref().expect("a block");
    let ConvShape { kernel, input: channels, .. } = case.op.shape;
    let half = arithmetic == Arithmetic::Fp16;
    let length = channels * kernel * kernel;
    let (row, col) = (pixel / case.op.width, pixel % case.op.width);
    let v = input[pixel * channels + channel];
    let v = f64::from(if half { f16::from_f32(v).to_f32() } else { v });
    let mut sum = f64::from(second.bias[channel]) + v;
    let (mut magnitude, mut error) = (f64::from(second.bias[channel].abs()) + v.abs(), 0.0);
    for (ky, kx) in (0..kernel).flat_map(|ky| (0..kernel).map(move |kx| (ky, kx))) {
        let (y, x) = ((row + ky).wrapping_sub(kernel / 2), (col + kx).wrapping_sub(kernel / 2));
        if y >= case.op.height || x >= case.op.width {
            continue;
        }
        for c in 0..channels {
            let w = f64::from(second.weight[((channel * channels + c) * kernel + ky) * kernel + kx]);
            let (hidden, of_hidden) = products(case, input, half, c, y, x);
            let (hidden, wrong) = (hidden.max(0.0), bound(arithmetic, length, of_hidden));
            sum += hidden * w;
            magnitude += (hidden + wrong) * w.abs();
            error += wrong * w.abs();
        }
    }
    (sum.max(0.0), error + bound(arithmetic, length, magnitude))
}

/// Bound of the error for a sum of `magnitude`: the roundoff of both operands; of the sum, which tensor cores truncate
/// at every step of 8 products; and of the output.
fn bound(arithmetic: Arithmetic, length: usize, magnitude: f64) -> f64 {
    let power = |exponent: i32| 2f64.powi(exponent);
    let (roundoff, steps) = match arithmetic {
        Arithmetic::Fp32 => (power(-24), length as f64),
        Arithmetic::Tf32x3 => (power(-21), length as f64 / 8.0 * 3.0),
        Arithmetic::Tf32 => (power(-10), length as f64 / 8.0),
        // The inputs are rounded already.
        Arithmetic::Fp16 => (power(-11), length as f64 / 8.0),
    };
    let output = if arithmetic == Arithmetic::Fp16 { magnitude * power(-11) + power(-24) } else { 0.0 };
    magnitude * (2.0 * roundoff + (steps + 2.0) * power(-23)) + output
}

/// The maps of a case in one arithmetic's layout.
struct Maps {
    inputs: Vec<Vec<u8>>,
    residuals: Vec<Vec<u8>>,
}

impl Maps {
    fn new(case: &Case, arithmetic: Arithmetic) -> Self {
        let (op, shape) = (case.op, case.op.shape);
        let out = Op { height: op.height_out(), width: op.width_out(), ..op };
        let mut noise = Noise(11);
        let input = |rows: &Vec<f32>| to_map(rows, &op, shape.input, arithmetic, shape.input == 1);
        let mut residual = || to_map(&noise.vec(op.output_len(1)), &out, shape.output, arithmetic, false);
        Self {
            inputs: case.inputs.iter().map(input).collect(),
            residuals: case.inputs.iter().map(|_| residual()).collect(),
        }
    }
}

/// A buffer with `maps` in turn for `batch` windows.
fn repeated(gpu: &mut Gpu, maps: &[Vec<u8>], batch: usize) -> Buffer {
    let len = maps[0].len();
    let buffer = gpu.allocate("maps", batch * len).unwrap();
    for (window, map) in maps.iter().enumerate().take(batch) {
        gpu.write("a map", &buffer.part(window * len, len), map).unwrap();
    }
    for window in maps.len()..batch {
        let (from, to) = (window % maps.len() * len, window * len);
        gpu.copy(&buffer.part(from, len), &buffer.part(to, len)).unwrap();
    }
    buffer
}

/// The block whose first convolution is `first`.
fn block<'a>(first: &ConvLaunch<'a>, weights: &'a Packed, bias: &'a Buffer) -> BlockLaunch<'a> {
    let ConvLaunch { kernel, op, batch, x, y, overflow, .. } = *first;
    let (weights, bias) = ([first.weights, weights], [first.bias, bias]);
    BlockLaunch { kernel, op, batch, x, weights, bias, y, overflow }
}

/// Runs `kernel` on `batch` windows; returns the largest error over its bound.
fn check(gpu: &mut Gpu, kernel: &'static Kernel, case: &Case, maps: &Maps, batch: usize) -> f64 {
    let (op, shape, arithmetic) = (case.op, case.op.shape, kernel.arithmetic);
    let x = repeated(gpu, &maps.inputs, batch);
    let residual = repeated(gpu, &maps.residuals, batch);
    let weights = gpu.upload("weights", &case.conv.weight).unwrap();
    let packed = gpu.pack(kernel, shape, &weights).unwrap();
    let bias = gpu.upload("bias", &case.conv.bias).unwrap();
    let second = case.second.as_ref().map(|conv| {
        let weights = gpu.upload("weights", &conv.weight).unwrap();
        (gpu.pack(kernel, shape, &weights).unwrap(), gpu.upload("bias", &conv.bias).unwrap())
    });
    let overflow = gpu.upload("overflow", &[0u32]).unwrap();
    let len = op.output_len(batch) * arithmetic.value_bytes();
    let y = gpu.allocate("output", len).unwrap();
    let epilogue = if case.residual { Epilogue::ResidualRelu(&residual) } else { Epilogue::Relu };
    let launch = ConvLaunch {
        kernel,
        op,
        batch,
        x: &x,
        weights: &packed,
        bias: &bias,
        epilogue,
        y: &y,
        overflow: &overflow,
    };
    let mut run = || -> Vec<u8> {
        // NaN in either precision: what is not written shows.
        gpu.fill(&y, 0xff).unwrap();
        match &second {
            Some((weights, bias)) => gpu.block(&block(&launch, weights, bias)),
            None => gpu.conv(&launch),
        }
        .unwrap();
        assert_eq!(gpu.read::<u32>("overflow", &overflow, 1).unwrap(), [0]);
        gpu.read("output", &y, len).unwrap()
    };
    let (first, again) = (run(), run());
    assert!(first == again, "{} {} batch {batch}: a repeat differs", kernel.entry, case.name);

    // The same input gives the same bytes wherever it stands in a batch.
    let windows: Vec<&[u8]> = first.chunks_exact(len / batch).collect();
    let distinct = batch.min(maps.inputs.len());
    for (window, map) in windows.iter().enumerate().skip(distinct) {
        assert!(*map == windows[window % distinct], "{} {} window {window}", kernel.entry, case.name);
    }
    let errors = windows[..distinct].par_iter().enumerate().map(|(window, map)| {
        let not_a_number = match arithmetic {
            Arithmetic::Fp16 => map.chunks_exact(2).any(|v| f16::from_le_bytes([v[0], v[1]]).is_nan()),
            _ => map.chunks_exact(4).any(|v| f32::from_le_bytes(v.try_into().unwrap()).is_nan()),
        };
        assert!(!not_a_number, "{} {} batch {batch}: an output is missing", kernel.entry, case.name);
        errors(kernel, case, &maps.residuals[window], window, map)
    });
    errors.reduce(|| 0.0, f64::max)
}

/// Largest error over its bound among some outputs of one window.
fn errors(kernel: &Kernel, case: &Case, residual: &[u8], window: usize, map: &[u8]) -> f64 {
    let (op, shape, arithmetic) = (case.op, case.op.shape, kernel.arithmetic);
    let stem = kernel.family == Family::Stem;
    let (width, pixels) = (op.width_out(), op.height_out() * op.width_out());
    let mut noise = Noise(17);
    let edges = [0, width - 1, pixels - width, pixels - 1];
    let inside: Vec<usize> = (0..SAMPLES).map(|_| noise.below(pixels)).collect();
    let places: Vec<(usize, usize)> =
        edges.into_iter().chain(inside).map(|pixel| (pixel, noise.below(shape.output))).collect();
    let error = |&(pixel, channel): &(usize, usize)| {
        let is = f64::from(value(map, channel, pixel, pixels, arithmetic));
        if case.op.block {
            let (should, allowed) = of_block(case, &case.inputs[window], arithmetic, channel, pixel);
            return (is - should).abs() / allowed;
        }
        let half = arithmetic == Arithmetic::Fp16 && !stem;
        let (row, col) = (pixel / width, pixel % width);
        let (mut sum, mut magnitude) = products(case, &case.inputs[window], half, channel, row, col);
        if case.residual {
            let v = f64::from(value(residual, channel, pixel, pixels, arithmetic));
            (sum, magnitude) = (sum + v, magnitude + v.abs());
        }
        let length = shape.input * shape.kernel * shape.kernel;
        let allowed = match (stem, arithmetic) {
            (true, Arithmetic::Fp16) => magnitude * 2f64.powi(-10) + 2f64.powi(-24),
            (true, _) => bound(Arithmetic::Fp32, length, magnitude),
            _ => bound(arithmetic, length, magnitude),
        };
        (is - sum.max(0.0)).abs() / allowed
    };
    places.par_iter().map(error).reduce(|| 0.0, f64::max)
}

/// All 36 convolutions of the bundled model with the activations that a recording gives.
fn layers(weights: &EmbeddingWeights, real: Option<&[f32]>) -> Vec<Case> {
    let blocks = weights.blocks.iter().flat_map(|block| {
        [Some(&block.conv1), block.shortcut.as_ref(), Some(&block.conv2)].into_iter().flatten()
    });
    let convs = std::iter::once(&weights.stem).chain(blocks);
    let mut noise = Noise(5);
    let trace = std::sync::Mutex::new(std::collections::HashMap::<String, Vec<f32>>::new());
    if let Some(samples) = real {
        let cpu = CpuBackend::new(&ModelPack::load(None).expect("bundled models"));
        cpu.trace(samples, &|name, _, values| {
            trace.lock().unwrap().insert(name.to_owned(), values.to_vec());
        })
        .expect("runs");
    }
    let trace = trace.into_inner().unwrap();
    convolutions()
        .into_iter()
        .zip(convs)
        .map(|((name, shape, height), conv)| {
            let op = Op::conv(shape, height, 998usize.div_ceil(80 / height));
            assert_eq!(shape, conv.shape, "{name}");
            let block = |name: &str| name[5..].split('.').next().unwrap().parse::<usize>().unwrap();
            let real_input = || match name.as_str() {
                "stem" => transposed(&trace["features"], 80),
                n if n.ends_with("conv2") => trace[&n.replace("conv2", "conv1")].clone(),
                n if block(n) == 0 => trace["stem"].clone(),
                n => trace[&format!("block{}", block(n) - 1)].clone(),
            };
            let (inputs, conv) = match real {
                Some(_) => (vec![real_input()], conv.clone()),
                None => {
                    let scale = 1.0 / ((shape.input * shape.kernel * shape.kernel) as f32).sqrt();
                    let weight = noise.vec(conv.weight.len()).into_iter().map(|v| v * scale).collect();
                    let inputs = (0..2).map(|_| noise.vec(op.input_len(1))).collect();
                    (inputs, Conv { shape, weight, bias: noise.vec(shape.output) })
                }
            };
            Case { residual: name.ends_with("conv2"), name, op, conv, second: None, inputs }
        })
        .collect()
}

/// The blocks of 32 channels among `layers`.
fn blocks(layers: &[Case]) -> Vec<Case> {
    let of_32 = |case: &Case| (case.op.shape.input, case.op.shape.output) == (32, 32);
    let pairs = layers.windows(2).filter(|pair| of_32(&pair[0]) && !pair[0].residual);
    pairs
        .map(|pair| Case {
            name: pair[0].name.replace(".conv1", ""),
            op: pair[0].op.twice(),
            conv: pair[0].conv.clone(),
            second: Some(pair[1].conv.clone()),
            inputs: pair[0].inputs.clone(),
            residual: false,
        })
        .collect()
}

/// `[rows, columns]` to `[columns, rows]`.
fn transposed(values: &[f32], columns: usize) -> Vec<f32> {
    let rows = values.len() / columns;
    (0..values.len()).map(|i| values[i % rows * columns + i / rows]).collect()
}

/// Both layouts of maps.
const LAYOUTS: [Arithmetic; 2] = [Arithmetic::Fp32, Arithmetic::Fp16];

/// Every kernel that runs here on every case that it computes.
fn check_all(gpu: &mut Gpu, cases: &[Case], batches: &[usize]) {
    let mut worst = BTreeMap::<&str, (usize, f64, String)>::new();
    for case in cases {
        for layout in LAYOUTS {
            let maps = Maps::new(case, layout);
            for kernel in KERNELS.iter().filter(|k| k.arithmetic.value_bytes() == layout.value_bytes()) {
                if kernel.check(gpu.device(), &case.op).is_err() {
                    continue;
                }
                for &batch in batches {
                    let error = check(gpu, kernel, case, &maps, batch);
                    let entry = worst.entry(kernel.entry).or_default();
                    entry.0 += 1;
                    if error > entry.1 {
                        (entry.1, entry.2) = (error, format!("{} batch {batch}", case.name));
                    }
                }
            }
        }
    }
    for (entry, (checks, error, case)) in &worst {
        println!("{entry:24} {checks:3} checks, largest error {error:.3} of its bound ({case})");
    }
    println!("{} checks", worst.values().map(|(checks, ..)| checks).sum::<usize>());
    assert!(worst.values().all(|(_, error, _)| *error <= 1.0));
}

#[test]
fn every_kernel_is_within_its_bound_on_noise() {
    let Some(mut gpu) = gpu() else { return };
    let pack = ModelPack::load(None).expect("bundled models");
    // Layers of the same shape differ in their random numbers only: one of each shape.
    let mut cases = layers(&pack.embedding, None);
    cases.extend(blocks(&cases));
    let mut seen = std::collections::HashSet::new();
    cases.retain(|case| seen.insert(case.op));
    check_all(&mut gpu, &cases, &BATCHES);
}

#[test]
fn every_layer_is_within_its_bound_on_real_activations() {
    let Some(mut gpu) = gpu() else { return };
    let pack = ModelPack::load(None).expect("bundled models");
    let mut cases = layers(&pack.embedding, Some(&demo("meeting.flac")[..160_000]));
    assert_eq!(cases.len(), 36);
    cases.extend(blocks(&cases));
    assert_eq!(cases.len(), 39);
    let mut worst = BTreeMap::<(Precision, usize), (f64, String)>::new();
    let mut checks = 0;
    for case in &cases {
        for layout in LAYOUTS {
            let maps = Maps::new(case, layout);
            for (precision, batch) in Precision::ALL.into_iter().flat_map(|p| BATCHES.map(|b| (p, b))) {
                let Some(rule) = choose(gpu.device(), &case.op, batch, precision) else {
                    assert!(case.op.block, "no kernel for {}", case.name);
                    continue;
                };
                let kernel = rule.kernel;
                if kernel.arithmetic.value_bytes() != layout.value_bytes() {
                    continue;
                }
                let error = check(&mut gpu, kernel, case, &maps, batch);
                checks += usize::from(!case.op.block);
                let entry = worst.entry((precision, batch)).or_default();
                if error > entry.0 {
                    *entry = (error, case.name.clone());
                }
            }
        }
    }
    for ((precision, batch), (error, layer)) in &worst {
        println!("{precision} batch {batch:2}: largest error {error:.3} of its bound ({layer})");
    }
    println!("{checks} checks");
    assert_eq!(checks, 36 * BATCHES.len() * Precision::ALL.len());
    assert!(worst.values().all(|(error, _)| *error <= 1.0));
}

#[test]
fn odd_sizes_are_covered() {
    let Some(mut gpu) = gpu() else { return };
    let mut noise = Noise(9);
    let shapes = [
        (3, 1, 1, 32),
        (3, 1, 32, 32),
        (3, 1, 64, 64),
        (3, 1, 128, 128),
        (3, 1, 256, 256),
        (3, 2, 32, 64),
        (3, 2, 64, 128),
        (3, 2, 128, 256),
        (1, 2, 64, 128),
    ];
    let mut cases = Vec::new();
    for (kernel, stride, input, output) in shapes {
        for (height, width) in [(1, 1), (2, 3), (5, 65), (7, 130), (10, 790)] {
            let op = Op::conv(ConvShape { kernel, stride, input, output }, height, width);
            let mut conv = || {
                let weight = noise.vec(output * input * kernel * kernel);
                Conv { shape: op.shape, weight, bias: noise.vec(output) }
            };
            let (conv, second) = (conv(), conv());
            let mut inputs = || (0..2).map(|_| noise.vec(op.input_len(1))).collect();
            let residual = stride == 1 && input > 1;
            if (input, output) == (32, 32) {
                let (op, conv, second) = (op.twice(), conv.clone(), Some(second));
                let inputs = inputs();
                cases.push(Case { name: op.to_string(), op, conv, second, inputs, residual: false });
            }
            let inputs = inputs();
            cases.push(Case { name: op.to_string(), op, conv, second: None, inputs, residual });
        }
    }
    check_all(&mut gpu, &cases, &[1, 3]);
}

/// NaN passes, infinities follow IEEE, `v < 0 ? 0 : v` keeps -0; a value above 65,504 sets the word in FP16 only.
#[test]
fn special_values_follow_the_contract() {
    let Some(mut gpu) = gpu() else { return };
    for kernel in KERNELS.iter().filter(|kernel| kernel.family != Family::Stem) {
        let input = kernel.input.unwrap_or(if kernel.channels >= 256 {
            256
        } else {
            kernel.channels.max(64) as usize
        });
        let output = if kernel.stride == 2 { 2 * input } else { input };
        let shape = ConvShape { kernel: kernel.kernel, stride: kernel.stride, input, output };
        let whole = kernel.family == Family::Block;
        let op = Op { block: whole, ..Op::conv(shape, 4, 8) };
        if kernel.check(gpu.device(), &op).is_err() {
            continue;
        }
        // The centre tap of channel 0 only, times 1: the output's channel 0 is the input's.
        let mut weight = vec![0.0; output * input * kernel.kernel * kernel.kernel];
        weight[kernel.kernel * kernel.kernel / 2] = 1.0;
        let run = |gpu: &mut Gpu, v: f32, epilogue_relu: bool| {
            let mut rows = vec![0.0; op.input_len(1)];
            rows[0] = v;
            let x = gpu.upload("input", &to_map(&rows, &op, input, kernel.arithmetic, false)).unwrap();
            let weights = gpu.upload("weights", &weight).unwrap();
            let packed = gpu.pack(kernel, shape, &weights).unwrap();
            let bias = gpu.upload("bias", &vec![0.0f32; output]).unwrap();
            let overflow = gpu.upload("overflow", &[0u32]).unwrap();
            let y = gpu.allocate("output", op.output_len(1) * kernel.arithmetic.value_bytes()).unwrap();
            let epilogue = if epilogue_relu { Epilogue::Relu } else { Epilogue::Bias };
            let launch = ConvLaunch {
                kernel,
                op,
                batch: 1,
                x: &x,
                weights: &packed,
                bias: &bias,
                epilogue,
                y: &y,
                overflow: &overflow,
            };
            // A second convolution of zeros leaves what the first one may spoil and the block's input.
            let zeros = gpu.upload("weights", &vec![0.0f32; weight.len()]).unwrap();
            let zeros = gpu.pack(kernel, shape, &zeros).unwrap();
            if whole { gpu.block(&block(&launch, &zeros, &bias)) } else { gpu.conv(&launch) }.unwrap();
            let map: Vec<u8> = gpu.read("output", &y, y.len()).unwrap();
            let pixels = op.height_out() * op.width_out();
            (
                value(&map, 0, 0, pixels, kernel.arithmetic),
                gpu.read::<u32>("overflow", &overflow, 1).unwrap()[0],
            )
        };
        let name = kernel.entry;
        let half = kernel.arithmetic == Arithmetic::Fp16;
        for relu in [true, false].into_iter().filter(|relu| *relu || !whole) {
            assert!(run(&mut gpu, f32::NAN, relu).0.is_nan(), "{name}: NaN");
            assert_eq!(run(&mut gpu, 1.5, relu), (1.5, 0), "{name}");
            assert_eq!(run(&mut gpu, -1.5, relu).0, if relu { 0.0 } else { -1.5 }, "{name}");
            let infinite = run(&mut gpu, f32::INFINITY, relu);
            // 3xTF32 takes an infinity apart into itself and 0, whose product with 0 weights is no number.
            assert!(infinite.0 == f32::INFINITY || infinite.0.is_nan(), "{name}: {infinite:?}");
            assert_eq!(infinite.1, u32::from(half), "{name}: an infinity fits no FP16");
            if half {
                assert_eq!(run(&mut gpu, 65_504.0, relu), (65_504.0, 0), "{name}");
            }
        }
    }
}
