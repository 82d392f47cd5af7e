//! Comma-separated values after RFC 4180: a header, a row per turn, times in seconds.

use csv::{Terminator, WriterBuilder};

use super::{Report, text};

/// Renders the turns in order of their start. Names are written as they are.
pub fn render(report: &Report) -> Vec<u8> {
    let mut writer = WriterBuilder::new().terminator(Terminator::CRLF).from_writer(Vec::new());
    let mut row = |fields: [&str; 5]| writer.write_record(fields).expect("memory takes every row");
    row(["recording", "speaker", "start", "end", "duration"]);
    let seconds = |milliseconds: u64| format!("{}.{:03}", milliseconds / 1000, milliseconds % 1000);
    for turn in text::turns(report.diarization) {
        let speaker = &report.diarization.speakers[turn.speaker].label;
        let (start, end) = (seconds(turn.start), seconds(turn.end));
        row([report.file, speaker, &start, &end, &seconds(turn.end - turn.start)]);
    }
    writer.into_inner().expect("memory takes every row")
}
