//! The way of a file through demultiplexer, decoder, trimming, mixing and resampling, one packet at a time.
//!
//! Depends on symphonia and on the sibling modules.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::LazyLock;
use std::sync::atomic::Ordering;

use symphonia::core::codecs::CodecParameters;
use symphonia::core::codecs::audio::well_known as codec;
use symphonia::core::codecs::audio::{AudioCodecId, AudioCodecParameters, AudioDecoder, AudioDecoderOptions};
use symphonia::core::codecs::registry::CodecRegistry;
use symphonia::core::errors::Error;
use symphonia::core::formats::probe::Hint;
use symphonia::core::formats::well_known::{
    FORMAT_ID_ADTS, FORMAT_ID_ISOMP4, FORMAT_ID_MP1, FORMAT_ID_MP2, FORMAT_ID_MP3,
};
use symphonia::core::formats::{FormatOptions, FormatReader, Track};
use symphonia::core::io::MediaSourceStream;
use symphonia::core::meta::{MetadataOptions, RawValue};
use symphonia::core::packet::Packet;
use symphonia::core::units::{Duration, TimeBase};

use super::gaps::Gaps;
use super::mix::Mixer;
use super::opus::OpusDecoder;
use super::resample::{Resampler, Samples};
use super::source::{self, Opened, Source};
use super::{AudioError, Channels, MAX_CHANNELS, SourceFacts, Waveform, mp4, riff};

/// Packets between two calls of the progress function.
const PACKETS_PER_REPORT: u64 = 32;

/// Longest end that is trimmed on the word of a header, in frames: more is a header that lies.
const LONGEST_TAIL: usize = 4608;

/// Longest silence put in the place of one damaged packet, in seconds.
const LONGEST_GAP: u64 = 10;

/// Demultiplexer errors in a row after which the rest of a file is given up.
const MOST_ERRORS: u32 = 16;

/// How far time stamps may run ahead of the decoded sound before silence fills the gap, in seconds; beyond the
/// longest, the time stamps are not believed.
const JUMP: std::ops::Range<f64> = 0.1..60.0;

/// The first bytes of Matroska and WebM files.
const MATROSKA: [u8; 4] = [0x1A, 0x45, 0xDF, 0xA3];

/// Symphonia's decoders and Opus.
static CODECS: LazyLock<CodecRegistry> = LazyLock::new(|| {
    let mut codecs = CodecRegistry::new();
    symphonia::default::register_enabled_codecs(&mut codecs);
    codecs.register_audio_decoder::<OpusDecoder>();
    codecs
});

/// Decodes `path`; see [`super::decode`].
pub fn decode_file(
    path: &Path,
    channels: Channels,
    progress: &mut dyn FnMut(f32) -> ControlFlow<()>,
) -> Result<Waveform, AudioError> {
    let Opened { source, mut position, head, pcm, warnings, sound_header } = source::open(path)?;
    if let Some(pcm) = pcm {
        return pcm.decode(source.into_file(), channels, warnings, progress);
    }
    let total = source.total().max(1);
    let mut format = match demultiplex(source) {
        // A Matroska file that was cut short is refused for its length, but can be read as a stream.
        Err(_) if head.starts_with(&MATROSKA) => {
            let mut again = source::open(path)?;
            again.source.seekable = false;
            position = again.position;
            demultiplex(again.source)
        }
        result => result,
    }
    .map_err(|e| refusal(e, &head))?;

    let mut chosen = Chosen::first(&*format)?;
    let mut run = Run::new(channels, chosen.facts(warnings));
    let bare = format.format_info().format == FORMAT_ID_ADTS || chosen.is_bare_mpeg(&*format);
    run.gaps = bare.then(|| Gaps::new(path));
    run.trim = Trim::for_track(path, &mut *format, &chosen);
    if chosen.others > 0 {
        run.warn(format!("the file has {} audio tracks; the first one is used", chosen.others + 1));
    }

    let (mut packets, mut errors, mut clean_end) = (0u64, 0, true);
    loop {
        if packets.is_multiple_of(PACKETS_PER_REPORT) {
            let share = position.load(Ordering::Relaxed) as f32 / total as f32;
            if progress(share.min(1.0)).is_break() {
                return Err(AudioError::Cancelled);
            }
        }
        packets += 1;
        match format.next_packet() {
            Ok(Some(packet)) => {
                errors = 0;
                if packet.track_id == chosen.id {
                    run.packet(&mut chosen, &packet)?;
                }
            }
            Ok(None) => break,
            // A new stream begins within the file, as in joined Ogg files.
            Err(Error::ResetRequired) => {
                chosen = Chosen::first(&*format)?;
                run.clock = None;
            }
            Err(error) => {
                errors += 1;
                if matches!(error, Error::IoError(_)) || errors > MOST_ERRORS {
                    clean_end = false;
                    run.warn(format!("the file ends early or is damaged ({error}); the rest is missing"));
                    break;
                }
            }
        }
    }
    let _ = progress(1.0);
    run.finish(sound_header || clean_end)
}

