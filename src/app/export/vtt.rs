//! WebVTT: a cue per turn, in the voice of the speaker and with the name as its text.

use quick_xml::escape::partial_escape;

use super::{Report, text};

/// Renders the turns in order of their start.
pub fn render(report: &Report) -> Vec<u8> {
    // `<`, `>` and `&` are escaped as in XML.
    let name = |label: &str| partial_escape(text::line(label)).into_owned();
    let names: Vec<String> = report.diarization.speakers.iter().map(|s| name(&s.label)).collect();
    let mut cues = String::from("WEBVTT\n");
    for turn in text::turns(report.diarization) {
        let (start, end, name) =
            (text::clock(turn.start, '.'), text::clock(turn.end, '.'), &names[turn.speaker]);
        cues += &format!("\n{start} --> {end}\n<v {name}>{name}</v>\n");
    }
    cues.into_bytes()
}
