//! Whether a file may be loaded: whether anybody but us and the system's administrator could have put
//! it there, or could change it.
//!
//! What is loaded runs with our rights, so whoever can write the file has them. That is its owner,
//! whoever its mode lets write, and, since a file is found by its name, whoever can put another in its
//! place: the owner of any directory above it, and whoever may write to one. A directory with the sticky
//! bit, like `/tmp`, lets others write but not replace what is not theirs.
//!
//! Access control lists need no look of their own: where one lets somebody write, the group's bits in the
//! mode, which are its mask, say so.

use crate::error::PluginError;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// A file that only we and the administrator can write or replace.
pub(crate) struct Trusted {
    /// The file. What is loaded is this, whatever its name means by then.
    pub(crate) file: File,
    /// Its name, without links.
    pub(crate) path: PathBuf,
}

/// Opens a file that is to be loaded.
pub(crate) fn open(asked: &Path) -> Result<Trusted, PluginError> {
    let failed = |error: io::Error| PluginError::Open {
        path: asked.to_owned(),
        reason: in_words(&error),
    };
    let path = asked.canonicalize().map_err(failed)?;
    let file = open_plain(&path).map_err(failed)?;
    let data = file.metadata().map_err(failed)?;
    if !data.is_file() {
        let what = match data.is_dir() {
            true => "it is a directory",
            false => "it is not a regular file",
        };
        return Err(PluginError::Open {
            path: asked.to_owned(),
            reason: what.to_owned(),
        });
    }
    check(&path, &file)
        .map_err(failed)?
        .map_or(Ok(()), |reason| {
            Err(PluginError::Untrusted {
                path: asked.to_owned(),
                reason,
            })
        })?;
    Ok(Trusted { file, path })
}

pub(crate) fn in_words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "it is not there".to_owned(),
        io::ErrorKind::PermissionDenied => "permission is denied".to_owned(),
        _ => error.to_string(),
    }
}

#[cfg(unix)]
fn open_plain(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    // Links are resolved already. A pipe must not make us wait.
    File::options()
        .read(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(path)
}

#[cfg(not(unix))]
fn open_plain(path: &Path) -> io::Result<File> {
    File::open(path)
}

/// What is wrong with the owners and modes of a file and of everything above it, if anything is.
#[cfg(unix)]
fn check(path: &Path, file: &File) -> io::Result<Option<String>> {
    use std::os::unix::fs::MetadataExt;
    // SAFETY: a system call without arguments that cannot fail.
    let own = unsafe { libc::geteuid() };
    let data = file.metadata()?;
    let found = Place {
        owner: data.uid(),
        mode: data.mode(),
        directory: false,
    };
    if let Some(reason) = found.objection(own) {
        return Ok(Some(format!("it {reason}")));
    }
    for directory in path.ancestors().skip(1) {
        // The name has no links any more; one that is there now was put there since.
        let data = directory.symlink_metadata()?;
        let found = Place {
            owner: data.uid(),
            mode: data.mode(),
            directory: true,
        };
        if let Some(reason) = found.objection(own) {
            let directory = directory.display();
            return Ok(Some(format!("the directory {directory} {reason}")));
        }
    }
    // That the directories are safe says nothing of a file that came from elsewhere before.
    let named = path.symlink_metadata()?;
    let same = (named.dev(), named.ino()) == (data.dev(), data.ino());
    Ok((!same).then(|| "it was replaced while it was looked at".to_owned()))
}

/// Other systems have other rules, which nobody has written down here yet.
#[cfg(not(unix))]
fn check(_: &Path, _: &File) -> io::Result<Option<String>> {
    Ok(None)
}

/// The owner and the mode of a file or directory.
#[cfg(unix)]
struct Place {
    owner: u32,
    mode: u32,
    directory: bool,
}

#[cfg(unix)]
impl Place {
    /// Who else could change what is loaded, for a process of the user `own`.
    fn objection(&self, own: u32) -> Option<String> {
        const ROOT: u32 = 0;
        let (owner, mode) = (self.owner, self.mode & 0o7777);
        if owner != own && owner != ROOT {
            let change = match self.directory {
                true => "who could put another file there",
                false => "who could change it",
            };
            return Some(format!(
                "belongs to user {owner}, {change}; it must belong to user {own} or to root"
            ));
        }
        let sticky = self.directory && mode & 0o1000 != 0;
        if mode & 0o022 != 0 && !sticky {
            return Some(format!(
                "may be written by others (mode {mode:o}); `chmod go-w` it"
            ));
        }
        None
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn owners_and_modes_decide() {
        let refused = |owner: u32, mode: u32, directory: bool| {
            let place = Place {
                owner,
                mode,
                directory,
            };
            place.objection(1000)
        };
        for directory in [false, true] {
            for owner in [0, 1000] {
                assert_eq!(refused(owner, 0o755, directory), None);
                assert_eq!(refused(owner, 0o500, directory), None);
                for open in [0o775, 0o757, 0o777, 0o720, 0o702] {
                    let reason = refused(owner, open, directory).expect("others may write");
                    assert!(reason.contains(&format!("mode {open:o}")), "{reason}");
                }
            }
            let reason = refused(1001, 0o700, directory).expect("it is somebody else's");
            assert!(
                reason.starts_with("belongs to user 1001, who could"),
                "{reason}"
            );
        }
        // `/tmp`: everybody may write, nobody may replace what is another's.
        assert_eq!(refused(0, 0o1777, true), None);
        // On a file the bit means nothing.
        assert!(refused(1000, 0o1777, false).is_some());
        // Its owner may replace everything, whatever the bit says.
        assert!(refused(1001, 0o1777, true).is_some());
    }
}