fn demultiplex(source: Source) -> Result<Box<dyn FormatReader>, Error> {
    let stream = MediaSourceStream::new(Box::new(source), Default::default());
    let probe = symphonia::default::get_probe();
    probe.probe(&Hint::new(), stream, FormatOptions::default(), MetadataOptions::default())
}

/// The audio track that is decoded.
struct Chosen {
    id: u32,
    decoder: Box<dyn AudioDecoder>,
    params: AudioCodecParameters,
    time_base: Option<TimeBase>,
    /// Delay, padding and frame count as stated by the container.
    stated: (Option<u32>, Option<u64>),
    /// Further audio tracks in the file.
    others: usize,
}

impl Chosen {
    /// The first audio track that can be decoded.
    fn first(format: &dyn FormatReader) -> Result<Self, AudioError> {
        let audio = |track: &Track| match &track.codec_params {
            Some(CodecParameters::Audio(params)) => Some(params.clone()),
            _ => None,
        };
        let tracks: Vec<_> = format.tracks().iter().filter_map(|t| audio(t).map(|p| (t, p))).collect();
        let mut reason = None;
        for (track, params) in &tracks {
            match make_decoder(params) {
                Ok(decoder) => {
                    return Ok(Self {
                        id: track.id,
                        decoder,
                        params: params.clone(),
                        time_base: track.time_base,
                        stated: (track.delay, track.num_frames),
                        others: tracks.len() - 1,
                    });
                }
                Err(error) => reason = reason.or(Some((params.codec, error))),
            }
        }
        match reason {
            Some((codec, error)) => Err(AudioError::Unsupported(format!(
                "the audio codec of this file ({}) is not supported: {error}; convert the file to WAV or FLAC",
                codec_name(codec)
            ))),
            None if format.tracks().is_empty() => Err(AudioError::NoAudioTrack(String::new())),
            None => {
                let count = format.tracks().len();
                let tracks = if count == 1 { "track" } else { "tracks" };
                let text = format!(" that can be decoded ({count} {tracks} of video, text or unknown kind)");
                Err(AudioError::NoAudioTrack(text))
            }
        }
    }

    fn facts(&self, warnings: Vec<String>) -> SourceFacts {
        SourceFacts {
            codec: self.decoder.codec_info().short_name.to_string(),
            sample_rate: self.params.sample_rate.unwrap_or(0),
            channels: self.params.channels.as_ref().map_or(0, |c| c.count() as u16),
            frames: 0,
            warnings,
        }
    }

    fn is_mpeg(&self) -> bool {
        matches!(self.params.codec, codec::CODEC_ID_MP1 | codec::CODEC_ID_MP2 | codec::CODEC_ID_MP3)
    }

