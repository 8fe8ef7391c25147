//! C11 with the vector extensions of GCC and Clang.
//!
//! Narrow floats are held as their bits and widened where they are computed with, so moving one never
//! changes it. `bool` is a byte of 0 or 1. Signed overflow wraps (`-fwrapv`).

mod convert;
mod memory;
mod scalar_ops;
mod types;
mod vector_ops;
mod words;

use crate::dialect::{Dialect, EntryKernel, Linkage, LoopHint, Refusal, Spelled};
use crate::expression::{Expr, Precedence, Shape};
use crate::pieces::Pieces;
use loopwright_kernel::{AtomicOp, Space, TileType, Type, WorkItem};
use loopwright_ops::{DType, Op, ReduceOp, Scalar};
use std::fmt::Write;

/// The version of the entry points' calling convention; part of every cache key.
pub const ABI_VERSION: u32 = 1;

/// The dialect.
#[derive(Clone, Copy, Debug, Default)]
pub struct C;

const HEADER: &str = "\
#include <stdint.h>

typedef struct lw_runtime {
    void *context;
    void (*parallel_for)(void *context, int64_t count,
                         void (*task)(void *environment, int64_t begin, int64_t stop),
                         void *environment);
    int64_t global_size[3];
    int64_t local_size[3];
} lw_runtime;
";

const ITEM: &str = "\
typedef struct lw_item {
    int64_t global_id[3], local_id[3], group_id[3];
    int64_t global_size[3], local_size[3], group_count[3];
} lw_item;
";

