//! Reading the header of WAV, RF64, BW64 and Wave64 files, however badly written.
//!
//! Recorders write sizes that are wrong, missing or too large for their field, and `fmt ` chunks of odd
//! lengths. This reader believes only what it can check against the file, and gives the demultiplexer a plain
//! WAV header of its own making, or the bare stream where a WAV file wraps MPEG audio.
//!
//! Depends on the types of `pcm` and of the parent module.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

use super::pcm::{Encoding, Pcm};
use super::{AudioError, MAX_CHANNELS, MAX_SOURCE_RATE, MIN_SOURCE_RATE};

/// A size field whose value was not known when it was written.
const OPEN_SIZE: u32 = u32::MAX;

/// How many chunks may precede the samples.
const MOST_CHUNKS: usize = 4096;

/// The last twelve bytes of the GUID of a Wave64 chunk; the first four are the RIFF name.
const W64_TAIL: [u8; 12] = [0xF3, 0xAC, 0xD3, 0x11, 0x8C, 0xD1, 0x00, 0xC0, 0x4F, 0x8E, 0xDB, 0x8A];

/// Where the samples of a RIFF file are and the header to put before them.
pub struct Riff {
    /// A well-formed header; empty when the data is a stream that needs none.
    pub header: Vec<u8>,
    /// First byte of the samples in the file.
    pub start: u64,
    /// Number of bytes of samples.
    pub len: u64,
    /// The samples if they are plain ones, which need no demultiplexer and no decoder.
    pub pcm: Option<Pcm>,
    /// Notes on what was wrong.
    pub warnings: Vec<String>,
}

/// The three layouts of the same idea.
#[derive(Clone, Copy, PartialEq)]
enum Dialect {
    /// RIFF, and RF64 or BW64 when `wide`.
    Riff { wide: bool },
    /// Sony Wave64.
    W64,
}

/// The chunks that matter.
#[derive(Default)]
struct Chunks {
    fmt: Vec<u8>,
    /// Start and stated size of the samples; the size is absent if it was left open.
    data: Option<(u64, Option<u64>)>,
    /// Size of the samples according to an RF64 `ds64` chunk.
    wide_size: Option<u64>,
}

/// The `fmt ` chunk in numbers.
struct Format {
    tag: u16,
    channels: u16,
    rate: u32,
    block: u16,
    bits: u16,
}

/// Reads the header of `file` (`len` bytes, beginning with `head`), or gives nothing if it is no WAV file.
///
/// # Errors
/// [`AudioError::Damaged`], [`AudioError::Unsupported`] or [`AudioError::Limit`] naming what is wrong.
pub fn read(file: &mut File, head: &[u8], len: u64) -> Result<Option<Riff>, AudioError> {
    let is_wave = head.get(8..12) == Some(b"WAVE");
    let dialect = match head.get(..4) {
        Some(b"RIFF") if is_wave => Dialect::Riff { wide: false },
        Some(b"RF64" | b"BW64") if is_wave => Dialect::Riff { wide: true },
        Some(b"riff") if head.get(24..28) == Some(b"wave") => Dialect::W64,
        _ => return Ok(None),
    };
    let chunks = walk(file, dialect, len)?;
    let Some((start, stated)) = chunks.data else {
        return Err(AudioError::Damaged(
            "the WAV header has no \"data\" chunk; the file may be cut short".into(),
        ));
    };
    let format = Format::read(&chunks.fmt)?;
    let mut warnings = Vec::new();

    let there = len.saturating_sub(start);
    let riff_size = le32(head, 4);
    let never_finished = dialect != Dialect::W64 && (riff_size == 0 || riff_size == OPEN_SIZE);
    let size = match stated {
        None => there,
        Some(0) if never_finished && there > 0 => {
            warnings.push(
                "the WAV header was never completed; everything up to the end of the file is read".into(),
            );
            there
        }
        // A stream that was broken off before its first sample also states a size, but an open-ended one.
        Some(size) if there == 0 && size > 0 && size < u64::from(OPEN_SIZE) => {
            return Err(AudioError::Damaged(format!(
                "it ends after the header; none of its {size} bytes of samples are there"
            )));
        }
        Some(size) if size > there => {
            warnings.push(format!("the file is cut short: {there} of {size} bytes of samples are there"));
            there
        }
        Some(size) => size,
    };
    let (header, size) = header_for(&format, &chunks.fmt, size, &mut warnings)?;
    let encoding = Encoding::of(format.tag, format.sample_bytes());
    let pcm = encoding.map(|encoding| Pcm {
        encoding,
        channels: format.channels,
        rate: format.rate,
        start,
        len: size,
    });
    Ok(Some(Riff { header, start, len: size, pcm, warnings }))
}

