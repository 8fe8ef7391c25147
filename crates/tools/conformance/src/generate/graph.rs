//! Random graphs.

use super::Arithmetic;
use super::values::{WHOLE_INPUT, random_scalar};
use crate::rng::Rng;
use loopwright_arena::TiVec;
use loopwright_graph::{DimId, Graph, GraphBuilder, GraphError, NodeId};
use loopwright_ops::{DType, Op, ReduceOp, Scalar, can_bitcast};
use loopwright_symbolic::{Expr, Symbol};

/// How large a graph is, and its arrays.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    /// Elements of the largest node.
    max_elements: i64,
    /// Whether there are size symbols; nothing proves of most large graphs with some that views stay inside.
    has_sizes: bool,
    /// Sizes of dimensions, any of which is likely; those of small ones where there are none.
    extents: &'static [i64],
}

impl Scale {
    /// Small enough for an interpreter.
    pub(super) const SMALL: Scale = Scale {
        max_elements: 240,
        has_sizes: true,
        extents: &[],
    };

    /// As large as arrays of real programs are.
    pub(super) const LARGE: Scale = Scale {
        max_elements: 1 << 26,
        has_sizes: false,
        extents: &[
            0, 1, 2, 3, 5, 7, 8, 16, 31, 33, 48, 64, 100, 128, 255, 256, 513, 768, 1000, 1024,
            2048, 3072, 4096, 50_257,
        ],
    };
}

/// Dimensions of a node.
const MAX_RANK: usize = 4;

/// Integers up to here are exact in `f32`, and so are sums of two of them.
const MAX_WHOLE: f64 = (1 << 22) as f64;

/// Names that mean something somewhere: in the program's text, in a schedule, in C.
const AWKWARD_NAMES: [&str; 12] = [
    "index",
    "for",
    "share",
    "sum",
    "double",
    "if",
    "size",
    "a b",
    "lw_runtime",
    "x'1",
    "größe",
    "0",
];

pub(super) struct Draft<'r> {
    pub(super) rng: &'r mut Rng,
    pub(super) builder: GraphBuilder,
    pub(super) arithmetic: Arithmetic,
    scale: Scale,
    /// What may be read, in order of making.
    pool: Vec<NodeId>,
    /// By dimension: its size in this run.
    extents: TiVec<DimId, i64>,
    /// By node: no element is larger than this, for [`Arithmetic::Whole`].
    bounds: TiVec<NodeId, f64>,
    sizes: Vec<(Symbol, String, i64)>,
    states: Vec<NodeId>,
    names: usize,
}

/// A random graph and values for its sizes.
pub(super) fn random_graph(
    rng: &mut Rng,
    arithmetic: Arithmetic,
) -> Result<(Graph, Vec<(String, i64)>), GraphError> {
    let mut draft = Draft::new(rng, arithmetic, Scale::SMALL);
    draft.declare()?;
    let steps = draft.rng.range(2, 12);
    for _ in 0..steps {
        draft.step()?;
    }
    draft.results()?;
    let sizes = draft.sizes.iter();
    let sizes = sizes
        .map(|(_, name, value)| (name.clone(), *value))
        .collect();
    Ok((draft.builder.finish()?, sizes))
}

/// A random graph of at least so many nodes over large arrays.
pub(super) fn large_graph(rng: &mut Rng, nodes: usize) -> Result<Graph, GraphError> {
    let mut draft = Draft::new(rng, Arithmetic::Strict, Scale::LARGE);
    draft.declare()?;
    while draft.bounds.len() < nodes {
        // What cannot be is left out.
        let _ = draft.step();
    }
    draft.results()?;
    // All of it is needed: what nobody reads is a result.
    let mut read: TiVec<NodeId, _> = vec![false; draft.bounds.len()].into();
    for node in &draft.pool {
        for input in &draft.builder.node(*node).inputs {
            read[*input] = true;
        }
    }
    let unread = draft.pool.iter().filter(|node| !read[**node]);
    for (at, node) in unread.copied().collect::<Vec<_>>().into_iter().enumerate() {
        draft.builder.output(&format!("unread{at}"), node)?;
    }
    draft.builder.finish()
}

