//! Random sequences of edits: what must hold whatever the user does.

use proptest::prelude::*;
use speakrs_app::app::document::{Document, Edit, MIN_TURN, SpeakerId, Turn, TurnId, Voice};
use speakrs_app::timeline::rttm;

use super::document::{TURNS, result, source};

/// What the user does; numbers choose among what is there, so that most of it is possible.
#[derive(Debug, Clone)]
enum Step {
    Rename(usize, usize),
    Merge(usize, usize),
    SplitOff(Vec<usize>),
    Move(Vec<usize>, usize),
    Delete(Vec<usize>),
    Cut(usize, f64),
    Bounds(usize, f64, f64),
    Add(f64, f64, Option<usize>),
    Replace(bool),
    Undo,
    Redo,
    Reload,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let some = || prop::collection::vec(0..50_usize, 1..25);
    let step = prop_oneof![
        (0..9_usize, 0..NAMES.len()).prop_map(|(who, name)| Step::Rename(who, name)),
        (0..9_usize, 0..9_usize).prop_map(|(from, into)| Step::Merge(from, into)),
        some().prop_map(Step::SplitOff),
        (some(), 0..9_usize).prop_map(|(turns, who)| Step::Move(turns, who)),
        prop::collection::vec(0..50_usize, 1..3).prop_map(Step::Delete),
        (0..50_usize, 0.0..1.0).prop_map(|(turn, share)| Step::Cut(turn, share)),
        (0..50_usize, -1.0..61.0, -1.0..61.0).prop_map(|(turn, a, b)| Step::Bounds(turn, a, b)),
        (-1.0..61.0, 0.0..9.0, prop::option::of(0..9_usize)).prop_map(|(a, b, who)| Step::Add(a, a + b, who)),
        any::<bool>().prop_map(Step::Replace),
        Just(Step::Undo),
        Just(Step::Undo),
        Just(Step::Redo),
        Just(Step::Reload),
    ];
    prop::collection::vec(step, 1..60)
}

const NAMES: [&str; 8] = ["Anna", "Ben", "", "Anna ", "SPEAKER_01", "SPEAKER 03", "Ç\u{301}", "a\tb"];

/// Forty turns of four speakers, many of them at once.
fn crowded() -> Document {
    let turn = |i: usize| {
        let start = (i / 2) as f64 * 2.9;
        (start, start + 0.5 + (i % 5) as f64, i % 4)
    };
    Document::new(result(&(0..40).map(turn).collect::<Vec<_>>()), source())
}

fn edit(step: &Step, document: &Document) -> Option<Edit> {
    let turns = document.turns();
    let turn = |n: usize| turns.get(n % turns.len().max(1)).map_or(TurnId(n as u64), |turn| turn.id);
    let all = |list: &[usize]| list.iter().map(|&n| turn(n)).collect();
    let voices = document.speakers();
    let who = |n: usize| voices.get(n).map_or(SpeakerId(n as u32), |voice| voice.id);
    Some(match step {
        Step::Rename(speaker, name) => Edit::Rename { speaker: who(*speaker), name: NAMES[*name].into() },
        Step::Merge(from, into) => Edit::Merge { from: who(*from), into: who(*into) },
        Step::SplitOff(list) => Edit::SplitOff { turns: all(list) },
        Step::Move(list, speaker) => Edit::Move { turns: all(list), speaker: who(*speaker) },
        Step::Delete(list) => Edit::Delete { turns: all(list) },
        Step::Cut(n, share) => {
            let (start, end) = document.turn(turn(*n)).map_or((0.0, 1.0), |turn| (turn.start, turn.end));
            Edit::Cut { turn: turn(*n), at: start + share * (end - start) }
        }
        Step::Bounds(n, start, end) => Edit::Bounds { turn: turn(*n), start: *start, end: *end },
        Step::Add(start, end, speaker) => Edit::Add { start: *start, end: *end, speaker: speaker.map(who) },
        Step::Replace(few) => {
            let other = if *few { result(&TURNS) } else { crowded().original().clone() };
            Edit::Replace(Box::new(other))
        }
        Step::Undo | Step::Redo | Step::Reload => return None,
    })
}

type Shown = (Vec<Turn>, Vec<Voice>);

fn shown(document: &Document) -> Shown {
    (document.turns().to_vec(), document.speakers().to_vec())
}

