//! Reading of numpy captures.

use std::path::{Path, PathBuf};

/// A file or folder of the shared reference data, or `None` after saying that it is absent. Absence is an error where
/// `CI` is set.
pub fn shared(relative: &str) -> Option<PathBuf> {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../shared")).join(relative);
    if path.exists() {
        return Some(path);
    }
    assert!(std::env::var_os("CI").is_none(), "{} is required here", path.display());
    eprintln!("SKIPPED: {} is absent", path.display());
    None
}

/// Values of a `.npy` file of any number type, in C order.
pub fn read_f32(path: &Path) -> Vec<f32> {
    let bytes = std::fs::read(path).expect("readable");
    let file = npyz::NpyFile::new(&bytes[..]).expect("npy");
    match file.dtype().descr().as_str() {
        "'<f4'" => file.into_vec().expect("f4"),
        "'|u1'" => file.into_vec::<u8>().expect("u1").into_iter().map(f32::from).collect(),
        "'<f8'" => file.into_vec::<f64>().expect("f8").into_iter().map(|v| v as f32).collect(),
        other => panic!("{}: {other}", path.display()),
    }
}
