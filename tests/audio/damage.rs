//! Files that are no recordings, or recordings that were damaged.

use std::path::Path;

use speakrs_app::audio::AudioError;

use super::formats::{Encoded, ffmpeg};
use super::{error, good, mix, scratch, voice, write_int};

#[test]
fn things_that_are_no_recordings_are_named() {
    let noise: Vec<u8> = (0..50_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let cases: [(&[u8], &str); 8] = [
        (b"", "empty (0 bytes)"),
        (b"hello, this is a text file and no recording\n", "looks like text"),
        (b"x", "not a recording"),
        (&[0; 5000], "zeros only"),
        (b"PK\x03\x04 and so on", "ZIP"),
        (b"\x30\x26\xB2\x75\x8E\x66\xCF\x11 windows media", "Windows Media"),
        (b"#!AMR\n\x3C\x91\x17", "AMR"),
        (&noise, "not a recording"),
    ];
    for (bytes, part) in cases {
        let (_dir, path) = scratch("thing.wav");
        std::fs::write(&path, bytes).unwrap();
        assert!(error(&path).contains(part), "{part}: {}", error(&path));
    }
}

#[test]
fn what_cannot_be_opened_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    assert!(matches!(mix(&dir.path().join("missing.wav")), Err(AudioError::Io(_))));
    assert!(mix(dir.path()).is_err());
}

#[test]
fn names_of_any_kind_are_opened() {
    for name in ["⚒️ x é_日本.wav", "no extension", "a b  c.mp3", "1e5.wav"] {
        let (_dir, path) = scratch(name);
        write_int(&path, 16_000, 1, &[1000; 1600]);
        assert_eq!(good(&path).samples.len(), 1600);
    }
}

/// Every format that is damaged below.
fn formats(seconds: f64) -> Option<Vec<Encoded>> {
    let list: [(&str, &[&str]); 9] = [
        ("a.wav", &[]),
        ("a.mp3", &["-b:a", "64k"]),
        ("a.flac", &[]),
        ("a.ogg", &["-c:a", "libvorbis"]),
        ("a.opus", &["-c:a", "libopus", "-b:a", "24k"]),
        ("a.webm", &["-c:a", "libopus", "-b:a", "24k"]),
        ("a.m4a", &["-c:a", "aac"]),
        ("a.aac", &["-c:a", "aac"]),
        ("a.caf", &["-c:a", "alac"]),
    ];
    list.into_iter().map(|(name, options)| Encoded::new(name, 16_000, 1, seconds, options)).collect()
}

#[test]
fn flipped_and_cut_files_never_break_the_program() {
    let Some(formats) = formats(1.0) else { return };
    let mut seed = 1u32;
    let mut random = |below: usize| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (seed >> 4) as usize % below
    };
    for encoded in &formats {
        let bytes = std::fs::read(&encoded.path).unwrap();
        let path = encoded.path.with_file_name("broken");
        for round in 0..18 {
            let mut broken = bytes.clone();
            if round % 3 == 0 {
                broken.truncate(random(bytes.len()));
            } else {
                // Half of the rounds aim at the header, where sizes and counts are.
                let reach = if round % 2 == 0 { bytes.len() } else { bytes.len().min(600) };
                for _ in 0..8 {
                    broken[random(reach)] = random(256) as u8;
                }
            }
            std::fs::write(&path, &broken).unwrap();
            match mix(&path) {
                Ok(w) => assert!(w.samples.iter().all(|x| x.is_finite())),
                Err(AudioError::Panicked(text)) => eprintln!("{}: caught: {text}", encoded.path.display()),
                Err(e) => assert!(!e.to_string().is_empty()),
            }
        }
    }
}

#[test]
fn a_file_cut_short_gives_what_is_there() {
    let Some(formats) = formats(4.0) else { return };
    for encoded in &formats {
        let bytes = std::fs::read(&encoded.path).unwrap();
        let path = encoded.path.with_file_name("cut");
        std::fs::write(&path, &bytes[..bytes.len() * 6 / 10]).unwrap();
        let name = encoded.path.file_name().unwrap().to_string_lossy().to_string();
        match mix(&path) {
            Ok(w) => assert!((1.0..3.5).contains(&w.duration()), "{name}: {} s", w.duration()),
            // These keep their index at the end, so nothing can be found once it is cut off.
            Err(e) if name == "a.m4a" => assert!(e.to_string().contains("moov"), "{e}"),
            Err(e) => assert!(name == "a.caf" && e.to_string().contains("damaged"), "{name}: {e}"),
        }
    }
}

