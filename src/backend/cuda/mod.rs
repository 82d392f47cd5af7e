//! The networks on NVIDIA GPUs. Depends on `models` and `features`.

pub mod artifacts;
