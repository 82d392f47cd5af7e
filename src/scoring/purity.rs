//! Purity and coverage of clusters, as pyannote.metrics defines them: 1 is best.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use super::Tally;

/// Sums behind purity and coverage, in seconds of speaker time.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Purity {
    /// Time of the hypothesis speakers.
    pub hypothesis: f64,
    /// Time of the reference speakers.
    pub reference: f64,
    /// Time of every hypothesis speaker together with the reference speaker they share the most with.
    pub pure: f64,
    /// Time of every reference speaker together with the hypothesis speaker they share the most with.
    pub covered: f64,
}

impl Purity {
    /// From the times that speakers share.
    pub fn new(tally: &Tally) -> Self {
        let best = |speaker: fn(&(usize, usize)) -> usize| -> f64 {
            let mut most = BTreeMap::<usize, i64>::new();
            for (pair, &time) in &tally.shared {
                let entry = most.entry(speaker(pair)).or_default();
                *entry = time.max(*entry);
            }
            most.values().sum::<i64>() as f64 / 1e6
        };
        Self {
            hypothesis: tally.hypothesis_time.iter().sum::<i64>() as f64 / 1e6,
            reference: tally.reference_time.iter().sum::<i64>() as f64 / 1e6,
            pure: best(|pair| pair.1),
            covered: best(|pair| pair.0),
        }
    }

    /// How much of the hypothesis speakers' time belongs to one reference speaker each.
    pub fn purity(&self) -> f64 {
        if self.hypothesis > 0.0 { self.pure / self.hypothesis } else { 1.0 }
    }

    /// How much of the reference speakers' time is found under one hypothesis speaker each.
    pub fn coverage(&self) -> f64 {
        if self.reference > 0.0 { self.covered / self.reference } else { 1.0 }
    }
}

impl AddAssign for Purity {
    /// Adds another recording, weighted by time.
    fn add_assign(&mut self, other: Self) {
        self.hypothesis += other.hypothesis;
        self.reference += other.reference;
        self.pure += other.pure;
        self.covered += other.covered;
    }
}
