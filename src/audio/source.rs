//! The bytes of a recording: a file, or a repaired header followed by part of a file.
//!
//! Depends on `riff` for the repair and on symphonia's `MediaSource` trait.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use symphonia::core::io::MediaSource;

use super::pcm::Pcm;
use super::{AudioError, riff};

/// An opened recording.
pub struct Opened {
    /// The bytes to demultiplex.
    pub source: Source,
    /// How far `source` has been read, in bytes.
    pub position: Arc<AtomicU64>,
    /// The first bytes of the file, at most 512.
    pub head: Vec<u8>,
    /// The samples, if they are plain ones.
    pub pcm: Option<Pcm>,
    /// Notes on the header.
    pub warnings: Vec<String>,
    /// The file is a RIFF file whose header has been checked, so that having no samples is no damage.
    pub sound_header: bool,
}

/// `header`, then `len` bytes of `file` from `start` on.
pub struct Source {
    header: Vec<u8>,
    file: File,
    start: u64,
    len: u64,
    at: u64,
    position: Arc<AtomicU64>,
    /// Whether the demultiplexer may know the length and jump.
    pub seekable: bool,
}

/// Opens `path` for decoding.
///
/// # Errors
/// [`AudioError::Io`], [`AudioError::Empty`], or the errors of the RIFF header.
pub fn open(path: &Path) -> Result<Opened, AudioError> {
    let mut file = File::open(path)?;
    let facts = file.metadata()?;
    if !facts.is_file() {
        return Err(AudioError::Unsupported("this is not a regular file".into()));
    }
    let len = facts.len();
    if len == 0 {
        return Err(AudioError::Empty);
    }
    let mut head = Vec::new();
    (&mut file).take(512).read_to_end(&mut head)?;

    let repaired = riff::read(&mut file, &head, len)?;
    let sound_header = repaired.is_some();
    let riff::Riff { header, start, len, pcm, warnings } =
        repaired.unwrap_or(riff::Riff { header: Vec::new(), start: 0, len, pcm: None, warnings: Vec::new() });
    file.seek(SeekFrom::Start(start))?;
    let position = Arc::new(AtomicU64::new(0));
    let source = Source { header, file, start, len, at: 0, position: position.clone(), seekable: true };
    Ok(Opened { source, position, head, pcm, warnings, sound_header })
}

impl Source {
    /// The file.
    pub fn into_file(self) -> File {
        self.file
    }

    /// Total number of bytes.
    pub fn total(&self) -> u64 {
        self.header.len() as u64 + self.len
    }
}

impl Read for Source {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let header = self.header.len() as u64;
        let got = if self.at < header {
            (&self.header[self.at as usize..]).read(buf)?
        } else {
            let left = self.total().saturating_sub(self.at);
            let most = buf.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            self.file.read(&mut buf[..most])?
        };
        self.at += got as u64;
        self.position.store(self.at, Ordering::Relaxed);
        Ok(got)
    }
}

impl Seek for Source {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let target = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
            SeekFrom::End(by) => self.total().checked_add_signed(by),
        };
        let outside = || io::Error::new(io::ErrorKind::InvalidInput, "seek outside the file");
        let target = target.ok_or_else(outside)?;
        let within = target.saturating_sub(self.header.len() as u64);
        self.file.seek(SeekFrom::Start(self.start.checked_add(within).ok_or_else(outside)?))?;
        self.at = target;
        self.position.store(target, Ordering::Relaxed);
        Ok(target)
    }
}

impl MediaSource for Source {
    fn is_seekable(&self) -> bool {
        self.seekable
    }

    fn byte_len(&self) -> Option<u64> {
        self.seekable.then(|| self.total())
    }
}

/// Names the format of a file that symphonia does not open, from its first bytes.
pub fn name_unknown(head: &[u8]) -> AudioError {
    let at = |offset: usize, magic: &[u8]| head.get(offset..).is_some_and(|rest| rest.starts_with(magic));
    let foreign = if at(0, &[0x30, 0x26, 0xB2, 0x75]) {
        "Windows Media (WMA, WMV)"
    } else if at(0, b"RIFF") && at(8, b"AVI ") {
        "AVI video"
    } else if at(0, b"#!AMR") {
        "AMR voice"
    } else if at(0, b".snd") {
        "Sun AU"
    } else if at(0, b"FLV") {
        "Flash video"
    } else if at(0, b".RMF") || at(0, b".ra\xFD") {
        "RealAudio"
    } else if at(0, b"MThd") {
        "MIDI notes, which hold no recorded sound"
    } else if at(0, b"wvpk") {
        "WavPack"
    } else if at(0, b"MAC ") {
        "Monkey's Audio"
    } else if at(0, &[0x0B, 0x77]) {
        "AC-3"
    } else if at(0, b"DSD ") || at(0, b"FRM8") {
        "DSD"
    } else if at(0, &[0x47]) && at(188, &[0x47]) && at(376, &[0x47]) {
        "MPEG transport stream"
    } else if at(0, &[0, 0, 1, 0xBA]) {
        "MPEG program stream"
    } else {
        return AudioError::NotAudio(describe(head).into());
    };
    AudioError::Unsupported(format!(
        "the format is not supported: {foreign}; convert the file to WAV or FLAC"
    ))
}

/// What the first bytes of a file that is no recording look like.
fn describe(head: &[u8]) -> &'static str {
    let text = |&b: &u8| b == b'\t' || b == b'\n' || b == b'\r' || (b' '..0x7F).contains(&b) || b >= 0x80;
    if head.starts_with(b"PK\x03\x04") {
        "it is a ZIP archive"
    } else if head.starts_with(b"%PDF") {
        "it is a PDF document"
    } else if head.iter().all(|&b| b == 0) {
        "it begins with zeros only; the copy may be incomplete"
    } else if std::str::from_utf8(&head[..head.len().min(64)]).is_ok() && head.iter().all(text) {
        "it looks like text"
    } else {
        "the content is not recognised"
    }
}
