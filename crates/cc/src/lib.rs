//! The backend `cc`: kernels through the machine's C compiler.
//!
//! A module becomes C ([`loopwright_emit`]), a compiler becomes of that a shared library, and the
//! library is loaded into the process. Results agree bit for bit with the interpreter: the flags keep
//! every rounding (in strict mode also that of `a * b` before `+ c`), and the mathematical functions
//! are the C library's, which the interpreter calls too.
//!
//! Libraries are kept on disk where the caller wants that; see [`cache`] for how that stays safe.
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
//! executable.run("fill", &mut [Argument::Write(&mut values)])?;
//! # Ok::<(), loopwright_backend::BackendError>(())
//! ```

pub mod cache;
mod command;
mod executable;
mod find;
mod machine;
mod parallel;

pub use cache::{CacheEntry, cache_entries, clear_cache};
pub use command::compile_source_command;
pub use find::Compiler;

use command::Job;
use executable::{CcExecutable, Made};
use loopwright_backend::{
    BackendError, CompileOptions, Executable, KernelBackend, Target, Unavailable,
};
use loopwright_emit::{C, EmitError, EmitOptions, Emitted, emit};
use loopwright_kernel::Module;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// The backend's name.
pub const NAME: &str = "cc";

loopwright_backend::register_backend!(100, || Arc::new(CcBackend::from_env()));

/// The backend.
pub struct CcBackend {
    settings: Settings,
    /// Found and asked who it is at the first need, once.
    compiler: OnceLock<Result<Compiler, Unavailable>>,
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
            compiler: OnceLock::new(),
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
    ) -> Result<CcExecutable, BackendError> {
        let compiler = self.compiler().map_err(|why| BackendError::Unavailable {
            backend: NAME.to_owned(),
            why,
        })?;
        let job = Job::new(compiler, &self.settings, &emitted, options.strict);
        match &options.cache {
            Some(cache) => self.load_cached(module, emitted, &job, cache),
            None => {
                let built = job.build(&emitted.source)?;
                let made = Made {
                    log: Some(built.log.clone()),
                    cached: false,
                };
                CcExecutable::load(module, emitted, &built.library, made)
            }
        }
    }

    fn load_cached(
        &self,
        module: &Module,
        emitted: Emitted,
        job: &Job<'_>,
        cache: &Path,
    ) -> Result<CcExecutable, BackendError> {
        let directory = cache::open(cache)?;
        let key = job.key(&emitted.source);
        if let Some(found) = cache::lookup(&directory, &key)? {
            let made = Made {
                log: found.log,
                cached: true,
            };
            return CcExecutable::load(module, emitted, &found.library, made);
        }
        let built = job.build(&emitted.source)?;
        let kernels: Vec<&str> = emitted.kernels.iter().map(|k| k.name.as_str()).collect();
        let library = cache::insert(&directory, &key, &built, &kernels)?;
        let made = Made {
            log: Some(built.log.clone()),
            cached: false,
        };
        CcExecutable::load(module, emitted, &library, made)
    }
}

impl KernelBackend for CcBackend {
    fn name(&self) -> &'static str {
        NAME
    }

    fn availability(&self) -> Result<(), Unavailable> {
        self.compiler().map(|_| ())
    }

    fn target(&self) -> Target {
        machine::target()
    }

    fn compile(
        &self,
        module: &Module,
        options: &CompileOptions,
    ) -> Result<Arc<dyn Executable>, BackendError> {
        let emitted = emit(
            module,
            &C,
            &EmitOptions {
                strict: options.strict,
            },
        )
        .map_err(
            |EmitError::Unsupported {
                 function, reason, ..
             }| BackendError::Unsupported {
                backend: NAME.to_owned(),
                kernel: function,
                reason,
            },
        )?;
        Ok(Arc::new(self.load(module, emitted, options)?))
    }
}
