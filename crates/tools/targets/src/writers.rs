//! The code that is written for a machine, without that machine: nothing here runs, and no compiler is called.

use loopwright_backend::{BackendError, CompileOptions, KernelBackend};
use loopwright_emit::{C, C99, Dialect, emit};
use loopwright_gccjit::GccJit;
use loopwright_kernel::Module;
use loopwright_x86::{Level, X86};

/// Writes a kernel in one language.
pub struct Writer {
    /// The language.
    pub name: String,
    write: Box<Write>,
}

/// Writes a kernel, or says why not.
type Write = dyn Fn(&Module) -> Result<(), String> + Send + Sync;

impl Writer {
    fn new(
        name: impl Into<String>,
        write: impl Fn(&Module) -> Result<(), String> + Send + Sync + 'static,
    ) -> Writer {
        Writer {
            name: name.into(),
            write: Box::new(write),
        }
    }

    /// Writes a kernel that was validated.
    ///
    /// # Errors
    /// Why it is refused.
    pub fn write(&self, module: &Module) -> Result<(), String> {
        (self.write)(module)
    }
}

/// Every writer: machine code at the three levels of `x86` and with its matrix unit, C for compilers with vectors and
/// plain C99, and what libgccjit is told where the library is there.
pub fn writers() -> Vec<Writer> {
    let machine_code = Level::ALL
        .into_iter()
        .map(|level| (format!("x86 {level}"), X86::for_level(level)));
    let unit = X86::for_level(Level::Avx512).with_matrix_unit();
    let mut writers: Vec<Writer> = machine_code
        .chain([("x86 amx".to_owned(), unit)])
        .map(|(name, x86)| Writer::new(name, move |module| encoded(&x86, module)))
        .collect();
    writers.push(Writer::new("C", |module| text(&C, module)));
    writers.push(Writer::new("C99", |module| text(&C99, module)));
    if gccjit_is_there() {
        let gccjit = GccJit::from_env().with_instructions(3);
        writers.push(Writer::new("gccjit", move |module| {
            let described = gccjit.description(module, &CompileOptions::default());
            described.map(|_| ()).map_err(|error| error.to_string())
        }));
    }
    writers
}

/// Whether libgccjit can be loaded: its lowering is a conversation with the library.
pub fn gccjit_is_there() -> bool {
    let described = GccJit::from_env().description(&Module::default(), &CompileOptions::default());
    !matches!(described, Err(BackendError::Unavailable { .. }))
}

fn encoded(x86: &X86, module: &Module) -> Result<(), String> {
    let compiled = x86.compile(module, &CompileOptions::default());
    compiled.map(|_| ()).map_err(|error| error.to_string())
}

fn text(dialect: &dyn Dialect, module: &Module) -> Result<(), String> {
    let emitted = emit(module, dialect);
    emitted.map(|_| ()).map_err(|error| error.to_string())
}