impl<'r> Draft<'r> {
    fn new(rng: &'r mut Rng, arithmetic: Arithmetic, scale: Scale) -> Draft<'r> {
        Draft {
            rng,
            builder: GraphBuilder::new(),
            arithmetic,
            scale,
            pool: Vec::new(),
            extents: TiVec::new(),
            bounds: TiVec::new(),
            sizes: Vec::new(),
            states: Vec::new(),
            names: 0,
        }
    }
}

impl Draft<'_> {
    fn declare(&mut self) -> Result<(), GraphError> {
        let sizes = match self.scale.has_sizes {
            true => self.rng.below(3),
            false => 0,
        };
        for _ in 0..sizes {
            let name = self.name("N");
            let value = match self.rng.below(12) {
                0 => 0,
                1 => 1,
                _ => self.rng.range(2, 9),
            };
            let default = self.rng.chance(50).then_some(value);
            let symbol = self.builder.size(&name, default)?;
            self.sizes.push((symbol, name, value));
        }
        for _ in 0..self.rng.range(2, 4) {
            self.fresh_dim()?;
        }
        for _ in 0..self.rng.range(1, 3) {
            self.input()?;
        }
        if self.rng.chance(30) {
            self.declare_states()?;
        }
        Ok(())
    }

    fn declare_states(&mut self) -> Result<(), GraphError> {
        let (dtype, dims) = (self.dtype(), self.some_dims());
        let twins = self.rng.chance(50);
        for _ in 0..self.rng.range(1, 2) {
            let (dtype, dims) = if twins {
                (dtype, dims.clone())
            } else {
                (self.dtype(), self.some_dims())
            };
            let name = self.name("s");
            let state = self.builder.state(&name, dtype, &dims)?;
            self.note(state, WHOLE_INPUT as f64);
            self.states.push(state);
        }
        Ok(())
    }

    fn name(&mut self, stem: &str) -> String {
        self.names += 1;
        format!("{stem}{}", self.names)
    }

    /// Takes a node into the pool.
    pub(super) fn note(&mut self, node: NodeId, bound: f64) {
        self.bounds.resize(usize::from(node) + 1, 1.0);
        self.bounds[node] = bound;
        self.pool.push(node);
    }

    pub(super) fn bound(&self, node: NodeId) -> f64 {
        self.bounds.get(node).copied().unwrap_or(1.0)
    }

    pub(super) fn extent(&self, dim: DimId) -> i64 {
        self.extents[dim]
    }

    pub(super) fn elements(&self, dims: &[DimId]) -> i64 {
        dims.iter().map(|dim| self.extent(*dim)).product()
    }

    pub(super) fn dims(&self, node: NodeId) -> Vec<DimId> {
        self.builder.node(node).dims.to_vec()
    }

    /// Whether a node over these dimensions is small enough.
    pub(super) fn fits(&self, dims: &[DimId]) -> bool {
        // Empty dimensions do not make the others small.
        let elements: i64 = dims.iter().map(|dim| self.extent(*dim).max(1)).product();
        dims.len() <= MAX_RANK && elements <= self.scale.max_elements
    }

    /// A new dimension of this size.
    pub(super) fn new_dim(&mut self, size: Expr, extent: i64) -> Result<DimId, GraphError> {
        let name = self.name("d");
        let dim = self.builder.dim(&name)?;
        self.builder.set_size(dim, size, "the generator");
        self.extents.push(extent);
        Ok(dim)
    }

    /// A new dimension of some size.
    pub(super) fn fresh_dim(&mut self) -> Result<DimId, GraphError> {
        if !self.sizes.is_empty() && self.rng.chance(40) {
            let (symbol, _, value) = self.rng.pick(&self.sizes).clone();
            let more = self.rng.range(0, 2);
            let size = Expr::symbol(symbol).add(&Expr::constant(more))?;
            return self.new_dim(size, value + more);
        }
        if !self.scale.extents.is_empty() {
            let size = *self.rng.pick(self.scale.extents);
            return self.new_dim(Expr::constant(size), size);
        }
        let size = match self.rng.below(25) {
            0 => 0,
            1 | 2 => 1,
            3 => self.rng.range(10, 40),
            _ => self.rng.range(2, 8),
        };
        self.new_dim(Expr::constant(size), size)
    }

