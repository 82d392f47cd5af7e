//! The prebuilt kernels inside the program, and which of them a GPU can run. Depends on nothing.
//!
//! `cargo kernels build` compiles `kernels/*.cu` for several architectures and writes one compressed pack for each, with
//! a manifest. A GPU takes machine code of its own major version and of the highest minor version up to its own; where
//! there is none, the driver translates the PTX of the highest architecture up to its own.

use std::fmt;
use std::io::Read;
use std::str::FromStr;
use std::sync::OnceLock;

use flate2::read::ZlibDecoder;
use serde::Deserialize;
use sha2::{Digest, Sha256};

/// The oldest GPUs that the kernels run on.
pub const OLDEST: Architecture = Architecture { major: 7, minor: 5 };
/// Format of the manifest.
const FORMAT: u32 = 1;
const MANIFEST: &str = include_str!("../../../kernels/prebuilt/manifest.toml");

macro_rules! packs {
    ($($name:literal),*) => {
        [$(($name, include_bytes!(concat!("../../../kernels/prebuilt/", $name, ".bin")))),*]
    };
}

/// Architecture and content of every pack.
const PACKS: [(&str, &[u8]); 9] =
    packs!["sm_75", "sm_80", "sm_86", "sm_89", "sm_90a", "sm_100", "sm_120", "compute_75", "compute_80"];

/// A compute capability, such as 8.6.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Architecture {
    /// Number before the dot.
    pub major: u32,
    /// Number behind the dot.
    pub minor: u32,
}

impl fmt::Display for Architecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl From<(u32, u32)> for Architecture {
    fn from((major, minor): (u32, u32)) -> Self {
        Self { major, minor }
    }
}

impl FromStr for Architecture {
    type Err = ArtifactError;

    fn from_str(text: &str) -> Result<Self, ArtifactError> {
        let parts = text.trim().split_once('.').map(|(major, minor)| (major.parse(), minor.parse()));
        match parts {
            Some((Ok(major), Ok(minor))) => Ok(Self { major, minor }),
            _ => Err(ArtifactError::NoArchitecture(text.into())),
        }
    }
}

/// Why there is no code for a GPU.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ArtifactError {
    /// Not the name of an architecture.
    #[error("{0:?} is no compute capability such as 8.6")]
    NoArchitecture(String),
    /// The GPU is older than all kernels, or an architecture that is too old was forced.
    #[error("compute capability {0} is too old; the kernels need {OLDEST} or newer")]
    TooOld(Architecture),
    /// A newer architecture than the GPU's was forced.
    #[error("compute capability {forced} was forced, but the GPU has {device}")]
    AboveDevice {
        /// What was asked for.
        forced: Architecture,
        /// What the GPU is.
        device: Architecture,
    },
    /// The file is compiled for other architectures only, or does not exist.
    #[error("{file} has no code for compute capability {architecture}")]
    NoImage {
        /// The source.
        file: String,
        /// The architecture that was looked for.
        architecture: Architecture,
    },
    /// The program itself is damaged.
    #[error("the kernels inside the program are damaged ({what}): {reason}")]
    Damaged {
        /// Manifest or pack.
        what: String,
        /// What is wrong.
        reason: String,
    },
}

fn damaged(what: impl Into<String>, reason: impl ToString) -> ArtifactError {
    ArtifactError::Damaged { what: what.into(), reason: reason.to_string() }
}

/// What the manifest says of a kernel. Of PTX only the name is known.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Name.
    pub name: String,
    /// Registers of a thread.
    pub registers: Option<u32>,
    /// Bytes of registers kept in local memory: stores and loads together.
    pub spill_bytes: Option<u32>,
    /// Bytes of shared memory that the code itself declares.
    pub shared_bytes: Option<u32>,
    /// Most threads of a block; 0 if the code does not bound them.
    pub threads: Option<u32>,
    /// Bytes of all parameters.
    pub parameter_bytes: Option<u32>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "the developer tool reads the other fields; here they keep the format strict")]
