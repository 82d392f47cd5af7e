//! Prints DER and JER of RTTM files: `cargo run --release --example der -- REF HYP [--uem FILE]`.
//!
//! REF and HYP are RTTM files or folders of them. Collar 0 and 0.25 s on each side, overlap scored.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::Parser;
use speakrs_app::scoring::{Options, Report, score};
use speakrs_app::timeline::{rttm, uem};

/// Score hypothesis turns against reference turns.
#[derive(Parser)]
struct Args {
    /// Reference: an RTTM file or a folder of them
    reference: PathBuf,
    /// Hypothesis: an RTTM file or a folder of them
    hypothesis: PathBuf,
    /// Scored regions; without it the union of both extents of each recording is scored
    #[arg(long)]
    uem: Option<PathBuf>,
}

fn main() -> anyhow::Result<ExitCode> {
    let args = Args::parse();
    let read = |path: &Path| rttm::read(path).with_context(|| "could not read the turns");
    let (reference, hypothesis) = (read(&args.reference)?, read(&args.hypothesis)?);
    let uem = args.uem.as_deref().map(uem::read).transpose().context("could not read the regions")?;
    let mut complete = true;
    for collar in [0.0, 0.25] {
        let report = score(&reference, &hypothesis, uem.as_ref(), Options { collar, ..Options::default() });
        print(&report, collar);
        complete &= report.missing.is_empty();
        if collar == 0.0 {
            warn(&report);
        }
    }
    Ok(if complete { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn print(report: &Report, collar: f64) {
    println!("collar {collar} s on each side, overlap scored");
    let width = report.rows.iter().map(|row| row.uri.chars().count()).max().unwrap_or(0).max(9);
    println!(
        "{:width$} {:>7} {:>9} {:>9} {:>9} {:>10} {:>7} {:>8}",
        "recording", "DER %", "missed s", "false s", "conf. s", "speech s", "JER %", "speakers"
    );
    for row in &report.rows {
        let der = row.der;
        println!(
            "{:width$} {:7.2} {:9.2} {:9.2} {:9.2} {:10.2} {:7.2} {:>8}",
            row.uri,
            100.0 * der.rate(),
            der.missed,
            der.false_alarm,
            der.confusion,
            der.total,
            100.0 * row.jer.rate(),
            format!("{}/{}", row.hypothesis_speakers, row.reference_speakers),
        );
    }
    let der = report.der;
    println!(
        "{:width$} {:7.2} {:9.2} {:9.2} {:9.2} {:10.2} {:7.2}\n",
        "TOTAL",
        100.0 * der.rate(),
        der.missed,
        der.false_alarm,
        der.confusion,
        der.total,
        100.0 * report.jer.rate(),
    );
}

fn warn(report: &Report) {
    for uri in &report.missing {
        eprintln!("{uri}: no hypothesis, scored as all missed");
    }
    for uri in &report.extra {
        eprintln!("{uri}: no reference, not scored");
    }
    for uri in &report.without_uem {
        eprintln!("{uri}: not in the UEM, scored over the union of both extents");
    }
    for row in report.rows.iter().filter(|row| row.merged > 0) {
        eprintln!("{}: merged {} overlapping turns of one speaker", row.uri, row.merged);
    }
}
