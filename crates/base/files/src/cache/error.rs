//! What goes wrong with a cache.

use std::io;
use std::path::{Path, PathBuf};

/// What backends and extensions may be called.
const NAMES: &str = "names have letters, digits, `_` and `-`, and no file is called `meta`";

/// What went wrong with a cache.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    /// A backend or an extension that cannot be part of a file's name.
    #[error("cannot keep compiled code as {name:?}: {NAMES}")]
    Name {
        /// The name.
        name: String,
    },
    /// A directory that code must not be taken from.
    #[error("cannot use the cache directory {}: {reason}", path.display())]
    NotPrivate {
        /// The directory.
        path: PathBuf,
        /// What is wrong with it, and what would help.
        reason: String,
    },
    /// A file or a directory could not be used.
    #[error("cannot {action} {}: {reason}", path.display())]
    File {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why it failed.
        reason: io::Error,
    },
}

impl CacheError {
    pub(crate) fn file(action: &'static str, path: &Path, reason: io::Error) -> CacheError {
        CacheError::File {
            action,
            path: path.to_owned(),
            reason,
        }
    }

    pub(crate) fn name(name: &str) -> CacheError {
        CacheError::Name {
            name: name.to_owned(),
        }
    }
}
