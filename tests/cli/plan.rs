//! From arguments to a checked plan.

use speakrs_app::app::jobs::uri;
use speakrs_app::cli::plan::Plan;
use speakrs_app::pipeline::Mode;

use super::fakes::{at, bare, folder, names, plan};

fn outputs(plan: &Plan) -> Vec<String> {
    bare(plan.jobs.iter().flat_map(|job| job.outputs.iter().map(|output| output.path.clone())))
}

#[test]
fn results_go_beside_the_recording_or_into_a_folder() {
    let root = folder(&[("in/a.wav", ""), ("in/sub/b.wav", "")]);
    let (beside, _) = plan(&[&at(&root, "in/a.wav"), "--format", "json,rttm,json"]).unwrap();
    assert_eq!(outputs(&beside), ["a.json", "a.rttm"]);
    assert_eq!(beside.jobs[0].outputs[0].path, root.path().join("in/a.json"));

    let out = at(&root, "new/out");
    let (kept, refusals) = plan(&[&at(&root, "in"), "--recursive", "--output-dir", &out]).unwrap();
    assert!(refusals.is_empty());
    assert_eq!(kept.jobs[0].outputs[0].path, root.path().join("new/out/a.rttm"));
    assert_eq!(kept.jobs[1].outputs[0].path, root.path().join("new/out/sub/b.rttm"));
    assert!(root.path().join("new/out/sub").is_dir());
    assert_eq!(names(root.path()), ["in/a.wav", "in/sub/b.wav"], "nothing is left by the checks");
}

#[test]
fn colliding_names_keep_their_extension() {
    let root = folder(&[("a.mp3", ""), ("a.wav", ""), ("a.wav.flac", ""), ("b.wav", "")]);
    let (plan, refusals) = plan(&[&at(&root, "")]).unwrap();
    assert!(refusals.is_empty());
    assert_eq!(outputs(&plan), ["a.mp3.rttm", "a.wav.rttm", "a.wav.flac.rttm", "b.rttm"]);
    assert_eq!(plan.jobs[0].uri, "a.mp3");
}

#[test]
fn names_that_collide_in_spite_of_it_fail() {
    let root = folder(&[("x/a.wav", ""), ("y/a.wav", ""), ("b.wav", "")]);
    let files = ["x/a.wav", "y/a.wav", "b.wav"].map(|name| at(&root, name));
    let (plan, refusals) =
        plan(&[&files[0], &files[1], &files[2], "--output-dir", &at(&root, "out")]).unwrap();
    assert_eq!(outputs(&plan), ["b.rttm"]);
    assert_eq!((refusals.len(), plan.failed), (2, 2));
    assert!(refusals[0].reason.contains("y/a.wav"), "{}", refusals[0].reason);
}

#[test]
fn existing_results() {
    let root = folder(&[("a.wav", ""), ("a.rttm", "mine"), ("b.wav", "")]);
    let both = ["--format", "rttm,json"];
    let all = at(&root, "");

    let (refuse, refusals) = plan(&[&all]).unwrap();
    assert_eq!((outputs(&refuse), refuse.failed), (vec!["b.rttm".to_owned()], 1));
    assert!(refusals[0].reason.contains("--skip-existing"), "{}", refusals[0].reason);

    let (replace, _) = plan(&[&all, "--overwrite"]).unwrap();
    assert_eq!(outputs(&replace), ["a.rttm", "b.rttm"]);

    let (skip, _) = plan(&[&all, "--skip-existing"]).unwrap();
    assert_eq!((outputs(&skip), skip.skipped.len(), skip.failed), (vec!["b.rttm".to_owned()], 1, 0));

    let (partial, _) = plan(&[&all, "--skip-existing", both[0], both[1]]).unwrap();
    assert_eq!(outputs(&partial), ["a.json", "b.rttm", "b.json"]);
}

#[test]
fn a_result_that_cannot_be_is_found_at_once_and_does_not_stop_the_others() {
    let root = folder(&[("a.wav", ""), ("a.rttm/x", ""), ("b.wav", "")]);
    let root_path = at(&root, "");
    for flags in [&[][..], &["--overwrite"], &["--skip-existing"]] {
        let all = [&[root_path.as_str(), "--format", "rttm,json"], flags].concat();
        let (plan, refusals) = plan(&all).unwrap();
        assert_eq!(outputs(&plan), ["a.json", "b.rttm", "b.json"]);
        assert!(plan.jobs[0].incomplete && !plan.jobs[1].incomplete);
        assert_eq!((refusals.len(), plan.failed), (1, 0), "counted when the rest of it is done");
    }
    let (plan, _) = plan(&[&at(&root, "a.wav")]).unwrap();
    assert_eq!((plan.jobs.len(), plan.failed), (0, 1));
}

