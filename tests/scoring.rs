//! RTTM and UEM files, DER and JER.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use speakrs_app::scoring::{Der, Jer, Kind, Options, Report, Tally, confusion, mapping, score};
use speakrs_app::timeline::rttm::{self, Rttm, Turn};
use speakrs_app::timeline::uem::{self, Region};

/// A folder of the shared fixtures, or nothing (said aloud) where they are absent; in CI they must be there.
fn fixture(name: &str) -> Option<PathBuf> {
    let root = env::var_os("SPEAKRS_APP_FIXTURES").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/fixtures")),
        PathBuf::from,
    );
    let path = root.join(name);
    if path.exists() {
        return Some(path);
    }
    assert_ne!(env::var("CI").as_deref(), Ok("true"), "fixtures {} are absent", path.display());
    eprintln!("SKIPPED: fixtures {} are absent", path.display());
    None
}

fn options(collar: f64, skip_overlap: bool) -> Options {
    Options { collar, skip_overlap }
}

fn parse(text: &str) -> Result<Rttm, String> {
    rttm::parse(text.as_bytes(), Path::new("x.rttm")).map_err(|e| e.to_string())
}

fn parse_uem(text: &str) -> Result<uem::Uem, String> {
    uem::parse(text.as_bytes(), Path::new("x.uem")).map_err(|e| e.to_string())
}

fn turns(list: &[(f64, f64, &str)]) -> Vec<Turn> {
    list.iter().map(|&(start, end, speaker)| Turn::new(start, end, speaker)).collect()
}

fn tally_of(reference: &[(f64, f64, &str)], hypothesis: &[(f64, f64, &str)], options: Options) -> Tally {
    Tally::new(&turns(reference), &turns(hypothesis), None, options)
}

fn der_of(reference: &[Turn], hypothesis: &[Turn], options: Options) -> Der {
    let tally = Tally::new(reference, hypothesis, None, options);
    Der::new(&tally, &mapping(&tally))
}

fn written(rttm: &Rttm) -> String {
    let mut out = Vec::new();
    for (uri, turns) in &rttm.recordings {
        rttm::write(&mut out, uri, turns).unwrap();
    }
    String::from_utf8(out).unwrap()
}

// ---------------------------------------------------------------- formats

#[test]
fn rttm_reads_what_real_files_hold() {
    let text = "\u{feff};; comment\r\n# another\r\n\r\n\
        SPEAKER\t007\t1\t5.0\t1.5\t<NA>\t<NA>\tMÉO069\t<NA>\t<NA>\r\n\
        SPKR-INFO 007 1 <NA> <NA> <NA> unknown MÉO069 <NA>\r\n\
        \x20 SPEAKER 007 1 .25 1e-1 <NA> <NA> 李 <NA>\n\
        SPEAKER b 2 0 2 <NA> <NA> 7 <NA> <NA>";
    let rttm = parse(text).unwrap();
    assert_eq!(rttm.skipped, 1);
    let expected = [
        Turn { start: 5.0, duration: 1.5, speaker: "MÉO069".into() },
        Turn { start: 0.25, duration: 0.1, speaker: "李".into() },
    ];
    assert_eq!(rttm.recordings["007"], expected);
    assert_eq!(rttm.recordings["b"], [Turn { start: 0.0, duration: 2.0, speaker: "7".into() }]);
}

