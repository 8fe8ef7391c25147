//! Opening files that nobody should have to wait for.

use std::fs::File;
use std::io;
use std::path::Path;

/// Opens a file to read it, and never waits: a FIFO or socket is refused, and reading a terminal on which nobody has typed
/// is an error of the kind `WouldBlock`. For what is read without anybody having asked for it to be waited for, such as a
/// configuration.
///
/// # Errors
/// A path that cannot be opened, or is no file.
pub fn open_without_waiting(path: &Path) -> io::Result<File> {
    let file = open(path)?;
    let data = file.metadata()?;
    if data.is_dir() {
        return Err(io::Error::new(
            io::ErrorKind::IsADirectory,
            "it is a directory",
        ));
    }
    check_kind(&data)?;
    Ok(file)
}

#[cfg(unix)]
fn open(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
    let flags = i32::try_from(flags.bits()).map_err(io::Error::other)?;
    File::options().read(true).custom_flags(flags).open(path)
}

#[cfg(not(unix))]
fn open(path: &Path) -> io::Result<File> {
    File::open(path)
}

#[cfg(unix)]
fn check_kind(data: &std::fs::Metadata) -> io::Result<()> {
    use std::os::unix::fs::FileTypeExt as _;
    let kind = data.file_type();
    match kind.is_fifo() || kind.is_socket() {
        true => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is a FIFO or a socket, not a regular file",
        )),
        false => Ok(()),
    }
}

#[cfg(not(unix))]
fn check_kind(_: &std::fs::Metadata) -> io::Result<()> {
    Ok(())
}
