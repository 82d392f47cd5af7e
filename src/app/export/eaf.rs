//! ELAN's annotation format 3.0 (EAF): a tier per speaker, an annotation per turn, times in milliseconds.

use std::io;
use std::path::Path;

use quick_xml::events::{BytesDecl, BytesText, Event};
use quick_xml::writer::Writer;

use super::Report;
use super::text::{self, Turn};

/// The schema asks for the moment of writing. It is always the same here, because equal results give equal files.
const DATE: &str = "1970-01-01T00:00:00Z";
/// Name of the only type of tier: annotations that are aligned to time and have no parent.
const TYPE: &str = "default-lt";

type Xml = Writer<Vec<u8>>;

/// A turn of tier `tier`, and the numbers of its time slots.
struct Annotation {
    tier: usize,
    slots: [usize; 2],
}

/// Renders the tiers in the order of the speakers. The recording is named by its file name, so that ELAN looks for it
/// beside the result.
pub fn render(report: &Report) -> Vec<u8> {
    let mut xml = Writer::new_with_indent(Vec::new(), b' ', 2);
    document(&mut xml, report).expect("memory takes every element");
    let mut bytes = xml.into_inner();
    bytes.push(b'\n');
    bytes
}

fn document(xml: &mut Xml, report: &Report) -> io::Result<()> {
    let names = text::distinct_names(report.diarization);
    let (times, annotations) = order(&text::by_speaker(report.diarization));
    xml.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    let attributes = [
        ("AUTHOR", env!("CARGO_PKG_NAME")),
        ("DATE", DATE),
        ("FORMAT", "3.0"),
        ("VERSION", "3.0"),
        ("xmlns:xsi", "http://www.w3.org/2001/XMLSchema-instance"),
        ("xsi:noNamespaceSchemaLocation", "http://www.mpi.nl/tools/elan/EAFv3.0.xsd"),
    ];
    xml.create_element("ANNOTATION_DOCUMENT").with_attributes(attributes).write_inner_content(|xml| {
        header(xml, report.file, annotations.len())?;
        time_order(xml, &times)?;
        for (number, name) in names.iter().enumerate() {
            tier(xml, name, annotations.iter().enumerate().filter(|(_, a)| a.tier == number))?;
        }
        let attributes =
            [("GRAPHIC_REFERENCES", "false"), ("LINGUISTIC_TYPE_ID", TYPE), ("TIME_ALIGNABLE", "true")];
        xml.create_element("LINGUISTIC_TYPE").with_attributes(attributes).write_empty()?;
        Ok(())
    })?;
    Ok(())
}

fn header(xml: &mut Xml, file: &str, annotations: usize) -> io::Result<()> {
    let attributes = [("MEDIA_FILE", ""), ("TIME_UNITS", "milliseconds")];
    xml.create_element("HEADER").with_attributes(attributes).write_inner_content(|xml| {
        // ELAN takes these for paths: it does not decode percent signs.
        let url = format!("./{}", text::line(file));
        let attributes = [
            ("MEDIA_URL", url.as_str()),
            ("MIME_TYPE", mime_type(file)),
            ("RELATIVE_MEDIA_URL", url.as_str()),
        ];
        xml.create_element("MEDIA_DESCRIPTOR").with_attributes(attributes).write_empty()?;
        // New annotations are numbered from here.
        xml.create_element("PROPERTY")
            .with_attribute(("NAME", "lastUsedAnnotationId"))
            .write_text_content(BytesText::new(&annotations.to_string()))?;
        Ok(())
    })?;
    Ok(())
}

fn time_order(xml: &mut Xml, times: &[u64]) -> io::Result<()> {
    xml.create_element("TIME_ORDER").write_inner_content(|xml| {
        for (slot, time) in times.iter().enumerate() {
            let (id, time) = (slot_id(slot), time.to_string());
            let attributes = [("TIME_SLOT_ID", id.as_str()), ("TIME_VALUE", time.as_str())];
            xml.create_element("TIME_SLOT").with_attributes(attributes).write_empty()?;
        }
        Ok(())
    })?;
    Ok(())
}

fn tier<'a>(
    xml: &mut Xml,
    name: &str,
    annotations: impl Iterator<Item = (usize, &'a Annotation)>,
) -> io::Result<()> {
    let attributes = [("LINGUISTIC_TYPE_REF", TYPE), ("PARTICIPANT", name), ("TIER_ID", name)];
    xml.create_element("TIER").with_attributes(attributes).write_inner_content(|xml| {
        for (number, Annotation { slots, .. }) in annotations {
            let (id, [first, last]) = (format!("a{}", number + 1), slots.map(slot_id));
            let attributes = [
                ("ANNOTATION_ID", id.as_str()),
                ("TIME_SLOT_REF1", first.as_str()),
                ("TIME_SLOT_REF2", last.as_str()),
            ];
            xml.create_element("ANNOTATION").write_inner_content(|xml| {
                let annotation = xml.create_element("ALIGNABLE_ANNOTATION").with_attributes(attributes);
                annotation.write_inner_content(|xml| {
                    xml.create_element("ANNOTATION_VALUE").write_text_content(BytesText::new(name))?;
                    Ok(())
                })?;
                Ok(())
            })?;
        }
        Ok(())
    })?;
    Ok(())
}

/// The times of the slots, ascending as ELAN keeps them, and the annotations tier by tier. Each has slots of its own, so
/// that moving one moves no other.
fn order(tiers: &[Vec<Turn>]) -> (Vec<u64>, Vec<Annotation>) {
    let mut annotations = Vec::new();
    let mut times = Vec::new();
    for (tier, turns) in tiers.iter().enumerate() {
        for turn in turns {
            times.push((turn.start, annotations.len(), 0));
            times.push((turn.end, annotations.len(), 1));
            annotations.push(Annotation { tier, slots: [0; 2] });
        }
    }
    times.sort_unstable();
    for (slot, &(_, annotation, end)) in times.iter().enumerate() {
        annotations[annotation].slots[end] = slot;
    }
    (times.into_iter().map(|(time, ..)| time).collect(), annotations)
}

fn slot_id(slot: usize) -> String {
    format!("ts{}", slot + 1)
}

/// What ELAN calls the kind of a file.
fn mime_type(file: &str) -> &'static str {
    let extension = Path::new(file).extension().unwrap_or_default().to_ascii_lowercase();
    match extension.to_str().unwrap_or_default() {
        "wav" | "wave" => "audio/x-wav",
        "mp3" => "audio/mpeg",
        "mp4" | "m4v" => "video/mp4",
        "mov" => "video/quicktime",
        _ => "unknown",
    }
}
