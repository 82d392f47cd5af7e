//! How long recordings will take, from how long others took. Depends on `pipeline` for its stages.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::pipeline::Stage;

/// Recordings after which the earlier ones hardly count any more.
const MEMORY: f64 = 4.0;

/// What the stages of a recording cost.
#[derive(Debug, Clone, PartialEq)]
pub struct Speed {
    /// Share of each stage in the time of a recording.
    shares: BTreeMap<Stage, f64>,
    /// Seconds for a byte of file; `None` before the first recording is done.
    per_byte: Option<f64>,
}

impl Default for Speed {
    /// Shares as on processors; the first recording replaces them.
    fn default() -> Self {
        let shares = [
            (Stage::Decode, 0.05),
            (Stage::Segmentation, 0.25),
            (Stage::Embedding, 0.62),
            (Stage::Clustering, 0.07),
            (Stage::Write, 0.01),
        ];
        Self { shares: shares.into(), per_byte: None }
    }
}

impl Speed {
    /// Takes in what a recording of `bytes` bytes took.
    pub fn learn(&mut self, timings: &[(Stage, f64)], bytes: u64) {
        let total: f64 = timings.iter().map(|(_, seconds)| seconds).sum();
        if total <= 0.0 || bytes == 0 {
            return;
        }
        let known = self.per_byte.is_some();
        let mix = |old: f64, new: f64| if known { old + (new - old) / MEMORY } else { new };
        for (stage, share) in &mut self.shares {
            let seconds: f64 = timings.iter().filter(|(other, _)| other == stage).map(|(_, s)| s).sum();
            *share = mix(*share, seconds / total);
        }
        self.per_byte = Some(mix(self.per_byte.unwrap_or(0.0), total / bytes as f64));
    }

    /// Share of a recording's work that is done when `done` (0 to 1) of `stage` is.
    pub fn fraction(&self, stage: Stage, done: f32) -> f64 {
        let before: f64 = self.shares.range(..stage).map(|(_, share)| share).sum();
        let now = self.shares.get(&stage).copied().unwrap_or(0.0);
        let all: f64 = self.shares.values().sum();
        ((before + now * f64::from(done.clamp(0.0, 1.0))) / all.max(1e-9)).clamp(0.0, 1.0)
    }

    /// Time that is left of a recording of which `fraction` has taken `elapsed`; `None` while that says too little.
    pub fn left(&self, fraction: f64, elapsed: Duration, bytes: u64) -> Option<Duration> {
        let seconds = match self.per_byte {
            // What this recording shows counts the more, the further it is.
            Some(per_byte) => {
                let expected = per_byte * bytes as f64 * (1.0 - fraction);
                let shown = elapsed.as_secs_f64() * (1.0 - fraction) / fraction.max(0.01);
                expected + (shown - expected) * fraction
            }
            None if fraction >= 0.03 => elapsed.as_secs_f64() * (1.0 - fraction) / fraction,
            None => return None,
        };
        Duration::try_from_secs_f64(seconds).ok()
    }

    /// Time that a recording of `bytes` bytes will take, once one was measured.
    pub fn expected(&self, bytes: u64) -> Option<Duration> {
        Duration::try_from_secs_f64(self.per_byte? * bytes as f64).ok()
    }
}
