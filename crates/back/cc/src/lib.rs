//! The backend `cc`: kernels through the machine's C compiler.
//!
//! A module becomes C ([`loopwright_emit`]), a compiler becomes of that a shared library, and the
//! library is loaded into the process. In strict mode results agree bit for bit with the interpreter: the
//! flags keep every rounding, and the mathematical functions are the C library's, which the interpreter
//! calls too. Outside of it reductions add products that are not rounded first, and the functions that
//! [`expand_math`](loopwright_kernel::passes::expand_math) knows are computed in lanes, not called.
//!
//! Libraries are kept on disk where the caller wants that; see [`loopwright_files::cache`] for how that stays safe.
//!
//! | variable | meaning |
//! | --- | --- |
//! | `LOOPWRIGHT_CC`, `CC` | the compiler, with arguments; else `cc`, `gcc`, `clang` from `PATH` |
//! | `LOOPWRIGHT_CFLAGS` | more flags, after all others |
//! | `LOOPWRIGHT_CC_OPT` | optimisation level, 3 if not set |
//! | `LOOPWRIGHT_CC_TIMEOUT` | seconds after which a compiler is killed, 120 if not set |
//! | `LOOPWRIGHT_THREADS` | threads of parallel loops; as many as cores if not set |
//!
//! ```no_run
//! use loopwright_backend::{Argument, CompileOptions, KernelBackend};
//! use loopwright_cc::CcBackend;
//! # fn module() -> loopwright_kernel::Module { unimplemented!() }
//!
//! let backend = CcBackend::from_env();
//! let executable = backend.compile(&module(), &CompileOptions::default())?;
//! let mut values = vec![0u8; 64];
//! // SAFETY: the kernel writes as many elements as there are.
//! unsafe { executable.run("fill", &mut [Argument::Write(&mut values)]) }?;
//! # Ok::<(), loopwright_backend::BackendError>(())
//! ```

mod command;
mod find;
mod library;

pub use command::{Finished, RunFailure, compile_source_command, run_limited};
pub use find::Compiler;

use command::{Job, file_error};
use loopwright_backend::{
    Backend, BackendError, Capabilities, CompileOptions, Describe, Executable, KernelBackend,
    Target, Unavailable,
};
use loopwright_emit::{C, EmitError, Emitted, emit};
use loopwright_files::cache::{Cache, usable};
use loopwright_kernel::Module;
use loopwright_kernel::passes::{Machine, relaxed};
use loopwright_native::Made;
use loopwright_threads::PerProcess;
use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The backend's name.
pub const NAME: &str = "cc";

/// The extension of libraries in the cache.
const LIBRARY: &str = "so";

loopwright_backend::register_backend!(100, || Backend::kernel_backend(CcBackend::from_env()));

/// The backend.
pub struct CcBackend {
    settings: Settings,
    /// Found and asked who it is at the first need, once.
    compiler: PerProcess<Result<Compiler, Unavailable>>,
}

/// What can be chosen about the backend.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    /// The compiler with its arguments; empty: search for one.
    pub compiler: String,
    /// More flags, after all others.
    pub flags: Vec<String>,
    /// The optimisation level, the part behind `-O`.
    pub optimisation: String,
    /// How long a compiler may run.
    pub timeout: Duration,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            compiler: String::new(),
            flags: Vec::new(),
            optimisation: "3".to_owned(),
            timeout: Duration::from_secs(120),
        }
    }
}

impl Settings {
    /// The settings that the environment's variables make.
    pub fn from_env() -> Settings {
        let variable = |name: &str| {
            std::env::var(name)
                .ok()
                .map(|value| value.trim().to_owned())
                .filter(|v| !v.is_empty())
        };
        let defaults = Settings::default();
        Settings {
            compiler: variable("LOOPWRIGHT_CC")
                .or_else(|| variable("CC"))
                .unwrap_or_default(),
            flags: variable("LOOPWRIGHT_CFLAGS")
                .map(|flags| flags.split_whitespace().map(str::to_owned).collect())
                .unwrap_or_default(),
            optimisation: variable("LOOPWRIGHT_CC_OPT").unwrap_or(defaults.optimisation),
            timeout: variable("LOOPWRIGHT_CC_TIMEOUT")
                .and_then(|seconds| seconds.parse().ok())
                .map_or(defaults.timeout, Duration::from_secs),
        }
    }
}

