//! The values that instructions and statements use, in the order of the text form.
//!
//! Everything that must see all operands (renumbering, substitution, liveness) goes through the
//! two exhaustive matches below.

use crate::ir::{Block, Inst, Stmt, Value};

/// One match for a shared and an exclusive walk: the patterns bind references of either kind.
macro_rules! inst_operands {
    ($inst:expr, $visit:expr) => {
        match $inst {
            Inst::Const(_) | Inst::Alloc { .. } | Inst::WorkItem(..) => {}
            Inst::Map(_, operands) => {
                for operand in operands {
                    $visit(operand);
                }
            }
            Inst::Cast(_, value)
            | Inst::Bitcast(_, value)
            | Inst::Elements(value)
            | Inst::Splat(value)
            | Inst::Extract(value, _)
            | Inst::ReduceLanes(_, value)
            | Inst::TileSplat(value)
            | Inst::Field { ptr: value, .. } => $visit(value),
            Inst::Load { ptr, index } | Inst::Offset { ptr, index } => {
                $visit(ptr);
                $visit(index);
            }
            Inst::Build(values) | Inst::Call(_, values) => {
                for value in values {
                    $visit(value);
                }
            }
            Inst::Insert(left, _, right) | Inst::Shuffle(left, right, _) => {
                $visit(left);
                $visit(right);
            }
            Inst::Atomic {
                ptr, index, value, ..
            } => {
                $visit(ptr);
                $visit(index);
                $visit(value);
            }
            Inst::CompareExchange {
                ptr,
                index,
                expected,
                value,
            } => {
                $visit(ptr);
                $visit(index);
                $visit(expected);
                $visit(value);
            }
            Inst::TileLoad {
                ptr,
                index,
                stride,
                interleave: _,
            } => {
                $visit(ptr);
                $visit(index);
                $visit(stride);
            }
            Inst::TileMma {
                left,
                right,
                accumulator,
            } => {
                $visit(left);
                $visit(right);
                $visit(accumulator);
            }
        }
    };
}

macro_rules! stmt_operands {
    ($stmt:expr, $inst:ident, $visit:expr) => {
        match $stmt {
            Stmt::Let(_, inst) => inst.$inst($visit),
            Stmt::Store { ptr, index, value } => {
                $visit(ptr);
                $visit(index);
                $visit(value);
            }
            Stmt::Call(_, arguments) => {
                for argument in arguments {
                    $visit(argument);
                }
            }
            Stmt::For {
                start, end, step, ..
            } => {
                $visit(start);
                $visit(end);
                $visit(step);
            }
            Stmt::While { cond, .. } | Stmt::If { cond, .. } => $visit(cond),
            Stmt::Return(value) => {
                if let Some(value) = value {
                    $visit(value);
                }
            }
            Stmt::Break | Stmt::Continue | Stmt::Barrier { .. } | Stmt::AsyncWait { .. } => {}
            Stmt::AsyncCopy {
                dst: (dst, dst_index),
                src: (src, src_index),
                count,
            } => {
                $visit(dst);
                $visit(dst_index);
                $visit(src);
                $visit(src_index);
                $visit(count);
            }
            Stmt::TileStore {
                tile,
                ptr,
                index,
                stride,
            } => {
                $visit(ptr);
                $visit(index);
                $visit(stride);
                $visit(tile);
            }
        }
    };
}

impl Inst {
    /// Shows every operand.
    pub fn operands(&self, visit: &mut dyn FnMut(&Value)) {
        inst_operands!(self, visit);
    }

    /// Shows every operand, to be replaced.
    pub fn operands_mut(&mut self, visit: &mut dyn FnMut(&mut Value)) {
        inst_operands!(self, visit);
    }
}

impl Stmt {
    /// Shows every operand of the statement itself, a `Let`'s instruction's among them, but not
    /// what the statements of its blocks use.
    pub fn operands(&self, visit: &mut dyn FnMut(&Value)) {
        stmt_operands!(self, operands, visit);
    }

    /// Shows every operand of the statement itself, to be replaced.
    pub fn operands_mut(&mut self, visit: &mut dyn FnMut(&mut Value)) {
        stmt_operands!(self, operands_mut, visit);
    }

    /// The value the statement defines: a `Let`'s, or a loop's variable.
    pub fn defined(&self) -> Option<Value> {
        match self {
            Stmt::Let(value, _) | Stmt::For { var: value, .. } => Some(*value),
            _ => None,
        }
    }

    /// Its blocks, in the order of the text form.
    pub fn blocks(&self) -> [Option<&Block>; 2] {
        match self {
            Stmt::For { body, .. } => [Some(body), None],
            Stmt::While { head, body, .. } => [Some(head), Some(body)],
            Stmt::If {
                then, otherwise, ..
            } => [Some(then), Some(otherwise)],
            _ => [None, None],
        }
    }

    /// Its blocks, to be rewritten.
    pub fn blocks_mut(&mut self) -> [Option<&mut Block>; 2] {
        match self {
            Stmt::For { body, .. } => [Some(body), None],
            Stmt::While { head, body, .. } => [Some(head), Some(body)],
            Stmt::If {
                then, otherwise, ..
            } => [Some(then), Some(otherwise)],
            _ => [None, None],
        }
    }
}
