//! WAV headers as recorders and editors really write them.

use std::path::Path;

use super::{error, good, scratch, voice, write_int};

/// A chunk with its pad byte.
fn chunk(name: &[u8; 4], body: &[u8]) -> Vec<u8> {
    let mut out = name.to_vec();
    out.extend((body.len() as u32).to_le_bytes());
    out.extend(body);
    out.resize(out.len().next_multiple_of(2), 0);
    out
}

/// A `fmt ` body of 16 bytes, then `extra`.
fn fmt(tag: u16, channels: u16, bytes: u16, bits: u16, extra: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend(tag.to_le_bytes());
    out.extend(channels.to_le_bytes());
    out.extend(16_000u32.to_le_bytes());
    out.extend((16_000 * u32::from(channels * bytes)).to_le_bytes());
    out.extend((channels * bytes).to_le_bytes());
    out.extend(bits.to_le_bytes());
    out.extend(extra);
    out
}

/// The extension of WAVE_FORMAT_EXTENSIBLE.
fn extensible(tag: u16, valid_bits: u16, mask: u32) -> Vec<u8> {
    let mut out = 22u16.to_le_bytes().to_vec();
    out.extend(valid_bits.to_le_bytes());
    out.extend(mask.to_le_bytes());
    out.extend(tag.to_le_bytes());
    out.extend([0, 0, 0, 0, 0x10, 0, 0x80, 0, 0, 0xAA, 0, 0x38, 0x9B, 0x71]);
    out
}

/// A RIFF file of the given chunks.
fn riff(chunks: &[Vec<u8>]) -> Vec<u8> {
    let body = chunks.concat();
    let mut out = b"RIFF".to_vec();
    out.extend((body.len() as u32 + 4).to_le_bytes());
    out.extend(b"WAVE");
    out.extend(body);
    out
}

fn write(path: &Path, bytes: &[u8]) {
    std::fs::write(path, bytes).unwrap();
}

/// 1001 samples and their 16-bit form.
fn material() -> (Vec<f32>, Vec<u8>) {
    let ints: Vec<i16> = voice(16_000, 1001, 0).iter().map(|x| (x * 32_768.0) as i16).collect();
    let floats = ints.iter().map(|&x| f32::from(x) / 32_768.0).collect();
    (floats, ints.iter().flat_map(|x| x.to_le_bytes()).collect())
}

#[test]
fn sizes_that_lie_are_seen_through() {
    let (floats, data) = material();
    let plain = riff(&[chunk(b"fmt ", &fmt(1, 1, 2, 16, &[])), chunk(b"data", &data)]);
    let patched = |at: usize, size: u32| {
        let mut bytes = plain.clone();
        bytes[at..at + 4].copy_from_slice(&size.to_le_bytes());
        bytes
    };
    let mut streamed = patched(4, u32::MAX);
    streamed[40..44].copy_from_slice(&u32::MAX.to_le_bytes());
    let mut unfinished = patched(4, 0);
    unfinished[40..44].copy_from_slice(&0u32.to_le_bytes());
    let cases = [
        ("RIFF too small", patched(4, 100), 0),
        ("RIFF too large", patched(4, 1 << 30), 0),
        ("streamed", streamed, 0),
        ("never finished", unfinished, 1),
        ("data too large", patched(40, 1 << 30), 1),
    ];
    for (name, bytes, warnings) in cases {
        let (_dir, path) = scratch("sizes.wav");
        write(&path, &bytes);
        let waveform = good(&path);
        assert_eq!(waveform.samples, floats, "{name}");
        assert_eq!(waveform.source.warnings.len(), warnings, "{name}: {:?}", waveform.source.warnings);
    }
}

#[test]
fn chunks_around_the_samples_are_skipped() {
    let (floats, data) = material();
    let list = chunk(b"LIST", b"INFOISFT\x02\0\0\0hi");
    let odd = chunk(b"junk", b"odd");
    let mut bytes =
        riff(&[list.clone(), odd, chunk(b"fmt ", &fmt(1, 1, 2, 16, &[])), list, chunk(b"data", &data)]);
    bytes.extend(chunk(b"id3 ", &[0xFF; 900]));
    let (_dir, path) = scratch("chunks.wav");
    write(&path, &bytes);
    assert_eq!(good(&path).samples, floats);
}

