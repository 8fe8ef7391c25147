//! Files that are there as a whole or not at all.

use crate::error::TuneError;
use loopwright_files::NewFile;
use std::io::Write;
use std::path::Path;

/// Writes a text beside its place and puts it there, on disk, in one step.
pub(crate) fn write_atomically(path: &Path, text: &str) -> Result<(), TuneError> {
    let write = || {
        let mut file = NewFile::at(path)?;
        file.write_all(text.as_bytes())?;
        file.place_durably()
    };
    write().map_err(|error| TuneError::file("write", path, error))
}
