//! Scores of many recordings and their total.

use super::{Der, Jer, Options, Purity, Tally, mapping};
use crate::timeline::rttm::Rttm;
use crate::timeline::uem::Uem;

/// Scores of one recording.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Name of the recording.
    pub uri: String,
    /// Diarization error rate.
    pub der: Der,
    /// Jaccard error rate.
    pub jer: Jer,
    /// Purity and coverage.
    pub purity: Purity,
    /// Reference speakers who talk in the scored time.
    pub reference_speakers: usize,
    /// Hypothesis speakers who talk in the scored time.
    pub hypothesis_speakers: usize,
    /// Names of the reference and hypothesis speakers that DER maps to each other.
    pub mapping: Vec<(String, String)>,
    /// Turns, of both sides, that overlapped another turn of their speaker and were merged with it.
    pub merged: usize,
}

/// Scores of all recordings of a reference.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Report {
    /// One row a recording, sorted by name.
    pub rows: Vec<Row>,
    /// Sum over the recordings: its rate is weighted by time.
    pub der: Der,
    /// Sum over the recordings: its rate is weighted by the number of reference speakers.
    pub jer: Jer,
    /// Sum over the recordings, weighted by time.
    pub purity: Purity,
    /// Recordings of the reference that the hypothesis lacks. They are scored as all missed.
    pub missing: Vec<String>,
    /// Recordings of the hypothesis that the reference lacks. They are not scored.
    pub extra: Vec<String>,
    /// Recordings that the UEM lacks, although there is one. They are scored over the union of both extents.
    pub without_uem: Vec<String>,
}

impl Row {
    /// Hypothesis speakers too many (positive) or too few.
    pub fn speaker_error(&self) -> i64 {
        self.hypothesis_speakers as i64 - self.reference_speakers as i64
    }
}

impl Report {
    /// Recordings whose number of speakers is off by exactly `error` in either direction.
    pub fn speakers_off_by(&self, error: u64) -> usize {
        self.rows.iter().filter(|row| row.speaker_error().unsigned_abs() == error).count()
    }
}

/// Scores every recording of `reference`.
pub fn score(reference: &Rttm, hypothesis: &Rttm, uem: Option<&Uem>, options: Options) -> Report {
    let mut report = Report::default();
    for (uri, turns) in &reference.recordings {
        let found = hypothesis.recordings.get(uri);
        if found.is_none() {
            report.missing.push(uri.clone());
        }
        let regions = uem.and_then(|uem| uem.get(uri));
        if uem.is_some() && regions.is_none() {
            report.without_uem.push(uri.clone());
        }
        let found = found.map_or(&[][..], Vec::as_slice);
        let row = row(uri, &Tally::new(turns, found, regions.map(Vec::as_slice), options));
        report.der += row.der;
        report.jer += row.jer;
        report.purity += row.purity;
        report.rows.push(row);
    }
    let extra = hypothesis.recordings.keys().filter(|uri| !reference.recordings.contains_key(*uri));
    report.extra = extra.cloned().collect();
    report
}

fn row(uri: &str, tally: &Tally) -> Row {
    let names =
        |(r, h): (usize, usize)| (tally.reference_names[r].clone(), tally.hypothesis_names[h].clone());
    let mapping = mapping(tally);
    Row {
        uri: uri.to_owned(),
        der: Der::new(tally, &mapping),
        jer: Jer::new(tally, &mapping),
        purity: Purity::new(tally),
        reference_speakers: tally.reference_speakers(),
        hypothesis_speakers: tally.hypothesis_speakers(),
        mapping: mapping.into_iter().map(names).collect(),
        merged: tally.merged_reference + tally.merged_hypothesis,
    }
}
