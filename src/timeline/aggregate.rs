//! How many speakers talk at a time (C5). Depends on `models`.

use crate::models::windows::{Activity, Windows};

/// Number of speakers in every frame of the recording: the mean over the windows that cover it, halves rounded to
/// even; 0 where no window is (C5).
///
/// # Panics
/// If `activity` has not one entry per window.
pub fn speaker_count(windows: &Windows, activity: &Activity) -> Vec<u8> {
    assert_eq!(activity.windows(), windows.count(), "windows");
    let mut sums = vec![0u32; windows.frames()];
    let mut covering = vec![0u32; windows.frames()];
    for c in 0..windows.count() {
        for (i, frame) in activity.window(c).iter().enumerate() {
            let at = windows.start_frame(c) + i;
            sums[at] += frame.iter().map(|&v| u32::from(v)).sum::<u32>();
            covering[at] += 1;
        }
    }
    sums.iter().zip(&covering).map(|(&sum, &covering)| divide_half_to_even(sum, covering)).collect()
}

/// Counts above `most` lowered to it (C5, C15).
pub fn capped(counts: &[u8], most: usize) -> Vec<u8> {
    let most = u8::try_from(most).unwrap_or(u8::MAX);
    counts.iter().map(|&count| count.min(most)).collect()
}

fn divide_half_to_even(sum: u32, by: u32) -> u8 {
    if by == 0 {
        return 0;
    }
    let (whole, rest) = (sum / by, sum % by);
    let up = 2 * rest > by || (2 * rest == by && whole % 2 == 1);
    (whole + u32::from(up)) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_go_to_even() {
        assert_eq!(divide_half_to_even(5, 10), 0);
        assert_eq!(divide_half_to_even(15, 10), 2);
        assert_eq!(divide_half_to_even(25, 10), 2);
        assert_eq!(divide_half_to_even(6, 10), 1);
        assert_eq!(divide_half_to_even(0, 0), 0);
    }
}
