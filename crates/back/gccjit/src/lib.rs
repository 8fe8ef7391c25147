//! The backend `gccjit`: kernels through libgccjit, the GNU compiler as a library.
//!
//! A module is described to the library by calls, not as text: the lowering in this crate is its own, beside that of the
//! backend `cc`, and the two check each other. What comes back is machine code in this process. Results agree bit
//! for bit with the interpreter in strict mode; outside of it reductions add products that are not rounded first, and the functions that
//! [`expand_math`](loopwright_kernel::passes::expand_math) knows are computed in lanes, not called.
//!
//! The library is loaded when the backend is first asked for something; nothing is linked with it, and where it is missing the
//! backend says so. It needs the assembler and the linker of the system. While it compiles it keeps files in a
//! directory of its own, which it makes with `mkdtemp` under `TMPDIR` and removes again: nobody else can write there. One
//! module is compiled at a time in a process. Where GCC finds a bug in itself, or no assembler, it ends the process: it has no
//! other way as a library. So it compiles in a child of this process (`probe`), and only what it made is loaded here; what ends the
//! child is an error. A library that cannot compile a small function there is reported as damaged. The one bug that our code ran
//! into is gone around (see `converted_vector`).
//!
//! ```no_run
//! use loopwright_backend::{Argument, CompileOptions, KernelBackend};
//! use loopwright_gccjit::GccJit;
//! # fn module() -> loopwright_kernel::Module { unimplemented!() }
//!
//! let backend = GccJit::new();
//! let executable = backend.compile(&module(), &CompileOptions::default())?;
//! let mut values = vec![0u8; 64];
//! // SAFETY: the kernel writes 16 elements of 4 bytes.
//! unsafe { executable.run("fill", &mut [Argument::Write(&mut values)]) }?;
//! # Ok::<(), loopwright_backend::BackendError>(())
//! ```

mod context;
mod ffi;
mod level;
mod library;
mod lower;
mod probe;

use context::{Compiled, Context};
use level::Level;
use library::Loaded;
use loopwright_backend::{
    Backend, BackendError, Capabilities, CompileOptions, Describe, Executable, KernelBackend,
    Target, Unavailable,
};
use loopwright_kernel::passes::{Machine, relaxed};
use loopwright_kernel::{FunctionKind, Module};
use loopwright_native::{Entry, Made, NativeExecutable};
use loopwright_threads::{PerProcess, interrupt};
use lower::{EntryPoint, Refusal};
use std::borrow::Cow;
use std::ffi::c_int;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

/// The backend's name.
pub const NAME: &str = "gccjit";

loopwright_backend::register_backend!(50, || Backend::kernel_backend(GccJit::from_env()));

/// The optimisation level where nothing else is asked for.
const OPTIMISATION: c_int = 3;

/// Options that hold for every module. None of them lets the compiler change a value: `-fwrapv` and
/// `-fno-strict-aliasing` define what it would leave open; `-fno-math-errno` only gives up `errno`, which nothing reads.
/// `-fno-trapping-math` is not among them: with it GCC 12 makes `trunc(x)` of `(float)(int)x`, which is -0 where the
/// integer was 0. `-fno-tree-slp-vectorize` and `-fno-tree-loop-if-convert` are there because GCC 12 makes wrong code
/// with either: -1 of comparisons that it gathers into lanes, and 0 for some elements of a guarded load.
/// The parameters let the small functions that ops become be copied where they are called, also where a module has many.
const OPTIONS: &[&str] = &[
    "-fwrapv",
    "-fno-strict-aliasing",
    "-fno-math-errno",
    "-ffp-contract=off",
    "-fno-tree-slp-vectorize",
    "-fno-tree-loop-if-convert",
    "--param=early-inlining-insns=300",
    "--param=max-inline-insns-auto=300",
    "--param=inline-unit-growth=1000",
];

/// The compiler recurses: its own program asks for a stack of 64 MiB, too.
const STACK: usize = 64 << 20;

/// How often the thread that waits for the compiler asks whether to go on.
const LOOK: Duration = Duration::from_millis(20);

/// The backend.
pub struct GccJit {
    /// What the library is looked for under; empty: its usual names.
    path: Option<String>,
    optimisation: c_int,
    /// What instructions there are.
    level: Level,
    /// Loaded and tried at the first need, once.
    loaded: PerProcess<Result<Arc<Loaded>, Unavailable>>,
}

impl Default for GccJit {
    fn default() -> GccJit {
        GccJit::new()
    }
}

