//! The backend `x86`: kernels become machine code of this process in microseconds, with no compiler installed.
//!
//! A module is lowered to instructions over virtual registers, registers are found for these, and the result is encoded
//! into memory that is written first and executable then, never both. Which instructions are used is a [`Level`]: SSE for
//! any x86-64, AVX2 with FMA, or AVX-512; the highest that the machine has, or a lower one that is asked for. In strict
//! mode results agree bit for bit with the interpreter; outside of it reductions add products that are not rounded first, and the functions
//! that [`expand_math`](loopwright_kernel::passes::expand_math) knows are computed in lanes, not called.
//!
//! | variable | meaning |
//! | --- | --- |
//! | `LOOPWRIGHT_X86_LEVEL` | the level: `sse`, `avx2` or `avx512`; `none`: the backend is not there |
//! | `LOOPWRIGHT_PERF_MAP` | 1: names of kernels for `perf` |
//! | `LOOPWRIGHT_GDB` | 1: names of kernels for debuggers |
//! | `LOOPWRIGHT_THREADS` | threads of parallel loops; as many as cores if not set |
//!
//! ```
//! use loopwright_backend::{Argument, CompileOptions, Describe, KernelBackend};
//! use loopwright_kernel::{Access, Builder, FunctionKind, Module, Space};
//! use loopwright_ops::{DType, Scalar};
//! use loopwright_x86::X86;
//!
//! let backend = X86::new();
//! if backend.availability().is_err() {
//!     return Ok(());
//! }
//! let mut b = Builder::new("store", FunctionKind::Kernel { group: None });
//! let out = b.param_ptr(DType::I64, Space::Global, "out", Access::Write, true);
//! let x = b.param_scalar(DType::I64, "x");
//! let zero = b.const_i64(0);
//! b.store(out, zero, x);
//! let module = Module { functions: vec![b.finish()].into(), ..Module::default() };
//!
//! let executable = backend.compile(&module, &CompileOptions::default())?;
//! let mut words = [0u64];
//! let bytes = bytemuck::cast_slice_mut(&mut words);
//! // SAFETY: the kernel writes one element.
//! unsafe { executable.run("store", &mut [Argument::Write(bytes), Argument::Scalar(Scalar::i64(7))]) }?;
//! assert_eq!(words, [7]);
//! # Ok::<(), loopwright_backend::BackendError>(())
//! ```

pub mod asm;
pub mod disassemble;
mod level;
mod lower;
mod machine;
mod matrix_unit;
mod poll;
pub mod profile;
pub mod region;

pub use level::Level;

use asm::Assembler;
use disassemble::disassemble;
use loopwright_backend::{
    AddressRange, Argument, Backend, BackendError, Capabilities, CompileOptions, Describe,
    Executable, KernelBackend, LaunchArgument, PreparedCall, Target, Unavailable,
};
use loopwright_kernel::Module;
use loopwright_native::{Entry, Made, NativeExecutable};
use lower::{Fallback, Lowered, Refusal};
use profile::{Announced, Symbol};
use region::Region;
use std::sync::Arc;
use std::time::Instant;

/// The backend's name.
pub const NAME: &str = "x86";

/// The variable that names the level.
const LEVEL_VARIABLE: &str = "LOOPWRIGHT_X86_LEVEL";

loopwright_backend::register_backend!(200, || Backend::kernel_backend(X86::from_env()));

/// The backend.
#[derive(Clone, Debug)]
pub struct X86 {
    /// The level of the code, or why there is none.
    level: Result<Level, Unavailable>,
    /// Whether code may use the matrix unit.
    tiles: bool,
}

impl Default for X86 {
    fn default() -> X86 {
        X86::new()
    }
}

impl X86 {
    /// The backend at the highest level that this machine has.
    pub fn new() -> X86 {
        let missing = || Unavailable {
            reason: match std::env::consts::ARCH {
                "x86_64" => format!(
                    "its code follows the calling convention of Unix, which {} does not have",
                    std::env::consts::OS
                ),
                other => format!("this machine is {other}, not x86_64"),
            },
            help: "use the device `cc` or `interp`".to_owned(),
            broken: false,
        };
        X86 {
            level: Level::detect().ok_or_else(missing),
            tiles: matrix_unit::available(),
        }
    }

