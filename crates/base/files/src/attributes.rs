//! What a file keeps when it is replaced: its mode, its owner and group, its access control list.

use std::fs::{File, Metadata};
use std::io;
use std::path::Path;

/// The attributes of the file that is replaced.
#[derive(Debug)]
pub(crate) struct Attributes {
    #[cfg(unix)]
    mode: u32,
    #[cfg(unix)]
    owner: (u32, u32),
    /// The access control list, in the form in which the system stores it.
    #[cfg(target_os = "linux")]
    list: Option<Vec<u8>>,
    #[cfg(not(unix))]
    permissions: std::fs::Permissions,
}

#[cfg(target_os = "linux")]
const ACCESS_LIST: &str = "system.posix_acl_access";

#[cfg(unix)]
impl Attributes {
    /// Those of the file at `path`, which may be written.
    pub(crate) fn of(path: &Path, data: &Metadata) -> io::Result<Attributes> {
        use std::os::unix::fs::MetadataExt as _;
        let access = rustix::fs::accessat(
            rustix::fs::CWD,
            path,
            rustix::fs::Access::WRITE_OK,
            rustix::fs::AtFlags::EACCESS,
        );
        match access {
            Ok(()) => {}
            // A file that nobody may write to is not replaced either: that is what its mode says.
            Err(rustix::io::Errno::ACCESS | rustix::io::Errno::PERM) => {
                return Err(io::Error::new(
                    io::ErrorKind::PermissionDenied,
                    format!("it may not be written to (mode {:o})", data.mode() & 0o777),
                ));
            }
            Err(error) => return Err(error.into()),
        }
        Ok(Attributes {
            // As after a write in place: the bits that lend rights are dropped.
            mode: data.mode() & 0o777,
            owner: (data.uid(), data.gid()),
            #[cfg(target_os = "linux")]
            list: access_list(path),
        })
    }

    /// Gives them to the file that replaces it. An owner or group that the process may not give away stays its own, and
    /// then has no more rights than others had.
    pub(crate) fn give(&self, file: &File) -> io::Result<()> {
        use rustix::fs::{Gid, Uid, fchown};
        use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
        let now = file.metadata()?;
        let (owner, group) = self.owner;
        if now.gid() != group {
            let _ = fchown(file, None, Some(Gid::from_raw(group)));
        }
        if now.uid() != owner {
            let _ = fchown(file, Some(Uid::from_raw(owner)), None);
        }
        let mut mode = self.mode;
        if file.metadata()?.gid() != group {
            let others = mode & 0o007;
            mode = mode & !0o070 | (mode & others << 3);
        }
        #[cfg(target_os = "linux")]
        if let Some(list) = &self.list {
            use rustix::fs::{XattrFlags, fsetxattr};
            if fsetxattr(file, ACCESS_LIST, list, XattrFlags::empty()).is_err() {
                // With a list the bits of the group are its mask: without it they would let the group in.
                mode &= !0o070;
            }
        }
        file.set_permissions(std::fs::Permissions::from_mode(mode))
    }
}

#[cfg(target_os = "linux")]
fn access_list(path: &Path) -> Option<Vec<u8>> {
    let mut bytes = vec![0; 64 << 10];
    let length = rustix::fs::getxattr(path, ACCESS_LIST, &mut bytes).ok()?;
    bytes.truncate(length);
    Some(bytes)
}

#[cfg(not(unix))]
impl Attributes {
    pub(crate) fn of(_: &Path, data: &Metadata) -> io::Result<Attributes> {
        let permissions = data.permissions();
        match permissions.readonly() {
            true => Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                "it may not be written to",
            )),
            false => Ok(Attributes { permissions }),
        }
    }

    pub(crate) fn give(&self, file: &File) -> io::Result<()> {
        file.set_permissions(self.permissions.clone())
    }
}
