//! How much was skipped between two packets of a bare MP3 or ADTS stream.
//!
//! Such streams have no time stamps: where a header is damaged, the demultiplexer goes on with the next packet
//! it finds, and everything after would move forward. This finds each packet in the file again and counts the
//! bytes before it. Depends on the standard library only.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// Bytes of header or padding that may lie between two packets.
const BETWEEN: usize = 16;

/// Bytes looked through for one packet; enough for a cover picture before the first.
const REACH: usize = 16 << 20;

/// Follows the packets of one file.
pub struct Gaps {
    /// Given up once a packet is not found, since each search costs time.
    file: Option<File>,
    /// Where the next packet should begin; unknown before the first.
    expected: Option<u64>,
    /// Total size and number of the packets that followed another, for the mean.
    bytes: u64,
    packets: u64,
}

impl Gaps {
    /// A follower for the file at `path`.
    pub fn new(path: &Path) -> Self {
        Self { file: File::open(path).ok(), expected: None, bytes: 0, packets: 0 }
    }

    /// The number of packets, by their mean size, that were skipped before `packet`.
    pub fn skipped(&mut self, packet: &[u8]) -> u64 {
        let Some(file) = &mut self.file else { return 0 };
        let at = self.expected.unwrap_or(0);
        let near = find(file, packet, at, packet.len() + BETWEEN);
        let Some(found) = near.or_else(|| find(file, packet, at, REACH)) else {
            self.file = None;
            return 0;
        };
        let end = found + packet.len() as u64;
        let first = self.expected.replace(end).is_none();
        if first {
            return 0;
        }
        if near.is_some() {
            self.bytes += end - at;
            self.packets += 1;
            return 0;
        }
        let mean = self.bytes.checked_div(self.packets).unwrap_or(0);
        (found - at + mean / 2).checked_div(mean).unwrap_or(0)
    }
}

/// The first place of `packet` within `reach` bytes from `at`.
fn find(file: &mut File, packet: &[u8], at: u64, reach: usize) -> Option<u64> {
    file.seek(SeekFrom::Start(at)).ok()?;
    let mut bytes = Vec::new();
    file.take(reach as u64).read_to_end(&mut bytes).ok()?;
    let offset = bytes.windows(packet.len().max(1)).position(|window| window == packet)?;
    Some(at + offset as u64)
}