#[test]
fn rttm_names_file_line_and_cause() {
    let good = "SPEAKER a 1 0.0 1.0 <NA> <NA> x <NA> <NA>\n";
    for (line, cause) in [
        ("SPEAKER a 1 zero 1.0 <NA> <NA> x <NA> <NA>", "start \"zero\" is not a number of seconds"),
        ("SPEAKER a 1 0,5 1.0 <NA> <NA> x <NA> <NA>", "start \"0,5\" is not a number of seconds"),
        ("SPEAKER a 1 0.0 nan <NA> <NA> x <NA> <NA>", "duration \"nan\" is not a number of seconds"),
        ("SPEAKER a 1 0.0 inf <NA> <NA> x <NA> <NA>", "duration \"inf\" is not a number of seconds"),
        ("SPEAKER a 1 0.0 -1 <NA> <NA> x <NA> <NA>", "duration \"-1\" is negative"),
        ("SPEAKER a 1 -0.5 1 <NA> <NA> x <NA> <NA>", "start \"-0.5\" is negative"),
        ("SPEAKER a 1 0.0 1e300 <NA> <NA> x <NA> <NA>", "duration \"1e300\" is above 10000000 s"),
        (
            "SPEAKER a 1 0.0 1.0 <NA> <NA> x",
            "8 fields instead of 9 or 10 (a name must not contain white space)",
        ),
        (
            "SPEAKER a 1 0.0 1.0 <NA> <NA> Ann Lee <NA> <NA>",
            "11 fields instead of 9 or 10 (a name must not contain white space)",
        ),
    ] {
        assert_eq!(parse(&format!("{good}{line}\n{good}")).unwrap_err(), format!("x.rttm:2: {cause}"));
    }
    let long = format!("{good};;{}\n", "x".repeat(70_000));
    assert_eq!(parse(&long).unwrap_err(), "x.rttm:2: line longer than 65536 bytes");
    let latin1 = rttm::parse(&b"SPEAKER M\xc9O 1 0 1 <NA> <NA> x <NA> <NA>"[..], Path::new("x.rttm"));
    assert_eq!(latin1.unwrap_err().to_string(), "x.rttm:1: not UTF-8 text");
}

#[test]
fn uem_is_read_strictly() {
    let uem = parse_uem("\u{feff};; c\r\na NA 0.000 30.000\r\nb\t1\t5\t6\n a 1 40 50\n").unwrap();
    assert_eq!(uem["a"], [Region { start: 0.0, end: 30.0 }, Region { start: 40.0, end: 50.0 }]);
    assert_eq!(uem["b"], [Region { start: 5.0, end: 6.0 }]);
    for (line, cause) in [
        ("a 1 0", "3 fields instead of 4 (a name must not contain white space)"),
        ("a 1 5 5", "the region ends at or before its start"),
        ("a 1 x 5", "start \"x\" is not a number of seconds"),
        ("a 1 0 -5", "end \"-5\" is negative"),
    ] {
        assert_eq!(parse_uem(line).unwrap_err(), format!("x.uem:1: {cause}"));
    }
}

#[test]
fn rttm_writer_keeps_names_in_one_field() {
    let mut out = Vec::new();
    let list = turns(&[(0.5, 2.0, "Ann\u{a0}Lee"), (3.0, 3.0002, "short"), (4.0, 4.5, "")]);
    rttm::write(&mut out, "my file", &list).unwrap();
    assert_eq!(
        String::from_utf8(out).unwrap(),
        "SPEAKER my_file 1 0.500 1.500 <NA> <NA> Ann_Lee <NA> <NA>\n\
         SPEAKER my_file 1 4.000 0.500 <NA> <NA> _ <NA> <NA>\n"
    );
}

#[test]
fn folders_of_rttm_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    assert!(rttm::read(folder.path()).unwrap_err().to_string().ends_with("no .rttm file in this folder"));
    fs::write(
        path("a.rttm"),
        "SPEAKER a 1 0 1 <NA> <NA> x <NA> <NA>\nSPEAKER b 1 0 1 <NA> <NA> x <NA> <NA>\n",
    )
    .unwrap();
    fs::write(path("silent.rttm"), "").unwrap();
    fs::write(path("notes.txt"), "SPEAKER").unwrap();
    let rttm = rttm::read(folder.path()).unwrap();
    assert_eq!(rttm.recordings.keys().collect::<Vec<_>>(), ["a", "b", "silent"]);
    assert!(rttm.recordings["silent"].is_empty());
    fs::write(path("z.rttm"), "SPEAKER a 1 0 1 <NA> <NA> x <NA> <NA>\n").unwrap();
    let error = rttm::read(folder.path()).unwrap_err().to_string();
    assert!(error.contains("z.rttm: recording \"a\" is in") && error.ends_with("a.rttm too"), "{error}");
    let absent = rttm::read(&path("absent.rttm")).unwrap_err().to_string();
    assert!(absent.contains("absent.rttm: "), "{absent}");
}

