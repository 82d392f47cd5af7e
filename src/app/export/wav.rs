//! A folder with a WAV file for each speaker: 16-bit mono at 16 kHz, the sample rate that recordings are analysed at.
//!
//! Every file is as long as the recording and holds its sound, all channels mixed, where its speaker talks, and digital
//! silence elsewhere. So it can be laid beside the recording, and where several talk at once all their files have the
//! sound. The recording is decoded once, and the files are written one after the other: memory is needed for the samples
//! of the recording, however many speakers there are.

use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::ops::{ControlFlow, Range};
use std::path::Path;

use hound::{SampleFormat, WavSpec, WavWriter};

use super::write::WriteError;
use super::{ExportError, Report, text};
use crate::audio::{self, Channels, SAMPLE_RATE};

/// Ends every file: an `INFO` list that names the program, by which its files are known.
const MARK: &[u8; 32] = b"LIST\x18\0\0\0INFOISFT\x0c\0\0\0speakrs-app\0";

/// How much the duration of the recording may differ from that of the result, in seconds. Encoders and decoders disagree
/// about less than this.
const TOLERANCE: f64 = 0.1;

/// Longest part of a file name that is made of a speaker's name, in bytes; every file system has room for it.
const MAX_NAME_BYTES: usize = 120;

/// Samples that are written at once.
const BLOCK: usize = 8192;

/// Writes the files into `folder`, which is empty.
///
/// # Errors
/// If the recording cannot be decoded any more, is not the one of the result, or the disk refuses.
pub fn fill(report: &Report, folder: &Path) -> Result<(), ExportError> {
    let speakers = &report.diarization.speakers;
    if speakers.is_empty() {
        return Ok(());
    }
    let mut unwatched = |_| ControlFlow::Continue(());
    let waveform =
        audio::decode(report.path, Channels::Mix, &mut unwatched).map_err(ExportError::Recording)?;
    if (waveform.duration() - report.diarization.duration).abs() > TOLERANCE {
        return Err(ExportError::OtherRecording);
    }
    let mut turns: Vec<Vec<Range<usize>>> = vec![Vec::new(); speakers.len()];
    for segment in &report.diarization.segments {
        let sample = |time: f64| (time * f64::from(SAMPLE_RATE)).round() as usize;
        turns[segment.speaker].push(sample(segment.start)..sample(segment.end));
    }
    for (number, (speaker, mut turns)) in speakers.iter().zip(turns).enumerate() {
        turns.sort_unstable_by_key(|turn| turn.start);
        let path = folder.join(file_name(number, speakers.len(), &speaker.label));
        write(&path, &waveform.samples, &turns).map_err(WriteError::Io)?;
    }
    Ok(())
}

/// Whether [`fill`] wrote the file at `path`.
pub fn ours(path: &Path) -> bool {
    let mark = |path: &Path| -> io::Result<bool> {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::End(-(MARK.len() as i64)))?;
        let mut end = [0; MARK.len()];
        file.read_exact(&mut end)?;
        Ok(end == *MARK)
    };
    path.extension().is_some_and(|extension| extension == "wav") && mark(path).unwrap_or(false)
}

/// The number comes first and makes the name unlike any other and unlike those that systems keep for devices (`CON`) or
/// folders (`..`), whatever follows.
fn file_name(number: usize, speakers: usize, label: &str) -> String {
    let fit = |c: char| if r#"<>:"/\|?*"#.contains(c) { '_' } else { c };
    let mut name: String = text::line(label).chars().map(fit).collect();
    name.truncate(name.floor_char_boundary(MAX_NAME_BYTES));
    let digits = speakers.to_string().len().max(2);
    format!("{:0digits$} {}.wav", number + 1, name.trim_end())
}

/// Writes `samples` where `turns` are, which are sorted by their start and may overlap, and zeros elsewhere.
fn write(path: &Path, samples: &[f32], turns: &[Range<usize>]) -> io::Result<()> {
    let spec = WavSpec {
        channels: 1,
        sample_rate: SAMPLE_RATE,
        bits_per_sample: 16,
        sample_format: SampleFormat::Int,
    };
    let mut file = File::create_new(path)?;
    let mut writer = WavWriter::new(BufWriter::new(&file), spec).map_err(plain)?;
    let mut at = 0;
    for turn in turns {
        let end = turn.end.min(samples.len());
        let start = turn.start.clamp(at, end.max(at));
        put(&mut writer, (at..start).map(|_| 0))?;
        put(&mut writer, samples[start..end.max(start)].iter().map(|&sample| quantized(sample)))?;
        at = end.max(start);
    }
    put(&mut writer, (at..samples.len()).map(|_| 0))?;
    writer.finalize().map_err(plain)?;
    let bytes = file.seek(SeekFrom::End(0))? + MARK.len() as u64;
    file.write_all(MARK)?;
    // The size of everything after this field.
    file.seek(SeekFrom::Start(4))?;
    file.write_all(&((bytes - 8) as u32).to_le_bytes())?;
    file.sync_all()
}

fn put<W: Write + Seek>(
    writer: &mut WavWriter<W>,
    mut samples: impl ExactSizeIterator<Item = i16>,
) -> io::Result<()> {
    while samples.len() > 0 {
        let count = samples.len().min(BLOCK);
        let mut block = writer.get_i16_writer(count as u32);
        samples.by_ref().take(count).for_each(|sample| block.write_sample(sample));
        block.flush().map_err(plain)?;
    }
    Ok(())
}

/// Samples of 16 bits come out as they were.
fn quantized(sample: f32) -> i16 {
    (sample * 32768.0).round() as i16
}

fn plain(error: hound::Error) -> io::Error {
    match error {
        hound::Error::IoError(error) => error,
        error => io::Error::other(error),
    }
}
