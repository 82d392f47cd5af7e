//! A scoring report as people and programs read it: aligned table, Markdown, CSV, JSON.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr;

use crate::scoring::{Der, Interval, Jer, Options, Purity, Report, Row, confusion, score};
use crate::timeline::rttm::Rttm;
use crate::timeline::uem::Uem;

/// Version of the JSON document's layout.
const VERSION: u32 = 1;

/// What was compared.
#[derive(Debug)]
pub struct Comparison {
    /// The true turns.
    pub reference: Rttm,
    /// The turns to judge.
    pub hypothesis: Rttm,
    /// Scored regions.
    pub uem: Option<Uem>,
    /// What produced the hypothesis, if known: model, device, precision, mode, step.
    pub provenance: BTreeMap<&'static str, String>,
}

/// How rows are sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// By name.
    Name,
    /// Worst first.
    Error,
}

/// Form of the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Aligned columns.
    Table,
    /// One JSON document.
    Json,
    /// Comma-separated values with a header.
    Csv,
    /// A Markdown table.
    Markdown,
}

/// What the report shows.
#[derive(Debug, Clone, Copy)]
pub struct View {
    /// Form of the output.
    pub form: Form,
    /// Order of the rows.
    pub order: Order,
    /// Collars in seconds per side; the first decides the columns of errors and the order.
    pub collars: [f64; 2],
    /// Leaves overlap out.
    pub skip_overlap: bool,
    /// Adds purity and coverage.
    pub purity: bool,
    /// Adds a total for every number of reference speakers.
    pub by_speakers: bool,
}

/// The report in the form that `view` asks for, and what should be said beside it, one message an element.
pub fn render(comparison: &Comparison, view: &View) -> (String, Vec<String>) {
    let reports: Vec<Report> = view
        .collars
        .iter()
        .map(|&collar| {
            let options = Options { collar, skip_overlap: view.skip_overlap };
            score(&comparison.reference, &comparison.hypothesis, comparison.uem.as_ref(), options)
        })
        .collect();
    let [main, other] = &reports[..] else { unreachable!("two collars give two reports") };
    let mut order: Vec<usize> = (0..main.rows.len()).collect();
    if view.order == Order::Error {
        order.sort_by(|&a, &b| main.rows[b].der.rate().total_cmp(&main.rows[a].der.rate()));
    }
    let text = match view.form {
        Form::Json => document(comparison, view, main, other, &order),
        form => {
            let lines = lines(view, main, other, &order);
            match form {
                Form::Csv => csv(&lines),
                Form::Markdown => markdown(&lines) + &footer(comparison, view, main),
                _ => table(&lines) + &footer(comparison, view, main),
            }
        }
    };
    (text, messages(main, comparison.uem.is_some()))
}

/// What a reader must know about the figures of `report`.
fn messages(report: &Report, has_uem: bool) -> Vec<String> {
    let mut messages = Vec::new();
    for uri in &report.missing {
        messages.push(format!("{uri}: no hypothesis, scored as all missed"));
    }
    for uri in &report.extra {
        messages.push(format!("{uri}: no reference, not scored"));
    }
    for uri in report.without_uem.iter().filter(|_| has_uem) {
        messages.push(format!("{uri}: not in the UEM, scored over the union of both extents"));
    }
    for row in report.rows.iter().filter(|row| row.merged > 0) {
        let turns = if row.merged == 1 {
            "1 turn that overlaps"
        } else {
            &format!("{} turns that overlap", row.merged)
        };
        messages.push(format!("{}: {turns} another turn of the same speaker, merged", row.uri));
    }
    messages
}

/// A line of the table: the name, then the columns.
type Line = Vec<String>;

fn percent(fraction: f64) -> String {
    format!("{:.2}", 100.0 * fraction)
}

