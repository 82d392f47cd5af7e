//! What a batch runs on: the engines of the chosen devices, the cache before them, the CPU behind them.
//! Depends on `pipeline` and `cache`.

use std::path::{Path, PathBuf};

use super::cache::{Cache, Cached};
use super::export::write::WriteError;
use crate::audio::SAMPLE_RATE;
use crate::backend::{self, BackendInfo, Precision};
use crate::pipeline::batch::{self, Diarize};
use crate::pipeline::{Diarization, Engine, EngineError, Mode, Monitor, PipelineError, Settings};

/// What the user chooses about the computation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// Folder of the models; `None`: see [`crate::models::manifest::find_models`].
    pub models: Option<PathBuf>,
    /// Devices, as [`backend::resolve`] takes them.
    pub device: String,
    /// Arithmetic; `None`: the fastest that keeps the accuracy.
    pub precision: Option<Precision>,
    /// Folder in which is kept what the networks find.
    pub cache: Option<PathBuf>,
}

/// Why nothing can be computed.
#[derive(Debug, thiserror::Error)]
pub enum EnginesError {
    /// A device or the models cannot be used.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The folder of the cache cannot be used.
    #[error("cache {}: {error}", .folder.display())]
    Cache {
        /// The folder.
        folder: PathBuf,
        /// What is wrong.
        error: WriteError,
    },
}

/// Opened engines, at least one.
pub struct Engines {
    engines: Vec<Engine>,
    cache: Option<Cache>,
    models: Option<PathBuf>,
}

impl Engines {
    /// Loads the models and opens the devices.
    ///
    /// # Errors
    /// If one of them cannot be used.
    pub fn open(choice: &Choice) -> Result<Self, EnginesError> {
        let open = |device: &String| Engine::open(choice.models.as_deref(), device, choice.precision);
        let engines = backend::resolve(&choice.device).iter().map(open).collect::<Result<_, _>>()?;
        let cache = choice.cache.as_deref().map(|folder| {
            Cache::open(folder).map_err(|error| EnginesError::Cache { folder: folder.to_owned(), error })
        });
        Ok(Self { engines, cache: cache.transpose()?, models: choice.models.clone() })
    }

    /// The engine of the first device.
    pub fn first(&self) -> &Engine {
        &self.engines[0]
    }

    /// What each engine runs on.
    pub fn backends(&self) -> Vec<BackendInfo> {
        self.engines.iter().map(Engine::backend).collect()
    }

    /// One property of all devices, such as their names.
    pub fn all(&self, property: fn(&BackendInfo) -> String) -> String {
        self.backends().iter().map(property).collect::<Vec<_>>().join(", ")
    }

    /// The mode unless the user names one.
    pub fn default_mode(&self) -> Mode {
        self.first().default_mode()
    }

    /// Calls `work` with what a batch takes. Where the engines run on GPUs, the CPU is the spare one.
    pub fn lend<T>(&self, work: impl FnOnce(batch::Engines) -> T) -> T {
        let cached: Vec<Cached> = self
            .cache
            .iter()
            .flat_map(|cache| self.engines.iter().map(move |engine| Cached { engine, cache }))
            .collect();
        let slots: Vec<&dyn Diarize> = (0..self.engines.len())
            .flat_map(|index| {
                let diarizer: &dyn Diarize = cached.get(index).map_or(&self.engines[index], |cached| cached);
                std::iter::repeat_n(diarizer, self.engines[index].recordings())
            })
            .collect();
        let on_cpu = || match Engine::open(self.models.as_deref(), "cpu", None) {
            Ok(engine) => Ok(Box::new(engine) as Box<dyn Diarize>),
            Err(error) => Err(error.to_string()),
        };
        let has_gpu = self.backends().iter().any(|backend| backend.device != "cpu");
        work(batch::Engines { working: &slots, spare: has_gpu.then_some(&on_cpu) })
    }

    /// Another result of the recording that `result` is of, from what is kept in the file `inference` of the cache;
    /// `None` if that is no longer usable or belongs to other models.
    ///
    /// # Errors
    /// See [`Engine::cluster`].
    pub fn cluster_again(
        &self,
        inference: &Path,
        result: &Diarization,
        settings: &Settings,
        monitor: &dyn Monitor,
    ) -> Result<Option<Diarization>, PipelineError> {
        let engine = self.first();
        let samples = (result.duration * f64::from(SAMPLE_RATE)).round() as usize;
        let windows = settings.windows(samples)?;
        let kept = self.cache.as_ref().filter(|_| result.model == engine.model());
        let Some(inference) = kept.and_then(|cache| cache.load(inference, &windows)) else { return Ok(None) };
        let clustered = engine.cluster(inference, settings, monitor)?;
        // The networks ran then, perhaps on another device.
        Ok(Some(Diarization { backend: result.backend.clone(), ..clustered }))
    }
}
