//! The one place that writes files and makes temporary folders.
//!
//! A [`NewFile`] is written beside its place and put there in one step. Whoever reads the place sees what was there
//! before or all of what is new, whatever happens between: an error, a kill, a full disk. A file that is dropped before it
//! is placed leaves nothing behind.
//!
//! What the path names decides how that is done:
//!
//! | at the path is | what happens |
//! | --- | --- |
//! | nothing | a new file, with the mode that the process's mask leaves of 0666 |
//! | a regular file | it is replaced atomically and keeps its mode, its owner and its access control list as far as the process may set them; one that may not be written is refused |
//! | a symbolic link | what it leads to is written as this table says, and the link stays; a link that leads nowhere makes its target, a circle is refused, and so is another user's link in a folder that everybody may write to |
//! | a device, FIFO or socket | it is written to, never replaced |
//! | a directory | it is refused |
//!
//! Where the folder takes no new files (it is read-only, or the file is a mount point) an existing file is overwritten in
//! place once all of its contents are known, which is not atomic. A file with several names (hard links) is replaced under
//! the name that was given; its other names keep the old contents. Extended attributes are not carried over.
//!
//! [`ScratchFolder`] is a private temporary folder that a later process removes if this one is killed. A [`cache`] keeps compiled
//! code in a private folder.
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

mod attributes;
pub mod cache;
mod place;
mod reading;
mod scratch;
mod temporary;

pub use place::Destination;
pub use reading::open_without_waiting;
pub use scratch::{ScratchFolder, scratch_file};

use attributes::Attributes;
use std::fs::File;
use std::io::{self, BufWriter, Seek, Write};
use std::path::Path;
use temporary::Temporary;

/// The path that stands for the standard output on a command line.
pub const STANDARD_OUTPUT: &str = "-";

/// A file that is being written and is not in its place yet. Writes are buffered.
#[derive(Debug)]
pub struct NewFile {
    writer: BufWriter<File>,
    end: End,
}

/// What makes the written bytes the contents of the place.
#[derive(Debug)]
enum End {
    /// They lie beside the place.
    Rename(Box<Temporary>),
    /// They lie elsewhere, and this file, which is the one at the place, is overwritten with them.
    Overwrite(File),
    /// They are there already: a device, a FIFO, a socket, the standard output.
    Written,
}

impl NewFile {
    /// Starts a file that will lie at `path`. Its directory has to be there. A FIFO is waited for until somebody reads it.
    ///
    /// # Errors
    /// A place that cannot be written; the error's text names what is in the way where the system's would not.
    pub fn at(path: &Path) -> io::Result<NewFile> {
        NewFile::with_mode(path, 0o666)
    }

    /// As [`NewFile::at`], and only this user can read a file that was not there before.
    ///
    /// # Errors
    /// As [`NewFile::at`].
    pub fn private_at(path: &Path) -> io::Result<NewFile> {
        NewFile::with_mode(path, 0o600)
    }

    /// `mode` is what a new file has, less what the process's mask takes away.
    fn with_mode(path: &Path, mode: u32) -> io::Result<NewFile> {
        let (file, end) = match Destination::of(path)? {
            Destination::Special(path) => (place::open_special(&path)?, End::Written),
            Destination::Descriptor(path) => (place::open_descriptor(&path)?, End::Written),
            Destination::Regular(path, old) => {
                let old = old.map(|old| Attributes::of(&path, &old)).transpose()?;
                let replaces = old.is_some();
                match Temporary::beside(path.clone(), old, mode) {
                    Ok((file, temporary)) => (file, End::Rename(Box::new(temporary))),
                    Err(error) if replaces && no_new_files(&error) => {
                        let file = File::options().write(true).open(&path)?;
                        (scratch_file()?, End::Overwrite(file))
                    }
                    Err(error) => return Err(in_folder(&path, error)),
                }
            }
        };
        Ok(NewFile {
            writer: BufWriter::new(file),
            end,
        })
    }

    /// As [`NewFile::at`], for a path of a command line: `-` is the standard output.
    ///
    /// # Errors
    /// As [`NewFile::at`].
    pub fn for_argument(path: &Path) -> io::Result<NewFile> {
        match path == Path::new(STANDARD_OUTPUT) {
            true => Ok(NewFile {
                writer: BufWriter::new(place::standard_output()?),
                end: End::Written,
            }),
            false => NewFile::at(path),
        }
    }

    /// Puts the file in its place. After a crash of the system it may be the old one, or empty on some file systems.
    ///
    /// # Errors
    /// What could not be written; then what was at the place is there as before.
    pub fn place(self) -> io::Result<()> {
        self.finish(false)
    }

    /// Puts the file in its place once its contents are on the disk, and waits until the place is known there too: after
    /// a crash of the system at any moment the old file or the new one is there, and the new one after this returned.
    ///
    /// # Errors
    /// As [`NewFile::place`].
    pub fn place_durably(self) -> io::Result<()> {
        self.finish(true)
    }

    fn finish(self, durably: bool) -> io::Result<()> {
        let mut file = self
            .writer
            .into_inner()
            .map_err(|error| error.into_error())?;
        match self.end {
            End::Written => Ok(()),
            End::Rename(temporary) => temporary.place(file, durably),
            End::Overwrite(place) => overwrite(&mut file, place, durably),
        }
    }
}

/// Gives `place` the contents of `file`.
fn overwrite(file: &mut File, mut place: File, durably: bool) -> io::Result<()> {
    file.rewind()?;
    place.set_len(0)?;
    io::copy(file, &mut place)?;
    match durably {
        true => place.sync_all(),
        false => Ok(()),
    }
}

/// Whether an error says that a folder takes no new files.
fn no_new_files(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem
    )
}

/// An error of making a file, with the folder where that is what is in the way.
fn in_folder(path: &Path, error: io::Error) -> io::Error {
    let folder = directory_of(path);
    let text = match error.kind() {
        io::ErrorKind::NotFound => format!("there is no folder {}", folder.display()),
        io::ErrorKind::PermissionDenied => {
            format!("the folder {} may not be written to", folder.display())
        }
        io::ErrorKind::ReadOnlyFilesystem => {
            format!(
                "the folder {} is on a read-only file system",
                folder.display()
            )
        }
        _ => return error,
    };
    io::Error::new(error.kind(), text)
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
///
/// # Errors
/// As [`NewFile::at`] and [`NewFile::place`].
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = NewFile::at(path)?;
    file.write_all(bytes)?;
    file.place()
}

/// As [`write()`], and only this user can read a file that was not there before.
///
/// # Errors
/// As [`write()`].
pub fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = NewFile::private_at(path)?;
    file.write_all(bytes)?;
    file.place()
}

/// As [`write()`], for a path of a command line: `-` is the standard output.
///
/// # Errors
/// As [`write()`].
pub fn write_argument(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = NewFile::for_argument(path)?;
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

/// Why a file could not be read or written, for people: our own text where there is one, else plain words for what is
/// frequent, else what the system says.
pub fn reason(error: &io::Error) -> String {
    if error.get_ref().is_some() {
        return error.to_string();
    }
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such file or directory".to_owned(),
        io::ErrorKind::IsADirectory => "it is a directory".to_owned(),
        io::ErrorKind::PermissionDenied => "permission is denied".to_owned(),
        _ => error.to_string(),
    }
}
