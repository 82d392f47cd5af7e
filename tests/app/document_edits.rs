//! What each edit does and what it refuses.

use speakrs_app::app::document::{Edit, EditError, MAX_NAME, MIN_TURN, SpeakerId, TurnId};

use super::document::{A, B, C, NEW, document, edited, ids, names, plain, rename};

/// The error of an edit, which must have changed nothing.
fn refused(edit: Edit) -> EditError {
    let mut document = document();
    let error = document.apply(edit).unwrap_err();
    let fresh = self::document();
    assert_eq!((plain(&document), names(&document)), (plain(&fresh), names(&fresh)));
    assert!(document.revision() == 0 && document.can_undo().is_none());
    error
}

#[test]
fn renaming() {
    let document = edited([rename(A, "  Anna Ä. "), rename(B, "日本⚒")]);
    assert_eq!(names(&document), [(0, "Anna Ä."), (1, "日本⚒"), (2, "SPEAKER_02")]);
    for back in ["", "   ", "SPEAKER_00"] {
        let document = edited([rename(A, "Anna"), rename(A, back)]);
        assert_eq!(document.speaker(A).unwrap().name, None);
    }
    let longest = "ü".repeat(MAX_NAME);
    assert_eq!(names(&edited([rename(A, &longest)]))[0].1, longest);
    assert_eq!(refused(rename(A, &"ü".repeat(MAX_NAME + 1))), EditError::LongName);
    for name in ["a\nb", "a\tb", "a\u{1b}b", "a\0"] {
        assert_eq!(refused(rename(A, name)), EditError::ControlCharacter);
    }
    assert_eq!(refused(rename(NEW, "x")), EditError::UnknownSpeaker(NEW));
}

#[test]
fn names_are_distinct_also_where_white_space_is_written_as_an_underscore() {
    let mut document = edited([rename(A, "Anna B")]);
    for name in ["Anna B", "Anna_B", "Anna\u{a0}B", "SPEAKER_00", "SPEAKER_02"] {
        let by = if name == "SPEAKER_02" { C } else { A };
        let error = document.apply(rename(B, name)).unwrap_err();
        assert!(matches!(&error, EditError::NameTaken { by: other, .. } if *other == by), "{error}");
        assert!(error.to_string().contains("merge"), "{error}");
    }
    document.apply(rename(B, "anna b")).unwrap();
    // Nobody has the label any more.
    document.apply(Edit::Merge { from: A, into: C }).unwrap();
    document.apply(rename(B, "SPEAKER_00")).unwrap();
}

#[test]
fn merging() {
    let document = edited([Edit::Merge { from: A, into: C }]);
    assert_eq!(names(&document), [(1, "SPEAKER_01"), (2, "SPEAKER_02")]);
    assert_eq!(plain(&document).iter().filter(|turn| turn.2 == 2).count(), 3);
    let named = |edits: [Edit; 2]| {
        let document = edited(edits.into_iter().chain([Edit::Merge { from: A, into: C }]));
        document.speaker(C).unwrap().display().to_owned()
    };
    assert_eq!(named([rename(A, "Anna"), rename(B, "Ben")]), "Anna", "a name is not lost");
    assert_eq!(named([rename(A, "Anna"), rename(C, "Carl")]), "Carl");
    assert_eq!(refused(Edit::Merge { from: A, into: A }), EditError::MergedWithItself);
    assert_eq!(refused(Edit::Merge { from: A, into: NEW }), EditError::UnknownSpeaker(NEW));
    assert_eq!(refused(Edit::Merge { from: NEW, into: A }), EditError::UnknownSpeaker(NEW));
}

#[test]
fn splitting_off() {
    let document = edited([Edit::SplitOff { turns: ids([1, 4, 4]) }]);
    assert_eq!(names(&document).last(), Some(&(3, "SPEAKER_03")));
    assert_eq!(plain(&document).map_speakers(), [0, 3, 1, 2, 3]);
    let error = refused(Edit::SplitOff { turns: ids([0, 4]) });
    assert_eq!(error, EditError::AllTurns("SPEAKER_00".into()));
    assert_eq!(refused(Edit::SplitOff { turns: Vec::new() }), EditError::NoTurns);
    assert_eq!(refused(Edit::SplitOff { turns: ids([0, 5]) }), EditError::UnknownTurn(TurnId(5)));
    // All turns of two speakers may be split off, and a label that is taken is passed over.
    let mut document = edited([rename(B, "SPEAKER_03"), Edit::SplitOff { turns: ids([0, 4, 3]) }]);
    assert_eq!(names(&document), [(1, "SPEAKER_03"), (3, "SPEAKER_04")]);
    document.undo();
    assert_eq!(names(&document), [(0, "SPEAKER_00"), (1, "SPEAKER_03"), (2, "SPEAKER_02")]);
}

