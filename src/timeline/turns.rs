//! The turns of all speakers, and the promise on their number (C5, C7-C16). Depends on `clustering` and `models`.

use super::aggregate::{capped, speaker_count};
use super::reconstruct::reconstruct;
use super::segment::{Segment, SegmentOptions, segments, speakers};
use crate::clustering::{Clustering, ClusteringError, Params, Plda, SpeakerBounds, SpeakerRange, Voices};
use crate::models::windows::{Activity, Windows};

/// Further numbers of clusters that are tried when too few speakers are left with any time.
const RETRIES: usize = 8;

/// Who spoke when. [`Segment::speaker`] indexes `embeddings`, without gaps (C14).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Turns {
    /// All speech, overlaps included; sorted by start, then end (C14).
    pub segments: Vec<Segment>,
    /// At most one speaker at a time (C15).
    pub exclusive: Vec<Segment>,
    /// Centroid of each speaker; zeros for one that only counting produced (C13, C16) or whose
    /// embeddings were all unusable (C7).
    pub embeddings: Vec<Vec<f32>>,
    /// Plain-language notes.
    pub warnings: Vec<String>,
}

/// Finds the turns of all speakers (C5, C7-C16).
///
/// Never more speakers than `bounds` allow. Fewer only with a warning: clusters may end up without any frame, so
/// where speakers are missing more clusters are tried.
///
/// # Errors
/// If the bounds contradict each other or the embeddings do not fit; see [`ClusteringError`].
///
/// # Panics
/// If `activity` has not one entry per window.
pub fn turns(
    windows: &Windows,
    activity: &Activity,
    embeddings: &[f32],
    plda: &Plda,
    params: &Params,
    bounds: &SpeakerBounds,
    options: &SegmentOptions,
) -> Result<Turns, ClusteringError> {
    let range = bounds.range()?;
    let counts = capped(&speaker_count(windows, activity), range.max);
    if counts.iter().all(|&count| count == 0) {
        return Ok(Turns { warnings: vec!["No speech was found.".into()], ..Turns::default() });
    }
    let voices = Voices::new(activity, embeddings, plda, params)?;
    let timeline = Timeline { windows, activity, counts: &counts, options };
    let (clustering, segments) = within_range(&voices, range, &timeline);
    let exclusive = timeline.segments(&clustering, &capped(&counts, 1));
    let mut turns = label(clustering, segments, exclusive);
    turns.warnings.extend_from_slice(voices.warnings());
    if turns.embeddings.len() < range.min {
        turns.warnings.push(format!(
            "{}{} speakers were asked for, but only {} could be told apart.",
            if range.min == range.max { "" } else { "At least " },
            range.min,
            turns.embeddings.len()
        ));
    }
    Ok(turns)
}

/// The clustering and segments that keep `range`; where none does, those with the most speakers.
fn within_range(voices: &Voices, range: SpeakerRange, timeline: &Timeline) -> (Clustering, Vec<Segment>) {
    let attempt = |clustering: Clustering| {
        let segments = timeline.segments(&clustering, timeline.counts);
        (clustering, segments)
    };
    let mut best = attempt(voices.cluster(range));
    let mut best_count = speakers(&best.1).len();
    let most = (range.min.saturating_add(RETRIES)).min(voices.usable());
    for clusters in range.min..=most {
        if best_count >= range.min {
            break;
        }
        let next = attempt(voices.cluster_into(clusters));
        let count = speakers(&next.1).len();
        if count > best_count && count <= range.max {
            (best, best_count) = (next, count);
        }
    }
    best
}

struct Timeline<'a> {
    windows: &'a Windows,
    activity: &'a Activity,
    counts: &'a [u8],
    options: &'a SegmentOptions,
}

impl Timeline<'_> {
    fn segments(&self, clustering: &Clustering, counts: &[u8]) -> Vec<Segment> {
        let runs =
            reconstruct(self.windows, self.activity, &clustering.assignments, clustering.clusters(), counts);
        segments(&runs, counts.len(), self.options)
    }
}

/// Numbers the columns that have segments without gaps and adds their centroids (C14, C16).
fn label(clustering: Clustering, mut segments: Vec<Segment>, mut exclusive: Vec<Segment>) -> Turns {
    let columns = speakers(&segments);
    let mut index = vec![None; columns.last().map_or(0, |last| last + 1)];
    columns.iter().enumerate().for_each(|(speaker, &column)| index[column] = Some(speaker));
    let renumber = |segment: &mut Segment| match index.get(segment.speaker).copied().flatten() {
        Some(speaker) => {
            segment.speaker = speaker;
            true
        }
        None => false,
    };
    segments.retain_mut(renumber);
    exclusive.retain_mut(renumber);
    let centroids = &clustering.centroids;
    let known =
        |column: usize| column < centroids.len() && centroids.row(column).iter().all(|v| v.is_finite());
    let embedding = |&column: &usize| match known(column) {
        true => centroids.row(column).iter().map(|&v| v as f32).collect(),
        false => vec![0.0; centroids.dim()],
    };
    let embeddings = columns.iter().map(embedding).collect();
    Turns { segments, exclusive, embeddings, warnings: Vec::new() }
}
