//! What can be wrong with a program over tensors.

use loopwright_ops::{DType, OpError};
use loopwright_runtime::RuntimeError;
use std::fmt;
use std::panic::Location;
use std::sync::Arc;

/// Why a tensor has no value, and the caller's line that is to blame.
///
/// Ops do not fail on the spot, so that formulas stay formulas: a tensor that cannot be is made, and so is
/// all that is made of it; the first mistake comes out where a value is asked for.
#[derive(Clone, Debug)]
pub struct TensorError {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    kind: Arc<ErrorKind>,
    place: &'static Location<'static>,
}

impl TensorError {
    #[track_caller]
    pub(crate) fn new(kind: ErrorKind) -> TensorError {
        TensorError::at(kind, Location::caller())
    }

    pub(crate) fn at(kind: ErrorKind, place: &'static Location<'static>) -> TensorError {
        TensorError {
            inner: Arc::new(Inner {
                kind: Arc::new(kind),
                place,
            }),
        }
    }

    /// The same mistake at another place.
    pub(crate) fn moved_to(&self, place: &'static Location<'static>) -> TensorError {
        TensorError {
            inner: Arc::new(Inner {
                kind: Arc::clone(&self.inner.kind),
                place,
            }),
        }
    }

    /// What is wrong.
    pub fn kind(&self) -> &ErrorKind {
        &self.inner.kind
    }

    /// The line of the caller's program.
    pub fn place(&self) -> &'static Location<'static> {
        self.inner.place
    }
}

impl fmt::Display for TensorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = self.inner.place;
        write!(
            f,
            "{}\n  at {}:{}",
            self.inner.kind,
            place.file(),
            place.line()
        )
    }
}

impl std::error::Error for TensorError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.inner.kind.source()
    }
}

/// What is wrong with a tensor or a call.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Shapes that do not go together.
    #[error("`{op}` of {left} and {right}: {reason}")]
    Shapes {
        /// The op.
        op: String,
        /// The first shape.
        left: String,
        /// The second shape.
        right: String,
        /// Why not, and what would do.
        reason: String,
    },
    /// A shape that an op does not take.
    #[error("`{op}` of {shape}: {reason}")]
    Shape {
        /// The op.
        op: String,
        /// The operand's shape.
        shape: String,
        /// Why not, and what would do.
        reason: String,
    },
    /// An axis that is not there.
    #[error("`{op}` of {shape}: there is no axis {axis}{hint}")]
    Axis {
        /// The op.
        op: String,
        /// The operand's shape.
        shape: String,
        /// The axis that was asked for.
        axis: String,
        /// What may have been meant.
        hint: String,
    },
    /// Dtypes that an op does not take.
    #[error("{}{hint}", without_cast(error))]
    DType {
        /// What is wrong.
        error: OpError,
        /// What would do.
        hint: String,
    },
    /// A dtype that is not the expected one.
    #[error("`{op}` needs {expected}, not {got}")]
    Expected {
        /// The op.
        op: String,
        /// The dtypes that would do.
        expected: String,
        /// What it was given.
        got: DType,
    },
    /// An argument that makes no sense.
    #[error("`{op}`: {reason}")]
    Argument {
        /// The op.
        op: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A formula of an einsum, and the place in it.
    #[error("`einsum` of {shapes}: {reason}\n  {formula}\n  {marks}")]
    Formula {
        /// The operands' shapes.
        shapes: String,
        /// What is wrong.
        reason: String,
        /// The formula.
        formula: String,
        /// Marks below the place.
        marks: String,
    },
    /// Sizes that nothing determines.
    #[error("nothing determines {what}; say it, or use it with something whose size is known")]
    Undetermined {
        /// Whose sizes.
        what: String,
    },
    /// A value that is not known while a function is traced.
    #[error(
        "the value of a tensor was asked for while `{function}` was traced, where it is not known yet; use `select`, `scan` or `while_loop` for what depends on values"
    )]
    Traced {
        /// The traced function.
        function: String,
    },
    /// Something with no derivative in the way.
    #[error("there is no gradient: {reason}")]
    Gradient {
        /// Why not.
        reason: String,
    },
    /// A schedule that does not fit the program, or a change of one that would change a value.
    #[error("{reason}")]
    Schedule {
        /// What is wrong, and where in the text.
        reason: String,
    },
    /// The compiler or the runtime refused.
    #[error("{0}")]
    Runtime(#[from] RuntimeError),
    /// The program could not be made into a graph.
    #[error("{0}")]
    Graph(#[from] loopwright_graph::GraphError),
}

/// What is wrong with dtypes, without advice in the language of graphs.
fn without_cast(error: &OpError) -> String {
    match error {
        OpError::Mismatch { op, left, right } => {
            format!("`{op}` needs operands of one dtype, not {left} and {right}")
        }
        OpError::Condition { op, got } => {
            format!("the condition of `{op}` must be bool, not {got}")
        }
        OpError::Arity { .. } | OpError::Class { .. } | OpError::Bitcast { .. } => {
            error.to_string()
        }
    }
}
