//! A pack: the images of one architecture one after the other, compressed as one zlib stream.

use std::io::{Read, Write};

use anyhow::{Context, Result, ensure};
use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;

/// Compresses `images`.
///
/// # Errors
/// Never, in memory.
pub fn compress(images: &[u8]) -> Result<Vec<u8>> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(images)?;
    Ok(encoder.finish()?)
}

/// The images of `pack`, which must have `bytes` bytes.
///
/// # Errors
/// If the pack is damaged or has another length.
pub fn decompress(pack: &[u8], bytes: usize) -> Result<Vec<u8>> {
    let mut images = Vec::with_capacity(bytes);
    ZlibDecoder::new(pack)
        .take(bytes as u64 + 1)
        .read_to_end(&mut images)
        .context("cannot be decompressed")?;
    ensure!(images.len() == bytes, "decompresses to {} bytes, expected {bytes}", images.len());
    Ok(images)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packs_come_back_and_lengths_are_kept() {
        let pack = compress(&[7; 1000]).unwrap();
        assert!(pack.len() < 100);
        assert_eq!(decompress(&pack, 1000).unwrap(), [7; 1000]);
        assert!(decompress(&pack, 999).is_err());
        assert!(decompress(&pack, 1001).is_err());
        assert!(decompress(&pack[..8], 1000).is_err());
    }
}
