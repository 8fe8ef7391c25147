//! Compiled libraries on disk.
//!
//! An entry is three files in the directory `cc` of the cache: `KEY.c`, `KEY.so` and `KEY.meta`, which
//! holds the kernels' names, a checksum of the library and what the compiler said. The key is a hash of everything the library
//! depends on, so entries never go stale.
//!
//! Files are written elsewhere and renamed into place, so that several processes can share a cache; an
//! entry without its `.meta`, or whose library does not have the checksum that stands there, counts as
//! absent and is made again. Since what is loaded from here is run, a directory that belongs to
//! somebody else, or that others may write to, is refused.

use crate::command::{Built, file_error};
use loopwright_backend::BackendError;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The first line of every `.meta` file.
const MAGIC: &str = "loopwright cc cache 1";

/// One compiled module on disk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CacheEntry {
    /// The hash it is found by.
    pub key: String,
    /// The names of its kernels.
    pub kernels: Vec<String>,
    /// Bytes it takes on disk.
    pub bytes: u64,
    /// When it was made.
    pub created: SystemTime,
}

/// What clearing a cache removed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Cleared {
    /// Entries.
    pub count: usize,
    /// Bytes.
    pub bytes: u64,
}

/// Opens the cache for use: makes its directory where there is none, and checks that nobody else can
/// put anything there.
pub(crate) fn open(cache: &Path) -> Result<PathBuf, BackendError> {
    let directory = cache.join("cc");
    create_private(&directory).map_err(|error| file_error("create", &directory, &error))?;
    for path in [cache, &directory] {
        check_private(path)?;
    }
    Ok(directory)
}

#[cfg(unix)]
fn create_private(directory: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
}

#[cfg(not(unix))]
fn create_private(directory: &Path) -> io::Result<()> {
    fs::create_dir_all(directory)
}

#[cfg(unix)]
fn check_private(directory: &Path) -> Result<(), BackendError> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let data = fs::metadata(directory).map_err(|error| file_error("read", directory, &error))?;
    // SAFETY: a system call without arguments that cannot fail.
    let own = unsafe { libc::geteuid() };
    let mode = data.permissions().mode();
    let reason = if !data.is_dir() {
        "it is not a directory".to_owned()
    } else if data.uid() != own {
        format!(
            "it belongs to user {}, not to {own}, and code from it would be run",
            data.uid()
        )
    } else if mode & 0o022 != 0 {
        format!(
            "others may write to it (mode {:o}), and code from it would be run; chmod go-w it",
            mode & 0o777
        )
    } else {
        return Ok(());
    };
    Err(BackendError::File {
        action: "use the cache directory",
        path: directory.display().to_string(),
        reason,
    })
}

#[cfg(not(unix))]
fn check_private(_: &Path) -> Result<(), BackendError> {
    Ok(())
}

/// A library in the cache.
pub(crate) struct Found {
    pub(crate) library: PathBuf,
    /// The command that made it, and what that said; `None` if it was not written down.
    pub(crate) log: Option<String>,
}

/// The library of an entry, if it is there and whole.
pub(crate) fn lookup(directory: &Path, key: &str) -> Result<Option<Found>, BackendError> {
    let library = directory.join(format!("{key}.so"));
    let Some(meta) = read_if_there(&directory.join(format!("{key}.meta")))? else {
        return Ok(None);
    };
    let Some(meta) = Meta::parse(&meta) else {
        return Ok(None);
    };
    let Some(bytes) = read_if_there(&library)? else {
        return Ok(None);
    };
    let whole = blake3::hash(&bytes).to_hex().as_str() == meta.checksum;
    Ok(whole.then_some(Found {
        library,
        log: meta.log,
    }))
}

fn read_if_there(path: &Path) -> Result<Option<Vec<u8>>, BackendError> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(file_error("read", path, &error)),
    }
}

/// Puts a compiled module into the cache; gives the library's place there.
pub(crate) fn insert(
    directory: &Path,
    key: &str,
    built: &Built,
    kernels: &[&str],
) -> Result<PathBuf, BackendError> {
    let bytes =
        fs::read(&built.library).map_err(|error| file_error("read", &built.library, &error))?;
    let source =
        fs::read(&built.source).map_err(|error| file_error("read", &built.source, &error))?;
    let created = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs();
    let mut meta = format!("{MAGIC}\ncreated {created}\n");
    meta.push_str(&format!("checksum {}\n", blake3::hash(&bytes).to_hex()));
    for kernel in kernels {
        // Names are words, but nothing here relies on it.
        meta.push_str(&format!("kernel {}\n", kernel.replace(['\n', '\r'], " ")));
    }
    for line in built.log.lines() {
        meta.push_str(&format!("log {}\n", line.replace('\r', " ")));
    }
    place(directory, &format!("{key}.c"), &source)?;
    let library = place(directory, &format!("{key}.so"), &bytes)?;
    // Last, because an entry without it is no entry.
    place(directory, &format!("{key}.meta"), meta.as_bytes())?;
    Ok(library)
}

