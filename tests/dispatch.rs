//! The table of CUDA kernels: what every card runs, and that the compiled kernels are what the table says.

use std::collections::BTreeSet;
use std::fmt::Write;

use proptest::prelude::*;
use speakrs_app::app::devices::{describe, explain};
use speakrs_app::backend::Precision;
use speakrs_app::backend::cuda::artifacts::{Architecture, Artifacts};
use speakrs_app::backend::cuda::device::Device;
use speakrs_app::backend::cuda::dispatch::{Layer, RULES, choose};
use speakrs_app::backend::cuda::kernel::{
    Arithmetic, Family, KERNELS, Op, Refusal, block_f16_c32, wgmma_f16_c64,
};
use speakrs_app::backend::cuda::{launch, precision, trunk};
use speakrs_app::models::embedding::{ConvShape, convolutions};

const BATCHES: [usize; 9] = [1, 2, 4, 7, 8, 16, 32, 33, 64];
/// fbank frames of a window and of a block of the shared trunk.
const WIDTHS: [usize; 2] = [998, 6320];

fn device(name: &str, major: u32, minor: u32, sms: u32, shared_kib: u32) -> Device {
    let capability = Architecture { major, minor };
    Device {
        ordinal: 0,
        name: name.into(),
        capability,
        architecture: capability,
        sms,
        shared_bytes: shared_kib << 10,
        l2_bytes: 0,
        memory_bytes: 0,
    }
}

fn zoo() -> Vec<Device> {
    vec![
        device("Tesla T4", 7, 5, 40, 64),
        device("RTX 2080 Ti", 7, 5, 68, 64),
        device("A100", 8, 0, 108, 163),
        device("RTX 3090", 8, 6, 82, 99),
        device("Jetson Orin", 8, 7, 16, 163),
        device("L4", 8, 9, 58, 99),
        device("RTX 4060 Ti", 8, 9, 34, 99),
        device("RTX 4090", 8, 9, 128, 99),
        device("H100 PCIe", 9, 0, 114, 227),
        device("H200", 9, 0, 132, 227),
        device("B200", 10, 0, 148, 227),
        device("RTX 5060 Ti", 12, 0, 36, 99),
        device("RTX 5090", 12, 0, 170, 99),
        device("invented, one multiprocessor", 8, 6, 1, 99),
        device("invented, of the future", 13, 0, 200, 227),
    ]
}

/// The layers of the trunk that differ.
fn ops(width: usize) -> Vec<Op> {
    let mut ops = Vec::new();
    for (_, shape, height) in convolutions() {
        let op = Op::conv(shape, height, width.div_ceil(80 / height));
        if !ops.contains(&op) {
            ops.push(op);
        }
    }
    ops
}

/// The blocks of the first stage.
fn block(width: usize) -> Op {
    let shape = ConvShape { kernel: 3, stride: 1, input: 32, output: 32 };
    Op::conv(shape, 80, width).twice()
}

/// `1-4: name, 7-64: other`: the kernels of `op` by batch.
fn by_batch(device: &Device, op: &Op, precision: Precision) -> String {
    let entry = |batch| match choose(device, op, batch, precision) {
        Some(rule) => rule.kernel.entry,
        None if op.block => "one by one",
        None => panic!("no kernel for {op}"),
    };
    let chosen = BATCHES.map(|batch| (batch, entry(batch)));
    chosen
        .chunk_by(|a, b| a.1 == b.1)
        .map(|run| match run {
            [(batch, entry)] => format!("{batch}: {entry}"),
            run => format!("{}-{}: {}", run[0].0, run[run.len() - 1].0, run[0].1),
        })
        .collect::<Vec<_>>()
        .join(", ")
}

#[test]
fn every_card_runs_what_the_golden_file_says() {
    let mut text =
        String::from("Kernels by batch. To accept a change: SPEAKRS_APP_BLESS=1 cargo test dispatch\n");
    for device in zoo() {
        for precision in Precision::ALL {
            for width in WIDTHS {
                let Architecture { major, minor } = device.architecture;
                let _ = writeln!(
                    text,
                    "\n{} ({major}.{minor}, {} SMs) {precision} {width}",
                    device.name, device.sms
                );
                let blocks = BATCHES.iter().any(|&b| choose(&device, &block(width), b, precision).is_some());
                let block = blocks.then(|| block(width));
                for op in ops(width).into_iter().chain(block) {
                    let _ = writeln!(text, "  {:22} {}", op.to_string(), by_batch(&device, &op, precision));
                }
            }
        }
    }
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/dispatch.txt");
    if std::env::var_os("SPEAKRS_APP_BLESS").is_some() {
        std::fs::write(&path, &text).expect("written");
    }
    let golden = std::fs::read_to_string(&path).expect("the golden file").replace("\r\n", "\n");
    for (line, (is, should)) in text.lines().zip(golden.lines()).enumerate() {
        assert_eq!(is, should, "line {} of {}", line + 1, path.display());
    }
    assert_eq!(text.len(), golden.len());
}