struct Manifest {
    format: u32,
    nvrtc: String,
    options: Vec<String>,
    sources: toml::Table,
    #[serde(default)]
    pack: Vec<PackFacts>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "the developer tool reads the other fields; here they keep the format strict")]
struct PackFacts {
    architecture: String,
    file: String,
    bytes: usize,
    sha256: String,
    uncompressed_bytes: usize,
    inputs: String,
    #[serde(default)]
    image: Vec<ImageFacts>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ImageFacts {
    file: String,
    offset: usize,
    bytes: usize,
    entries: Vec<Entry>,
}

/// Code for a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code<'a> {
    /// Machine code.
    Cubin(&'a [u8]),
    /// Text that the driver translates.
    Ptx(&'a str),
}

/// One source, compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Image<'a> {
    /// Name of the architecture, such as `sm_90a` or `compute_80`.
    pub architecture: &'a str,
    /// The code.
    pub code: Code<'a>,
}

/// Images of one architecture.
#[derive(Debug)]
struct Pack {
    facts: PackFacts,
    architecture: Architecture,
    /// Whether it is PTX.
    ptx: bool,
    /// Whether it has instructions that other GPUs of the same major version lack.
    specific: bool,
    compressed: &'static [u8],
    images: OnceLock<Result<Vec<u8>, ArtifactError>>,
}

/// The prebuilt kernels.
#[derive(Debug)]
pub struct Artifacts {
    packs: Vec<Pack>,
    forced: Option<Architecture>,
}

impl Artifacts {
    /// Reads the manifest; code is decompressed when it is first asked for.
    ///
    /// # Errors
    /// If the program is damaged.
    pub fn load() -> Result<Self, ArtifactError> {
        let manifest: Manifest = toml::from_str(MANIFEST).map_err(|error| damaged("manifest", error))?;
        if manifest.format != FORMAT {
            return Err(damaged("manifest", format_args!("format {}, expected {FORMAT}", manifest.format)));
        }
        let packs = manifest.pack.into_iter().map(Pack::new).collect::<Result<_, _>>()?;
        Ok(Self { packs, forced: None })
    }

    /// Takes the code that a GPU of the lower `architecture` would take, as far as the present GPU runs it.
    ///
    /// # Errors
    /// If it is below [`OLDEST`]. That it is above the GPU's is an error of [`Artifacts::image`].
    pub fn forced(mut self, architecture: Architecture) -> Result<Self, ArtifactError> {
        if architecture < OLDEST {
            return Err(ArtifactError::TooOld(architecture));
        }
        self.forced = Some(architecture);
        Ok(self)
    }

    /// The architecture that kernels are to be chosen for on a GPU of `capability`: the forced one, else the GPU's.
    ///
    /// # Errors
    /// If the GPU is too old, or older than the forced architecture.
    pub fn architecture(&self, capability: (u32, u32)) -> Result<Architecture, ArtifactError> {
        let device = Architecture::from(capability);
        if device < OLDEST {
            return Err(ArtifactError::TooOld(device));
        }
        match self.forced {
            Some(forced) if forced > device => Err(ArtifactError::AboveDevice { forced, device }),
            Some(forced) => Ok(forced),
            None => Ok(device),
        }
    }

    /// The best code of the source `file` for a GPU of `capability`.
    ///
    /// # Errors
    /// If there is none, or the program is damaged.
    pub fn image(&self, capability: (u32, u32), file: &str) -> Result<Image<'_>, ArtifactError> {
        let architecture = self.architecture(capability)?;
        let runs = |pack: &&Pack| pack.find(file).is_some() && pack.runs(architecture, capability.into());
        // Machine code first, then the highest architecture.
        let best =
            self.packs.iter().filter(runs).max_by_key(|pack| (!pack.ptx, pack.architecture, pack.specific));
        let no_image = || ArtifactError::NoImage { file: file.into(), architecture };
        best.ok_or_else(no_image)?.image(file)
    }