/// Overwrites 300 bytes in the middle of a file.
fn scar(path: &Path) {
    let mut bytes = std::fs::read(path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..middle + 300].fill(0x5A);
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn a_damaged_stretch_becomes_silence_of_its_length() {
    for (name, options) in [
        ("a.aac", &["-c:a", "aac", "-b:a", "64k"][..]),
        ("a.mp3", &["-b:a", "64k"][..]),
        ("a.m4a", &["-c:a", "aac", "-b:a", "64k"][..]),
        ("a.ogg", &["-c:a", "libopus", "-b:a", "24k"][..]),
        ("a.mka", &["-c:a", "libvorbis"][..]),
    ] {
        let Some(encoded) = Encoded::new(name, 16_000, 1, 6.0, options) else { return };
        let whole = good(&encoded.path);
        scar(&encoded.path);
        let scarred = good(&encoded.path);
        let lost = whole.duration() - scarred.duration();
        eprintln!("{name}: {lost:+.3} s after damage, {:?}", scarred.source.warnings);
        assert!(lost.abs() < 0.03, "{name}: {lost} s are missing");
        assert!(!scarred.source.warnings.is_empty(), "{name}: no warning");
        let from = whole.samples.len() - 16_000;
        let same = whole.samples[from..].iter().zip(&scarred.samples[scarred.samples.len() - 16_000..]);
        let error: f32 = same.map(|(a, b)| (a - b).powi(2)).sum();
        let power: f32 = whole.samples[from..].iter().map(|a| a * a).sum();
        assert!(error < 0.1 * power, "{name}: the end moved ({error} of {power})");
    }
}

#[test]
fn wrong_extensions_do_not_matter() {
    let Some(encoded) = Encoded::new("a.mp3", 16_000, 1, 1.0, &[]) else { return };
    let renamed = encoded.path.with_file_name("a.wav");
    std::fs::rename(&encoded.path, &renamed).unwrap();
    let waveform = good(&renamed);
    assert_eq!(waveform.source.codec, "mp3");
    assert_eq!(waveform.samples.len(), 16_000);
}

#[test]
fn video_without_sound_is_named() {
    let (_dir, path) = scratch("silent.mp4");
    if !ffmpeg(&["-f", "lavfi", "-i", "testsrc=d=1:s=64x64", path.to_str().unwrap()]) {
        return;
    }
    assert!(error(&path).starts_with("no audio track"), "{}", error(&path));
}

#[test]
fn covers_and_junk_before_the_sound_are_skipped() {
    let Some(encoded) = Encoded::new("a.mp3", 16_000, 1, 2.0, &["-write_xing", "0", "-id3v2_version", "0"])
    else {
        return;
    };
    let bytes = std::fs::read(&encoded.path).unwrap();
    let plain = good(&encoded.path).samples.len();
    let mut tag = b"ID3\x03\x00\x00".to_vec();
    let size = 300_000u32;
    tag.extend([
        (size >> 21) as u8 & 127,
        (size >> 14) as u8 & 127,
        (size >> 7) as u8 & 127,
        size as u8 & 127,
    ]);
    tag.extend([0xFF, 0xFB, 0x90, 0x64].repeat(size as usize / 4));
    for junk in [tag, vec![0xFF; 4000]] {
        std::fs::write(&encoded.path, [&junk[..], &bytes[..]].concat()).unwrap();
        let waveform = good(&encoded.path);
        assert_eq!(waveform.source.sample_rate, 16_000);
        assert!(waveform.samples.len().abs_diff(plain) <= 576, "{} of {plain}", waveform.samples.len());
    }
}

#[test]
fn a_mono_voice_is_found_where_it_was() {
    // A long pause before the voice: no decoder may close the gap.
    let mut samples = vec![0.0f32; 16_000];
    samples.extend(voice(16_000, 16_000, 0));
    let ints: Vec<i16> = samples.iter().map(|x| (x * 32_767.0) as i16).collect();
    let (dir, path) = scratch("pause.wav");
    write_int(&path, 16_000, 1, &ints);
    let coded = dir.path().join("pause.ogg");
    if !ffmpeg(&["-i", path.to_str().unwrap(), "-c:a", "libopus", "-b:a", "16k", coded.to_str().unwrap()]) {
        return;
    }
    let waveform = good(&coded);
    let energy = |range: std::ops::Range<usize>| waveform.samples[range].iter().map(|x| x * x).sum::<f32>();
    assert!(energy(0..15_500) < 0.01 * energy(16_000..31_000));
}

#[test]
fn a_header_without_its_samples_is_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("header.wav");
    let mut writer = hound::WavWriter::create(
        &path,
        hound::WavSpec {
            channels: 1,
            sample_rate: 16_000,
            bits_per_sample: 16,
            sample_format: hound::SampleFormat::Int,
        },
    )
    .unwrap();
    (0..1_000).for_each(|_| writer.write_sample(1i16).unwrap());
    writer.finalize().unwrap();
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..44]).unwrap();
    let text = error(&path);
    assert!(text.contains("damaged") && text.contains("2000 bytes"), "{text}");
}