#[test]
fn sample_formats_are_understood() {
    let (floats, _) = material();
    let ints: Vec<i32> = floats.iter().map(|x| (x * 8_388_608.0) as i32).collect();
    let f32s: Vec<u8> = floats.iter().flat_map(|x| x.to_le_bytes()).collect();
    let f64s: Vec<u8> = floats.iter().flat_map(|&x| f64::from(x).to_le_bytes()).collect();
    let s24: Vec<u8> = ints.iter().flat_map(|x| x.to_le_bytes()[..3].to_vec()).collect();
    let s32: Vec<u8> = ints.iter().flat_map(|x| (x << 8).to_le_bytes()).collect();
    let cases = [
        ("float", fmt(3, 1, 4, 32, &[]), f32s.clone()),
        ("float, 18 bytes", fmt(3, 1, 4, 32, &[0; 2]), f32s.clone()),
        ("float, 40 bytes of zeros", fmt(3, 1, 4, 32, &[0; 24]), f32s.clone()),
        ("double", fmt(3, 1, 8, 64, &[]), f64s),
        ("extensible float", fmt(0xFFFE, 1, 4, 32, &extensible(3, 32, 4)), f32s),
        ("24 bits", fmt(1, 1, 3, 24, &[]), s24.clone()),
        ("24 bits, odd length of fmt", fmt(1, 1, 3, 24, &[0; 6]), s24.clone()),
        ("extensible 24 bits", fmt(0xFFFE, 1, 3, 24, &extensible(1, 24, 4)), s24.clone()),
        ("extensible 20 in 24 bits", fmt(0xFFFE, 1, 3, 24, &extensible(1, 20, 0)), s24),
        ("24 in 32 bits", fmt(1, 1, 4, 24, &[]), s32.clone()),
        ("extensible 24 in 32 bits", fmt(0xFFFE, 1, 4, 32, &extensible(1, 24, 4)), s32.clone()),
        ("32 bits", fmt(1, 1, 4, 32, &[0; 2]), s32),
    ];
    for (name, fmt, data) in cases {
        let (_dir, path) = scratch("format.wav");
        write(&path, &riff(&[chunk(b"fmt ", &fmt), chunk(b"data", &data)]));
        let waveform = good(&path);
        assert_eq!(waveform.samples, floats, "{name}");
        assert!(waveform.source.warnings.is_empty(), "{name}: {:?}", waveform.source.warnings);
    }
}

#[test]
fn large_file_variants_are_read() {
    let (floats, data) = material();
    for magic in [b"RF64", b"BW64"] {
        let mut ds64 = vec![0; 8];
        ds64.extend((data.len() as u64).to_le_bytes());
        ds64.extend([0; 12]);
        let mut bytes = riff(&[chunk(b"ds64", &ds64), chunk(b"fmt ", &fmt(1, 1, 2, 16, &[]))]);
        bytes[..4].copy_from_slice(magic);
        bytes[4..8].copy_from_slice(&u32::MAX.to_le_bytes());
        bytes.extend(b"data\xFF\xFF\xFF\xFF");
        bytes.extend(&data);
        bytes.extend(chunk(b"LIST", b"INFO"));
        let (_dir, path) = scratch("large.wav");
        write(&path, &bytes);
        assert_eq!(good(&path).samples, floats);
    }
}

#[test]
fn an_incomplete_last_frame_is_left_out() {
    let (_, data) = material();
    let (_dir, path) = scratch("odd.wav");
    write(&path, &riff(&[chunk(b"fmt ", &fmt(1, 2, 2, 16, &[])), chunk(b"data", &data)]));
    let waveform = good(&path);
    assert_eq!(waveform.samples.len(), 500);
    assert_eq!(waveform.source.warnings.len(), 1);
}

#[test]
fn no_samples_is_an_empty_waveform() {
    let (_dir, path) = scratch("none.wav");
    write_int(&path, 44_100, 2, &[]);
    let waveform = good(&path);
    assert!(waveform.samples.is_empty());
    assert_eq!(waveform.source.codec, "pcm_s16le");
}

#[test]
fn headers_beyond_repair_say_why() {
    let (_, data) = material();
    let whole = riff(&[chunk(b"fmt ", &fmt(1, 1, 2, 16, &[])), chunk(b"data", &data)]);
    let cases = [
        ("cut", whole[..36].to_vec(), "no \"data\" chunk"),
        ("no format", riff(&[chunk(b"data", &data)]), "no complete \"fmt \" chunk"),
        (
            "no channels",
            riff(&[chunk(b"fmt ", &fmt(1, 0, 2, 16, &[])), chunk(b"data", &data)]),
            "channels is 0",
        ),
        (
            "12 bytes a sample",
            riff(&[chunk(b"fmt ", &fmt(1, 1, 12, 96, &[])), chunk(b"data", &data)]),
            "96 bits",
        ),
        (
            "strange codec",
            riff(&[chunk(b"fmt ", &fmt(0x161, 1, 2, 16, &[])), chunk(b"data", &data)]),
            "support",
        ),
    ];
    for (name, bytes, part) in cases {
        let (_dir, path) = scratch("bad.wav");
        write(&path, &bytes);
        assert!(error(&path).contains(part), "{name}: {}", error(&path));
    }
}
