//! Steps that work on whole rows at once: sorting and scattering.

use crate::error::LowerError;
use crate::program::Lowering;
use loopwright_graph::{DimId, NodeId, NodeOp};
use loopwright_kernel::{LoopKind, Space, Type, Value};
use loopwright_ops::{DType, Op, ReduceOp};
use loopwright_symbolic::Expr;
use rustc_hash::FxHashMap;

/// Scratch rows of a sort.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SortRows {
    /// The elements.
    keys: Value,
    /// Their order so far.
    order: Value,
    /// The order being merged.
    merged: Value,
}

impl<'a> Lowering<'a> {
    /// Declares the rows that sorts need.
    pub(crate) fn declare_row_scratch(&mut self) -> Result<(), LowerError> {
        let graph = self.graph;
        let mut rows = FxHashMap::default();
        for node in graph.node_ids() {
            let (NodeOp::Sort { over, .. } | NodeOp::ArgSort { over, .. }) = graph.node(node).op
            else {
                continue;
            };
            if !self.scheduled[node] {
                continue;
            }
            let elements = graph.dim(over).size.clone();
            let dtype = graph.node(graph.node(node).inputs[0]).dtype;
            let name = self.value_name(node);
            let keys = self.new_scratch(format!("{name}_keys"), dtype, elements.clone());
            let order = self.new_scratch(format!("{name}_order"), DType::I64, elements.clone());
            let merged = self.new_scratch(format!("{name}_merged"), DType::I64, elements);
            rows.insert(
                node,
                SortRows {
                    keys,
                    order,
                    merged,
                },
            );
        }
        self.sort_rows = rows;
        Ok(())
    }

