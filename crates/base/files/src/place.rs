//! What a path names, and so how it is written.

use std::fs::{File, Metadata};
use std::io;
use std::path::{Path, PathBuf};

/// As many links as the system follows.
const MOST_LINKS: usize = 40;

/// What is at a path, once its symbolic links are followed.
#[derive(Debug)]
pub enum Destination {
    /// A regular file at this path, which is no link, or nothing.
    Regular(PathBuf, Option<Metadata>),
    /// A device, FIFO or socket.
    Special(PathBuf),
    /// What this process has open (`/dev/stdout`, `/dev/fd/3`): it has a position that others share.
    Descriptor(PathBuf),
}

impl Destination {
    /// Follows the links of `path`.
    ///
    /// # Errors
    /// A directory, a circle of links, another user's link in a folder that everybody may write to, and paths that the
    /// system cannot follow. Nothing at the path is no error.
    pub fn of(path: &Path) -> io::Result<Destination> {
        let mut path = path.to_owned();
        for _ in 0..=MOST_LINKS {
            if is_descriptor(&path) {
                return Ok(Destination::Descriptor(path));
            }
            let data = match path.symlink_metadata() {
                Ok(data) => data,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    return match ends_as_folder(&path) {
                        true => Err(io::Error::new(error.kind(), "it names a folder")),
                        false => Ok(Destination::Regular(path, None)),
                    };
                }
                Err(error) => return Err(error),
            };
            if data.is_symlink() {
                check_link(&path, &data)?;
                let target = path.read_link()?;
                path = super::directory_of(&path).join(target);
            } else if data.is_dir() {
                return Err(io::Error::new(
                    io::ErrorKind::IsADirectory,
                    "it is a directory",
                ));
            } else if data.is_file() {
                return Ok(Destination::Regular(path, Some(data)));
            } else {
                return Ok(Destination::Special(path));
            }
        }
        Err(io::Error::other(
            "its symbolic links lead in a circle, or there are more than 40 of them",
        ))
    }

    /// Whether what is written can be read again from the path.
    pub fn is_regular(&self) -> bool {
        matches!(self, Destination::Regular(..))
    }
}

/// Whether a path can only be that of a folder: `weights/`.
fn ends_as_folder(path: &Path) -> bool {
    let bytes = path.as_os_str().as_encoded_bytes();
    path.file_name().is_none() || bytes.last() == Some(&b'/')
}

/// Whether this is one of the names by which the system lends a process its own open files. They look like links, and
/// are none: what they name may have no path.
#[cfg(unix)]
fn is_descriptor(path: &Path) -> bool {
    let Some(folder) = path.parent() else {
        return false;
    };
    let own = format!("/proc/{}/fd", std::process::id());
    let number = path.file_name().and_then(|name| name.to_str());
    number.is_some_and(|name| name.parse::<u32>().is_ok())
        && [
            Path::new("/proc/self/fd"),
            Path::new("/dev/fd"),
            Path::new(&own),
        ]
        .contains(&folder)
}

#[cfg(not(unix))]
fn is_descriptor(_: &Path) -> bool {
    false
}

/// Refuses a link that another user has put where everybody may put links, as Linux does for whoever opens one
/// (`fs.protected_symlinks`): it could lead to a file of ours.
#[cfg(unix)]
fn check_link(path: &Path, link: &Metadata) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt as _;
    let folder = super::directory_of(path).metadata()?;
    let open_to_all = folder.mode() & 0o1002 == 0o1002;
    let own = rustix::process::geteuid().as_raw();
    if open_to_all && link.uid() != own && link.uid() != folder.uid() {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!(
                "{} is a link of user {} in a folder that everybody may write to",
                path.display(),
                link.uid()
            ),
        ));
    }
    Ok(())
}

#[cfg(not(unix))]
fn check_link(_: &Path, _: &Metadata) -> io::Result<()> {
    Ok(())
}

/// Opens a device, FIFO or socket to write to it.
#[cfg(unix)]
pub(crate) fn open_special(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::FileTypeExt as _;
    if path.symlink_metadata()?.file_type().is_socket() {
        let stream = std::os::unix::net::UnixStream::connect(path)?;
        return Ok(File::from(std::os::fd::OwnedFd::from(stream)));
    }
    File::options().write(true).open(path)
}

#[cfg(not(unix))]
pub(crate) fn open_special(path: &Path) -> io::Result<File> {
    File::options().write(true).open(path)
}

/// Opens what this process has open. The standard output and the standard error share their position with whoever else
/// writes there; of others the end is written to.
#[cfg(unix)]
pub(crate) fn open_descriptor(path: &Path) -> io::Result<File> {
    use std::os::fd::AsFd as _;
    match path.file_name().and_then(|name| name.to_str()) {
        Some("1") => standard_output(),
        Some("2") => {
            let error = io::stderr().as_fd().try_clone_to_owned()?;
            Ok(File::from(error))
        }
        _ => File::options().append(true).open(path),
    }
}

#[cfg(not(unix))]
pub(crate) fn open_descriptor(path: &Path) -> io::Result<File> {
    File::options().append(true).open(path)
}

/// The standard output, as a file of its own handle.
#[cfg(unix)]
pub(crate) fn standard_output() -> io::Result<File> {
    use std::io::Write as _;
    use std::os::fd::AsFd as _;
    let mut output = io::stdout();
    output.flush()?;
    Ok(File::from(output.as_fd().try_clone_to_owned()?))
}

#[cfg(windows)]
pub(crate) fn standard_output() -> io::Result<File> {
    use std::io::Write as _;
    use std::os::windows::io::AsHandle as _;
    let mut output = io::stdout();
    output.flush()?;
    Ok(File::from(output.as_handle().try_clone_to_owned()?))
}
