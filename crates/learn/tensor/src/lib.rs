//! Tensors: lazy, with shapes that are inferred, differentiable.
//!
//! A [`Tensor`] is a formula. Ops make larger formulas, and nothing is computed until a value is asked for:
//! then everything that is needed for it becomes one program, compiled for the device of the [`Session`].
//!
//! ```
//! # use loopwright_x86 as _;
//! use loopwright_tensor::{Tensor, TensorError};
//!
//! let x = Tensor::new(&[1.0f32, 2.0, 3.0, 4.0], [2, 2]);
//! let w = Tensor::from([[0.5f32, -1.0], [1.0, 0.0]]);
//! let loss = x.matmul(&w).relu().sum(..);
//! assert_eq!(loss.item()?, 8.0);
//!
//! // Gradients are tensors too.
//! let [dw] = loss.gradients([&w]);
//! assert_eq!(dw.to_vec::<f32>()?, [4.0, 0.0, 6.0, 0.0]);
//! # Ok::<(), TensorError>(())
//! ```
//!
//! **Axes** have names or positions. Axes with names meet by name, those without meet as in numpy, from the
//! right ([`Shape`]). **Sizes** need not be said: [`unknown`] ones are found from use, in both directions.
//!
//! **Mistakes** do not stop a formula: a tensor that cannot be carries the reason, with the line of the
//! caller's program and the shapes, and it comes out where a value is asked for ([`TensorError`]).
//!
//! **Formulas** of indices are [`einsum`]s; [`conv`] and pools look through windows; [`random`] has
//! distributions that are the same on all devices, [`linalg`] solves and factors, [`fft`] transforms.
//!
//! **[`Variable`]s** keep their place and change their value; [`jit`] makes a function of tensors and
//! variables one routine that is compiled once and updates variables in place. What depends on values is
//! said with [`select`], [`choose`], [`scan`], [`repeat_at_most`], or around functions with [`while_loop`].
//! [`parallel`] has several streams work on parts of the arguments, and adds up what they give.
//!
//! **Derivatives of functions** are [`value_and_grad`], [`grad`], [`jacobian`] and [`hessian`].
//!
//! **[`vmap`]** makes a function over one example one over a batch: a formula with one more axis, not a loop.
//!
//! **[`Loops`]** show what a tensor or a function has become, at every stage, and take other schedules.

mod buffer;
mod classes;
mod contract;
mod control;
mod convolve;
mod display;
mod einsum;
mod error;
mod exact;
pub mod fft;
mod gradient;
mod jit;
mod key;
pub mod linalg;
mod loops;
mod lower;
mod node;
mod ops;
mod padding;
mod parallel;
mod plainer;
mod program;
pub mod random;
mod recurrence;
mod session;
mod shape;
mod size;
mod trace;
mod tree;
mod variable;
mod vmap;

pub use buffer::Exclusive;
pub use control::{
    MAX_UNROLLED, WhileLoop, choose, repeat_at_most, repeat_while, scan, scan_values, while_loop,
};
pub use convolve::{
    ConvOptions, PerAxis, PoolOptions, adaptive_avg_pool, adaptive_max_pool, avg_pool, conv,
    conv_transpose, global_avg_pool, global_max_pool, max_pool,
};
pub use einsum::{Einsum, Sizes, einsum, einsum_with};
pub use error::{ErrorKind, TensorError};
pub use gradient::{grad, hessian, jacobian, jacobian_forward, value_and_grad};
pub use jit::{Jit, Outcome, Report, jit};
pub use loops::{Loops, loops};
pub use loopwright_compile::Plainer;
pub use loopwright_graph::Array;
pub use loopwright_ops::{DType, Op, ReduceOp, Scalar};
pub use loopwright_runtime::Usage;
pub use node::Tensor;
pub use ops::{
    AxisRef, Element, IntoAxes, IntoScalar, IntoSlice, Operand, Slice, Window, concat, realize,
    realize_with_held, select, stack,
};
pub use padding::PadMode;
pub use parallel::{Parallel, parallel, shard};
pub use plainer::on_plainer_schedule;
pub use session::{Compilations, Session};
pub use shape::{Axis, IntoShape, Shape, Size};
pub use size::{MAX_AXES, unknown};
pub use tree::Tree;
pub use variable::{Variable, VariableId, assign};
pub use vmap::{Vmap, vmap};
