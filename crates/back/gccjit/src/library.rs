//! Finding the library, and trying whether it works.

use crate::context::Context;
use crate::ffi::{Api, FuncKind, MissingSymbol, types};
use crate::probe::{Probed, SHORT, in_child};
use libloading::Library;
use loopwright_backend::Unavailable;
use loopwright_files::ScratchFolder;
use loopwright_threads::{PerProcess, linker};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The names that the library is looked for under: that of its one ABI, then that of development packages.
pub(crate) const NAMES: [&str; 2] = ["libgccjit.so.0", "libgccjit.so"];

/// What would help where the library is missing.
const HELP: &str = "install it (Debian, Ubuntu: apt-get install libgccjit0)";

/// The library, loaded.
pub(crate) struct Loaded {
    pub(crate) api: Api,
    /// What it is, for people: `libgccjit 12.2.0`.
    pub(crate) version: String,
}

/// One compilation at a time in a process: the compiler inside the library has global variables.
pub(crate) fn one_at_a_time() -> MutexGuard<'static, ()> {
    // A forked child has its own: that of its parent may be held by a thread that is not there.
    static LOCK: PerProcess<Mutex<()>> = PerProcess::new();
    let lock = LOCK.get_or_init(Mutex::default);
    // What the lock guards is the library's own, and a panic of ours leaves it as it was.
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Loads the first of these libraries that there is, and tries it.
pub(crate) fn load<Name: AsRef<str>>(names: &[Name]) -> Result<Arc<Loaded>, Unavailable> {
    let broken = |reason: String, help: &str| Unavailable {
        reason,
        help: help.to_owned(),
        broken: true,
    };
    let mut reasons = Vec::new();
    for name in names {
        let name = name.as_ref();
        // What a damaged library does when it is loaded, or GCC when it has no assembler, ends a child and not us.
        if let Err(reason) = tried(name) {
            if is_missing(name, &reason) {
                reasons.push(reason);
                continue;
            }
            return Err(broken(
                format!("{name} is damaged or cannot compile a small function: {reason}"),
                "it needs an assembler and a linker (Debian, Ubuntu: apt-get install binutils) on PATH and a \
                 temporary directory (TMPDIR); else install it anew (apt-get install --reinstall libgccjit0)",
            ));
        }
        let library = match open(name) {
            Ok(library) => library,
            Err(error) => {
                reasons.push(error.to_string());
                continue;
            }
        };
        let api = Api::find(library).map_err(|missing| {
            broken(
                too_old(name, &missing),
                "install libgccjit of GCC 12 or later",
            )
        })?;
        // The library has its version in three functions that need nothing.
        // SAFETY: they take no arguments and can be called at any time.
        let version = unsafe {
            [api.version_major, api.version_minor, api.version_patchlevel].map(|part| part())
        };
        let [major, minor, patch] = version;
        let loaded = Arc::new(Loaded {
            api,
            version: format!("libgccjit {major}.{minor}.{patch}"),
        });
        load_mathematics();
        // Once more here, now that it is known to end well: the library knows the sizes of its types from its first compilation on.
        let _lock = one_at_a_time();
        trial(&loaded).map_err(|reason| {
            broken(
                format!(
                    "{} cannot compile a small function: {reason}",
                    loaded.version
                ),
                "it compiled one in another process; try again",
            )
        })?;
        return Ok(loaded);
    }
    Err(Unavailable {
        reason: format!("there is no libgccjit here ({})", reasons.join("; ")),
        help: HELP.to_owned(),
        broken: false,
    })
}

fn too_old(name: &str, MissingSymbol(symbol): &MissingSymbol) -> String {
    format!("{name} has no {symbol}: it is older than GCC 12's")
}

/// Whether a library works in a process of its own; why not, where it does not.
pub(crate) fn tried(name: &str) -> Result<(), String> {
    // Held over the fork, so that it is not held by another thread for ever in the child.
    let _lock = one_at_a_time();
    // Where none can be made, GCC says what is wrong with the place.
    let folder = ScratchFolder::new("gccjit").ok();
    let path = folder.as_ref().map(ScratchFolder::path);
    match in_child(SHORT, path, || false, || try_library(name)) {
        Probed::Works => Ok(()),
        Probed::Fails(reason) => Err(reason),
    }
}

/// Loads a library and compiles a small function with it: in a child.
fn try_library(name: &str) -> Result<(), String> {
    let library = open(name).map_err(|error| error.to_string())?;
    // An older one is reported by whoever loads it.
    let Ok(api) = Api::find(library) else {
        return Ok(());
    };
    let loaded = Arc::new(Loaded {
        api,
        version: String::new(),
    });
    trial(&loaded)
}

/// Whether a library could not be loaded because it is not there, as the dynamic linker says it; not one that lacks what it needs
/// itself.
fn is_missing(name: &str, reason: &str) -> bool {
    reason.starts_with(&format!("{name}: cannot open shared object file: No such file"))
        // musl's words.
        || reason.starts_with(&format!("Error loading shared library {name}: No such file"))
}

fn open(name: &str) -> Result<Library, libloading::Error> {
    let _linker = linker();
    // SAFETY: the library is GCC's own, whose initialisers only set up its variables.
    unsafe { Library::new(name) }
}

/// Makes the C library's mathematical functions visible to the code that is made: it is linked with nothing, and
/// what it calls is found among what the process has loaded for everybody.
fn load_mathematics() {
    #[cfg(unix)]
    {
        use libloading::os::unix;
        let _linker = linker();
        // SAFETY: the C library's mathematics have no initialisers of interest, and are mostly loaded already.
        let library =
            unsafe { unix::Library::open(Some("libm.so.6"), unix::RTLD_NOW | unix::RTLD_GLOBAL) };
        if let Ok(library) = library {
            // Stays for the life of the process, as code that calls into it may.
            std::mem::forget(library);
        }
        // A C library without a libm of its own has the functions in the one library that everybody has.
    }
}

/// Compiles `int lw_trial(void) { return 42; }` and calls it. Whoever calls this holds the lock of [`one_at_a_time`].
fn trial(loaded: &Arc<Loaded>) -> Result<(), String> {
    let context = Context::new(loaded).ok_or("it gives no context")?;
    let int = context.basic(types::INT);
    let (function, _) = context.function(FuncKind::Exported, int, "lw_trial", &[]);
    let block = context.block(function, "entry");
    context.give(block, Some(context.integer(int, 42)));
    // The library loads what it has compiled. A fork waits: no child could open the locks of the library and of the linker.
    let _linker = linker();
    let compiled = context.compile_here()?;
    let address = compiled.address("lw_trial").ok_or("the function is lost")?;
    // SAFETY: the function was just described with this signature, and is alive as long as `compiled`.
    let answer =
        unsafe { std::mem::transmute::<*mut std::ffi::c_void, extern "C" fn() -> i32>(address)() };
    match answer {
        42 => Ok(()),
        other => Err(format!("it gives {other}, not 42")),
    }
}
