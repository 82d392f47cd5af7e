//! Where the compiler library comes from: the environment, else `target/nvrtc`, filled with pip on the first use.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::nvrtc::Nvrtc;

/// Names the library instead.
pub const VARIABLE: &str = "SPEAKRS_APP_NVRTC";
/// The version that the prebuilt files are made with.
pub const VERSION: (i32, i32) = (12, 9);
const LIBRARY: &str = "nvidia/cuda_nvrtc/lib/libnvrtc.so.12";
const REQUIREMENTS: &str = "kernels/build/requirements.txt";

/// The library of the compiler for the repository `root`, installed if need be.
///
/// # Errors
/// If it is absent and cannot be installed, or has another version.
pub fn library(root: &Path) -> Result<PathBuf> {
    let path = match std::env::var_os(VARIABLE) {
        Some(path) => PathBuf::from(path),
        None => installed(root)?,
    };
    open(&path)?;
    // A bare name is looked up by the system; a path must not depend on the folder.
    Ok(path.canonicalize().unwrap_or(path))
}

/// Opens the compiler in the library `path`.
///
/// # Errors
/// If it cannot be loaded or has another version.
pub fn open(path: &Path) -> Result<Nvrtc> {
    let nvrtc = Nvrtc::open(path).with_context(|| format!("NVRTC {}", path.display()))?;
    let (major, minor) = nvrtc.version()?;
    if (major, minor) != VERSION {
        bail!("{} is NVRTC {major}.{minor}; the kernels need {}.{}", path.display(), VERSION.0, VERSION.1);
    }
    Ok(nvrtc)
}

/// The library in the target folder, installed there if it is absent.
fn installed(root: &Path) -> Result<PathBuf> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let folder = target.join("nvrtc");
    let library = folder.join(LIBRARY);
    if library.is_file() {
        return Ok(library);
    }
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        bail!(
            "NVRTC is installed on Linux x86-64 only; elsewhere {VARIABLE} must name the library of 12.9.86"
        );
    }
    eprintln!("installing NVRTC into {}", folder.display());
    let status = Command::new("python3")
        .args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--no-deps",
            "--require-hashes",
        ])
        .args(["--upgrade", "--target"])
        .arg(&folder)
        .arg("-r")
        .arg(root.join(REQUIREMENTS))
        .status();
    match status {
        Err(error) => bail!(
            "python3 cannot be run ({error}); it installs NVRTC with pip, or {VARIABLE} names the library of 12.9.86"
        ),
        Ok(status) if !status.success() || !library.is_file() => {
            bail!(
                "`python3 -m pip install -r {REQUIREMENTS}` failed; {VARIABLE} can name the library of 12.9.86"
            )
        }
        Ok(_) => Ok(library),
    }
}
