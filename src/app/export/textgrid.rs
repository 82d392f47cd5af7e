//! Praat's TextGrid, long form, UTF-8: an interval tier per speaker. A tier has no gaps: where its speaker is silent
//! there are intervals without text.

use std::fmt::Write;

use super::Report;
use super::text::{self, Turn};

/// Renders the tiers in the order of the speakers. Praat wants at least one, so without speech there is an empty one.
pub fn render(report: &Report) -> Vec<u8> {
    let mut tiers: Vec<(String, Vec<Turn>)> = text::distinct_names(report.diarization)
        .into_iter()
        .zip(text::by_speaker(report.diarization))
        .collect();
    if tiers.is_empty() {
        tiers.push(("no speech".into(), Vec::new()));
    }
    let xmax = text::end(report.diarization, tiers.iter().map(|(_, turns)| turns));
    let mut out = String::from("File type = \"ooTextFile\"\nObject class = \"TextGrid\"\n\n");
    let mut put = |depth: usize, line: std::fmt::Arguments| {
        writeln!(out, "{:1$}{line}", "", 4 * depth).expect("memory takes every line");
    };
    put(0, format_args!("xmin = 0"));
    put(0, format_args!("xmax = {}", seconds(xmax)));
    put(0, format_args!("tiers? <exists>"));
    put(0, format_args!("size = {}", tiers.len()));
    put(0, format_args!("item []:"));
    for (number, (name, turns)) in tiers.iter().enumerate() {
        let intervals = intervals(turns, xmax);
        let name = quoted(name);
        put(1, format_args!("item [{}]:", number + 1));
        put(2, format_args!("class = \"IntervalTier\""));
        put(2, format_args!("name = {name}"));
        put(2, format_args!("xmin = 0"));
        put(2, format_args!("xmax = {}", seconds(xmax)));
        put(2, format_args!("intervals: size = {}", intervals.len()));
        for (number, (start, end, speech)) in intervals.into_iter().enumerate() {
            put(2, format_args!("intervals [{}]:", number + 1));
            put(3, format_args!("xmin = {}", seconds(start)));
            put(3, format_args!("xmax = {}", seconds(end)));
            put(3, format_args!("text = {}", if speech { &name } else { "\"\"" }));
        }
    }
    out.into_bytes()
}

/// Start, end and whether there is speech, from 0 to `xmax` without gaps.
fn intervals(turns: &[Turn], xmax: u64) -> Vec<(u64, u64, bool)> {
    let mut intervals = Vec::with_capacity(2 * turns.len() + 1);
    let mut at = 0;
    for turn in turns {
        if at < turn.start {
            intervals.push((at, turn.start, false));
        }
        intervals.push((turn.start, turn.end, true));
        at = turn.end;
    }
    if at < xmax {
        intervals.push((at, xmax, false));
    }
    intervals
}

fn seconds(milliseconds: u64) -> f64 {
    milliseconds as f64 / 1000.0
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}
