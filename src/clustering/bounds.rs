//! What the caller knows about the number of speakers (C11). Depends on nothing in this crate.

use serde::{Deserialize, Serialize};

use super::ClusteringError;

/// What the caller knows about the number of speakers (C11). `None` means unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpeakerBounds {
    /// Exact number of speakers; excludes the other two.
    pub num: Option<usize>,
    /// Fewest speakers.
    pub min: Option<usize>,
    /// Most speakers.
    pub max: Option<usize>,
}

/// Checked [`SpeakerBounds`]: `1 <= min <= max`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpeakerRange {
    /// Fewest speakers, 1 if unknown.
    pub min: usize,
    /// Most speakers, `usize::MAX` if unknown.
    pub max: usize,
}

impl SpeakerBounds {
    /// The range that the bounds mean.
    ///
    /// # Errors
    /// If a bound is 0, the least is above the most, or an exact number comes with other bounds.
    pub fn range(&self) -> Result<SpeakerRange, ClusteringError> {
        if self.num.is_some() && (self.min.is_some() || self.max.is_some()) {
            return Err(ClusteringError::ExactWithBounds);
        }
        let min = self.num.or(self.min).unwrap_or(1);
        let max = self.num.or(self.max).unwrap_or(usize::MAX);
        if min == 0 || max == 0 {
            return Err(ClusteringError::NoSpeakers);
        }
        if min > max {
            return Err(ClusteringError::MinAboveMax { min, max });
        }
        Ok(SpeakerRange { min, max })
    }
}

impl SpeakerRange {
    /// Whether `speakers` is within the range.
    pub fn contains(&self, speakers: usize) -> bool {
        (self.min..=self.max).contains(&speakers)
    }
}
