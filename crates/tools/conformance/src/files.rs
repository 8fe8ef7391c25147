//! Files that are there whole or not at all, and that only this user can read.

use crate::error::ConformanceError;
use std::path::{Path, PathBuf};

/// Makes a directory that only this user can look into, unless there is one.
pub(crate) fn create_private(directory: &Path) -> Result<(), ConformanceError> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    let made = builder.create(directory);
    made.map_err(|error| ConformanceError::file(directory, &error))
}

/// Writes a file that is there as a whole or not at all.
pub(crate) fn write_whole(
    directory: &Path,
    name: &str,
    bytes: &[u8],
) -> Result<PathBuf, ConformanceError> {
    let path = directory.join(name);
    let failed = |error: &std::io::Error| ConformanceError::file(&path, error);
    loopwright_files::write_private(&path, bytes).map_err(|error| failed(&error))?;
    Ok(path)
}
