//! The kernels for convolutions and blocks: what each computes, on what, in which tiles. Depends on `device` and `tiles`.

use std::fmt;

use super::artifacts::Architecture;
use super::device::Device;
use super::tiles::tile;
use crate::backend::Precision;
use crate::models::embedding::ConvShape;

/// What a launch computes, with the size of its input: a convolution, or a whole basic block of two. Padding is
/// `kernel / 2`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Op {
    /// Kernel, stride and channels; of both convolutions of a block.
    pub shape: ConvShape,
    /// Rows of the input.
    pub height: usize,
    /// Columns of the input.
    pub width: usize,
    /// Whether it is a block without shortcut convolution: `relu(conv2(relu(conv1(x))) + x)`.
    pub block: bool,
}

impl Op {
    /// A convolution.
    pub const fn conv(shape: ConvShape, height: usize, width: usize) -> Self {
        Self { shape, height, width, block: false }
    }

    /// The block of two such convolutions.
    pub const fn twice(self) -> Self {
        Self { block: true, ..self }
    }

    /// Number of convolutions.
    pub fn convolutions(&self) -> usize {
        if self.block { 2 } else { 1 }
    }

    /// Rows of the output.
    pub fn height_out(&self) -> usize {
        self.height.saturating_sub(1) / self.shape.stride + 1
    }

    /// Columns of the output.
    pub fn width_out(&self) -> usize {
        self.width.saturating_sub(1) / self.shape.stride + 1
    }

    /// Values of the input of `batch` windows.
    pub fn input_len(&self, batch: usize) -> usize {
        batch * self.shape.input * self.height * self.width
    }

    /// Values of the output of `batch` windows.
    pub fn output_len(&self, batch: usize) -> usize {
        batch * self.shape.output * self.height_out() * self.width_out()
    }

    /// Multiplications of `batch` windows.
    pub fn products(&self, batch: usize) -> u64 {
        let each = self.output_len(batch) * self.shape.input * self.shape.kernel * self.shape.kernel;
        (self.convolutions() * each) as u64
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ConvShape { kernel, stride, input, output } = self.shape;
        let times = if self.block { "2 x " } else { "" };
        write!(f, "{times}{kernel}x{kernel} s{stride} {input}->{output} {}x{}", self.height, self.width)
    }
}

/// How products and sums are computed; sums are FP32 always.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Arithmetic {
    /// FP32 multiply-adds.
    Fp32,
    /// Each FP32 operand as the sum of two of TF32, three products on the tensor cores: the error of FP32.
    Tf32x3,
    /// Operands rounded to TF32.
    Tf32,
    /// Operands and maps rounded to FP16.
    Fp16,
}

impl Arithmetic {
    /// Bytes of a value in a map.
    pub const fn value_bytes(self) -> usize {
        match self {
            Self::Fp16 => 2,
            _ => 4,
        }
    }

    /// Whether it is at least as exact as `precision` asks for.
    pub fn serves(self, precision: Precision) -> bool {
        match precision {
            Precision::Fp32 => matches!(self, Self::Fp32 | Self::Tf32x3),
            Precision::Tf32 => self != Self::Fp16,
            Precision::Fp16 => self == Self::Fp16,
        }
    }
}

/// How a kernel is launched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Family {
    /// The first convolution, from features in time order.
    Stem,
    /// FP32 multiply-adds (`conv_f32.cu`).
    Fma,
    /// Tensor cores through `mma.sync` (`conv_mma.cu`).
    Mma,
    /// Hopper's warpgroup products with bulk copies (`conv_wgmma.cu`).
    Wgmma,
    /// The same for a whole basic block (`block.cu`).
    Block,
}

/// How the weights of a kernel are ordered; with the channels of a tile it determines the packed bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Packing {
    /// As they are: `[output, input, kernel, kernel]`.
    None,
    /// `pack_f32`.
    Fp32,
    /// `pack_units_f16`, `pack_units_tf32` or `pack_units_tf32x3`.
    Units(Arithmetic),
}