impl CcBackend {
    /// The backend as the environment's variables want it. Nothing is run before it is needed.
    pub fn from_env() -> CcBackend {
        CcBackend::new(Settings::from_env())
    }

    /// The backend with these settings.
    pub fn new(settings: Settings) -> CcBackend {
        CcBackend {
            settings,
            compiler: PerProcess::new(),
        }
    }

    /// The compiler, found and asked for its version at the first call.
    pub fn compiler(&self) -> Result<&Compiler, Unavailable> {
        self.compiler
            .get_or_init(|| Compiler::find(&self.settings.compiler, self.settings.timeout))
            .as_ref()
            .map_err(Clone::clone)
    }

    /// Compiles, or takes from the cache, and loads.
    fn load(
        &self,
        module: &Module,
        emitted: Emitted,
        options: &CompileOptions,
    ) -> Result<Arc<dyn Executable>, BackendError> {
        let compiler = self.compiler().map_err(|why| BackendError::Unavailable {
            backend: NAME.to_owned(),
            why,
        })?;
        let job = Job::new(compiler, &self.settings, &emitted);
        match &options.cache {
            Some(cache) => self.load_cached(module, emitted, &job, cache),
            None => {
                let built = job.build(&emitted.source)?;
                let made = Made {
                    code: emitted.source,
                    log: Some(built.log.clone()),
                    cached: false,
                };
                library::load(module, &emitted.kernels, &built.library, made)
            }
        }
    }

    fn load_cached(
        &self,
        module: &Module,
        emitted: Emitted,
        job: &Job<'_>,
        cache: &Path,
    ) -> Result<Arc<dyn Executable>, BackendError> {
        let key = job.key(&emitted.source);
        let cache = usable(Cache::open(cache, NAME));
        let found = cache.as_ref().and_then(|cache| usable(cache.lookup(&key)));
        let found = found.flatten();
        let found = found.filter(|entry| entry.bytes(LIBRARY).is_some());
        let cached = found.is_some();
        // Where it cannot be kept, the library is loaded from where it was made.
        let mut made_at = None;
        let log = match found {
            Some(entry) => entry.log().to_owned(),
            None => {
                let built = job.build(&emitted.source)?;
                let library = std::fs::read(&built.library)
                    .map_err(|error| file_error("read", &built.library, &error))?;
                let kernels: Vec<&str> = emitted.kernels.iter().map(|k| k.name.as_str()).collect();
                // The source is for people who look into the cache.
                let files = [("c", emitted.source.as_bytes()), (LIBRARY, &library)];
                let kept = cache
                    .as_ref()
                    .and_then(|cache| usable(cache.insert(&key, &kernels, &built.log, &files)));
                let log = built.log.clone();
                made_at = kept.is_none().then_some(built);
                log
            }
        };
        let made = Made {
            code: emitted.source,
            log: Some(log),
            cached,
        };
        let library = match (&made_at, &cache) {
            (None, Some(cache)) => cache.path(&key, LIBRARY),
            (Some(built), _) => built.library.clone(),
            (None, None) => unreachable!("without a cache nothing is found in it"),
        };
        library::load(module, &emitted.kernels, &library, made)
    }
}

impl Describe for CcBackend {
    fn name(&self) -> &str {
        NAME
    }

    fn availability(&self) -> Result<(), Unavailable> {
        self.compiler().map(|_| ())
    }

    fn target(&self) -> Target {
        loopwright_native::target()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::without_groups()
    }
}

impl KernelBackend for CcBackend {
    fn compile(
        &self,
        module: &Module,
        options: &CompileOptions,
    ) -> Result<Arc<dyn Executable>, BackendError> {
        // Strict code gives the interpreter's bits, and the interpreter calls the library.
        let module = match options.strict {
            true => Cow::Borrowed(module),
            false => {
                // What is wrong with a compiler is said when it is asked to compile.
                let fuses = self.compiler().is_ok_and(Compiler::fuses);
                relaxed(module, options.math, Machine { fuses, kept: &[] })
            }
        };
        let emitted = emit(&module, &C).map_err(
            |EmitError::Unsupported {
                 function, reason, ..
             }| BackendError::Unsupported {
                backend: NAME.to_owned(),
                kernel: function,
                reason,
            },
        )?;
        self.load(&module, emitted, options)
    }
}
