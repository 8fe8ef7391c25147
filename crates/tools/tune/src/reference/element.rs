//! One element of a node, computed from those that it needs and no others.

use super::range::{Cell, Range, apply, rounding, smallest, spread};
use crate::error::TuneError;
use loopwright_arena::TiVec;
use loopwright_graph::{Array, Binding, DimId, Graph, NodeId, NodeOp, View};
use loopwright_ops::{
    DType, Op, ReduceOp, Scalar, argmax_prefers, argmin_prefers, bitcast, cast, total_less,
};
use loopwright_symbolic::{Expr, Symbol};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::cmp::Ordering;
use std::time::Instant;

type Indices = SmallVec<[i64; 6]>;

/// Computes elements of a graph on demand.
pub(super) struct Elements<'a> {
    pub(super) graph: &'a Graph,
    pub(super) binding: &'a Binding,
    inputs: TiVec<NodeId, Option<&'a Array>>,
    /// Whether every rounding is where the program has it.
    strict: bool,
    /// Nodes whose elements are kept: those that fold, and those that several read.
    kept: TiVec<NodeId, bool>,
    known: FxHashMap<(NodeId, usize), Cell>,
    deadline: Instant,
    computed: u64,
}

impl<'a> Elements<'a> {
    pub(super) fn new(
        graph: &'a Graph,
        binding: &'a Binding,
        inputs: &'a [(NodeId, Array)],
        strict: bool,
        deadline: Instant,
    ) -> Elements<'a> {
        let mut given: TiVec<NodeId, _> = vec![None; graph.node_ids().count()].into();
        for (node, array) in inputs {
            given[*node] = Some(array);
        }
        let consumers = graph.consumers();
        let delayed: FxHashSet<NodeId> = graph.delays().map(|delay| delay.of).collect();
        let kept = graph.node_ids().map(|node| {
            let folds = matches!(
                graph.node(node).op,
                NodeOp::Reduce { .. }
                    | NodeOp::ArgReduce { .. }
                    | NodeOp::Scan { .. }
                    | NodeOp::Scatter { .. }
                    | NodeOp::Sort { .. }
                    | NodeOp::ArgSort { .. }
            );
            folds || consumers[node].len() > 1 || delayed.contains(&node)
        });
        Elements {
            graph,
            binding,
            inputs: given,
            strict,
            kept: kept.collect(),
            known: FxHashMap::default(),
            deadline,
            computed: 0,
        }
    }

    fn flat(&self, dims: &[DimId], at: &[i64]) -> usize {
        let sizes = dims.iter().map(|dim| self.binding.size(*dim));
        let flat = sizes.zip(at).fold(0, |flat, (size, at)| flat * size + at);
        flat as usize
    }

    /// The indices of an element of a row-major array.
    pub(super) fn unflat(&self, dims: &[DimId], mut flat: usize) -> Indices {
        let mut at: Indices = dims.iter().map(|_| 0).collect();
        for (place, dim) in at.iter_mut().zip(dims).rev() {
            let size = self.binding.size(*dim).max(1) as usize;
            *place = (flat % size) as i64;
            flat /= size;
        }
        at
    }

    pub(super) fn element(&mut self, node: NodeId, at: &[i64]) -> Result<Cell, TuneError> {
        let dims = &self.graph.node(node).dims;
        let flat = self.flat(dims, at);
        if let Some(array) = self.inputs[node] {
            return Ok(Cell::exact(array.get_flat(flat)));
        }
        if !self.kept[node] {
            return self.compute(node, at);
        }
        if let Some(cell) = self.known.get(&(node, flat)) {
            return Ok(*cell);
        }
        let cell = self.compute(node, at)?;
        self.known.insert((node, flat), cell);
        Ok(cell)
    }

    /// The element of `input` for the element of `node` at `at`, with one more index along `over`.
    fn operand(
        &mut self,
        node: NodeId,
        at: &[i64],
        input: NodeId,
        over: &[(DimId, i64)],
    ) -> Result<Cell, TuneError> {
        let own = &self.graph.node(node).dims;
        let index = |dim: &DimId| {
            let folded = over.iter().find(|(other, _)| other == dim);
            let position = || own.iter().position(|own| own == dim).map(|place| at[place]);
            folded.map(|(_, at)| *at).or_else(position).unwrap_or(0)
        };
        let inner: Indices = self.graph.node(input).dims.iter().map(index).collect();
        self.element(input, &inner)
    }

    fn compute(&mut self, node: NodeId, at: &[i64]) -> Result<Cell, TuneError> {
        self.computed += 1;
        if self.computed.is_multiple_of(1024) && Instant::now() > self.deadline {
            return Err(TuneError::TooLarge);
        }
        let graph = self.graph;
        let parts = graph.node(node);
        let failed = |error: loopwright_ops::OpError| TuneError::Reference(error.to_string());
        match &parts.op {
            NodeOp::Input | NodeOp::State => Err(TuneError::Reference(format!(
                "no value is given for `{}`",
                graph.node_name(node)
            ))),
            NodeOp::Constant(values) => Ok(Cell::exact(values[self.flat(&parts.dims, at)])),
            NodeOp::Index(_) => Ok(Cell::exact(Scalar::from_i64(parts.dtype, at[0]))),
            NodeOp::Size(size) => Ok(Cell::exact(Scalar::i64(self.number(node, at, size)?))),
            NodeOp::Map(op) => {
                let mut operands: SmallVec<[Cell; 3]> = SmallVec::new();
                for input in &parts.inputs {
                    operands.push(self.operand(node, at, *input, &[])?);
                }
                // A product that is added up may be rounded together with the sum.
                let free = !self.strict
                    && parts.dtype.is_float()
                    && matches!(op, Op::Mul | Op::MulAdd | Op::Add | Op::Sub);
                apply(*op, &operands, parts.dtype, free).map_err(failed)
            }
            NodeOp::Cast => {
                let operand = self.operand(node, at, parts.inputs[0], &[])?;
                self.cast(operand, parts.dtype)
            }
            NodeOp::Bitcast => {
                let operand = self.operand(node, at, parts.inputs[0], &[])?;
                let value = bitcast(operand.value, parts.dtype).map_err(failed)?;
                Ok(Cell {
                    value,
                    range: if operand.is_exact() {
                        Range::Exact
                    } else {
                        Range::Anything
                    },
                })
            }
            NodeOp::Reduce { op, over, acc } => {
                let sizes: Vec<i64> = over.iter().map(|dim| self.binding.size(*dim)).collect();
                let count: i64 = sizes.iter().product();
                let mut fold = Fold::new(*op, *acc, self.strict);
                for flat in 0..count {
                    let inner = self.unflat(over, flat as usize);
                    let inner: SmallVec<[(DimId, i64); 4]> =
                        over.iter().copied().zip(inner).collect();
                    let operand = self.operand(node, at, parts.inputs[0], &inner)?;
                    let operand = self.cast(operand, *acc)?;
                    fold.take(operand)?;
                }
                self.cast(fold.finish(), parts.dtype)
            }
            NodeOp::Scan {
                op,
                over,
                acc,
                exclusive,
                reverse,
            } => {
                let place = parts.dims.iter().position(|dim| dim == over);
                let here = place.map_or(0, |place| at[place]);
                let last = self.binding.size(*over) - 1;
                let count = if *reverse { last - here } else { here } + i64::from(!exclusive);
                let mut fold = Fold::new(*op, *acc, self.strict);
                for round in 0..count {
                    let index = if *reverse { last - round } else { round };
                    let operand = self.operand(node, at, parts.inputs[0], &[(*over, index)])?;
                    let operand = self.cast(operand, *acc)?;
                    fold.take(operand)?;
                }
                self.cast(fold.finish(), parts.dtype)
            }
            NodeOp::ArgReduce { largest, over } => {
                let row = self.row(node, at, parts.inputs[0], *over)?;
                let prefers = if *largest {
                    argmax_prefers
                } else {
                    argmin_prefers
                };
                let mut best = 0;
                for (position, cell) in row.iter().enumerate() {
                    if prefers(cell.value, row[best].value) {
                        best = position;
                    }
                }
                Ok(position_in(&row, best as i64))
            }
            NodeOp::Sort { over, descending } => {
                let row = self.row(node, at, parts.inputs[0], *over)?;
                let place = parts.dims.iter().position(|dim| dim == over);
                let here = place.map_or(0, |place| at[place]) as usize;
                let value = row[sorted(&row, *descending)[here]].value;
                if row.iter().all(Cell::is_exact) {
                    return Ok(Cell::exact(value));
                }
                let ends: Option<Vec<(f64, f64)>> = row.iter().map(Cell::ends).collect();
                let Some(ends) = ends else {
                    return Ok(Cell {
                        value,
                        range: Range::Anything,
                    });
                };
                let nth = |end: &dyn Fn(&(f64, f64)) -> f64| {
                    let mut ends: Vec<f64> = ends.iter().map(end).collect();
                    ends.sort_by(f64::total_cmp);
                    let from = if *descending {
                        ends.len() - 1 - here
                    } else {
                        here
                    };
                    ends[from]
                };
                Ok(Cell::within(value, nth(&|end| end.0), nth(&|end| end.1)))
            }
            NodeOp::ArgSort { over, descending } => {
                let row = self.row(node, at, parts.inputs[0], *over)?;
                let place = parts.dims.iter().position(|dim| dim == over);
                let here = place.map_or(0, |place| at[place]) as usize;
                Ok(position_in(&row, sorted(&row, *descending)[here] as i64))
            }
            NodeOp::Previous { of, over, outside } => {
                self.delayed(node, at, (*of, *over), *outside)
            }
            NodeOp::View(view) => self.viewed(node, view, at),
            NodeOp::Gather { axis, outside } => {
                let index = self.operand(node, at, parts.inputs[1], &[])?;
                if !index.is_exact() {
                    return Ok(Cell {
                        value: *outside,
                        range: Range::Anything,
                    });
                }
                let size = self.binding.size(*axis);
                match index
                    .value
                    .as_i64()
                    .filter(|index| (0..size).contains(index))
                {
                    None => Ok(Cell::exact(*outside)),
                    Some(index) => self.operand(node, at, parts.inputs[0], &[(*axis, index)]),
                }
            }
            NodeOp::Scatter { axis, combine } => self.scattered(node, at, *axis, *combine),
        }
    }

    fn cast(&self, cell: Cell, to: DType) -> Result<Cell, TuneError> {
        if cell.value.dtype() == to {
            return Ok(cell);
        }
        let value = cast(cell.value, to);
        match cell.range {
            Range::Exact => Ok(Cell::exact(value)),
            Range::Anything => Ok(Cell {
                value,
                range: Range::Anything,
            }),
            Range::Within(..) => spread(value, to, &[cell], |values| {
                Ok::<_, TuneError>(cast(values[0], to))
            }),
        }
    }

    fn row(
        &mut self,
        node: NodeId,
        at: &[i64],
        input: NodeId,
        over: DimId,
    ) -> Result<Vec<Cell>, TuneError> {
        let size = self.binding.size(over);
        let elements = (0..size).map(|index| self.operand(node, at, input, &[(over, index)]));
        elements.collect()
    }

    /// The element one step back. All that come before it are computed first, from the first one on: asked for from
    /// the end, each would ask for the one before it, as deep as there are steps.
    fn delayed(
        &mut self,
        node: NodeId,
        at: &[i64],
        (of, over): (NodeId, DimId),
        outside: Scalar,
    ) -> Result<Cell, TuneError> {
        let graph = self.graph;
        let dims = &graph.node(node).dims;
        let place = dims.iter().position(|dim| *dim == over).unwrap_or(0);
        if at[place] == 0 {
            return Ok(Cell::exact(outside));
        }
        let mut before = Indices::from_slice(at);
        before[place] -= 1;
        if self.known.contains_key(&(of, self.flat(dims, &before))) {
            return self.element(of, &before);
        }
        let sizes = dims.iter().map(|dim| self.binding.size(*dim) as usize);
        let elements: usize = sizes.product();
        let rest = elements / (self.binding.size(over).max(1) as usize);
        let others: Vec<DimId> = dims.iter().copied().filter(|dim| *dim != over).collect();
        for step in 0..at[place] {
            for flat in 0..rest {
                let mut inner = self.unflat(&others, flat);
                inner.insert(place, step);
                self.element(of, &inner)?;
            }
        }
        self.element(of, &before)
    }

    fn viewed(&mut self, node: NodeId, view: &View, at: &[i64]) -> Result<Cell, TuneError> {
        let input = self.graph.node(node).inputs[0];
        let outside = || {
            let none = || TuneError::Reference("a view leaves its input".to_owned());
            view.outside.map(Cell::exact).ok_or_else(none)
        };
        for constraint in &view.constraints {
            if self.number(node, at, constraint)? == 0 {
                return outside();
            }
        }
        let mut inner = Indices::new();
        for (dim, index) in self.graph.node(input).dims.iter().zip(&view.map) {
            let index = self.number(node, at, index)?;
            if !(0..self.binding.size(*dim)).contains(&index) {
                return outside();
            }
            inner.push(index);
        }
        self.element(input, &inner)
    }

    fn number(&self, node: NodeId, at: &[i64], expr: &Expr) -> Result<i64, TuneError> {
        let dims = &self.graph.node(node).dims;
        let value = |symbol: Symbol| {
            let own = dims
                .iter()
                .position(|dim| self.graph.dim(*dim).index == symbol);
            Some(own.map_or_else(|| self.binding.value(symbol), |own| at[own]))
        };
        expr.evaluate(&value).map_err(|error| {
            let names = |symbol| self.graph.symbol_name(symbol);
            TuneError::Reference(error.display(&names).to_string())
        })
    }

    /// The base's element with every update that comes to it.
    fn scattered(
        &mut self,
        node: NodeId,
        at: &[i64],
        axis: DimId,
        combine: Option<ReduceOp>,
    ) -> Result<Cell, TuneError> {
        let graph = self.graph;
        let parts = graph.node(node);
        let [base, index, updates] = [0, 1, 2].map(|at| parts.inputs[at]);
        let mut cell = self.operand(node, at, base, &[])?;
        let dims = &graph.node(updates).dims;
        let place = parts.dims.iter().position(|dim| *dim == axis);
        let wanted = place.map_or(0, |place| at[place]);
        let count = self.binding.elements(graph, updates);
        let mut fold = combine.map(|op| Fold::new(op, parts.dtype, self.strict));
        if let Some(fold) = &mut fold {
            fold.take(cell)?;
        }
        for flat in 0..count {
            let from = self.unflat(dims, flat as usize);
            let same = dims.iter().zip(&from).all(|(dim, from)| {
                let own = parts.dims.iter().position(|own| own == dim && *dim != axis);
                own.is_none_or(|own| at[own] == *from)
            });
            if !same {
                continue;
            }
            let over: SmallVec<[(DimId, i64); 4]> =
                dims.iter().copied().zip(from.iter().copied()).collect();
            let to = self.operand(updates, &from, index, &over)?;
            if !to.is_exact() {
                return Ok(Cell {
                    value: cell.value,
                    range: Range::Anything,
                });
            }
            if to.value.as_i64() != Some(wanted) {
                continue;
            }
            let update = self.element(updates, &from)?;
            match &mut fold {
                Some(fold) => fold.take(update)?,
                None => cell = update,
            }
        }
        Ok(fold.map_or(cell, Fold::finish))
    }
}