/// One kernel for a convolution or a block.
#[derive(Debug, PartialEq, Eq)]
pub struct Kernel {
    /// Name of its entry.
    pub entry: &'static str,
    /// How it is launched.
    pub family: Family,
    /// How it computes.
    pub arithmetic: Arithmetic,
    /// Kernel height and width.
    pub kernel: usize,
    /// Stride.
    pub stride: usize,
    /// The channels in if it takes no others.
    pub input: Option<usize>,
    /// Output channels of a tile.
    pub channels: u32,
    /// Output rows of a tile.
    pub rows: u32,
    /// Output columns of a tile.
    pub cols: u32,
    /// Threads of a block.
    pub threads: u32,
    /// Bytes of dynamic shared memory of a block from compute capability 8.0 on.
    pub shared: u32,
    /// The same on 7.5.
    pub shared_75: u32,
    /// Units of 16 bytes of the input in a box of the copy engine; 0 without.
    pub units: u32,
}

/// What a device or a layer lacks for a kernel.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The device is too old.
    #[error("it needs compute capability {needed}, kernels for {actual} are in use")]
    Capability {
        /// What the kernel needs.
        needed: &'static str,
        /// What kernels are chosen for.
        actual: Architecture,
    },
    /// A block needs more shared memory than the device has.
    #[error("it needs {needed} bytes of shared memory a block, the device has {actual}")]
    Shared {
        /// What the kernel needs.
        needed: u32,
        /// What the device has.
        actual: u32,
    },
    /// It computes something else.
    #[error("it does not compute {0}")]
    Layer(Op),
}

impl Kernel {
    /// The source that holds it.
    pub fn file(&self) -> &'static str {
        match self.family {
            Family::Stem => "stem.cu",
            Family::Fma => "conv_f32.cu",
            Family::Mma => "conv_mma.cu",
            Family::Wgmma => "conv_wgmma.cu",
            Family::Block => "block.cu",
        }
    }

    /// Order of its weights.
    pub fn packing(&self) -> Packing {
        match self.family {
            Family::Stem => Packing::None,
            Family::Fma => Packing::Fp32,
            Family::Mma | Family::Wgmma | Family::Block => Packing::Units(self.arithmetic),
        }
    }

    /// Whether it computes `op`.
    pub fn computes(&self, op: &Op) -> bool {
        let ConvShape { kernel, stride, input, output } = op.shape;
        // A step of a product takes two units of 16 bytes; plain FP32 takes one.
        let step = match self.family {
            Family::Stem => 1,
            Family::Fma => 4,
            Family::Mma | Family::Wgmma | Family::Block => 32 / self.arithmetic.value_bytes(),
        };
        let channels = self.channels as usize;
        kernel == self.kernel
            && stride == self.stride
            && (self.family == Family::Block) == op.block
            && (self.family == Family::Stem) == (input == 1)
            && input.is_multiple_of(step)
            && output.is_multiple_of(channels)
            // What knows its input may hold all weights in shared memory, which are those of one tile.
            && self.input.is_none_or(|only| input == only && output == channels)
    }

    /// Whether it reads its input through a description for the copy engine, and walks over its tiles with one block a
    /// multiprocessor.
    pub fn persistent(&self) -> bool {
        matches!(self.family, Family::Wgmma | Family::Block)
    }

    /// What the copy engine fetches at a time: columns, rows and units of 16 bytes.
    pub fn input_box(&self) -> [u32; 3] {
        let (kernel, stride) = (self.kernel as u32, self.stride as u32);
        let reach = |tile: u32| (tile - 1) * stride + kernel;
        match self.family {
            // A row at a time, wide enough for both convolutions.
            Family::Block => [self.cols + 2 * (kernel - 1), 1, self.units],
            // At stride 2 a row comes in two halves.
            _ => [reach(self.cols).div_ceil(stride), reach(self.rows), self.units],
        }
    }

    /// Tiles along the columns, the rows, and the channels of all windows.
    pub fn tiles(&self, op: &Op, batch: usize) -> [u64; 3] {
        let along = |size: usize, tile: u32| size.div_ceil(tile as usize) as u64;
        [
            along(op.width_out(), self.cols),
            along(op.height_out(), self.rows),
            batch as u64 * op.shape.output as u64 / u64::from(self.channels),
        ]
    }

    /// Number of tiles of `op` on `batch` windows.
    pub fn blocks(&self, op: &Op, batch: usize) -> u64 {
        self.tiles(op, batch).iter().product()
    }

    /// Bytes of dynamic shared memory of a block where kernels for `architecture` are in use.
    pub fn shared_bytes(&self, architecture: Architecture) -> u32 {
        if architecture.major < 8 { self.shared_75 } else { self.shared }
    }

    /// Whether it runs on `device` and computes `op`.
    ///
    /// # Errors
    /// What is in the way.
    pub fn check(&self, device: &Device, op: &Op) -> Result<(), Refusal> {
        let architecture = device.architecture;
        let tensor_tf32 = matches!(self.arithmetic, Arithmetic::Tf32 | Arithmetic::Tf32x3);
        let needed = match self.family {
            Family::Wgmma | Family::Block if (architecture.major, architecture.minor) != (9, 0) => {
                Some("9.0")
            }
            Family::Mma if tensor_tf32 && architecture.major < 8 => Some("8.0 or newer"),
            _ => None,
        };
        if let Some(needed) = needed {
            return Err(Refusal::Capability { needed, actual: architecture });
        }
        let needed = self.shared_bytes(architecture);
        if needed > device.shared_bytes {
            return Err(Refusal::Shared { needed, actual: device.shared_bytes });
        }
        if self.computes(op) { Ok(()) } else { Err(Refusal::Layer(*op)) }
    }
}

