//! What a launch must refuse: each with context, expected and actual.

use speakrs_app::backend::cuda::artifacts::{Architecture, Artifacts};
use speakrs_app::backend::cuda::error::CudaError;
use speakrs_app::backend::cuda::kernel::{
    KERNELS, Kernel, Op, block_f16_c32, conv3x3_f32_n32, mma_f16_n64, mma_f16_n64_slim, mma_tf32_n64,
};
use speakrs_app::backend::cuda::launch::{BlockLaunch, Buffer, ConvLaunch, Epilogue, Gpu, Packed, PoolJob};
use speakrs_app::models::embedding::ConvShape;

use super::{gpu, gpu_with};

const SHAPE: ConvShape = ConvShape { kernel: 3, stride: 1, input: 64, output: 64 };
const OP: Op = Op::conv(SHAPE, 8, 32);

struct Parts {
    x: Buffer,
    y: Buffer,
    packed: Packed,
    bias: Buffer,
    overflow: Buffer,
}

fn parts(gpu: &mut Gpu, kernel: &Kernel) -> Parts {
    let weights = gpu.upload("weights", &vec![0.5f32; 64 * 64 * 9]).unwrap();
    let bytes = OP.output_len(1) * kernel.arithmetic.value_bytes();
    Parts {
        x: gpu.upload("x", &vec![0u8; bytes]).unwrap(),
        y: gpu.upload("y", &vec![0u8; bytes]).unwrap(),
        packed: gpu.pack(kernel, SHAPE, &weights).unwrap(),
        bias: gpu.upload("bias", &[0f32; 64]).unwrap(),
        overflow: gpu.upload("overflow", &[0u32]).unwrap(),
    }
}

fn launch<'a>(kernel: &'static Kernel, parts: &'a Parts) -> ConvLaunch<'a> {
    let Parts { x, y, packed, bias, overflow } = parts;
    ConvLaunch { kernel, op: OP, batch: 1, x, weights: packed, bias, epilogue: Epilogue::Relu, y, overflow }
}

#[test]
fn buffers_that_are_too_short_are_named_with_both_lengths() {
    let Some(mut gpu) = gpu() else { return };
    let parts = parts(&mut gpu, &mma_f16_n64);
    let good = launch(&mma_f16_n64, &parts);
    gpu.conv(&good).expect("everything fits");
    let needed = OP.input_len(1) * 2;
    let short = |buffer: &Buffer| buffer.part(0, buffer.len() - 16);
    let (x, y, bias) = (short(&parts.x), short(&parts.y), short(&parts.bias));
    let residual = short(&parts.x);
    let cases = [
        (
            ConvLaunch { x: &x, ..good },
            format!("mma_f16_n64: input: {} bytes, expected {needed}", needed - 16),
        ),
        (
            ConvLaunch { y: &y, ..good },
            format!("mma_f16_n64: output: {} bytes, expected {needed}", needed - 16),
        ),
        (ConvLaunch { bias: &bias, ..good }, "mma_f16_n64: bias: 240 bytes, expected 256".into()),
        (
            ConvLaunch { epilogue: Epilogue::ResidualRelu(&residual), ..good },
            format!("mma_f16_n64: residual: {} bytes, expected {needed}", needed - 16),
        ),
        (
            ConvLaunch { batch: 2, ..good },
            format!("mma_f16_n64: input: {needed} bytes, expected {}", 2 * needed),
        ),
        (ConvLaunch { y: &parts.x, ..good }, "mma_f16_n64: the output lies in an input".into()),
    ];
    for (launch, expected) in cases {
        assert_eq!(gpu.conv(&launch).unwrap_err().to_string(), expected);
    }
}

#[test]
fn kernels_are_refused_for_other_layers_weights_and_devices() {
    let Some(mut gpu) = gpu() else { return };
    let parts = parts(&mut gpu, &mma_f16_n64);
    let good = launch(&mma_f16_n64, &parts);
    let op = Op { shape: ConvShape { stride: 2, ..SHAPE }, ..OP };
    assert!(matches!(
        gpu.conv(&ConvLaunch { op, ..good }),
        Err(CudaError::Refused { kernel: "mma_f16_n64", .. })
    ));
    // The slim kernel has the same packing, TF32 another.
    gpu.conv(&ConvLaunch { kernel: &mma_f16_n64_slim, ..good }).expect("the same packing");
    if gpu.device().architecture.major >= 8 {
        let launch = ConvLaunch { kernel: &mma_tf32_n64, ..good };
        assert!(matches!(gpu.conv(&launch), Err(CudaError::Packing { kernel: "mma_tf32_n64" })));
    }
    // Where kernels for 7.5 are forced, TF32 and Hopper's are refused, not run.
    let forced = Artifacts::load().unwrap().forced(Architecture { major: 7, minor: 5 }).unwrap();
    let Some(mut old) = gpu_with(forced) else { return };
    assert_eq!(old.device().architecture.to_string(), "7.5");
    let parts = self::parts(&mut old, &mma_f16_n64);
    for kernel in KERNELS.iter().filter(|kernel| kernel.computes(&OP)) {
        let needs_more = kernel.entry.contains("tf32") || kernel.entry.starts_with("wgmma");
        let refused = matches!(old.conv(&launch(kernel, &parts)), Err(CudaError::Refused { .. }));
        assert_eq!(refused, needs_more, "{}", kernel.entry);
    }
}

