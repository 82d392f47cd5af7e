//! Compressed formats and containers, judged by ffmpeg.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::{good, interleave, voice, write_float};

/// Runs ffmpeg; tells aloud and gives false if it is not installed, which CI does not accept.
pub fn ffmpeg(arguments: &[&str]) -> bool {
    let run = Command::new("ffmpeg")
        .args(["-v", "error", "-nostdin", "-y"])
        .args(arguments)
        .stdout(Stdio::null())
        .status();
    match run {
        Ok(status) => {
            assert!(status.success(), "ffmpeg {arguments:?}");
            true
        }
        Err(e) => {
            assert!(std::env::var("CI").as_deref() != Ok("true"), "ffmpeg is needed: {e}");
            eprintln!("SKIPPED: ffmpeg is not installed");
            false
        }
    }
}

/// A voice-like recording encoded by ffmpeg.
pub struct Encoded {
    _dir: tempfile::TempDir,
    /// The encoded file.
    pub path: PathBuf,
}

impl Encoded {
    /// Encodes `seconds` of two voices (or one) with `options` into a file called `name`.
    pub fn new(name: &str, rate: u32, channels: u16, seconds: f64, options: &[&str]) -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let (raw, path) = (dir.path().join("original.wav"), dir.path().join(name));
        let frames = (f64::from(rate) * seconds) as usize;
        let one = voice(rate, frames, 0);
        let samples = if channels == 1 { one } else { interleave(&one, &voice(rate, frames, 1)) };
        write_float(&raw, rate, channels, &samples);
        // Without the count, encoders see a front-left channel instead of mono and refuse or double it.
        let count = channels.to_string();
        let mut arguments = vec!["-i", raw.to_str().unwrap(), "-ac", &count];
        arguments.extend(options);
        arguments.push(path.to_str().unwrap());
        ffmpeg(&arguments).then_some(Self { _dir: dir, path })
    }
}

/// The ratio of signal to difference, in dB, over the common length.
fn agreement(ours: &[f32], theirs: &[f32]) -> f64 {
    let (mut signal, mut noise) = (0.0, 1e-20);
    for (&a, &b) in ours.iter().zip(theirs) {
        signal += f64::from(b).powi(2);
        noise += (f64::from(a) - f64::from(b)).powi(2);
    }
    10.0 * (signal / noise).log10()
}

/// One row of the comparison: file name, ffmpeg's decoder, the encoder's options, the least agreement in dB
/// and the largest difference in length in samples at 16 kHz.
type Row<'a> = (&'a str, &'a [&'a str], &'a [&'a str], f64, usize);

