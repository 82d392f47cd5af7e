//! Window and frame geometry of segmentation-3.0 (C2, C3, C5).

use crate::audio::SAMPLE_RATE;

/// Samples in one window: 10 s (C2).
pub const WINDOW_SAMPLES: usize = 160_000;
/// Output frames of segmentation-3.0 for one window (C3).
pub const WINDOW_FRAMES: usize = 589;
/// Local speakers that segmentation-3.0 tells apart in one window (C4).
pub const LOCAL_SPEAKERS: usize = 3;
/// Time between two frames, in seconds: 270 samples (C3).
pub const FRAME_STEP: f64 = 270.0 / 16_000.0;
/// Receptive field of one frame, in seconds: 991 samples (C3).
pub const FRAME_DURATION: f64 = 991.0 / 16_000.0;
/// A mask without overlap is used when it has more frames than this: 400 samples' worth (C6).
pub const MIN_MASK_FRAMES: usize = (WINDOW_FRAMES * 400).div_ceil(WINDOW_SAMPLES);
/// Default step between windows, in samples: 1 s (C2).
pub const DEFAULT_STEP_SAMPLES: usize = 16_000;

/// How a recording is cut into overlapping windows (C2) and how their frames fall onto the recording's (C5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Windows {
    samples: usize,
    step: usize,
}

impl Windows {
    /// Windows over `samples` samples, one every `step` samples.
    ///
    /// # Panics
    /// If `step` is 0 or longer than a window.
    pub fn new(samples: usize, step: usize) -> Self {
        assert!(step > 0 && step <= WINDOW_SAMPLES, "step of {step} samples");
        Self { samples, step }
    }

    /// Number of windows C, at least 1 (C2).
    pub fn count(&self) -> usize {
        match self.samples.checked_sub(WINDOW_SAMPLES) {
            None => 1,
            Some(rest) => rest / self.step + 1 + usize::from(!rest.is_multiple_of(self.step)),
        }
    }

    /// Number of samples in the recording.
    pub fn samples(&self) -> usize {
        self.samples
    }

    /// Step between windows, in samples.
    pub fn step(&self) -> usize {
        self.step
    }

    /// First sample of window `c`.
    pub fn start_sample(&self, c: usize) -> usize {
        c * self.step
    }

    /// First recording frame that window `c` covers: `rint(c * step / FRAME_STEP)` (C5).
    pub fn start_frame(&self, c: usize) -> usize {
        let seconds = self.start_sample(c) as f64 / f64::from(SAMPLE_RATE);
        (seconds / FRAME_STEP).round_ties_even() as usize
    }

    /// Number of frames F of the recording, padding included (C5).
    pub fn frames(&self) -> usize {
        let end = self.start_sample(self.count() - 1) + WINDOW_SAMPLES;
        let seconds = end as f64 / f64::from(SAMPLE_RATE);
        (seconds / FRAME_STEP).round_ties_even() as usize + 1
    }

    /// Samples of window `c`, zero-padded on the right to [`WINDOW_SAMPLES`] (C2).
    pub fn cut(&self, audio: &[f32], c: usize) -> Vec<f32> {
        let start = self.start_sample(c).min(audio.len());
        let end = (start + WINDOW_SAMPLES).min(audio.len());
        let mut window = audio[start..end].to_vec();
        window.resize(WINDOW_SAMPLES, 0.0);
        window
    }
}

/// Binary activity of the local speakers in every window: the hard powerset decode of segmentation-3.0 (C4).
///
/// Row-major `[windows, WINDOW_FRAMES, LOCAL_SPEAKERS]`, each value 0 or 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Activity {
    data: Vec<u8>,
}

/// Activity of one frame: one 0/1 flag per local speaker.
pub type Frame = [u8; LOCAL_SPEAKERS];

impl Activity {
    /// Wraps `data`, row-major `[windows, WINDOW_FRAMES, LOCAL_SPEAKERS]`.
    ///
    /// # Panics
    /// If the length is no multiple of one window or a value is neither 0 nor 1.
    pub fn new(data: Vec<u8>) -> Self {
        assert!(data.len().is_multiple_of(WINDOW_FRAMES * LOCAL_SPEAKERS), "length {}", data.len());
        assert!(data.iter().all(|&v| v <= 1), "activity is binary");
        Self { data }
    }

    /// Number of windows C.
    pub fn windows(&self) -> usize {
        self.data.len() / (WINDOW_FRAMES * LOCAL_SPEAKERS)
    }

    /// The [`WINDOW_FRAMES`] frames of window `c`.
    pub fn window(&self, c: usize) -> &[Frame] {
        let size = WINDOW_FRAMES * LOCAL_SPEAKERS;
        self.data[c * size..(c + 1) * size].as_chunks().0
    }

    /// Whether local speaker `s` of window `c` is active in any frame.
    pub fn is_active(&self, c: usize, s: usize) -> bool {
        self.window(c).iter().any(|frame| frame[s] == 1)
    }

    /// Number of frames of window `c` in which local speaker `s` is the only active one (C7).
    pub fn solo_frames(&self, c: usize, s: usize) -> usize {
        self.window(c).iter().filter(|frame| frame[s] == 1 && frame.iter().sum::<u8>() == 1).count()
    }

    /// Frames of window `c` that speak for local speaker `s` (C6): those without overlap if there are more than
    /// [`MIN_MASK_FRAMES`] of them, else all of the speaker's; `None` if the speaker is never active.
    pub fn embedding_mask(&self, c: usize, s: usize) -> Option<Vec<u8>> {
        let frames = self.window(c);
        let full: Vec<u8> = frames.iter().map(|frame| frame[s]).collect();
        if !full.contains(&1) {
            return None;
        }
        let clean: Vec<u8> =
            frames.iter().map(|frame| frame[s] & u8::from(frame.iter().sum::<u8>() < 2)).collect();
        let count = clean.iter().filter(|&&v| v == 1).count();
        Some(if count > MIN_MASK_FRAMES { clean } else { full })
    }
}
