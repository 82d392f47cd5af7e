//! Log-mel features of a recording on the GPU (C6, C17). Depends on `launch`.

use super::error::CudaError;
use super::launch::{Arg, Buffer, Gpu};
use super::tiles::tile;
use crate::features::{FRAME, Fbank, MELS, SHIFT};

const FILE: &str = "fbank.cu";
const FFT: usize = tile("FBANK_FFT") as usize;
/// Frames whose samples are on the GPU at a time: 5 minutes.
const CHUNK: usize = 30_000;
/// Most windows or blocks whose features are cut out at a time.
const MOST: usize = 64;

/// Tables of the transform, and the frames of one recording.
pub struct Features {
    window: Buffer,
    roots: Buffer,
    filters: Buffer,
    weights: Buffer,
    floor: f32,
    samples: Buffer,
    starts: Buffer,
    log_mel: Option<Buffer>,
    frames: usize,
}

impl Features {
    /// Takes the tables of `fbank` to the GPU.
    ///
    /// # Errors
    /// If there is not enough memory.
    pub fn new(gpu: &mut Gpu, fbank: &Fbank) -> Result<Self, CudaError> {
        let root = |k: usize| {
            let angle = -std::f64::consts::TAU * k as f64 / FFT as f64;
            [angle.cos() as f32, angle.sin() as f32]
        };
        let tables = fbank.tables();
        assert!(
            tables.fft == FFT && FRAME == tile("FBANK_FRAME") as usize && MELS == tile("FBANK_MELS") as usize
        );
        let (mut filters, mut weights) = (Vec::new(), Vec::new());
        for (first, filter) in &tables.filters {
            filters.extend([*first as u32, filter.len() as u32, weights.len() as u32]);
            weights.extend_from_slice(filter);
        }
        Ok(Self {
            window: gpu.upload("the window", tables.window)?,
            roots: gpu.upload("the transform", &(0..FFT / 2).map(root).collect::<Vec<_>>())?,
            filters: gpu.upload("the filters", &filters)?,
            weights: gpu.upload("the filters", &weights)?,
            floor: tables.floor,
            samples: gpu.allocate("samples", 4 * ((CHUNK - 1) * SHIFT + FRAME))?,
            starts: gpu.allocate("starts", 4 * MOST)?,
            log_mel: None,
            frames: 0,
        })
    }

    /// Computes the `frames` frames of a recording; behind the end of `samples` there are zeros.
    ///
    /// # Errors
    /// If there is not enough memory or the GPU fails.
    pub fn load(&mut self, gpu: &mut Gpu, samples: &[f32], frames: usize) -> Result<(), CudaError> {
        let bytes = 4 * frames * MELS;
        if self.log_mel.as_ref().is_none_or(|buffer| buffer.len() < bytes) {
            self.log_mel = None;
            self.log_mel = Some(gpu.allocate("features of the recording", bytes)?);
        }
        let log_mel = self.log_mel.as_ref().expect("allocated");
        self.frames = frames;
        for first in (0..frames).step_by(CHUNK) {
            let count = CHUNK.min(frames - first);
            let start = (first * SHIFT).min(samples.len());
            let end = (first * SHIFT + (count - 1) * SHIFT + FRAME).min(samples.len());
            gpu.write("samples", &self.samples, &samples[start..end])?;
            let arguments = [
                Arg::In("samples", &self.samples, 4 * (end - start)),
                Arg::In("window", &self.window, 4 * FRAME),
                Arg::In("roots", &self.roots, 4 * FFT),
                Arg::In("filters", &self.filters, 12 * MELS),
                Arg::In("weights", &self.weights, 4),
                Arg::Out("frames", &log_mel.part(4 * first * MELS, 4 * count * MELS), 4 * count * MELS),
                Arg::Size("first", 0),
                Arg::Size("shift", SHIFT),
                Arg::Size("samples", end - start),
                Arg::F32(self.floor),
            ];
            gpu.call((FILE, "log_mel"), [count, 1, 1], tile("FBANK_THREADS"), 0, &arguments)?;
        }
        Ok(())
    }

    /// Features of the windows of `rows` frames that begin with frames `starts`, each less its mean.
    ///
    /// # Errors
    /// If a window reaches beyond the recording, or the GPU fails.
    pub fn windows(
        &self,
        gpu: &mut Gpu,
        starts: &[usize],
        rows: usize,
        out: &Buffer,
    ) -> Result<(), CudaError> {
        self.cut(gpu, "window_features", starts, rows, rows, [starts.len(), 1, 1], out)
    }

    /// Features of the blocks of `rows` frames that begin with frames `starts`, less the sliding mean over `span` frames.
    ///
    /// # Errors
    /// If a block reaches beyond the recording, or the GPU fails.
    pub fn blocks(
        &self,
        gpu: &mut Gpu,
        starts: &[usize],
        rows: usize,
        span: usize,
        out: &Buffer,
    ) -> Result<(), CudaError> {
        let grid = [rows.div_ceil(tile("FBANK_SLIDING_ROWS") as usize), starts.len(), 1];
        self.cut(gpu, "sliding_features", starts, rows, span, grid, out)
    }

    #[expect(clippy::too_many_arguments, reason = "what both entries have in common")]
    fn cut(
        &self,
        gpu: &mut Gpu,
        entry: &'static str,
        starts: &[usize],
        rows: usize,
        span: usize,
        grid: [usize; 3],
        out: &Buffer,
    ) -> Result<(), CudaError> {
        let last = starts.iter().max().copied().unwrap_or(0) + rows;
        if last > self.frames {
            let context = format!("{entry}: frames");
            return Err(CudaError::Index { context, actual: last as u64, most: self.frames as u64 });
        }
        let log_mel = self.log_mel.as_ref().expect("a recording is loaded");
        gpu.write("starts", &self.starts, &starts.iter().map(|&s| s as u32).collect::<Vec<_>>())?;
        let arguments = [
            Arg::In("frames", log_mel, 4 * self.frames * MELS),
            Arg::In("starts", &self.starts, 4 * starts.len()),
            Arg::Out("features", out, 4 * starts.len() * rows * MELS),
            Arg::Size("rows", rows),
            Arg::Size("span", span),
            Arg::Size("total", self.frames),
            Arg::Size("padding", 0),
        ];
        gpu.call((FILE, entry), grid, tile("FBANK_FEATURE_THREADS"), 0, &arguments)
    }
}
