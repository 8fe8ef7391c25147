//! Loopwright: one program, every machine.
//!
//! Loopwright takes a program over arrays with named dimensions, turns it into loops that a person
//! can read and edit, turns those into kernels, and runs the kernels on whatever is there. This crate
//! is what programs depend on: it re-exports the layers under their names in the design, and links in the
//! backends that every build has.
//!
//! Most programs are written with tensors. They are formulas; nothing is computed until a value is asked for.
//! The [`prelude`] has what such programs need, and `examples/` of this crate has some to begin with.
//!
//! ```
//! use loopwright::prelude::*;
//!
//! let x = Tensor::from([[1.0f32, 2.0], [3.0, 4.0]]);
//! let w = Variable::new(&Tensor::from([[1.0f32], [1.0]]));
//! let error = x.matmul(&w.get()) - Tensor::from([[5.0f32], [11.0]]);
//! let [slope] = error.square().sum(..).gradients([&w.get()]);
//! w.set(&(w.get() - slope * 0.03))?;
//! assert!(w.get().to_f64()? > vec![1.0, 1.0]);
//! # Ok::<(), TensorError>(())
//! ```
//!
//! Below tensors are programs.
//!
//! ```
//! use loopwright::backend::{CompileOptions, backends};
//! use loopwright::compile::Compiler;
//! use loopwright::graph::{Array, parse};
//! use loopwright::ops::DType;
//! use loopwright::text::Source;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // A program: here from text, as in `.lw` files; `graph::GraphBuilder` makes the same in Rust.
//! let source = Source::new("product.lw", "\
//! loopwright program 1
//! size M
//! input a: f32[i=M, k=2]
//! input b: f32[k, j=2]
//! output c = sum[k](a * b)
//! ");
//! let graph = parse(&source).map_err(|error| error.render(&source))?;
//!
//! // A device: `backends` has the most preferred first; the interpreter is always available.
//! let found = backends().into_iter().find(|backend| backend.name() == "interp");
//! let compiler = Compiler::new(found.ok_or("every build has it")?, CompileOptions::default());
//!
//! // Compiled once, it runs at any size.
//! let program = compiler.compile(&graph, None)?;
//! for rows in [1, 3] {
//!     let mut run = program.bind(&[("M", rows)])?;
//!     let ones = vec![1.0; rows as usize * 2];
//!     run.give("a", Array::from_f64(DType::F32, &[rows as usize, 2], &ones)?)?;
//!     run.give("b", Array::from_f64(DType::F32, &[2, 2], &[1.0, 2.0, 3.0, 4.0])?)?;
//!     run.run()?;
//!     let c = run.array("c").ok_or("the program has an output c")?;
//!     assert_eq!(c.to_f64(), [4.0, 6.0].repeat(rows as usize));
//! }
//! # Ok(())
//! # }
//! ```
//!
//! That is one program in memory of the caller's. The [`runtime`] is for many: it keeps named arrays on
//! devices, links programs to them, and runs work on streams, in an order that keeps every result right.
//!
//! ```
//! use loopwright::graph::parse;
//! use loopwright::runtime::{CodeOptions, LinkOptions, Runtime, RuntimeOptions};
//! use loopwright::text::Source;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let source = Source::new("count.lw", "\
//! loopwright program 1
//! state n: i64[i=2]
//! update n = n + 1
//! ");
//! let graph = parse(&source).map_err(|error| error.render(&source))?;
//!
//! let runtime = Runtime::new(RuntimeOptions::default());
//! let device = runtime.device("interp")?;
//! let code = device.compile("count", &graph, &CodeOptions::default())?;
//! let count = device.stream()?.context().link(&code, &LinkOptions::default())?;
//! count.context().write("n", &[10i64, 20])?;
//! for _ in 0..3 {
//!     count.schedule(&[])?; // does not wait
//! }
//! let n = count.context().read("n")?.ok_or("the context has it")?; // waits
//! assert_eq!(n.to_f64(), [13.0, 23.0]);
//! # Ok(())
//! # }
//! ```
//!
//! Along the path of a program:
//!
//! | module | what it has |
//! | --- | --- |
//! | [`prelude`] | what a first program needs |
//! | [`tensor`], [`nn`] | lazy tensors, gradients, compiled functions; layers, losses, optimisers |
//! | [`data`], [`train`] | sets of examples, readers, loaders; training runs |
//! | [`graph`] | programs: nodes over named dimensions, their text form, arrays |
//! | [`scheduler`] | chooses schedules, and predicts what any schedule costs |
//! | [`looptree`] | schedules, and the loops that follow from them |
//! | [`lower`] | from loops to a kernel |
//! | [`kernel`] | the kernel IR: validator, passes, interpreter, text form |
//! | [`compile`] | compiling programs for a backend, and running them on the caller's memory |
//! | [`backend`] | what a backend is |
//! | [`interp`], [`x86`], [`cc`], [`gccjit`], [`manycore`], [`null`] | the backends of every build |
//! | [`runtime`] | devices, streams, contexts, routines; memory plans and traces |
//! | [`npy`], [`checkpoint`], [`image`], [`chart`] | arrays in files: NumPy's, safetensors, pictures; arrays as boxes, curves, heat maps |
//! | [`ops`], [`symbolic`], [`text`] | dtypes, scalars and the op table; sizes and indices; sources, and errors that point into them |

#![forbid(unsafe_code)]

pub mod nn;
pub mod prelude;

pub use loopwright_backend as backend;
pub use loopwright_cc as cc;
pub use loopwright_compile as compile;
pub use loopwright_formats::{chart, checkpoint, image, npy};
pub use loopwright_gccjit as gccjit;
pub use loopwright_graph as graph;
pub use loopwright_interp as interp;
pub use loopwright_kernel as kernel;
pub use loopwright_looptree as looptree;
pub use loopwright_lower as lower;
pub use loopwright_manycore as manycore;
pub use loopwright_nn::{data, train};
pub use loopwright_null as null;
pub use loopwright_ops as ops;
pub use loopwright_runtime as runtime;
pub use loopwright_scheduler as scheduler;
pub use loopwright_symbolic as symbolic;
pub use loopwright_tensor as tensor;
pub use loopwright_text as text;
pub use loopwright_x86 as x86;

/// The front page, and the pages of the book that are written in Rust: their examples are compiled and run as tests.
#[cfg(doctest)]
mod book {
    #[doc = include_str!("../../../../README.md")]
    struct FrontPage;

    #[doc = include_str!("../../../../docs/lessons/01-tensors.md")]
    struct Tensors;

    #[doc = include_str!("../../../../docs/lessons/02-shapes.md")]
    struct Shapes;

    #[doc = include_str!("../../../../docs/lessons/03-einsum.md")]
    struct Einsum;

    #[doc = include_str!("../../../../docs/lessons/04-gradients.md")]
    struct Gradients;

    #[doc = include_str!("../../../../docs/lessons/05-training.md")]
    struct Training;

    #[doc = include_str!("../../../../docs/lessons/06-schedules.md")]
    struct Schedules;

    #[doc = include_str!("../../../../docs/lessons/07-devices.md")]
    struct Devices;

    #[doc = include_str!("../../../../docs/lessons/08-saving.md")]
    struct Saving;

    #[doc = include_str!("../../../../docs/lessons/14-from-rust.md")]
    struct FromRust;

    #[doc = include_str!("../../../../docs/backends.md")]
    struct Backends;

    #[doc = include_str!("../../../../docs/data.md")]
    struct Data;
}
