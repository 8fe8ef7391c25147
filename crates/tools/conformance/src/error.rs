//! What can go wrong.

use crate::verify::Difference;
use std::path::Path;

/// What the checking finds wrong with a run, or what went wrong with the checking itself.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ConformanceError {
    /// A file could not be written.
    #[error("cannot write {path}: {reason}")]
    File {
        /// The file.
        path: String,
        /// Why.
        reason: String,
    },
    /// A run that cannot be verified.
    #[error("kernel `{kernel}` cannot be verified: {reason}")]
    Run {
        /// The kernel.
        kernel: String,
        /// What does not fit.
        reason: String,
    },
    /// A run gave something else than it should have.
    #[error(transparent)]
    Difference(#[from] Box<Difference>),
}

impl ConformanceError {
    pub(crate) fn file(path: &Path, error: &std::io::Error) -> ConformanceError {
        ConformanceError::File {
            path: path.display().to_string(),
            reason: error.to_string(),
        }
    }
}
