//! The prebuilt kernels: they belong to the sources, and every GPU gets the code that it runs.

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use speakrs_app::backend::cuda::artifacts::{Architecture, ArtifactError, Artifacts, Code};

const ANYWHERE: &str = "pooling.cu";
const HOPPER_ONLY: &str = "conv_wgmma.cu";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels")
}

fn manifest() -> toml::Table {
    let text = std::fs::read_to_string(folder().join("prebuilt/manifest.toml")).expect("manifest");
    text.parse().expect("TOML")
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn artifacts() -> Artifacts {
    Artifacts::load().expect("the embedded manifest")
}

fn forced(architecture: &str) -> Artifacts {
    artifacts().forced(architecture.parse().expect("architecture")).expect("not too old")
}

#[test]
fn sources_equal_the_manifest() {
    let manifest = manifest();
    let known = manifest["sources"].as_table().expect("table");
    let mut found = 0;
    for directory in ["", "common/"] {
        for entry in std::fs::read_dir(folder().join(directory)).expect("kernels") {
            let path = entry.expect("entry").path();
            if path.extension().is_some_and(|e| e == "cu" || e == "cuh" || e == "h") {
                let name = format!("{directory}{}", path.file_name().expect("name").to_string_lossy());
                let mut text = std::fs::read(&path).expect("source");
                text.retain(|&byte| byte != b'\r');
                let hash = known.get(&name).and_then(toml::Value::as_str);
                assert_eq!(hash, Some(sha256(&text).as_str()), "{name} changed; run `cargo kernels build`");
                found += 1;
            }
        }
    }
    assert_eq!(found, known.len(), "sources are gone; run `cargo kernels build`");
}

#[test]
fn packs_equal_the_manifest() {
    let manifest = manifest();
    let packs = manifest["pack"].as_array().expect("array");
    assert_eq!(packs.len(), 9);
    for pack in packs {
        let file = pack["file"].as_str().expect("string");
        let bytes = std::fs::read(folder().join("prebuilt").join(file)).expect("pack");
        assert_eq!(pack["sha256"].as_str(), Some(sha256(&bytes).as_str()), "{file}");
        assert_eq!(pack["bytes"].as_integer(), i64::try_from(bytes.len()).ok(), "{file}");
        assert_eq!(
            pack["inputs"], packs[0]["inputs"],
            "{file} is of another build; run `cargo kernels build`"
        );
    }
}

#[test]
fn every_image_decompresses_and_holds_its_entries() {
    // A GPU that gets the architecture of this name.
    let device = |name: &str| match name {
        "sm_90a" => (9, 0),
        "sm_100" => (10, 0),
        "sm_120" => (12, 0),
        "compute_75" | "compute_80" => (11, 0),
        name => (name[3..4].parse().expect("digit"), name[4..].parse().expect("digit")),
    };
    let (plain, lowest) = (artifacts(), forced("7.5"));
    assert_eq!(plain.architectures().count(), 9);
    for architecture in plain.architectures() {
        let artifacts = if architecture == "compute_75" { &lowest } else { &plain };
        assert!(plain.files(architecture).count() >= 3, "{architecture}");
        for file in plain.files(architecture) {
            let image = artifacts.image(device(architecture), file).expect("image");
            assert_eq!(image.architecture, architecture, "{file}");
            let bytes = match image.code {
                Code::Cubin(bytes) => {
                    assert!(bytes.starts_with(b"\x7fELF"));
                    bytes
                }
                Code::Ptx(text) => {
                    assert!(text.contains(".target sm_") && !text.contains('\0'));
                    text.as_bytes()
                }
            };
            let entries = plain.entries(architecture, file);
            assert!(!entries.is_empty());
            for entry in entries {
                let name = entry.name.as_bytes();
                assert!(
                    bytes.windows(name.len()).any(|part| part == name),
                    "{architecture} {file} {}",
                    entry.name
                );
                let assembled = matches!(image.code, Code::Cubin(_));
                assert_eq!(
                    entry.registers.is_some_and(|n| (1..=255).contains(&n)),
                    assembled,
                    "{}",
                    entry.name
                );
            }
        }
    }
}

#[test]
fn a_gpu_gets_the_best_code_that_it_runs() {
    let artifacts = artifacts();
    let cases = [
        ((7, 5), "sm_75"),
        ((8, 0), "sm_80"),
        ((8, 6), "sm_86"),
        ((8, 7), "sm_86"),
        ((8, 9), "sm_89"),
        ((9, 0), "sm_90a"),
        ((10, 0), "sm_100"),
        ((10, 3), "sm_100"),
        ((11, 0), "compute_80"),
        ((12, 0), "sm_120"),
        ((12, 1), "sm_120"),
        ((13, 0), "compute_80"),
    ];
    for (capability, expected) in cases {
        let image = artifacts.image(capability, ANYWHERE).expect("image");
        assert_eq!(image.architecture, expected, "{capability:?}");
        let hopper = artifacts.image(capability, HOPPER_ONLY);
        assert_eq!(hopper.is_ok(), capability == (9, 0), "{capability:?}");
    }
}

#[test]
fn what_cannot_run_is_refused() {
    let artifacts = artifacts();
    let message =
        |result: Result<_, ArtifactError>| result.map(|_: Architecture| ()).unwrap_err().to_string();
    let refused = |capability, file| artifacts.image(capability, file).expect_err("refused").to_string();
    assert_eq!(refused((7, 0), ANYWHERE), "compute capability 7.0 is too old; the kernels need 7.5 or newer");
    assert_eq!(refused((8, 9), HOPPER_ONLY), "conv_wgmma.cu has no code for compute capability 8.9");
    assert_eq!(refused((8, 9), "no.cu"), "no.cu has no code for compute capability 8.9");
    for text in ["", "8", "8.", "a.b", "-8.0", "sm_80"] {
        assert_eq!(message(text.parse()), format!("{text:?} is no compute capability such as 8.6"));
    }
}

#[test]
fn a_forced_architecture_is_lower_code_that_still_runs() {
    let cases = [
        ("7.5", (7, 5), "sm_75"),
        ("7.5", (8, 6), "compute_75"),
        ("8.0", (8, 6), "sm_80"),
        ("8.6", (8, 9), "sm_86"),
        ("8.7", (8, 9), "sm_86"),
        ("8.0", (9, 0), "compute_80"),
        ("8.9", (9, 0), "compute_80"),
        ("9.0", (9, 0), "sm_90a"),
        ("9.0", (10, 0), "compute_80"),
        ("10.0", (12, 0), "compute_80"),
        ("12.0", (12, 1), "sm_120"),
    ];
    for (architecture, capability, expected) in cases {
        let artifacts = forced(architecture);
        let image = artifacts.image(capability, ANYWHERE).expect("image");
        assert_eq!(image.architecture, expected, "{architecture} on {capability:?}");
        assert_eq!(artifacts.architecture(capability).expect("chosen").to_string(), architecture);
    }
    assert!(forced("8.9").image((9, 0), HOPPER_ONLY).is_err());
    let too_old = artifacts().forced(Architecture { major: 7, minor: 0 }).expect_err("refused");
    assert_eq!(too_old, ArtifactError::TooOld((7, 0).into()));
    let above = forced("9.0").image((8, 9), ANYWHERE).expect_err("refused").to_string();
    assert_eq!(above, "compute capability 9.0 was forced, but the GPU has 8.9");
}
