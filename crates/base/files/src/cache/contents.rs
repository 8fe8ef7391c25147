//! What is in a cache, over all backends.

use crate::cache::meta::Meta;
use crate::cache::{CacheError, Key, META, NEW, is_name, is_tagged, read_if_there};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Compiled code on disk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CacheEntry {
    /// The backend that made it.
    pub backend: String,
    /// What it is found by.
    pub key: Key,
    /// The names of its kernels; none where it is something else, such as the firmware of a device.
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

/// The entries of all backends in the cache at `root`, oldest first; none where there is no cache.
pub fn entries(root: &Path) -> Result<Vec<CacheEntry>, CacheError> {
    let mut entries = Vec::new();
    for (backend, directory) in directories(root)? {
        for (name, path) in listing(&directory)? {
            let Some((key, META)) = entry_file(&name) else {
                continue;
            };
            // One that has just been removed, or is damaged, is no entry.
            let Some(bytes) = read_if_there(&path)? else {
                continue;
            };
            let Some(meta) = Meta::parse(&bytes) else {
                continue;
            };
            let files = meta.files.iter();
            let sizes = files.map(|file| size(&path.with_extension(&file.extension)));
            entries.push(CacheEntry {
                backend: backend.clone(),
                key,
                bytes: bytes.len() as u64 + sizes.sum::<u64>(),
                kernels: meta.kernels,
                created: meta.created,
            });
        }
    }
    entries.sort_by(|a, b| {
        let a = (a.created, &a.backend, &a.key);
        a.cmp(&(b.created, &b.backend, &b.key))
    });
    Ok(entries)
}

/// Removes every entry of the cache at `root`, with what is left of damaged and unfinished ones. Nothing else is
/// touched, and code that is loaded stays so.
pub fn clear(root: &Path) -> Result<Cleared, CacheError> {
    let mut cleared = Cleared::default();
    for (_, directory) in directories(root)? {
        for (name, path) in listing(&directory)? {
            let file = entry_file(&name);
            // A process that ended too early may have left files that were not put into place.
            if file.is_none() && !name.starts_with(NEW) {
                continue;
            }
            let bytes = size(&path);
            match fs::remove_file(&path) {
                Ok(()) => {
                    cleared.bytes += bytes;
                    cleared.count += usize::from(file.is_some_and(|(_, kind)| kind == META));
                }
                // Somebody else was faster.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(CacheError::file("remove", &path, error)),
            }
        }
    }
    Ok(cleared)
}

/// The key and the extension of a file that belongs to an entry.
pub(crate) fn entry_file(name: &str) -> Option<(Key, &str)> {
    let (key, rest) = Key::split(name)?;
    let extension = rest.strip_prefix('.')?;
    is_name(extension).then_some((key, extension))
}

/// The backends that keep something in a cache, with their directories. Whatever else lies there is not ours.
fn directories(root: &Path) -> Result<Vec<(String, PathBuf)>, CacheError> {
    let mut found = Vec::new();
    for (name, path) in listing(root)? {
        if is_name(&name) && path.is_dir() && is_tagged(&path)? {
            found.push((name, path));
        }
    }
    Ok(found)
}

/// What lies in a directory, with names; nothing where there is no directory.
pub(crate) fn listing(directory: &Path) -> Result<Vec<(String, PathBuf)>, CacheError> {
    let failed = |reason| CacheError::file("list", directory, reason);
    let listing = match fs::read_dir(directory) {
        Ok(listing) => listing,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut found = Vec::new();
    for entry in listing {
        let entry = entry.map_err(failed)?;
        // Our names are ASCII.
        if let Ok(name) = entry.file_name().into_string() {
            found.push((name, entry.path()));
        }
    }
    Ok(found)
}

fn size(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |data| data.len())
}