impl GccJit {
    /// The backend with the library that the system finds. Nothing is loaded before it is needed.
    pub fn new() -> GccJit {
        GccJit {
            path: None,
            optimisation: OPTIMISATION,
            level: Level::detect(),
            loaded: PerProcess::new(),
        }
    }

    /// The backend with the library that `LOOPWRIGHT_GCCJIT` names, or else the one that the system finds.
    pub fn from_env() -> GccJit {
        match std::env::var("LOOPWRIGHT_GCCJIT") {
            Ok(path) if !path.trim().is_empty() => GccJit::with_library(path.trim()),
            _ => GccJit::new(),
        }
    }

    /// The backend with the library at this path, or of this name.
    pub fn with_library(path: impl Into<String>) -> GccJit {
        GccJit {
            path: Some(path.into()),
            ..GccJit::new()
        }
    }

    /// Whether the library at this path, or of this name, loads and compiles a small function: tried in a process of its own, and
    /// not loaded into this one.
    ///
    /// # Errors
    /// What it said, or how it ended that process.
    pub fn try_library(path: &str) -> Result<(), String> {
        library::tried(path)
    }

    /// The same at another optimisation level, 0 to 3: for tests, which compile much and run little.
    pub fn with_optimisation(self, level: u8) -> GccJit {
        GccJit {
            optimisation: level.min(3).into(),
            ..self
        }
    }

    /// The same with instructions of this level of x86-64 at most, 1 to 4, for code that other machines would get.
    pub fn with_instructions(self, level: u8) -> GccJit {
        GccJit {
            level: self.level.at_most(level),
            ..self
        }
    }

    fn loaded(&self) -> Result<&Arc<Loaded>, Unavailable> {
        let loaded = self.loaded.get_or_init(|| match &self.path {
            Some(path) => library::load(&[path]),
            None => library::load(&library::NAMES),
        });
        loaded.as_ref().map_err(Clone::clone)
    }

    /// Describes and compiles a module, on a thread with a stack as large as the compiler wants.
    fn build(
        &self,
        loaded: &Arc<Loaded>,
        module: &Module,
        options: &CompileOptions,
    ) -> Result<Built, BackendError> {
        let joined = interrupt::current();
        let (done, is_done) = std::sync::mpsc::channel::<()>();
        let work = move || {
            // Dropped at the end, however that comes.
            let _done = done;
            joined.run(|| self.build_here(loaded, module, options))
        };
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new()
                .name("gccjit".to_owned())
                .stack_size(STACK)
                .spawn_scoped(scope, work)
                .map_err(|error| {
                    failed(loaded, module, format!("no thread to compile on: {error}"))
                })?;
            // Whether to go on is asked on this thread alone; the other looks at the answer.
            while is_done.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
                let _ = interrupt::check();
            }
            match thread.join() {
                Ok(built) => built,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }

    /// What the library is told of a module, in its language like C, without compiling it: for looking at
    /// the lowering alone.
    ///
    /// # Errors
    /// As [`compile`](KernelBackend::compile).
    pub fn description(
        &self,
        module: &Module,
        options: &CompileOptions,
    ) -> Result<String, BackendError> {
        let loaded = self.usable()?;
        let _lock = library::one_at_a_time();
        let (context, _) = self.described(loaded, module, options)?;
        dumped(&context)
    }

    fn usable(&self) -> Result<&Arc<Loaded>, BackendError> {
        self.loaded().map_err(|why| BackendError::Unavailable {
            backend: NAME.to_owned(),
            why,
        })
    }