/// 100,000 inputs made of broken pieces of both formats: no panic, and every error names a line.
#[test]
fn parsers_survive_random_bytes() {
    let pieces: [&[u8]; 20] = [
        b"SPEAKER",
        b" ",
        b"\t",
        b"\n",
        b"\r\n",
        b"a",
        b"1",
        b"-",
        b".",
        b"0.5",
        b"1e309",
        b"<NA>",
        b"nan",
        b";;",
        b"#",
        b"\xef\xbb\xbf",
        b"\xff",
        b"\0",
        "é".as_bytes(),
        b"SPEAKER a 1 0.5 1 <NA> <NA> x <NA> <NA>\n",
    ];
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = move || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    let (mut good, mut bad) = (0, 0);
    for _ in 0..100_000 {
        let mut input = Vec::new();
        for _ in 0..next() % 40 {
            match next() % 4 {
                0 => input.push(next() as u8),
                _ => input.extend_from_slice(pieces[(next() % pieces.len() as u64) as usize]),
            }
        }
        match rttm::parse(&input[..], Path::new("x")) {
            Ok(_) => good += 1,
            Err(e) => {
                bad += 1;
                assert!(e.to_string().starts_with("x:"), "{e}");
            }
        }
        let _ = uem::parse(&input[..], Path::new("x"));
    }
    assert!(good > 1000 && bad > 1000, "{good} accepted, {bad} refused");
}

// ---------------------------------------------------------------- known scores

fn close(what: &str, found: f64, expected: &str, tolerance: f64) {
    let expected: f64 = expected.parse().unwrap();
    assert!((found - expected).abs() <= tolerance, "{what}: {found} instead of {expected}");
}

#[test]
fn every_expected_score_is_met() {
    let Some(folder) = fixture("scoring") else { return };
    let Some(voxconverse) = fixture("eval/voxconverse/dev") else { return };
    let hypothesis = rttm::read(&folder.join("hyp")).unwrap();
    let mut reference = rttm::read(&voxconverse).unwrap();
    reference.recordings.retain(|uri, _| hypothesis.recordings.contains_key(uri));
    let reports: Vec<(Options, Report)> = [0.0, 0.25]
        .into_iter()
        .flat_map(|collar| [options(collar, false), options(collar, true)])
        .map(|o| (o, score(&reference, &hypothesis, None, o)))
        .collect();
    let text = fs::read_to_string(folder.join("expected.csv")).unwrap();
    let mut rows = 0;
    for line in text.lines().skip(1) {
        let [uri, collar, skip, total, missed, false_alarm, confusion, der, jer] =
            line.split(',').collect::<Vec<_>>().try_into().unwrap();
        let o = options(collar.parse().unwrap(), skip == "1");
        let (_, report) = reports.iter().find(|r| r.0 == o).unwrap();
        let row = report.rows.iter().find(|row| row.uri == uri);
        let (found, jaccard) = row.map_or((report.der, report.jer), |row| (row.der, row.jer));
        assert_eq!(row.is_none(), uri == "TOTAL", "{line}");
        if row.is_some() {
            close(line, found.total, total, 1e-3);
            close(line, found.missed, missed, 1e-3);
            close(line, found.false_alarm, false_alarm, 1e-3);
            close(line, found.confusion, confusion, 1e-3);
        }
        close(line, found.rate(), der, 1e-6);
        close(line, jaccard.rate(), jer, 1e-4);
        rows += 1;
    }
    assert_eq!(rows, 164);
}

#[test]
fn voxconverse_labels_score_zero_against_themselves() {
    let Some(folder) = fixture("eval/voxconverse") else { return };
    let dev = rttm::read(&folder.join("dev")).unwrap();
    let test = rttm::read(&folder.join("test")).unwrap();
    assert_eq!((dev.recordings.len(), test.recordings.len()), (216, 232));
    assert_eq!((dev.skipped, test.skipped), (0, 0));
    for reference in [dev, test] {
        let empty = Rttm::default();
        let mut renamed = reference.clone();
        for turns in renamed.recordings.values_mut() {
            let names: BTreeSet<String> = turns.iter().map(|t| t.speaker.clone()).collect();
            let names: Vec<String> = names.into_iter().collect();
            for turn in turns.iter_mut() {
                let at = names.iter().position(|n| *n == turn.speaker).unwrap();
                turn.speaker.clone_from(&names[(at + 1) % names.len()]);
            }
        }
        for o in [options(0.0, false), options(0.25, false), options(0.0, true), options(0.25, true)] {
            for same in [&reference, &renamed] {
                let report = score(&reference, same, None, o);
                assert!(report.rows.iter().all(|row| row.der.error() == 0.0 && row.jer.rate() < 1e-12));
                assert!(report.missing.is_empty() && report.extra.is_empty());
            }
            let report = score(&reference, &empty, None, o);
            assert_eq!(report.missing.len(), reference.recordings.len());
            for row in report.rows.iter().filter(|row| row.der.total > 0.0) {
                assert_eq!((row.der.rate(), row.der.missed, row.jer.rate()), (1.0, row.der.total, 1.0));
            }
        }
    }
}

