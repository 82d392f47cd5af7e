//! The order of the modules: each may use only those that stand above it in `src/lib.rs`.

use std::path::{Path, PathBuf};

fn source() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src"))
}

fn rust_files(directory: &Path) -> Vec<PathBuf> {
    walkdir::WalkDir::new(directory)
        .into_iter()
        .map(|entry| entry.expect("readable source").into_path())
        .filter(|path| path.extension().is_some_and(|e| e == "rs"))
        .collect()
}

/// The modules in the order of `lib.rs`.
fn modules() -> Vec<String> {
    let text = std::fs::read_to_string(source().join("lib.rs")).expect("lib.rs");
    let names = text.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'));
    names.map(str::to_owned).collect()
}

/// Modules that `text` names in paths from the crate root.
fn used(text: &str) -> Vec<&str> {
    let end = |rest: &str| rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    text.lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .flat_map(|line| line.split("crate::").skip(1).map(move |rest| &rest[..end(rest)]))
        .collect()
}

#[test]
fn dependencies_point_upwards() {
    let modules = modules();
    assert!(modules.len() >= 10, "{modules:?}");
    let position = |name: &str| modules.iter().position(|m| m == name);
    for (index, module) in modules.iter().enumerate() {
        let files = rust_files(&source().join(module));
        assert!(!files.is_empty(), "{module} has no files");
        for file in files {
            let text = std::fs::read_to_string(&file).expect("readable source");
            for name in used(&text) {
                let target = position(name).unwrap_or_else(|| panic!("{}: crate::{name}", file.display()));
                assert!(target <= index, "{} uses {name}, which stands below {module}", file.display());
            }
        }
    }
}

#[test]
fn the_check_sees_a_forbidden_use() {
    assert_eq!(used("use crate::cli::args;\n// crate::app\nlet x = crate::app::jobs();"), ["cli", "app"]);
}

#[test]
fn only_the_launch_module_may_hold_unsafe_code() {
    for file in rust_files(source()) {
        let text = std::fs::read_to_string(&file).expect("readable source");
        let may = file.ends_with("backend/cuda/launch.rs");
        assert_eq!(text.contains("allow(unsafe_code)"), may, "{}", file.display());
    }
}
