//! What of the op table a kernel is made of.

use loopwright_kernel::{Block, Function, Inst, Module, Stmt, Value};
use loopwright_ops::{DType, Op};
use std::collections::BTreeSet;
use std::fmt;

/// One thing of the op table at one dtype: what a row of the suite tests, and what the kernels of other
/// rows are made of.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Piece {
    /// An op on operands of this dtype; for `select`, of its second and third.
    Op(Op, DType),
    /// A cast.
    Cast {
        /// From.
        from: DType,
        /// To.
        to: DType,
    },
    /// A bitcast.
    Bitcast {
        /// From.
        from: DType,
        /// To.
        to: DType,
    },
}

impl fmt::Display for Piece {
    /// The name of the row that tests it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Piece::Op(op, dtype) => write!(f, "{op} {dtype}"),
            Piece::Cast { from, to } => write!(f, "cast to {to} from {from}"),
            Piece::Bitcast { from, to } => write!(f, "bitcast to {to} from {from}"),
        }
    }
}

/// Some pieces.
pub type Pieces = BTreeSet<Piece>;

/// What a module is made of, in scalars and in vectors.
pub fn pieces(module: &Module) -> Pieces {
    let mut found = Pieces::new();
    for function in &module.functions {
        of_block(function, &function.body, &mut found);
    }
    found
}

fn of_block(function: &Function, block: &Block, found: &mut Pieces) {
    let dtype = |value: &Value| function.ty(*value).dtype();
    for stmt in block {
        if let Stmt::Let(_, inst) = stmt {
            let piece = match inst {
                // All operands have one dtype, but for the condition of `select`, which comes first.
                Inst::Map(op, operands) => operands
                    .last()
                    .and_then(dtype)
                    .map(|dtype| Piece::Op(*op, dtype)),
                Inst::ReduceLanes(op, lanes) => {
                    dtype(lanes).map(|dtype| Piece::Op(op.combine(), dtype))
                }
                Inst::Cast(to, value) => dtype(value).map(|from| Piece::Cast { from, to: *to }),
                Inst::Bitcast(to, value) => {
                    dtype(value).map(|from| Piece::Bitcast { from, to: *to })
                }
                _ => None,
            };
            found.extend(piece);
        }
        for inner in stmt.blocks().into_iter().flatten() {
            of_block(function, inner, found);
        }
    }
}