    /// Whether this is MPEG audio in no container.
    fn is_bare_mpeg(&self, format: &dyn FormatReader) -> bool {
        let id = format.format_info().format;
        self.is_mpeg() && [FORMAT_ID_MP1, FORMAT_ID_MP2, FORMAT_ID_MP3].contains(&id)
    }

    /// Whether the decoder itself drops the frames that a packet marks as padding.
    fn trims_itself(&self) -> bool {
        self.params.codec == codec::CODEC_ID_VORBIS
    }

    /// Whether packets without output are in order: the first of Vorbis, the pre-skip of Opus.
    fn may_be_silent(&self) -> bool {
        matches!(self.params.codec, codec::CODEC_ID_VORBIS | codec::CODEC_ID_OPUS)
    }

    /// A duration of this track in frames at `rate`.
    fn frames(&self, duration: Duration, rate: u32) -> u64 {
        let Some(base) = self.time_base else { return 0 };
        let ticks = u128::from(duration.get()) * u128::from(base.numer.get()) * u128::from(rate);
        let denom = u128::from(base.denom.get());
        u64::try_from((ticks + denom / 2) / denom).unwrap_or(u64::MAX)
    }
}

/// MPEG audio is trimmed by [`Trim`], since symphonia's own way cuts at a length that may be an estimate.
fn make_decoder(params: &AudioCodecParameters) -> Result<Box<dyn AudioDecoder>, Error> {
    let gapless = params.codec == codec::CODEC_ID_VORBIS;
    CODECS.make_audio_decoder(params, &AudioDecoderOptions::default().gapless(gapless))
}

/// Frames to drop at both ends of the stream, in ticks of `scale` a second.
#[derive(Clone, Copy)]
struct Trim {
    lead: u64,
    lead_scale: u32,
    /// Length of what lies between; the excess is dropped only if it is small.
    total: Option<u64>,
    total_scale: u32,
}

impl Trim {
    const NONE: Self = Self { lead: 0, lead_scale: 1, total: None, total_scale: 1 };

    fn for_track(path: &Path, format: &mut dyn FormatReader, chosen: &Chosen) -> Self {
        if format.format_info().format == FORMAT_ID_ISOMP4 {
            return Self::for_mp4(path, format, chosen);
        }
        match (chosen.is_mpeg(), chosen.stated, chosen.params.sample_rate) {
            (true, (Some(lead), total), Some(rate)) => {
                Self { lead: lead.into(), lead_scale: rate, total, total_scale: rate }
            }
            _ => Self::NONE,
        }
    }

    fn for_mp4(path: &Path, format: &mut dyn FormatReader, chosen: &Chosen) -> Self {
        // The Opus decoder drops the pre-skip, which an edit list would repeat.
        let lead_of = |lead| if chosen.params.codec == codec::CODEC_ID_OPUS { 0 } else { lead };
        let edits = mp4::edits(path, chosen.id).filter(|e| e.stretches == 1);
        if let Some(edits) = edits.filter(|e| e.start > 0) {
            return Self {
                lead: lead_of(edits.start),
                lead_scale: edits.media_scale,
                total: Some(edits.duration).filter(|&d| d > 0),
                total_scale: edits.movie_scale,
            };
        }
        match (gapless_tag(format), chosen.params.sample_rate) {
            (Some((lead, total)), Some(rate)) => {
                Self { lead: lead_of(lead), lead_scale: rate, total: Some(total), total_scale: rate }
            }
            _ => Self::NONE,
        }
    }

    fn lead_frames(&self, rate: u32) -> u64 {
        scaled(self.lead, rate, self.lead_scale)
    }

    fn total_frames(&self, rate: u32) -> Option<u64> {
        self.total.map(|total| scaled(total, rate, self.total_scale))
    }
}

/// `ticks` of `scale` a second in frames of `rate` a second, to the nearest.
fn scaled(ticks: u64, rate: u32, scale: u32) -> u64 {
    let frames = (u128::from(ticks) * u128::from(rate) + u128::from(scale) / 2) / u128::from(scale.max(1));
    u64::try_from(frames).unwrap_or(u64::MAX)
}

