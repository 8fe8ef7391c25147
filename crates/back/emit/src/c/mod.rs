//! C11 with the vector extensions of GCC and Clang.
//!
//! What it does not say here is as the C family has it. Signed overflow wraps (`-fwrapv`). Vectors are those
//! of the compiler, with its operators; a comparison of vectors stays a mask as long as it can.

mod atomics;
mod convert;
mod types;
mod vector_ops;

use crate::dialect::{Dialect, Linkage, LoopHint, Spelled};
use crate::expression::{Expr, Shape};
use crate::family::entry::RUNTIME;
use crate::family::{convert as scalar_convert, scalar_ops};
use crate::pieces::Pieces;
use crate::syntax::Syntax;
use loopwright_kernel::{AtomicOp, Type};
use loopwright_ops::{DType, Op, ReduceOp};

/// The version of the entry points' calling convention; part of every cache key.
pub const ABI_VERSION: u32 = 2;

/// The word that loops look at, which is 0 almost always, and the function that they ask where it is not. Whoever loads the library
/// sets both ([`ATTENTION_SYMBOL`], [`POLL_SYMBOL`]); otherwise loops run to their end.
const POLL: &str = "\
static const volatile uint32_t lw_quiet;
const volatile uint32_t *lw_attention = &lw_quiet;
uint32_t (*lw_poll)(void);
static inline int lw_stop(void) {
    return __builtin_expect(*lw_attention != 0, 0) && lw_poll && lw_poll() != 0;
}
";

/// The pointer to the word that loops look at, in libraries that have such loops.
pub const ATTENTION_SYMBOL: &str = "lw_attention";
/// The pointer to the function that they ask.
pub const POLL_SYMBOL: &str = "lw_poll";

/// C11 with the vector extensions of GCC and Clang: what `cc` compiles.
#[derive(Clone, Copy, Debug, Default)]
pub struct C;

/// The ending of the names of functions in single precision.
fn suffix(dtype: DType) -> &'static str {
    if dtype == DType::F32 { "f" } else { "" }
}

impl Syntax for C {}

