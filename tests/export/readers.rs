//! Results read back by libraries in Python that others wrote for these formats (`validate.py`).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::json;
use speakrs_app::app::export::FORMATS;

use super::{Case, cases, recording};

/// Longer recordings are not made, in seconds.
const LONGEST: f64 = 1000.0;

#[test]
fn readers_of_others_find_what_was_written() {
    let python = match python() {
        Ok(python) => python,
        Err(reason) => return eprintln!("SKIPPED: no Python with tests/export/requirements.txt: {reason}"),
    };
    let root = tempfile::tempdir().unwrap();
    for (number, case) in cases().iter().enumerate() {
        let folder = root.path().join(format!("{number:02}"));
        fs::create_dir(&folder).unwrap();
        write(case, &folder);
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/export/validate.py");
    let output = run(Command::new(python).arg(script).arg(root.path())).unwrap_or_else(|e| panic!("{e}"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(text.trim(), format!("{} results agree", cases().len()));
}

/// Writes `case` in every format, and what should be found in them.
fn write(case: &Case, folder: &Path) {
    let recorded = case.duration < LONGEST;
    let sound = folder.join("sound.wav");
    if recorded {
        recording(&sound, (case.duration * 16_000.0) as usize);
    }
    for format in FORMATS.iter().filter(|format| recorded || format.name != "wav") {
        let result = folder.join(format!("result.{}", format.extension));
        case.write(format.name, &sound, &result, false).unwrap();
    }
    let milliseconds = |seconds: f64| (seconds * 1000.0).round() as u64;
    let turns: Vec<_> =
        case.turns.iter().map(|&(s, e, n)| json!([milliseconds(s), milliseconds(e), n])).collect();
    let expected = json!({
        "file": case.file,
        "duration": milliseconds(case.duration),
        "speakers": case.speakers,
        "turns": turns,
    });
    fs::write(folder.join("case.json"), expected.to_string()).unwrap();
}

/// The interpreter of a virtual environment with the readers, which is made once in the target folder.
fn python() -> Result<PathBuf, String> {
    let requirements = include_str!("requirements.txt");
    let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join("export-readers");
    let (interpreter, below) =
        if cfg!(windows) { ("python", "Scripts/python.exe") } else { ("python3", "bin/python") };
    let list = |venv: &Path| venv.join("requirements.txt");
    if fs::read_to_string(list(&kept)).is_ok_and(|text| text == requirements) {
        return Ok(kept.join(below));
    }
    // Under another name until it is complete; another test process may be making one, too.
    let new = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).map_err(|error| error.to_string())?;
    let venv = new.path().join("venv");
    run(Command::new(interpreter).args(["-m", "venv"]).arg(&venv))?;
    fs::write(list(&venv), requirements).map_err(|error| error.to_string())?;
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"];
    run(Command::new(venv.join(below)).args(pip).arg(list(&venv)))?;
    let _ = fs::remove_dir_all(&kept);
    let _ = fs::rename(&venv, &kept);
    Ok(kept.join(below))
}

fn run(command: &mut Command) -> Result<Output, String> {
    let output = command.output().map_err(|error| format!("{}: {error}", command.get_program().display()))?;
    match output.status.success() {
        true => Ok(output),
        false => Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr))),
    }
}
