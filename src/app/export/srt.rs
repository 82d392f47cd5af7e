//! SubRip subtitles: a cue per turn that holds the speaker's name and a colon.

use super::{Report, text};

/// Renders the turns in order of their start.
pub fn render(report: &Report) -> Vec<u8> {
    let names: Vec<String> = report.diarization.speakers.iter().map(|s| plain(&s.label)).collect();
    let mut cues = String::new();
    for (index, turn) in text::turns(report.diarization).into_iter().enumerate() {
        let (start, end) = (text::clock(turn.start, ','), text::clock(turn.end, ','));
        cues += &format!("{}\n{start} --> {end}\n{}:\n\n", index + 1, names[turn.speaker]);
    }
    cues.into_bytes()
}

/// `name` without what players take for markup; the format has no way to escape it.
fn plain(name: &str) -> String {
    let replace = |c: char| match c {
        '<' => '‹',
        '>' => '›',
        '{' => '(',
        '}' => ')',
        c => c,
    };
    text::line(name).chars().map(replace).collect()
}