impl Dialect for C {
    fn name(&self) -> &'static str {
        "C"
    }

    fn header(&self) -> String {
        format!("#include <stdint.h>\n\n{RUNTIME}")
    }

    fn linkage(&self, linkage: Linkage) -> &'static str {
        match linkage {
            Linkage::Internal => "static ",
            Linkage::Separate => "static __attribute__((noinline)) ",
            Linkage::Entry => "",
            Linkage::Helper => "static inline ",
        }
    }

    fn poll(&self) -> Option<(&'static str, &'static str, &'static str)> {
        Some(("lw_stop", "lw_stop()", POLL))
    }

    fn signed_wraps(&self) -> bool {
        true
    }

    fn builtin(&self, function: &str) -> String {
        format!("__builtin_{function}")
    }

    fn infinity(&self, dtype: DType) -> String {
        format!("__builtin_inf{}()", suffix(dtype))
    }

    fn nan(&self, dtype: DType) -> Option<String> {
        Some(format!("__builtin_nan{}(\"\")", suffix(dtype)))
    }

    /// It is called `const` because its only side effect is on `errno` and the floating-point flags,
    /// which nothing reads.
    fn math_declaration(&self, function: &str, ty: &str, arity: usize) -> Option<String> {
        let params = vec![ty; arity].join(", ");
        Some(format!("{ty} {function}({params}) __attribute__((const));"))
    }

    fn function_body(&self, op: Op, dtype: DType, _: &mut Pieces) -> Spelled<Option<String>> {
        let bits = dtype.bits();
        Ok(match op {
            Op::Popcount => Some(format!("return __builtin_popcountll((uint{bits}_t)a);")),
            Op::Clz => Some(format!(
                "return a ? __builtin_clzll((uint{bits}_t)a) - {} : {bits};",
                64 - bits
            )),
            Op::Ctz => Some(format!(
                "return a ? __builtin_ctzll((uint{bits}_t)a) : {bits};"
            )),
            _ => None,
        })
    }

    fn conversion_body(&self, from: DType, to: DType, portable: &[String]) -> String {
        convert::scalar_body(from, to, portable)
    }

    fn vector(
        &self,
        dtype: DType,
        lanes: u32,
        shape: Shape,
        pieces: &mut Pieces,
    ) -> Spelled<String> {
        match shape {
            Shape::Plain => types::vector(dtype, lanes, pieces),
            Shape::Mask(bits) => types::mask(bits, lanes, pieces),
        }
    }

    fn vector_in_memory(&self, dtype: DType, lanes: u32, pieces: &mut Pieces) -> Spelled<String> {
        types::unaligned_vector(dtype, lanes, pieces)
    }

    fn field_alignment(&self, ty: &Type) -> Spelled<String> {
        Ok(types::field_alignment(ty))
    }

    fn array_alignment(&self) -> &'static str {
        " __attribute__((aligned(64)))"
    }

    fn loop_hint(&self, hint: LoopHint) -> Option<String> {
        Some(match hint {
            LoopHint::Independent => "#pragma GCC ivdep".to_owned(),
            // Beyond some size writing a loop out only costs instruction cache.
            LoopHint::Unroll(count) => {
                format!("#pragma GCC unroll {}", count.unwrap_or(8).clamp(1, 64))
            }
        })
    }

    fn map(
        &self,
        op: Op,
        dtype: DType,
        lanes: u32,
        operands: &[Expr],
        pieces: &mut Pieces,
    ) -> Spelled<Expr> {
        if lanes == 1 {
            scalar_ops::map(self, op, dtype, operands, pieces)
        } else {
            vector_ops::map(op, dtype, lanes, operands, pieces)
        }
    }

    fn cast(
        &self,
        from: DType,
        to: DType,
        lanes: u32,
        value: &Expr,
        pieces: &mut Pieces,
    ) -> Spelled<Expr> {
        if from == to {
            Ok(value.clone())
        } else if lanes == 1 {
            scalar_convert::scalar(self, from, to, value, pieces)
        } else {
            convert::vector(from, to, lanes, value, pieces)
        }
    }

    fn bitcast(
        &self,
        from: DType,
        to: DType,
        lanes: u32,
        value: &Expr,
        pieces: &mut Pieces,
    ) -> Spelled<Expr> {
        if from == to {
            Ok(value.clone())
        } else if lanes == 1 {
            scalar_convert::scalar_bits(self, from, to, value, pieces)
        } else {
            let ty = types::vector(to, lanes, pieces)?;
            Ok(Expr::prefix(&format!("({ty})"), value))
        }
    }

    fn splat(&self, dtype: DType, lanes: u32, value: &Expr, pieces: &mut Pieces) -> Spelled<Expr> {
        vector_ops::splat(dtype, lanes, value, pieces)
    }

    fn build(&self, dtype: DType, values: &[Expr], pieces: &mut Pieces) -> Spelled<Expr> {
        let ty = types::vector(dtype, values.len() as u32, pieces)?;
        let lanes: Vec<&str> = values.iter().map(|value| value.text.as_str()).collect();
        Ok(Expr {
            reads: values.iter().any(|value| value.reads),
            ..Expr::primary(format!("({ty}){{{}}}", lanes.join(", ")))
        })
    }

    fn extract(&self, _: DType, _: u32, vector: &Expr, lane: u32, _: &mut Pieces) -> Spelled<Expr> {
        Ok(Expr::subscript(vector, &Expr::primary(lane.to_string())))
    }

    fn insert(
        &self,
        dtype: DType,
        lanes: u32,
        vector: &Expr,
        lane: u32,
        value: &Expr,
        pieces: &mut Pieces,
    ) -> Spelled<Expr> {
        vector_ops::insert(dtype, lanes, vector, lane, value, pieces)
    }

    fn shuffle(
        &self,
        dtype: DType,
        lanes: u32,
        left: &Expr,
        right: &Expr,
        picks: &[u32],
        pieces: &mut Pieces,
    ) -> Spelled<Expr> {
        vector_ops::shuffle(dtype, lanes, left, right, picks, pieces)
    }

    fn reduce(
        &self,
        op: ReduceOp,
        dtype: DType,
        lanes: u32,
        vector: &Expr,
        pieces: &mut Pieces,
    ) -> Spelled<Expr> {
        vector_ops::reduce(op, dtype, lanes, vector, pieces)
    }

    fn plain(&self, _: DType, lanes: u32, value: Expr, pieces: &mut Pieces) -> Spelled<Expr> {
        vector_ops::bytes(lanes, &value, pieces)
    }

    fn load_vector(
        &self,
        dtype: DType,
        lanes: u32,
        address: &Expr,
        pieces: &mut Pieces,
    ) -> Spelled<Expr> {
        vector_ops::load(dtype, lanes, address, pieces)
    }

    fn store_vector(
        &self,
        dtype: DType,
        lanes: u32,
        address: &Expr,
        value: &Expr,
        pieces: &mut Pieces,
    ) -> Spelled<String> {
        vector_ops::store(dtype, lanes, address, value, pieces)
    }

    fn atomic(
        &self,
        op: AtomicOp,
        dtype: DType,
        address: &Expr,
        value: &Expr,
        pieces: &mut Pieces,
    ) -> Spelled<Expr> {
        atomics::atomic(op, dtype, address, value, pieces)
    }

    fn compare_exchange(
        &self,
        dtype: DType,
        address: &Expr,
        expected: &Expr,
        value: &Expr,
        pieces: &mut Pieces,
    ) -> Spelled<Expr> {
        atomics::compare_exchange(dtype, address, expected, value, pieces)
    }
}