/// Compares what we and ffmpeg decode; two runs of ffmpeg make and decode all files.
fn compare(rate: u32, channels: u16, rows: &[Row<'_>]) {
    let options: Vec<&str> = rows[0].2.to_vec();
    let Some(first) = Encoded::new(rows[0].0, rate, channels, 1.5, &options) else { return };
    let place = |name: &str| first.path.with_file_name(name).to_str().unwrap().to_string();
    let count = channels.to_string();
    let (mut encode, mut decode) = (vec!["-i".to_string(), place("original.wav")], Vec::new());
    let mut outputs = Vec::new();
    for (i, &(name, decoder, options, ..)) in rows.iter().enumerate() {
        encode.extend(["-ac", &count].map(String::from));
        encode.extend(options.iter().map(|o| o.to_string()));
        encode.push(place(name));
        decode.extend(decoder.iter().map(|o| o.to_string()));
        decode.extend(["-i".to_string(), place(name)]);
        let (map, raw) = (format!("{i}:a:0"), place(&format!("{name}.reference.wav")));
        outputs.extend(["-map".to_string(), map, "-c:a".into(), "pcm_f32le".into(), raw]);
    }
    decode.extend(outputs);
    for arguments in [encode, decode] {
        assert!(ffmpeg(&arguments.iter().map(String::as_str).collect::<Vec<_>>()));
    }
    let mut failures = Vec::new();
    for &(name, _, options, least, slack) in rows {
        let ours = good(place(name).as_ref());
        // What ffmpeg decodes is brought to 16 kHz by the code under test.
        let theirs = good(place(&format!("{name}.reference.wav")).as_ref()).samples;
        let found = agreement(&ours.samples, &theirs);
        let length = ours.samples.len() as i64 - theirs.len() as i64;
        let line = format!(
            "{name} {options:?}: {} {} Hz {} ch, {found:.1} dB, {length:+} samples, {:?}",
            ours.source.codec, ours.source.sample_rate, ours.source.channels, ours.source.warnings
        );
        eprintln!("{line}");
        let fine =
            found >= least && length.unsigned_abs() as usize <= slack && ours.source.warnings.is_empty();
        if !fine || ours.source.channels != channels {
            failures.push(line);
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

/// Plain WAV samples are read another way than those in other containers, with the same bits.
#[test]
fn wav_equals_the_same_samples_in_other_containers() {
    let encodings = [
        ("s16", "pcm_s16le", "pcm_s16be"),
        ("s24", "pcm_s24le", "pcm_s24be"),
        ("s32", "pcm_s32le", "pcm_s32be"),
        ("f32", "pcm_f32le", "pcm_f32be"),
        ("f64", "pcm_f64le", "pcm_f64be"),
    ];
    for (rate, channels) in [(16_000, 1), (44_100, 2)] {
        for (name, little, big) in encodings {
            let Some(wav) = Encoded::new("a.wav", rate, channels, 20.3, &["-c:a", little]) else { return };
            let caf = wav.path.with_extension("caf");
            ffmpeg(&["-i", wav.path.to_str().unwrap(), "-c:a", big, caf.to_str().unwrap()]);
            let (ours, theirs) = (good(&wav.path), good(&caf));
            assert!(ours.samples == theirs.samples, "{name}, {rate} Hz, {channels} channels");
            assert_eq!(ours.source.frames, theirs.source.frames, "{name}");
            assert_eq!(ours.source.codec, little);
        }
    }
}

#[test]
fn lossless_formats_agree_with_ffmpeg() {
    compare(
        44_100,
        2,
        &[
            ("a.flac", &[], &[], 90.0, 0),
            ("a.oga", &[], &["-c:a", "flac"], 90.0, 0),
            ("a.m4a", &[], &["-c:a", "alac"], 90.0, 0),
            ("a.aiff", &[], &[], 90.0, 0),
            ("b.aiff", &[], &["-c:a", "pcm_s24be"], 120.0, 0),
            ("a.caf", &[], &["-c:a", "pcm_s16le"], 90.0, 0),
            ("a.mov", &[], &["-c:a", "pcm_s16le"], 90.0, 0),
            ("a.mka", &[], &["-c:a", "pcm_s16le"], 90.0, 0),
            ("a.wav", &[], &["-c:a", "pcm_s24le"], 120.0, 0),
        ],
    );
    compare(
        8_000,
        1,
        &[
            ("a.wav", &[], &["-c:a", "pcm_mulaw"], 120.0, 0),
            ("b.wav", &[], &["-c:a", "pcm_alaw"], 120.0, 0),
            ("c.wav", &[], &["-c:a", "pcm_u8"], 120.0, 0),
            ("d.wav", &[], &["-rf64", "always"], 90.0, 0),
            ("a.w64", &[], &[], 90.0, 0),
            ("e.wav", &[], &["-c:a", "adpcm_ms"], 60.0, 2048),
            ("f.wav", &[], &["-c:a", "adpcm_ima_wav"], 60.0, 2048),
        ],
    );
}

#[test]
fn lossy_formats_agree_with_ffmpeg() {
    compare(
        44_100,
        2,
        &[
            ("a.mp3", &[], &["-b:a", "128k"], 60.0, 1),
            ("a.wav", &[], &["-c:a", "libmp3lame"], 60.0, 1200),
            ("a.mp2", &[], &[], 60.0, 1),
            ("a.ogg", &[], &["-c:a", "libvorbis"], 60.0, 1),
            ("a.mka", &[], &["-c:a", "libvorbis"], 60.0, 400),
            ("a.aac", &[], &["-c:a", "aac"], 60.0, 1),
            // ffmpeg leaves the encoder's padding at the end.
            ("a.m4a", &[], &["-c:a", "aac"], 60.0, 1024),
            ("a.mp4", &[], &["-c:a", "aac", "-movflags", "frag_keyframe+empty_moov"], 60.0, 1024),
        ],
    );
    compare(
        16_000,
        1,
        &[
            ("a.mp3", &[], &["-q:a", "9"], 60.0, 1),
            ("b.mp3", &[], &["-b:a", "32k", "-write_xing", "0"], 30.0, 1),
            ("a.ogg", &[], &["-c:a", "libvorbis", "-q:a", "0"], 60.0, 1),
            ("a.m4a", &[], &["-c:a", "aac", "-b:a", "32k", "-movflags", "+faststart"], 60.0, 1024),
        ],
    );
}

#[test]
fn opus_agrees_with_libopus() {
    let lib: &[&str] = &["-c:a", "libopus"];
    compare(
        16_000,
        1,
        &[
            ("a.ogg", lib, &["-c:a", "libopus", "-b:a", "12k", "-application", "voip"], 55.0, 1),
            ("b.ogg", lib, &["-c:a", "libopus", "-b:a", "16k", "-frame_duration", "60"], 55.0, 1),
        ],
    );
    compare(
        48_000,
        2,
        &[
            ("a.opus", lib, &["-c:a", "libopus", "-b:a", "24k", "-application", "voip"], 55.0, 1),
            ("b.opus", lib, &["-c:a", "libopus", "-b:a", "32k", "-application", "voip"], 55.0, 1),
            ("c.opus", lib, &["-c:a", "libopus", "-b:a", "96k"], 55.0, 1),
            ("d.opus", lib, &["-c:a", "libopus", "-frame_duration", "2.5"], 55.0, 1),
            ("a.webm", lib, &["-c:a", "libopus", "-b:a", "32k"], 55.0, 1000),
            ("a.mka", lib, &["-c:a", "libopus", "-b:a", "64k"], 55.0, 1000),
            ("a.mp4", lib, &["-c:a", "libopus", "-b:a", "64k"], 55.0, 1000),
        ],
    );
}

#[test]
fn aac_in_mp4_is_not_late() {
    let Some(encoded) = Encoded::new("a.m4a", 44_100, 1, 2.0, &["-c:a", "aac", "-b:a", "128k"]) else {
        return;
    };
    let ours = good(&encoded.path).samples;
    let original = good(&encoded.path.with_file_name("original.wav")).samples;
    let score = |shift: i64| -> f64 {
        let at = |i: i64| f64::from(ours[(i + shift) as usize]);
        (2000..28_000i64).map(|i| at(i) * f64::from(original[i as usize])).sum()
    };
    let best = (-600..600).max_by(|&a, &b| score(a).total_cmp(&score(b))).unwrap();
    assert!(best.abs() <= 16, "the sound is {best} samples late");
    assert!(ours.len().abs_diff(original.len()) <= 16, "{} against {}", ours.len(), original.len());
}

#[test]
fn the_first_audio_track_of_a_video_is_used() {
    let Some(sound) = Encoded::new("s.wav", 48_000, 1, 2.0, &[]) else { return };
    let original = good(&sound.path).samples;
    for (name, codec) in
        [("v.mp4", "aac"), ("v.mkv", "libvorbis"), ("v.mov", "pcm_s16le"), ("v.webm", "libopus")]
    {
        let path = sound.path.with_file_name(name);
        let video = if name == "v.webm" { "libvpx" } else { "mpeg4" };
        let wav = sound.path.to_str().unwrap();
        let map = ["-ac", "1", "-map", "0:v", "-map", "1:a", "-map", "2:a", "-c:v", video, "-c:a", codec];
        let mut arguments = vec!["-f", "lavfi", "-i", "testsrc=d=2:s=64x64:r=10", "-i", wav];
        arguments.extend(["-f", "lavfi", "-i", "sine=d=2:r=48000"]);
        arguments.extend(map);
        arguments.push(path.to_str().unwrap());
        assert!(ffmpeg(&arguments));
        let ours = good(&path);
        let found = agreement(&ours.samples, &original);
        eprintln!("{name}: {found:.1} dB to the original, {:?}", ours.source.warnings);
        assert!(ours.samples.len().abs_diff(32_000) < 1100, "{name}: {}", ours.samples.len());
        assert_eq!(ours.source.warnings.len(), 1, "{name}: {:?}", ours.source.warnings);
        assert!(found > 15.0, "{name}: {found} dB");
    }
}
