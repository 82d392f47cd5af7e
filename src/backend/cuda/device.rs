//! What is known of a GPU. Depends on `artifacts`.

use super::artifacts::Architecture;

/// Facts of one GPU, read once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// Number that the driver gives it.
    pub ordinal: usize,
    /// Name that the driver gives it.
    pub name: String,
    /// Its compute capability.
    pub capability: Architecture,
    /// The compute capability that kernels are chosen for: its own, or a lower one that the user forces.
    pub architecture: Architecture,
    /// Streaming multiprocessors.
    pub sms: u32,
    /// Most bytes of shared memory that a block may ask for.
    pub shared_bytes: u32,
    /// Bytes of its L2 cache.
    pub l2_bytes: u32,
    /// Bytes of its memory.
    pub memory_bytes: u64,
}
