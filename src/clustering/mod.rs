//! From local speakers and embeddings to speakers of the recording (C7-C12).
//! Depends on `math` and on the geometry in `models`.

use serde::{Deserialize, Serialize};

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