    /// A few of the dimensions that exist.
    fn some_dims(&mut self) -> Vec<DimId> {
        let mut all: Vec<DimId> = self.extents.keys().collect();
        self.rng.shuffle(&mut all);
        let count = [0, 1, 1, 2, 2, 2, 3][self.rng.below(7)];
        let mut dims = Vec::new();
        for dim in all {
            dims.push(dim);
            if dims.len() > count || !self.fits(&dims) {
                dims.pop();
            }
        }
        dims
    }

    fn dtype(&mut self) -> DType {
        if self.arithmetic == Arithmetic::Whole {
            return *self
                .rng
                .pick(&[DType::F32, DType::F32, DType::F64, DType::I32]);
        }
        match self.rng.below(3) {
            0 => *self
                .rng
                .pick(&[DType::F32, DType::I32, DType::I64, DType::F64]),
            _ => *self.rng.pick(&DType::ALL),
        }
    }

    fn input(&mut self) -> Result<(), GraphError> {
        let (dtype, dims) = (self.dtype(), self.some_dims());
        let name = if self.rng.chance(6) {
            (*self.rng.pick(&AWKWARD_NAMES)).to_owned()
        } else {
            self.name("x")
        };
        if self.builder.find(&name).is_some() {
            return Ok(());
        }
        let input = self.builder.input(&name, dtype, &dims)?;
        self.note(input, WHOLE_INPUT as f64);
        Ok(())
    }

    /// A node to read, recent ones first.
    pub(super) fn any_node(&mut self) -> NodeId {
        let count = self.pool.len();
        let at = if self.rng.chance(60) {
            count - 1 - self.rng.below(count.min(3))
        } else {
            self.rng.below(count)
        };
        self.pool[at]
    }

    /// A node for which something holds, if one is found.
    pub(super) fn node_where(&mut self, holds: &dyn Fn(&Self, NodeId) -> bool) -> Option<NodeId> {
        for _ in 0..6 {
            let node = self.any_node();
            if holds(self, node) {
                return Some(node);
            }
        }
        let found: Vec<NodeId> = self
            .pool
            .iter()
            .copied()
            .filter(|n| holds(self, *n))
            .collect();
        if found.is_empty() {
            None
        } else {
            Some(*self.rng.pick(&found))
        }
    }

    fn dtype_of(&self, node: NodeId) -> DType {
        self.builder.node(node).dtype
    }

    /// A node of this dtype to stand beside nodes over `dims`.
    fn partner(&mut self, dtype: DType, dims: &[DimId]) -> Result<NodeId, GraphError> {
        let dims = dims.to_vec();
        let fits = |draft: &Self, node: NodeId| {
            let mut joined = dims.clone();
            joined.extend(draft.dims(node).iter().filter(|dim| !dims.contains(dim)));
            draft.fits(&joined)
        };
        if self.rng.chance(75) {
            let same =
                |draft: &Self, node: NodeId| draft.dtype_of(node) == dtype && fits(draft, node);
            if let Some(node) = self.node_where(&same) {
                return Ok(node);
            }
            // Integers stay exact only between the wide floats.
            let castable = |draft: &Self, node: NodeId| {
                let from = draft.dtype_of(node);
                let exact =
                    draft.arithmetic == Arithmetic::Strict || !dtype.is_float() || from.is_float();
                exact && fits(draft, node)
            };
            if let Some(node) = self.node_where(&castable) {
                return Ok(self.builder.cast(node, dtype));
            }
        }
        Ok(self.scalar_constant(dtype))
    }

