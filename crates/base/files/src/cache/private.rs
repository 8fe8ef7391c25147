//! Directories that nobody else can put anything into.

use crate::cache::CacheError;
use std::io;
use std::path::Path;

/// Makes a directory, with those above it, for its owner alone; one that is there stays as it is.
#[cfg(unix)]
pub(crate) fn create(directory: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
}

#[cfg(not(unix))]
pub(crate) fn create(directory: &Path) -> io::Result<()> {
    std::fs::create_dir_all(directory)
}

/// Refuses a directory that others can put something into.
#[cfg(unix)]
pub(crate) fn check(directory: &Path) -> Result<(), CacheError> {
    use std::os::unix::fs::MetadataExt as _;
    let data = std::fs::metadata(directory)
        .map_err(|reason| CacheError::file("read", directory, reason))?;
    let own = rustix::process::geteuid().as_raw();
    let reason = if !data.is_dir() {
        "it is not a directory".to_owned()
    } else if data.uid() != own {
        format!(
            "it belongs to user {}, not to {own}, and code from it would be run",
            data.uid()
        )
    } else if data.mode() & 0o022 != 0 {
        format!(
            "others may write to it (mode {:o}), and code from it would be run; chmod go-w it",
            data.mode() & 0o777
        )
    } else {
        return Ok(());
    };
    Err(CacheError::NotPrivate {
        path: directory.to_owned(),
        reason,
    })
}

#[cfg(not(unix))]
pub(crate) fn check(_: &Path) -> Result<(), CacheError> {
    Ok(())
}