fn check(document: &Document) -> Result<(), TestCaseError> {
    let turns = document.turns();
    prop_assert!(turns.is_sorted_by(|a, b| (a.start, a.end) <= (b.start, b.end)));
    let original = document.original().segments.iter().map(|s| s.end - s.start);
    let shortest = original.fold(MIN_TURN, f64::min) - 1e-9;
    let mut ids: Vec<TurnId> = turns.iter().map(|turn| turn.id).collect();
    for turn in turns {
        prop_assert!(turn.start >= 0.0 && turn.end <= document.duration());
        prop_assert!(turn.end - turn.start >= shortest);
        prop_assert!(document.speaker(turn.speaker).is_some());
    }
    ids.sort_unstable();
    prop_assert!(ids.windows(2).all(|pair| pair[0] != pair[1]));
    let voices = document.speakers();
    prop_assert!(voices.is_sorted_by(|a, b| a.id < b.id));
    let mut names: Vec<_> = voices.iter().map(|voice| rttm::field(voice.display()).into_owned()).collect();
    names.sort();
    prop_assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{:?}", names);
    for voice in voices {
        let time = document.speaker_time(voice.id);
        let (start, end) = document.sample(voice.id).unwrap();
        prop_assert!(time > 0.0 && start < end && end - start <= 6.0 + 1e-9);
        let speaks = |t: &Turn| t.speaker == voice.id && t.start <= start + 1e-9 && start < t.end;
        prop_assert!(turns.iter().any(speaks));
    }
    check_result(document)
}

/// The exported form says the same as the turns.
fn check_result(document: &Document) -> Result<(), TestCaseError> {
    let result = document.diarization();
    prop_assert!(result.exclusive.windows(2).all(|pair| pair[0].end <= pair[1].start));
    if !document.edited() {
        prop_assert_eq!(&result, document.original());
    }
    prop_assert_eq!(result.speakers.len(), document.speakers().len());
    for (index, speaker) in result.speakers.iter().enumerate() {
        let own: Vec<_> = result.segments.iter().filter(|s| s.speaker == index).collect();
        prop_assert!(own.windows(2).all(|pair| pair[0].end <= pair[1].start));
        let voice = document.speakers().iter().find(|voice| voice.display() == speaker.label);
        let time: f64 = own.iter().map(|s| s.end - s.start).sum();
        prop_assert!((document.speaker_time(voice.unwrap().id) - time).abs() < 1e-6);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_done(steps in steps()) {
        let mut document = crowded();
        let first = shown(&document);
        // What was shown after each edit in force, to compare with what undoing brings back.
        let mut past: Vec<Shown> = vec![first.clone()];
        let mut future: Vec<Shown> = Vec::new();
        for step in &steps {
            let (before, revision) = (shown(&document), document.revision());
            match (step, edit(step, &document)) {
                (Step::Undo, _) => {
                    prop_assert_eq!(document.undo().is_some(), past.len() > 1);
                    if past.len() > 1 {
                        future.extend(past.pop());
                    }
                }
                (Step::Redo, _) => {
                    prop_assert_eq!(document.redo().is_some(), !future.is_empty());
                    past.extend(future.pop());
                }
                (_, None) => {
                    let edits = document.edits_json();
                    document = Document::load(&document.original_json(), Some(&edits)).unwrap();
                    prop_assert_eq!(document.edits_json(), edits);
                }
                (_, Some(edit)) => match document.apply(edit) {
                    Ok(()) if document.revision() > revision => {
                        past.push(shown(&document));
                        future.clear();
                    }
                    _ => prop_assert_eq!(&shown(&document), &before),
                },
            }
            prop_assert_eq!(&shown(&document), past.last().unwrap());
            check(&document)?;
        }
        let last = shown(&document);
        let done = past.len() - 1;
        while document.undo().is_some() {}
        prop_assert_eq!(shown(&document), first);
        prop_assert_eq!(&document.diarization(), document.original());
        (0..done).for_each(|_| assert!(document.redo().is_some()));
        prop_assert_eq!(shown(&document), last);
    }
}

/// A long recording, many edits: bounded work, no timing.
#[test]
fn a_thousand_edits_of_a_long_recording() {
    let turn = |i: usize| (i as f64 * 0.0025, i as f64 * 0.0025 + 0.3, i % 10);
    let mut document = Document::new(result(&(0..20_000).map(turn).collect::<Vec<_>>()), source());
    for i in 0..1000_u64 {
        let turn = TurnId(i * 17);
        let start = document.turn(turn).unwrap().start;
        document.apply(Edit::Cut { turn, at: start + 0.1 }).unwrap();
    }
    let last = shown(&document);
    let again = Document::load(&document.original_json(), Some(&document.edits_json())).unwrap();
    assert_eq!(shown(&again), last);
    while document.undo().is_some() {}
    assert_eq!(document.turns().len(), 20_000);
    while document.redo().is_some() {}
    assert_eq!(shown(&document), last);
}