#[test]
fn voxconverse_labels_read_back_as_written() {
    let Some(folder) = fixture("eval/voxconverse") else { return };
    for set in ["dev", "test"] {
        let reference = rttm::read(&folder.join(set)).unwrap();
        let text = written(&reference);
        let again = parse(&text).unwrap();
        assert_eq!(written(&again), text);
        let report = score(&reference, &again, None, Options::default());
        assert!(report.der.rate() < 1e-4);
    }
}

/// Every demo recording has reference turns under its own name, and the folder holds nothing but small audio files,
/// since users hand all of it to the program.
#[test]
fn demo_recordings_have_references() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut bytes = 0;
    for entry in root.join("assets/demo").read_dir().unwrap() {
        let path = entry.unwrap().path();
        bytes += path.metadata().unwrap().len();
        let extension = path.extension().unwrap().to_str().unwrap();
        assert!(["flac", "mp3", "ogg", "opus"].contains(&extension), "{}", path.display());
        let stem = path.file_stem().unwrap().to_str().unwrap();
        let reference = root.join(format!("tests/data/demo/{stem}.reference.rttm"));
        let reference = rttm::read_file(&reference).unwrap();
        assert_eq!(reference.recordings.keys().collect::<Vec<_>>(), [stem]);
        let report = score(&reference, &reference, None, Options::default());
        assert!(report.der.total > 10.0 && report.rows[0].reference_speakers >= 2);
    }
    assert!((1..2_000_000).contains(&bytes), "{bytes} bytes of demo audio");
}

// ---------------------------------------------------------------- the known traps

/// The collar is the width on each side. Read as the total width it would leave out half as much.
#[test]
fn collar_is_the_width_on_each_side() {
    let reference = [(10.0, 20.0, "a")];
    let hypothesis = [(10.25, 19.75, "x")];
    for (collar, total, missed) in [(0.0, 10.0, 0.5), (0.125, 9.75, 0.25), (0.25, 9.5, 0.0)] {
        let der = der_of(&turns(&reference), &turns(&hypothesis), options(collar, false));
        assert_eq!((der.total, der.missed, der.false_alarm), (total, missed, 0.0), "collar {collar}");
    }
}

/// Overlapping turns of one speaker are one turn: no double speech, no overlap to skip, no boundary inside.
#[test]
fn same_speaker_overlap_is_merged() {
    let doubled = [(0.0, 6.0, "a"), (4.0, 10.0, "a")];
    let single = [(0.0, 10.0, "x")];
    for collar in [0.0, 0.25] {
        for skip in [false, true] {
            let tally = tally_of(&doubled, &single, options(collar, skip));
            assert_eq!((tally.merged_reference, tally.merged_hypothesis), (1, 0));
            let der = Der::new(&tally, &mapping(&tally));
            assert_eq!((der.total, der.error()), (10.0 - 2.0 * collar, 0.0));
            let tally = tally_of(&single, &doubled, options(collar, skip));
            assert_eq!((tally.merged_reference, tally.merged_hypothesis), (0, 1));
            assert_eq!(Der::new(&tally, &mapping(&tally)).error(), 0.0);
        }
    }
    let Some(folder) = fixture("eval/voxconverse/test") else { return };
    for (uri, least) in [("optsn", 1), ("utial", 1)] {
        let rttm = rttm::read_file(&folder.join(format!("{uri}.rttm"))).unwrap();
        let reference = &rttm.recordings[uri];
        let tally = Tally::new(reference, reference, None, Options::default());
        assert!(tally.merged_reference >= least, "{uri} has overlapping turns of one speaker");
        let summed: f64 = reference.iter().map(|t| t.duration).sum();
        let der = Der::new(&tally, &mapping(&tally));
        assert!(der.total < summed - 0.005 && der.error() == 0.0, "{uri}: {} of {summed} s", der.total);
    }
}

