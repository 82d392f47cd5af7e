//! JSON: everything about a result, with the overlapping and the exclusive turns.

use std::io;

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};

use super::Report;
use crate::audio::SAMPLE_RATE;
use crate::backend::Precision;
use crate::pipeline::{Mode, Settings};
use crate::timeline::Segment;

/// Version of the document's layout; raised whenever a field changes its meaning or goes away.
const VERSION: u32 = 1;

#[derive(Serialize)]
struct Document<'a> {
    version: u32,
    app: &'static str,
    app_version: &'static str,
    model: &'a str,
    device: &'a str,
    device_name: &'a str,
    precision: Precision,
    mode: Mode,
    file: &'a str,
    uri: &'a str,
    duration: f64,
    sample_rate: u32,
    source: Source<'a>,
    settings: Settings,
    speakers: Vec<Speaker<'a>>,
    segments: Vec<Turn<'a>>,
    exclusive: Vec<Turn<'a>>,
    warnings: Vec<&'a str>,
}

#[derive(Serialize)]
struct Source<'a> {
    codec: &'a str,
    sample_rate: u32,
    channels: u16,
    frames: u64,
}

#[derive(Serialize)]
struct Speaker<'a> {
    label: &'a str,
    embedding: &'a [f32],
}

#[derive(Serialize)]
struct Turn<'a> {
    start: f64,
    end: f64,
    speaker: &'a str,
}

/// Renders the document: a line per field, a line per speaker and per turn.
pub fn render(report: &Report) -> Vec<u8> {
    let diarization = report.diarization;
    let turns = |segments: &[Segment]| -> Vec<Turn> {
        segments
            .iter()
            .map(|s| Turn {
                start: microseconds(s.start),
                end: microseconds(s.end),
                speaker: &diarization.speakers[s.speaker].label,
            })
            .collect()
    };
    let document = Document {
        version: VERSION,
        app: env!("CARGO_PKG_NAME"),
        app_version: env!("CARGO_PKG_VERSION"),
        model: &diarization.model,
        device: &diarization.backend.device,
        device_name: &diarization.backend.name,
        precision: diarization.backend.precision,
        mode: diarization.settings.mode,
        file: report.file,
        uri: report.uri,
        duration: microseconds(diarization.duration),
        sample_rate: SAMPLE_RATE,
        source: Source {
            codec: &report.source.codec,
            sample_rate: report.source.sample_rate,
            channels: report.source.channels,
            frames: report.source.frames,
        },
        settings: diarization.settings,
        speakers: diarization
            .speakers
            .iter()
            .map(|s| Speaker { label: &s.label, embedding: &s.embedding })
            .collect(),
        segments: turns(&diarization.segments),
        exclusive: turns(&diarization.exclusive),
        warnings: report.source.warnings.iter().chain(&diarization.warnings).map(String::as_str).collect(),
    };
    let mut bytes = Vec::new();
    let mut serializer = Serializer::with_formatter(&mut bytes, Lines::default());
    document.serialize(&mut serializer).expect("a document of plain fields serializes into memory");
    bytes.push(b'\n');
    bytes
}

/// Times to the microsecond: finer than a sample, without the noise of binary fractions.
fn microseconds(seconds: f64) -> f64 {
    (seconds * 1e6).round() / 1e6
}

/// Line breaks in the outermost object and in the lists directly inside it; everything deeper on one line.
#[derive(Default)]
struct Lines {
    depth: usize,
}

impl Lines {
    const BROKEN: usize = 2;

    fn begin<W: ?Sized + io::Write>(&mut self, writer: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.depth += 1;
        writer.write_all(bracket)
    }

    fn value<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if self.depth <= Self::BROKEN {
            writer.write_all(if first { b"\n" } else { b",\n" })?;
            writer.write_all(&b"    "[..2 * self.depth])
        } else {
            writer.write_all(if first { b"" } else { b", " })
        }
    }

    fn end<W: ?Sized + io::Write>(&mut self, writer: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.depth -= 1;
        if self.depth < Self::BROKEN {
            writer.write_all(b"\n")?;
            writer.write_all(&b"  "[..2 * self.depth])?;
        }
        writer.write_all(bracket)
    }
}

impl Formatter for Lines {
    fn begin_array<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.begin(writer, b"[")
    }
    fn end_array<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.end(writer, b"]")
    }
    fn begin_array_value<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.value(writer, first)
    }
    fn begin_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.begin(writer, b"{")
    }
    fn end_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.end(writer, b"}")
    }
    fn begin_object_key<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.value(writer, first)
    }
    fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }
}