fn lines(view: &View, main: &Report, other: &Report, order: &[usize]) -> Vec<Line> {
    let mut header: Line = ["recording", "speech s", "missed s", "%", "false s", "%", "confused s", "%"]
        .map(str::to_owned)
        .to_vec();
    header.extend(view.collars.map(|collar| format!("DER % ({collar} s)")));
    header.extend(["JER %", "speakers", "off by"].map(str::to_owned));
    if view.purity {
        header.extend(["purity %", "coverage %"].map(str::to_owned));
    }
    let mut lines = vec![header];
    for &i in order {
        let (row, second) = (&main.rows[i], &other.rows[i]);
        let speakers = [
            format!("{}/{}", row.hypothesis_speakers, row.reference_speakers),
            format!("{:+}", row.speaker_error()),
        ];
        lines.push(line(view, &row.uri, [row.der, second.der], row.jer, row.purity, speakers));
    }
    if view.by_speakers {
        for (speakers, indices) in groups(&main.rows) {
            let rows = || indices.iter().map(|&i| &main.rows[i]);
            let der = sum(rows().map(|r| r.der));
            let second = sum(indices.iter().map(|&i| other.rows[i].der));
            let name = format!(
                "{speakers} {}, {} of {}",
                plural(speakers, "speaker"),
                indices.len(),
                main.rows.len()
            );
            let counts = counts(rows());
            lines.push(line(
                view,
                &name,
                [der, second],
                sum(rows().map(|r| r.jer)),
                sum(rows().map(|r| r.purity)),
                counts,
            ));
        }
    }
    lines.push(line(view, "TOTAL", [main.der, other.der], main.jer, main.purity, counts(main.rows.iter())));
    lines
}

fn plural(number: usize, word: &str) -> String {
    if number == 1 { word.to_owned() } else { format!("{word}s") }
}

/// Indices of the rows by their number of reference speakers.
fn groups(rows: &[Row]) -> BTreeMap<usize, Vec<usize>> {
    let mut groups = BTreeMap::<usize, Vec<usize>>::new();
    for (i, row) in rows.iter().enumerate() {
        groups.entry(row.reference_speakers).or_default().push(i);
    }
    groups
}

fn sum<T: Default + std::ops::AddAssign>(items: impl Iterator<Item = T>) -> T {
    items.fold(T::default(), |mut all, item| {
        all += item;
        all
    })
}

/// Total of the columns on speakers: those found and those there, the mean distance.
fn counts<'a>(rows: impl Iterator<Item = &'a Row>) -> [String; 2] {
    let (mut found, mut there, mut off, mut number) = (0, 0, 0, 0);
    for row in rows {
        found += row.hypothesis_speakers;
        there += row.reference_speakers;
        off += row.speaker_error().unsigned_abs();
        number += 1;
    }
    [format!("{found}/{there}"), format!("{:.2}", off as f64 / f64::from(number.max(1)))]
}

fn line(view: &View, name: &str, der: [Der; 2], jer: Jer, purity: Purity, speakers: [String; 2]) -> Line {
    let [main, second] = der;
    let mut line = vec![name.to_owned(), format!("{:.3}", main.total)];
    for part in [main.missed, main.false_alarm, main.confusion] {
        line.push(format!("{part:.3}"));
        line.push(percent(if main.total > 0.0 { part / main.total } else { 0.0 }));
    }
    line.extend([percent(main.rate()), percent(second.rate()), percent(jer.rate())]);
    line.extend(speakers);
    if view.purity {
        line.extend([percent(purity.purity()), percent(purity.coverage())]);
    }
    line
}