/// An index whose meaning hangs on the order of a row.
fn position_in(row: &[Cell], position: i64) -> Cell {
    let exact = row.iter().all(Cell::is_exact);
    Cell {
        value: Scalar::i64(position),
        range: if exact { Range::Exact } else { Range::Anything },
    }
}

fn sorted(row: &[Cell], descending: bool) -> Vec<usize> {
    let order = |a: Scalar, b: Scalar| match (total_less(a, b), total_less(b, a)) {
        (true, _) => Ordering::Less,
        (_, true) => Ordering::Greater,
        _ => Ordering::Equal,
    };
    let mut places: Vec<usize> = (0..row.len()).collect();
    places.sort_by(|a, b| {
        let (a, b) = (row[*a].value, row[*b].value);
        if descending { order(b, a) } else { order(a, b) }
    });
    places
}

/// A running value in the program's order, and what other orders could give.
struct Fold {
    op: ReduceOp,
    acc: DType,
    strict: bool,
    value: Scalar,
    low: f64,
    high: f64,
    magnitude: f64,
    count: f64,
    exact: bool,
    anything: bool,
}

impl Fold {
    fn new(op: ReduceOp, acc: DType, strict: bool) -> Fold {
        let value = op.identity(acc);
        Fold {
            op,
            acc,
            strict,
            value,
            low: value.to_f64(),
            high: value.to_f64(),
            magnitude: 0.0,
            count: 0.0,
            exact: true,
            anything: false,
        }
    }

