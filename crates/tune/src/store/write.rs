//! Files that are there as a whole or not at all.

use crate::error::TuneError;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Writes a text beside its place and puts it there, on disk, in one step.
pub(crate) fn write_atomically(path: &Path, text: &str) -> Result<(), TuneError> {
    let write = || {
        let directory = directory_of(path);
        let mut builder = tempfile::Builder::new();
        builder.prefix(".loopwright-");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            // As any new file: what the process's mask leaves of this.
            builder.permissions(std::fs::Permissions::from_mode(0o666));
        }
        let mut file = builder.tempfile_in(directory)?;
        file.write_all(text.as_bytes())?;
        file.as_file().sync_data()?;
        file.persist(path).map_err(|error| error.error)?;
        Ok(())
    };
    write().map_err(|error| TuneError::file("write", path, error))
}

fn directory_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}