    /// Runs `body` with a counter from `first` up to `end`.
    fn count(
        &mut self,
        (first, end, step): (Value, Value, Value),
        name: &str,
        body: &mut dyn FnMut(&mut Lowering<'a>, Value) -> Result<(), LowerError>,
    ) -> Result<(), LowerError> {
        let var = self
            .builder
            .begin_for(first, end, step, LoopKind::Serial, name);
        let result = self.apart(|lowering| body(lowering, var));
        self.builder.end_block();
        result
    }

    /// Sorts one row by merging ever longer runs; stable, n log n.
    pub(crate) fn sort_row(
        &mut self,
        node: NodeId,
        over: DimId,
        descending: bool,
        indices: bool,
    ) -> Result<(), LowerError> {
        let Some(rows) = self.sort_rows.get(&node).copied() else {
            return Err(LowerError::Symbolic(
                "a sort has no scratch rows".to_owned(),
            ));
        };
        let parts = self.graph.node(node);
        let others = parts.dims.iter().copied().filter(|dim| *dim != over);
        let at = self.loop_env(others);
        let input = parts.inputs[0];
        let size = self.graph.dim(over).size.clone();
        let n = self.expr_value(&size)?;
        let zero = self.builder.const_i64(0);
        let one = self.builder.const_i64(1);
        let two = self.builder.const_i64(2);
        self.count((zero, n, one), "t", &mut |lowering, t| {
            let mut at = at.clone();
            let symbol = lowering.dynamic_symbol(t);
            at.insert(over, Expr::symbol(symbol));
            let key = lowering.element(input, &at)?;
            lowering.builder.store(rows.keys, t, key);
            lowering.builder.store(rows.order, t, t);
            Ok(())
        })?;
        let width = self.index_variable("width", one);
        self.builder.begin_while();
        let run = self.builder.load(width, zero);
        let more = self.builder.lt_i64(run, n);
        self.builder.while_cond(more);
        let pair = self.builder.mul_i64(run, two);
        self.count((zero, n, pair), "start", &mut |lowering, start| {
            let middle = lowering.builder.add_i64(start, run);
            let middle = lowering.builder.min_i64(middle, n);
            let end = lowering.builder.add_i64(start, pair);
            let end = lowering.builder.min_i64(end, n);
            lowering.merge(&rows, (start, middle, end), descending)
        })?;
        self.count((zero, n, one), "t", &mut |lowering, t| {
            let place = lowering.builder.load(rows.merged, t);
            lowering.builder.store(rows.order, t, place);
            Ok(())
        })?;
        self.builder.store(width, zero, pair);
        self.builder.end_block();
        let memory = self.memory[&node].clone();
        self.count((zero, n, one), "t", &mut |lowering, t| {
            let mut at = at.clone();
            let symbol = lowering.dynamic_symbol(t);
            at.insert(over, Expr::symbol(symbol));
            let place = lowering.builder.load(rows.order, t);
            let value = if indices {
                place
            } else {
                lowering.builder.load(rows.keys, place)
            };
            lowering.store(&memory, &at, value)
        })
    }

    /// Merges the runs `start..middle` and `middle..end`.
    fn merge(
        &mut self,
        rows: &SortRows,
        (start, middle, end): (Value, Value, Value),
        descending: bool,
    ) -> Result<(), LowerError> {
        let zero = self.builder.const_i64(0);
        let one = self.builder.const_i64(1);
        let left = self.index_variable("left", start);
        let right = self.index_variable("right", middle);
        self.count((start, end, one), "out", &mut |lowering, out| {
            let yes = lowering
                .builder
                .constant(loopwright_ops::Scalar::bool(true));
            let no = lowering
                .builder
                .constant(loopwright_ops::Scalar::bool(false));
            let from_left =
                lowering
                    .builder
                    .alloc(Space::Private, Type::Scalar(DType::Bool), 1, "from_left");
            let l = lowering.builder.load(left, zero);
            let r = lowering.builder.load(right, zero);
            lowering.builder.store(from_left, zero, no);
            let left_open = lowering.builder.lt_i64(l, middle);
            lowering.builder.begin_if(left_open);
            lowering.builder.store(from_left, zero, yes);
            let right_open = lowering.builder.lt_i64(r, end);
            lowering.builder.begin_if(right_open);
            let l_place = lowering.builder.load(rows.order, l);
            let r_place = lowering.builder.load(rows.order, r);
            let l_key = lowering.builder.load(rows.keys, l_place);
            let r_key = lowering.builder.load(rows.keys, r_place);
            let right_first = if descending {
                lowering.sorts_before(l_key, r_key)
            } else {
                lowering.sorts_before(r_key, l_key)
            };
            let left_first = lowering.builder.map(Op::Not, &[right_first]);
            lowering.builder.store(from_left, zero, left_first);
            lowering.builder.end_block();
            lowering.builder.end_block();
            let take_left = lowering.builder.load(from_left, zero);
            lowering.builder.begin_if(take_left);
            let place = lowering.builder.load(rows.order, l);
            lowering.builder.store(rows.merged, out, place);
            let next = lowering.builder.add_i64(l, one);
            lowering.builder.store(left, zero, next);
            lowering.builder.begin_else();
            let place = lowering.builder.load(rows.order, r);
            lowering.builder.store(rows.merged, out, place);
            let next = lowering.builder.add_i64(r, one);
            lowering.builder.store(right, zero, next);
            lowering.builder.end_block();
            Ok(())
        })
    }

    /// Whether `a` comes before `b` in ascending order: NaN is last.
    fn sorts_before(&mut self, a: Value, b: Value) -> Value {
        let less = self.builder.map(Op::Lt, &[a, b]);
        let float = self.builder.ty(a).dtype().is_some_and(DType::is_float);
        if !float {
            return less;
        }
        let a_nan = self.builder.map(Op::IsNan, &[a]);
        let b_nan = self.builder.map(Op::IsNan, &[b]);
        let a_number = self.builder.map(Op::Not, &[a_nan]);
        let before_nan = self.builder.map(Op::And, &[b_nan, a_number]);
        self.builder.map(Op::Or, &[less, before_nan])
    }

    fn index_variable(&mut self, name: &str, value: Value) -> Value {
        let slot = self.builder.alloc(Space::Private, Type::INDEX, 1, name);
        let zero = self.builder.const_i64(0);
        self.builder.store(slot, zero, value);
        slot
    }

    /// Copies the base, then combines all updates in, in order.
    pub(crate) fn scatter_all(
        &mut self,
        node: NodeId,
        axis: DimId,
        combine: Option<ReduceOp>,
    ) -> Result<(), LowerError> {
        let parts = self.graph.node(node);
        let (base, index, updates) = (parts.inputs[0], parts.inputs[1], parts.inputs[2]);
        let base_dims = parts.dims.clone();
        let memory = self.memory[&node].clone();
        self.whole_nest(&base_dims, &mut |lowering| {
            let at = lowering.loop_env(base_dims.iter().copied());
            let value = lowering.element(base, &at)?;
            lowering.store(&memory, &at, value)
        })?;
        let update_dims = self.graph.node(updates).dims.clone();
        let size = self.graph.dim(axis).size.clone();
        self.whole_nest(&update_dims, &mut |lowering| {
            let mut at = lowering.loop_env(update_dims.iter().copied());
            let place = lowering.element(index, &at)?;
            let place = lowering.builder.cast(DType::I64, place);
            let size = lowering.expr_value(&size)?;
            let inside = lowering.in_range(place, size);
            lowering.builder.begin_if(inside);
            let update = lowering.element(updates, &at)?;
            let symbol = lowering.dynamic_symbol(place);
            at.insert(axis, Expr::symbol(symbol));
            let value = match combine {
                None => update,
                Some(op) => {
                    let before = lowering.load(&memory, &at)?;
                    lowering.builder.map(op.combine(), &[before, update])
                }
            };
            let stored = lowering.store(&memory, &at, value);
            lowering.builder.end_block();
            stored
        })
    }
}
