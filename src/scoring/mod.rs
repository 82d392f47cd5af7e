//! Diarization error rate.
