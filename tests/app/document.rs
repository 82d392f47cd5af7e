//! Documents: identities, undoing, and the results that they give. The other `document_` modules use its recording.

use speakrs_app::app::document::{Document, Edit, EditError, Kind, SpeakerId, TurnId};
use speakrs_app::app::export::{FORMATS, Render, Report};
use speakrs_app::audio::SourceFacts;
use speakrs_app::backend::{BackendInfo, Precision};
use speakrs_app::clustering::SpeakerBounds;
use speakrs_app::pipeline::{Diarization, Mode, Settings, Speaker, Stage, Voices};
use speakrs_app::timeline::Segment;
use speakrs_app::timeline::segment::{exclusive, label};

pub const A: SpeakerId = SpeakerId(0);
pub const B: SpeakerId = SpeakerId(1);
pub const C: SpeakerId = SpeakerId(2);
pub const NEW: SpeakerId = SpeakerId(3);

/// A result for a recording of 60 s with the given turns.
pub fn result(turns: &[(f64, f64, usize)]) -> Diarization {
    let segments: Vec<Segment> =
        turns.iter().map(|&(start, end, speaker)| Segment { start, end, speaker }).collect();
    let count = turns.iter().map(|turn| turn.2 + 1).max().unwrap_or(0);
    let speaker = |n: usize| Speaker { label: label(n), embedding: vec![n as f32 + 0.1, -0.25] };
    Diarization {
        // The pipeline's own exclusive turns differ from those that are made after edits.
        exclusive: exclusive(&segments).into_iter().filter(|s| s.end - s.start > 1.5).collect(),
        segments,
        speakers: (0..count).map(speaker).collect(),
        duration: 60.0,
        settings: Settings {
            mode: Mode::Fast,
            step: 1.0,
            speakers: SpeakerBounds::default(),
            voices: Voices::Mixed,
        },
        model: "bundled".into(),
        backend: BackendInfo { device: "cpu".into(), name: "Test".into(), precision: Precision::Fp32 },
        warnings: vec!["It hums.".into()],
        timings: vec![(Stage::Decode, 0.1 + 0.2)],
    }
}

/// Three speakers: A alone, A and B at once, B alone, C, A.
pub const TURNS: [(f64, f64, usize); 5] =
    [(1.0, 9.7, 0), (8.0, 12.1, 1), (15.0, 16.0, 1), (20.0, 30.0, 2), (31.0, 32.0, 0)];

pub fn source() -> SourceFacts {
    SourceFacts { codec: "mp3".into(), sample_rate: 44_100, channels: 2, frames: 9, warnings: Vec::new() }
}

pub fn document() -> Document {
    Document::new(result(&TURNS), source())
}

/// The document after `edits`, all of which must be possible.
pub fn edited(edits: impl IntoIterator<Item = Edit>) -> Document {
    let mut document = document();
    edits.into_iter().for_each(|edit| document.apply(edit).unwrap());
    document
}

pub fn rename(speaker: SpeakerId, name: &str) -> Edit {
    Edit::Rename { speaker, name: name.into() }
}

pub fn ids<const N: usize>(ids: [u64; N]) -> Vec<TurnId> {
    ids.map(TurnId).to_vec()
}

/// Start, end and speaker of every turn.
pub fn plain(document: &Document) -> Vec<(f64, f64, u32)> {
    document.turns().iter().map(|turn| (turn.start, turn.end, turn.speaker.0)).collect()
}

/// What the speakers are called.
pub fn names(document: &Document) -> Vec<(u32, &str)> {
    document.speakers().iter().map(|voice| (voice.id.0, voice.display())).collect()
}

/// Turns of a result under the names of their speakers.
fn labelled<'a>(result: &'a Diarization, segments: &[Segment]) -> Vec<(f64, f64, &'a str)> {
    segments.iter().map(|s| (s.start, s.end, result.speakers[s.speaker].label.as_str())).collect()
}

fn rendered(diarization: &Diarization) -> Vec<Vec<u8>> {
    let report = Report { path: "a.mp3".as_ref(), file: "a.mp3", uri: "a", diarization, source: &source() };
    let bytes = |render: &Render| match render {
        Render::File(render) => Some(render(&report)),
        Render::Folder { .. } => None,
    };
    FORMATS.iter().filter_map(|format| bytes(&format.render)).collect()
}