#[test]
fn chosen_kernels_run_on_the_card_and_keep_the_precision() {
    for device in zoo() {
        for precision in Precision::ALL {
            for (width, batch) in WIDTHS.into_iter().flat_map(|width| BATCHES.map(|batch| (width, batch))) {
                let steps = trunk::plan(&device, precision, batch, width).expect("every layer");
                // The steps are the convolutions in their order.
                let next = steps.iter().fold(0, |next, step| {
                    assert_eq!(step.first, next, "{}", step.name);
                    next + step.op.convolutions()
                });
                assert_eq!(next, convolutions().len());
                for step in steps {
                    let kernel = step.rule.kernel;
                    kernel.check(&device, &step.op).unwrap_or_else(|e| panic!("{}: {e}", device.name));
                    assert!(kernel.arithmetic.serves(precision), "{} {precision}", kernel.entry);
                    // The maps of all layers have the same layout.
                    assert_eq!(kernel.arithmetic.value_bytes(), trunk::value_bytes(precision));
                    assert!(step.op.input_len(batch).max(step.op.output_len(batch)) <= u32::MAX as usize);
                }
            }
        }
    }
}

/// The kernels that the table can choose where kernels are chosen for `architecture`, on cards small and large.
fn reachable(architecture: Architecture) -> BTreeSet<&'static str> {
    let mut entries = BTreeSet::new();
    for sms in [1, 20, 40, 108, 132, 200] {
        let device = device("any", architecture.major, architecture.minor, sms, 227);
        for (precision, width) in Precision::ALL.into_iter().flat_map(|p| WIDTHS.map(|w| (p, w))) {
            for batch in BATCHES {
                for op in ops(width) {
                    entries.insert(choose(&device, &op, batch, precision).expect("a rule").kernel.entry);
                }
                entries
                    .extend(choose(&device, &block(width), batch, precision).map(|rule| rule.kernel.entry));
            }
        }
    }
    entries
}

#[test]
fn every_kernel_can_be_chosen_somewhere_and_every_rule_can_apply() {
    let architectures = zoo().into_iter().map(|device| device.architecture).collect::<BTreeSet<_>>();
    let all: BTreeSet<_> = architectures.into_iter().flat_map(reachable).collect();
    for kernel in KERNELS {
        assert!(all.contains(kernel.entry), "{} is never chosen", kernel.entry);
    }
    for rule in RULES {
        assert!(rule.kernel.arithmetic.serves(rule.precision), "{rule:?}");
    }
}

#[test]
fn the_compiled_kernels_are_those_of_the_table() {
    let artifacts = Artifacts::load().expect("the embedded manifest");
    let mut seen = 0;
    for name in artifacts.architectures() {
        let digits: String = name.chars().filter(char::is_ascii_digit).collect();
        let number: u32 = digits.parse().expect("number");
        let architecture = Architecture { major: number / 10, minor: number % 10 };
        let find =
            |file: &str, entry: &str| artifacts.entries(name, file).iter().find(|e| e.name == entry).cloned();
        // Everything that can be chosen for the architecture is there.
        for entry in reachable(architecture) {
            let kernel = KERNELS.iter().find(|kernel| kernel.entry == entry).expect("a kernel of the table");
            assert!(find(kernel.file(), entry).is_some(), "{entry} is not compiled for {name}");
        }
        for kernel in KERNELS {
            let Some(entry) = find(kernel.file(), kernel.entry) else { continue };
            seen += 1;
            let Some(threads) = entry.threads else { continue };
            assert_eq!(threads, kernel.threads, "{name} {}", kernel.entry);
            let shared =
                entry.shared_bytes.expect("known with the threads") + kernel.shared_bytes(architecture);
            assert!(shared <= 232_448, "{name} {}: {shared} bytes", kernel.entry);
        }
        for file in artifacts.files(name) {
            for entry in artifacts.entries(name, file) {
                let conv = file.starts_with("conv") || file == "stem.cu" || file == "block.cu";
                assert_eq!(
                    KERNELS.iter().any(|kernel| kernel.entry == entry.name && kernel.file() == file),
                    conv,
                    "{file} {} and the table of kernels disagree",
                    entry.name
                );
                if let (Some(is), Some(should)) = (entry.parameter_bytes, launch::parameter_bytes(file)) {
                    assert_eq!(is as usize, should, "{name} {file} {}: arguments", entry.name);
                }
            }
        }
    }
    assert!(seen > 200, "{seen}");
}

