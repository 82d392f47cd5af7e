//! From arguments to recordings.

use std::ffi::OsString;
use std::fs;

use speakrs_app::app::inputs::{Found, InputError, find};

use super::fakes::{at, folder};

fn found(arguments: &[String], recursive: bool) -> Found {
    find(&arguments.iter().map(OsString::from).collect::<Vec<_>>(), recursive)
}

/// Found paths relative to `root`.
fn paths(found: &Found, root: &tempfile::TempDir) -> Vec<String> {
    let relative =
        |path: &std::path::Path| path.strip_prefix(root.path()).unwrap().to_str().unwrap().to_owned();
    found.inputs.iter().map(|input| relative(&input.path)).collect()
}

#[test]
fn folders_give_visible_recordings_in_order() {
    let root = folder(&[
        ("b.wav", ""),
        ("a.MP3", ""),
        ("notes.txt", ""),
        (".hidden.wav", ""),
        ("sub/c.flac", ""),
        (".git/d.wav", ""),
    ]);
    let flat = found(&[at(&root, "")], false);
    assert_eq!(paths(&flat, &root), ["a.MP3", "b.wav"]);
    let deep = found(&[at(&root, "")], true);
    assert_eq!(paths(&deep, &root), ["a.MP3", "b.wav", "sub/c.flac"]);
    assert_eq!(deep.inputs[2].below.to_str(), Some("sub"));
    assert!(flat.failures.is_empty() && deep.failures.is_empty());
}

#[test]
fn patterns_are_expanded() {
    let root =
        folder(&[("b.wav", ""), ("a.wav", ""), (".c.wav", ""), ("sub/d.wav", ""), ("sub/x/e.wav", "")]);
    assert_eq!(paths(&found(&[at(&root, "*.wav")], false), &root), ["a.wav", "b.wav"]);
    assert_eq!(paths(&found(&[at(&root, "s?b/*.wav")], false), &root), ["sub/d.wav"]);
    assert_eq!(paths(&found(&[at(&root, "s*")], false), &root), ["sub/d.wav"]);
    let deep = found(&[at(&root, "**/*.wav")], false);
    assert_eq!(paths(&deep, &root), ["a.wav", "b.wav", "sub/d.wav", "sub/x/e.wav"]);
    assert_eq!(deep.inputs[3].below.to_str(), Some("sub/x"));
    assert_eq!(found(&[at(&root, "*.ogg")], false).empty.len(), 1);
}

#[test]
fn an_existing_path_wins_over_a_pattern() {
    let root = folder(&[("take[1].wav", ""), ("take1.wav", "")]);
    assert_eq!(paths(&found(&[at(&root, "take[1].wav")], false), &root), ["take[1].wav"]);
    fs::remove_file(root.path().join("take[1].wav")).unwrap();
    assert_eq!(paths(&found(&[at(&root, "take[1].wav")], false), &root), ["take1.wav"]);
}

#[test]
fn lists_name_files_and_folders() {
    let root = folder(&[("a b.wav", ""), ("sub/c.wav", "")]);
    let text = format!(
        "\u{feff}{}\r\n\n# comment\n{}\n{}\n",
        at(&root, "a b.wav"),
        at(&root, "sub"),
        at(&root, "no")
    );
    fs::write(root.path().join("list.txt"), text).unwrap();
    let found_all = found(&[format!("@{}", at(&root, "list.txt"))], false);
    assert_eq!(paths(&found_all, &root), ["a b.wav", "sub/c.wav"]);
    assert!(matches!(found_all.failures[..], [(_, InputError::Missing)]));

    fs::write(root.path().join("latin.txt"), b"caf\xe9.wav").unwrap();
    fs::write(root.path().join("empty.txt"), "# nothing\n").unwrap();
    let odd = ["latin.txt", "empty.txt", "none.txt"].map(|name| format!("@{}", at(&root, name)));
    let odd = found(&odd, false);
    assert!(matches!(odd.failures[..], [(_, InputError::ListText), (_, InputError::Missing)]));
    assert_eq!(odd.empty.len(), 1);
}

#[test]
fn each_recording_is_taken_once() {
    let root = folder(&[("a.wav", ""), ("sub/b.wav", "")]);
    let twice = [at(&root, "a.wav"), at(&root, "sub/../a.wav"), at(&root, "*.wav"), at(&root, "")];
    assert_eq!(paths(&found(&twice, true), &root), ["a.wav", "sub/b.wav"]);
}

#[cfg(unix)]
#[test]
fn links_are_followed_but_not_in_circles() {
    use std::os::unix::fs::symlink;
    let root = folder(&[("real/a.wav", ""), ("other/b.wav", "")]);
    symlink(root.path().join("other"), root.path().join("real/other")).unwrap();
    symlink(root.path().join("real"), root.path().join("real/loop")).unwrap();
    symlink(root.path().join("real"), root.path().join("other/loop")).unwrap();
    symlink(root.path().join("other/b.wav"), root.path().join("real/c.wav")).unwrap();
    symlink("nowhere", root.path().join("real/notes")).unwrap();
    symlink("nowhere", root.path().join("real/gone.wav")).unwrap();
    let all = found(&[at(&root, "real")], true);
    // b.wav goes by the first name it is met under.
    assert_eq!(paths(&all, &root), ["real/a.wav", "real/c.wav"]);
    assert!(matches!(&all.failures[..], [(path, InputError::Missing)] if path.ends_with("gone.wav")));
    assert_eq!(paths(&found(&[at(&root, "real/**/*.wav")], false), &root), ["real/a.wav", "real/c.wav"]);
}

#[cfg(unix)]
#[test]
fn names_that_are_not_text_work() {
    use std::os::unix::ffi::OsStringExt;
    let root = folder(&[]);
    let name = OsString::from_vec(b"caf\xe9 \xf0\x9f\x8e\x99.wav".to_vec());
    let path = root.path().join(&name);
    fs::write(&path, "").unwrap();
    assert_eq!(find(&[path.clone().into()], false).inputs[0].path, path);
    assert_eq!(found(&[at(&root, "*.wav")], false).inputs[0].path, path);
    assert_eq!(found(&[at(&root, "")], false).inputs[0].path, path);
}

#[test]
fn devices_and_missing_files_are_refused() {
    let all = found(&["/dev/null".into(), "-".into(), "no/such.wav".into()], false);
    if cfg!(unix) {
        assert!(matches!(all.failures[0].1, InputError::NotAFile));
    }
    assert!(matches!(all.failures[1].1, InputError::Missing));
    assert!(matches!(all.failures[2].1, InputError::Missing));
}
