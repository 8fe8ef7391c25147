//! Temporary folders that do not outlive their process for long.
//!
//! A process holds a lock on each of its folders, which the system releases when the process ends, however it ends. The
//! first folder that a process makes has it look for folders of this user that nobody holds any more, and remove them.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use tempfile::TempDir;

/// How the names of all such folders begin, and of nothing else: what begins like this and is not locked is removed.
const PREFIX: &str = "loopwright-scratch-";

/// How often a folder is made anew that another process took for abandoned between its making and its locking.
const TRIES: usize = 16;

/// A private folder for temporary files, in the system's folder for such (`TMPDIR`). It is removed when this is dropped, or
/// by a later process of the same user if this one is killed.
#[derive(Debug)]
pub struct ScratchFolder {
    folder: TempDir,
    /// Holds the lock. `None` where the file system has no locks: there such folders stay after a kill.
    lock: Option<File>,
}

impl ScratchFolder {
    /// Makes a folder; `purpose` becomes a part of its name.
    ///
    /// # Errors
    /// A folder for temporary files that is not there or cannot be written to; the text names it, and the variable that
    /// chose it.
    pub fn new(purpose: &str) -> io::Result<ScratchFolder> {
        // No `Once`: a child that is forked while another thread sweeps would wait for that thread for ever.
        static SWEPT: AtomicBool = AtomicBool::new(false);
        let parent = std::env::temp_dir();
        if !SWEPT.swap(true, Ordering::Relaxed) {
            remove_abandoned(&parent);
        }
        ScratchFolder::inside(&parent, purpose).map_err(|error| explain(&parent, error))
    }

    fn inside(parent: &Path, purpose: &str) -> io::Result<ScratchFolder> {
        for _ in 0..TRIES {
            let prefix = format!("{PREFIX}{purpose}-");
            let mut builder = tempfile::Builder::new();
            builder.prefix(&prefix);
            #[cfg(unix)]
            {
                use std::os::unix::fs::PermissionsExt as _;
                builder.permissions(std::fs::Permissions::from_mode(0o700));
            }
            let folder = builder.tempdir_in(parent)?;
            let lock = match File::open(folder.path()) {
                Ok(lock) => lock,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            match lock.try_lock() {
                Ok(()) if is_at(&lock, folder.path()) => {
                    let lock = Some(lock);
                    return Ok(ScratchFolder { folder, lock });
                }
                Err(std::fs::TryLockError::Error(_)) => {
                    return Ok(ScratchFolder { folder, lock: None });
                }
                // Another process is removing it.
                Ok(()) | Err(std::fs::TryLockError::WouldBlock) => {}
            }
        }
        Err(io::Error::other(
            "its temporary folders are removed as soon as they are made",
        ))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Leaves the folder where it is for good, for whoever looks into it. Its name tells later processes to leave it alone.
    pub fn keep(self) -> PathBuf {
        let ScratchFolder { folder, lock } = self;
        let path = folder.keep();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let kept = path.with_file_name(format!("kept-{name}"));
        let path = match std::fs::rename(&path, &kept) {
            Ok(()) => kept,
            Err(_) => path,
        };
        drop(lock);
        path
    }
}

/// A temporary file without a name.
///
/// # Errors
/// As [`ScratchFolder::new`].
pub fn scratch_file() -> io::Result<File> {
    tempfile::tempfile().map_err(|error| explain(&std::env::temp_dir(), error))
}

/// The system's folder for temporary files could not be used: says which it is and who chose it.
fn explain(parent: &Path, error: io::Error) -> io::Error {
    let shown = match std::env::var_os("TMPDIR").filter(|value| !value.is_empty()) {
        Some(_) if cfg!(unix) => format!("TMPDIR={}", parent.display()),
        _ => format!("the folder for temporary files {}", parent.display()),
    };
    let text = match error.kind() {
        io::ErrorKind::NotFound => {
            format!("{shown} does not exist; make it, or set TMPDIR to a folder")
        }
        io::ErrorKind::NotADirectory => format!("{shown} is not a folder; set TMPDIR to one"),
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            format!("{shown} may not be written to; set TMPDIR to a folder of your own")
        }
        _ => format!("{shown} cannot be used: {error}"),
    };
    io::Error::new(error.kind(), text)
}

/// Removes the folders of this user that no process holds. What cannot be removed stays: nobody asked for it.
fn remove_abandoned(parent: &Path) {
    let Ok(entries) = std::fs::read_dir(parent) else {
        return;
    };
    for entry in entries.flatten() {
        let ours = entry
            .file_name()
            .to_str()
            .is_some_and(|name| name.starts_with(PREFIX));
        if ours && is_own_folder(&entry.path()) {
            remove_if_abandoned(&entry.path());
        }
    }
}

fn remove_if_abandoned(path: &Path) {
    // A file system without locks has nobody hold them: what is there is left alone.
    if let Ok(lock) = File::open(path)
        && lock.try_lock().is_ok()
        && is_at(&lock, path)
    {
        let _ = std::fs::remove_dir_all(path);
    }
}

#[cfg(unix)]
fn is_own_folder(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let own = rustix::process::geteuid().as_raw();
    path.symlink_metadata()
        .is_ok_and(|data| data.is_dir() && data.uid() == own && data.mode() & 0o077 == 0)
}

#[cfg(not(unix))]
fn is_own_folder(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|data| data.is_dir())
}

/// Whether this open folder is still the one at the path.
#[cfg(unix)]
fn is_at(folder: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    match (folder.metadata(), path.symlink_metadata()) {
        (Ok(open), Ok(named)) => (open.dev(), open.ino()) == (named.dev(), named.ino()),
        _ => false,
    }
}

#[cfg(not(unix))]
fn is_at(_: &File, path: &Path) -> bool {
    path.is_dir()
}