    /// The backend at the level that `LOOPWRIGHT_X86_LEVEL` names, or else the highest that this machine has.
    pub fn from_env() -> X86 {
        let name = std::env::var(LEVEL_VARIABLE).unwrap_or_default();
        let refused = |reason: String, broken: bool| X86 {
            level: Err(Unavailable {
                reason,
                help: format!(
                    "unset {LEVEL_VARIABLE}, or set it to `sse`, `avx2`, `avx512` or `amx`"
                ),
                broken,
            }),
            tiles: false,
        };
        match name.trim() {
            "" => X86::new(),
            "none" => refused(format!("{LEVEL_VARIABLE} is `none`"), false),
            "amx" if matrix_unit::available() => X86::new(),
            "amx" => refused("this machine has no AMX".to_owned(), false),
            name => match name.parse() {
                Ok(level) => X86::new().at(level),
                Err(reason) => refused(format!("{LEVEL_VARIABLE}: {reason}"), true),
            },
        }
    }

    /// The same at this level, without the matrix unit. A level that the machine does not have is not available.
    pub fn at(self, level: Level) -> X86 {
        let found = self.level.and_then(|most| match level <= most {
            true => Ok(level),
            false => Err(Unavailable {
                reason: format!("this machine has no {level}"),
                help: format!("the highest level that it has is {most}"),
                broken: false,
            }),
        });
        X86 {
            level: found,
            tiles: false,
        }
    }

    /// The backend for a machine of this level, which need not be this one: its code can be written and looked at
    /// anywhere. To run it is for such a machine.
    #[doc(hidden)]
    pub fn for_level(level: Level) -> X86 {
        X86 {
            level: Ok(level),
            tiles: false,
        }
    }

    /// The same for a machine with a matrix unit, which need not be this one: its code can be looked at anywhere.
    #[doc(hidden)]
    pub fn with_matrix_unit(self) -> X86 {
        X86 {
            tiles: true,
            ..self
        }
    }

    /// The level of the code.
    ///
    /// # Errors
    /// Why there is none.
    pub fn level(&self) -> Result<Level, Unavailable> {
        self.level.clone()
    }
}

impl Describe for X86 {
    fn name(&self) -> &str {
        NAME
    }

    fn availability(&self) -> Result<(), Unavailable> {
        self.level().map(|_| ())
    }

    fn target(&self) -> Target {
        let machine = loopwright_native::target();
        match &self.level {
            Ok(level) => Target {
                vector_bytes: level.bytes(),
                vector_registers: level.registers().into(),
                matrix_unit: self.tiles.then_some(matrix_unit::SHAPE),
                c_compiler: false,
                ..machine
            },
            Err(_) => machine,
        }
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::without_groups()
    }
}

impl X86 {
    /// The code of a module, as disassembly and bytes: the same text in every process and on every machine.
    ///
    /// # Errors
    /// What [`compile`](KernelBackend::compile) refuses.
    pub fn listing(
        &self,
        module: &Module,
        options: &CompileOptions,
    ) -> Result<String, BackendError> {
        let made = self.made(module, options)?;
        let mut outside = vec![(lower::fallback_address(), "fallback".to_owned())];
        outside.extend(made.kept.fallbacks.iter().enumerate().map(|(at, what)| {
            let address = Arc::as_ptr(what).addr() as u64;
            (address, format!("fallback_{at}"))
        }));
        let bytes = made.kept.region.bytes();
        Ok(disassemble::listing(
            bytes,
            &made.symbols,
            made.pool_at,
            &outside,
        ))
    }