#[test]
fn a_folder_that_cannot_be_is_found_at_once() {
    let root = folder(&[("a.wav", ""), ("file", "")]);
    let (plan, refusals) = plan(&[&at(&root, "a.wav"), "--output-dir", &at(&root, "file/out")]).unwrap();
    assert_eq!((plan.jobs.len(), plan.failed), (0, 1));
    assert!(refusals[0].reason.contains("folder"), "{}", refusals[0].reason);
}

#[test]
fn a_recording_is_never_replaced_by_a_result() {
    let root = folder(&[("a.wav", ""), ("a.rttm", "audio by another name")]);
    let files = ["a.wav", "a.rttm"].map(|name| at(&root, name));
    let (plan, refusals) = plan(&[&files[0], &files[1], "--overwrite"]).unwrap();
    assert_eq!(outputs(&plan), ["a.wav.rttm", "a.rttm.rttm"]);
    assert!(refusals.is_empty());

    let root = folder(&[("in/sub/a.wav", ""), ("out/sub/a.json", "audio by another name")]);
    let [input, output, other] = ["in", "out", "out/sub/a.json"].map(|name| at(&root, name));
    let typed = [&input, "--recursive", &other, "--output-dir", &output, "--format", "json", "--overwrite"];
    let (plan, refusals) = super::fakes::plan(&typed).unwrap();
    assert_eq!(plan.jobs[0].outputs[0].path, root.path().join("out/a.json"));
    assert!(refusals[0].reason.contains("would replace"), "{}", refusals[0].reason);
}

#[test]
fn settings() {
    let root = folder(&[("a.wav", "")]);
    let file = at(&root, "a.wav");
    let settings = |flags: &[&str]| {
        let typed = [&[file.as_str()], flags].concat();
        plan(&typed).map(|(plan, _)| plan.settings(Mode::Fast)).map_err(|error| error.to_string())
    };
    let plain = settings(&[]).unwrap();
    assert_eq!((plain.mode, plain.step, plain.speakers.num), (Mode::Fast, 1.0, None));
    assert_eq!(settings(&["--mode", "accurate"]).unwrap().mode, Mode::Accurate);
    for (typed, step) in [("0.1", 0.1), ("10", 10.0), ("2.5", 2.5), ("0.0000625", 0.0000625)] {
        assert_eq!(settings(&["--step", typed]).unwrap().step, step);
    }
    for typed in ["0", "-1", "10.001", "nan", "inf", "0.33333", "0.00001"] {
        assert!(settings(&["--step", typed]).unwrap_err().contains("--step"), "{typed}");
    }
    let speakers = |flags: &[&str]| settings(flags).unwrap().speakers;
    assert_eq!(speakers(&["--num-speakers", "3"]).num, Some(3));
    let bounds = speakers(&["--min-speakers", "2", "--max-speakers", "2"]);
    assert_eq!((bounds.num, bounds.min, bounds.max), (None, Some(2), Some(2)));
    assert_eq!(speakers(&["--min-speakers", "4"]).min, Some(4));
    assert_eq!(speakers(&["--max-speakers", "4"]).max, Some(4));
    assert!(settings(&["--min-speakers", "3", "--max-speakers", "2"]).is_err());
}

#[test]
fn devices() {
    let check = |device| plan(&["x", "--device", device]).map(drop);
    for device in ["auto", "cpu", "cuda", "cuda:1"] {
        assert!(check(device).is_ok(), "{device}");
    }
    for device in ["gpu", "cuda:", "cuda:x", "cuda:-1", "cpu:0", ""] {
        assert!(check(device).is_err(), "{device}");
    }
}

#[test]
fn uris_hold_no_white_space_and_stay_text() {
    for (name, expected) in [
        ("mono vocals\tx", "mono_vocals_x"),
        ("1505728826.11848331", "1505728826.11848331"),
        ("007", "007"),
        ("1e5", "1e5"),
        ("e\u{301}_日本⚒\u{fe0f}", "e\u{301}_日本⚒\u{fe0f}"),
        ("a\u{a0}b\u{3000}c\u{7}d", "a_b_c_d"),
    ] {
        assert_eq!(uri(name.as_ref()), expected);
    }
}