    fn take(&mut self, cell: Cell) -> Result<(), TuneError> {
        let combine = |a: Scalar, b: Scalar| {
            loopwright_ops::evaluate(self.op.combine(), &[a, b])
                .map_err(|error| TuneError::Reference(error.to_string()))
        };
        self.value = combine(self.value, cell.value)?;
        self.exact &= cell.is_exact();
        self.count += 1.0;
        let Some((low, high)) = cell.ends() else {
            self.anything = true;
            return Ok(());
        };
        match self.op {
            ReduceOp::Sum => {
                self.low += low;
                self.high += high;
                self.magnitude += low.abs().max(high.abs());
            }
            // How far the factors are off, relative to them.
            ReduceOp::Prod => {
                let size = low.abs().min(high.abs());
                if high > low {
                    self.magnitude += (high - low) / size;
                }
            }
            ReduceOp::Max => {
                self.low = self.low.max(low);
                self.high = self.high.max(high);
            }
            ReduceOp::Min => {
                self.low = self.low.min(low);
                self.high = self.high.min(high);
            }
            ReduceOp::Any => {
                self.low = self.low.max(low);
                self.high = self.high.max(high);
            }
            ReduceOp::All => {
                self.low = self.low.min(low);
                self.high = self.high.min(high);
            }
        }
        Ok(())
    }

    fn finish(self) -> Cell {
        let value = self.value;
        let rounds = matches!(self.op, ReduceOp::Sum | ReduceOp::Prod)
            && self.acc.is_float()
            && !self.strict
            && self.count > 1.0;
        if self.anything {
            return Cell {
                value,
                range: Range::Anything,
            };
        }
        if self.exact && !rounds {
            return Cell::exact(value);
        }
        if !self.acc.is_float() && self.acc != DType::Bool {
            return Cell {
                value,
                range: Range::Anything,
            };
        }
        // Roundings of a sum are as often up as down: they grow with the root of how many there are.
        let roundings = (4.0 + 4.0 * self.count.sqrt()) * rounding(self.acc);
        let at = value.to_f64();
        match self.op {
            ReduceOp::Sum => {
                let margin = roundings * self.magnitude + smallest(self.acc);
                Cell::within(
                    value,
                    (self.low - margin).min(at),
                    (self.high + margin).max(at),
                )
            }
            ReduceOp::Prod => {
                let margin = (roundings + self.magnitude) * at.abs() + smallest(self.acc);
                Cell::within(value, at - margin, at + margin)
            }
            _ => Cell::within(value, self.low, self.high),
        }
    }
}
