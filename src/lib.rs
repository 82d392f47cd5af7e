//! Who spoke when: the speaker diarization library behind the `speakrs-app` program.
//!
//! ```text
//!  file ─► audio ─► Waveform (16 kHz mono)
//!                      │
//!          ┌───────────┴─────────────┐
//!          ▼                         ▼
//!   backend::segment          backend::embed            models: what the networks are
//!   local speakers of         one embedding per         features: Kaldi log-mel
//!   every 10 s window         window and local speaker
//!          └───────────┬─────────────┘
//!                      ▼
//!                 clustering        AHC ─► PLDA ─► VBx ─► assignment
//!                      ▼
//!                  timeline         counting, reconstruction, segments, RTTM
//!                      ▼
//!                  pipeline         diarize(): the steps above on one screen; batches
//!                      ▼
//!            app ─► gui, cli         files in, results out
//! ```
//!
//! Numbers such as `C5` in comments are the numbered rules of the pyannote community-1 pipeline as
//! they are listed in the module that implements them.
//!
//! Each module may use only the ones above it in the list below; a test checks that.

pub mod math;

pub mod audio;

pub mod features;

pub mod models;

pub mod backend;

pub mod clustering;

pub mod timeline;

pub mod scoring;

pub mod pipeline;

pub mod app;

#[cfg(feature = "gui")]
pub mod gui;

pub mod cli;