#[test]
fn what_a_kernel_lacks_is_said() {
    let wide = Op::conv(ConvShape { kernel: 3, stride: 1, input: 64, output: 64 }, 40, 499);
    let other = Op::conv(ConvShape { kernel: 3, stride: 1, input: 32, output: 32 }, 80, 998);
    let wider = Op::conv(ConvShape { output: 128, ..wide.shape }, 40, 499);
    let refused = |device: &Device, op: &Op| wgmma_f16_c64.check(device, op).unwrap_err();
    assert!(wgmma_f16_c64.check(&device("H200", 9, 0, 132, 227), &wide).is_ok());
    let message = refused(&device("B200", 10, 0, 148, 227), &wide).to_string();
    assert_eq!(message, "it needs compute capability 9.0, kernels for 10.0 are in use");
    assert!(matches!(refused(&device("small", 9, 0, 132, 99), &wide), Refusal::Shared { .. }));
    for op in [other, wider, wide.twice()] {
        assert_eq!(refused(&device("H200", 9, 0, 132, 227), &op), Refusal::Layer(op));
    }
    let whole = |device: &Device, op: Op| block_f16_c32.check(device, &op);
    assert!(whole(&device("H200", 9, 0, 132, 227), other.twice()).is_ok());
    assert_eq!(whole(&device("H200", 9, 0, 132, 227), other), Err(Refusal::Layer(other)));
    assert!(matches!(whole(&device("A100", 8, 0, 108, 163), other.twice()), Err(Refusal::Capability { .. })));
    let tf32 = KERNELS.iter().find(|k| k.family == Family::Mma && k.arithmetic == Arithmetic::Tf32).unwrap();
    assert!(matches!(tf32.check(&device("T4", 7, 5, 40, 64), &other), Err(Refusal::Capability { .. })));
    assert!(precision(&device("T4", 7, 5, 40, 64), Some(Precision::Tf32)).is_err());
    // No kernel takes these for its own.
    for shape in
        [(5, 1, 32, 32), (3, 3, 64, 64), (3, 1, 48, 48), (1, 1, 64, 64), (3, 1, 0, 128), (3, 1, 1, 64)]
    {
        let (kernel, stride, input, output) = shape;
        let op = Op::conv(ConvShape { kernel, stride, input, output }, 8, 8);
        assert!(Layer::of(&op).is_none() && Layer::of(&wide.twice()).is_none(), "{op}");
        assert!(choose(&device("H200", 9, 0, 132, 227), &op, 1, Precision::Fp16).is_none());
    }
}

#[test]
fn a_card_is_explained_layer_by_layer() {
    let mut h200 = device("H200", 9, 0, 132, 227);
    let text = explain(&h200, Precision::Fp16, 32, 998);
    assert_eq!(text.lines().count(), 35);
    let row = text.lines().find(|line| line.starts_with("block2 ")).expect("a block");
    assert!(row.contains("2 x 3x3 s1 32->32 80x998") && row.contains("block_f16_c32"), "{row}");
    let row = text.lines().find(|line| line.starts_with("block3.conv2 ")).expect("a layer");
    assert!(
        row.contains("3x3 s1 64->64 40x499") && row.contains("wgmma_f16_c64") && row.ends_with("always"),
        "{row}"
    );
    assert!(describe(&h200, None).ends_with("; usable\n"));
    h200.architecture = Architecture { major: 8, minor: 0 };
    assert!(describe(&h200, None).ends_with("; usable, kernels for 8.0 are forced\n"));
}

proptest! {
    /// Any card, any size: there is a kernel, it runs there, and its grid covers the output exactly once.
    #[test]
    fn any_geometry_gets_a_kernel_that_covers_it(
        (major, minor) in prop::sample::select(vec![(7, 5), (8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (10, 3), (12, 1)]),
        (sms, batch) in (1u32..300, 1usize..=64),
        width in 1usize..20_000,
        precision in prop::sample::select(Precision::ALL.to_vec()),
    ) {
        let shared = match (major, minor) { (7, _) => 64, (8, 0) | (9, _) | (10, _) => 163, _ => 99 };
        let shared = if major == 9 { 227 } else { shared };
        let device = device("any", major, minor, sms, shared);
        for op in ops(width).into_iter().chain([block(width)]) {
            let Some(rule) = choose(&device, &op, batch, precision) else {
                prop_assert!(op.block, "no kernel for {op}");
                continue;
            };
            let kernel = rule.kernel;
            prop_assert!(kernel.check(&device, &op).is_ok());
            let [columns, rows, slices] = kernel.tiles(&op, batch);
            let covers = |tiles: u64, tile: u32, size: usize| {
                tiles * u64::from(tile) >= size as u64 && (tiles - 1) * u64::from(tile) < size as u64
            };
            prop_assert!(covers(columns, kernel.cols, op.width_out()));
            prop_assert!(covers(rows, kernel.rows, op.height_out()));
            prop_assert_eq!(slices * u64::from(kernel.channels), (batch * op.shape.output) as u64);
        }
    }
}