#[test]
fn without_edits_the_result_is_the_original() {
    let document = document();
    assert_eq!(document.diarization(), result(&TURNS));
    assert_eq!(rendered(&document.diarization()), rendered(&result(&TURNS)));
    assert!(!document.edited() && document.can_undo().is_none() && document.can_redo().is_none());
    assert_eq!(names(&document), [(0, "SPEAKER_00"), (1, "SPEAKER_01"), (2, "SPEAKER_02")]);
    assert_eq!(plain(&document)[1], (8.0, 12.1, 1));
    assert_eq!((document.duration(), document.source()), (60.0, &source()));
}

#[test]
fn a_result_without_speech_can_be_added_to() {
    let mut document = Document::new(result(&[]), source());
    assert!(document.speakers().is_empty() && document.turns().is_empty());
    document.apply(Edit::Add { start: 1.0, end: 2.0, speaker: None }).unwrap();
    let result = document.diarization();
    assert_eq!(labelled(&result, &result.segments), [(1.0, 2.0, "SPEAKER_00")]);
    assert!(result.speakers[0].embedding.is_empty());
}

#[test]
fn undo_and_redo_step_through_the_log() {
    let mut document = edited([rename(A, "Anna"), Edit::Merge { from: B, into: A }]);
    let after = (plain(&document), document.speakers().to_vec());
    assert_eq!((document.can_undo(), document.can_redo()), (Some(Kind::Merge), None));
    assert_eq!(document.undo(), Some(Kind::Merge));
    assert_eq!(names(&document), [(0, "Anna"), (1, "SPEAKER_01"), (2, "SPEAKER_02")]);
    assert_eq!((document.can_undo(), document.can_redo()), (Some(Kind::Rename), Some(Kind::Merge)));
    assert_eq!(document.undo(), Some(Kind::Rename));
    assert_eq!(document.undo(), None);
    assert!(!document.edited());
    assert_eq!(document.diarization(), result(&TURNS));
    assert_eq!(
        (document.redo(), document.redo(), document.redo()),
        (Some(Kind::Rename), Some(Kind::Merge), None)
    );
    assert_eq!((plain(&document), document.speakers().to_vec()), after);
}

#[test]
fn a_new_edit_drops_the_undone_ones_and_gives_new_identities() {
    let mut document = edited([Edit::Cut { turn: TurnId(3), at: 25.0 }]);
    let second = document.turns()[4].id;
    assert_eq!(second, TurnId(5));
    document.undo();
    document.apply(Edit::Cut { turn: TurnId(3), at: 26.0 }).unwrap();
    assert_eq!(document.can_redo(), None);
    assert!(document.turn(second).is_none(), "what was pointed at is not something else now");
    assert_eq!(document.turns()[4].id, TurnId(6));
}

#[test]
fn the_revision_grows_with_every_change_and_only_then() {
    let mut document = document();
    let mut last = document.revision();
    let mut grown = |document: &Document| {
        let grown = document.revision() > last;
        last = document.revision();
        grown
    };
    document.apply(rename(A, "Anna")).unwrap();
    assert!(grown(&document));
    document.apply(rename(A, " Anna ")).unwrap();
    document.apply(Edit::Move { turns: ids([0]), speaker: A }).unwrap();
    document.apply(Edit::Bounds { turn: TurnId(0), start: 1.0, end: 9.7 }).unwrap();
    document.apply(rename(C, "Anna")).unwrap_err();
    assert!(!grown(&document));
    document.undo();
    assert!(grown(&document));
    document.undo();
    assert!(!grown(&document) && document.can_redo() == Some(Kind::Rename));
    document.redo();
    assert!(grown(&document));
}

#[test]
fn names_are_the_labels_of_results_and_pauses_stay_the_pipelines() {
    let document = edited([rename(B, "Björn B"), rename(A, "Anna")]);
    let result = document.diarization();
    let before = super::document::result(&TURNS);
    assert_eq!(labelled(&result, &result.segments)[1], (8.0, 12.1, "Björn B"));
    assert_eq!(labelled(&result, &result.segments)[3], (20.0, 30.0, "SPEAKER_02"));
    assert_eq!(result.exclusive, before.exclusive);
    assert_eq!(result.speakers[1].embedding, before.speakers[1].embedding);
    assert_eq!((result.warnings, result.timings), (before.warnings, before.timings));
}