    fn scalar_constant(&mut self, dtype: DType) -> NodeId {
        let value = random_scalar(self.rng, dtype, self.arithmetic);
        let node = self.builder.constant(value);
        self.bounds.resize(usize::from(node) + 1, 1.0);
        self.bounds[node] = WHOLE_INPUT as f64;
        node
    }

    /// Adds a node, or a few that belong together.
    fn step(&mut self) -> Result<(), GraphError> {
        match self.rng.below(100) {
            0..=33 => self.map(),
            34..=39 => self.cast(),
            40..=43 => self.bitcast(),
            44..=54 => self.reduce(),
            55..=57 => self.arg_reduce(),
            58..=63 => self.scan(),
            64..=81 => self.view(),
            82..=85 => self.gather(),
            86..=88 => self.scatter(),
            89..=91 => self.sort(),
            92..=93 => self.index(),
            94 => self.size_value(),
            95..=96 => self.constant_array(),
            97 => self.random_bits(),
            _ => self.input(),
        }
    }

    fn map(&mut self) -> Result<(), GraphError> {
        let whole = self.arithmetic == Arithmetic::Whole;
        let first = self.any_node();
        let dtype = self.dtype_of(first);
        let fits = |op: &&Op| op.info().class.allows(dtype) && (!whole || keeps_whole(**op, dtype));
        let ops: Vec<Op> = Op::ALL.iter().filter(fits).copied().collect();
        // Ops with several operands are the minority of the table and the majority of programs.
        let mut op = *self.rng.pick(&ops);
        if op.arity() == 1 && self.rng.chance(50) {
            op = *self.rng.pick(&ops);
        }
        let mut operands = vec![first];
        let mut dims = self.dims(first);
        while operands.len() < op.arity() {
            let partner = self.partner(dtype, &dims)?;
            for dim in self.dims(partner) {
                if !dims.contains(&dim) {
                    dims.push(dim);
                }
            }
            operands.push(partner);
        }
        if op == Op::Select {
            operands[0] = self.partner(DType::Bool, &dims)?;
            dims.extend(
                self.dims(operands[0])
                    .iter()
                    .filter(|dim| !dims.contains(dim))
                    .copied()
                    .collect::<Vec<_>>(),
            );
            if self.dtype_of(operands[0]) != DType::Bool || !self.fits(&dims) {
                return Ok(());
            }
        }
        // The sign of a NaN is no value's business.
        if op == Op::CopySign {
            operands[1] = self.without_nan(operands[1])?;
        }
        let bounds: Vec<f64> = operands.iter().map(|node| self.bound(*node)).collect();
        let bound = match op {
            Op::Add | Op::Sub => bounds[0] + bounds[1],
            Op::Mul => bounds[0] * bounds[1],
            Op::MulAdd => bounds[0] * bounds[1] + bounds[2],
            Op::Select => bounds[1].max(bounds[2]),
            _ => bounds.iter().copied().fold(1.0, f64::max),
        };
        if whole && dtype.is_float() && bound > MAX_WHOLE {
            return Ok(());
        }
        let node = self.builder.map(op, &operands)?;
        if self.rng.chance(10) {
            let name = self.name("t");
            self.builder.name(node, &name)?;
        }
        self.note(node, bound);
        Ok(())
    }

    /// A float with a number wherever it is NaN.
    fn without_nan(&mut self, node: NodeId) -> Result<NodeId, GraphError> {
        let nan = self.builder.map(Op::IsNan, &[node])?;
        let one = self.builder.constant(Scalar::one(self.dtype_of(node)));
        self.builder.map(Op::Select, &[nan, one, node])
    }

    fn cast(&mut self) -> Result<(), GraphError> {
        let node = self.any_node();
        let to = match self.arithmetic {
            Arithmetic::Strict | Arithmetic::Rounded { .. } => *self.rng.pick(&DType::ALL),
            Arithmetic::Whole => match self.dtype_of(node) {
                DType::F32 | DType::F64 => *self.rng.pick(&[DType::F32, DType::F64, DType::I32]),
                _ => *self.rng.pick(&[DType::I64, DType::U8, DType::Bool]),
            },
        };
        let cast = self.builder.cast(node, to);
        self.note(cast, self.bound(node));
        Ok(())
    }

