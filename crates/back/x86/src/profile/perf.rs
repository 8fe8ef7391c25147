//! The map of generated code that `perf` reads.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// Where `perf` looks for the map of this process.
pub(super) fn path() -> PathBuf {
    PathBuf::from(format!("/tmp/perf-{}.map", std::process::id()))
}

/// Adds functions, each its address, size and name, to the map of this process that `perf report` reads.
///
/// Other generators of code in this process may write to the same file, so it is only ever added to.
pub fn perf_map<'a>(entries: impl IntoIterator<Item = (u64, usize, &'a str)>) -> io::Result<()> {
    let mut text = String::new();
    for (address, size, name) in entries {
        let name = name.replace(|c: char| c.is_control(), "_");
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{address:x} {size:x} {name}");
    }
    // One write for all: lines of other threads come before or behind it, not between.
    open(&path())?.write_all(text.as_bytes())
}

/// Opens the map to add to it.
///
/// Everyone can write to the folder, so somebody else may have put something there: a link, another's file, a pipe that
/// blocks. Only a plain file of our own, under this name alone, is written to.
#[cfg(unix)]
fn open(path: &Path) -> io::Result<File> {
    use rustix::fs::OFlags;
    use std::os::unix::fs::{MetadataExt, OpenOptionsExt};

    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let flags = i32::try_from(flags.bits()).expect("the flags of open fit an int");
    let file = File::options()
        .append(true)
        .create(true)
        .mode(0o600)
        .custom_flags(flags)
        .open(path)?;
    let metadata = file.metadata()?;
    let own = metadata.is_file()
        && metadata.uid() == rustix::process::geteuid().as_raw()
        && metadata.nlink() == 1;
    if !own {
        let text = format!(
            "{} is not a plain file of this user, so no map for perf is written",
            path.display()
        );
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
    }
    Ok(file)
}

/// Without `perf`, nobody reads a map.
#[cfg(not(unix))]
fn open(_: &Path) -> io::Result<File> {
    let text = format!("there is no `perf` on {}", std::env::consts::OS);
    Err(io::Error::new(io::ErrorKind::Unsupported, text))
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// A fresh folder for a test.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path =
                std::env::temp_dir().join(format!("loopwright-{name}-{}", std::process::id()));
            std::fs::create_dir(&path).expect("a fresh folder");
            Folder(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn the_file_is_ours_alone_and_added_to() {
        let folder = Folder::new("perf-plain");
        let path = folder.0.join("map");
        open(&path)
            .and_then(|mut file| file.write_all(b"one\n"))
            .expect("a new file");
        open(&path)
            .and_then(|mut file| file.write_all(b"two\n"))
            .expect("the same file again");
        assert_eq!(
            std::fs::read_to_string(&path).expect("the file"),
            "one\ntwo\n"
        );
        let mode = std::fs::metadata(&path)
            .expect("the file")
            .permissions()
            .mode();
        assert_eq!(mode & 0o077, 0, "others cannot read or write it: {mode:o}");
    }

    #[test]
    fn links_and_folders_are_refused() {
        let folder = Folder::new("perf-links");
        let victim = folder.0.join("victim");
        std::fs::write(&victim, "precious").expect("a file");
        let (soft, hard) = (folder.0.join("soft"), folder.0.join("hard"));
        std::os::unix::fs::symlink(&victim, &soft).expect("a link");
        std::fs::hard_link(&victim, &hard).expect("a second name");
        for path in [&soft, &hard, &folder.0] {
            assert!(open(path).is_err(), "{} was opened", path.display());
        }
        assert_eq!(
            std::fs::read_to_string(&victim).expect("the file"),
            "precious"
        );
    }
}
