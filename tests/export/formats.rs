//! The content of each format, read back by readers that are not ours where there are any in Rust.

use std::collections::HashSet;

use speakrs_app::app::document::{Document, Edit};
use speakrs_app::app::export::{FORMATS, Report, write_one};
use speakrs_app::audio::SourceFacts;

use super::{Case, cases};

fn two() -> Case {
    Case::new(
        "a b.wav",
        4000.0,
        &["Zoë \"Z\" <x>", "Bob"],
        &[(0.0312, 1.5004, 0), (1.0, 1.0003, 1), (1.0, 3723.0456, 1), (2.0, 2.5, 0)],
    )
}

#[test]
fn csv() {
    assert_eq!(
        two().text("csv"),
        "recording,speaker,start,end,duration\r\n\
         a b.wav,\"Zoë \"\"Z\"\" <x>\",0.031,1.500,1.469\r\n\
         a b.wav,Bob,1.000,3723.046,3722.046\r\n\
         a b.wav,\"Zoë \"\"Z\"\" <x>\",2.000,2.500,0.500\r\n"
    );
}

#[test]
fn srt() {
    assert_eq!(
        two().text("srt"),
        "1\n00:00:00,031 --> 00:00:01,500\nZoë \"Z\" ‹x›:\n\n\
         2\n00:00:01,000 --> 01:02:03,046\nBob:\n\n\
         3\n00:00:02,000 --> 00:00:02,500\nZoë \"Z\" ‹x›:\n\n"
    );
}

#[test]
fn vtt() {
    let zoe = "<v Zoë \"Z\" &lt;x&gt;>Zoë \"Z\" &lt;x&gt;</v>";
    assert_eq!(
        two().text("vtt"),
        format!(
            "WEBVTT\n\n00:00:00.031 --> 00:00:01.500\n{zoe}\n\n\
             00:00:01.000 --> 01:02:03.046\n<v Bob>Bob</v>\n\n\
             00:00:02.000 --> 00:00:02.500\n{zoe}\n"
        )
    );
}

#[test]
fn audacity() {
    assert_eq!(
        two().text("audacity"),
        "0.031000\t1.500000\tZoë \"Z\" <x>\n1.000000\t3723.046000\tBob\n2.000000\t2.500000\tZoë \"Z\" <x>\n"
    );
}

#[test]
fn textgrid() {
    let case = Case::new("a.wav", 2.5, &["Al \"A\"", "Bob"], &[(0.0, 1.25, 0), (1.0, 2.0, 1)]);
    let interval = |number: usize, xmin: f64, xmax: f64, text: &str| {
        format!(
            "        intervals [{number}]:\n            xmin = {xmin}\n            xmax = {xmax}\n            text = \"{text}\"\n"
        )
    };
    let tier = |number: usize, name: &str, count: usize| {
        format!(
            "    item [{number}]:\n        class = \"IntervalTier\"\n        name = \"{name}\"\n        xmin = 0\n        xmax = 2.5\n        intervals: size = {count}\n"
        )
    };
    let head =
        "File type = \"ooTextFile\"\nObject class = \"TextGrid\"\n\nxmin = 0\nxmax = 2.5\ntiers? <exists>\n";
    let expected = [
        format!("{head}size = 2\nitem []:\n"),
        tier(1, "Al \"\"A\"\"", 2),
        interval(1, 0.0, 1.25, "Al \"\"A\"\""),
        interval(2, 1.25, 2.5, ""),
        tier(2, "Bob", 3),
        interval(1, 0.0, 1.0, ""),
        interval(2, 1.0, 2.0, "Bob"),
        interval(3, 2.0, 2.5, ""),
    ];
    assert_eq!(case.text("textgrid"), expected.concat());
    let silence = Case::new("a.wav", 2.5, &[], &[]).text("textgrid");
    let expected =
        [format!("{head}size = 1\nitem []:\n"), tier(1, "no speech", 1), interval(1, 0.0, 2.5, "")];
    assert_eq!(silence, expected.concat());
}

