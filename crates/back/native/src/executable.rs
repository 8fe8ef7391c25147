//! Loaded kernels and the calls into them.

use crate::runtime::Runtime;
use loopwright_backend::{
    AddressRange, Argument, BackendError, Executable, LaunchArgument, PreparedCall, Signature,
};
use loopwright_kernel::{Block, FunctionKind, LoopKind, Module, Stmt};
use loopwright_threads::ForkJoin;
use loopwright_threads::interrupt::check_cut;
use rustc_hash::FxHashMap;
use std::cell::Cell;
use std::ffi::c_void;
use std::sync::Arc;

/// The entry point of a kernel. The first argument is a pointer for each parameter: the memory of a
/// buffer, or the place of a scalar.
pub type Entry = unsafe extern "C" fn(arguments: *const *mut c_void, runtime: *const Runtime);

/// A module in memory, as machine code that can be called.
pub struct NativeExecutable<Kept> {
    kernels: FxHashMap<String, Kernel>,
    made: Made,
    /// What runs parallel loops, if there are any.
    pool: Option<&'static ForkJoin>,
    /// Holds what the entries point into; dropped last, being the last field.
    _kept: Kept,
}

/// How machine code came about.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Made {
    /// What it was made from, in the backend's own language.
    pub code: String,
    /// The command or the options, and what the compiler said.
    pub log: Option<String>,
    /// Whether it was made before, and kept on disk.
    pub cached: bool,
}

struct Kernel {
    entry: Entry,
    signature: Signature,
}

impl<Kept: Send + Sync> NativeExecutable<Kept> {
    /// The kernels of `module`, which the backend of that name has compiled. `entry` finds a kernel's
    /// entry point by its name in the module; it must do what the kernel says. `kept` is whatever
    /// must live as long as the entries are called.
    pub fn new(
        backend: &str,
        module: &Module,
        mut entry: impl FnMut(&str) -> Result<Entry, BackendError>,
        made: Made,
        kept: Kept,
    ) -> Result<NativeExecutable<Kept>, BackendError> {
        let pool = match has_parallel_loop(module) {
            true => Some(ForkJoin::global().map_err(|error| BackendError::Threads {
                backend: backend.to_owned(),
                reason: error.to_string(),
            })?),
            false => None,
        };
        let mut kernels = FxHashMap::default();
        for function in &module.functions {
            if !matches!(function.kind, FunctionKind::Kernel { .. }) {
                continue;
            }
            let signature = Signature::of(module, function);
            let kernel = Kernel {
                entry: entry(&function.name)?,
                signature: signature.map_err(|reason| BackendError::Unsupported {
                    backend: backend.to_owned(),
                    kernel: function.name.clone(),
                    reason,
                })?,
            };
            kernels.insert(function.name.clone(), kernel);
        }
        Ok(NativeExecutable {
            kernels,
            made,
            pool,
            _kept: kept,
        })
    }
}

/// Whether a kernel of the module has a loop that the pool runs. Those of other functions run serially.
fn has_parallel_loop(module: &Module) -> bool {
    fn block_has(block: &Block) -> bool {
        block.iter().any(|stmt| {
            let kind = LoopKind::Parallel;
            matches!(stmt, Stmt::For { kind: of, .. } if *of == kind)
                || stmt.blocks().into_iter().flatten().any(block_has)
        })
    }
    let mut functions = module.functions.iter();
    functions.any(|function| {
        matches!(function.kind, FunctionKind::Kernel { .. }) && block_has(&function.body)
    })
}

/// With up to so many arguments a call keeps its words on the stack.
const FEW: usize = 16;

/// What is handed to an entry point: a pointer for each argument, and the scalars some of them point to.
struct Words<'a> {
    pointers: &'a mut [*mut c_void],
    scalars: &'a mut [u64],
}

/// The words of calls with many arguments, kept by their thread.
#[derive(Default)]
struct Kept {
    pointers: Vec<*mut c_void>,
    scalars: Vec<u64>,
}

thread_local! {
    static KEPT: Cell<Kept> = Cell::default();
}

impl<Kept: Send + Sync + 'static> Executable for NativeExecutable<Kept> {
    unsafe fn run(&self, name: &str, arguments: &mut [Argument<'_>]) -> Result<(), BackendError> {
        let Some(kernel) = self.kernels.get(name) else {
            return Err(wrong(name, "the module has no kernel of that name"));
        };
        let count = arguments.len();
        kernel
            .signature
            .check_count(count)
            .map_err(|reason| wrong(name, reason))?;
        if count <= FEW {
            let words = Words {
                pointers: &mut [std::ptr::null_mut(); FEW],
                scalars: &mut [0; FEW],
            };
            return self.call(name, kernel, arguments, words);
        }
        // Taken out while they are used: a call within a call makes its own.
        let mut kept = KEPT.take();
        kept.pointers.resize(count, std::ptr::null_mut());
        kept.scalars.resize(count, 0);
        let words = Words {
            pointers: &mut kept.pointers,
            scalars: &mut kept.scalars,
        };
        let result = self.call(name, kernel, arguments, words);
        KEPT.set(kept);
        result
    }

    fn prepare(
        self: Arc<Self>,
        kernel: &str,
        arguments: &[LaunchArgument<AddressRange>],
    ) -> Option<Box<dyn PreparedCall>> {
        let call = NativeCall::new(self, kernel, arguments)?;
        Some(Box::new(call))
    }

    fn code(&self) -> String {
        self.made.code.clone()
    }

    fn log(&self) -> Option<&str> {
        self.made.log.as_deref()
    }

    fn from_cache(&self) -> bool {
        self.made.cached
    }
}

