//! Finding and loading plug-ins.

use crate::abi::{Entry, LW_ABI_VERSION};
use crate::error::PluginError;
use crate::loaded::{Loaded, PluginBackend};
use crate::table::{self, Form};
use crate::{host, library, trust};
use loopwright_backend::{Backend, backends, register};
use loopwright_threads::ProcessMutex;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A plug-in that was loaded. It stays loaded until the process ends, whatever becomes of this.
#[derive(Clone, Debug)]
pub struct Plugin {
    backend: Backend,
    priority: i32,
    description: String,
    path: PathBuf,
}

impl Plugin {
    /// The backend's name.
    pub fn name(&self) -> &str {
        self.backend.name()
    }

    /// One line about it, by its author.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// The file it came from.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Preference of `auto`, as that of [`register`].
    pub fn priority(&self) -> i32 {
        self.priority
    }

    /// The backend.
    pub fn backend(&self) -> &Backend {
        &self.backend
    }

    /// Makes the backend known to every front end of this process.
    ///
    /// # Errors
    /// [`PluginError::NameTaken`] where one of its name has been registered since it was loaded.
    pub fn register(&self) -> Result<(), PluginError> {
        register(self.priority, self.backend.clone()).map_err(|_| PluginError::NameTaken {
            path: self.path.clone(),
            name: self.name().to_owned(),
            other: "a backend that is there already".to_owned(),
        })
    }
}

/// The names of all plug-ins that were loaded, with their files.
static NAMES: ProcessMutex<BTreeMap<String, PathBuf>> = ProcessMutex::new(BTreeMap::new());

/// Loads a plug-in.
///
/// A file that anybody but this user and root could have written or put there is not loaded; see
/// [`PluginError::Untrusted`]. What the plug-in says of itself is checked before it is believed. That it
/// does no harm cannot be checked: it runs in this process, with its rights.
///
/// # Errors
/// Why it was not loaded. A file that the system has loaded and that is refused later stays loaded, and
/// nothing of it is called.
pub fn load(path: &Path) -> Result<Plugin, PluginError> {
    let trusted = trust::open(path)?;
    let entry = library::entry(trusted, path)?;
    // SAFETY: whoever wrote a file with this symbol says that it is what the header declares.
    unsafe { from_entry(entry, path) }
}

/// A plug-in that is part of this program, by its entry point: for the tests of a plug-in's own crate.
/// `path` is what messages call it.
///
/// # Safety
/// The entry point and the table that it gives are what the header says they are.
///
/// # Errors
/// As for [`load`], but for what is about files.
pub unsafe fn from_entry(entry: Entry, path: &Path) -> Result<Plugin, PluginError> {
    // SAFETY: the caller says that it is an entry point.
    let table = unsafe { entry(LW_ABI_VERSION, host::table()) };
    // SAFETY: as above: it gives null or a table.
    let table = unsafe { table::read(table, path) }?;
    let taken = |other: String| PluginError::NameTaken {
        path: path.to_owned(),
        name: table.name.clone(),
        other,
    };
    // Before the lock, which nothing is waited for under.
    let is_known = backends().iter().any(|known| known.name() == table.name);
    let mut names = NAMES.lock();
    if let Some(other) = names.get(&table.name) {
        return Err(taken(match other == path {
            true => "what was loaded from it before".to_owned(),
            false => format!("the plug-in {}", other.display()),
        }));
    }
    if is_known {
        return Err(taken("a backend that is built in".to_owned()));
    }
    names.insert(table.name.clone(), path.to_owned());
    drop(names);
    let (priority, form, brings_devices) = (table.priority, table.form, table.device.is_some());
    let description = table.description.clone();
    let loaded = Arc::new(Loaded::new(table, path.to_owned()));
    let backend = match form {
        _ if brings_devices => Backend::device_backend(PluginBackend(loaded)),
        Form::Kernel | Form::C | Form::C99 => Backend::kernel_backend(PluginBackend(loaded)),
        Form::Program => Backend::loop_backend(PluginBackend(loaded)),
    };
    Ok(Plugin {
        backend,
        priority,
        description,
        path: path.to_owned(),
    })
}

/// Loads every plug-in of a directory: every file whose name ends as those of shared libraries do on this
/// system (`.so`), in the order of their names. Other files, and those in directories below, are passed
/// over.
pub fn scan(directory: &Path) -> (Vec<Plugin>, Vec<PluginError>) {
    let (mut plugins, mut errors) = (Vec::new(), Vec::new());
    match files(directory) {
        Ok(files) => {
            for file in files {
                match load(&file) {
                    Ok(plugin) => plugins.push(plugin),
                    Err(error) => errors.push(error),
                }
            }
        }
        Err(error) => errors.push(error),
    }
    (plugins, errors)
}

/// The plug-ins of a directory, in order.
fn files(directory: &Path) -> Result<Vec<PathBuf>, PluginError> {
    let failed = |error: std::io::Error| PluginError::Directory {
        path: directory.to_owned(),
        reason: trust::in_words(&error),
    };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        // A directory called `x.so` is somebody's mistake, and told as such.
        if path.extension() == Some(OsStr::new(std::env::consts::DLL_EXTENSION)) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Something that was not loaded.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{error}")]
pub struct Problem {
    /// Why.
    pub error: PluginError,
    /// Whether somebody asked for this very plug-in: then it is an error. What lies in a directory and is
    /// no plug-in is worth a warning.
    pub asked: bool,
}

/// Loads the plug-ins that were asked for by their files, then those of directories. One that is asked for and lies
/// in a directory too is loaded once.
pub fn load_all(directories: &[PathBuf], files_asked: &[PathBuf]) -> (Vec<Plugin>, Vec<Problem>) {
    let (mut plugins, mut problems) = (Vec::new(), Vec::new());
    let mut seen: Vec<PathBuf> = Vec::new();
    let mut take = |file: &Path, asked: bool| {
        // A file that cannot be found is told as such by `load`.
        if let Ok(same) = file.canonicalize() {
            if seen.contains(&same) {
                return;
            }
            seen.push(same);
        }
        match load(file) {
            Ok(plugin) => plugins.push(plugin),
            Err(error) => problems.push(Problem { error, asked }),
        }
    };
    for file in files_asked {
        take(file, true);
    }
    let mut unlisted = Vec::new();
    for directory in directories {
        match files(directory) {
            Ok(files) => files.iter().for_each(|file| take(file, false)),
            Err(error) => unlisted.push(Problem {
                error,
                asked: false,
            }),
        }
    }
    problems.extend(unlisted);
    (plugins, problems)
}