#[test]
fn components_of_a_small_case() {
    // 0-10 a; 8-12 b; hypothesis x covers 0-7 and 9-12, y covers 5-6.
    let reference = [(0.0, 10.0, "a"), (8.0, 12.0, "b")];
    let hypothesis = [(0.0, 7.0, "x"), (9.0, 12.0, "x"), (5.0, 6.0, "y")];
    let der = der_of(&turns(&reference), &turns(&hypothesis), Options::default());
    assert_eq!(der, Der { total: 14.0, missed: 4.0, false_alarm: 1.0, confusion: 2.0 });
    let der = der_of(&turns(&reference), &turns(&hypothesis), options(0.0, true));
    assert_eq!(der, Der { total: 10.0, missed: 1.0, false_alarm: 1.0, confusion: 2.0 });
    let tally = tally_of(&reference, &hypothesis, Options::default());
    let jer = Jer::new(&tally, &mapping(&tally));
    // a-x shares 8 of 12, b-y shares nothing.
    assert!((jer.rate() - (1.0 - 8.0 / 12.0 + 1.0) / 2.0).abs() < 1e-12);
}

#[test]
fn uem_limits_what_is_scored() {
    let (reference, hypothesis) = (turns(&[(0.0, 10.0, "a")]), turns(&[(0.0, 4.0, "x"), (20.0, 30.0, "x")]));
    let regions = [Region { start: 2.0, end: 6.0 }, Region { start: 5.0, end: 8.0 }];
    let tally = Tally::new(&reference, &hypothesis, Some(&regions), Options::default());
    let der = Der::new(&tally, &mapping(&tally));
    assert_eq!(der, Der { total: 6.0, missed: 4.0, false_alarm: 0.0, confusion: 0.0 });
}

#[test]
fn silence_on_either_side() {
    let speech = turns(&[(0.0, 10.0, "a")]);
    assert_eq!(der_of(&[], &[], Options::default()).rate(), 0.0);
    assert_eq!(der_of(&[], &speech, Options::default()).rate(), 1.0);
    assert_eq!(der_of(&speech, &[], Options::default()).rate(), 1.0);
    let jer = |r: &[Turn], h: &[Turn]| {
        let tally = Tally::new(r, h, None, Options::default());
        Jer::new(&tally, &mapping(&tally)).rate()
    };
    assert_eq!((jer(&[], &[]), jer(&[], &speech), jer(&speech, &[])), (0.0, 1.0, 1.0));
}

#[test]
fn missing_and_extra_recordings_are_named() {
    let line = |uri| format!("SPEAKER {uri} 1 0 10 <NA> <NA> x <NA> <NA>\n");
    let reference = parse(&format!("{}{}", line("a"), line("b"))).unwrap();
    let hypothesis = parse(&format!("{}{}", line("b"), line("c"))).unwrap();
    let uem = parse_uem("b 1 0 5").unwrap();
    let report = score(&reference, &hypothesis, Some(&uem), Options::default());
    assert_eq!(
        (report.missing, report.extra, report.without_uem),
        (vec!["a".into()], vec!["c".into()], vec!["a".into()])
    );
    assert_eq!((report.der.total, report.der.missed), (15.0, 10.0));
    assert_eq!(report.rows[1].mapping, [("x".to_owned(), "x".to_owned())]);
}

// ---------------------------------------------------------------- properties

/// Turns on a grid of 10 ms with up to five speakers.
fn any_turns() -> impl Strategy<Value = Vec<Turn>> {
    let turn = (0..6_000_u32, 1..800_u32, 0..5_u8).prop_map(|(start, length, speaker)| Turn {
        start: f64::from(start) / 100.0,
        duration: f64::from(length) / 100.0,
        speaker: format!("s{speaker}"),
    });
    prop::collection::vec(turn, 0..40)
}