    /// What the manifest says of the kernels of `file` in the architecture of this name (see [`Image::architecture`]);
    /// empty if there are none.
    pub fn entries(&self, architecture: &str, file: &str) -> &[Entry] {
        let pack = self.packs.iter().find(|pack| pack.facts.architecture == architecture);
        pack.and_then(|pack| pack.find(file)).map_or(&[], |image| &image.entries)
    }

    /// Names of all architectures.
    pub fn architectures(&self) -> impl Iterator<Item = &str> {
        self.packs.iter().map(|pack| pack.facts.architecture.as_str())
    }

    /// The sources that have code for the architecture of this name.
    pub fn files(&self, architecture: &str) -> impl Iterator<Item = &str> {
        let packs = self.packs.iter().filter(move |pack| pack.facts.architecture == architecture);
        packs.flat_map(|pack| &pack.facts.image).map(|image| image.file.as_str())
    }
}

impl Pack {
    fn new(facts: PackFacts) -> Result<Self, ArtifactError> {
        let name = facts.architecture.as_str();
        let unknown = || damaged("manifest", format_args!("architecture {name:?}"));
        let compressed = PACKS.iter().find(|pack| pack.0 == name).ok_or_else(unknown)?.1;
        let (ptx, digits) = match (name.strip_prefix("sm_"), name.strip_prefix("compute_")) {
            (Some(digits), _) => (false, digits),
            (_, Some(digits)) => (true, digits),
            _ => return Err(unknown()),
        };
        let (specific, digits) = digits.strip_suffix('a').map_or((false, digits), |digits| (true, digits));
        let number: u32 = digits.parse().map_err(|_| unknown())?;
        let architecture = Architecture { major: number / 10, minor: number % 10 };
        Ok(Self { architecture, ptx, specific, compressed, images: OnceLock::new(), facts })
    }

    /// Whether `device` runs this code when it is taken for `wanted`, which is `device` or lower.
    fn runs(&self, wanted: Architecture, device: Architecture) -> bool {
        if self.specific {
            return self.architecture == device && wanted == device;
        }
        self.architecture <= wanted && (self.ptx || self.architecture.major == device.major)
    }

    fn find(&self, file: &str) -> Option<&ImageFacts> {
        self.facts.image.iter().find(|image| image.file == file)
    }

    fn image(&self, file: &str) -> Result<Image<'_>, ArtifactError> {
        let damaged = |reason: &str| damaged(&self.facts.architecture, reason);
        let all = self.images.get_or_init(|| self.decompress()).as_ref().map_err(Clone::clone)?;
        let facts = self.find(file).ok_or_else(|| damaged("an image is missing"))?;
        let end = facts.offset.checked_add(facts.bytes);
        let bytes = end.and_then(|end| all.get(facts.offset..end));
        let bytes = bytes.ok_or_else(|| damaged("an image lies outside of the pack"))?;
        let code = if self.ptx {
            Code::Ptx(std::str::from_utf8(bytes).map_err(|_| damaged("PTX that is no text"))?)
        } else {
            Code::Cubin(bytes)
        };
        Ok(Image { architecture: &self.facts.architecture, code })
    }

    fn decompress(&self) -> Result<Vec<u8>, ArtifactError> {
        let PackFacts { architecture, sha256, uncompressed_bytes, .. } = &self.facts;
        let hash: String = Sha256::digest(self.compressed).iter().map(|byte| format!("{byte:02x}")).collect();
        if hash != *sha256 {
            return Err(damaged(architecture, format_args!("SHA-256 {hash}, expected {sha256}")));
        }
        let mut images = Vec::with_capacity(*uncompressed_bytes);
        ZlibDecoder::new(self.compressed)
            .take(*uncompressed_bytes as u64 + 1)
            .read_to_end(&mut images)
            .map_err(|error| damaged(architecture, error))?;
        if images.len() != *uncompressed_bytes {
            let reason = format!("{} bytes, expected {uncompressed_bytes}", images.len());
            return Err(damaged(architecture, reason));
        }
        Ok(images)
    }
}
