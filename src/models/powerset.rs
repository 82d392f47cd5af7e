//! The powerset output of segmentation-3.0 (C4).

use super::windows::LOCAL_SPEAKERS;

/// Number of powerset classes: up to 2 of 3 local speakers at once (C4).
pub const CLASSES: usize = 7;

/// Active local speakers of each class, in the network's output order: {}, {0}, {1}, {2}, {0,1}, {0,2}, {1,2} (C4).
pub const MEMBERS: [[u8; LOCAL_SPEAKERS]; CLASSES] =
    [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [1, 0, 1], [0, 1, 1]];

/// Hard decode: the first class with the largest score of every frame, as binary tracks (C4).
///
/// `scores` is row-major `[frames, CLASSES]`; the result is row-major `[frames, LOCAL_SPEAKERS]`.
///
/// # Panics
/// If the length is no multiple of [`CLASSES`].
pub fn decode(scores: &[f32]) -> Vec<u8> {
    let (frames, rest) = scores.as_chunks::<CLASSES>();
    assert!(rest.is_empty(), "{} scores", scores.len());
    frames
        .iter()
        .flat_map(|frame| {
            let best = (1..CLASSES).fold(0, |best, k| if frame[k] > frame[best] { k } else { best });
            MEMBERS[best]
        })
        .collect()
}
