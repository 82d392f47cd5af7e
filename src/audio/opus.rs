//! The Opus codec for symphonia's registry, which has none of its own.
//!
//! Depends on symphonia and on rusty-opus (pure Rust). The pre-skip stated in the stream's own header is
//! removed here, so that it is removed alike for Ogg, WebM, Matroska, MP4 and CAF.

use symphonia::core::audio::{
    AsGenericAudioBufferRef as _, AudioBuffer, AudioMut as _, AudioSpec, Channels, GenericAudioBufferRef,
};
use symphonia::core::codecs::CodecInfo;
use symphonia::core::codecs::audio::well_known::CODEC_ID_OPUS;
use symphonia::core::codecs::audio::{
    AudioCodecParameters, AudioDecoder, AudioDecoderOptions, FinalizeResult,
};
use symphonia::core::codecs::registry::{RegisterableAudioDecoder, SupportedAudioCodec};
use symphonia::core::errors::{Error, Result};
use symphonia::core::packet::PacketRef;

/// Opus always decodes to this rate here, in Hz.
const RATE: u32 = 48_000;

/// Frames in the longest packet: 120 ms.
const LONGEST: usize = 5760;

static CODECS: [SupportedAudioCodec; 1] = [SupportedAudioCodec {
    id: CODEC_ID_OPUS,
    info: CodecInfo { short_name: "opus", long_name: "Opus", profiles: &[] },
}];

/// Decodes mono and stereo Opus packets.
pub struct OpusDecoder {
    params: AudioCodecParameters,
    inner: rusty_opus::OpusDecoder,
    head: Head,
    /// Frames still to drop at the start.
    skip: usize,
    pcm: Vec<f32>,
    buffer: AudioBuffer<f32>,
}

/// The parts of the identification header (RFC 7845, section 5.1) that matter for decoding.
#[derive(Clone, Copy)]
struct Head {
    channels: usize,
    pre_skip: usize,
    gain: f32,
}

impl Head {
    /// Reads `OpusHead`; without one, the channel count comes from the container.
    fn read(params: &AudioCodecParameters) -> Result<Self> {
        let channels = params.channels.as_ref().map_or(1, |c| c.count());
        let plain = Self { channels, pre_skip: 0, gain: 1.0 };
        let Some(data) = params.extra_data.as_deref() else { return Ok(plain) };
        if data.len() < 19 || !data.starts_with(b"OpusHead") {
            return Ok(plain);
        }
        // MP4 uses version 0 and the other byte order.
        let word = |at: usize| match data[8] {
            0 => u16::from_be_bytes([data[at], data[at + 1]]),
            _ => u16::from_le_bytes([data[at], data[at + 1]]),
        };
        let (channels, pre_skip) = (usize::from(data[9]), usize::from(word(10)));
        let gain = f32::from(word(16).cast_signed()) / 256.0;
        Ok(Self { channels, pre_skip, gain: 10f32.powf(gain / 20.0) })
    }
}

impl OpusDecoder {
    fn decode_packet(&mut self, packet: &[u8]) -> Result<()> {
        self.buffer.clear();
        // An empty packet would be taken as a request to invent 120 ms of sound.
        if packet.is_empty() {
            return Err(Error::DecodeError("opus: empty packet"));
        }
        let decoded = self.inner.decode(packet, LONGEST, &mut self.pcm);
        let frames = decoded.map_err(|_| Error::DecodeError("opus: damaged packet"))?;
        let channels = self.head.channels;
        let pcm = &mut self.pcm[..frames * channels];
        if self.head.gain != 1.0 {
            pcm.iter_mut().for_each(|x| *x *= self.head.gain);
        }
        let skipped = self.skip.min(frames);
        self.skip -= skipped;
        self.buffer.resize_with_silence(frames - skipped);
        self.buffer.copy_from_slice_interleaved(&&pcm[skipped * channels..]);
        Ok(())
    }
}

impl AudioDecoder for OpusDecoder {
    fn reset(&mut self) {
        if let Ok(fresh) = decoder(self.head.channels) {
            self.inner = fresh;
        }
    }

    fn codec_info(&self) -> &CodecInfo {
        &CODECS[0].info
    }

    fn codec_params(&self) -> &AudioCodecParameters {
        &self.params
    }

    fn decode_ref(&mut self, packet: &PacketRef<'_>) -> Result<GenericAudioBufferRef<'_>> {
        self.decode_packet(packet.data)?;
        Ok(self.buffer.as_generic_audio_buffer_ref())
    }

    fn finalize(&mut self) -> FinalizeResult {
        FinalizeResult::default()
    }

    fn last_decoded(&self) -> GenericAudioBufferRef<'_> {
        self.buffer.as_generic_audio_buffer_ref()
    }
}

impl RegisterableAudioDecoder for OpusDecoder {
    fn try_registry_new(
        params: &AudioCodecParameters,
        _: &AudioDecoderOptions,
    ) -> Result<Box<dyn AudioDecoder>> {
        let head = Head::read(params)?;
        let channels = Channels::Discrete(head.channels as u16);
        Ok(Box::new(Self {
            params: params.clone(),
            inner: decoder(head.channels)?,
            skip: head.pre_skip,
            pcm: vec![0.0; LONGEST * head.channels],
            buffer: AudioBuffer::new(AudioSpec::new(RATE, channels), LONGEST),
            head,
        }))
    }

    fn supported_codecs() -> &'static [SupportedAudioCodec] {
        &CODECS
    }
}

fn decoder(channels: usize) -> Result<rusty_opus::OpusDecoder> {
    if channels > 2 {
        return Err(Error::Unsupported("Opus with more than two channels"));
    }
    rusty_opus::OpusDecoder::new(RATE as i32, channels)
        .map_err(|_| Error::Unsupported("Opus without channels"))
}
