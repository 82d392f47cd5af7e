//! Calls of the NVIDIA driver: memory, kernels, graphs. The only module with `unsafe` code. Depends on `artifacts`,
//! `device`, `kernel` and `error`.
//!
//! Every launch checks first that the kernel runs on the device, that all of its buffers are as long as what it reads or
//! writes, that its output lies in none of its inputs, and that sizes fit its 32-bit indices. Then the remaining duty
//! of a launch is that the argument structs here equal those of `kernels/common/args.cuh`, which a test compares.
#![allow(unsafe_code)]

use std::any::Any;
use std::collections::HashMap;
use std::ffi::c_void;
use std::mem::{MaybeUninit, size_of};
use std::sync::Arc;

use cudarc::driver::sys::{self, CUdevice_attribute_enum as Attribute, CUfunction_attribute_enum};
use cudarc::driver::{
    CudaContext, CudaEvent, CudaFunction, CudaGraph, CudaModule, CudaSlice, CudaStream, DevicePtr,
    DeviceRepr, DriverError, LaunchConfig, PinnedHostSlice, PushKernelArg, result,
};
use cudarc::nvrtc::Ptx;
use rayon::prelude::*;

use super::artifacts::{Architecture, Artifacts, Code};
use super::device::Device;
use super::error::CudaError;
use super::kernel::{Arithmetic, Family, Kernel, Op, Packing, Refusal};
use super::tiles::tile;
use crate::models::embedding::{ConvShape, EMBEDDING_DIM, TRUNK_CHANNELS, TRUNK_DIM, TRUNK_ROWS};
use crate::models::windows::LOCAL_SPEAKERS;

/// Bytes of a unit of a map.
pub const UNIT: usize = tile("UNIT_BYTES") as usize;
/// Trunk frames that a window pools.
pub const POOL_FRAMES: usize = tile("POOL_FRAMES") as usize;
/// Oldest CUDA version of a driver: the first that knows the copy engine's tensor maps.
const OLDEST_DRIVER: i32 = 12_000;
/// Bytes that pass through one half of [`Staging`].
const STAGED: usize = 8 << 20;
/// Bytes that one thread copies there at least.
const STAGED_TASK: usize = 512 << 10;
/// Largest y and z of a grid.
const GRID_YZ: u64 = 65_535;

/// Values that have the same bytes on the GPU.
///
/// # Safety
/// A type must be plain data without padding and valid whatever its bytes are.
pub unsafe trait Plain: Copy + Default + Send + Sync + 'static {}

// SAFETY: numbers, and a struct of u32 without padding.
unsafe impl Plain for u8 {}
unsafe impl Plain for u16 {}
unsafe impl Plain for u32 {}
unsafe impl Plain for f32 {}
unsafe impl Plain for [f32; 2] {}
unsafe impl Plain for PoolJob {}

/// The argument of every convolution (`ConvArgs`).
#[repr(C)]
#[derive(Clone, Copy)]
struct ConvArgs {
    x: u64,
    w: u64,
    bias: u64,
    residual: u64,
    y: u64,
    overflow: u64,
    batch: u32,
    cin: u32,
    cout: u32,
    h_in: u32,
    w_in: u32,
    h_out: u32,
    w_out: u32,
    relu: u32,
}

/// The argument of every block (`BlockArgs`).
#[repr(C)]
#[derive(Clone, Copy)]
struct BlockArgs {
    x: u64,
    w: [u64; 2],
    bias: [u64; 2],
    y: u64,
    overflow: u64,
    batch: u32,
    height: u32,
    width: u32,
    padding: u32,
}

/// One window to pool (`PoolJob`).
///
/// Its trunk frames are `count0` frames from unit `unit0` of the maps on, in lines that are `pitch0` units apart, then
/// the rest of [`POOL_FRAMES`] from `unit1` on: a window may straddle two blocks of the shared trunk.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PoolJob {
    /// Unit of the first frame in the first line.
    pub unit0: u32,
    /// Units from one line to the next.
    pub pitch0: u32,
    /// Frames in the first part.
    pub count0: u32,
    /// Unit of the second part's first frame in the first line.
    pub unit1: u32,
    /// Units from one line of the second part to the next.
    pub pitch1: u32,
    /// One bit per trunk frame for each local speaker.
    pub mask: [[u32; 4]; LOCAL_SPEAKERS],
}

