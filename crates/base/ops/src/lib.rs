//! Element types and the op table: what a scalar is, and what every scalar operation means.
//!
//! This is the floor everything stands on. A [`DType`] is the type of an array's elements, a
//! [`Scalar`] one value of one dtype. [`Op`] lists every scalar operation once, with its row of the
//! table ([`OpInfo`]: name, arity, dtypes, cost); the graph, the kernel IR, the emitters and the tests
//! match on it without a catch-all arm, so an op that was forgotten somewhere does not compile.
//! [`ReduceOp`] lists the reductions, each an op that combines elements, starting from an identity.
//!
//! [`evaluate`], [`cast`] and [`bitcast`] say what all of it *means*, bit for bit. They are the oracle:
//! slow, simple, and checked themselves against values computed independently with numpy (the
//! `reference` feature gives those to other crates' tests).
//!
//! ```
//! use loopwright_ops::{DType, Op, Scalar, cast, evaluate, parse_scalar};
//!
//! // Integers wrap; what C leaves undefined is defined.
//! let smallest = Scalar::min_value(DType::I32);
//! let minus_one = parse_scalar(DType::I32, "-1")?;
//! assert_eq!(evaluate(Op::Div, &[smallest, minus_one])?, smallest);
//! assert_eq!(evaluate(Op::Div, &[smallest, Scalar::zero(DType::I32)])?, Scalar::zero(DType::I32));
//!
//! // Narrow floats compute in f32 and round.
//! let third = cast(Scalar::f64(1.0 / 3.0), DType::BF16);
//! assert_eq!(evaluate(Op::Add, &[third, third])?.to_string(), "0.668");
//!
//! // Operands an op does not take are errors that say so.
//! let error = evaluate(Op::Sqrt, &[smallest]).unwrap_err();
//! assert_eq!(error.to_string(), "`sqrt` needs a float dtype, not i32");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod dtype;
mod evaluate;
mod narrow;
#[cfg(feature = "reference")]
pub mod reference;
mod scalar;
mod table;
mod text;

pub use dtype::{DType, Kind, UnknownDType};
pub use evaluate::{
    argmax_prefers, argmin_prefers, bitcast, can_bitcast, cast, evaluate, threefry, total_less,
};
pub use scalar::{Scalar, same_value};
pub use table::{Class, Op, OpError, OpInfo, Output, ReduceOp};
pub use text::{ScalarParseError, parse_scalar};