macro_rules! kernels {
    ($($entry:ident: $family:ident $arithmetic:ident $kernel:literal $stride:literal $(only $input:literal)?;)*) => {
        $(
            #[doc = concat!("`", stringify!($entry), "`.")]
            #[allow(non_upper_case_globals, reason = "constants carry the names of their entries")]
            pub static $entry: Kernel = kernels!(@$family $entry $arithmetic $kernel $stride [$($input)?]);
        )*
        /// Every kernel for convolutions and blocks.
        pub static KERNELS: &[&Kernel] = &[$(&$entry),*];
    };
    (@Stem $entry:ident $arithmetic:ident $kernel:literal $stride:literal [$input:literal]) => {
        Kernel {
            channels: 32,
            rows: tile("STEM_ROWS"),
            cols: tile("WARP"),
            threads: tile("STEM_THREADS"),
            shared: 0,
            shared_75: 0,
            units: 0,
            ..kernels!(@common Stem $entry $arithmetic $kernel $stride [$input])
        }
    };
    (@Fma $entry:ident $arithmetic:ident $kernel:literal $stride:literal $input:tt) => {
        Kernel {
            cols: tile("F32_COLS"),
            threads: tile(concat!(stringify!($entry), "_THREADS")),
            shared: tile(concat!(stringify!($entry), "_SHARED")),
            shared_75: tile(concat!(stringify!($entry), "_SHARED_75")),
            ..kernels!(@tile Fma $entry $arithmetic $kernel $stride $input)
        }
    };
    (@Mma $entry:ident $arithmetic:ident $kernel:literal $stride:literal $input:tt) => {
        Kernel {
            cols: tile(concat!(stringify!($entry), "_COLS")),
            threads: tile(concat!(stringify!($entry), "_THREADS")),
            shared: tile(concat!(stringify!($entry), "_STAGE")) * tile(concat!(stringify!($entry), "_STAGES")),
            shared_75: tile(concat!(stringify!($entry), "_STAGE")),
            ..kernels!(@tile Mma $entry $arithmetic $kernel $stride $input)
        }
    };
    (@Wgmma $entry:ident $arithmetic:ident $kernel:literal $stride:literal $input:tt) => {
        Kernel {
            cols: tile("WGMMA_COLS"),
            threads: tile("WGMMA_THREADS"),
            shared: tile(concat!(stringify!($entry), "_SHARED")),
            units: tile(concat!(stringify!($entry), "_UNITS")),
            ..kernels!(@tile Wgmma $entry $arithmetic $kernel $stride $input)
        }
    };
    (@Block $entry:ident $arithmetic:ident $kernel:literal $stride:literal [$input:literal]) => {
        Kernel {
            channels: $input,
            rows: 1,
            cols: tile("BLOCK_COLS"),
            threads: tile(concat!(stringify!($entry), "_THREADS")),
            shared: tile(concat!(stringify!($entry), "_SHARED")),
            units: $input * Arithmetic::$arithmetic.value_bytes() as u32 / tile("UNIT_BYTES"),
            ..kernels!(@common Block $entry $arithmetic $kernel $stride [$input])
        }
    };
    (@tile $family:ident $entry:ident $arithmetic:ident $kernel:literal $stride:literal $input:tt) => {
        Kernel {
            channels: tile(concat!(stringify!($entry), "_NT")),
            rows: tile(concat!(stringify!($entry), "_ROWS")),
            ..kernels!(@common $family $entry $arithmetic $kernel $stride $input)
        }
    };
    (@common $family:ident $entry:ident $arithmetic:ident $kernel:literal $stride:literal [$($input:literal)?]) => {
        Kernel {
            entry: stringify!($entry),
            family: Family::$family,
            arithmetic: Arithmetic::$arithmetic,
            kernel: $kernel,
            stride: $stride,
            input: kernels!(@option $($input)?),
            channels: 0,
            rows: 0,
            cols: 0,
            threads: 0,
            shared: 0,
            shared_75: 0,
            units: 0,
        }
    };
    (@option) => { None };
    (@option $input:literal) => { Some($input) };
}

