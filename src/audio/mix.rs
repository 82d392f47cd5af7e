//! Interleaved channels become one: the mean of all or a chosen one, with broken samples repaired.
//!
//! Depends on the types of the parent module only.

use super::{AudioError, Channels};

/// Samples beyond this magnitude are taken for damage (full scale is 1, so this is 18 dB above it).
const LOUDEST: f32 = 8.0;

/// The mean of channels that has less than this share of their energy is what their opposite phases leave (-30 dB).
const CANCELLED: f64 = 1e-3;
/// Energy a sample, below which nothing is said about phases (-60 dB).
const AUDIBLE: f64 = 1e-6;

/// Down-mixes blocks of samples and counts what it had to repair.
pub struct Mixer {
    channels: Channels,
    non_finite: u64,
    too_loud: u64,
    /// Sums over all frames of mixed channels: frames, energy of their mean, mean of their energies.
    mixed: (u64, f64, f64),
}

impl Mixer {
    /// A mixer that follows `channels`.
    pub fn new(channels: Channels) -> Self {
        Self { channels, non_finite: 0, too_loud: 0, mixed: (0, 0.0, 0.0) }
    }

    /// Appends the mono form of `interleaved` (frames of `count` samples) to `mono`.
    ///
    /// # Errors
    /// [`AudioError::NoSuchChannel`] if the chosen channel does not exist.
    pub fn mix(&mut self, interleaved: &[f32], count: usize, mono: &mut Vec<f32>) -> Result<(), AudioError> {
        match self.channels {
            Channels::One(asked) if usize::from(asked) >= count => {
                return Err(AudioError::NoSuchChannel { asked, have: count });
            }
            Channels::One(asked) => {
                let chosen = interleaved.iter().skip(asked.into()).step_by(count);
                mono.extend(chosen.map(|&x| self.repair(x)));
            }
            Channels::Mix if count == 1 => mono.extend(interleaved.iter().map(|&x| self.repair(x))),
            // The f64 sum makes the mean of equal channels equal to each of them, for any channel count.
            Channels::Mix => mono.extend(interleaved.chunks_exact(count).map(|frame| {
                let (mut sum, mut energy) = (0.0, 0.0);
                for x in frame.iter().map(|&x| f64::from(self.repair(x))) {
                    (sum, energy) = (sum + x, energy + x * x);
                }
                let (mean, (frames, of_mean, of_channels)) = (sum / count as f64, self.mixed);
                self.mixed = (frames + 1, of_mean + mean * mean, of_channels + energy / count as f64);
                mean as f32
            })),
        }
        Ok(())
    }

    /// Adds what `other`, of the same channels, has counted.
    pub fn add(&mut self, other: &Self) {
        self.non_finite += other.non_finite;
        self.too_loud += other.too_loud;
        let ((frames, of_mean, of_channels), more) = (self.mixed, other.mixed);
        self.mixed = (frames + more.0, of_mean + more.1, of_channels + more.2);
    }

    /// What had to be repaired, in plain words.
    pub fn warnings(&self) -> Vec<String> {
        let mut out = Vec::new();
        let samples = |count: u64| match count {
            1 => "1 sample was".to_owned(),
            _ => format!("{count} samples were"),
        };
        if self.non_finite > 0 {
            out.push(format!("{} not a number and set to zero", samples(self.non_finite)));
        }
        if self.too_loud > 0 {
            out.push(format!("{} far above full scale and limited", samples(self.too_loud)));
        }
        let (frames, of_mean, of_channels) = self.mixed;
        if of_channels > AUDIBLE * frames as f64 && of_mean < CANCELLED * of_channels {
            let hint = "use a copy with one of them only";
            out.push(format!("the channels cancel each other out, so that almost nothing is left ({hint})"));
        }
        out
    }

    fn repair(&mut self, x: f32) -> f32 {
        if x.abs() <= LOUDEST {
            x
        } else if x.is_finite() {
            self.too_loud += 1;
            x.clamp(-LOUDEST, LOUDEST)
        } else {
            self.non_finite += 1;
            0.0
        }
    }
}