fn any_options() -> impl Strategy<Value = Options> {
    (0..50_u8, any::<bool>()).prop_map(|(collar, skip)| options(f64::from(collar) / 100.0, skip))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    #[test]
    fn der_ignores_names_order_and_splits(
        reference in any_turns(),
        hypothesis in any_turns(),
        options in any_options(),
        shift in 0..5_u8,
    ) {
        let expected = der_of(&reference, &hypothesis, options);
        let changed = |turns: &[Turn]| -> Vec<Turn> {
            let halves = turns.iter().rev().flat_map(|t| {
                let speaker = format!("{}", (t.speaker.as_bytes()[1] + shift) % 5);
                // Halves on the grid of the turns touch exactly.
                let half = (t.duration * 50.0).floor() / 100.0;
                let first = Turn { start: t.start, duration: half, speaker: speaker.clone() };
                [Turn { start: t.start + half, duration: t.duration - half, speaker }, first]
            });
            halves.collect()
        };
        prop_assert_eq!(der_of(&changed(&reference), &hypothesis, options), expected);
        prop_assert_eq!(der_of(&reference, &changed(&hypothesis), options), expected);
        prop_assert_eq!(der_of(&reference, &changed(&reference), options).error(), 0.0);
    }

    #[test]
    fn parts_add_up(reference in any_turns(), hypothesis in any_turns(), options in any_options()) {
        let tally = Tally::new(&reference, &hypothesis, None, options);
        let der = Der::new(&tally, &mapping(&tally));
        let reference_time: i64 = tally.reference_time.iter().sum();
        let hypothesis_time: i64 = tally.hypothesis_time.iter().sum();
        prop_assert_eq!(tally.matched + tally.missed, reference_time);
        prop_assert_eq!(tally.matched + tally.false_alarm, hypothesis_time);
        prop_assert!(der.confusion >= 0.0 && der.missed >= 0.0 && der.false_alarm >= 0.0);
        let rate = (der.missed + der.false_alarm + der.confusion) / der.total.max(1e-9);
        prop_assert!(der.total == 0.0 || (der.rate() - rate).abs() < 1e-12);
        // The mirror image swaps missed speech and false alarms.
        let mirror = Tally::new(&hypothesis, &reference, None, Options::default());
        let plain = Tally::new(&reference, &hypothesis, None, Options::default());
        prop_assert_eq!((mirror.missed, mirror.false_alarm), (plain.false_alarm, plain.missed));
        let jer = Jer::new(&tally, &mapping(&tally));
        prop_assert!((-1e-9..=1.0 + 1e-9).contains(&jer.rate()));
    }

    /// The mapping beats every other one-to-one mapping (all 120 are tried).
    #[test]
    fn mapping_is_optimal(reference in any_turns(), hypothesis in any_turns()) {
        let tally = Tally::new(&reference, &hypothesis, None, Options::default());
        let shared = |pair: &(usize, usize)| tally.shared.get(pair).copied().unwrap_or(0);
        let found: i64 = mapping(&tally).iter().map(shared).sum();
        let mut order = [0, 1, 2, 3, 4];
        let mut best = 0;
        permute(&mut order, 0, &mut |order| {
            best = best.max(order.iter().enumerate().map(|(r, &h)| shared(&(r, h))).sum());
        });
        prop_assert_eq!(found, best);
    }

    /// A file that was read and written once is written the same ever after.
    #[test]
    fn rttm_round_trips(turns in any_turns(), uri in "[a-zA-Z0-9._é李-]{1,12}") {
        let recordings = [(uri, turns)].into_iter().collect();
        let text = written(&Rttm { recordings, skipped: 0 });
        let again = parse(&text).unwrap();
        prop_assert_eq!(written(&again), text);
    }
}

/// Calls `each` with every order of `items`.
fn permute(items: &mut [usize; 5], fixed: usize, each: &mut impl FnMut(&[usize; 5])) {
    if fixed == items.len() {
        return each(items);
    }
    for i in fixed..items.len() {
        items.swap(fixed, i);
        permute(items, fixed + 1, each);
        items.swap(fixed, i);
    }
}

#[test]
fn ten_hours_with_twenty_thousand_turns_add_up() {
    let make = |offset: f64| -> Vec<Turn> {
        (0..20_000)
            .map(|i| {
                let start = 1.8 * f64::from(i) + offset;
                Turn::new(start, start + 2.2, format!("s{}", i * 7 % 20))
            })
            .collect()
    };
    let (reference, hypothesis) = (make(0.0), make(0.3));
    let der = der_of(&reference, &hypothesis, options(0.0, false));
    assert!((der.total - 20_000.0 * 2.2).abs() < 1e-3, "{}", der.total);
    // Every turn of the same speaker starts and ends 0.3 s later.
    assert!((der.missed + der.confusion - 20_000.0 * 0.3).abs() < 1e-3);
    assert!((der.false_alarm + der.confusion - 20_000.0 * 0.3).abs() < 1e-3);
}

