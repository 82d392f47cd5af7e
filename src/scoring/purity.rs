//! Purity and coverage of clusters, as pyannote.metrics defines them: 1 is best.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use super::Tally;

/// Sums behind purity and coverage, in seconds in which a reference and a hypothesis speaker talk together (every pair
/// counts).
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Purity {
    /// All of it.
    pub shared: f64,
    /// That of every hypothesis speaker with the reference speaker they share the most with.
    pub pure: f64,
    /// That of every reference speaker with the hypothesis speaker they share the most with.
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
            shared: tally.shared.values().sum::<i64>() as f64 / 1e6,
            pure: best(|pair| pair.1),
            covered: best(|pair| pair.0),
        }
    }

    /// How much of the hypothesis speakers' time belongs to one reference speaker each.
    pub fn purity(&self) -> f64 {
        if self.shared > 0.0 { self.pure / self.shared } else { 1.0 }
    }

    /// How much of the reference speakers' time is found under one hypothesis speaker each.
    pub fn coverage(&self) -> f64 {
        if self.shared > 0.0 { self.covered / self.shared } else { 1.0 }
    }
}

impl AddAssign for Purity {
    /// Adds another recording, weighted by time.
    fn add_assign(&mut self, other: Self) {
        self.shared += other.shared;
        self.pure += other.pure;
        self.covered += other.covered;
    }
}
