//! Streaming conversion of a mono signal to 16 kHz, without delay and with an exact length.
//!
//! Depends on rubato and on the constants of the parent module.

use rubato::audioadapter_buffers::direct::InterleavedSlice;
use rubato::{
    Async, FixedAsync, Resampler as _, SincInterpolationParameters, SincInterpolationType, WindowFunction,
};

use super::{AudioError, MAX_HOURS, SAMPLE_RATE};

/// Input frames handed to rubato at a time.
const CHUNK: usize = 4096;

/// Taps of the anti-alias filter when the rate is not lowered; it grows with the rate otherwise.
const TAPS: usize = 256;

/// Up to this many filter phases are tabulated exactly; beyond, phases are interpolated.
const EXACT_PHASES: u32 = 1280;

/// Smallest step by which the sample store grows, in samples (4 MB).
const GROWTH: usize = 1 << 20;

/// The growing 16 kHz result.
#[derive(Default)]
pub struct Samples {
    data: Vec<f32>,
}

impl Samples {
    /// Appends `block`.
    ///
    /// # Errors
    /// [`AudioError::Limit`] beyond [`MAX_HOURS`], [`AudioError::OutOfMemory`] if the memory is not there.
    pub fn extend(&mut self, block: &[f32]) -> Result<(), AudioError> {
        let len = self.data.len() + block.len();
        check_duration(len as u64, SAMPLE_RATE)?;
        if len > self.data.capacity() {
            // Doubling, as Vec does by itself, would waste up to half of the memory of a long recording.
            let step = block.len() + (self.data.len() / 8).max(GROWTH);
            self.data.try_reserve_exact(step).map_err(|_| AudioError::OutOfMemory)?;
        }
        self.data.extend_from_slice(block);
        Ok(())
    }

    /// The samples.
    pub fn into_vec(mut self) -> Vec<f32> {
        self.data.shrink_to_fit();
        self.data
    }
}

/// Checks the duration of `frames` at `rate` (Hz) against the limit.
///
/// # Errors
/// [`AudioError::Limit`] beyond [`MAX_HOURS`].
pub fn check_duration(frames: u64, rate: u32) -> Result<(), AudioError> {
    if frames <= MAX_HOURS * 3600 * u64::from(rate) {
        return Ok(());
    }
    let limit = format!("{MAX_HOURS} hours; cut the file into parts");
    Err(AudioError::Limit { what: "the duration in hours", value: MAX_HOURS + 1, limit })
}

/// Converts one stretch of constant sample rate.
pub struct Resampler {
    rate: u32,
    frames_in: u64,
    sinc: Option<Sinc>,
}

/// The state of a real conversion; absent at 16 kHz, where samples pass through untouched.
struct Sinc {
    inner: Async<f32>,
    input: Vec<f32>,
    output: Vec<f32>,
    /// Leading output samples still to drop.
    skip: usize,
    frames_out: u64,
}

impl Resampler {
    /// A converter from `rate` (Hz, within the limits of the parent module).
    ///
    /// # Errors
    /// [`AudioError::Unsupported`] if rubato refuses the ratio.
    pub fn new(rate: u32) -> Result<Self, AudioError> {
        let sinc = if rate == SAMPLE_RATE { None } else { Some(Sinc::new(rate)?) };
        Ok(Self { rate, frames_in: 0, sinc })
    }

    /// Number of input frames so far.
    pub fn frames_in(&self) -> u64 {
        self.frames_in
    }

    /// Converts `mono` and appends what is ready to `out`.
    ///
    /// # Errors
    /// Those of [`Samples::extend`].
    pub fn push(&mut self, mono: &[f32], out: &mut Samples) -> Result<(), AudioError> {
        self.frames_in += mono.len() as u64;
        match &mut self.sinc {
            None => out.extend(mono),
            Some(sinc) => sinc.push(mono, u64::MAX, out),
        }
    }

