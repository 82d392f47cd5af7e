//! Recordings with a channel for each speaker, such as calls.

use std::ops::ControlFlow;
use std::path::Path;

use super::{Decode, Diarize};
use crate::audio::{AudioError, Channels, Waveform};
use crate::clustering::SpeakerBounds;
use crate::pipeline::{Diarization, Monitor, PipelineError, Settings, Speaker, Stage, Voices};
use crate::timeline::Segment;
use crate::timeline::segment::exclusive;

/// Most channels that may be speakers: their samples are in memory together.
const MOST: u16 = 8;

/// Decodes every channel of the recording at `path` by itself.
pub(super) fn decode(
    path: &Path,
    decoder: &dyn Decode,
    progress: &mut dyn FnMut(f32) -> ControlFlow<()>,
) -> Result<Vec<Waveform>, AudioError> {
    let first = decoder.decode(path, Channels::One(0), &mut |done| progress(0.5 * done))?;
    let count = first.source.channels;
    if !(2..=MOST).contains(&count) {
        return Err(AudioError::Limit {
            what: "the number of channels, each of which is to be a speaker,",
            value: count.into(),
            limit: format!("range of 2 to {MOST}"),
        });
    }
    let mut channels = vec![first];
    for channel in 1..count {
        let share = 0.5 / f32::from(count - 1);
        let begin = 0.5 + share * f32::from(channel - 1);
        channels
            .push(decoder.decode(path, Channels::One(channel), &mut |done| progress(begin + share * done))?);
    }
    Ok(channels)
}

/// Finds when somebody speaks in each channel. The speaker of channel `c` is `CHANNEL_{c + 1}`; a channel without speech
/// has none.
pub(super) fn diarize(
    channels: &[Waveform],
    engine: &dyn Diarize,
    settings: &Settings,
    monitor: &dyn Monitor,
) -> Result<Diarization, PipelineError> {
    let speakers = SpeakerBounds { num: Some(1), min: None, max: None };
    let one = Settings { speakers, voices: Voices::Mixed, ..*settings };
    let mut parts = Vec::with_capacity(channels.len());
    for (index, channel) in channels.iter().enumerate() {
        let part = Part { monitor, index, count: channels.len() };
        parts.push(engine.diarize(channel, &one, &part)?);
    }
    let mut joined = Diarization { settings: *settings, ..parts[0].clone() };
    joined.segments.clear();
    joined.speakers.clear();
    joined.timings.clear();
    joined.warnings.clear();
    for (index, part) in parts.into_iter().enumerate() {
        for (stage, seconds) in part.timings {
            match joined.timings.iter_mut().find(|(known, _)| *known == stage) {
                Some((_, sum)) => *sum += seconds,
                None => joined.timings.push((stage, seconds)),
            }
        }
        joined.duration = joined.duration.max(part.duration);
        if let Some(speaker) = part.speakers.into_iter().next() {
            let number = joined.speakers.len();
            joined.speakers.push(Speaker { label: format!("CHANNEL_{}", index + 1), ..speaker });
            joined.segments.extend(part.segments.iter().map(|turn| Segment { speaker: number, ..*turn }));
        }
    }
    if joined.speakers.is_empty() {
        joined.warnings.push("No speech was found.".into());
    }
    joined.segments.sort_by(|a, b| {
        a.start.total_cmp(&b.start).then(a.end.total_cmp(&b.end)).then(a.speaker.cmp(&b.speaker))
    });
    joined.exclusive = exclusive(&joined.segments);
    Ok(joined)
}

/// Progress of one channel as a part of that of all.
struct Part<'a> {
    monitor: &'a dyn Monitor,
    index: usize,
    count: usize,
}

impl Monitor for Part<'_> {
    fn progress(&self, stage: Stage, done: f32) {
        self.monitor.progress(stage, (self.index as f32 + done) / self.count as f32);
    }
    fn cancelled(&self) -> bool {
        self.monitor.cancelled()
    }
}