#[test]
fn blocks_are_refused_as_convolutions_are() {
    let Some(mut gpu) = gpu() else { return };
    let kernel = &block_f16_c32;
    let shape = ConvShape { kernel: 3, stride: 1, input: 32, output: 32 };
    let op = Op::conv(shape, 8, 32).twice();
    let weights = gpu.upload("weights", &vec![0.5f32; 32 * 32 * 9]).unwrap();
    let (packed, other) =
        (gpu.pack(kernel, shape, &weights).unwrap(), gpu.pack(&conv3x3_f32_n32, shape, &weights).unwrap());
    let bias = gpu.upload("bias", &[0f32; 32]).unwrap();
    let overflow = gpu.upload("overflow", &[0u32]).unwrap();
    let bytes = op.input_len(1) * 2;
    let x = gpu.upload("x", &vec![0u8; bytes]).unwrap();
    let y = gpu.upload("y", &vec![0u8; bytes]).unwrap();
    let (weights, bias) = ([&packed; 2], [&bias; 2]);
    let good = BlockLaunch { kernel, op, batch: 1, x: &x, weights, bias, y: &y, overflow: &overflow };
    if let Err(reason) = kernel.check(gpu.device(), &op) {
        let refused = CudaError::Refused { kernel: kernel.entry, reason };
        return assert_eq!(gpu.block(&good).unwrap_err().to_string(), refused.to_string());
    }
    gpu.block(&good).expect("everything fits");
    let (short_x, short_y, short_bias) =
        (x.part(0, bytes - 16), y.part(0, bytes - 16), bias[0].part(0, bias[0].len() - 16));
    let cases = [
        (BlockLaunch { x: &short_x, ..good }, format!("input: {} bytes, expected {bytes}", bytes - 16)),
        (BlockLaunch { y: &short_y, ..good }, format!("output: {} bytes, expected {bytes}", bytes - 16)),
        (BlockLaunch { bias: [bias[0], &short_bias], ..good }, "bias: 112 bytes, expected 128".into()),
        (BlockLaunch { batch: 2, ..good }, format!("input: {bytes} bytes, expected {}", 2 * bytes)),
        (BlockLaunch { y: &x, ..good }, "the output lies in an input".into()),
    ];
    for (launch, expected) in cases {
        let message = gpu.block(&launch).unwrap_err().to_string();
        assert_eq!(message, format!("{}: {expected}", kernel.entry));
    }
    let wrong = gpu.block(&BlockLaunch { weights: [&packed, &other], ..good });
    assert!(matches!(wrong, Err(CudaError::Packing { .. })));
    let conv = Op::conv(shape, 8, 32);
    assert!(matches!(gpu.block(&BlockLaunch { op: conv, ..good }), Err(CudaError::Refused { .. })));
    let BlockLaunch { x, y, overflow, .. } = good;
    let (weights, bias, epilogue) = (&packed, bias[0], Epilogue::Relu);
    let launch = ConvLaunch { kernel, op, batch: 1, x, weights, bias, epilogue, y, overflow };
    assert!(matches!(gpu.conv(&launch), Err(CudaError::Refused { .. })));
}

#[test]
fn sizes_beyond_32_bits_are_refused() {
    let Some(mut gpu) = gpu() else { return };
    let parts = parts(&mut gpu, &mma_f16_n64);
    let good = launch(&mma_f16_n64, &parts);
    // The length check comes first; it would need a buffer of 8 GiB to get past it.
    let wide = Op { width: 1 << 23, ..OP };
    assert!(matches!(gpu.conv(&ConvLaunch { op: wide, ..good }), Err(CudaError::BufferLength { .. })));
    let big = match gpu.allocate("a test", (1 << 33) + 64) {
        Ok(big) => big,
        Err(CudaError::Memory { .. }) => return eprintln!("SKIPPED: not enough GPU memory"),
        Err(error) => panic!("{error}"),
    };
    let (x, y) = (big.clone(), gpu.allocate("a test", (1 << 33) + 64).expect("memory"));
    let message = gpu.conv(&ConvLaunch { op: wide, x: &x, y: &y, ..good }).unwrap_err().to_string();
    assert!(
        message.starts_with("mma_f16_n64: values of the input: 4294967296, at most 4294967295"),
        "{message}"
    );
    assert!(matches!(gpu.allocate("a test", 1 << 50), Err(CudaError::Memory { .. })));
}

#[test]
fn pooling_outside_of_the_maps_is_refused() {
    use speakrs_app::backend::cuda::kernel::Arithmetic;
    let Some(mut gpu) = gpu() else { return };
    let lines = 10 * 256 / 8;
    let maps = gpu.upload("maps", &vec![0u8; lines * 125 * 16]).unwrap();
    let jobs = gpu.allocate("jobs", 1024).unwrap();
    let statistics = gpu.allocate("statistics", 3 * 5120 * 4).unwrap();
    let job = PoolJob { pitch0: 125, count0: 125, ..PoolJob::default() };
    gpu.pool(Arithmetic::Fp16, &maps, &[job], &jobs, &statistics).expect("inside");
    for wrong in [
        PoolJob { unit0: 1, ..job },
        PoolJob { count0: 126, ..job },
        PoolJob { pitch0: 126, ..job },
        PoolJob { count0: 124, unit1: 40_000, ..job },
    ] {
        assert!(gpu.pool(Arithmetic::Fp16, &maps, &[wrong], &jobs, &statistics).is_err(), "{wrong:?}");
    }
    assert!(gpu.pool(Arithmetic::Fp16, &maps, &[job, job], &jobs, &statistics).is_err());
}

#[test]
fn a_gpu_that_is_not_there_is_named() {
    let Some(_) = gpu() else { return };
    let error = Gpu::open(999, Artifacts::load().unwrap()).err().expect("no such GPU").to_string();
    assert!(error.starts_with("there is no GPU number 999: the driver lists "), "{error}");
}