    fn bitcast(&mut self) -> Result<(), GraphError> {
        if self.arithmetic == Arithmetic::Whole {
            return Ok(());
        }
        let mut node = self.any_node();
        let from = self.dtype_of(node);
        let targets = DType::ALL.into_iter().filter(|to| can_bitcast(from, *to));
        let targets: Vec<DType> = targets.collect();
        if targets.is_empty() {
            return Ok(());
        }
        if from.is_float() {
            node = self.without_nan(node)?;
        }
        let to = *self.rng.pick(&targets);
        let node = self.builder.bitcast(node, to)?;
        self.note(node, 1.0);
        Ok(())
    }

    /// A reduction that a dtype has, the dtype it runs in, and the bound of its result over so many
    /// elements; `None` where that is not exact.
    fn folding(&mut self, node: NodeId, elements: i64) -> Option<(ReduceOp, Option<DType>, f64)> {
        let dtype = self.dtype_of(node);
        let ops = ReduceOp::ALL.into_iter().filter(|op| op.allows(dtype));
        let ops: Vec<ReduceOp> = ops.collect();
        let op = *self.rng.pick(&ops);
        let whole = self.arithmetic == Arithmetic::Whole;
        let acc = if self.rng.chance(30) && !(whole && dtype.is_float()) {
            let dtypes = DType::ALL.into_iter().filter(|acc| op.allows(*acc));
            // Integers that do not fit a float round, and rounding depends on the order.
            let dtypes: Vec<DType> = dtypes.filter(|acc| !whole || !acc.is_float()).collect();
            Some(*self.rng.pick(&dtypes))
        } else {
            None
        };
        let bound = self.bound(node);
        let result = match op {
            ReduceOp::Sum => bound * elements.max(1) as f64,
            ReduceOp::Prod => bound.powi(elements.max(1) as i32),
            // Nothing is the largest of none.
            ReduceOp::Max | ReduceOp::Min if elements == 0 => f64::INFINITY,
            _ => bound,
        };
        if whole && dtype.is_float() && result > MAX_WHOLE {
            return None;
        }
        Some((op, acc, result))
    }

    fn reduce(&mut self) -> Result<(), GraphError> {
        let Some(node) = self.node_where(&|draft, node| !draft.dims(node).is_empty()) else {
            return Ok(());
        };
        let mut over = self.dims(node);
        self.rng.shuffle(&mut over);
        let count = 1 + self.rng.below(over.len());
        over.truncate(count);
        let Some((op, acc, bound)) = self.folding(node, self.elements(&over)) else {
            return Ok(());
        };
        let node = self.builder.reduce(op, node, &over, acc)?;
        self.note(node, bound);
        Ok(())
    }

    /// A node with a dimension, and one of its dimensions.
    fn along(&mut self) -> Option<(NodeId, DimId)> {
        let node = self.node_where(&|draft, node| !draft.dims(node).is_empty())?;
        let dims = self.dims(node);
        Some((node, *self.rng.pick(&dims)))
    }

    fn arg_reduce(&mut self) -> Result<(), GraphError> {
        if let Some((node, over)) = self.along() {
            let largest = self.rng.chance(50);
            let node = self.builder.arg_reduce(largest, node, over)?;
            self.note(node, 64.0);
        }
        Ok(())
    }

    fn scan(&mut self) -> Result<(), GraphError> {
        let Some((node, over)) = self.along() else {
            return Ok(());
        };
        let Some((op, acc, bound)) = self.folding(node, self.extent(over)) else {
            return Ok(());
        };
        let (exclusive, reverse) = (self.rng.chance(40), self.rng.chance(40));
        // The first element of an exclusive scan is the identity, an infinity for max and min.
        let infinite = exclusive && matches!(op, ReduceOp::Max | ReduceOp::Min);
        if self.arithmetic == Arithmetic::Whole && infinite && self.dtype_of(node).is_float() {
            return Ok(());
        }
        let node = self.builder.scan(op, node, over, acc, exclusive, reverse)?;
        self.note(node, bound);
        Ok(())
    }

