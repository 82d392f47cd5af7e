//! The encoder delay of MP4 audio: the edit list that the demultiplexer reads over.
//!
//! AAC encoders put 1024 or more frames of run-up before the sound; an edit list says how many. Left in, they
//! would shift every boundary by 20 to 50 ms. Depends on nothing but the standard library.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// Boxes looked at before a file is given up as malformed.
const MOST_BOXES: usize = 10_000;

/// Entries of an edit list that are looked at.
const MOST_EDITS: u64 = 1000;

/// What the edit list of a track says.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Edits {
    /// Media time at which the sound begins, in ticks of `media_scale`.
    pub start: u64,
    /// Duration of the sound, in ticks of `movie_scale`; 0 if unknown.
    pub duration: u64,
    /// Ticks a second of the media.
    pub media_scale: u32,
    /// Ticks a second of the movie.
    pub movie_scale: u32,
    /// Number of stretches of media that are played.
    pub stretches: u64,
}

/// Reads the edit list of the track `id`, if there is one.
pub fn edits(path: &Path, id: u32) -> Option<Edits> {
    let mut boxes = Boxes { file: File::open(path).ok()?, left: MOST_BOXES };
    let end = boxes.file.seek(SeekFrom::End(0)).ok()?;
    let moov = boxes.find(b"moov", (0, end)).ok()??;
    let movie_scale = boxes.time_scale(b"mvhd", moov)?;
    let mut rest = moov;
    while let Some(trak) = boxes.find(b"trak", rest).ok()? {
        rest.0 = trak.1;
        if boxes.track_id(trak) != Some(id) {
            continue;
        }
        let mdia = boxes.find(b"mdia", trak).ok()??;
        let media_scale = boxes.time_scale(b"mdhd", mdia)?;
        let edts = boxes.find(b"edts", trak).ok()??;
        let elst = boxes.find(b"elst", edts).ok()??;
        let list = boxes.list(elst).ok()?;
        return Some(Edits { media_scale, movie_scale, ..list });
    }
    None
}

/// The delay and total length in Apple's `iTunSMPB` tag, both in frames.
pub fn gapless_tag(text: &str) -> Option<(u64, u64)> {
    let mut words = text.split_whitespace().map(|word| u64::from_str_radix(word, 16));
    let delay = words.nth(1)?.ok()?;
    let total = words.nth(1)?.ok()?;
    (delay < 10_000).then_some((delay, total))
}

/// First byte and end of the body of a box.
type Span = (u64, u64);

struct Boxes {
    file: File,
    left: usize,
}

impl Boxes {
    /// The body of the first box called `name` within `span`.
    fn find(&mut self, name: &[u8; 4], span: Span) -> io::Result<Option<Span>> {
        let (mut at, end) = span;
        while at + 8 <= end && self.left > 0 {
            self.left -= 1;
            let lead: [u8; 8] = self.bytes(at)?;
            let (size, header) = match u32::from_be_bytes([lead[0], lead[1], lead[2], lead[3]]) {
                0 => (end - at, 8),
                1 => (u64::from_be_bytes(self.bytes(at + 8)?), 16),
                size => (u64::from(size), 8),
            };
            if size < header {
                return Ok(None);
            }
            let next = at.saturating_add(size).min(end);
            if lead[4..] == name[..] {
                return Ok(Some((at + header, next)));
            }
            at = next;
        }
        Ok(None)
    }

    /// The time scale in an `mvhd` or `mdhd` box within `span`.
    fn time_scale(&mut self, name: &[u8; 4], span: Span) -> Option<u32> {
        let body = self.find(name, span).ok()??.0;
        let [version]: [u8; 1] = self.bytes(body).ok()?;
        let offset = if version == 1 { 20 } else { 12 };
        let scale = u32::from_be_bytes(self.bytes(body + offset).ok()?);
        (scale > 0).then_some(scale)
    }

    fn track_id(&mut self, trak: Span) -> Option<u32> {
        let body = self.find(b"tkhd", trak).ok()??.0;
        let [version]: [u8; 1] = self.bytes(body).ok()?;
        let offset = if version == 1 { 20 } else { 12 };
        Some(u32::from_be_bytes(self.bytes(body + offset).ok()?))
    }

    /// The first entry that plays media, and how many such entries there are.
    fn list(&mut self, elst: Span) -> io::Result<Edits> {
        let [version]: [u8; 1] = self.bytes(elst.0)?;
        let count = u64::from(u32::from_be_bytes(self.bytes(elst.0 + 4)?));
        let mut edits = Edits::default();
        let step = if version == 1 { 20 } else { 12 };
        for i in 0..count.min(MOST_EDITS) {
            let at = elst.0 + 8 + i * step;
            if at + step > elst.1 {
                break;
            }
            let (duration, start) = if version == 1 {
                (u64::from_be_bytes(self.bytes(at)?), i64::from_be_bytes(self.bytes(at + 8)?))
            } else {
                let narrow = i32::from_be_bytes(self.bytes(at + 4)?);
                (u64::from(u32::from_be_bytes(self.bytes(at)?)), i64::from(narrow))
            };
            // A negative start is a pause before the sound, which plays no media.
            let Ok(start) = u64::try_from(start) else { continue };
            if edits.stretches == 0 {
                (edits.start, edits.duration) = (start, duration);
            }
            edits.stretches += 1;
        }
        Ok(edits)
    }

    fn bytes<const N: usize>(&mut self, at: u64) -> io::Result<[u8; N]> {
        let mut out = [0; N];
        self.file.seek(SeekFrom::Start(at))?;
        self.file.read_exact(&mut out)?;
        Ok(out)
    }
}
