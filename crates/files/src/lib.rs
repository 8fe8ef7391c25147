//! Files that are there as a whole or not at all.
//!
//! A [`NewFile`] is written beside its place, under a name of its own, and put there in one step. Whoever reads the
//! place sees what was there before or all of what is new, whatever happens between: an error, a kill, a full disk. A file
//! that is dropped before it is placed leaves nothing behind.
//!
//! ```
//! use loopwright_files::NewFile;
//! use std::io::Write as _;
//!
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("weights");
//! loopwright_files::write(&path, b"old")?;
//!
//! let mut file = NewFile::at(&path)?;
//! file.write_all(b"new")?;
//! assert_eq!(std::fs::read(&path)?, b"old");
//! file.place_durably()?;
//! assert_eq!(std::fs::read(&path)?, b"new");
//! # Ok::<(), std::io::Error>(())
//! ```

#![forbid(unsafe_code)]

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// A file that is being written and is not in its place yet. Writes are buffered.
#[derive(Debug)]
pub struct NewFile {
    place: PathBuf,
    writer: BufWriter<NamedTempFile>,
}

impl NewFile {
    /// Starts a file that will lie at `path`. Its directory has to be there.
    pub fn at(path: &Path) -> io::Result<NewFile> {
        let mut builder = tempfile::Builder::new();
        builder.prefix(".loopwright-");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            // As any new file: what the process's mask leaves of this.
            builder.permissions(std::fs::Permissions::from_mode(0o666));
        }
        let file = builder.tempfile_in(directory_of(path))?;
        Ok(NewFile {
            place: path.to_owned(),
            writer: BufWriter::new(file),
        })
    }

    /// Puts the file in its place. After a crash of the system it may be the old one, or empty on some file systems.
    pub fn place(self) -> io::Result<()> {
        self.into_file()?.1.persist()
    }

    /// Puts the file in its place once its contents are on the disk, and waits until the place is known there too: after
    /// a crash of the system at any moment the old file or the new one is there, and the new one after this returned.
    pub fn place_durably(self) -> io::Result<()> {
        let (directory, file) = self.into_file()?;
        file.file.as_file().sync_all()?;
        file.persist()?;
        sync_directory(&directory)
    }

    fn into_file(self) -> io::Result<(PathBuf, Written)> {
        let directory = directory_of(&self.place).to_owned();
        let file = self
            .writer
            .into_inner()
            .map_err(|error| error.into_error())?;
        let place = self.place;
        Ok((directory, Written { file, place }))
    }
}

/// A file with nothing left in a buffer.
struct Written {
    file: NamedTempFile,
    place: PathBuf,
}

impl Written {
    fn persist(self) -> io::Result<()> {
        let placed = self.file.persist(&self.place);
        placed.map(drop).map_err(|error| error.error)
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

/// Writes a file in one step, without waiting for the disk.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = NewFile::at(path)?;
    file.write_all(bytes)?;
    file.place()
}

/// The directory that a file at this path lies in; a bare name lies in the current one.
pub fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

#[cfg(unix)]
fn sync_directory(directory: &Path) -> io::Result<()> {
    std::fs::File::open(directory)?.sync_all()
}

/// Elsewhere a directory cannot be opened as a file, and a rename is journalled.
#[cfg(not(unix))]
fn sync_directory(_: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).expect("the folder is there");
        let name = |entry: io::Result<std::fs::DirEntry>| {
            let name = entry.expect("entries can be read").file_name();
            name.to_string_lossy().into_owned()
        };
        entries.map(name).collect()
    }

    #[test]
    fn a_file_that_is_not_placed_leaves_nothing() {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let path = folder.path().join("array");
        let mut file = NewFile::at(&path).expect("the folder is there");
        file.write_all(&[7; 100_000]).expect("there is room");
        assert_eq!(names(folder.path()).len(), 1, "it lies beside its place");
        drop(file);
        assert!(names(folder.path()).is_empty());
    }

    #[test]
    fn what_was_there_is_replaced() {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let path = folder.path().join("array");
        for (bytes, durably) in [
            (vec![1; 70_000], false),
            (vec![2; 3], true),
            (vec![], false),
        ] {
            let mut file = NewFile::at(&path).expect("the folder is there");
            file.write_all(&bytes).expect("there is room");
            match durably {
                true => file.place_durably(),
                false => file.place(),
            }
            .expect("it can be placed");
            assert_eq!(std::fs::read(&path).expect("it is there"), bytes);
            assert_eq!(names(folder.path()), ["array"]);
        }
    }

    #[test]
    fn a_place_that_cannot_be_is_an_error() {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let missing = folder.path().join("missing").join("array");
        assert!(NewFile::at(&missing).is_err());
        let taken = folder.path().join("taken");
        std::fs::create_dir(&taken).expect("a directory can be made");
        assert!(write(&taken, b"bytes").is_err());
        assert_eq!(names(folder.path()), ["taken"]);
        assert_eq!(directory_of(Path::new("bare")), Path::new("."));
    }

    #[cfg(unix)]
    #[test]
    fn others_may_read_it_as_any_new_file() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().expect("a temporary directory");
        let (plain, placed) = (folder.path().join("plain"), folder.path().join("placed"));
        std::fs::write(&plain, b"").expect("it can be written");
        write(&placed, b"").expect("it can be written");
        let mode = |path: &Path| {
            std::fs::metadata(path)
                .expect("it is there")
                .permissions()
                .mode()
        };
        assert_eq!(mode(&placed), mode(&plain));
    }
}