impl<Kept> NativeExecutable<Kept> {
    /// Calls a kernel with as many arguments as it takes.
    fn call(
        &self,
        name: &str,
        kernel: &Kernel,
        arguments: &mut [Argument<'_>],
        words: Words<'_>,
    ) -> Result<(), BackendError> {
        let places = words.pointers.iter_mut().zip(words.scalars);
        for ((argument, param), (pointer, scalar)) in arguments
            .iter_mut()
            .zip(&kernel.signature.params)
            .zip(places)
        {
            param
                .check(argument)
                .map_err(|reason| wrong(name, reason))?;
            *pointer = pointer_to(argument, scalar);
        }
        let runtime = Runtime::new(self.pool, kernel.signature.group);
        // SAFETY: the arguments are as many and of the kinds that the entry point takes, aligned as
        // it needs; buffers that it writes are exclusively borrowed, or shared on this thread only,
        // and the others outlive the call. That accesses stay within the buffers is what the caller
        // states by passing them to a validated module.
        unsafe { (kernel.entry)(words.pointers.as_ptr(), &runtime) };
        Ok(check_cut()?)
    }
}

/// A kernel with its table of arguments.
struct NativeCall<Kept> {
    entry: Entry,
    /// What the entry point is given; the places of scalars are in `scalars`.
    pointers: Box<[Cell<*mut c_void>]>,
    scalars: Box<[Cell<u64>]>,
    /// Scalars that each call gives: where they go, and which they are.
    integers: Vec<(usize, usize)>,
    /// The argument that is memory given by each call.
    memory: Option<usize>,
    runtime: Runtime,
    /// Keeps the code.
    _executable: Arc<NativeExecutable<Kept>>,
}

// SAFETY: cells are written by `call` alone, of which no two are under way at the same time, as the caller
// states; the addresses are the caller's, who says how long they are good.
unsafe impl<Kept: Send + Sync> Send for NativeCall<Kept> {}
// SAFETY: as above.
unsafe impl<Kept: Send + Sync> Sync for NativeCall<Kept> {}

impl<Kept> NativeCall<Kept> {
    fn new(
        executable: Arc<NativeExecutable<Kept>>,
        name: &str,
        arguments: &[LaunchArgument<AddressRange>],
    ) -> Option<NativeCall<Kept>> {
        let kernel = executable.kernels.get(name)?;
        kernel.signature.check(arguments).ok()?;
        let null = || Cell::new(std::ptr::null_mut());
        let pointers: Box<[_]> = arguments.iter().map(|_| null()).collect();
        let scalars: Box<[_]> = arguments.iter().map(|_| Cell::new(0)).collect();
        let mut integers = Vec::new();
        let mut memory = None;
        for (at, argument) in arguments.iter().enumerate() {
            match argument {
                LaunchArgument::Memory(range) => pointers[at].set(range.address.cast()),
                LaunchArgument::Integer(value) => {
                    scalars[at].set(value.to_le().cast_unsigned());
                    pointers[at].set(scalars[at].as_ptr().cast());
                }
                LaunchArgument::Static(which) => {
                    integers.push((at, *which));
                    pointers[at].set(scalars[at].as_ptr().cast());
                }
                LaunchArgument::Merge { .. } if memory.is_none() => memory = Some(at),
                LaunchArgument::Merge { .. } => return None,
            }
        }
        Some(NativeCall {
            entry: kernel.entry,
            pointers,
            scalars,
            integers,
            memory,
            runtime: Runtime::new(executable.pool, kernel.signature.group),
            _executable: executable,
        })
    }
}

impl<Kept: Send + Sync> PreparedCall for NativeCall<Kept> {
    unsafe fn call(&self, integers: &[i64], memory: *const u8) -> Result<(), BackendError> {
        for (at, which) in &self.integers {
            self.scalars[*at].set(integers[*which].to_le().cast_unsigned());
        }
        if let Some(at) = self.memory {
            self.pointers[at].set(memory.cast_mut().cast());
        }
        // A cell is laid out as what is in it.
        let pointers = self.pointers.as_ptr().cast::<*mut c_void>();
        // SAFETY: the arguments were checked against the kernel's parameters when this was made; for the
        // memory the caller vouches.
        unsafe { (self.entry)(pointers, &self.runtime) };
        Ok(check_cut()?)
    }
}

#[cold]
fn wrong(kernel: &str, reason: impl Into<String>) -> BackendError {
    BackendError::Call {
        kernel: kernel.to_owned(),
        reason: reason.into(),
    }
}

/// What an entry point is given for an argument; a scalar's value is put into `word` and must stay there for
/// the call.
fn pointer_to(argument: &mut Argument<'_>, word: &mut u64) -> *mut c_void {
    match argument {
        Argument::Scalar(scalar) => {
            // As `Scalar::write` does it: the lowest byte first.
            *word = scalar.bits().to_le();
            std::ptr::from_mut(word).cast()
        }
        Argument::Read(buffer) => buffer.as_ptr().cast_mut().cast(),
        Argument::Write(buffer) => buffer.as_mut_ptr().cast(),
        // Through the slice: `Cell::as_ptr` of the first would reach that byte only.
        Argument::Shared(buffer) => buffer.as_ptr().cast_mut().cast(),
        // No signature takes local memory, so the check before this has refused it.
        Argument::Local(_) => std::ptr::null_mut(),
    }
}
