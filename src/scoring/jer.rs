//! Jaccard error rate (Second DIHARD evaluation plan; dscore; pyannote.metrics): every reference speaker counts the
//! same, however long they talk.
//!
//! The speakers are mapped as for DER, by shared time. That is pyannote.metrics' reading of the plan; dscore maps by
//! the Jaccard index itself, which gives a slightly smaller figure where a long hypothesis speaker covers two
//! reference speakers (1 of the 40 recordings in the tests: 0.3292 instead of 0.3299).

use std::ops::AddAssign;

use super::Tally;

/// Sum of the Jaccard error rates of the reference speakers.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Jer {
    /// Sum over the reference speakers of 1 - intersection / union with the mapped hypothesis speaker, or of 1 for
    /// those without one.
    pub error: f64,
    /// Reference speakers who talk in the scored time.
    pub speakers: usize,
    /// Hypothesis speakers who talk in the scored time.
    pub hypothesis_speakers: usize,
}

impl Jer {
    /// JER under a mapping of speakers, that of [`super::mapping()`].
    pub fn new(tally: &Tally, mapping: &[(usize, usize)]) -> Self {
        let index = |&(r, h): &(usize, usize)| {
            let shared = tally.shared.get(&(r, h)).copied().unwrap_or(0);
            let union = tally.reference_time[r] + tally.hypothesis_time[h] - shared;
            shared as f64 / union.max(1) as f64
        };
        let found: f64 = mapping.iter().map(index).sum();
        let speakers = tally.reference_speakers();
        Self { error: speakers as f64 - found, speakers, hypothesis_speakers: tally.hypothesis_speakers() }
    }

    /// Mean over the reference speakers, from 0 to 1. Without any it is 0 if the hypothesis is silent too and 1
    /// otherwise.
    pub fn rate(&self) -> f64 {
        match (self.speakers, self.hypothesis_speakers) {
            (0, 0) => 0.0,
            (0, _) => 1.0,
            (speakers, _) => self.error / speakers as f64,
        }
    }
}

impl AddAssign for Jer {
    /// Adds another recording; the rate of the sum is weighted by the reference speakers.
    fn add_assign(&mut self, other: Self) {
        self.error += other.error;
        self.speakers += other.speakers;
        self.hypothesis_speakers += other.hypothesis_speakers;
    }
}
