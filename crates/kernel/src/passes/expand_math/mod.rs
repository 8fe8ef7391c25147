//! Replaces functions of the C library by arithmetic.
//!
//! `exp`, `tanh`, `log` and a few more become straight-line code of additions, multiplications, selections and
//! operations on the bits of floats: what vector units have. A call of the C library takes one element at a time;
//! the same in a vector of 16 lanes takes all of them at once, and a C compiler can schedule it among the
//! instructions around it.
//!
//! This is the one pass that changes values, and therefore none of [`NAMES`](super::NAMES): results differ from the
//! library's in their last place. [`ulps`] says by how much they may be off; NaN, infinities, zeros with their
//! signs, overflow, and underflow through subnormal numbers are as in the library. A backend runs it outside
//! strict mode on the module it is given, so that the interpreter, which is given the module itself, remains the
//! oracle.
//!
//! The arithmetic is that of `f32`. Narrower floats are converted, as they are for every other op; `f64`
//! stays with the library. The bounds hold whether a compiler contracts `a * b + c` or not. No operand is only
//! added to something: compilers contract a product into additions only where all its uses are such, so that
//! `exp(a * b)` is that of the rounded product.
//!
//! ```
//! use loopwright_kernel::parse;
//! use loopwright_kernel::passes::expand_math::expanded;
//! use loopwright_text::Source;
//!
//! let text = "\
//! loopwright kernel 1
//!
//! kernel @exp(%x: read ptr<global, f32>, %y: write ptr<global, f32>) {
//!   %zero: i64 = const 0
//!   %in: f32x16 = load %x[%zero]
//!   %out: f32x16 = exp %in
//!   store %y[%zero], %out
//! }
//! ";
//! let module = parse(&Source::new("exp.lwk", text)).unwrap();
//! let expanded = expanded(&module);
//! assert!(expanded.functions[0].body.len() > module.functions[0].body.len());
//! ```

mod erf;
mod exp;
mod log;
mod writer;

use crate::ir::{Block, Function, Inst, Module, Stmt};
use loopwright_ops::{DType, Op};
use std::borrow::Cow;
use writer::{Expansion, Writer};

/// The largest distance of an expansion's result from the correctly rounded one, in units in the last place of
/// `f32`; `None` for an op that is not expanded.
///
/// `crates/cc/examples/math.rs` measures it at every `f32` there is.
pub fn ulps(op: Op) -> Option<u32> {
    expansion(op).map(|(ulps, _)| ulps)
}

/// How an op is written, and how far off it may be.
fn expansion(op: Op) -> Option<(u32, Expansion)> {
    // An op that is not here stays with the library, also one that is new.
    Some(match op {
        Op::Exp => (1, exp::exp),
        Op::Exp2 => (1, exp::exp2),
        Op::Expm1 => (2, exp::expm1),
        Op::Tanh => (2, exp::tanh),
        Op::Log => (1, log::log),
        Op::Log2 => (1, log::log2),
        Op::Log1p => (2, log::log1p),
        Op::Erf => (1, erf::erf),
        _ => return None,
    })
}

/// The expansion of an instruction whose result has this dtype.
fn expansion_of(inst: &Inst, dtype: Option<DType>) -> Option<Expansion> {
    match (inst, dtype) {
        (Inst::Map(op, _), Some(dtype)) if dtype.is_float() && dtype != DType::F64 => {
            expansion(*op).map(|(_, write)| write)
        }
        _ => None,
    }
}

/// The module with everything expanded that can be; the same one where there is nothing.
pub fn expanded(module: &Module) -> Cow<'_, Module> {
    let expands = |function: &Function| expands(function, &function.body);
    if !module.functions.iter().any(expands) {
        return Cow::Borrowed(module);
    }
    let mut module = module.clone();
    for function in &mut module.functions {
        run(function);
        function.compact();
    }
    Cow::Owned(module)
}

/// Whether a block has something to expand.
fn expands(function: &Function, block: &Block) -> bool {
    block.iter().any(|stmt| {
        let here = match stmt {
            Stmt::Let(value, inst) => expansion_of(inst, function.ty(*value).dtype()).is_some(),
            _ => false,
        };
        let mut inner = stmt.blocks().into_iter().flatten();
        here || inner.any(|block| expands(function, block))
    })
}

/// Runs the pass.
pub fn run(function: &mut Function) {
    let mut body = std::mem::take(&mut function.body);
    expand(function, &mut body);
    function.body = body;
}

fn expand(function: &mut Function, block: &mut Block) {
    let mut out = Block::with_capacity(block.len());
    for mut stmt in std::mem::take(block) {
        for inner in stmt.blocks_mut().into_iter().flatten() {
            expand(function, inner);
        }
        let Stmt::Let(value, inst) = &stmt else {
            out.push(stmt);
            continue;
        };
        let ty = function.ty(*value);
        let (dtype, lanes) = (ty.dtype(), ty.lanes());
        match (expansion_of(inst, dtype), inst, dtype) {
            (Some(write), Inst::Map(_, operands), Some(dtype)) => {
                let mut writer = Writer::new(function, &mut out, lanes);
                let x = writer.cast(DType::F32, operands[0]);
                let result = write(&mut writer, x);
                let result = writer.cast(dtype, result);
                writer.define(*value, result);
            }
            _ => out.push(stmt),
        }
    }
    *block = out;
}
