//! What the networks found, kept in files: another number of speakers then takes clustering only.
//! Depends on `pipeline` and `export::write`.
//!
//! A file holds one recording's [`Inference`]: a line with the format, a line of JSON, the activity, the embeddings as
//! little-endian FP32, and the SHA-256 of all that. Its name is a hash of everything that the content depends on: the
//! samples, the step, the mode, and the engine's program, models and device. Whatever is wrong with a file, the recording
//! is computed again.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::export::write::{self, WriteError};
use crate::audio::Waveform;
use crate::backend::{Embeddings, Precision};
use crate::models::embedding::EMBEDDING_DIM;
use crate::models::windows::{Activity, LOCAL_SPEAKERS, WINDOW_FRAMES, Windows};
use crate::pipeline::batch::Diarize;
use crate::pipeline::{Diarization, Engine, Inference, Monitor, PipelineError, Settings, Stage};

const FORMAT: &[u8] = b"speakrs-app inference 1\n";
/// Most bytes of the line of JSON.
const HEADER: usize = 256;
const HASH: usize = 32;

/// The line of JSON.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    /// Samples of the recording and between windows.
    samples: usize,
    step: usize,
    precision: Precision,
}

/// A folder with what the networks found in recordings. Its files may be deleted at any time.
#[derive(Debug, Clone)]
pub struct Cache {
    folder: PathBuf,
}

impl Cache {
    /// Uses `folder`, which is made if need be.
    ///
    /// # Errors
    /// If it cannot be made or takes no files.
    pub fn open(folder: &Path) -> Result<Self, WriteError> {
        write::prepare_folder(folder)?;
        Ok(Self { folder: folder.to_owned() })
    }

    /// Where the inference of `engine` on `waveform` is or would be.
    pub fn path(&self, engine: &Engine, waveform: &Waveform, settings: &Settings) -> PathBuf {
        let mode = settings.mode.name();
        let mut hash = Sha256::new();
        hash.update(format!(
            "{}\n{mode}\n{}\n{}\n",
            engine.identity(),
            settings.step,
            waveform.samples.len()
        ));
        for chunk in waveform.samples.chunks(1 << 16) {
            hash.update(chunk.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<_>>());
        }
        let name: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        self.folder.join(name + ".inference")
    }

    /// What is kept at `path` for `windows`; `None` if there is nothing usable.
    pub fn load(&self, path: &Path, windows: &Windows) -> Option<Inference> {
        let bytes = read(path, windows)?;
        let inference = parse(&bytes, windows);
        if inference.is_none() {
            tracing::warn!(file = %path.display(), "a damaged file of the cache is ignored");
        }
        inference
    }

    /// Keeps `inference` at `path`. That this fails costs nothing but the time to compute it again.
    pub fn store(&self, path: &Path, inference: &Inference) {
        if let Err(error) = write::atomically(path, &bytes(inference), true) {
            tracing::warn!(file = %path.display(), "the cache cannot be written: {error}");
        }
    }
}

/// An engine that looks into a cache before it runs the networks.
pub struct Cached<'a> {
    /// The engine.
    pub engine: &'a Engine,
    /// The cache.
    pub cache: &'a Cache,
}

impl Diarize for Cached<'_> {
    fn diarize(
        &self,
        waveform: &Waveform,
        settings: &Settings,
        monitor: &dyn Monitor,
    ) -> Result<Diarization, PipelineError> {
        let path = self.cache.path(self.engine, waveform, settings);
        let windows = settings.windows(waveform.samples.len())?;
        let inference = match self.cache.load(&path, &windows) {
            Some(inference) => {
                monitor.progress(Stage::Segmentation, 1.0);
                monitor.progress(Stage::Embedding, 1.0);
                inference
            }
            None => {
                let inference = self.engine.infer(waveform, settings, monitor)?;
                self.cache.store(&path, &inference);
                inference
            }
        };
        monitor.kept(&path);
        self.engine.cluster(inference, settings, monitor)
    }
}

/// Bytes of the activity and of the embeddings.
fn sizes(windows: &Windows) -> (usize, usize) {
    let slots = windows.count() * LOCAL_SPEAKERS;
    (slots * WINDOW_FRAMES, 4 * slots * EMBEDDING_DIM)
}

/// The file, unless it is longer than it can be.
fn read(path: &Path, windows: &Windows) -> Option<Vec<u8>> {
    let (activity, embeddings) = sizes(windows);
    let most = FORMAT.len() + HEADER + activity + embeddings + HASH;
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(most as u64 + 1).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

fn parse(bytes: &[u8], windows: &Windows) -> Option<Inference> {
    let (content, hash) = bytes.split_at_checked(bytes.len().checked_sub(HASH)?)?;
    if Sha256::digest(content).as_slice() != hash {
        return None;
    }
    let rest = content.strip_prefix(FORMAT)?;
    let (line, rest) =
        rest.split_at_checked(rest.iter().take(HEADER).position(|&byte| byte == b'\n')? + 1)?;
    let header: Header = serde_json::from_slice(line).ok()?;
    let (activity, embeddings) = sizes(windows);
    if (header.samples, header.step) != (windows.samples(), windows.step())
        || rest.len() != activity + embeddings
    {
        return None;
    }
    let (activity, embeddings) = rest.split_at(activity);
    let values = embeddings.as_chunks().0.iter().map(|v| f32::from_le_bytes(*v)).collect();
    activity.iter().all(|&v| v <= 1).then(|| Inference {
        windows: *windows,
        activity: Activity::new(activity.to_vec()),
        embeddings: Embeddings { values, precision: header.precision },
        timings: Vec::new(),
    })
}

fn bytes(inference: &Inference) -> Vec<u8> {
    let Inference { windows, activity, embeddings, .. } = inference;
    let (samples, step, precision) = (windows.samples(), windows.step(), embeddings.precision);
    let mut bytes = FORMAT.to_vec();
    bytes.extend(serde_json::to_vec(&Header { samples, step, precision }).expect("plain data"));
    bytes.push(b'\n');
    for c in 0..activity.windows() {
        bytes.extend(activity.window(c).as_flattened());
    }
    bytes.extend(embeddings.values.iter().flat_map(|v| v.to_le_bytes()));
    let hash = Sha256::digest(&bytes);
    bytes.extend_from_slice(&hash);
    bytes
}
