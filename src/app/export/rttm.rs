//! NIST RTTM, the way pyannote writes it: start and duration rounded separately to milliseconds.

use std::fmt::Write;

use super::Report;
use crate::timeline::Segment;

/// Renders the turns in order of their start; turns that last less than half a millisecond are left out,
/// because RTTM allows positive durations only.
pub fn render(report: &Report) -> Vec<u8> {
    let mut segments: Vec<&Segment> = report.diarization.segments.iter().collect();
    segments.sort_by(|a, b| a.start.total_cmp(&b.start).then(a.end.total_cmp(&b.end)));
    let mut text = String::new();
    for segment in segments {
        let duration = format!("{:.3}", segment.end - segment.start);
        if duration.starts_with('-') || duration == "0.000" {
            continue;
        }
        let label = &report.diarization.speakers[segment.speaker].label;
        let (uri, start) = (report.uri, segment.start);
        let _ = writeln!(text, "SPEAKER {uri} 1 {start:.3} {duration} <NA> <NA> {label} <NA> <NA>");
    }
    text.into_bytes()
}
