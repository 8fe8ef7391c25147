//! Computing a node's element where it is read.

use crate::error::LowerError;
use crate::memory::index_along;
use crate::program::Lowering;
use loopwright_graph::{DimId, NodeId, NodeOp, View};
use loopwright_kernel::{Space, Type, Value};
use loopwright_looptree::{Env, delayed_env, inputs_env, is_given, substitute};
use loopwright_ops::{DType, Op, Scalar};
use loopwright_symbolic::{Expr, affine};
use smallvec::SmallVec;

impl Lowering<'_> {
    /// The element of a node at the given indices: read from memory, or computed here.
    pub(crate) fn element(&mut self, node: NodeId, at: &Env) -> Result<Value, LowerError> {
        if is_given(self.graph, node) || self.scheduled[node] {
            let Some(memory) = self.memory.get(&node).cloned() else {
                return Err(LowerError::Symbolic(format!(
                    "`{}` is read before it has memory",
                    self.graph.node_name(node)
                )));
            };
            return self.load(&memory, at);
        }
        if !self.shared[node] {
            return self.compute(node, at);
        }
        // Several readers in one leaf: computed once, or a chain of `x + x` would double at each step.
        let computed = self.computed.get(&node).into_iter().flatten();
        if let Some((_, value)) = computed.clone().find(|(found, _)| found == at) {
            return Ok(*value);
        }
        let value = self.compute(node, at)?;
        self.computed
            .entry(node)
            .or_default()
            .push((at.clone(), value));
        Ok(value)
    }

    /// Runs `body` without what was computed before it, and forgets what it computes: for blocks that
    /// may not run, or run more than once, and for other lanes.
    pub(crate) fn apart<T>(&mut self, body: impl FnOnce(&mut Self) -> T) -> T {
        let before = std::mem::take(&mut self.computed);
        let result = body(self);
        self.computed = before;
        result
    }

    /// The element of a node at the given indices, computed from its inputs. Not for nodes that fold
    /// or sort.
    pub(crate) fn compute(&mut self, node: NodeId, at: &Env) -> Result<Value, LowerError> {
        let parts = self.graph.node(node);
        let dtype = parts.dtype;
        match &parts.op {
            NodeOp::Constant(values) => {
                let value = values.first().copied().unwrap_or(Scalar::zero(dtype));
                Ok(self.builder.constant(value))
            }
            NodeOp::Index(dim) => {
                let index = index_along(self.graph, *dim, at)?;
                self.index_element(&index, dtype)
            }
            NodeOp::Size(size) => self.expr_value(size),
            NodeOp::Map(op) => {
                let op = *op;
                let mut operands: SmallVec<[Value; 3]> = SmallVec::new();
                for (input, inner) in inputs_env(self.graph, node, at)? {
                    operands.push(self.element(input, &inner)?);
                }
                let wide = operands
                    .iter()
                    .any(|operand| self.builder.ty(*operand).lanes() > 1);
                if wide {
                    for operand in &mut operands {
                        *operand = self.widened(*operand);
                    }
                }
                Ok(match op {
                    Op::Copy => operands[0],
                    op => self.builder.map(op, &operands),
                })
            }
            NodeOp::Cast => {
                let value = self.only_input(node, at)?;
                Ok(self.builder.cast(dtype, value))
            }
            NodeOp::Bitcast => {
                let value = self.only_input(node, at)?;
                Ok(self.builder.bitcast(dtype, value))
            }
            NodeOp::Previous { outside, .. } => self.delayed(node, *outside, at),
            NodeOp::View(view) => self.viewed(node, view, at),
            NodeOp::Gather { outside, .. } => self.gathered(node, *outside, at),
            NodeOp::Input
            | NodeOp::State
            | NodeOp::Reduce { .. }
            | NodeOp::ArgReduce { .. }
            | NodeOp::Scan { .. }
            | NodeOp::Scatter { .. }
            | NodeOp::Sort { .. }
            | NodeOp::ArgSort { .. } => Err(LowerError::Symbolic(format!(
                "`{}` cannot be computed where it is read",
                self.graph.node_name(node)
            ))),
        }
    }

    /// The element of the first input that one element of a node is made from.
    pub(crate) fn only_input(&mut self, node: NodeId, at: &Env) -> Result<Value, LowerError> {
        let inputs = inputs_env(self.graph, node, at)?;
        let (input, inner) = &inputs[0];
        self.element(*input, inner)
    }

    fn index_element(&mut self, index: &Expr, dtype: DType) -> Result<Value, LowerError> {
        let moves = self
            .vector
            .is_some_and(|(dim, _)| index.contains(self.graph.dim(dim).index));
        let value = match (moves, self.lane_step(index)) {
            (false, _) => self.expr_value(index)?,
            (true, Some((dim, lanes, step))) => {
                let first = self.in_lane(dim, 0, &mut |lowering| lowering.expr_value(index))?;
                let further: Vec<Value> = (0..i64::from(lanes))
                    .map(|lane| self.builder.const_i64(lane.wrapping_mul(step)))
                    .collect();
                let (first, further) = (self.widened(first), self.builder.build(&further));
                self.builder.map(Op::Add, &[first, further])
            }
            (true, None) => self.lane_by_lane(&mut |lowering| lowering.expr_value(index))?,
        };
        Ok(self.builder.cast(dtype, value))
    }

    /// The dimension that lies in lanes, how many these are, and how much an index grows from one to the next, if by the
    /// same everywhere.
    fn lane_step(&self, index: &Expr) -> Option<(DimId, u32, i64)> {
        let (dim, lanes) = self.vector?;
        let symbol = self.graph.dim(dim).index;
        let form = affine(index, &[symbol])?;
        let step = form.coefficients.get(&symbol)?.as_const()?;
        Some((dim, lanes, step))
    }

    fn viewed(&mut self, node: NodeId, view: &View, at: &Env) -> Result<Value, LowerError> {
        let inputs = inputs_env(self.graph, node, at)?;
        let (input, inner) = &inputs[0];
        let Some(outside) = view.outside else {
            return self.element(*input, inner);
        };
        let dims = &self.graph.node(node).dims;
        let mut conditions = Vec::new();
        for dim in &self.graph.node(*input).dims {
            let index = index_along(self.graph, *dim, inner)?;
            let size = self.graph.dim(*dim).size.clone();
            self.range_conditions(&index, &size, &mut conditions)?;
        }
        for constraint in &view.constraints {
            let constraint = substitute(self.graph, constraint, dims, at)?;
            let constraint = constraint.simplify(&self.bounds);
            match constraint.as_const() {
                Some(0) => conditions.push(Condition::Never),
                Some(_) => {}
                None => conditions.push(Condition::NotZero(constraint)),
            }
        }
        let (input, inner) = (*input, inner.clone());
        self.where_all_hold(&conditions, outside, input, &inner)
    }

    /// The element that a node reads one step back.
    fn delayed(&mut self, node: NodeId, outside: Scalar, at: &Env) -> Result<Value, LowerError> {
        let Some((of, before, over)) = delayed_env(self.graph, node, at)? else {
            return Ok(self.builder.constant(outside));
        };
        let index = index_along(self.graph, over, &before)?;
        let size = self.graph.dim(over).size.clone();
        let mut conditions = Vec::new();
        self.range_conditions(&index, &size, &mut conditions)?;
        self.where_all_hold(&conditions, outside, of, &before)
    }

    /// The input's element where all conditions hold, else `outside`; lane by lane where they differ between lanes.
    fn where_all_hold(
        &mut self,
        conditions: &[Condition],
        outside: Scalar,
        input: NodeId,
        inner: &Env,
    ) -> Result<Value, LowerError> {
        if conditions
            .iter()
            .any(|condition| matches!(condition, Condition::Never))
        {
            return Ok(self.builder.constant(outside));
        }
        if conditions.is_empty() {
            return self.element(input, inner);
        }
        let moves = self.vector.is_some_and(|(dim, _)| {
            let symbol = self.graph.dim(dim).index;
            let mut conditions = conditions.iter();
            conditions.any(|condition| condition.expr().is_some_and(|e| e.contains(symbol)))
        });
        if moves {
            return self
                .lane_by_lane(&mut |lowering| lowering.guarded(conditions, outside, input, inner));
        }
        self.guarded(conditions, outside, input, inner)
    }

    /// The input's element where all conditions hold, else `outside`.
    fn guarded(
        &mut self,
        conditions: &[Condition],
        outside: Scalar,
        input: NodeId,
        inner: &Env,
    ) -> Result<Value, LowerError> {
        let mut all: Option<Value> = None;
        for condition in conditions {
            let holds = match condition {
                Condition::NotNegative(index) => {
                    let index = self.expr_value(index)?;
                    let zero = self.builder.const_i64(0);
                    self.builder.ge_i64(index, zero)
                }
                Condition::Below(index, size) => {
                    let (index, size) = (self.expr_value(index)?, self.expr_value(size)?);
                    self.builder.lt_i64(index, size)
                }
                Condition::NotZero(expr) => {
                    let value = self.expr_value(expr)?;
                    let zero = self.builder.const_i64(0);
                    self.builder.map(Op::Ne, &[value, zero])
                }
                Condition::Never => self.builder.constant(Scalar::bool(false)),
            };
            all = Some(match all {
                None => holds,
                Some(all) => self.builder.and(all, holds),
            });
        }
        let Some(condition) = all else {
            return self.element(input, inner);
        };
        match self.builder.known(condition) {
            Some(known) if known.is_true() => return self.element(input, inner),
            Some(_) => return Ok(self.builder.constant(outside)),
            None => {}
        }
        self.choose(condition, outside, &mut |lowering| {
            lowering.element(input, inner)
        })
    }

    /// What `inside` computes where a scalar condition holds, else `outside`; `inside` runs only
    /// where it holds.
    pub(crate) fn choose(
        &mut self,
        condition: Value,
        outside: Scalar,
        inside: &mut dyn FnMut(&mut Self) -> Result<Value, LowerError>,
    ) -> Result<Value, LowerError> {
        let lanes = self.vector.map_or(1, |(_, lanes)| lanes);
        let ty = Type::of(outside.dtype(), lanes);
        let slot = self.builder.alloc(Space::Private, ty, 1, "chosen");
        let zero = self.builder.const_i64(0);
        let outside = self.builder.constant(outside);
        let outside = self.widened(outside);
        self.builder.store(slot, zero, outside);
        self.builder.begin_if(condition);
        let value = self.apart(|lowering| inside(lowering));
        if let Ok(value) = value {
            let value = self.widened(value);
            self.builder.store(slot, zero, value);
        }
        self.builder.end_block();
        value?;
        Ok(self.builder.load(slot, zero))
    }

    /// The conditions under which an index is within `0..size`, without those that always hold.
    fn range_conditions(
        &self,
        index: &Expr,
        size: &Expr,
        conditions: &mut Vec<Condition>,
    ) -> Result<(), LowerError> {
        let index = index.simplify(&self.bounds);
        let range = index.range(&self.bounds);
        if range.hi.is_some_and(|hi| hi < 0) {
            conditions.push(Condition::Never);
            return Ok(());
        }
        if range.lo.is_none_or(|lo| lo < 0) {
            conditions.push(Condition::NotNegative(index.clone()));
        }
        if let (Some(lo), Some(size)) = (range.lo, size.as_const())
            && lo >= size
        {
            conditions.push(Condition::Never);
            return Ok(());
        }
        let below = match (range.hi, size.as_const()) {
            (Some(hi), Some(size)) => hi < size,
            _ => {
                let graph_only = index
                    .symbols()
                    .iter()
                    .all(|symbol| self.dynamic_value(*symbol).is_none());
                graph_only && loopwright_graph::stays_inside(self.graph, &index, size, &self.bounds)
            }
        };
        if !below {
            conditions.push(Condition::Below(index, size.clone()));
        }
        Ok(())
    }

    fn gathered(&mut self, node: NodeId, outside: Scalar, at: &Env) -> Result<Value, LowerError> {
        let moves = self.vector.is_some_and(|(dim, _)| {
            let symbol = self.graph.dim(dim).index;
            at.indices().any(|index| index.contains(symbol))
        });
        if moves {
            return self.lane_by_lane(&mut |lowering| lowering.gathered(node, outside, at));
        }
        // The same for every lane: computed once, as scalar code, and apart from what was computed in lanes.
        let vector = self.vector.take();
        let value = self.apart(|lowering| lowering.gathered_once(node, outside, at));
        self.vector = vector;
        value
    }

    fn gathered_once(
        &mut self,
        node: NodeId,
        outside: Scalar,
        at: &Env,
    ) -> Result<Value, LowerError> {
        let NodeOp::Gather { axis, .. } = self.graph.node(node).op else {
            return Ok(self.builder.constant(outside));
        };
        let inputs = inputs_env(self.graph, node, at)?;
        let (table, mut table_at) = inputs[0].clone();
        let (index, index_at) = inputs[1].clone();
        let index = self.element(index, &index_at)?;
        let index = self.builder.cast(DType::I64, index);
        let size = self.graph.dim(axis).size.clone();
        let size = self.expr_value(&size)?;
        let condition = self.in_range(index, size);
        let symbol = self.dynamic_symbol(index);
        table_at.insert(axis, Expr::symbol(symbol));
        self.choose(condition, outside, &mut |lowering| {
            lowering.element(table, &table_at)
        })
    }

    /// Whether `0 <= index < size`.
    pub(crate) fn in_range(&mut self, index: Value, size: Value) -> Value {
        let zero = self.builder.const_i64(0);
        let low = self.builder.ge_i64(index, zero);
        let high = self.builder.lt_i64(index, size);
        self.builder.and(low, high)
    }
}

/// What must hold for a view to have an element.
enum Condition {
    NotNegative(Expr),
    Below(Expr, Expr),
    NotZero(Expr),
    Never,
}

impl Condition {
    fn expr(&self) -> Option<&Expr> {
        match self {
            Condition::NotNegative(expr) | Condition::Below(expr, _) | Condition::NotZero(expr) => {
                Some(expr)
            }
            Condition::Never => None,
        }
    }
}