/// The loops of an entry point whose kernel asks about work-items.
const GRID_LOOPS: &str = "    lw_item item;
    for (int axis = 0; axis < 3; axis++) {
        item.global_size[axis] = rt->global_size[axis];
        item.local_size[axis] = rt->local_size[axis];
        item.group_count[axis] = rt->global_size[axis] / rt->local_size[axis];
    }
    for (int64_t z = 0; z < item.global_size[2]; z++)
    for (int64_t y = 0; y < item.global_size[1]; y++)
    for (int64_t x = 0; x < item.global_size[0]; x++) {
        const int64_t id[3] = {x, y, z};
        for (int axis = 0; axis < 3; axis++) {
            item.global_id[axis] = id[axis];
            item.local_id[axis] = id[axis] % item.local_size[axis];
            item.group_id[axis] = id[axis] / item.local_size[axis];
        }
";

impl Dialect for C {
    fn name(&self) -> &'static str {
        "C"
    }

    fn is_reserved(&self, word: &str) -> bool {
        words::is_reserved(word)
    }

    fn header(&self) -> &'static str {
        HEADER
    }

    fn linkage(&self, linkage: Linkage) -> &'static str {
        match linkage {
            Linkage::Internal => "static ",
            Linkage::Separate => "static __attribute__((noinline)) ",
            Linkage::Entry => "",
        }
    }

    fn scalar(&self, dtype: DType, pieces: &mut Pieces) -> &'static str {
        types::scalar(dtype, pieces)
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

    fn field_alignment(&self, ty: &Type) -> String {
        types::field_alignment(ty)
    }

    fn tile(&self, tile: TileType, pieces: &mut Pieces) -> Spelled<String> {
        types::tile(tile, pieces)
    }

    fn space(&self, _: Space) -> &'static str {
        ""
    }

    fn noalias(&self) -> &'static str {
        "restrict "
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

    fn barrier(&self, _: bool, _: bool) -> Spelled<String> {
        Err(Refusal(
            "it has a barrier, and C has no work-groups".to_owned(),
        ))
    }

    fn constant(&self, value: Scalar, lanes: u32, pieces: &mut Pieces) -> Spelled<Expr> {
        let literal = types::literal(value, pieces);
        if lanes == 1 {
            Ok(literal)
        } else {
            self.splat(value.dtype(), lanes, &literal, pieces)
        }
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
            scalar_ops::map(op, dtype, operands, pieces)
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
            convert::scalar(from, to, value, pieces)
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
            convert::scalar_bits(from, to, value, pieces)
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
        memory::load_vector(dtype, lanes, address, pieces)
    }

    fn store_vector(
        &self,
        dtype: DType,
        lanes: u32,
        address: &Expr,
        value: &Expr,
        pieces: &mut Pieces,
    ) -> Spelled<String> {
        memory::store_vector(dtype, lanes, address, value, pieces)
    }

    fn elements(&self, pointer: &Expr) -> Expr {
        Expr::pointee(pointer)
    }

    fn work_item(&self, query: WorkItem, axis: u8) -> Spelled<Expr> {
        let field = match query {
            WorkItem::GlobalId => "global_id",
            WorkItem::LocalId => "local_id",
            WorkItem::GroupId => "group_id",
            WorkItem::GlobalSize => "global_size",
            WorkItem::LocalSize => "local_size",
            WorkItem::GroupCount => "group_count",
        };
        Ok(Expr::primary(format!("item->{field}[{axis}]")))
    }

    fn atomic(
        &self,
        op: AtomicOp,
        dtype: DType,
        address: &Expr,
        value: &Expr,
        pieces: &mut Pieces,
    ) -> Spelled<Expr> {
        memory::atomic(op, dtype, address, value, pieces)
    }

    fn compare_exchange(
        &self,
        dtype: DType,
        address: &Expr,
        expected: &Expr,
        value: &Expr,
        pieces: &mut Pieces,
    ) -> Spelled<Expr> {
        memory::compare_exchange(dtype, address, expected, value, pieces)
    }

    fn tile_load(
        &self,
        tile: TileType,
        address: &Expr,
        stride: &Expr,
        pieces: &mut Pieces,
    ) -> Spelled<Expr> {
        memory::tile_load(tile, address, stride, pieces)
    }

    fn tile_store(
        &self,
        tile: TileType,
        value: &Expr,
        address: &Expr,
        stride: &Expr,
        pieces: &mut Pieces,
    ) -> Spelled<String> {
        memory::tile_store(tile, value, address, stride, pieces)
    }

    fn tile_splat(&self, tile: TileType, value: &Expr, pieces: &mut Pieces) -> Spelled<Expr> {
        memory::tile_splat(tile, value, pieces)
    }

    fn tile_mma(
        &self,
        tiles: [TileType; 3],
        left: &Expr,
        right: &Expr,
        accumulator: &Expr,
        pieces: &mut Pieces,
    ) -> Spelled<Expr> {
        memory::tile_mma(tiles, left, right, accumulator, pieces)
    }

    fn supports_groups(&self) -> bool {
        false
    }

    fn entry(&self, kernel: &EntryKernel<'_>, pieces: &mut Pieces) -> Spelled<String> {
        let mut arguments = Vec::with_capacity(kernel.params.len() + 2);
        for (position, (ty, cast)) in kernel.params.iter().enumerate() {
            let star = if matches!(ty, Type::Pointer(..)) {
                ""
            } else {
                "*"
            };
            arguments.push(format!("{star}({cast})args[{position}]"));
        }
        if kernel.work_items {
            arguments.push("&item".to_owned());
        }
        if kernel.runtime {
            arguments.push("rt".to_owned());
        }
        let call = format!("{}({});", kernel.body, arguments.join(", "));
        let mut text = format!(
            "void {}(void *const *args, const lw_runtime *rt) {{\n",
            kernel.symbol
        );
        if kernel.work_items {
            need_item(pieces)?;
            let _ = writeln!(text, "{GRID_LOOPS}        {call}\n    }}\n}}");
        } else {
            let _ = writeln!(text, "    {call}\n}}");
        }
        Ok(text)
    }

    fn work_item_parameter(&self, pieces: &mut Pieces) -> Spelled<&'static str> {
        need_item(pieces)?;
        Ok("const lw_item *item")
    }

    fn work_item_argument(&self) -> &'static str {
        "item"
    }

    fn runtime_parameter(&self) -> &'static str {
        "const lw_runtime *rt"
    }

    fn parallel_for(&self, count: &Expr, task: &str, environment: &str) -> String {
        format!(
            "rt->parallel_for(rt->context, {}, {task}, {environment});",
            count.text
        )
    }
}

fn need_item(pieces: &mut Pieces) -> Spelled<()> {
    pieces.need("lw_item", |_| Ok(ITEM.to_owned()))
}

/// `(type)value`, for a scalar type whose arithmetic C does in `int`.
fn converted(ty: &str, value: &Expr) -> Expr {
    Expr::prefix(&format!("({ty})"), value)
}

/// An infix expression that is held as a mask where it compares vectors.
fn compared(operator: &str, left: &Expr, right: &Expr) -> Expr {
    Expr::infix(operator, Precedence::Comparison, left, right)
}
