//! Documents in files, sound and damaged.

use serde_json::{Value, json};
use speakrs_app::app::document::{Document, Edit, LoadError, TurnId};

use super::document::{A, B, NEW, TURNS, edited, ids, names, plain, rename, result, source};

fn reloaded(document: &Document) -> Document {
    Document::load(&document.original_json(), Some(&document.edits_json())).unwrap()
}

fn every_edit() -> Document {
    let mut document = edited([
        rename(A, "Anna \"Ä\" \\ 日本"),
        Edit::SplitOff { turns: ids([1]) },
        Edit::Move { turns: ids([4]), speaker: NEW },
        Edit::Delete { turns: ids([3]) },
        Edit::Cut { turn: TurnId(0), at: 0.1 + 0.2 + 3.0 },
        Edit::Bounds { turn: TurnId(2), start: 1.0 / 3.0, end: 16.0 },
        Edit::Add { start: 50.0, end: 51.0, speaker: None },
        Edit::Merge { from: NEW, into: B },
    ]);
    document.undo();
    document.apply(Edit::Replace(Box::new(result(&TURNS)))).unwrap();
    document.apply(Edit::Delete { turns: vec![document.turns()[0].id] }).unwrap();
    document
}

#[test]
fn a_document_reads_back_equal() {
    let document = every_edit();
    let again = reloaded(&document);
    assert_eq!(plain(&again), plain(&document));
    assert_eq!(again.turns(), document.turns());
    assert_eq!(again.speakers(), document.speakers());
    assert_eq!(again.diarization(), document.diarization());
    assert_eq!((again.can_undo(), again.can_redo()), (document.can_undo(), document.can_redo()));
    assert_eq!(again.original_json(), document.original_json());
    assert_eq!(again.edits_json(), document.edits_json());
    // The identities that come next are those that would have come.
    let (mut a, mut b) = (document, again);
    for document in [&mut a, &mut b] {
        document.apply(Edit::Add { start: 1.0, end: 2.0, speaker: None }).unwrap();
    }
    assert_eq!((a.turns(), a.speakers()), (b.turns(), b.speakers()));
}

#[test]
fn what_was_undone_can_be_done_again_after_reading() {
    let mut document = every_edit();
    let full = document.clone();
    while document.undo().is_some() {}
    let mut again = reloaded(&document);
    assert!(!again.edited());
    assert_eq!(again.diarization(), result(&TURNS));
    while again.redo().is_some() {}
    assert_eq!((again.turns(), again.speakers()), (full.turns(), full.speakers()));
}

#[test]
fn without_a_file_of_edits_there_are_none() {
    let document = Document::load(&every_edit().original_json(), None).unwrap();
    assert_eq!((document.diarization(), document.source()), (result(&TURNS), &source()));
}

/// The error of a document whose files were changed.
fn damaged(original: impl Fn(&mut Value), edits: impl Fn(&mut Value)) -> LoadError {
    let document = every_edit();
    let changed = |bytes: Vec<u8>, change: &dyn Fn(&mut Value)| {
        let mut value: Value = serde_json::from_slice(&bytes).unwrap();
        change(&mut value);
        serde_json::to_vec(&value).unwrap()
    };
    let original = changed(document.original_json(), &original);
    Document::load(&original, Some(&changed(document.edits_json(), &edits))).unwrap_err()
}

#[test]
fn impossible_results_are_refused() {
    let original = |change: fn(&mut Value)| damaged(change, |_| {});
    let flaws: [fn(&mut Value); 7] = [
        |v| v["diarization"]["duration"] = json!(-1.0),
        |v| v["diarization"]["duration"] = json!(1e12),
        |v| v["diarization"]["segments"][0]["speaker"] = json!(3),
        |v| v["diarization"]["segments"][0]["end"] = json!(0.5),
        |v| v["diarization"]["segments"][0]["start"] = json!(9.0),
        |v| v["diarization"]["speakers"][0]["label"] = json!("SPEAKER_01"),
        |v| v["diarization"]["settings"]["speakers"]["num"] = json!(0),
    ];
    for flaw in flaws {
        let error = original(flaw);
        assert!(matches!(error, LoadError::Flaw(_)), "{error}");
    }
    let broken: [fn(&mut Value); 5] = [
        |v| v["diarization"]["speakers"][0]["embedding"][0] = json!(1e300),
        |v| v["diarization"]["segments"][0]["speaker"] = json!(-1),
        |v| v["diarization"]["duration"] = Value::Null,
        |v| v["more"] = json!(1),
        |v| v["version"] = json!("1"),
    ];
    for broken in broken {
        assert!(matches!(original(broken), LoadError::Json(_)));
    }
    assert!(matches!(original(|v| v["version"] = json!(2)), LoadError::Version(2)));
    assert!(matches!(original(|v| v["source"]["channels"] = json!(1)), LoadError::OtherOriginal));
}

