//! The edited turns in the form that results are written in.

use std::collections::HashMap;

use super::Document;
use super::edit::Edit;
use super::state::{SpeakerId, Turn, Voice};
use crate::pipeline::{Diarization, Speaker};
use crate::timeline::Segment;
use crate::timeline::segment::exclusive;

/// A result that edits were made to.
struct Base<'a> {
    diarization: &'a Diarization,
    /// Its speakers.
    ids: Vec<SpeakerId>,
    /// The edits.
    since: Vec<&'a Edit>,
}

impl Document {
    /// The present state as a result. Without any edit it is the original itself.
    ///
    /// Speakers are called by their names. Overlapping turns of one speaker are joined. As long as speakers were only
    /// renamed and merged, the exclusive turns are those of the pipeline; after other edits they are made from the
    /// edited turns: who began first keeps the time. A speaker keeps the embedding that the pipeline gave it; one that
    /// came by an edit has zeros.
    pub fn diarization(&self) -> Diarization {
        let base = self.base();
        let plain = base.since.is_empty() && self.state.voices.iter().all(|voice| voice.name.is_none());
        if plain {
            return base.diarization.clone();
        }
        let place: HashMap<SpeakerId, usize> =
            base.ids.iter().enumerate().map(|(index, &id)| (id, index)).collect();
        let mut voices: Vec<&Voice> = self.state.voices.iter().collect();
        voices.sort_by_key(|voice| place.get(&voice.id).copied().unwrap_or(usize::MAX));
        let index: HashMap<SpeakerId, usize> =
            voices.iter().enumerate().map(|(index, voice)| (voice.id, index)).collect();

        let segments = segments(&self.state.turns, &index);
        let exclusive = renamed(&base, &index).unwrap_or_else(|| exclusive(&segments));
        let dim = base.diarization.speakers.first().map_or(0, |speaker| speaker.embedding.len());
        let embedding = |voice: &Voice| match place.get(&voice.id) {
            Some(&index) => base.diarization.speakers[index].embedding.clone(),
            None => vec![0.0; dim],
        };
        let speaker =
            |voice: &&Voice| Speaker { label: voice.display().to_owned(), embedding: embedding(voice) };
        Diarization {
            segments,
            exclusive,
            speakers: voices.iter().map(speaker).collect(),
            ..base.diarization.clone()
        }
    }

    /// The last result that was put in place, or the original.
    fn base(&self) -> Base<'_> {
        let done = &self.log[..self.done];
        for (index, entry) in done.iter().enumerate().rev() {
            if let (Edit::Replace(diarization), Some(ids)) = (&entry.edit, &entry.change.base) {
                let since = done[index + 1..].iter().map(|entry| &entry.edit).collect();
                return Base { diarization, ids: ids.clone(), since };
            }
        }
        let diarization = &self.original.diarization;
        let ids = (0..diarization.speakers.len() as u32).map(SpeakerId).collect();
        Base { diarization, ids, since: done.iter().map(|entry| &entry.edit).collect() }
    }
}

/// The turns with overlapping ones of the same speaker joined.
fn segments(turns: &[Turn], index: &HashMap<SpeakerId, usize>) -> Vec<Segment> {
    let mut last: Vec<Option<usize>> = vec![None; index.len()];
    let mut segments: Vec<Segment> = Vec::with_capacity(turns.len());
    for turn in turns {
        let speaker = index[&turn.speaker];
        match last[speaker] {
            Some(i) if turn.start < segments[i].end => segments[i].end = segments[i].end.max(turn.end),
            _ => {
                last[speaker] = Some(segments.len());
                segments.push(Segment { start: turn.start, end: turn.end, speaker });
            }
        }
    }
    segments.sort_by(|a, b| {
        a.start.total_cmp(&b.start).then(a.end.total_cmp(&b.end)).then(a.speaker.cmp(&b.speaker))
    });
    segments
}

/// The exclusive turns of the base under the present speakers, if all edits since renamed or merged.
fn renamed(base: &Base, index: &HashMap<SpeakerId, usize>) -> Option<Vec<Segment>> {
    let mut now = base.ids.clone();
    for edit in &base.since {
        match edit {
            Edit::Rename { .. } => {}
            Edit::Merge { from, into } => {
                now.iter_mut().filter(|id| *id == from).for_each(|id| *id = *into);
            }
            _ => return None,
        }
    }
    let segment = |s: &Segment| Some(Segment { speaker: *index.get(&now[s.speaker])?, ..*s });
    Some(base.diarization.exclusive.iter().filter_map(segment).collect())
}
