//! Reading of numpy captures.
