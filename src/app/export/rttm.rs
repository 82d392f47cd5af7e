//! NIST RTTM, the way pyannote writes it: start and duration rounded separately to milliseconds.

use super::Report;
use crate::timeline::Segment;
use crate::timeline::rttm::{Turn, write};

/// Renders the turns in order of their start.
pub fn render(report: &Report) -> Vec<u8> {
    let diarization = report.diarization;
    let turn = |s: &Segment| Turn::new(s.start, s.end, diarization.speakers[s.speaker].label.as_str());
    let mut turns: Vec<Turn> = diarization.segments.iter().map(turn).collect();
    turns.sort_by(|a, b| a.start.total_cmp(&b.start).then(a.end().total_cmp(&b.end())));
    let mut bytes = Vec::new();
    write(&mut bytes, report.uri, &turns).expect("memory takes every write");
    bytes
}
