//! Documents in files: the original result in one, the edits in another, so that saving an edit is cheap.
//! A file may come from anywhere: everything in it goes through the same checks as what the user does.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::edit::{Edit, EditError};
use super::replace::flaw;
use super::state::Fresh;
use super::{Document, Original};
use crate::audio::SourceFacts;
use crate::pipeline::Diarization;

/// Version of both files' layout; raised whenever it changes.
const VERSION: u32 = 1;
/// Largest file that is read, in bytes.
pub const MAX_BYTES: usize = 256 << 20;
/// No identity is above this.
const MAX_FRESH: Fresh = Fresh { turn: 1 << 53, speaker: 1 << 30 };

/// Why a document cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file is not what it should be.
    #[error("damaged: {0}")]
    Json(#[from] serde_json::Error),
    /// The file comes from another version of the program.
    #[error("layout {0} is not known; it comes from a newer version of the program")]
    Version(u32),
    /// The file is too large.
    #[error("larger than {} MiB", MAX_BYTES >> 20)]
    TooLarge,
    /// The result is impossible.
    #[error("damaged: {0}")]
    Flaw(String),
    /// The edits were made to another result.
    #[error("the edits belong to another result")]
    OtherOriginal,
    /// An edit is impossible.
    #[error("damaged: edit {number}: {error}")]
    Edit {
        /// Which one, from 1.
        number: usize,
        /// Why.
        error: EditError,
    },
    /// The log contradicts itself.
    #[error("damaged: edit {0} cannot stand there")]
    Log(usize),
}

#[derive(Deserialize)]
struct Head {
    version: u32,
}

#[derive(Serialize)]
struct OriginalOut<'a> {
    version: u32,
    diarization: &'a Diarization,
    source: &'a SourceFacts,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OriginalIn {
    #[serde(rename = "version")]
    _version: u32,
    diarization: Diarization,
    source: SourceFacts,
}

#[derive(Serialize)]
struct EditsOut<'a> {
    version: u32,
    original: &'a str,
    done: usize,
    log: Vec<EntryOut<'a>>,
}

#[derive(Serialize)]
struct EntryOut<'a> {
    edit: &'a Edit,
    fresh: Fresh,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EditsIn {
    #[serde(rename = "version")]
    _version: u32,
    /// [`Original::fingerprint`].
    original: String,
    /// How many of the edits are not undone.
    done: usize,
    log: Vec<EntryIn>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EntryIn {
    edit: Edit,
    /// The next identities before the edit.
    fresh: Fresh,
}

impl Original {
    fn json(&self) -> Vec<u8> {
        let Self { diarization, source, .. } = self;
        json(&OriginalOut { version: VERSION, diarization, source })
    }

    /// SHA-256 of its file, in hexadecimal digits.
    fn fingerprint(&self) -> &str {
        self.fingerprint
            .get_or_init(|| Sha256::digest(self.json()).iter().map(|byte| format!("{byte:02x}")).collect())
    }
}

impl Document {
    /// The file of the original result, which edits never change.
    pub fn original_json(&self) -> Vec<u8> {
        self.original.json()
    }

    /// The file of the edits.
    pub fn edits_json(&self) -> Vec<u8> {
        json(&EditsOut {
            version: VERSION,
            original: self.original.fingerprint(),
            done: self.done,
            log: self.log.iter().map(|entry| EntryOut { edit: &entry.edit, fresh: entry.fresh }).collect(),
        })
    }

    /// Reads what [`Document::original_json`] and, if there is such a file, [`Document::edits_json`] gave.
    ///
    /// # Errors
    /// [`LoadError`] if anything in them is not as it should be.
    pub fn load(original: &[u8], edits: Option<&[u8]>) -> Result<Self, LoadError> {
        let OriginalIn { diarization, source, .. } = parse(original)?;
        if let Some(flaw) = flaw(&diarization) {
            return Err(LoadError::Flaw(flaw));
        }
        let mut document = Self::new(diarization, source);
        if let Some(edits) = edits {
            document.replay(parse(edits)?)?;
        }
        Ok(document)
    }

    fn replay(&mut self, EditsIn { original, done, log, .. }: EditsIn) -> Result<(), LoadError> {
        if original != self.original.fingerprint() {
            return Err(LoadError::OtherOriginal);
        }
        let count = log.len();
        if done > count {
            return Err(LoadError::Log(done));
        }
        for (index, EntryIn { edit, fresh }) in log.into_iter().enumerate() {
            let number = index + 1;
            let known = fresh.turn >= self.fresh.turn && fresh.speaker >= self.fresh.speaker;
            if !known || fresh.turn > MAX_FRESH.turn || fresh.speaker > MAX_FRESH.speaker {
                return Err(LoadError::Log(number));
            }
            self.fresh = fresh;
            self.apply(edit).map_err(|error| LoadError::Edit { number, error })?;
            if self.done != number {
                return Err(LoadError::Log(number));
            }
        }
        while self.done > done {
            self.undo();
        }
        Ok(())
    }
}

fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("plain data serializes into memory")
}

/// Parses a file after a look at its version, so that a newer one is not called damaged.
fn parse<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, LoadError> {
    if bytes.len() > MAX_BYTES {
        return Err(LoadError::TooLarge);
    }
    let Head { version } = serde_json::from_slice(bytes)?;
    if version != VERSION {
        return Err(LoadError::Version(version));
    }
    Ok(serde_json::from_slice(bytes)?)
}
