//! Bytes that lie on the disk of their place and have no name there yet.
//!
//! On Linux the file has no name at all until it is placed (`O_TMPFILE`), so that not even a kill leaves it behind.
//! Elsewhere, and on file systems that cannot do that, it is called `.loopwright-` and something random.

use crate::attributes::Attributes;
use crate::{directory_of, overwrite};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use tempfile::TempPath;

/// How names of files begin that are not in their place yet.
const PREFIX: &str = ".loopwright-";

/// Where the bytes will lie.
#[derive(Debug)]
pub(crate) struct Temporary {
    place: PathBuf,
    /// What the file has from the one it replaces.
    old: Option<Attributes>,
    /// Its name, where it has one; the file is removed with it.
    name: Option<TempPath>,
}

impl Temporary {
    /// A file on the disk of `place`: of this mode where it is new, private where what it replaces may be.
    pub(crate) fn beside(
        place: PathBuf,
        old: Option<Attributes>,
        mode: u32,
    ) -> io::Result<(File, Temporary)> {
        let mode = if old.is_some() { 0o600 } else { mode };
        let (file, name) = match nameless(directory_of(&place), mode) {
            Some(file) => (file?, None),
            None => {
                let (file, name) = named(directory_of(&place), mode)?.into_parts();
                (file, Some(name))
            }
        };
        Ok((file, Temporary { place, old, name }))
    }

    /// Puts the file in its place; where the system does not let it, overwrites the one that is there.
    pub(crate) fn place(self, mut file: File, durably: bool) -> io::Result<()> {
        let Temporary { place, old, name } = self;
        if let Some(old) = &old {
            old.give(&file)?;
        }
        if durably {
            file.sync_all()?;
        }
        let name = match name {
            Some(name) => name,
            None => given_name(&file, directory_of(&place))?,
        };
        match name.persist(&place) {
            Ok(()) if durably => sync_directory(directory_of(&place)),
            Ok(()) => Ok(()),
            Err(refused) if old.is_some() && stays(&refused.error) => {
                let place = File::options().write(true).open(&place)?;
                overwrite(&mut file, place, durably)
            }
            Err(refused) => Err(refused.error),
        }
    }
}

/// Whether an error says that the file at the place cannot be replaced, only written: a mount point, or another user's
/// file in a folder like `/tmp`.
fn stays(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::PermissionDenied
            | io::ErrorKind::ResourceBusy
            | io::ErrorKind::CrossesDevices
    )
}

fn named(folder: &Path, mode: u32) -> io::Result<tempfile::NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(PREFIX);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        // What the process's mask leaves of it.
        builder.permissions(std::fs::Permissions::from_mode(mode));
    }
    #[cfg(not(unix))]
    let _ = mode;
    builder.tempfile_in(folder)
}

/// A file without a name; `None` where there are no such files.
#[cfg(target_os = "linux")]
fn nameless(folder: &Path, mode: u32) -> Option<io::Result<File>> {
    use rustix::fs::{Mode, OFlags, open};
    use rustix::io::Errno;
    // Its name is made through this folder.
    if !Path::new("/proc/self/fd").is_dir() {
        return None;
    }
    // Read, too: what cannot be renamed is copied.
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    match open(folder, flags, Mode::from_raw_mode(mode)) {
        Ok(file) => Some(Ok(File::from(file))),
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => None,
        Err(error) => Some(Err(error.into())),
    }
}

#[cfg(not(target_os = "linux"))]
fn nameless(_: &Path, _: u32) -> Option<io::Result<File>> {
    None
}

/// Gives a nameless file a name for the moment before it is renamed.
#[cfg(target_os = "linux")]
fn given_name(file: &File, folder: &Path) -> io::Result<TempPath> {
    use rustix::fs::{AtFlags, CWD, linkat};
    use std::os::fd::AsRawFd as _;
    let descriptor = format!("/proc/self/fd/{}", file.as_raw_fd());
    let made = tempfile::Builder::new()
        .prefix(PREFIX)
        .make_in(folder, |path| {
            linkat(CWD, &*descriptor, CWD, path, AtFlags::SYMLINK_FOLLOW).map_err(Into::into)
        })?;
    Ok(made.into_temp_path())
}

#[cfg(not(target_os = "linux"))]
fn given_name(_: &File, _: &Path) -> io::Result<TempPath> {
    unreachable!("elsewhere every file has a name")
}

#[cfg(unix)]
fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

/// Elsewhere a directory cannot be opened as a file, and a rename is journalled.
#[cfg(not(unix))]
fn sync_directory(_: &Path) -> io::Result<()> {
    Ok(())
}