trait Speakers {
    fn map_speakers(&self) -> Vec<u32>;
}

impl Speakers for Vec<(f64, f64, u32)> {
    fn map_speakers(&self) -> Vec<u32> {
        self.iter().map(|turn| turn.2).collect()
    }
}

#[test]
fn moving() {
    let document = edited([Edit::Move { turns: ids([3, 1]), speaker: A }]);
    assert_eq!(plain(&document).map_speakers(), [0, 0, 1, 0, 0]);
    assert_eq!(names(&document), [(0, "SPEAKER_00"), (1, "SPEAKER_01")], "who has no turn is gone");
    assert_eq!(refused(Edit::Move { turns: ids([0]), speaker: NEW }), EditError::UnknownSpeaker(NEW));
    assert_eq!(refused(Edit::Move { turns: Vec::new(), speaker: A }), EditError::NoTurns);
    assert_eq!(refused(Edit::Move { turns: ids([9]), speaker: A }), EditError::UnknownTurn(TurnId(9)));
}

#[test]
fn deleting() {
    let mut document = edited([Edit::Delete { turns: ids([3, 0]) }]);
    assert_eq!(plain(&document).map_speakers(), [1, 1, 0]);
    assert_eq!(document.speaker(C), None);
    let gone = Edit::Delete { turns: ids([3]) };
    assert_eq!(document.apply(gone), Err(EditError::UnknownTurn(TurnId(3))));
    document.apply(Edit::Delete { turns: ids([1, 2, 4]) }).unwrap();
    assert!(document.turns().is_empty() && document.speakers().is_empty());
    assert!(document.diarization().segments.is_empty());
    assert_eq!(refused(Edit::Delete { turns: Vec::new() }), EditError::NoTurns);
}

#[test]
fn cutting() {
    let document = edited([Edit::Cut { turn: TurnId(3), at: 24.5 }]);
    let turns = &document.turns()[3..5];
    assert_eq!((turns[0].id, turns[0].start, turns[0].end), (TurnId(3), 20.0, 24.5));
    assert_eq!((turns[1].start, turns[1].end, turns[1].speaker), (24.5, 30.0, C));
    let at = |at| refused(Edit::Cut { turn: TurnId(3), at });
    for outside in [19.0, 31.0, f64::NAN, f64::INFINITY] {
        assert!(matches!(at(outside), EditError::Outside { .. }), "{outside}");
    }
    for close in [20.0, 30.0, 20.0 + 0.5 * MIN_TURN, 30.0 - 0.5 * MIN_TURN] {
        assert!(matches!(at(close), EditError::TooShort { .. }), "{close}");
    }
    assert_eq!(refused(Edit::Cut { turn: TurnId(9), at: 1.0 }), EditError::UnknownTurn(TurnId(9)));
}

#[test]
fn moving_bounds() {
    // The order follows.
    let document = edited([Edit::Bounds { turn: TurnId(4), start: 0.0, end: 60.0 }]);
    assert_eq!(plain(&document)[0], (0.0, 60.0, 0));
    assert_eq!(document.turns()[0].id, TurnId(4));
    let bounds = |start, end| refused(Edit::Bounds { turn: TurnId(4), start, end });
    for (start, end) in [(-0.1, 1.0), (59.0, 60.1), (f64::NAN, 1.0), (1.0, f64::NAN), (1.0, f64::INFINITY)] {
        assert!(matches!(bounds(start, end), EditError::Outside { duration: 60.0, .. }), "{start} {end}");
    }
    for (start, end) in [(2.0, 1.0), (1.0, 1.0), (1.0, 1.0 + 0.5 * MIN_TURN)] {
        assert!(matches!(bounds(start, end), EditError::TooShort { .. }), "{start} {end}");
    }
    let unknown = Edit::Bounds { turn: TurnId(9), start: 1.0, end: 2.0 };
    assert_eq!(refused(unknown), EditError::UnknownTurn(TurnId(9)));
}

#[test]
fn adding() {
    let add = |start, end, speaker| Edit::Add { start, end, speaker };
    let document = edited([add(13.0, 14.0, Some(B)), add(40.0, 41.0, None), add(42.0, 43.0, Some(NEW))]);
    assert_eq!(plain(&document).map_speakers(), [0, 1, 1, 1, 2, 0, 3, 3]);
    assert_eq!(names(&document).last(), Some(&(3, "SPEAKER_03")));
    assert_eq!(refused(add(1.0, 2.0, Some(SpeakerId(7)))), EditError::UnknownSpeaker(SpeakerId(7)));
    assert!(matches!(refused(add(1.0, 1.0, None)), EditError::TooShort { .. }));
    assert!(matches!(refused(add(59.0, 61.0, None)), EditError::Outside { time: 61.0, .. }));
}
