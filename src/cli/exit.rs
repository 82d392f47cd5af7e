//! How the program ends.

use std::process::ExitCode;

/// What the exit code says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Every recording is done; one without speech counts as done.
    Done,
    /// At least one recording failed.
    Failed,
    /// The command line is wrong.
    Usage,
    /// No recording was found.
    NoInput,
    /// Models or device cannot be used.
    Environment,
    /// Stopped by this signal.
    Signal(u8),
}

impl Exit {
    /// The number that the operating system gets; 128 + n for signal n, as shells have it.
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::NoInput => 3,
            Self::Environment => 4,
            Self::Signal(signal) => 128 + signal,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        exit.code().into()
    }
}
