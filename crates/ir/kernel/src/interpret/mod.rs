//! The interpreter: what a kernel means, and the oracle every backend is compared with.
//!
//! [`interpret`] runs a kernel over a grid of work-items. It checks what a device does not: every
//! access lies within its buffer or alloc, nothing is read from an alloc before it was written, no
//! argument that is only read is written, and all work-items of a group meet at a barrier.
//!
//! - `Parallel` loops run backwards, so that a loop whose iterations are not independent shows.
//! - The work-items of a group run in order, each up to the next barrier, then all go on.
//! - Asynchronous copies are performed at once.
//! - A tile is a matrix; `mma` takes the products of a row and a column in order, each added to the
//!   accumulator by [`Op::MulAdd`](loopwright_ops::Op::MulAdd) in the accumulator's dtype.
//! - Local memory is made once per work-group, whichever way its `alloc` is reached.
//!
//! The interpreter trusts nobody: what is wrong with a module that the validator has not seen is an
//! error here too, with less detail.
//!
//! ```
//! use loopwright_kernel::interpret::{Grid, interpret};
//! use loopwright_kernel::{Access, Argument, Function, FunctionKind, Inst, Module, Space, Stmt, Type};
//! use loopwright_ops::{DType, Scalar};
//!
//! // out[0] = 7
//! let mut kernel = Function::new("seven", FunctionKind::Kernel { group: None });
//! let pointer = Type::Scalar(DType::F32).pointer(Space::Global);
//! let out = kernel.param(pointer, "out", Access::Write, true);
//! let index = kernel.value(Type::INDEX, "");
//! let seven = kernel.value(Type::Scalar(DType::F32), "seven");
//! kernel.body = vec![
//!     Stmt::Let(index, Inst::Const(Scalar::i64(0))),
//!     Stmt::Let(seven, Inst::Const(Scalar::f32(7.0))),
//!     Stmt::Store { ptr: out, index, value: seven },
//! ];
//! let module = Module { functions: vec![kernel].into(), ..Module::default() };
//!
//! let mut bytes = [0; 4];
//! interpret(&module, "seven", &mut [Argument::Write(&mut bytes)], Grid::default())?;
//! assert_eq!(f32::from_le_bytes(bytes), 7.0);
//!
//! let error = interpret(&module, "seven", &mut [Argument::Write(&mut [])], Grid::default());
//! assert_eq!(
//!     error.unwrap_err().to_string(),
//!     "`seven` writes element 0 of `out`, which has 0 elements"
//! );
//! # Ok::<(), loopwright_kernel::interpret::InterpretError>(())
//! ```

mod code;
mod compile;
mod launch;
mod layout;
mod machine;
mod memory;
#[cfg(test)]
mod tests;

pub use layout::Layout;

use crate::argument::Argument;
use crate::ir::{FunctionId, FunctionKind, Module, Type};
use loopwright_arena::TiVec;
use loopwright_ops::OpError;

/// The work-items that run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Grid {
    /// How many there are along each axis.
    pub global: [u64; 3],
    /// How many of them make a work-group.
    pub local: [u64; 3],
}

impl Default for Grid {
    /// One work-item.
    fn default() -> Grid {
        Grid {
            global: [1; 3],
            local: [1; 3],
        }
    }
}

