//! Compiled code on disk, for every backend that wants to keep what it made.
//!
//! A cache is a directory with one directory inside for each backend. An entry is some files there: `KEY.EXTENSION` for
//! each that the backend keeps, and `KEY.meta`, which holds their checksums, the names of the kernels and what the
//! compiler said. The [`Key`] is a hash of everything the code depends on, so entries never go stale.
//!
//! Files are written elsewhere and renamed into place, `KEY.meta` last, so that several processes can share a cache. An
//! entry without its `.meta`, or one in which any byte is not what was written, counts as absent and is made again.
//! A backend keeps up to 1 GiB ([`LIMIT`]): beyond that, what was not used for longest is removed. Since what is read from here is run, a directory that belongs to somebody else, or that others may write to, is
//! refused.
//!
//! A backend keeps its code through [`Cache`]; [`entries`] and [`clear`] are for whoever looks after the whole, such as
//! `loopwright cache`.
//!
//! ```
//! use loopwright_files::cache::{Cache, Key, clear, entries};
//!
//! let directory = tempfile::tempdir()?;
//! let root = directory.path().join("cache");
//! let cache = Cache::open(&root, "cc")?;
//! let key = Key::of(["gcc 12.2", "-O3", "void fill(float *p) { *p = 1; }"]);
//! assert!(cache.lookup(&key)?.is_none());
//! cache.insert(&key, &["fill"], "gcc -O3 fill.c\n", &[("so", b"\x7fELF")])?;
//!
//! let entry = cache.lookup(&key)?.expect("it was kept");
//! assert_eq!(entry.bytes("so"), Some(&b"\x7fELF"[..]));
//! assert_eq!(entry.log(), "gcc -O3 fill.c\n");
//! assert_eq!(entries(&root)?[0].backend, "cc");
//! assert_eq!(clear(&root)?.count, 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod contents;
mod error;
mod key;
mod limit;
mod meta;
mod private;

pub use contents::{CacheEntry, Cleared, clear, entries};
pub use error::CacheError;
pub use key::Key;
pub use limit::LIMIT;

use loopwright_text::escape;
use meta::{KeptFile, Meta, checksum};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

/// The extension of the file that makes an entry of the files beside it.
const META: &str = "meta";

/// How the names of files began that were not in place yet: an older version may have left some.
const NEW: &str = ".new-";

/// The file that says of a directory that it is a backend's in a cache; backups know its name, and pass by.
const TAG: &str = "CACHEDIR.TAG";

/// What the tag says. The first line is the one by which others know such files.
const TAG_TEXT: &str = "Signature: 8a477f597d28d172789f06886806bc55\n\
                        # Loopwright keeps compiled code here; `loopwright cache clear` removes it.\n";

/// One backend's part of a cache.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cache {
    directory: PathBuf,
}

impl Cache {
    /// Opens the part of the cache at `root` that belongs to `backend`: makes its directory where there is none, and
    /// checks that nobody else can put anything there.
    pub fn open(root: &Path, backend: &str) -> Result<Cache, CacheError> {
        check_name(backend)?;
        let directory = root.join(backend);
        private::create(&directory)
            .map_err(|reason| CacheError::file("create", &directory, reason))?;
        for path in [root, &directory] {
            private::check(path)?;
        }
        let cache = Cache { directory };
        if !is_tagged(&cache.directory)? {
            cache.place(&cache.directory.join(TAG), TAG_TEXT.as_bytes())?;
        }
        Ok(cache)
    }

    /// Where the file with this extension lies, if the entry is there.
    pub fn path(&self, key: &Key, extension: &str) -> PathBuf {
        self.directory.join(format!("{key}.{extension}"))
    }

