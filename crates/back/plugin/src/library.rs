//! Loading the shared library, and finding the entry point in it.

use crate::abi::{ENTRY_SYMBOL, Entry};
use crate::error::PluginError;
use crate::trust::Trusted;
use loopwright_native::SharedLibrary;
use std::path::{Path, PathBuf};

/// Loads a plug-in's library for good, and finds its entry point.
///
/// It is never unloaded: its table, its functions, threads it may have started and destructors it may
/// have registered live in it, and none of them says when it is done.
pub(crate) fn entry(trusted: Trusted, asked: &Path) -> Result<Entry, PluginError> {
    let name = name_to_load(&trusted);
    // SAFETY: loading runs the library's initialisers. That they are those of somebody whom we trust is
    // what was checked.
    let library = unsafe { SharedLibrary::open(&name) };
    let library = library.map_err(|error| PluginError::Library {
        path: asked.to_owned(),
        // The system tells of the name it was given, which says nothing to anybody.
        reason: error
            .to_string()
            .replace(&*name.to_string_lossy(), &asked.to_string_lossy()),
    })?;
    let library: &'static SharedLibrary = Box::leak(Box::new(library));
    // Loaders know a library by the name it was loaded by. The descriptor stays open with the library,
    // so that its number, which is in the name, is never another file's.
    std::mem::forget(trusted.file);
    // SAFETY: a symbol of this name is a function of this type: whoever gives something else the name
    // could as well do harm when the library is loaded.
    let entry = unsafe { library.get::<Entry>(ENTRY_SYMBOL) };
    entry
        .map(|entry| *entry)
        .map_err(|_| PluginError::NoSymbol {
            path: asked.to_owned(),
        })
}

/// A name for the file that was opened and checked, not for what has its path now.
#[cfg(target_os = "linux")]
fn name_to_load(trusted: &Trusted) -> PathBuf {
    use std::os::fd::AsRawFd;
    let opened = PathBuf::from(format!("/proc/self/fd/{}", trusted.file.as_raw_fd()));
    match opened.exists() {
        true => opened,
        // Without `/proc`: the path. Nobody but us and root can have replaced what is there.
        false => trusted.path.clone(),
    }
}

/// Other systems cannot load an open file. Nobody but us and root can have replaced what is at the path,
/// which was checked with everything above it.
#[cfg(not(target_os = "linux"))]
fn name_to_load(trusted: &Trusted) -> PathBuf {
    trusted.path.clone()
}