    /// The compiler's options beside the optimisation level.
    fn options(&self) -> Vec<&'static str> {
        let level = self.level.option().into_iter();
        level.chain(OPTIONS.iter().copied()).collect()
    }

    /// Describes a module; the caller holds the lock.
    fn described(
        &self,
        loaded: &Arc<Loaded>,
        module: &Module,
        options: &CompileOptions,
    ) -> Result<(Context, Vec<EntryPoint>), BackendError> {
        let context = Context::new(loaded)
            .ok_or_else(|| failed(loaded, module, "it gives no context".to_owned()))?;
        context.optimise(self.optimisation);
        for option in self.options() {
            context.option(option);
        }
        // Strict code gives the interpreter's bits, and the interpreter calls the library.
        let module = match options.strict {
            true => Cow::Borrowed(module),
            false => {
                let fuses = self.level.fuses();
                relaxed(module, options.math, Machine { fuses, kept: &[] })
            }
        };
        let entries =
            lower::lower(&module, &context, self.level).map_err(|(kernel, Refusal(reason))| {
                BackendError::Unsupported {
                    backend: NAME.to_owned(),
                    kernel,
                    reason,
                }
            })?;
        Ok((context, entries))
    }

    fn build_here(
        &self,
        loaded: &Arc<Loaded>,
        module: &Module,
        options: &CompileOptions,
    ) -> Result<Built, BackendError> {
        let flags = self.options().join(" ");
        let _lock = library::one_at_a_time();
        let started = Instant::now();
        let (context, entries) = self.described(loaded, module, options)?;
        let described = started.elapsed();
        let compiled = context.compile(|| interrupt::check().is_err());
        let compiled = compiled.map_err(|reason| match interrupt::check() {
            Err(interrupted) => interrupted.into(),
            Ok(()) => {
                let level = self.optimisation;
                failed(loaded, module, format!("-O{level} {flags}\n{reason}"))
            }
        })?;
        let log = format!(
            "{} -O{} {flags}\ndescribed in {:.1} ms, compiled in {:.1} ms\n",
            loaded.version,
            self.optimisation,
            described.as_secs_f64() * 1e3,
            (started.elapsed() - described).as_secs_f64() * 1e3,
        );
        let code = dumped(&context)?;
        Ok(Built {
            compiled,
            entries,
            code,
            log,
        })
    }
}

/// What became of a module.
struct Built {
    compiled: Compiled,
    entries: Vec<EntryPoint>,
    code: String,
    log: String,
}

/// What the library made of our calls, in its language like C.
fn dumped(context: &Context) -> Result<String, BackendError> {
    let cannot = |action: &'static str, path: &Path, error: &std::io::Error| BackendError::File {
        action,
        path: path.display().to_string(),
        reason: error.to_string(),
    };
    // The library opens files by name: the name is in a directory that only this user can write to.
    let directory = loopwright_files::ScratchFolder::new("gccjit")
        .map_err(|error| cannot("create a folder in", &std::env::temp_dir(), &error))?;
    let path = directory.path().join("module.txt");
    context.dump(&path);
    std::fs::read_to_string(&path).map_err(|error| cannot("read", &path, &error))
}

/// An error of the library's, which names the kernels it is about.
fn failed(loaded: &Loaded, module: &Module, log: String) -> BackendError {
    /// Modules of many kernels are batches; the first few say which.
    const NAMED: usize = 4;
    let kernels = module.functions.iter();
    let mut kernels: Vec<String> = kernels
        .filter(|function| matches!(function.kind, FunctionKind::Kernel { .. }))
        .map(|function| format!("`{}`", function.name))
        .collect();
    if kernels.len() > NAMED + 1 {
        let more = kernels.split_off(NAMED).len();
        kernels.push(format!("{more} more"));
    }
    BackendError::Compiler {
        compiler: loaded.version.clone(),
        source_path: format!("kernel {}", kernels.join(", ")),
        log,
    }
}

impl Describe for GccJit {
    fn name(&self) -> &str {
        NAME
    }

    fn availability(&self) -> Result<(), Unavailable> {
        self.loaded().map(|_| ())
    }

    fn target(&self) -> Target {
        loopwright_native::target()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::without_groups()
    }
}

impl KernelBackend for GccJit {
    fn compile(
        &self,
        module: &Module,
        options: &CompileOptions,
    ) -> Result<Arc<dyn Executable>, BackendError> {
        let loaded = self.usable()?;
        let Built {
            compiled,
            entries,
            code,
            log,
        } = self.build(loaded, module, options)?;
        let mut found = Vec::with_capacity(entries.len());
        for EntryPoint { kernel, symbol } in &entries {
            let address = compiled.address(symbol).ok_or_else(|| {
                failed(
                    loaded,
                    module,
                    format!("the entry point of `{kernel}` is lost"),
                )
            })?;
            // SAFETY: the symbol was described as a function of this type.
            found.push(unsafe { std::mem::transmute::<*mut std::ffi::c_void, Entry>(address) });
        }
        // In the module's order, which is the order they are asked for in.
        let mut found = found.into_iter();
        let entry = |name: &str| {
            let lost = || {
                failed(
                    loaded,
                    module,
                    format!("the entry point of `{name}` is lost"),
                )
            };
            found.next().ok_or_else(lost)
        };
        let made = Made {
            code,
            log: Some(log),
            cached: false,
        };
        let executable = NativeExecutable::new(NAME, module, entry, made, compiled)?;
        Ok(Arc::new(executable))
    }
}