/// Runs a kernel of a module. Buffers are bytes with the least significant first.
pub fn interpret(
    module: &Module,
    kernel: &str,
    args: &mut [Argument<'_>],
    grid: Grid,
) -> Result<(), InterpretError> {
    Program::new(module)?.run(kernel, args, grid, None)
}

/// A module in the form the interpreter runs, made once and run many times.
#[derive(Debug)]
pub struct Program {
    functions: TiVec<FunctionId, code::Function>,
    /// Kind, and names and types of the parameters, of every function.
    kernels: TiVec<FunctionId, (FunctionKind, Vec<(String, Type)>)>,
    locals: Vec<code::LocalSite>,
    has_barriers: bool,
}

impl Program {
    /// Translates a module.
    pub fn new(module: &Module) -> Result<Program, InterpretError> {
        compile::compile(module)
    }

    /// The grid of one work-group as large as a kernel insists on; of one work-item where it does not, or
    /// where there is no such kernel.
    pub fn one_group(&self, kernel: &str) -> Grid {
        let group = self.functions.iter().zip(&self.kernels);
        let mut group = group.filter(|(function, _)| function.name == kernel);
        let group = group.find_map(|(_, (kind, _))| match kind {
            FunctionKind::Kernel { group } => *group,
            FunctionKind::Device => None,
        });
        let local = group.unwrap_or([1; 3]).map(u64::from);
        Grid {
            global: local,
            local,
        }
    }

    /// Runs a kernel; with `steps`, gives up after so many instructions.
    pub fn run(
        &self,
        kernel: &str,
        args: &mut [Argument<'_>],
        grid: Grid,
        steps: Option<u64>,
    ) -> Result<(), InterpretError> {
        launch::run(self, kernel, args, grid, steps.unwrap_or(u64::MAX))
    }
}

/// Why a kernel did not run, or not to its end.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InterpretError {
    /// The run was told to end; see [`loopwright_threads::interrupt`].
    #[error("interrupted")]
    Interrupted,
    /// No kernel of that name.
    #[error("the module has no kernel `{name}`")]
    NoKernel {
        /// The name asked for.
        name: String,
    },
    /// The wrong number of arguments.
    #[error("kernel `{kernel}` takes {expected} arguments, not {got}")]
    ArgumentCount {
        /// The kernel.
        kernel: String,
        /// How many it takes.
        expected: usize,
        /// How many it was given.
        got: usize,
    },
    /// An argument that does not fit its parameter.
    #[error("kernel `{kernel}` takes {expected} for `{param}`, not {got}")]
    Argument {
        /// The kernel.
        kernel: String,
        /// The parameter.
        param: String,
        /// What it takes.
        expected: String,
        /// What it was given.
        got: String,
    },
    /// A grid that cannot be.
    #[error(
        "kernel `{kernel}` cannot run on a grid of {global:?} in groups of {local:?}: {reason}"
    )]
    Grid {
        /// The kernel.
        kernel: String,
        /// Work-items along each axis.
        global: [u64; 3],
        /// Those of one group.
        local: [u64; 3],
        /// Why not.
        reason: String,
    },
    /// An access outside of its buffer or alloc.
    #[error("`{function}` {action} element {index} of `{pointer}`, which has {length} elements")]
    OutOfBounds {
        /// The function.
        function: String,
        /// `reads` or `writes`.
        action: &'static str,
        /// The pointer.
        pointer: String,
        /// The element, counted from the start of the memory it points into.
        index: i128,
        /// How many there are.
        length: u64,
    },
    /// A read of what was never written.
    #[error("`{function}` reads element {index} of `{pointer}` before anything was written there")]
    Undefined {
        /// The function.
        function: String,
        /// The pointer.
        pointer: String,
        /// The element.
        index: i128,
    },
    /// A write to an argument that is only read.
    #[error("`{function}` writes through `{pointer}` to an argument that is only read")]
    ReadOnly {
        /// The function.
        function: String,
        /// The pointer.
        pointer: String,
    },
    /// A pointer to the memory of a function that has returned.
    #[error("`{function}` uses `{pointer}`, which points at memory that is gone")]
    Dangling {
        /// The function.
        function: String,
        /// The pointer.
        pointer: String,
    },
    /// An alloc for which there is no memory.
    #[error("`{function}` allocates {bytes} bytes, more than there is memory for")]
    OutOfMemory {
        /// The function.
        function: String,
        /// How many bytes.
        bytes: u64,
    },
    /// A loop that does not count up.
    #[error("`{function}` counts `{var}` by {step}; a step is at least 1")]
    Step {
        /// The function.
        function: String,
        /// The loop's variable.
        var: String,
        /// Its step.
        step: i64,
    },
    /// Some work-items of a group wait at a barrier that others do not reach.
    #[error(
        "in work-group {group:?} of `{kernel}`, {waiting} work-items wait at a barrier that \
         {elsewhere} others do not reach"
    )]
    Divergence {
        /// The kernel.
        kernel: String,
        /// The work-group.
        group: [u64; 3],
        /// How many wait at one barrier.
        waiting: usize,
        /// How many have finished or wait elsewhere.
        elsewhere: usize,
    },
    /// The budget of steps is spent.
    #[error("`{function}` was stopped after {limit} steps")]
    Steps {
        /// The function.
        function: String,
        /// The budget.
        limit: u64,
    },
    /// Functions that call each other without end.
    #[error("`{function}` is called {depth} calls deep")]
    Depth {
        /// The function.
        function: String,
        /// How deep.
        depth: usize,
    },
    /// A module that the validator would not have accepted.
    #[error("`{function}` is not valid: {detail}")]
    Malformed {
        /// The function.
        function: String,
        /// What is wrong.
        detail: String,
    },
    /// An op that does not take its operands.
    #[error(transparent)]
    Op(#[from] OpError),
}
