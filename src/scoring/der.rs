//! Diarization error rate: missed speech, false alarms and confused speakers over the reference speech (NIST
//! md-eval; pyannote.metrics gives equal figures).

use std::ops::AddAssign;

use super::Tally;

/// The parts of the diarization error rate, in seconds of speaker time: two speakers at once count twice.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Der {
    /// Scored reference speech.
    pub total: f64,
    /// Reference speech beyond what the hypothesis has at that moment.
    pub missed: f64,
    /// Hypothesis speech beyond what the reference has at that moment.
    pub false_alarm: f64,
    /// Speech on both sides that goes to speakers who are not mapped to each other.
    pub confusion: f64,
}

impl Der {
    /// DER under a mapping of speakers; that of [`super::mapping()`] makes it smallest.
    pub fn new(tally: &Tally, mapping: &[(usize, usize)]) -> Self {
        let correct: i64 = mapping.iter().map(|pair| tally.shared.get(pair).copied().unwrap_or(0)).sum();
        Self {
            total: seconds(tally.reference_time.iter().sum()),
            missed: seconds(tally.missed),
            false_alarm: seconds(tally.false_alarm),
            confusion: seconds(tally.matched - correct),
        }
    }

    /// Missed speech, false alarms and confusion together, in seconds.
    pub fn error(&self) -> f64 {
        self.missed + self.false_alarm + self.confusion
    }

    /// Errors over reference speech, as a fraction that can exceed 1. Without reference speech it is 0 if there is
    /// no error and 1 otherwise.
    pub fn rate(&self) -> f64 {
        match (self.total > 0.0, self.error() > 0.0) {
            (true, _) => self.error() / self.total,
            (false, wrong) => f64::from(u8::from(wrong)),
        }
    }
}

impl AddAssign for Der {
    /// Adds another recording; the rate of the sum is weighted by time.
    fn add_assign(&mut self, other: Self) {
        self.total += other.total;
        self.missed += other.missed;
        self.false_alarm += other.false_alarm;
        self.confusion += other.confusion;
    }
}

fn seconds(micros: i64) -> f64 {
    micros as f64 / 1e6
}