    /// An integer node to index with.
    fn indices(&mut self) -> Result<NodeId, GraphError> {
        let int = |draft: &Self, node: NodeId| draft.dtype_of(node).is_int();
        if self.rng.chance(60)
            && let Some(node) = self.node_where(&int)
        {
            return Ok(node);
        }
        let dims = self.some_dims();
        let dtype = *self
            .rng
            .pick(&[DType::I32, DType::I64, DType::U8, DType::I8, DType::U64]);
        let name = self.name("ix");
        let node = self.builder.input(&name, dtype, &dims)?;
        self.note(node, WHOLE_INPUT as f64);
        Ok(node)
    }

    fn gather(&mut self) -> Result<(), GraphError> {
        let Some((table, axis)) = self.along() else {
            return Ok(());
        };
        let index = self.indices()?;
        let mut dims: Vec<DimId> = self.dims(table);
        dims.retain(|dim| *dim != axis);
        for dim in self.dims(index) {
            if !dims.contains(&dim) {
                dims.push(dim);
            }
        }
        if !self.fits(&dims) {
            return Ok(());
        }
        let dtype = self.dtype_of(table);
        let outside = if self.rng.chance(70) {
            Some(random_scalar(self.rng, dtype, self.arithmetic))
        } else {
            None
        };
        let node = self.builder.gather(table, index, axis, outside)?;
        self.note(node, self.bound(table).max(WHOLE_INPUT as f64));
        Ok(())
    }

    fn scatter(&mut self) -> Result<(), GraphError> {
        let Some((base, axis)) = self.along() else {
            return Ok(());
        };
        let dtype = self.dtype_of(base);
        let index = self.indices()?;
        let mut dims = self.dims(index);
        for dim in self.dims(base) {
            if dim != axis && !dims.contains(&dim) {
                dims.push(dim);
            }
        }
        if !self.fits(&dims) {
            return Ok(());
        }
        let updates = self.partner(dtype, &[])?;
        if self.dims(updates).iter().any(|dim| !dims.contains(dim)) {
            return Ok(());
        }
        // The order of the updates' dimensions is the order in which they are combined in.
        self.rng.shuffle(&mut dims);
        let mut updates_over = updates;
        if self.dims(updates) != dims {
            updates_over = self.builder.layout(updates, &dims)?;
        }
        let ops = ReduceOp::ALL.into_iter().filter(|op| op.allows(dtype));
        let ops: Vec<ReduceOp> = ops.collect();
        let combine = if self.rng.chance(30) {
            None
        } else {
            Some(*self.rng.pick(&ops))
        };
        let (count, bound) = (self.elements(&dims).max(1), self.bound(updates));
        let result = match combine {
            Some(ReduceOp::Sum) => self.bound(base) + bound * count as f64,
            Some(ReduceOp::Prod) => self.bound(base) * bound.powi(count as i32),
            _ => self.bound(base).max(bound),
        };
        if self.arithmetic == Arithmetic::Whole && dtype.is_float() && result > MAX_WHOLE {
            return Ok(());
        }
        let node = self
            .builder
            .scatter(base, index, updates_over, axis, combine)?;
        self.note(node, result);
        Ok(())
    }

    fn sort(&mut self) -> Result<(), GraphError> {
        let Some((node, over)) = self.along() else {
            return Ok(());
        };
        let descending = self.rng.chance(50);
        let (sorted, bound) = if self.rng.chance(50) {
            (self.builder.sort(node, over, descending)?, self.bound(node))
        } else {
            (self.builder.arg_sort(node, over, descending)?, 64.0)
        };
        self.note(sorted, bound);
        Ok(())
    }

    fn index(&mut self) -> Result<(), GraphError> {
        let dim = DimId::from(self.rng.below(self.extents.len()));
        let dtypes = DType::ALL.into_iter().filter(|dtype| dtype.is_int());
        let dtypes: Vec<DType> = dtypes.collect();
        let dtype = *self.rng.pick(&dtypes);
        let node = self.builder.index(dim, dtype)?;
        self.note(node, self.scale.max_elements as f64);
        Ok(())
    }