/// Finds the chunks that matter.
fn walk(file: &mut File, dialect: Dialect, len: u64) -> Result<Chunks, AudioError> {
    let mut chunks = Chunks::default();
    let (mut at, prefix, align) = match dialect {
        Dialect::Riff { .. } => (12, 8, 2),
        Dialect::W64 => (40, 24, 8),
    };
    for _ in 0..MOST_CHUNKS {
        if at + prefix > len {
            break;
        }
        let lead = read_at(file, at, prefix)?;
        let body = at + prefix;
        let (name, size) = match dialect {
            Dialect::Riff { .. } => (&lead[..4], u64::from(le32(&lead, 4))),
            Dialect::W64 if lead[4..16] == W64_TAIL => (&lead[..4], le64(&lead, 16).saturating_sub(prefix)),
            Dialect::W64 => (&b"????"[..], le64(&lead, 16).saturating_sub(prefix)),
        };
        match name {
            b"fmt " => chunks.fmt = read_at(file, body, size.min(1024).min(len - body))?,
            b"ds64" if size >= 16 && len - body >= 16 => {
                chunks.wide_size = Some(le64(&read_at(file, body, 16)?, 8));
            }
            b"data" => {
                let open = matches!(dialect, Dialect::Riff { .. }) && size == u64::from(OPEN_SIZE);
                let stated = match (open, dialect) {
                    (true, Dialect::Riff { wide: true }) => chunks.wide_size.filter(|&s| s > 0),
                    (true, _) => None,
                    (false, _) => Some(size),
                };
                chunks.data = Some((body, stated));
                break;
            }
            _ => {}
        }
        let Some(next) = body.checked_add(size).and_then(|end| end.checked_next_multiple_of(align)) else {
            break;
        };
        at = next;
    }
    Ok(chunks)
}

impl Format {
    fn read(fmt: &[u8]) -> Result<Self, AudioError> {
        if fmt.len() < 16 {
            return Err(AudioError::Damaged("the WAV header has no complete \"fmt \" chunk".into()));
        }
        let mut format = Self {
            tag: le16(fmt, 0),
            channels: le16(fmt, 2),
            rate: le32(fmt, 4),
            block: le16(fmt, 12),
            bits: le16(fmt, 14),
        };
        // WAVE_FORMAT_EXTENSIBLE carries the real tag in the first bytes of its sub-format GUID.
        if format.tag == 0xFFFE && fmt.len() >= 26 {
            format.tag = le16(fmt, 24);
        }
        if format.channels == 0 || usize::from(format.channels) > MAX_CHANNELS {
            let limit = format!("1 to {MAX_CHANNELS}");
            return Err(AudioError::Limit {
                what: "the number of channels",
                value: format.channels.into(),
                limit,
            });
        }
        check_rate(format.rate)?;
        Ok(format)
    }

    /// Bytes that one sample takes in the file.
    fn sample_bytes(&self) -> u16 {
        let whole = self.block.is_multiple_of(self.channels).then_some(self.block / self.channels);
        let needed = self.bits.div_ceil(8);
        whole.filter(|&bytes| bytes >= needed && bytes <= 8 && bytes > 0).unwrap_or(needed)
    }
}

/// Checks a sample rate (Hz) against the limits.
///
/// # Errors
/// [`AudioError::Limit`].
pub fn check_rate(rate: u32) -> Result<(), AudioError> {
    if (MIN_SOURCE_RATE..=MAX_SOURCE_RATE).contains(&rate) {
        return Ok(());
    }
    let limit = format!("{MIN_SOURCE_RATE} to {MAX_SOURCE_RATE} Hz");
    Err(AudioError::Limit { what: "the sample rate", value: rate.into(), limit })
}

/// A header for `size` bytes of samples, and `size` without an incomplete last frame.
fn header_for(
    format: &Format,
    fmt: &[u8],
    size: u64,
    warnings: &mut Vec<String>,
) -> Result<(Vec<u8>, u64), AudioError> {
    let bytes = format.sample_bytes();
    let tag = match (format.tag, bytes) {
        (1, 1..=4) | (3, 4 | 8) | (6 | 7, 1) => format.tag,
        (1 | 3, _) => {
            let text = format!("WAV samples of {} bits in {bytes} bytes are not supported", format.bits);
            return Err(AudioError::Unsupported(text));
        }
        // MPEG audio inside WAV needs no header.
        (0x50 | 0x55, _) => return Ok((Vec::new(), size)),
        // Anything else is left to the demultiplexer with its own `fmt ` chunk.
        _ => return Ok((assemble(fmt, size), size)),
    };
    let block = bytes * format.channels;
    let whole = size - size % u64::from(block);
    if whole != size {
        warnings.push("the last frame of samples is incomplete and was left out".into());
    }
    let mut plain = Vec::new();
    plain.extend(tag.to_le_bytes());
    plain.extend(format.channels.to_le_bytes());
    plain.extend(format.rate.to_le_bytes());
    plain.extend(format.rate.wrapping_mul(block.into()).to_le_bytes());
    plain.extend(block.to_le_bytes());
    plain.extend((bytes * 8).to_le_bytes());
    plain.extend([0, 0]);
    Ok((assemble(&plain, whole), whole))
}

/// A complete header with the given `fmt ` chunk.
fn assemble(fmt: &[u8], size: u64) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend(b"RIFF");
    out.extend(OPEN_SIZE.to_le_bytes());
    out.extend(b"WAVEfmt ");
    out.extend((fmt.len() as u32).to_le_bytes());
    out.extend(fmt);
    if fmt.len() % 2 == 1 {
        out.push(0);
    }
    out.extend(b"data");
    out.extend(u32::try_from(size).unwrap_or(OPEN_SIZE).to_le_bytes());
    out
}

fn read_at(file: &mut File, at: u64, len: u64) -> Result<Vec<u8>, AudioError> {
    file.seek(SeekFrom::Start(at))?;
    let mut out = vec![0; len as usize];
    file.read_exact(&mut out)?;
    Ok(out)
}

fn le16(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes[at..at + 2].try_into().expect("two bytes"))
}

fn le32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn le64(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}