kernels! {
    stem_f32: Stem Fp32 3 1 only 1;
    stem_f16: Stem Fp16 3 1 only 1;

    conv3x3_f32_n32: Fma Fp32 3 1;
    conv3x3_f32_n64: Fma Fp32 3 1;
    conv3x3s2_f32_n64: Fma Fp32 3 2;
    conv1x1s2_f32_n64: Fma Fp32 1 2;

    mma_f16_n32: Mma Fp16 3 1;
    mma_f16_n64: Mma Fp16 3 1;
    mma_f16_n64_slim: Mma Fp16 3 1;
    mma_f16_s2_n64: Mma Fp16 3 2;
    mma_f16_s2_n64_slim: Mma Fp16 3 2;
    mma_f16_1x1_n64: Mma Fp16 1 2;
    mma_tf32_n32: Mma Tf32 3 1;
    mma_tf32_n64: Mma Tf32 3 1;
    mma_tf32_n64_slim: Mma Tf32 3 1;
    mma_tf32_s2_n64: Mma Tf32 3 2;
    mma_tf32_s2_n64_slim: Mma Tf32 3 2;
    mma_tf32_1x1_n64: Mma Tf32 1 2;
    mma_tf32x3_n32: Mma Tf32x3 3 1;
    mma_tf32x3_n64: Mma Tf32x3 3 1;
    mma_tf32x3_n64_slim: Mma Tf32x3 3 1;
    mma_tf32x3_s2_n64: Mma Tf32x3 3 2;
    mma_tf32x3_s2_n64_slim: Mma Tf32x3 3 2;
    mma_tf32x3_1x1_n64: Mma Tf32x3 1 2;

    wgmma_f16_c64: Wgmma Fp16 3 1 only 64;
    wgmma_f16_n128: Wgmma Fp16 3 1;
    wgmma_f16_n256: Wgmma Fp16 3 1;
    wgmma_f16_n64_small: Wgmma Fp16 3 1;
    wgmma_f16_n32_small: Wgmma Fp16 3 1;
    wgmma_f16_s2_c32: Wgmma Fp16 3 2 only 32;
    wgmma_f16_s2_n128: Wgmma Fp16 3 2;
    wgmma_f16_s2_n64_small: Wgmma Fp16 3 2;
    wgmma_tf32_c32: Wgmma Tf32 3 1 only 32;
    wgmma_tf32_c64: Wgmma Tf32 3 1 only 64;
    wgmma_tf32_n64: Wgmma Tf32 3 1;
    wgmma_tf32_n128: Wgmma Tf32 3 1;
    wgmma_tf32_n256: Wgmma Tf32 3 1;
    wgmma_tf32_n64_small: Wgmma Tf32 3 1;
    wgmma_tf32_n32_small: Wgmma Tf32 3 1;
    wgmma_tf32_s2_n64: Wgmma Tf32 3 2;
    wgmma_tf32_s2_n128: Wgmma Tf32 3 2;
    wgmma_tf32_s2_n64_small: Wgmma Tf32 3 2;
    wgmma_tf32x3_c32: Wgmma Tf32x3 3 1 only 32;
    wgmma_tf32x3_n64: Wgmma Tf32x3 3 1;
    wgmma_tf32x3_n128: Wgmma Tf32x3 3 1;
    wgmma_tf32x3_n64_small: Wgmma Tf32x3 3 1;
    wgmma_tf32x3_s2_n64: Wgmma Tf32x3 3 2;
    wgmma_tf32x3_s2_n128: Wgmma Tf32x3 3 2;
    wgmma_tf32x3_s2_n64_small: Wgmma Tf32x3 3 2;

    block_f16_c32: Block Fp16 3 1 only 32;
    block_tf32_c32: Block Tf32 3 1 only 32;
}
