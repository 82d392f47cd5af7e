//! What the kernels are compiled for.

/// One architecture: a cubin for one kind of GPU (`sm_80`), or PTX that later GPUs translate (`compute_80`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    /// Name as the compiler takes it.
    pub name: &'static str,
    /// Compute capability times ten.
    pub capability: u32,
    /// Whether it is PTX.
    pub ptx: bool,
}

/// All architectures, in the order of the manifest.
pub const TARGETS: [Target; 9] = [
    Target { name: "sm_75", capability: 75, ptx: false },
    Target { name: "sm_80", capability: 80, ptx: false },
    Target { name: "sm_86", capability: 86, ptx: false },
    Target { name: "sm_89", capability: 89, ptx: false },
    Target { name: "sm_90a", capability: 90, ptx: false },
    Target { name: "sm_100", capability: 100, ptx: false },
    Target { name: "sm_120", capability: 120, ptx: false },
    Target { name: "compute_75", capability: 75, ptx: true },
    Target { name: "compute_80", capability: 80, ptx: true },
];

impl Target {
    /// The architecture called `name`.
    ///
    /// # Errors
    /// If there is none; the message lists all.
    pub fn find(name: &str) -> Result<Self, String> {
        let names = || TARGETS.map(|target| target.name).join(", ");
        let found = TARGETS.into_iter().find(|target| target.name == name);
        found.ok_or_else(|| format!("unknown architecture {name}; known are {}", names()))
    }

    /// Whether it has instructions that later GPUs lack.
    pub fn specific(self) -> bool {
        self.name.ends_with('a')
    }

    /// Name of its file in `kernels/prebuilt`.
    pub fn pack(self) -> String {
        format!("{}.bin", self.name)
    }
}
