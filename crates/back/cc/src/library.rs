//! Loading the shared library that a compiler made.

use crate::NAME;
use loopwright_backend::{BackendError, Executable};
use loopwright_emit::{ATTENTION_SYMBOL, EmittedKernel, POLL_SYMBOL};
use loopwright_kernel::Module;
use loopwright_native::{Entry, Made, NativeExecutable, SharedLibrary};
use loopwright_threads::interrupt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

/// Loads a library that was compiled from the text of `module` with these entry points.
pub(crate) fn load(
    module: &Module,
    kernels: &[EmittedKernel],
    path: &Path,
    made: Made,
) -> Result<Arc<dyn Executable>, BackendError> {
    let library = open(path)?;
    set_poll(&library);
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

/// Tells the loops of a library, where it has such, what they look at and whom they ask whether they are to be left.
fn set_poll(library: &SharedLibrary) {
    type Poll = extern "C" fn() -> u32;
    // SAFETY: the library was made from text in which these symbols, if they are there, are pointers of these types. A library that
    // is loaded already gets the values that it has.
    unsafe {
        if let Ok(poll) = library.get::<*mut Poll>(POLL_SYMBOL.as_bytes())
            && let Ok(attention) = library.get::<*mut *const AtomicU32>(ATTENTION_SYMBOL.as_bytes())
        {
            **poll = interrupt::poll;
            **attention = interrupt::attention();
        }
    }
}

fn open(path: &Path) -> Result<SharedLibrary, BackendError> {
    // SAFETY: the library comes from a compiler run in a private directory, or from a cache that
    // only this user can write to, and has no initialisers.
    let library = unsafe { SharedLibrary::open(path) };
    library.map_err(|error| cannot("load", path, &error))
}

fn cannot(action: &'static str, path: &Path, error: &libloading::Error) -> BackendError {
    BackendError::File {
        action,
        path: path.display().to_string(),
        reason: error.to_string(),
    }
}
