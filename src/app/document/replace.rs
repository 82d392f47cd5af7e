//! Another result in the place of a document's turns: whether it is sound, and who of it is who.

use super::edit::{EditError, check_name, taken};
use super::listen::{Span, shared, union};
use super::state::{self, Change, Fresh, SpeakerId, State, Turn, Voice};
use crate::audio::MAX_HOURS;
use crate::pipeline::Diarization;
use crate::timeline::Segment;
use crate::timeline::rttm;

/// Most speakers of a result that is read or taken over.
pub const MAX_SPEAKERS: usize = 1000;

/// What is wrong with a result, if anything.
pub(super) fn flaw(diarization: &Diarization) -> Option<String> {
    let Diarization { segments, exclusive, speakers, duration, settings, timings, .. } = diarization;
    if !(0.0..=MAX_HOURS as f64 * 3600.0 + 1.0).contains(duration) {
        return Some(format!("a duration of {duration} s"));
    }
    if speakers.len() > MAX_SPEAKERS {
        return Some(format!("more than {MAX_SPEAKERS} speakers"));
    }
    let mut labels: Vec<_> = speakers.iter().map(|speaker| rttm::field(&speaker.label)).collect();
    labels.sort_unstable();
    let fit = |label: &str| !label.is_empty() && label.trim() == label && check_name(label).is_ok();
    if labels.windows(2).any(|pair| pair[0] == pair[1]) || !speakers.iter().all(|s| fit(&s.label)) {
        return Some("the labels of the speakers are not distinct names".into());
    }
    if speakers.iter().flat_map(|speaker| &speaker.embedding).any(|value| !value.is_finite()) {
        return Some("an embedding is not finite".into());
    }
    let sound = |s: &Segment| {
        s.start >= 0.0 && s.end > s.start && s.end <= duration + 1e-6 && s.speaker < speakers.len()
    };
    for turns in [segments, exclusive] {
        if !turns.iter().all(sound) || !turns.is_sorted_by(|a, b| a.start <= b.start) {
            return Some("a turn is outside the recording, out of order or of an unknown speaker".into());
        }
    }
    let step = settings.step.is_finite() && settings.step > 0.0;
    if !step || settings.speakers.range().is_err() || timings.iter().any(|(_, time)| !time.is_finite()) {
        return Some("impossible settings".into());
    }
    None
}

/// Puts `diarization` in the place of all turns of `state`.
pub(super) fn plan(
    state: &State,
    diarization: &Diarization,
    fresh: &mut Fresh,
    duration: f64,
) -> Result<Change, EditError> {
    if let Some(flaw) = flaw(diarization) {
        return Err(EditError::Unfit(flaw));
    }
    if (diarization.duration - duration).abs() > 1e-6 {
        let reason = format!("it is of a recording of {} s, not of {duration} s", diarization.duration);
        return Err(EditError::Unfit(reason));
    }
    let known = identify(state, diarization);
    let ids: Vec<SpeakerId> = known.iter().map(|id| id.unwrap_or_else(|| fresh.speaker())).collect();
    let voice = |(speaker, &id): (&crate::pipeline::Speaker, &SpeakerId)| Voice {
        id,
        label: speaker.label.clone(),
        name: None,
    };
    let mut voices: Vec<Voice> = diarization.speakers.iter().zip(&ids).map(voice).collect();
    for index in 0..voices.len() {
        let name = state.voice(voices[index].id).and_then(|voice| voice.name.clone());
        let free = |name: &String| taken(&voices, name, voices[index].id).is_none();
        let name = name.filter(free).filter(|name| *name != voices[index].label);
        voices[index].name = name;
    }
    let turns = state::turns(&diarization.segments, &ids, fresh);
    let mut change = Change::new(state, state.turns.clone(), turns, voices);
    change.base = Some(ids);
    Ok(change)
}

/// Which of the present speakers the speakers of `diarization` are: one with whom a speaker shares at least half of
/// its time, those who share most first.
fn identify(state: &State, diarization: &Diarization) -> Vec<Option<SpeakerId>> {
    let spans = |turns: &mut dyn Iterator<Item = Span>| union(turns);
    let own = |t: &Turn| (t.start, t.end);
    let present: Vec<Vec<Span>> = state
        .voices
        .iter()
        .map(|voice| spans(&mut state.turns.iter().filter(|t| t.speaker == voice.id).map(own)))
        .collect();
    let mut pairs: Vec<(f64, usize, usize)> = Vec::new();
    for speaker in 0..diarization.speakers.len() {
        let turns = diarization.segments.iter().filter(|s| s.speaker == speaker);
        let new = spans(&mut turns.map(|s| (s.start, s.end)));
        let half = 0.5 * new.iter().map(|(start, end)| end - start).sum::<f64>();
        for (index, old) in present.iter().enumerate() {
            let time = shared(&new, old);
            if time > 0.0 && time >= half {
                pairs.push((time, speaker, index));
            }
        }
    }
    pairs.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)).then(a.2.cmp(&b.2)));
    let mut found = vec![None; diarization.speakers.len()];
    let mut free = vec![true; present.len()];
    for (_, speaker, index) in pairs {
        if found[speaker].is_none() && free[index] {
            found[speaker] = Some(state.voices[index].id);
            free[index] = false;
        }
    }
    found
}