    /// Flushes the filter: the total output becomes ceil(frames × 16000 / rate).
    ///
    /// # Errors
    /// Those of [`Samples::extend`].
    pub fn finish(self, out: &mut Samples) -> Result<(), AudioError> {
        let Some(mut sinc) = self.sinc else { return Ok(()) };
        let wanted = (self.frames_in * u64::from(SAMPLE_RATE)).div_ceil(self.rate.into());
        let silence = [0.0; CHUNK];
        while sinc.frames_out < wanted {
            sinc.push(&silence, wanted, out)?;
        }
        Ok(())
    }
}

impl Sinc {
    fn new(rate: u32) -> Result<Self, AudioError> {
        let common = gcd(rate, SAMPLE_RATE);
        let (phases, period) = (SAMPLE_RATE / common, rate / common);
        let taps = (TAPS * rate.max(SAMPLE_RATE) as usize / SAMPLE_RATE as usize).next_multiple_of(8);
        let (oversampling, interpolation) = if phases <= EXACT_PHASES {
            (phases as usize, SincInterpolationType::Nearest)
        } else {
            (TAPS, SincInterpolationType::Cubic)
        };
        let parameters = SincInterpolationParameters::new(taps, WindowFunction::BlackmanHarris2)
            .oversampling_factor(oversampling)
            .interpolation(interpolation);
        let ratio = f64::from(SAMPLE_RATE) / f64::from(rate);
        let inner = Async::new_sinc(ratio, 1.0, &parameters, CHUNK, 1, FixedAsync::Input).map_err(|e| {
            AudioError::Unsupported(format!("cannot convert a sample rate of {rate} Hz: {e}"))
        })?;

        // Counted in phases, output k lies at input position (k + 1) × period + 1 − (taps / 2) × phases: rubato
        // steps before it reads and its filter table is shifted by one phase. Leading zeros are chosen so that
        // the true start falls on an output sample and the samples before it can be dropped without a rest.
        let shift = usize::from(interpolation == SincInterpolationType::Nearest);
        let (phases, period) = (phases as usize, period as usize);
        let start_at = |zeros: usize| (taps / 2 + zeros) * phases - shift;
        let zeros = (0..period).find(|&zeros| start_at(zeros).is_multiple_of(period)).unwrap_or(0);
        let skip = start_at(zeros) / period - 1;
        let output = vec![0.0; inner.output_frames_max()];
        Ok(Self { inner, input: vec![0.0; zeros], output, skip, frames_out: 0 })
    }

    /// Feeds `mono`, appending output until `wanted` samples have been delivered in total.
    fn push(&mut self, mono: &[f32], wanted: u64, out: &mut Samples) -> Result<(), AudioError> {
        self.input.extend_from_slice(mono);
        let mut used = 0;
        while self.input.len() - used >= CHUNK {
            let produced = self.run(used)?;
            used += CHUNK;
            let start = self.skip.min(produced);
            self.skip -= start;
            let room = usize::try_from(wanted - self.frames_out).unwrap_or(usize::MAX);
            let end = produced.min(start.saturating_add(room));
            out.extend(&self.output[start..end])?;
            self.frames_out += (end - start) as u64;
        }
        self.input.drain(..used);
        Ok(())
    }

    /// Converts the chunk at `at` of the input into the output buffer; returns the number of samples.
    fn run(&mut self, at: usize) -> Result<usize, AudioError> {
        let broken = |e: &dyn std::fmt::Display| AudioError::Panicked(format!("resampling: {e}"));
        let room = self.output.len();
        let input = InterleavedSlice::new(&self.input[at..at + CHUNK], 1, CHUNK).map_err(|e| broken(&e))?;
        let mut output = InterleavedSlice::new_mut(&mut self.output, 1, room).map_err(|e| broken(&e))?;
        let (_, produced) =
            self.inner.process_into_buffer(&input, &mut output, None).map_err(|e| broken(&e))?;
        Ok(produced)
    }
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}
