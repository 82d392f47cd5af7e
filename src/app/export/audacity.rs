//! A label track of Audacity: start, end and name between tabs, times in seconds.

use super::{Report, text};

/// Renders the turns in order of their start, with as many decimals as Audacity writes itself.
pub fn render(report: &Report) -> Vec<u8> {
    let names: Vec<String> = report.diarization.speakers.iter().map(|s| text::line(&s.label)).collect();
    let mut labels = String::new();
    for turn in text::turns(report.diarization) {
        let (start, end) = (turn.start as f64 / 1000.0, turn.end as f64 / 1000.0);
        labels += &format!("{start:.6}\t{end:.6}\t{}\n", names[turn.speaker]);
    }
    labels.into_bytes()
}
