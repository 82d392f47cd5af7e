//! Reads what a cubin says about itself: its architecture and, for every entry, threads and parameters.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};

/// Number of the machine "NVIDIA CUDA".
const MACHINE_CUDA: u16 = 190;
/// Position of the version of the binary interface: 7 up to 9.0, 8 from 10.0.
const ABI_VERSION: usize = 8;
const SECTION_BYTES: usize = 64;

// Attributes of an entry, and the kinds of their values.
const ATTRIBUTE_MAX_THREADS: u8 = 0x05;
const ATTRIBUTE_EXACT_THREADS: u8 = 0x10;
const ATTRIBUTE_PARAMETER_BYTES: u8 = 0x19;
const KIND_SHORT: u8 = 3;
const KIND_SIZED: u8 = 4;

/// A cubin's facts.
pub struct Cubin {
    /// Compute capability times ten.
    pub capability: u32,
    /// Whether only exactly this architecture runs it.
    pub specific: bool,
    /// Its entries by name.
    pub entries: BTreeMap<String, Launch>,
}

/// What a launch of an entry must respect.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Launch {
    /// Most threads of a block; 0 if the code does not bound them.
    pub threads: u32,
    /// Bytes of all parameters.
    pub parameter_bytes: u32,
}

impl Cubin {
    /// Reads a cubin.
    ///
    /// # Errors
    /// If it is none.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        ensure!(bytes.starts_with(b"\x7fELF\x02\x01"), "not a little-endian 64-bit ELF file");
        ensure!(u16_at(bytes, 18)? == MACHINE_CUDA, "not code for a GPU");
        let flags = u32_at(bytes, 48)?;
        // Where the flags hold the architecture, and the bit of code with instructions that later GPUs lack.
        let (shift, specific) = match bytes[ABI_VERSION] {
            7 => (0, 0x800),
            8 => (8, 0x8),
            other => bail!("version {other} of the binary interface"),
        };
        let mut entries = BTreeMap::new();
        for (name, section) in sections(bytes)? {
            if let Some(entry) = name.strip_prefix(".nv.info.") {
                entries.insert(entry.to_owned(), attributes(section).with_context(|| name.clone())?);
            }
        }
        Ok(Self { capability: flags >> shift & 0xff, specific: flags & specific != 0, entries })
    }
}

/// Name and content of every section that has content.
fn sections(bytes: &[u8]) -> Result<Vec<(String, &[u8])>> {
    let table = usize::try_from(u64_at(bytes, 40)?)?;
    ensure!(usize::from(u16_at(bytes, 58)?) == SECTION_BYTES, "sections of an unknown size");
    let (count, names) = (usize::from(u16_at(bytes, 60)?), usize::from(u16_at(bytes, 62)?));
    let header = |index: usize| at(bytes, table + index * SECTION_BYTES, SECTION_BYTES);
    let content = |header: &[u8]| -> Result<&[u8]> {
        at(bytes, usize::try_from(u64_at(header, 24)?)?, usize::try_from(u64_at(header, 32)?)?)
    };
    let names = content(header(names)?)?;
    let mut sections = Vec::with_capacity(count);
    for index in 0..count {
        let header = header(index)?;
        const NO_CONTENT: [u32; 2] = [0, 8];
        if NO_CONTENT.contains(&u32_at(header, 4)?) {
            continue;
        }
        let name = names.get(u32_at(header, 0)? as usize..).context("a name outside of its section")?;
        let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
        sections.push((String::from_utf8_lossy(name).into_owned(), content(header)?));
    }
    Ok(sections)
}

fn attributes(mut section: &[u8]) -> Result<Launch> {
    let mut launch = Launch::default();
    while let [kind, attribute, rest @ ..] = section {
        let length = if *kind == KIND_SIZED { usize::from(u16_at(rest, 0)?) } else { 0 };
        let value = at(rest, 2, length)?;
        match (*kind, *attribute) {
            (KIND_SHORT, ATTRIBUTE_PARAMETER_BYTES) => launch.parameter_bytes = u32::from(u16_at(rest, 0)?),
            (KIND_SIZED, ATTRIBUTE_MAX_THREADS | ATTRIBUTE_EXACT_THREADS) => {
                launch.threads = u32_at(value, 0)? * u32_at(value, 4)? * u32_at(value, 8)?;
            }
            (1..=KIND_SIZED, _) => {}
            (other, _) => bail!("an attribute of the unknown kind {other}"),
        }
        section = &rest[2 + length..];
    }
    Ok(launch)
}

fn at(bytes: &[u8], offset: usize, length: usize) -> Result<&[u8]> {
    let end = offset.checked_add(length).context("a length beyond the file")?;
    bytes.get(offset..end).context("the file is cut off")
}

fn u16_at(bytes: &[u8], offset: usize) -> Result<u16> {
    Ok(u16::from_le_bytes(at(bytes, offset, 2)?.try_into()?))
}

fn u32_at(bytes: &[u8], offset: usize) -> Result<u32> {
    Ok(u32::from_le_bytes(at(bytes, offset, 4)?.try_into()?))
}

fn u64_at(bytes: &[u8], offset: usize) -> Result<u64> {
    Ok(u64::from_le_bytes(at(bytes, offset, 8)?.try_into()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_read() {
        let section = [
            4, 0x37, 4, 0, 0x81, 0, 0, 0, // some other with a value of 4 bytes
            3, 0x19, 0x50, 0, // 80 bytes of parameters
            4, 5, 12, 0, 0x80, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, // 128 x 2 x 1 threads
        ];
        assert_eq!(attributes(&section).unwrap(), Launch { threads: 256, parameter_bytes: 80 });
        assert!(attributes(&section[..section.len() - 1]).is_err());
    }

    #[test]
    fn damage_is_an_error() {
        assert!(Cubin::parse(b"").is_err());
        assert!(Cubin::parse(b"\x7fELF\x02\x01 and no more").is_err());
    }
}