    /// An entry, if it is there and whole.
    pub fn lookup(&self, key: &Key) -> Result<Option<Entry>, CacheError> {
        let meta = read_if_there(&self.path(key, META))?;
        let Some(meta) = meta.as_deref().and_then(Meta::parse) else {
            return Ok(None);
        };
        let mut files = Vec::with_capacity(meta.files.len());
        for file in meta.files {
            match read_if_there(&self.path(key, &file.extension))? {
                Some(bytes) if checksum(&bytes) == file.checksum => {
                    files.push((file.extension, bytes));
                }
                _ => return Ok(None),
            }
        }
        limit::touch(&self.path(key, META));
        Ok(Some(Entry {
            log: meta.log,
            files,
        }))
    }

    /// Keeps code: the files it is made of, each with an extension of its own, the names of its kernels, and what the
    /// compiler said. An entry that is there already is replaced.
    pub fn insert(
        &self,
        key: &Key,
        kernels: &[&str],
        log: &str,
        files: &[(&str, &[u8])],
    ) -> Result<(), CacheError> {
        let mut kept = Vec::with_capacity(files.len());
        for &(extension, bytes) in files {
            if extension == META {
                return Err(CacheError::name(extension));
            }
            check_name(extension)?;
            self.place(&self.path(key, extension), bytes)?;
            kept.push(KeptFile {
                extension: extension.to_owned(),
                checksum: checksum(bytes),
            });
        }
        let meta = Meta {
            created: SystemTime::now(),
            files: kept,
            kernels: kernels.iter().map(|&kernel| kernel.to_owned()).collect(),
            log: log.to_owned(),
        };
        // Last, because an entry without it is no entry.
        self.place(&self.path(key, META), &meta.to_bytes())?;
        limit::after_insertion(&self.directory);
        Ok(())
    }

    /// Writes a file so that it is there as a whole or not at all.
    fn place(&self, path: &Path, bytes: &[u8]) -> Result<(), CacheError> {
        crate::write_private(path, bytes).map_err(|reason| CacheError::file("write", path, reason))
    }
}

/// What came of using a cache, or `None` with a warning on the standard error. A cache only saves time: one that cannot be
/// read, written or trusted makes nothing fail. One warning is enough for a process.
pub fn usable<T>(result: Result<T, CacheError>) -> Option<T> {
    static TOLD: AtomicBool = AtomicBool::new(false);
    result
        .inspect_err(|error| {
            if !TOLD.swap(true, Ordering::Relaxed) {
                let text = format!("warning: compiled code is not kept: {error}; LOOPWRIGHT_CACHE_DIR names another directory\n");
                // Where stderr is gone there is nobody to tell.
                let _ = io::stderr().write_all(escape(&text).as_bytes());
            }
        })
        .ok()
}

/// What was kept under a key, whole.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    log: String,
    files: Vec<(String, Vec<u8>)>,
}

impl Entry {
    /// What the file with this extension holds, if there is one.
    pub fn bytes(&self, extension: &str) -> Option<&[u8]> {
        let found = self.files.iter().find(|(kept, _)| kept == extension);
        found.map(|(_, bytes)| bytes.as_slice())
    }

    /// What the compiler said when the code was made.
    pub fn log(&self) -> &str {
        &self.log
    }
}

/// Backends and extensions are parts of files' names.
fn check_name(name: &str) -> Result<(), CacheError> {
    match is_name(name) {
        true => Ok(()),
        false => Err(CacheError::name(name)),
    }
}

fn is_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    !name.is_empty() && name.chars().all(allowed)
}

/// Whether a directory is a backend's in a cache.
fn is_tagged(directory: &Path) -> Result<bool, CacheError> {
    let tag = read_if_there(&directory.join(TAG))?;
    Ok(tag.is_some_and(|tag| tag == TAG_TEXT.as_bytes()))
}

fn read_if_there(path: &Path) -> Result<Option<Vec<u8>>, CacheError> {
    match read_regular(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(CacheError::file("read", path, error)),
    }
}

/// All of a regular file. Nobody waits for a FIFO, and a device may have no end.
fn read_regular(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = crate::open_without_waiting(path)?;
    if !file.metadata()?.is_file() {
        let kind = io::ErrorKind::InvalidInput;
        return Err(io::Error::new(kind, "it is not a regular file"));
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}