#[test]
fn merged_turns_are_joined_in_results_but_not_in_the_document() {
    let document = edited([Edit::Merge { from: A, into: B }]);
    assert_eq!(plain(&document)[..2], [(1.0, 9.7, 1), (8.0, 12.1, 1)]);
    let result = document.diarization();
    assert_eq!(
        labelled(&result, &result.segments),
        [
            (1.0, 12.1, "SPEAKER_01"),
            (15.0, 16.0, "SPEAKER_01"),
            (20.0, 30.0, "SPEAKER_02"),
            (31.0, 32.0, "SPEAKER_01")
        ]
    );
    // The pipeline's, renamed.
    assert_eq!(
        labelled(&result, &result.exclusive),
        [(1.0, 9.7, "SPEAKER_01"), (9.7, 12.1, "SPEAKER_01"), (20.0, 30.0, "SPEAKER_02")]
    );
    assert_eq!(result.speakers.len(), 2);
}

#[test]
fn turns_that_a_cut_made_stay_apart_in_results() {
    let result = edited([Edit::Cut { turn: TurnId(3), at: 25.0 }]).diarization();
    assert_eq!(
        labelled(&result, &result.segments)[3..5],
        [(20.0, 25.0, "SPEAKER_02"), (25.0, 30.0, "SPEAKER_02")]
    );
}

#[test]
fn after_edits_of_turns_who_began_first_keeps_the_time() {
    let result = edited([Edit::Bounds { turn: TurnId(0), start: 1.0, end: 10.0 }]).diarization();
    assert_eq!(
        labelled(&result, &result.exclusive),
        [
            (1.0, 10.0, "SPEAKER_00"),
            (10.0, 12.1, "SPEAKER_01"),
            (15.0, 16.0, "SPEAKER_01"),
            (20.0, 30.0, "SPEAKER_02"),
            (31.0, 32.0, "SPEAKER_00")
        ]
    );
}

#[test]
fn speakers_that_come_and_go_change_the_identity_of_nobody() {
    let mut document = edited([Edit::SplitOff { turns: ids([4]) }, Edit::Merge { from: A, into: C }]);
    assert_eq!(names(&document), [(1, "SPEAKER_01"), (2, "SPEAKER_02"), (3, "SPEAKER_03")]);
    assert_eq!(document.apply(rename(A, "x")), Err(EditError::UnknownSpeaker(A)));
    let result = document.diarization();
    let labels: Vec<&str> = result.speakers.iter().map(|speaker| speaker.label.as_str()).collect();
    assert_eq!(labels, ["SPEAKER_01", "SPEAKER_02", "SPEAKER_03"]);
    assert_eq!(result.speakers[2].embedding, [0.0, 0.0]);
    assert_eq!(result.speakers[1].embedding, [2.1, -0.25]);
    document.undo();
    assert_eq!(document.speakers()[0].id, A);
}

#[test]
fn speaking_time_counts_overlapping_turns_once() {
    let document = edited([Edit::Merge { from: A, into: B }]);
    assert!((document.speaker_time(B) - (11.1 + 1.0 + 1.0)).abs() < 1e-9);
    assert_eq!(document.speaker_time(A), 0.0);
}

#[test]
fn a_sample_is_the_middle_of_the_longest_stretch_alone() {
    let document = document();
    assert_eq!(document.sample(C), Some((22.0, 28.0)));
    // 1 to 8 s is alone; 8 to 9.7 s is not.
    assert_eq!(document.sample(A), Some((1.5, 7.5)));
    assert_eq!(document.sample(B), Some((9.7, 12.1)));
    assert_eq!(document.sample(NEW), None);
    // Never alone: the longest stretch at all.
    let covered = [(0.0, 50.0, 0), (1.0, 2.0, 1), (3.0, 13.0, 1), (20.0, 30.0, 0)];
    let document = Document::new(result(&covered), source());
    assert_eq!(document.sample(B), Some((5.0, 11.0)));
    // Several others inside one stretch.
    let holes = [(0.0, 20.0, 0), (1.0, 2.0, 1), (7.0, 8.0, 1), (9.0, 19.5, 1)];
    assert_eq!(Document::new(result(&holes), source()).sample(A), Some((2.0, 7.0)));
}