#[test]
fn eaf() {
    let case = Case::new(
        "a & b.wav",
        9.0,
        &["A<>&\"'", "B"],
        &[(0.0, 2.0, 0), (1.0, 3.0, 1), (1.5, 2.5, 0), (2.5, 4.0, 0)],
    );
    let text = case.text("eaf");
    assert!(text.starts_with("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<ANNOTATION_DOCUMENT "), "{text}");
    let xml = roxmltree::Document::parse(&text).unwrap();
    let root = xml.root_element();
    assert_eq!(
        (root.attribute("FORMAT"), root.attribute("DATE")),
        (Some("3.0"), Some("1970-01-01T00:00:00Z"))
    );
    let children: Vec<&str> =
        root.children().filter(|n| n.is_element()).map(|n| n.tag_name().name()).collect();
    assert_eq!(children, ["HEADER", "TIME_ORDER", "TIER", "TIER", "LINGUISTIC_TYPE"], "the schema's order");
    let all = |name: &'static str| xml.descendants().filter(move |n| n.has_tag_name(name));
    let media = all("MEDIA_DESCRIPTOR").next().unwrap();
    assert_eq!(media.attribute("RELATIVE_MEDIA_URL"), Some("./a & b.wav"));
    assert_eq!(media.attribute("MIME_TYPE"), Some("audio/x-wav"));
    let times: Vec<u64> =
        all("TIME_SLOT").map(|slot| slot.attribute("TIME_VALUE").unwrap().parse().unwrap()).collect();
    assert_eq!(times, [0, 1000, 2500, 2500, 3000, 4000], "ascending");
    let time = |id: &str| {
        let slot = all("TIME_SLOT").find(|slot| slot.attribute("TIME_SLOT_ID") == Some(id)).unwrap();
        slot.attribute("TIME_VALUE").unwrap().parse::<u64>().unwrap()
    };
    let mut turns = Vec::new();
    for tier in all("TIER") {
        for node in tier.descendants().filter(|n| n.has_tag_name("ALIGNABLE_ANNOTATION")) {
            let at = |name: &str| time(node.attribute(name).unwrap());
            let value = node.descendants().find(|n| n.has_tag_name("ANNOTATION_VALUE")).unwrap();
            assert_eq!(value.text(), tier.attribute("TIER_ID"));
            turns.push((tier.attribute("TIER_ID").unwrap(), at("TIME_SLOT_REF1"), at("TIME_SLOT_REF2")));
        }
    }
    assert_eq!(turns, [("A<>&\"'", 0, 2500), ("A<>&\"'", 2500, 4000), ("B", 1000, 3000)]);
}

#[test]
fn eaf_identities_are_unique_and_refer_to_what_is_there() {
    for case in cases() {
        let text = case.text("eaf");
        let xml = roxmltree::Document::parse(&text).unwrap_or_else(|e| panic!("{}: {e}", case.file));
        let mut seen: HashSet<&str> = HashSet::new();
        for name in ["TIME_SLOT_ID", "ANNOTATION_ID", "TIER_ID"] {
            for id in xml.descendants().filter_map(|node| node.attribute(name)) {
                assert!(seen.insert(id), "{}: {id} twice", case.file);
            }
        }
        for name in ["TIME_SLOT_REF1", "TIME_SLOT_REF2"] {
            for id in xml.descendants().filter_map(|node| node.attribute(name)) {
                assert!(seen.contains(id), "{}: {id} is nowhere", case.file);
            }
        }
    }
}

#[test]
fn a_turn_never_ends_before_it_starts_and_turns_too_short_for_rttm_are_left_out() {
    let tiny = [(0.0, 0.0005, 0), (0.0006, 0.0013, 0), (0.5, 0.5004, 0), (0.9994, 1.0, 0)];
    let case = Case::new("a.wav", 1.0, &["A"], &tiny);
    let rows: Vec<String> = case.text("csv").lines().skip(1).map(|row| row.replace("a.wav,A,", "")).collect();
    assert_eq!(rows, ["0.000,0.001,0.001", "0.000,0.001,0.001", "0.999,1.000,0.001"]);
    assert_eq!(case.text("rttm").lines().count(), rows.len());
    let last = Case::new("a.wav", 1.0004, &["A"], &[(0.9998, 1.0004, 0)]).text("textgrid");
    assert!(last.ends_with("xmin = 0.999\n            xmax = 1\n            text = \"A\"\n"), "{last}");
}

#[test]
fn rows_without_speech() {
    let silence = Case::new("a.wav", 1.0, &[], &[]);
    assert_eq!(silence.text("csv"), "recording,speaker,start,end,duration\r\n");
    assert_eq!(silence.text("srt"), "");
    assert_eq!(silence.text("vtt"), "WEBVTT\n");
    assert_eq!(silence.text("audacity"), "");
}

#[test]
fn results_do_not_depend_on_the_order_of_turns() {
    for case in cases() {
        let mut turned = case.clone();
        turned.turns.reverse();
        for format in ["csv", "srt", "vtt", "audacity", "textgrid", "eaf"] {
            assert_eq!(case.text(format), turned.text(format), "{format} of {}", case.file);
        }
    }
}

#[test]
fn edited_documents_can_be_exported() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("a.wav");
    super::recording(&path, 16_000);
    let case = Case::new("a.wav", 1.0, &["SPEAKER_00", "SPEAKER_01"], &[(0.0, 0.5, 0), (0.5, 0.75, 1)]);
    let mut document = Document::new(case.diarization(), SourceFacts::default());
    let speaker = document.speakers()[0].id;
    document.apply(Edit::Rename { speaker, name: "Grace Hopper".into() }).unwrap();
    let diarization = document.diarization();
    let report =
        Report { path: &path, file: "a.wav", uri: "a", diarization: &diarization, source: document.source() };
    for format in FORMATS {
        let result = root.path().join(format.extension);
        write_one(format, &report, &result, false).unwrap();
        let text = match result.is_dir() {
            true => {
                let names = std::fs::read_dir(result).unwrap().map(|entry| entry.unwrap().file_name());
                names.map(|name| name.to_string_lossy().into_owned()).collect::<Vec<_>>().join("\n")
            }
            false => std::fs::read_to_string(result).unwrap(),
        };
        let name = if format.name == "rttm" { "Grace_Hopper" } else { "Grace Hopper" };
        assert!(text.contains(name) && text.contains("SPEAKER_01"), "{}:\n{text}", format.name);
        assert!(!text.contains("SPEAKER_00"), "{}:\n{text}", format.name);
    }
}
