//! What can go wrong beside what is looked for.

use std::path::Path;

/// What went wrong with the checking itself.
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
}

impl ConformanceError {
    pub(crate) fn file(path: &Path, error: &std::io::Error) -> ConformanceError {
        ConformanceError::File {
            path: path.display().to_string(),
            reason: error.to_string(),
        }
    }
}
