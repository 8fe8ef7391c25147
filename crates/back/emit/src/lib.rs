//! From kernels to C-like text.
//!
//! One emitter writes every C-like language. It decides what reads well: which values become
//! variables and which are written where they are used, names, the order of statements, indentation. What
//! differs between the languages is a [`Dialect`] (declarations, types, literals, operations, how a kernel is
//! entered) with its [`Syntax`] (statements, variables, memory), of which all but the name and the header has a
//! default: ISO C99. So a dialect says only how its language differs from that; the front page of [`Dialect`]
//! is the list to go through for a new one. What a language lacks comes from a prelude of small functions, of
//! which a text holds only those it calls.
//!
//! | dialect | for | what it says |
//! | --- | --- | --- |
//! | [`C99`] | any C compiler | its header |
//! | [`C`] | GCC and Clang | vectors and atomics of these compilers, their builtins, hints and attributes |
//!
//! The text means, bit for bit, what [`loopwright_ops::evaluate`] says, under flags that leave
//! floating-point arithmetic alone (no `-ffast-math`). A compiler must call the functions of the
//! mathematics library named in [`Emitted::math`], not fold them (`-fno-builtin-NAME`). [`C`] also needs
//! `-fwrapv -fno-strict-aliasing`.
//!
//! ```
//! use loopwright_emit::{C, emit};
//! use loopwright_kernel::{Access, Builder, FunctionKind, LoopKind, Module, Space};
//! use loopwright_ops::{DType, Op};
//!
//! let mut b = Builder::new("double", FunctionKind::Kernel { group: None });
//! let a = b.param_ptr(DType::F32, Space::Global, "a", Access::ReadWrite, true);
//! let n = b.param_scalar(DType::I64, "n");
//! let (zero, one) = (b.const_i64(0), b.const_i64(1));
//! b.for_loop(zero, n, one, LoopKind::Serial, "i", |b, i| {
//!     let x = b.load(a, i);
//!     let y = b.map(Op::Add, &[x, x]);
//!     b.store(a, i, y);
//! });
//! let module = Module { functions: vec![b.finish()].into(), ..Module::default() };
//!
//! let emitted = emit(&module, &C)?;
//! assert!(emitted.source.contains("for (int64_t i = 0; i < n; i++) {"));
//! assert_eq!(emitted.kernels[0].symbol, "lw_kernel_double");
//! # Ok::<(), loopwright_emit::EmitError>(())
//! ```

#![forbid(unsafe_code)]

mod c;
mod c99;
mod dialect;
mod expression;
mod family;
mod function;
mod module;
mod names;
mod pieces;
mod syntax;
mod uses;

pub use c::{ABI_VERSION, ATTENTION_SYMBOL, C, POLL_SYMBOL};
pub use c99::C99;
pub use dialect::{
    Declared, Dialect, EntryKernel, Linkage, LoopHint, ParallelLoop, Refusal, Spelled, Structs,
};
pub use expression::{Expr, Precedence, Shape};
pub use module::{Emitted, EmittedKernel, emit};
pub use pieces::Pieces;
pub use syntax::{Field, LoopHead, Pointee, Syntax};

/// Why a module cannot be written.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum EmitError {
    /// A function does what the dialect cannot say.
    #[error("`{function}` cannot be written in {dialect}: {reason}")]
    Unsupported {
        /// The dialect.
        dialect: &'static str,
        /// The function or kernel.
        function: String,
        /// What cannot be said, and what would help.
        reason: String,
    },
}