fn gapless_tag(format: &mut dyn FormatReader) -> Option<(u64, u64)> {
    let mut metadata = format.metadata();
    let tags = &metadata.skip_to_latest()?.media.tags;
    tags.iter().filter(|tag| tag.raw.key.ends_with("iTunSMPB")).find_map(|tag| match &tag.raw.value {
        RawValue::String(text) => mp4::gapless_tag(text),
        _ => None,
    })
}

/// What has been decoded so far and how it went.
struct Run {
    mixer: Mixer,
    out: Samples,
    facts: SourceFacts,
    trim: Trim,
    /// Present for streams without time stamps.
    gaps: Option<Gaps>,
    /// Time stamp of the first packet and the duration decoded since, both in seconds.
    clock: Option<(f64, f64)>,
    /// The present stretch of constant rate and channel count.
    stretch: Option<Stretch>,
    interleaved: Vec<f32>,
    mono: Vec<f32>,
    good: u64,
    damaged: u64,
    jumps: u64,
    changes: u64,
    last_error: String,
}

struct Stretch {
    rate: u32,
    channels: usize,
    resampler: Resampler,
    lead: u64,
    total: Option<u64>,
    /// The newest mono frames, kept back while they may turn out to be padding.
    held: Vec<f32>,
    /// Frames that the last good packet had.
    packet: usize,
}

impl Run {
    fn new(channels: Channels, facts: SourceFacts) -> Self {
        Self {
            mixer: Mixer::new(channels),
            out: Samples::default(),
            facts,
            trim: Trim::NONE,
            gaps: None,
            clock: None,
            jumps: 0,
            stretch: None,
            interleaved: Vec::new(),
            mono: Vec::new(),
            good: 0,
            damaged: 0,
            changes: 0,
            last_error: String::new(),
        }
    }

    fn warn(&mut self, text: String) {
        self.facts.warnings.push(text);
    }

    /// Decodes one packet; a damaged one becomes silence of its duration.
    fn packet(&mut self, chosen: &mut Chosen, packet: &Packet) -> Result<(), AudioError> {
        self.fill_gap(&packet.data)?;
        self.fill_jump(chosen, packet)?;
        self.mono.clear();
        if let Err(error) = self.decode(chosen, packet)? {
            self.damaged += 1;
            self.last_error = error.to_string();
            let Some(stretch) = &self.stretch else { return Ok(()) };
            let stated = chosen.frames(packet.block_dur(), stretch.rate);
            let plausible = (1..=LONGEST_GAP * u64::from(stretch.rate)).contains(&stated);
            self.mono.resize(if plausible { stated as usize } else { stretch.packet }, 0.0);
        }
        let Some(stretch) = &mut self.stretch else { return Ok(()) };
        if let Some((_, decoded)) = &mut self.clock {
            *decoded += self.mono.len() as f64 / f64::from(stretch.rate);
        }
        stretch.deliver(&mut self.mono, &mut self.out)
    }

    /// Puts silence where the time stamps run ahead, as after a lost Ogg page or a pause.
    fn fill_jump(&mut self, chosen: &Chosen, packet: &Packet) -> Result<(), AudioError> {
        let Some(base) = chosen.time_base else { return Ok(()) };
        let now = packet.pts.get() as f64 * f64::from(base.numer.get()) / f64::from(base.denom.get());
        let (first, decoded) = self.clock.get_or_insert((now, 0.0));
        let ahead = now - *first - *decoded;
        let Some(stretch) = self.stretch.as_mut().filter(|_| JUMP.contains(&ahead)) else { return Ok(()) };
        self.jumps += 1;
        *decoded += ahead;
        self.mono.clear();
        self.mono.resize((ahead * f64::from(stretch.rate)).round() as usize, 0.0);
        stretch.deliver(&mut self.mono, &mut self.out)
    }