/// Writes a file so that it is there as a whole or not at all.
fn place(directory: &Path, name: &str, bytes: &[u8]) -> Result<PathBuf, BackendError> {
    use std::io::Write;
    let path = directory.join(name);
    let failed = |error: &io::Error| file_error("write", &path, error);
    let mut file = tempfile::Builder::new()
        .prefix(".new-")
        .tempfile_in(directory)
        .map_err(|error| failed(&error))?;
    file.write_all(bytes).map_err(|error| failed(&error))?;
    file.persist(&path).map_err(|error| failed(&error.error))?;
    Ok(path)
}

/// What a `.meta` file says.
struct Meta {
    created: SystemTime,
    checksum: String,
    kernels: Vec<String>,
    log: Option<String>,
}

impl Meta {
    fn parse(bytes: &[u8]) -> Option<Meta> {
        let mut lines = std::str::from_utf8(bytes).ok()?.lines();
        if lines.next()? != MAGIC {
            return None;
        }
        let seconds = lines.next()?.strip_prefix("created ")?.parse().ok()?;
        let checksum = lines.next()?.strip_prefix("checksum ")?.to_owned();
        let mut kernels = Vec::new();
        let mut log: Option<String> = None;
        for line in lines {
            if let Some(kernel) = line.strip_prefix("kernel ") {
                kernels.push(kernel.to_owned());
            } else {
                let log = log.get_or_insert_default();
                log.push_str(line.strip_prefix("log ")?);
                log.push('\n');
            }
        }
        Some(Meta {
            created: UNIX_EPOCH.checked_add(Duration::from_secs(seconds))?,
            checksum,
            kernels,
            log,
        })
    }
}

/// The entries of a cache, oldest first; none where there is no cache.
pub fn cache_entries(cache: &Path) -> Result<Vec<CacheEntry>, BackendError> {
    let directory = cache.join("cc");
    let mut entries = Vec::new();
    for file in files(&directory)? {
        if file.extension().is_none_or(|extension| extension != "meta") {
            continue;
        }
        let Some(bytes) = read_if_there(&file)? else {
            continue;
        };
        let (Some(meta), Some(key)) = (
            Meta::parse(&bytes),
            file.file_stem().and_then(|stem| stem.to_str()),
        ) else {
            continue;
        };
        let size = |extension: &str| {
            fs::metadata(file.with_extension(extension)).map_or(0, |data| data.len())
        };
        entries.push(CacheEntry {
            key: key.to_owned(),
            kernels: meta.kernels,
            bytes: bytes.len() as u64 + size("c") + size("so"),
            created: meta.created,
        });
    }
    entries.sort_by(|a, b| a.created.cmp(&b.created).then_with(|| a.key.cmp(&b.key)));
    Ok(entries)
}

/// Removes every entry of a cache. Libraries that are loaded stay so.
pub fn clear_cache(cache: &Path) -> Result<Cleared, BackendError> {
    let directory = cache.join("cc");
    let mut cleared = Cleared::default();
    for file in files(&directory)? {
        let extension = file.extension().and_then(|extension| extension.to_str());
        let own = matches!(extension, Some("c" | "so" | "meta"))
            || file
                .file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with(".new-"));
        if !own {
            continue;
        }
        let bytes = fs::metadata(&file).map_or(0, |data| data.len());
        match fs::remove_file(&file) {
            Ok(()) => {
                cleared.bytes += bytes;
                cleared.count += usize::from(extension == Some("meta"));
            }
            // Somebody else was faster.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(file_error("remove", &file, &error)),
        }
    }
    Ok(cleared)
}

fn files(directory: &Path) -> Result<Vec<PathBuf>, BackendError> {
    let listing = match fs::read_dir(directory) {
        Ok(listing) => listing,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(file_error("list", directory, &error)),
    };
    listing
        .map(|entry| {
            entry
                .map(|entry| entry.path())
                .map_err(|error| file_error("list", directory, &error))
        })
        .collect()
}