#[test]
fn impossible_edits_are_refused_with_their_number() {
    let edits = |change: fn(&mut Value)| damaged(|_| {}, change);
    type Damage = fn(&mut Value);
    let numbered: [(Damage, usize); 8] = [
        (|v| v["log"][0]["edit"]["rename"]["name"] = json!("SPEAKER_01"), 1),
        (|v| v["log"][0]["edit"]["rename"]["name"] = json!("a\nb"), 1),
        (|v| v["log"][1]["edit"]["split_off"]["turns"] = json!([0, 77]), 2),
        (|v| v["log"][2]["edit"]["move"]["speaker"] = json!(99), 3),
        (|v| v["log"][4]["edit"]["cut"]["at"] = json!(59.0), 5),
        (|v| v["log"][5]["edit"]["bounds"]["start"] = json!(-1.0), 6),
        (|v| v["log"][6]["edit"]["add"]["end"] = json!(50.0), 7),
        (|v| v["log"][7]["edit"]["replace"]["duration"] = json!(50.0), 8),
    ];
    for (change, expected) in numbered {
        let error = edits(change);
        assert!(matches!(error, LoadError::Edit { number, .. } if number == expected), "{error}");
    }
    let contradictions: [(Damage, usize); 5] = [
        (|v| v["log"][1]["edit"] = v["log"][0]["edit"].clone(), 2),
        (|v| v["log"][6]["fresh"]["turn"] = json!(1), 7),
        (|v| v["log"][6]["fresh"]["speaker"] = json!(3), 7),
        (|v| v["log"][6]["fresh"]["turn"] = json!(u64::MAX), 7),
        (|v| v["done"] = json!(100), 100),
    ];
    for (change, expected) in contradictions {
        let error = edits(change);
        assert!(matches!(error, LoadError::Log(number) if number == expected), "{error}");
    }
    assert!(matches!(edits(|v| v["version"] = json!(7)), LoadError::Version(7)));
    assert!(matches!(edits(|v| v["original"] = json!("")), LoadError::OtherOriginal));
    assert!(matches!(edits(|v| v["log"][0]["edit"] = json!({"explode": {}})), LoadError::Json(_)));
}

#[test]
fn anything_cut_short_or_flipped_is_refused_or_read_without_a_panic() {
    let document = every_edit();
    let (original, edits) = (document.original_json(), document.edits_json());
    for end in 0..original.len() {
        assert!(Document::load(&original[..end], None).is_err());
    }
    for end in 0..edits.len() {
        assert!(Document::load(&original, Some(&edits[..end])).is_err());
    }
    for at in 0..edits.len() {
        for byte in [b'0', b'9', b'"', b' ', b'[', 0xff] {
            let mut flipped = edits.clone();
            flipped[at] = byte;
            if let Ok(document) = Document::load(&original, Some(&flipped)) {
                assert_eq!(names(&document).len(), document.speakers().len());
                reloaded(&document);
            }
        }
    }
}

#[test]
fn every_bit_of_a_time_survives() {
    let times: Vec<(f64, f64, usize)> = (0..2000)
        .map(|i| {
            let start = (f64::from(i) * 0.016_875_f64).sqrt() * 5.0;
            (start, start + 1.0 / 3.0, i as usize % 2)
        })
        .collect();
    let document = Document::new(result(&times), source());
    let again = Document::load(&document.original_json(), None).unwrap();
    assert_eq!(again.diarization(), document.diarization());
}
