//! Kaldi log-mel filterbank features (C6).