#[repr(C)]
#[derive(Clone, Copy)]
struct PoolArgs {
    maps: u64,
    jobs: u64,
    statistics: u64,
    jobs_count: u32,
    height: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct DenseArgs {
    input: u64,
    w: u64,
    bias: u64,
    partial: u64,
    out: u64,
    rows: u32,
    inputs: u32,
    outputs: u32,
    splits: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct PackArgs {
    w: u64,
    packed: u64,
    cin: u32,
    cout: u32,
    kernel: u32,
    tile: u32,
}

/// A description of a map for the copy engine.
#[repr(C, align(64))]
#[derive(Clone, Copy)]
struct TensorMap(sys::CUtensorMap);

// SAFETY: `repr(C)` structs of numbers, equal to those that the kernels take by value.
unsafe impl DeviceRepr for ConvArgs {}
unsafe impl DeviceRepr for BlockArgs {}
unsafe impl DeviceRepr for PoolArgs {}
unsafe impl DeviceRepr for DenseArgs {}
unsafe impl DeviceRepr for PackArgs {}
unsafe impl DeviceRepr for TensorMap {}

/// Bytes of all parameters of the entries in `file`, for the test against the compiled kernels.
#[doc(hidden)]
pub fn parameter_bytes(file: &str) -> Option<usize> {
    Some(match file {
        "stem.cu" | "conv_f32.cu" | "conv_mma.cu" => size_of::<ConvArgs>(),
        "conv_wgmma.cu" => with_map(size_of::<ConvArgs>()),
        "block.cu" => with_map(size_of::<BlockArgs>()),
        "pooling.cu" => size_of::<PoolArgs>(),
        "dense.cu" => size_of::<DenseArgs>(),
        "pack.cu" => size_of::<PackArgs>(),
        _ => return None,
    })
}

/// Bytes of a struct of `bytes` bytes and a tensor map behind it: parameters start at byte 528 of their memory on 9.0,
/// where the map is aligned to 64 bytes.
const fn with_map(bytes: usize) -> usize {
    (528 + bytes).next_multiple_of(64) - 528 + size_of::<TensorMap>()
}

/// Bytes on the GPU, freed when nothing uses them any more. Clones and parts share them.
#[derive(Clone)]
pub struct Buffer {
    memory: Arc<CudaSlice<u8>>,
    address: u64,
    offset: usize,
    len: usize,
}

impl Buffer {
    /// Number of bytes.
    #[expect(clippy::len_without_is_empty, reason = "a buffer is never empty")]
    pub fn len(&self) -> usize {
        self.len
    }

    /// `len` bytes from byte `start` on.
    ///
    /// # Panics
    /// If they lie outside.
    pub fn part(&self, start: usize, len: usize) -> Self {
        assert!(start.checked_add(len).is_some_and(|end| end <= self.len), "{start} + {len} of {}", self.len);
        Self { memory: self.memory.clone(), address: self.address, offset: self.offset + start, len }
    }

    fn address(&self) -> u64 {
        self.address + self.offset as u64
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.address() < other.address() + other.len as u64
            && other.address() < self.address() + self.len as u64
    }
}

/// Weights of a convolution in the order of its kernel.
#[derive(Clone)]
pub struct Packed {
    buffer: Buffer,
    shape: ConvShape,
    packing: Packing,
    channels: u32,
}

impl Packed {
    fn fits(&self, kernel: &Kernel, op: &Op) -> bool {
        (self.packing, self.channels, self.shape) == (kernel.packing(), kernel.channels, op.shape)
    }
}

/// What follows a convolution.
#[derive(Clone, Copy)]
pub enum Epilogue<'a> {
    /// The bias.
    Bias,
    /// The bias and `v < 0 ? 0 : v`, which NaN and -0 pass.
    Relu,
    /// The bias, a map of the output's shape, and the same.
    ResidualRelu(&'a Buffer),
}

/// One convolution to launch.
#[derive(Clone, Copy)]
pub struct ConvLaunch<'a> {
    /// What runs.
    pub kernel: &'static Kernel,
    /// What it computes.
    pub op: Op,
    /// Number of windows.
    pub batch: usize,
    /// Input map; for the stem features `[batch, frames, MELS]`.
    pub x: &'a Buffer,
    /// Weights.
    pub weights: &'a Packed,
    /// `[output]`.
    pub bias: &'a Buffer,
    /// What follows.
    pub epilogue: Epilogue<'a>,
    /// Output map.
    pub y: &'a Buffer,
    /// Word that is set to 1 when a value does not fit FP16.
    pub overflow: &'a Buffer,
}

/// One basic block to launch.
#[derive(Clone, Copy)]
pub struct BlockLaunch<'a> {
    /// What runs.
    pub kernel: &'static Kernel,
    /// What it computes.
    pub op: Op,
    /// Number of windows.
    pub batch: usize,
    /// Input map.
    pub x: &'a Buffer,
    /// Weights of both convolutions.
    pub weights: [&'a Packed; 2],
    /// `[output]` of both.
    pub bias: [&'a Buffer; 2],
    /// Output map.
    pub y: &'a Buffer,
    /// Word that is set to 1 when a value does not fit FP16.
    pub overflow: &'a Buffer,
}

/// One field of a struct of arguments.
#[derive(Clone, Copy)]
pub(super) enum Arg<'a> {
    /// A buffer of which the kernel reads that many bytes.
    In(&'static str, &'a Buffer, usize),
    /// A buffer of which the kernel writes that many bytes.
    Out(&'static str, &'a Buffer, usize),
    /// A pointer to nothing.
    Null,
    /// A 32-bit size.
    Size(&'static str, usize),
    /// A 64-bit size.
    U64(u64),
    /// A number.
    F32(f32),
}

/// A struct of arguments as bytes.
#[repr(C, align(16))]
#[derive(Clone, Copy)]
struct Blob {
    bytes: [u8; 256],
    len: usize,
}

impl Default for Blob {
    fn default() -> Self {
        Self { bytes: [0; 256], len: 0 }
    }
}

impl Blob {
    /// Adds a field at its natural alignment.
    fn push(&mut self, field: &[u8]) {
        self.len = self.len.next_multiple_of(field.len());
        self.bytes[self.len..][..field.len()].copy_from_slice(field);
        self.len += field.len();
    }
}

// SAFETY: the kernel's struct is what the bytes begin with.
unsafe impl DeviceRepr for Blob {}

/// Recorded launches, which are replayed with one call.
pub struct Graph {
    graph: CudaGraph,
    /// The buffers and modules that the launches use.
    _used: Vec<Arc<dyn Any + Send + Sync>>,
}

// SAFETY: the driver's graphs may be used from any thread, one at a time; replaying takes `&mut Gpu`, of which there is
// one for the graph's stream.
unsafe impl Send for Graph {}

/// Page-locked memory through which much data passes to the GPU: one half is filled while the other is read.
struct Staging {
    halves: [(PinnedHostSlice<u8>, CudaEvent); 2],
    next: usize,
}

impl Drop for Staging {
    fn drop(&mut self) {
        // The GPU may still read; an error here means that it does no more.
        for (_, read) in &self.halves {
            let _ = read.synchronize();
        }
    }
}

/// Values on their way from the GPU; [`Gpu::collect`] waits for them.
pub struct Pending {
    what: String,
    /// Taken out by `collect`.
    memory: Option<PinnedHostSlice<u8>>,
    bytes: usize,
    written: CudaEvent,
}

impl Drop for Pending {
    fn drop(&mut self) {
        // The GPU may still write; an error here means that it does no more.
        let _ = self.written.synchronize();
    }
}

/// CUDA version of the installed driver, such as `CUDA 12.4`.
///
/// # Errors
/// If there is none, it does not start, or it is too old.
pub fn driver_version() -> Result<String, CudaError> {
    // SAFETY: loads the driver's library, if it is there.
    if !unsafe { sys::is_culib_present() } {
        return Err(CudaError::NoDriver);
    }
    // SAFETY: the library is there. The symbols are looked up, not called.
    let has = |name: &[u8]| unsafe { sys::culib().get::<unsafe extern "C" fn()>(name) }.is_ok();
    if !["cuInit", "cuDriverGetVersion", "cuGetErrorString"].iter().all(|name| has(name.as_bytes())) {
        return Err(CudaError::OldDriver { actual: "no version that it tells".into() });
    }
    let mut version = 0;
    // SAFETY: the function exists and writes one integer.
    call("asking for the driver's version", unsafe { sys::cuDriverGetVersion(&mut version) }.result())?;
    let text = format!("CUDA {}.{}", version / 1000, version % 1000 / 10);
    if version < OLDEST_DRIVER || !has(b"cuTensorMapEncodeTiled") {
        return Err(CudaError::OldDriver { actual: text });
    }
    call("starting the NVIDIA driver", result::init())?;
    Ok(text)
}

/// The GPUs that the driver lists, with the reason if kernels cannot be chosen for one.
///
/// # Errors
/// If there is no usable driver.
pub fn devices(artifacts: &Artifacts) -> Result<Vec<(Device, Option<CudaError>)>, CudaError> {
    driver_version()?;
    let count = call("counting the GPUs", result::device::get_count())? as usize;
    (0..count).map(|ordinal| facts(ordinal, artifacts)).collect()
}

fn facts(ordinal: usize, artifacts: &Artifacts) -> Result<(Device, Option<CudaError>), CudaError> {
    let what = format!("reading the facts of GPU {ordinal}");
    let device = call(&what, result::device::get(ordinal as i32))?;
    let attribute = |which| {
        // SAFETY: the device comes from the driver.
        call(&what, unsafe { result::device::get_attribute(device, which) }).map(|value| value.max(0) as u32)
    };
    let capability = Architecture {
        major: attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
        minor: attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
    };
    let architecture = artifacts.architecture((capability.major, capability.minor));
    let facts = Device {
        ordinal,
        name: call(&what, result::device::get_name(device))?,
        capability,
        architecture: *architecture.as_ref().unwrap_or(&capability),
        sms: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        shared_bytes: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
        l2_bytes: attribute(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?,
        // SAFETY: as above.
        memory_bytes: call(&what, unsafe { result::device::total_mem(device) })? as u64,
    };
    Ok((facts, architecture.err().map(CudaError::from)))
}

fn call<T>(what: &str, result: Result<T, DriverError>) -> Result<T, CudaError> {
    result.map_err(|error| CudaError::Call { what: what.into(), reason: reason(error) })
}

fn reason(error: DriverError) -> String {
    let text = error.error_string().map(|text| text.to_string_lossy().into_owned());
    format!("{} (CUDA error {})", text.unwrap_or_else(|_| "unknown error".into()), error.0 as u32)
}

/// A GPU in use: one stream of work, in order.
pub struct Gpu {
    device: Device,
    artifacts: Artifacts,
    context: Arc<CudaContext>,
    stream: Arc<CudaStream>,
    modules: HashMap<&'static str, Arc<CudaModule>>,
    functions: HashMap<&'static str, CudaFunction>,
    staging: Option<Staging>,
    /// Page-locked memory that no [`Pending`] uses.
    spare: Vec<PinnedHostSlice<u8>>,
    /// What launches use, while they are recorded.
    recording: Option<Vec<Arc<dyn Any + Send + Sync>>>,
}

impl Gpu {
    /// Takes GPU number `ordinal` into use.
    ///
    /// # Errors
    /// If driver or GPU cannot be used.
    pub fn open(ordinal: usize, artifacts: Artifacts) -> Result<Self, CudaError> {
        let mut devices = devices(&artifacts)?;
        if ordinal >= devices.len() {
            return Err(CudaError::NoDevice { ordinal, count: devices.len() });
        }
        let (device, unusable) = devices.swap_remove(ordinal);
        if let Some(error) = unusable {
            return Err(error);
        }
        let what = format!("starting work on GPU {ordinal}");
        let context = call(&what, CudaContext::new(ordinal))?;
        // SAFETY: all work goes to one stream, in whose order nothing needs events to wait for.
        unsafe { context.disable_event_tracking() };
        let stream = call(&what, context.new_stream())?;
        let (modules, functions) = (HashMap::new(), HashMap::new());
        let (staging, spare) = (None, Vec::new());
        Ok(Self { device, artifacts, context, stream, modules, functions, staging, spare, recording: None })
    }

    /// Its facts.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// `len` bytes with whatever was there before; kernels write them before others read them.
    ///
    /// # Errors
    /// [`CudaError::Memory`] if there is not enough memory.
    pub fn allocate(&mut self, what: &str, len: usize) -> Result<Buffer, CudaError> {
        // SAFETY: any bytes are valid contents of a buffer.
        let memory = unsafe { self.stream.alloc::<u8>(len.max(UNIT)) }.map_err(|error| match error.0 {
            sys::cudaError_enum::CUDA_ERROR_OUT_OF_MEMORY => {
                CudaError::Memory { what: what.into(), bytes: len }
            }
            _ => CudaError::Call { what: format!("taking GPU memory for {what}"), reason: reason(error) },
        })?;
        let address = memory.device_ptr(&self.stream).0;
        Ok(Buffer { memory: Arc::new(memory), address, offset: 0, len: len.max(UNIT) })
    }

    /// A buffer with `values`.
    ///
    /// # Errors
    /// If there is not enough memory.
    pub fn upload<T: Plain>(&mut self, what: &str, values: &[T]) -> Result<Buffer, CudaError> {
        let buffer = self.allocate(what, size_of_val(values))?;
        self.write(what, &buffer, values)?;
        Ok(buffer)
    }

    /// Copies `values` to the start of `buffer`, for the work that follows.
    ///
    /// # Errors
    /// If they do not fit or the driver fails.
    pub fn write<T: Plain>(&mut self, what: &str, buffer: &Buffer, values: &[T]) -> Result<(), CudaError> {
        at_least(format_args!("writing {what}"), buffer, size_of_val(values))?;
        call(what, self.context.bind_to_thread())?;
        if size_of_val(values) > STAGED_TASK {
            // SAFETY: values without padding are bytes, which are all of `values` here.
            let bytes =
                unsafe { std::slice::from_raw_parts(values.as_ptr().cast::<u8>(), size_of_val(values)) };
            return self.write_staged(what, buffer, bytes);
        }
        // SAFETY: the buffer is long enough; from pageable memory the call returns when `values` has been read.
        call(&format!("writing {what} to the GPU"), unsafe {
            result::memcpy_htod_async(buffer.address(), values, self.stream.cu_stream())
        })
    }

    /// Copies `bytes` to the start of `buffer` without waiting for the work before.
    fn write_staged(&mut self, what: &str, buffer: &Buffer, bytes: &[u8]) -> Result<(), CudaError> {
        let what = format!("writing {what} to the GPU");
        if self.staging.is_none() {
            let half = || {
                // SAFETY: the bytes are written before they are read.
                let memory = unsafe { self.context.alloc_pinned::<u8>(STAGED) };
                Ok::<_, CudaError>((call(&what, memory)?, call(&what, self.blocking_event())?))
            };
            self.staging = Some(Staging { halves: [half()?, half()?], next: 0 });
        }
        let staging = self.staging.as_mut().expect("made above");
        for (index, part) in bytes.chunks(STAGED).enumerate() {
            let (memory, read) = &mut staging.halves[staging.next];
            staging.next = 1 - staging.next;
            call(&what, read.synchronize())?;
            let memory = &mut call(&what, memory.as_mut_slice())?[..part.len()];
            let pairs = memory.par_chunks_mut(STAGED_TASK).zip(part.par_chunks(STAGED_TASK));
            pairs.for_each(|(to, from)| to.copy_from_slice(from));
            let to = buffer.address() + (index * STAGED) as u64;
            // SAFETY: the buffer is as long as all parts; this half is written again, or freed, after the event only.
            call(&what, unsafe { result::memcpy_htod_async(to, memory, self.stream.cu_stream()) })?;
            call(&what, read.record(&self.stream))?;
        }
        Ok(())
    }

    /// An event that a thread sleeps for.
    fn blocking_event(&self) -> Result<CudaEvent, DriverError> {
        self.context.new_event(Some(sys::CUevent_flags::CU_EVENT_BLOCKING_SYNC))
    }

    /// Copies `bytes` bytes from the start of `buffer` after the work so far, without waiting for it.
    ///
    /// # Errors
    /// If there are fewer, page-locked memory is short, or the driver fails.
    pub fn read_later(&mut self, what: &str, buffer: &Buffer, bytes: usize) -> Result<Pending, CudaError> {
        at_least(format_args!("reading {what}"), buffer, bytes)?;
        let what = format!("reading {what} from the GPU");
        call(&what, self.context.bind_to_thread())?;
        let mut memory = match self.spare.iter().position(|memory| memory.len() >= bytes) {
            Some(index) => self.spare.swap_remove(index),
            // SAFETY: the bytes are written before they are read.
            None => {
                call(&what, unsafe { self.context.alloc_pinned_with_flags(bytes.next_power_of_two(), 0) })?
            }
        };
        let written = call(&what, self.blocking_event())?;
        let to = &mut call(&what, memory.as_mut_slice())?[..bytes];
        // SAFETY: both are long enough; the memory is read, or freed, after the event only.
        call(&what, unsafe { result::memcpy_dtoh_async(to, buffer.address(), self.stream.cu_stream()) })?;
        call(&what, written.record(&self.stream))?;
        Ok(Pending { what, memory: Some(memory), bytes, written })
    }

    /// Waits for `pending` values.
    ///
    /// # Errors
    /// If the work before failed.
    pub fn collect<T: Plain>(&mut self, mut pending: Pending) -> Result<Vec<T>, CudaError> {
        call(&pending.what, pending.written.synchronize())?;
        let memory = pending.memory.take().expect("collected once");
        let mut values = vec![T::default(); pending.bytes / size_of::<T>()];
        // SAFETY: values without padding, valid whatever their bytes are, may be written as the bytes that they are.
        let to = unsafe {
            std::slice::from_raw_parts_mut(values.as_mut_ptr().cast::<u8>(), size_of_val(values.as_slice()))
        };
        to.copy_from_slice(&call(&pending.what, memory.as_slice())?[..to.len()]);
        self.spare.push(memory);
        Ok(values)
    }

    /// Waits for all work and copies `count` values from the start of `buffer`.
    ///
    /// # Errors
    /// If there are fewer, or the work before failed.
    pub fn read<T: Plain>(&mut self, what: &str, buffer: &Buffer, count: usize) -> Result<Vec<T>, CudaError> {
        at_least(format_args!("reading {what}"), buffer, count * size_of::<T>())?;
        call(what, self.context.bind_to_thread())?;
        let mut values = vec![T::default(); count];
        let what = format!("reading {what} from the GPU");
        // SAFETY: `values` and the buffer are long enough, and the stream is waited for before `values` is used.
        let copied =
            unsafe { result::memcpy_dtoh_async(&mut values, buffer.address(), self.stream.cu_stream()) };
        let waited = self.stream.synchronize();
        call(&what, copied.and(waited))?;
        Ok(values)
    }

    /// Copies the bytes of `from` to the start of `to`.
    ///
    /// # Errors
    /// If they do not fit or overlap.
    pub fn copy(&mut self, from: &Buffer, to: &Buffer) -> Result<(), CudaError> {
        at_least(format_args!("copying on the GPU"), to, from.len)?;
        if from.overlaps(&to.part(0, from.len)) {
            return Err(CudaError::Overlap { context: "copying on the GPU".into() });
        }
        self.keep(&[from, to]);
        call("copying", self.context.bind_to_thread())?;
        // SAFETY: both buffers have `from.len` bytes, apart from each other.
        call("copying on the GPU", unsafe {
            result::memcpy_dtod_async(to.address(), from.address(), from.len, self.stream.cu_stream())
        })
    }

    /// Sets every byte of `buffer` to `value`.
    ///
    /// # Errors
    /// If the driver fails.
    pub fn fill(&mut self, buffer: &Buffer, value: u8) -> Result<(), CudaError> {
        self.keep(&[buffer]);
        call("filling GPU memory", self.context.bind_to_thread())?;
        // SAFETY: the buffer has `len` bytes.
        call("filling GPU memory", unsafe {
            result::memset_d8_async(buffer.address(), value, buffer.len, self.stream.cu_stream())
        })
    }

    /// Records the launches of `work` instead of doing them.
    ///
    /// # Errors
    /// Those of `work`, or if the driver cannot record.
    pub fn record(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<(), CudaError>,
    ) -> Result<Graph, CudaError> {
        let mode = sys::CUstreamCaptureMode_enum::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        call("recording launches", self.stream.begin_capture(mode))?;
        self.recording = Some(Vec::new());
        let done = work(self);
        let graph =
            call("recording launches", self.stream.end_capture(sys::CUgraphInstantiate_flags_enum(0)));
        let used = self.recording.take().unwrap_or_default();
        done?;
        let graph = graph?.ok_or_else(|| CudaError::Call {
            what: "recording launches".into(),
            reason: "the driver recorded nothing".into(),
        })?;
        Ok(Graph { graph, _used: used })
    }

    /// Does the recorded launches.
    ///
    /// # Errors
    /// If the driver fails.
    pub fn replay(&mut self, graph: &mut Graph) -> Result<(), CudaError> {
        call("replaying launches", graph.graph.launch())
    }

    /// Waits for all work.
    ///
    /// # Errors
    /// If the work failed.
    pub fn finish(&mut self) -> Result<(), CudaError> {
        call("waiting for the GPU", self.stream.synchronize())
    }

    /// Milliseconds that the GPU takes for `work`.
    ///
    /// # Errors
    /// Those of `work`.
    pub fn time(&mut self, work: impl FnOnce(&mut Self) -> Result<(), CudaError>) -> Result<f32, CudaError> {
        let what = "measuring";
        let flags = Some(sys::CUevent_flags_enum::CU_EVENT_DEFAULT);
        let start = call(what, self.stream.record_event(flags))?;
        work(self)?;
        let end = call(what, self.stream.record_event(flags))?;
        call(what, end.synchronize())?;
        call(what, start.elapsed_ms(&end))
    }

    /// Packs the weights `[output, input, kernel, kernel]` of a convolution for `kernel`.
    ///
    /// # Errors
    /// If the kernel does not compute such a convolution, a buffer is too short or memory is short.
    pub fn pack(&mut self, kernel: &Kernel, shape: ConvShape, weights: &Buffer) -> Result<Packed, CudaError> {
        let count = shape.output * shape.input * shape.kernel * shape.kernel;
        at_least(format_args!("weights of {}", kernel.entry), weights, 4 * count)?;
        let op = Op { block: kernel.family == Family::Block, ..Op::conv(shape, 1, 1) };
        if !kernel.computes(&op) {
            return Err(CudaError::Refused { kernel: kernel.entry, reason: Refusal::Layer(op) });
        }
        let packing = kernel.packing();
        let (entry, bytes) = match packing {
            Packing::None => {
                let (buffer, channels) = (weights.clone(), kernel.channels);
                return Ok(Packed { buffer, shape, packing, channels });
            }
            Packing::Fp32 => ("pack_f32", 4),
            Packing::Units(Arithmetic::Fp16) => ("pack_units_f16", 2),
            Packing::Units(Arithmetic::Tf32x3) => ("pack_units_tf32x3", 8),
            Packing::Units(_) => ("pack_units_tf32", 4),
        };
        let buffer = self.allocate("packed weights", bytes * count)?;
        let args = PackArgs {
            w: weights.address(),
            packed: buffer.address(),
            cin: small(entry, "channels", shape.input)?,
            cout: small(entry, "channels", shape.output)?,
            kernel: small(entry, "kernel", shape.kernel)?,
            tile: kernel.channels,
        };
        const THREADS: u32 = tile("PACK_THREADS");
        let blocks = small(entry, "weights", count)?.div_ceil(THREADS);
        let function = self.function("pack.cu", entry, 0)?;
        self.keep(&[weights, &buffer]);
        // SAFETY: one thread per weight; both buffers hold all of them, and the kernel's tiles divide the channels.
        unsafe { self.launch(entry, &function, (blocks, 1, 1), THREADS, 0, &args, None) }?;
        Ok(Packed { buffer, shape, packing, channels: kernel.channels })
    }

    /// Launches a convolution.
    ///
    /// # Errors
    /// If the kernel does not run on the device or does not compute the layer, or if a buffer has the wrong size.
    pub fn conv(&mut self, conv: &ConvLaunch<'_>) -> Result<(), CudaError> {
        let ConvLaunch { kernel, op, batch, x, weights, bias, epilogue, y, overflow } = *conv;
        let entry = kernel.entry;
        self.accepts(kernel, &op, false)?;
        if !weights.fits(kernel, &op) {
            return Err(CudaError::Packing { kernel: entry });
        }
        let bytes = kernel.arithmetic.value_bytes();
        let input_bytes = if kernel.family == Family::Stem { 4 } else { bytes };
        let output = bytes * op.output_len(batch);
        at_least(format_args!("{entry}: input"), x, input_bytes * op.input_len(batch))?;
        at_least(format_args!("{entry}: bias"), bias, 4 * op.shape.output)?;
        at_least(format_args!("{entry}: output"), y, output)?;
        at_least(format_args!("{entry}: overflow word"), overflow, 4)?;
        let residual = match epilogue {
            Epilogue::ResidualRelu(residual) => {
                at_least(format_args!("{entry}: residual"), residual, output)?;
                Some(residual)
            }
            _ => None,
        };
        let inputs = [Some(x), residual, Some(&weights.buffer), Some(bias), Some(overflow)];
        if inputs.into_iter().flatten().any(|input| y.overlaps(input)) {
            return Err(CudaError::Overlap { context: entry.into() });
        }
        let Some(grid) = self.grid(kernel, &op, batch)? else { return Ok(()) };
        // All of them are factors of lengths that fit.
        let number = |value: usize| value as u32;
        let args = ConvArgs {
            x: x.address(),
            w: weights.buffer.address(),
            bias: bias.address(),
            residual: residual.map_or(0, Buffer::address),
            y: y.address(),
            overflow: overflow.address(),
            batch: number(batch),
            cin: number(op.shape.input),
            cout: number(op.shape.output),
            h_in: number(op.height),
            w_in: number(op.width),
            h_out: number(op.height_out()),
            w_out: number(op.width_out()),
            relu: u32::from(!matches!(epilogue, Epilogue::Bias)),
        };
        let map = if kernel.persistent() { Some(tensor_map(kernel, &op, batch, x)?) } else { None };
        let shared = kernel.shared_bytes(self.device.architecture);
        let function = self.function(kernel.file(), entry, shared)?;
        self.keep(&[x, bias, y, overflow, &weights.buffer]);
        self.keep(residual.as_slice());
        // SAFETY: the kernel reads the input, the weights (whose packing and shape agree), the bias and the residual, and
        // writes the output and the overflow word. All are as long as the geometry says, and the output is apart.
        unsafe { self.launch(entry, &function, grid, kernel.threads, shared, &args, map.as_ref()) }
    }

    /// Launches a basic block.
    ///
    /// # Errors
    /// If the kernel does not run on the device or does not compute the block, or if a buffer has the wrong size.
    pub fn block(&mut self, block: &BlockLaunch<'_>) -> Result<(), CudaError> {
        let BlockLaunch { kernel, op, batch, x, weights, bias, y, overflow } = *block;
        let entry = kernel.entry;
        self.accepts(kernel, &op, true)?;
        if !weights.iter().all(|weights| weights.fits(kernel, &op)) {
            return Err(CudaError::Packing { kernel: entry });
        }
        let bytes = kernel.arithmetic.value_bytes();
        at_least(format_args!("{entry}: input"), x, bytes * op.input_len(batch))?;
        for bias in bias {
            at_least(format_args!("{entry}: bias"), bias, 4 * op.shape.output)?;
        }
        at_least(format_args!("{entry}: output"), y, bytes * op.output_len(batch))?;
        at_least(format_args!("{entry}: overflow word"), overflow, 4)?;
        let packed = weights.map(|weights| &weights.buffer);
        let inputs = [x, packed[0], packed[1], bias[0], bias[1], overflow];
        if inputs.into_iter().any(|input| y.overlaps(input)) {
            return Err(CudaError::Overlap { context: entry.into() });
        }
        let Some(grid) = self.grid(kernel, &op, batch)? else { return Ok(()) };
        let args = BlockArgs {
            x: x.address(),
            w: packed.map(Buffer::address),
            bias: bias.map(Buffer::address),
            y: y.address(),
            overflow: overflow.address(),
            // All of them are factors of lengths that fit.
            batch: batch as u32,
            height: op.height as u32,
            width: op.width as u32,
            padding: 0,
        };
        let map = tensor_map(kernel, &op, batch, x)?;
        let shared = kernel.shared_bytes(self.device.architecture);
        let function = self.function(kernel.file(), entry, shared)?;
        self.keep(&inputs);
        self.keep(&[y]);
        // SAFETY: the kernel reads the input, the weights of both convolutions (whose packing and shape agree) and both
        // biases, and writes the output and the overflow word. All are as long as the geometry says, and the output is
        // apart.
        unsafe { self.launch(entry, &function, grid, kernel.threads, shared, &args, Some(&map)) }
    }

    /// Whether `kernel` runs here and computes `op`, which is a block or not.
    fn accepts(&self, kernel: &Kernel, op: &Op, block: bool) -> Result<(), CudaError> {
        let computes = if op.block == block { Ok(()) } else { Err(Refusal::Layer(*op)) };
        computes
            .and_then(|()| kernel.check(&self.device, op))
            .map_err(|reason| CudaError::Refused { kernel: kernel.entry, reason })
    }

    /// The grid of `kernel` for `op` on `batch` windows, whose sizes fit the kernels' 32-bit indices; `None` if there is
    /// nothing to do.
    fn grid(&self, kernel: &Kernel, op: &Op, batch: usize) -> Result<Option<(u32, u32, u32)>, CudaError> {
        let entry = kernel.entry;
        let most = u64::from(u32::MAX);
        for (what, actual) in [("input", op.input_len(batch)), ("output", op.output_len(batch))] {
            within(format_args!("{entry}: values of the {what}"), actual as u64, most)?;
        }
        let [columns, rows, slices] = kernel.tiles(op, batch);
        let tiles = kernel.blocks(op, batch);
        within(format_args!("{entry}: tiles"), tiles, i32::MAX as u64)?;
        if tiles == 0 {
            return Ok(None);
        }
        if kernel.persistent() {
            return Ok(Some((tiles.min(u64::from(self.device.sms)) as u32, 1, 1)));
        }
        within(format_args!("{entry}: rows of tiles"), rows, GRID_YZ)?;
        within(format_args!("{entry}: slices of tiles"), slices, GRID_YZ)?;
        Ok(Some((columns as u32, rows as u32, slices as u32)))
    }

    /// Pools the trunk frames of each of `jobs` for its local speakers into `statistics`, FP32
    /// `[jobs, LOCAL_SPEAKERS, 2 * TRUNK_DIM]`: mean then standard deviation, each channel-major. `jobs_buffer` takes
    /// the jobs to the GPU.
    ///
    /// # Errors
    /// If a job reads outside of `maps` or a buffer is too short.
    pub fn pool(
        &mut self,
        arithmetic: Arithmetic,
        maps: &Buffer,
        jobs: &[PoolJob],
        jobs_buffer: &Buffer,
        statistics: &Buffer,
    ) -> Result<(), CudaError> {
        let entry = if arithmetic == Arithmetic::Fp16 { "pool_f16" } else { "pool_f32" };
        let lines = TRUNK_ROWS * TRUNK_CHANNELS * arithmetic.value_bytes() / UNIT;
        for job in jobs {
            let end = |unit: u32, pitch: u32, count: usize| {
                if count == 0 { 0 } else { unit as usize + (lines - 1) * pitch as usize + count }
            };
            let count0 = job.count0 as usize;
            within(format_args!("{entry}: frames"), u64::from(job.count0), POOL_FRAMES as u64)?;
            let units =
                end(job.unit0, job.pitch0, count0).max(end(job.unit1, job.pitch1, POOL_FRAMES - count0));
            at_least(format_args!("{entry}: maps"), maps, UNIT * units)?;
        }
        at_least(
            format_args!("{entry}: statistics"),
            statistics,
            jobs.len() * LOCAL_SPEAKERS * 2 * TRUNK_DIM * 4,
        )?;
        if jobs.is_empty() {
            return Ok(());
        }
        self.write("pooling jobs", jobs_buffer, jobs)?;
        let args = PoolArgs {
            maps: maps.address(),
            jobs: jobs_buffer.address(),
            statistics: statistics.address(),
            jobs_count: small(entry, "jobs", jobs.len())?,
            height: TRUNK_ROWS as u32,
        };
        const THREADS: u32 = tile("POOL_THREADS");
        let blocks = (lines as u32).div_ceil(THREADS / tile("WARP"));
        let function = self.function("pooling.cu", entry, 0)?;
        // SAFETY: every job lies inside the maps, and there is room for the statistics of each.
        unsafe { self.launch(entry, &function, (args.jobs_count, blocks, 1), THREADS, 0, &args, None) }
    }

    /// The linear layer of the embedding: `rows` rows `[2 * TRUNK_DIM]` of `statistics` to rows `[EMBEDDING_DIM]` of
    /// `out`. `partial` holds [`dense_partial_bytes`].
    ///
    /// # Errors
    /// If a buffer is too short.
    pub fn dense(
        &mut self,
        rows: usize,
        statistics: &Buffer,
        weights: &Buffer,
        bias: &Buffer,
        partial: &Buffer,
        out: &Buffer,
    ) -> Result<(), CudaError> {
        let (inputs, outputs) = (2 * TRUNK_DIM, EMBEDDING_DIM);
        at_least(format_args!("dense_f32: statistics"), statistics, 4 * rows * inputs)?;
        at_least(format_args!("dense_f32: weights"), weights, 4 * inputs * outputs)?;
        at_least(format_args!("dense_f32: bias"), bias, 4 * outputs)?;
        at_least(format_args!("dense_f32: partial sums"), partial, dense_partial_bytes(rows))?;
        at_least(format_args!("dense_f32: output"), out, 4 * rows * outputs)?;
        if rows == 0 {
            return Ok(());
        }
        const THREADS: u32 = tile("DENSE_THREADS");
        const SPLITS: u32 = tile("DENSE_SPLITS");
        let args = DenseArgs {
            input: statistics.address(),
            w: weights.address(),
            bias: bias.address(),
            partial: partial.address(),
            out: out.address(),
            rows: small("dense_f32", "rows", rows)?,
            inputs: inputs as u32,
            outputs: outputs as u32,
            splits: SPLITS,
        };
        within(format_args!("dense_f32: outputs"), (rows * outputs) as u64, u64::from(u32::MAX))?;
        let tiles = |size: u32| size.div_ceil(tile("DENSE_TILE"));
        let grid = (tiles(args.outputs), tiles(args.rows), SPLITS);
        within(format_args!("dense_f32: rows of tiles"), u64::from(grid.1), GRID_YZ)?;
        self.keep(&[statistics, weights, bias, partial, out]);
        let function = self.function("dense.cu", "dense_f32", 0)?;
        // SAFETY: all rows, weights and partial sums lie inside their buffers.
        unsafe { self.launch("dense_f32", &function, grid, THREADS, 0, &args, None) }?;
        let function = self.function("dense.cu", "dense_reduce", 0)?;
        let blocks = (args.rows * args.outputs).div_ceil(THREADS);
        // SAFETY: as above.
        unsafe { self.launch("dense_reduce", &function, (blocks, 1, 1), THREADS, 0, &args, None) }
    }

    /// Launches `entry` of `file` with one struct of `arguments`, in its order. Buffers are checked for the bytes that the
    /// caller says the kernel reads or writes.
    ///
    /// # Errors
    /// If a buffer is too short, an output overlaps another buffer, or the struct has another size than the kernel's.
    pub(super) fn call(
        &mut self,
        (file, entry): (&'static str, &'static str),
        grid: [usize; 3],
        threads: u32,
        shared: u32,
        arguments: &[Arg<'_>],
    ) -> Result<(), CudaError> {
        let mut blob = Blob::default();
        for (index, argument) in arguments.iter().enumerate() {
            match *argument {
                Arg::In(name, buffer, bytes) | Arg::Out(name, buffer, bytes) => {
                    at_least(format_args!("{entry}: {name}"), buffer, bytes)?;
                    blob.push(&buffer.address().to_le_bytes());
                    self.keep(&[buffer]);
                    let written = matches!(argument, Arg::Out(..));
                    let others = arguments.iter().enumerate().filter(|(other, _)| written && *other != index);
                    let overlaps = |(_, other): (usize, &Arg<'_>)| match other {
                        Arg::In(_, other, _) | Arg::Out(_, other, _) => buffer.overlaps(other),
                        _ => false,
                    };
                    if others.into_iter().any(overlaps) {
                        return Err(CudaError::Overlap { context: format!("{entry}: {name}") });
                    }
                }
                Arg::Null => blob.push(&0u64.to_le_bytes()),
                Arg::U64(value) => blob.push(&value.to_le_bytes()),
                Arg::Size(name, value) => blob.push(&small(entry, name, value)?.to_le_bytes()),
                Arg::F32(value) => blob.push(&value.to_le_bytes()),
            }
        }
        let Architecture { major, minor } = self.device.capability;
        let architecture = self.artifacts.image((major, minor), file)?.architecture;
        let known = self.artifacts.entries(architecture, file).iter().find(|known| known.name == entry);
        if let Some(expected) = known.and_then(|known| known.parameter_bytes)
            && expected as usize != blob.len.next_multiple_of(8)
        {
            let context = format!("{entry}: arguments");
            return Err(CudaError::BufferLength { context, expected: expected as usize, actual: blob.len });
        }
        if grid.contains(&0) {
            return Ok(());
        }
        within(format_args!("{entry}: grid"), grid[0] as u64, i32::MAX as u64)?;
        within(format_args!("{entry}: grid"), grid[1].max(grid[2]) as u64, GRID_YZ)?;
        let function = self.function(file, entry, shared)?;
        let grid = (grid[0] as u32, grid[1] as u32, grid[2] as u32);
        // SAFETY: the struct has the kernel's size, and every buffer in it the bytes that the caller, which knows the
        // kernel, says it needs; kernels reach GPU memory only.
        unsafe { self.launch(entry, &function, grid, threads, shared, &blob, None) }
    }

    /// The function `entry` of `file`, which may use `shared` bytes of dynamic shared memory.
    fn function(
        &mut self,
        file: &'static str,
        entry: &'static str,
        shared: u32,
    ) -> Result<CudaFunction, CudaError> {
        if let Some(function) = self.functions.get(entry) {
            return Ok(function.clone());
        }
        let module = match self.modules.get(file) {
            Some(module) => module.clone(),
            None => {
                let Architecture { major, minor } = self.device.capability;
                let image = self.artifacts.image((major, minor), file)?;
                let what = format!("loading {file} for {}", image.architecture);
                let code = match image.code {
                    Code::Cubin(bytes) => Ptx::from_binary(bytes.to_vec()),
                    Code::Ptx(text) => Ptx::from_src(text),
                };
                let module = call(&what, self.context.load_module(code))?;
                self.modules.insert(file, module.clone());
                module
            }
        };
        let what = format!("loading kernel {entry}");
        let function = call(&what, module.load_function(entry))?;
        let most = CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        call(&what, function.set_attribute(most, shared as i32))?;
        self.functions.insert(entry, function.clone());
        Ok(function)
    }

    /// Keeps `buffers` alive as long as what is being recorded.
    fn keep(&mut self, buffers: &[&Buffer]) {
        if let Some(used) = &mut self.recording {
            used.extend(buffers.iter().map(|buffer| buffer.memory.clone() as Arc<dyn Any + Send + Sync>));
        }
    }

    /// Launches `function` with one struct of arguments, and a tensor map as the second argument.
    ///
    /// # Safety
    /// The struct must be what the function takes, and the addresses in it must be valid for all that the grid reads
    /// and writes.
    #[expect(clippy::too_many_arguments, reason = "a launch has that many")]
    unsafe fn launch<A: DeviceRepr>(
        &mut self,
        entry: &str,
        function: &CudaFunction,
        grid: (u32, u32, u32),
        threads: u32,
        shared: u32,
        args: &A,
        map: Option<&TensorMap>,
    ) -> Result<(), CudaError> {
        if let Some(used) = &mut self.recording {
            used.push(Arc::new(function.clone()));
        }
        let mut launch = self.stream.launch_builder(function);
        launch.arg(args);
        if let Some(map) = map {
            launch.arg(map);
        }
        let config = LaunchConfig { grid_dim: grid, block_dim: (threads, 1, 1), shared_mem_bytes: shared };
        // SAFETY: the caller's.
        call(&format!("launching {entry}"), unsafe { launch.launch(config) }).map(|_| ())
    }
}

/// Bytes of the partial sums of [`Gpu::dense`].
pub const fn dense_partial_bytes(rows: usize) -> usize {
    4 * tile("DENSE_SPLITS") as usize * rows * EMBEDDING_DIM
}

/// Describes the input of `kernel` to the copy engine: as pairs of 8 bytes, so that a row of 66 pixels fits a box.
fn tensor_map(kernel: &Kernel, op: &Op, batch: usize, x: &Buffer) -> Result<TensorMap, CudaError> {
    let planes = op.shape.input * kernel.arithmetic.value_bytes() / UNIT * batch;
    let (width, height) = (op.width as u64, op.height as u64);
    let dims = [2 * width, height, planes as u64];
    let strides = [UNIT as u64 * width, UNIT as u64 * width * height];
    let [columns, lines, units] = kernel.input_box();
    let boxes = [2 * columns, lines, units];
    let ones = [1u32; 3];
    let mut map = MaybeUninit::<TensorMap>::uninit();
    // SAFETY: three dimensions are described by arrays of three (strides of two); the map is written if the call succeeds.
    let status = unsafe {
        sys::cuTensorMapEncodeTiled(
            map.as_mut_ptr().cast(),
            sys::CUtensorMapDataType_enum::CU_TENSOR_MAP_DATA_TYPE_FLOAT64,
            3,
            x.address() as *mut c_void,
            dims.as_ptr(),
            strides.as_ptr(),
            boxes.as_ptr(),
            ones.as_ptr(),
            sys::CUtensorMapInterleave_enum::CU_TENSOR_MAP_INTERLEAVE_NONE,
            sys::CUtensorMapSwizzle_enum::CU_TENSOR_MAP_SWIZZLE_NONE,
            sys::CUtensorMapL2promotion_enum::CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
            sys::CUtensorMapFloatOOBfill_enum::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
        )
    };
    call(&format!("describing the input of {}", kernel.entry), status.result())?;
    // SAFETY: the call succeeded.
    Ok(unsafe { map.assume_init() })
}

fn at_least(context: std::fmt::Arguments<'_>, buffer: &Buffer, expected: usize) -> Result<(), CudaError> {
    if buffer.len >= expected {
        return Ok(());
    }
    Err(CudaError::BufferLength { context: context.to_string(), expected, actual: buffer.len })
}

fn within(context: std::fmt::Arguments<'_>, actual: u64, most: u64) -> Result<(), CudaError> {
    if actual <= most {
        return Ok(());
    }
    Err(CudaError::Index { context: context.to_string(), actual, most })
}

fn small(entry: &str, what: &str, value: usize) -> Result<u32, CudaError> {
    within(format_args!("{entry}: {what}"), value as u64, i32::MAX as u64)?;
    Ok(value as u32)
}