    fn made(
        &self,
        module: &Module,
        options: &CompileOptions,
    ) -> Result<X86Executable, BackendError> {
        let level = self.level().map_err(|why| BackendError::Unavailable {
            backend: NAME.to_owned(),
            why,
        })?;
        let started = Instant::now();
        let refused = |(kernel, Refusal(reason))| BackendError::Unsupported {
            backend: NAME.to_owned(),
            kernel,
            reason,
        };
        let strict = options.strict;
        let prepared;
        let module = match strict {
            // Strict code gives the interpreter's bits, and the interpreter calls the library.
            true => module,
            false => {
                prepared = lower::prepared(module, level, options.math);
                &prepared
            }
        };
        let write = |tiles: bool| {
            let mut asm = Assembler::new();
            let lowered = lower::lower(module, level, (strict, tiles), &mut asm)?;
            let codes = lowered.codes.iter();
            let places: Vec<_> = codes.map(|code| machine::allocate(code, level)).collect();
            Ok((asm, lowered, places))
        };
        let tiles = self.tiles && !strict;
        let (mut asm, mut lowered, mut places) = write(tiles).map_err(refused)?;
        if !places.iter().all(|places| places.tiles_fit) {
            (asm, lowered, places) = write(false).map_err(refused)?;
        }
        let Lowered {
            codes,
            entries,
            pool,
            fallbacks,
        } = lowered;
        let mut symbols = Vec::with_capacity(codes.len());
        for (code, places) in codes.iter().zip(&places) {
            let offset = asm.here();
            machine::emit(code, places, level, &mut asm);
            symbols.push(Symbol {
                name: code.name.clone(),
                offset,
                size: asm.here() - offset,
            });
        }
        let code = asm.finish(&pool);
        let starts: Vec<usize> = entries.iter().map(|entry| code.offset(*entry)).collect();
        let region = Region::new(&code.bytes).map_err(|error| BackendError::Compiler {
            compiler: NAME.to_owned(),
            source_path: "machine code".to_owned(),
            log: error.to_string(),
        })?;
        let announced = profile::announce(&region, &symbols);
        let log = format!(
            "{level}, {} bytes of code in {:.0} µs\n",
            code.pool_at,
            started.elapsed().as_secs_f64() * 1e6
        );
        let address = region.address();
        let mut starts = starts.into_iter();
        let entry = |name: &str| {
            let start = starts.next().ok_or_else(|| BackendError::Call {
                kernel: name.to_owned(),
                reason: "its entry point is lost".to_owned(),
            })?;
            // SAFETY: a function of this type begins there.
            Ok(unsafe { std::mem::transmute::<*const u8, Entry>(address.add(start)) })
        };
        let made = Made {
            code: String::new(),
            log: Some(log),
            cached: false,
        };
        let kept = Kept {
            _announced: announced,
            region,
            fallbacks,
        };
        let kept = Arc::new(kept);
        let inner = NativeExecutable::new(NAME, module, entry, made, kept.clone())?;
        Ok(X86Executable {
            inner: Arc::new(inner),
            kept,
            symbols,
            pool_at: code.pool_at,
        })
    }
}

impl KernelBackend for X86 {
    fn compile(
        &self,
        module: &Module,
        options: &CompileOptions,
    ) -> Result<Arc<dyn Executable>, BackendError> {
        Ok(Arc::new(self.made(module, options)?))
    }
}

/// What the code needs as long as it can be called.
struct Kept {
    /// Dropped before the region that it tells about.
    _announced: Announced,
    region: Region,
    fallbacks: Vec<Arc<Fallback>>,
}

/// Compiled kernels, which are disassembled when somebody asks.
struct X86Executable {
    inner: Arc<NativeExecutable<Arc<Kept>>>,
    kept: Arc<Kept>,
    symbols: Vec<Symbol>,
    pool_at: usize,
}

impl Executable for X86Executable {
    unsafe fn run(&self, kernel: &str, arguments: &mut [Argument<'_>]) -> Result<(), BackendError> {
        // SAFETY: as the caller states.
        unsafe { self.inner.run(kernel, arguments) }
    }

    fn prepare(
        self: Arc<Self>,
        kernel: &str,
        arguments: &[LaunchArgument<AddressRange>],
    ) -> Option<Box<dyn PreparedCall>> {
        self.inner.clone().prepare(kernel, arguments)
    }

    fn code(&self) -> String {
        let bytes = self.kept.region.bytes();
        disassemble(bytes, 0, &self.symbols, self.pool_at)
    }

    fn log(&self) -> Option<&str> {
        self.inner.log()
    }
}
