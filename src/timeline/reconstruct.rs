//! From assigned local speakers to speakers over time (C13, C15). Depends on `models` and `clustering`.

use crate::clustering::Assignment;
use crate::models::windows::{Activity, WINDOW_FRAMES, Windows};

/// Consecutive frames in which one column (a cluster or an extra speaker) is active.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// First active frame.
    pub start: usize,
    /// First inactive frame.
    pub end: usize,
    /// Column, from 0.
    pub column: usize,
}

/// Number of columns of a reconstruction: the clusters, or more where more speakers talk at once (C13).
pub fn columns(clusters: usize, counts: &[u8]) -> usize {
    clusters.max(counts.iter().copied().max().unwrap_or(0).into())
}

/// Marks in every frame as many columns as `counts` says: those most active in the windows around it, the lower
/// column first among equals (C13). With `counts` capped at 1 the result is exclusive (C15).
///
/// Runs come in the order of their start, then column. Only the frames of one window are held as scores, so memory
/// grows with the runs and not with frames times columns.
///
/// # Panics
/// If `activity`, `assignments` and `counts` do not belong to `windows`, or an assignment is no cluster.
pub fn reconstruct(
    windows: &Windows,
    activity: &Activity,
    assignments: &[Assignment],
    clusters: usize,
    counts: &[u8],
) -> Vec<Run> {
    assert_eq!((activity.windows(), assignments.len()), (windows.count(), windows.count()), "windows");
    assert_eq!(counts.len(), windows.frames(), "frames");
    let columns = columns(clusters, counts);
    // Frame f lives in row f % WINDOW_FRAMES until no later window can reach it.
    let mut scores = vec![0u32; WINDOW_FRAMES * columns];
    let mut marks = Marks::new(columns);
    let mut finished = 0;
    for (c, assignment) in assignments.iter().enumerate() {
        let start = windows.start_frame(c);
        for (frame, &count) in counts.iter().enumerate().take(start).skip(finished) {
            marks.frame(frame, count, row(&mut scores, frame, columns));
        }
        finished = start;
        for (i, frame) in activity.window(c).iter().enumerate() {
            let row = row(&mut scores, start + i, columns);
            for (s, cluster) in assignment.iter().enumerate() {
                let Some(cluster) = *cluster else { continue };
                assert!(cluster < clusters, "cluster {cluster} of {clusters}");
                // Local speakers of the same cluster count once (C13).
                let counted = (0..s).any(|other| assignment[other] == Some(cluster) && frame[other] == 1);
                if frame[s] == 1 && !counted {
                    row[cluster] += 1;
                }
            }
        }
    }
    for (frame, &count) in counts.iter().enumerate().skip(finished) {
        marks.frame(frame, count, row(&mut scores, frame, columns));
    }
    marks.finish(counts.len())
}

fn row(scores: &mut [u32], frame: usize, columns: usize) -> &mut [u32] {
    let at = frame % WINDOW_FRAMES * columns;
    &mut scores[at..at + columns]
}

/// Collects the runs of all columns, frame by frame.
struct Marks {
    runs: Vec<Run>,
    /// First frame of the run that each column is in.
    open: Vec<Option<usize>>,
    active: Vec<bool>,
}

impl Marks {
    fn new(columns: usize) -> Self {
        Self { runs: Vec::new(), open: vec![None; columns], active: vec![false; columns] }
    }

    /// Marks the `count` columns with the highest scores and clears the scores.
    fn frame(&mut self, frame: usize, count: u8, scores: &mut [u32]) {
        self.active.fill(false);
        for _ in 0..count {
            let mut best: Option<usize> = None;
            for k in (0..scores.len()).filter(|&k| !self.active[k]) {
                if best.is_none_or(|best| scores[k] > scores[best]) {
                    best = Some(k);
                }
            }
            if let Some(best) = best {
                self.active[best] = true;
            }
        }
        for column in 0..scores.len() {
            match (self.open[column], self.active[column]) {
                (None, true) => self.open[column] = Some(frame),
                (Some(start), false) => {
                    self.runs.push(Run { start, end: frame, column });
                    self.open[column] = None;
                }
                _ => {}
            }
        }
        scores.fill(0);
    }

    fn finish(mut self, frames: usize) -> Vec<Run> {
        for (column, open) in self.open.iter().enumerate() {
            self.runs.extend(open.map(|start| Run { start, end: frames, column }));
        }
        self.runs.sort_by_key(|run| (run.start, run.column));
        self.runs
    }
}
