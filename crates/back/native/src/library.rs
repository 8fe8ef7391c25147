//! Shared libraries that are loaded into this process.

use libloading::{Error, Library};
use loopwright_threads::linker;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::path::Path;

/// A shared library, unloaded when this is dropped. No fork falls into the middle of loading or unloading it: a child
/// could never load anything.
#[derive(Debug)]
pub struct SharedLibrary(ManuallyDrop<Library>);

impl SharedLibrary {
    /// Loads a library, with all its symbols at once and none of them visible to others.
    ///
    /// # Errors
    /// What the dynamic linker says.
    ///
    /// # Safety
    /// Loading runs the library's initialisers, and unloading what it registered for that: the caller trusts them.
    pub unsafe fn open(path: &Path) -> Result<SharedLibrary, Error> {
        let _linker = linker();
        #[cfg(unix)]
        // SAFETY: as the caller states.
        let library = unsafe {
            use libloading::os::unix;
            unix::Library::open(Some(path), unix::RTLD_NOW | unix::RTLD_LOCAL).map(Library::from)
        };
        #[cfg(not(unix))]
        // SAFETY: as the caller states.
        let library = unsafe { Library::new(path) };
        library.map(|library| SharedLibrary(ManuallyDrop::new(library)))
    }
}

impl Deref for SharedLibrary {
    type Target = Library;

    fn deref(&self) -> &Library {
        &self.0
    }
}

impl Drop for SharedLibrary {
    fn drop(&mut self) {
        let _linker = linker();
        // SAFETY: dropped here and nowhere else.
        unsafe { ManuallyDrop::drop(&mut self.0) }
    }
}