    fn size_value(&mut self) -> Result<(), GraphError> {
        let dim = DimId::from(self.rng.below(self.extents.len()));
        let more = self.rng.range(-2, 3);
        let size = self.builder.size_of(dim).add(&Expr::constant(more))?;
        let node = self.builder.size_value(size)?;
        self.note(node, self.scale.max_elements as f64);
        Ok(())
    }

    fn constant_array(&mut self) -> Result<(), GraphError> {
        let dtype = self.dtype();
        let count = self.rng.range(1, 5);
        let dim = self.new_dim(Expr::constant(count), count)?;
        let values = (0..count)
            .map(|_| random_scalar(self.rng, dtype, self.arithmetic))
            .collect();
        let node = self.builder.constant_array(dtype, &[dim], values)?;
        self.note(node, WHOLE_INPUT as f64);
        Ok(())
    }

    fn random_bits(&mut self) -> Result<(), GraphError> {
        let dim = DimId::from(self.rng.below(self.extents.len()));
        let index = self.builder.index(dim, DType::U64)?;
        let seed = self.scalar_constant(DType::U64);
        let node = self.builder.map(Op::Threefry, &[seed, index])?;
        self.note(node, 1.0);
        Ok(())
    }

    /// Chooses outputs, and new values for states.
    fn results(&mut self) -> Result<(), GraphError> {
        for state in self.states.clone() {
            if self.rng.chance(80) {
                let value = self.new_value(state)?;
                self.builder.update(state, value)?;
            }
        }
        // The last node reaches back furthest.
        let mut outputs = vec![self.pool[self.pool.len() - 1]];
        for _ in 0..self.rng.below(3) {
            let node = self.any_node();
            outputs.push(node);
        }
        for (at, node) in outputs.into_iter().enumerate() {
            let name = if self.rng.chance(4) {
                format!("{}_{at}", self.rng.pick(&AWKWARD_NAMES))
            } else {
                format!("out{at}")
            };
            self.builder.output(&name, node)?;
        }
        Ok(())
    }

    /// A new value for a state: of its dtype and over its dimensions.
    fn new_value(&mut self, state: NodeId) -> Result<NodeId, GraphError> {
        let dims = self.dims(state);
        let dtype = self.dtype_of(state);
        let fits = |draft: &Self, node: NodeId| {
            draft.dtype_of(node) == dtype && draft.dims(node).iter().all(|dim| dims.contains(dim))
        };
        let node = match self.rng.below(3) {
            // Another state, a swap if it is twice so.
            0 => {
                let others: Vec<NodeId> = self
                    .states
                    .iter()
                    .copied()
                    .filter(|s| *s != state && fits(self, *s))
                    .collect();
                others.first().copied().unwrap_or(state)
            }
            // The state itself, moved by a few elements.
            1 if !dims.is_empty() => {
                let by = self.rng.range(-2, 2);
                self.shifted(state, by)?
            }
            _ => self.node_where(&fits).unwrap_or(state),
        };
        if self.dims(node) == dims {
            return Ok(node);
        }
        self.builder.layout(node, &dims)
    }
}

/// Whether an op takes integers to integers, exactly, whatever the rounding.
fn keeps_whole(op: Op, dtype: DType) -> bool {
    if !dtype.is_float() {
        return true;
    }
    matches!(
        op,
        Op::Copy
            | Op::Neg
            | Op::Abs
            | Op::Sign
            | Op::Floor
            | Op::Ceil
            | Op::Round
            | Op::Trunc
            | Op::IsNan
            | Op::IsInf
            | Op::IsFinite
            | Op::Add
            | Op::Sub
            | Op::Mul
            | Op::Min
            | Op::Max
            | Op::Eq
            | Op::Ne
            | Op::Lt
            | Op::Le
            | Op::Gt
            | Op::Ge
            | Op::Select
            | Op::MulAdd
    )
}
