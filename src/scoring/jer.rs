//! Jaccard error rate (Second DIHARD evaluation plan; dscore): every reference speaker counts the same, however
//! long they talk.

use std::ops::AddAssign;

use super::{Tally, mapping};

/// Number that a Jaccard index of 1 becomes in the integer weights of the mapping.
const SCALE: f64 = (1_i64 << 40) as f64;

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
    /// JER under the mapping of speakers that makes it smallest.
    pub fn new(tally: &Tally) -> Self {
        let index = |&(r, h): &(usize, usize)| {
            let shared = tally.shared[&(r, h)];
            shared as f64 / (tally.reference_time[r] + tally.hypothesis_time[h] - shared) as f64
        };
        let weights = tally.shared.keys().map(|pair| (*pair, (index(pair) * SCALE).round() as i64)).collect();
        let found: f64 = mapping::best(&weights).iter().map(index).sum();
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