    /// Puts silence in the place of packets that the demultiplexer skipped before `data`.
    fn fill_gap(&mut self, data: &[u8]) -> Result<(), AudioError> {
        let skipped = self.gaps.as_mut().map_or(0, |gaps| gaps.skipped(data));
        let Some(stretch) = self.stretch.as_mut().filter(|_| skipped > 0) else { return Ok(()) };
        self.damaged += skipped;
        let most = LONGEST_GAP * u64::from(stretch.rate);
        self.mono.clear();
        self.mono.resize(skipped.saturating_mul(stretch.packet as u64).min(most) as usize, 0.0);
        stretch.deliver(&mut self.mono, &mut self.out)
    }

    /// Decodes `packet` into the mono buffer. The inner error is one of this packet only.
    fn decode(&mut self, chosen: &mut Chosen, packet: &Packet) -> Result<Result<(), Error>, AudioError> {
        let mut attempt = chosen.decoder.decode(packet).map(|_| ());
        if attempt.is_err() && chosen.is_mpeg() {
            // Symphonia's MPEG decoder is tied to the first rate and channel count it meets.
            if let Ok(mut fresh) = make_decoder(&chosen.params) {
                attempt = fresh.decode(packet).map(|_| ()).inspect(|()| {
                    chosen.decoder = fresh;
                });
            }
        }
        if let Err(error) = attempt {
            return Ok(Err(error));
        }
        let buffer = chosen.decoder.last_decoded();
        let (rate, channels, frames) =
            (buffer.spec().rate(), buffer.spec().channels().count(), buffer.frames());
        if frames == 0 {
            let expected = packet.block_dur().get() > 0 && !chosen.may_be_silent();
            let nothing = Error::DecodeError("the decoder gave no samples");
            return Ok(if expected { Err(nothing) } else { Ok(()) });
        }
        self.prepare(rate, channels)?;
        let (start, end) = if chosen.trims_itself() || chosen.is_mpeg() {
            (0, frames)
        } else {
            let start = chosen.frames(packet.trim_start, rate).min(frames as u64) as usize;
            let end = chosen.frames(packet.trim_end, rate).min((frames - start) as u64) as usize;
            (start, frames - end)
        };
        buffer.copy_to_vec_interleaved(&mut self.interleaved);
        let wanted = &self.interleaved[start * channels..end * channels];
        self.mixer.mix(wanted, channels, &mut self.mono)?;
        self.good += 1;
        if let Some(stretch) = &mut self.stretch {
            stretch.packet = frames;
        }
        Ok(Ok(()))
    }

    /// Makes sure that the present stretch has this rate and channel count.
    fn prepare(&mut self, rate: u32, channels: usize) -> Result<(), AudioError> {
        if self.stretch.as_ref().is_some_and(|s| s.rate == rate && s.channels == channels) {
            return Ok(());
        }
        riff::check_rate(rate)?;
        if channels == 0 || channels > MAX_CHANNELS {
            let limit = format!("1 to {MAX_CHANNELS}");
            return Err(AudioError::Limit { what: "the number of channels", value: channels as u64, limit });
        }
        let trim = if self.stretch.is_some() { Trim::NONE } else { self.trim };
        match self.stretch.take() {
            Some(old) => {
                self.changes += 1;
                self.facts.frames += old.close(&mut self.out)?;
            }
            None => (self.facts.sample_rate, self.facts.channels) = (rate, channels as u16),
        }
        self.stretch = Some(Stretch {
            rate,
            channels,
            resampler: Resampler::new(rate)?,
            lead: trim.lead_frames(rate),
            total: trim.total_frames(rate),
            held: Vec::new(),
            packet: 0,
        });
        Ok(())
    }

