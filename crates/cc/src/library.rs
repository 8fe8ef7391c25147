//! Loading the shared library that a compiler made.

use crate::NAME;
use libloading::Library;
use loopwright_backend::{BackendError, Executable};
use loopwright_emit::EmittedKernel;
use loopwright_kernel::Module;
use loopwright_native::{Entry, Made, NativeExecutable};
use std::path::Path;
use std::sync::Arc;

/// Loads a library that was compiled from the text of `module` with these entry points.
pub(crate) fn load(
    module: &Module,
    kernels: &[EmittedKernel],
    path: &Path,
    made: Made,
) -> Result<Arc<dyn Executable>, BackendError> {
    let library = open(path)?;
    let mut entries = Vec::with_capacity(kernels.len());
    for kernel in kernels {
        // SAFETY: the library was made from text in which this symbol is a function of this type; a
        // cached one has the checksum that was taken when it was made.
        let entry = unsafe { library.get::<Entry>(kernel.symbol.as_bytes()) };
        let entry = entry.map_err(|error| cannot("find a kernel in", path, &error))?;
        entries.push(*entry);
    }
    // The emitter lists kernels in the module's order, which is the order they are asked for in.
    let mut entries = entries.into_iter();
    let entry = |name: &str| {
        entries.next().ok_or_else(|| BackendError::Call {
            kernel: name.to_owned(),
            reason: "the compiled library has no such kernel".to_owned(),
        })
    };
    let executable = NativeExecutable::new(NAME, module, entry, made, library)?;
    Ok(Arc::new(executable))
}

/// Loads a library, with all its symbols at once and none of them visible to others.
fn open(path: &Path) -> Result<Library, BackendError> {
    // SAFETY: the library comes from a compiler run in a private directory, or from a cache that
    // only this user can write to, and has no initialisers.
    #[cfg(unix)]
    let library = unsafe {
        use libloading::os::unix;
        unix::Library::open(Some(path), unix::RTLD_NOW | unix::RTLD_LOCAL).map(Library::from)
    };
    // SAFETY: as above.
    #[cfg(not(unix))]
    let library = unsafe { Library::new(path) };
    library.map_err(|error| cannot("load", path, &error))
}

fn cannot(action: &'static str, path: &Path, error: &libloading::Error) -> BackendError {
    BackendError::File {
        action,
        path: path.display().to_string(),
        reason: error.to_string(),
    }
}