/// The same recording, told apart into two.
fn two() -> Diarization {
    result(&[(1.0, 12.1, 1), (15.0, 16.0, 1), (20.0, 30.0, 0), (31.0, 32.0, 1)])
}

#[test]
fn another_result_keeps_identities_and_names_where_the_time_is_shared() {
    let mut document = edited([rename(A, "Anna"), rename(C, "SPEAKER_07")]);
    document.apply(Edit::Replace(Box::new(two()))).unwrap();
    assert_eq!(names(&document), [(0, "Anna"), (2, "SPEAKER_07")]);
    assert_eq!((document.speaker(A).unwrap().label.as_str(), document.turns().len()), ("SPEAKER_01", 4));
    let result = document.diarization();
    let labels: Vec<&str> = result.speakers.iter().map(|speaker| speaker.label.as_str()).collect();
    assert_eq!(labels, ["SPEAKER_07", "Anna"], "in the order of the new result");
    assert_eq!((result.segments, result.exclusive), (two().segments, two().exclusive));
    // Back to three: somebody is new.
    document.apply(Edit::Replace(Box::new(super::document::result(&TURNS)))).unwrap();
    assert_eq!(names(&document), [(0, "Anna"), (2, "SPEAKER_07"), (3, "SPEAKER_01")]);
    document.undo();
    document.undo();
    assert_eq!(names(&document), [(0, "Anna"), (1, "SPEAKER_01"), (2, "SPEAKER_07")]);
}

#[test]
fn another_result_without_names_is_given_as_it_is() {
    let document = edited([Edit::Delete { turns: ids([0, 1]) }, Edit::Replace(Box::new(two()))]);
    assert_eq!(document.diarization(), two());
    assert!(document.edited());
    assert_eq!(document.original(), &result(&TURNS));
}

#[test]
fn a_name_that_is_a_label_of_the_other_result_is_not_kept() {
    let mut document = edited([Edit::Merge { from: B, into: C }, rename(C, "SPEAKER_01")]);
    document.apply(Edit::Replace(Box::new(result(&TURNS)))).unwrap();
    let mut names: Vec<&str> = names(&document).into_iter().map(|(_, name)| name).collect();
    names.sort_unstable();
    assert_eq!(names, ["SPEAKER_00", "SPEAKER_01", "SPEAKER_02"]);
}

#[test]
fn results_that_do_not_fit_are_refused() {
    let refused = |change: fn(&mut Diarization)| {
        let mut other = two();
        change(&mut other);
        let mut document = document();
        let error = document.apply(Edit::Replace(Box::new(other))).unwrap_err();
        assert_eq!((document.revision(), plain(&document)), (0, plain(&self::document())));
        assert!(matches!(error, EditError::Unfit(_)), "{error}");
    };
    refused(|other| other.duration = 61.0);
    refused(|other| other.duration = f64::NAN);
    refused(|other| other.segments[0].speaker = 2);
    refused(|other| other.segments[0].start = -0.1);
    refused(|other| other.segments[3].end = 60.1);
    refused(|other| other.segments[3].end = f64::NAN);
    refused(|other| other.segments[3].end = 31.0);
    refused(|other| other.segments.swap(0, 1));
    refused(|other| other.exclusive[0].speaker = 9);
    refused(|other| other.speakers[0].label = "SPEAKER_01".into());
    refused(|other| other.speakers[0].label = String::new());
    refused(|other| other.speakers[0].label = "a\nb".into());
    refused(|other| other.speakers[0].embedding[0] = f32::INFINITY);
    refused(|other| other.settings.step = 0.0);
    refused(|other| other.settings.speakers.num = Some(0));
    refused(|other| other.timings[0].1 = f64::NAN);
    refused(|other| {
        other.speakers = (0..1001).map(|n| Speaker { label: label(n), embedding: vec![] }).collect()
    });
}