/// Names to the left, figures to the right, a rule above the total.
fn table(lines: &[Line]) -> String {
    let columns = lines[0].len();
    let width = |c: usize| lines.iter().map(|line| line[c].width()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for (i, line) in lines.iter().enumerate() {
        if i == 1 || i + 1 == lines.len() {
            text += &"-".repeat(widths.iter().sum::<usize>() + 2 * (columns - 1));
            text.push('\n');
        }
        for (c, value) in line.iter().enumerate() {
            let blank = " ".repeat(widths[c] - value.width());
            text += if c == 0 { "" } else { "  " };
            text += &if c == 0 { format!("{value}{blank}") } else { format!("{blank}{value}") };
        }
        text.truncate(text.trim_end_matches(' ').len());
        text.push('\n');
    }
    text
}

fn markdown(lines: &[Line]) -> String {
    let row = |line: &Line| {
        let cells: Vec<String> = line.iter().map(|value| value.replace('|', "\\|")).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let mut text = row(&lines[0]);
    text += &format!("|---|{}\n", "---:|".repeat(lines[0].len() - 1));
    text.extend(lines[1..].iter().map(row));
    text.push('\n');
    text
}

/// Headers get the name of their part, because a program needs them to differ.
fn csv(lines: &[Line]) -> String {
    let cell = |value: &str| match value.contains([',', '"', '\n']) {
        true => format!("\"{}\"", value.replace('"', "\"\"")),
        false => value.to_owned(),
    };
    let mut text = String::new();
    for (i, line) in lines.iter().enumerate() {
        let mut cells: Vec<String> = line.iter().map(|value| cell(value)).collect();
        if i == 0 {
            for (at, name) in [(3, "missed %"), (5, "false %"), (7, "confused %")] {
                cells[at] = name.to_owned();
            }
        }
        let _ = writeln!(text, "{}", cells.join(","));
    }
    text
}

/// The rules that the figures follow.
fn footer(comparison: &Comparison, view: &View, report: &Report) -> String {
    let mut text = format!(
        "Collar {} s and {} s on each side of every reference boundary; overlap {}; {}.\n",
        view.collars[0],
        view.collars[1],
        if view.skip_overlap { "left out" } else { "scored" },
        if comparison.uem.is_some() {
            "regions of the UEM"
        } else {
            "no UEM: from the first to the last turn of both sides"
        },
    );
    let _ = writeln!(
        text,
        "Columns of errors and JER are at collar {} s. Speakers are found/there: exact in {} of {}, off by one in {}.",
        view.collars[0],
        report.speakers_off_by(0),
        report.rows.len(),
        report.speakers_off_by(1),
    );
    if !comparison.provenance.is_empty() {
        let facts: Vec<String> = comparison.provenance.iter().map(|(k, v)| format!("{k} {v}")).collect();
        let _ = writeln!(text, "Hypothesis by {}.", facts.join(", "));
    }
    text
}

fn errors(der: Der, jer: Jer, purity: Purity) -> Value {
    json!({
        "der": der.rate(), "speech": der.total, "missed": der.missed, "false_alarm": der.false_alarm,
        "confusion": der.confusion, "jer": jer.rate(), "purity": purity.purity(), "coverage": purity.coverage(),
    })
}

fn document(comparison: &Comparison, view: &View, main: &Report, other: &Report, order: &[usize]) -> String {
    let by_collar = |a: Value, b: Value| json!([a, b]);
    let recordings: Vec<Value> = order
        .iter()
        .map(|&i| {
            let (row, second) = (&main.rows[i], &other.rows[i]);
            json!({
                "uri": row.uri,
                "scores": by_collar(errors(row.der, row.jer, row.purity), errors(second.der, second.jer, second.purity)),
                "reference_speakers": row.reference_speakers,
                "hypothesis_speakers": row.hypothesis_speakers,
                "mapping": row.mapping.iter().map(|(r, h)| json!({"reference": r, "hypothesis": h})).collect::<Vec<_>>(),
                "merged_turns": row.merged,
                "intervals": intervals(comparison, view, &row.uri),
            })
        })
        .collect();
    let groups: Vec<Value> = groups(&main.rows)
        .into_iter()
        .filter(|_| view.by_speakers)
        .map(|(speakers, indices)| {
            let total = |report: &Report| {
                let rows = || indices.iter().map(|&i| &report.rows[i]);
                errors(sum(rows().map(|r| r.der)), sum(rows().map(|r| r.jer)), sum(rows().map(|r| r.purity)))
            };
            json!({"reference_speakers": speakers, "recordings": indices.len(), "scores": by_collar(total(main), total(other))})
        })
        .collect();
    let document = json!({
        "version": VERSION,
        "app": env!("CARGO_PKG_NAME"),
        "app_version": env!("CARGO_PKG_VERSION"),
        "settings": {
            "collars_per_side": view.collars, "skip_overlap": view.skip_overlap, "uem": comparison.uem.is_some(),
        },
        "hypothesis": comparison.provenance,
        "total": by_collar(errors(main.der, main.jer, main.purity), errors(other.der, other.jer, other.purity)),
        "speakers_exact": main.speakers_off_by(0),
        "speakers_off_by_one": main.speakers_off_by(1),
        "by_speakers": groups,
        "missing": main.missing,
        "extra": main.extra,
        "without_uem": main.without_uem,
        "recordings": recordings,
    });
    serde_json::to_string_pretty(&document).expect("plain values") + "\n"
}

/// The confusion timeline of one recording at the first collar.
fn intervals(comparison: &Comparison, view: &View, uri: &str) -> Vec<Interval> {
    let turns = |side: &'_ Rttm| side.recordings.get(uri).cloned().unwrap_or_default();
    let regions = comparison.uem.as_ref().and_then(|uem| uem.get(uri));
    let options = Options { collar: view.collars[0], skip_overlap: view.skip_overlap };
    confusion(
        &turns(&comparison.reference),
        &turns(&comparison.hypothesis),
        regions.map(Vec::as_slice),
        options,
    )
}