/// The figures are pyannote.metrics' (DiarizationPurity, DiarizationCoverage) over the union of both extents.
#[test]
fn purity_and_coverage_equal_other_tools() {
    let (Some(hypotheses), Some(dev)) = (fixture("scoring/hyp"), fixture("eval/voxconverse/dev")) else {
        return;
    };
    let hypothesis = rttm::read(&hypotheses).unwrap();
    let mut reference = rttm::read(&dev).unwrap();
    reference.recordings.retain(|uri, _| hypothesis.recordings.contains_key(uri));
    let report = score(&reference, &hypothesis, None, Options::default());
    let row = |uri: &str| report.rows.iter().find(|row| row.uri == uri).unwrap().purity;
    for (found, purity, coverage) in [
        (row("afjiv"), 0.943_098_520_6, 0.949_110_320_3),
        (row("aisvi"), 0.955_868_211_6, 0.923_298_181_5),
        (row("akthc"), 0.819_527_590_1, 0.912_152_909_9),
        (report.purity, 0.916_004_825_6, 0.870_993_361_9),
    ] {
        assert!((found.purity() - purity).abs() < 1e-6, "{} {purity}", found.purity());
        assert!((found.coverage() - coverage).abs() < 1e-6, "{} {coverage}", found.coverage());
    }
}

#[test]
fn number_of_speakers_is_judged() {
    let recording = |speakers: usize| -> Vec<Turn> {
        (0..speakers).map(|s| Turn::new(s as f64, s as f64 + 0.5, format!("s{s}"))).collect()
    };
    let side = |counts: [usize; 4]| Rttm {
        recordings: counts.iter().enumerate().map(|(i, &n)| (format!("r{i}"), recording(n))).collect(),
        skipped: 0,
    };
    let report = score(&side([2, 3, 4, 5]), &side([2, 2, 5, 2]), None, Options::default());
    let errors: Vec<i64> = report.rows.iter().map(|row| row.speaker_error()).collect();
    assert_eq!(errors, [0, -1, 1, -3]);
    assert_eq!([0, 1, 2, 3].map(|error| report.speakers_off_by(error)), [1, 2, 0, 1]);
}

#[test]
fn confusion_timeline_of_a_small_case() {
    let reference = turns(&[(0.0, 4.0, "a"), (4.0, 6.0, "b"), (7.0, 8.0, "b")]);
    let hypothesis =
        turns(&[(0.0, 3.0, "x"), (3.5, 5.0, "x"), (5.0, 6.0, "y"), (6.0, 6.5, "y"), (7.0, 8.0, "y")]);
    let found: Vec<_> = confusion(&reference, &hypothesis, None, Options::default())
        .into_iter()
        .map(|i| (i.start, i.end, i.kind, i.reference.unwrap_or_default(), i.hypothesis.unwrap_or_default()))
        .collect();
    let interval = |start, end, kind, r: &str, h: &str| (start, end, kind, r.to_owned(), h.to_owned());
    assert_eq!(
        found,
        [
            interval(0.0, 3.0, Kind::Correct, "a", "x"),
            interval(3.0, 3.5, Kind::Missed, "a", ""),
            interval(3.5, 4.0, Kind::Correct, "a", "x"),
            interval(4.0, 5.0, Kind::Confusion, "b", "x"),
            interval(5.0, 6.0, Kind::Correct, "b", "y"),
            interval(6.0, 6.5, Kind::FalseAlarm, "", "y"),
            interval(7.0, 8.0, Kind::Correct, "b", "y"),
        ]
    );
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    /// What the confusion timeline shows is what DER counts.
    #[test]
    fn confusion_timeline_adds_up(reference in any_turns(), hypothesis in any_turns(), options in any_options()) {
        let der = der_of(&reference, &hypothesis, options);
        let intervals = confusion(&reference, &hypothesis, None, options);
        let sum = |kind: Kind| -> f64 {
            intervals.iter().filter(|i| i.kind == kind).map(|i| i.end - i.start).sum()
        };
        for (kind, expected) in [
            (Kind::Missed, der.missed),
            (Kind::FalseAlarm, der.false_alarm),
            (Kind::Confusion, der.confusion),
            (Kind::Correct, der.total - der.missed - der.confusion),
        ] {
            prop_assert!((sum(kind) - expected).abs() < 1e-6, "{kind:?} {} {expected}", sum(kind));
        }
        prop_assert!(intervals.is_sorted_by(|a, b| a.start <= b.start));
        prop_assert!(intervals.iter().all(|i| i.end > i.start));
    }
}