    /// Flushes everything and reports. `empty_is_fine` tells that a stream without samples is no error.
    fn finish(mut self, empty_is_fine: bool) -> Result<Waveform, AudioError> {
        if let Some(stretch) = self.stretch.take() {
            self.facts.frames += stretch.close(&mut self.out)?;
        }
        if self.good == 0 && (self.damaged > 0 || !empty_is_fine) {
            let cause = if self.damaged > 0 { &self.last_error } else { "it ends before the first sound" };
            return Err(AudioError::Damaged(format!("nothing in it can be decoded ({cause})")));
        }
        if self.damaged > 0 {
            let (bad, all) = (self.damaged, self.damaged + self.good);
            self.warn(format!("{bad} of {all} packets were damaged and became silence"));
        }
        if self.jumps > 0 {
            self.warn(format!("{} stretches were missing and became silence", self.jumps));
        }
        if self.changes > 0 {
            self.warn(format!(
                "sample rate or channel count changed {} time(s) within the file",
                self.changes
            ));
        }
        let repairs = self.mixer.warnings();
        self.facts.warnings.extend(repairs);
        Ok(Waveform { samples: self.out.into_vec(), source: self.facts })
    }
}

impl Stretch {
    /// Passes `mono` on, less the lead, holding back what may be padding.
    fn deliver(&mut self, mono: &mut Vec<f32>, out: &mut Samples) -> Result<(), AudioError> {
        let dropped = usize::try_from(self.lead).unwrap_or(usize::MAX).min(mono.len());
        self.lead -= dropped as u64;
        mono.drain(..dropped);
        if self.total.is_none() {
            return self.resampler.push(mono, out);
        }
        self.held.append(mono);
        if self.held.len() > 2 * LONGEST_TAIL {
            let ready = self.held.len() - LONGEST_TAIL;
            self.resampler.push(&self.held[..ready], out)?;
            self.held.drain(..ready);
        }
        Ok(())
    }

    /// Trims the end and flushes; returns the number of frames in this stretch.
    fn close(mut self, out: &mut Samples) -> Result<u64, AudioError> {
        let frames = self.resampler.frames_in() + self.held.len() as u64;
        let excess = self.total.map_or(0, |total| frames.saturating_sub(total));
        if excess <= self.held.len().min(LONGEST_TAIL) as u64 {
            self.held.truncate(self.held.len() - excess as usize);
        }
        self.resampler.push(&self.held, out)?;
        let frames = self.resampler.frames_in();
        self.resampler.finish(out)?;
        Ok(frames)
    }
}

/// A codec's name, or its number if it has none here.
fn codec_name(id: AudioCodecId) -> String {
    let name = match id {
        codec::CODEC_ID_AC3 => "AC-3",
        codec::CODEC_ID_EAC3 => "E-AC-3",
        codec::CODEC_ID_DCA => "DTS",
        codec::CODEC_ID_WMA => "WMA",
        codec::CODEC_ID_SPEEX => "Speex",
        codec::CODEC_ID_WAVPACK => "WavPack",
        codec::CODEC_ID_TRUEHD => "TrueHD",
        codec::CODEC_ID_TTA => "TTA",
        codec::CODEC_ID_AAC => "AAC",
        codec::CODEC_ID_OPUS => "Opus",
        other => return other.to_string(),
    };
    name.to_string()
}

/// Why the container could not be opened, in plain words.
fn refusal(error: Error, head: &[u8]) -> AudioError {
    match error {
        Error::Unsupported(text) if text.contains("moov") => AudioError::Damaged(
            "its index (moov) is missing, so the recording was not finished or not copied completely".into(),
        ),
        Error::Unsupported(text) if text.contains("no suitable format") => source::name_unknown(head),
        Error::Unsupported(text) => AudioError::Unsupported(format!("not supported: {text}")),
        Error::IoError(e) if e.kind() == std::io::ErrorKind::UnexpectedEof => {
            AudioError::Damaged("it ends within its header".into())
        }
        Error::IoError(e) => AudioError::Io(e),
        other => AudioError::Damaged(other.to_string()),
    }
}
