//! What a step reads, and where.

use crate::schedule::{is_given, loop_dims};
use loopwright_graph::{DimId, Graph, NodeId, NodeOp, SymbolInfo};
use loopwright_symbolic::{Error, Expr, Range, Symbol, affine, differentiate};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// One read of memory by a step.
#[derive(Clone, PartialEq, Debug)]
pub struct Access {
    /// What is read: an input, a state or another step's result.
    pub node: NodeId,
    /// For each dimension of what is read, the index, over the index symbols of the step's loops;
    /// `None` where it depends on data.
    pub index: SmallVec<[Option<Expr>; 4]>,
    /// Whether the read happens only where some view's index is in range.
    pub guarded: bool,
    /// The dimension along which it is read one step back (see [`NodeOp::Previous`]): what is read may be computed
    /// later in the same iteration.
    pub delayed: Option<DimId>,
}

/// How an access moves when one loop advances.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stride {
    /// It stays.
    Zero,
    /// It moves to the next element.
    One,
    /// It moves otherwise.
    Other,
}

impl Access {
    /// How the access moves with a dimension's index in a row-major array.
    pub fn stride(&self, symbol: Symbol) -> Stride {
        self.stride_with_last(symbol, self.index.len().wrapping_sub(1))
    }

    /// The same in an array whose elements are neighbours along the dimension with the number `last`.
    pub fn stride_with_last(&self, symbol: Symbol, last: usize) -> Stride {
        let mut stride = Stride::Zero;
        for (at, index) in self.index.iter().enumerate() {
            let Some(index) = index else {
                return Stride::Other;
            };
            if !index.contains(symbol) {
                continue;
            }
            let step = affine(index, &[symbol])
                .and_then(|form| form.coefficients.get(&symbol)?.as_const());
            if at != last || step != Some(1) {
                return Stride::Other;
            }
            stride = Stride::One;
        }
        stride
    }

    /// Whether the element read has, along `dim`, the index of the loop over `dim`.
    pub fn is_identity(&self, graph: &Graph, dim: DimId) -> bool {
        let Some(at) = graph.node(self.node).dims.iter().position(|d| *d == dim) else {
            return false;
        };
        self.index[at].as_ref().and_then(Expr::as_symbol) == Some(graph.dim(dim).index)
    }

    /// Whether every index is that of the loop over the same dimension.
    pub fn is_fully_identity(&self, graph: &Graph) -> bool {
        let dims = &graph.node(self.node).dims;
        dims.iter().all(|dim| self.is_identity(graph, *dim))
    }

    /// The flat index, in elements of a row-major array, over index and size symbols; `None` where
    /// it depends on data.
    pub fn flat(&self, graph: &Graph) -> Result<Option<Expr>, Error> {
        let mut flat = Expr::constant(0);
        for (index, dim) in self.index.iter().zip(&graph.node(self.node).dims) {
            let Some(index) = index else {
                return Ok(None);
            };
            flat = flat.mul(&graph.dim(*dim).size)?.add(index)?;
        }
        Ok(Some(flat))
    }

    /// Elements that the access moves by when a symbol advances by one; not affine is an error.
    pub fn step(&self, graph: &Graph, symbol: Symbol) -> Result<Option<Expr>, Error> {
        let flat = self.flat(graph)?;
        flat.map(|flat| differentiate(&flat, symbol)).transpose()
    }

    /// The element accessed where all index symbols are 0.
    pub fn intercept(&self, graph: &Graph) -> Result<Option<Expr>, Error> {
        let origin = |symbol: Symbol| match graph.symbol(symbol) {
            SymbolInfo::Index(_) => Some(Expr::constant(0)),
            SymbolInfo::Size { .. } | SymbolInfo::Static { .. } => None,
        };
        let flat = self.flat(graph)?;
        flat.map(|flat| flat.substitute(&origin)).transpose()
    }

    /// The smallest and largest index along each dimension, as far as known.
    pub fn ranges(&self, graph: &Graph) -> Vec<Range> {
        let bounds = graph.bounds();
        let indices = self.index.iter();
        indices
            .map(|index| {
                index
                    .as_ref()
                    .map_or(Range::UNBOUNDED, |index| index.range(&bounds))
            })
            .collect()
    }
}

/// The index of each dimension of an array, in terms of a step's loops. A list: an array has so few
/// dimensions that searching it is quicker than hashing.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Env {
    entries: SmallVec<[(DimId, Expr); 6]>,
}

impl Env {
    /// The index along a dimension.
    pub fn get(&self, dim: &DimId) -> Option<&Expr> {
        let entry = self.entries.iter().find(|(found, _)| found == dim);
        entry.map(|(_, index)| index)
    }

    /// Sets the index along a dimension.
    pub fn insert(&mut self, dim: DimId, index: Expr) {
        match self.entries.iter_mut().find(|(found, _)| *found == dim) {
            Some(entry) => entry.1 = index,
            None => self.entries.push((dim, index)),
        }
    }

    /// All indices.
    pub fn indices(&self) -> impl Iterator<Item = &Expr> {
        self.entries.iter().map(|(_, index)| index)
    }
}

impl FromIterator<(DimId, Expr)> for Env {
    fn from_iter<I: IntoIterator<Item = (DimId, Expr)>>(entries: I) -> Env {
        let mut env = Env::default();
        for (dim, index) in entries {
            env.insert(dim, index);
        }
        env
    }
}

/// All reads of a step, each place once. `scheduled` says which nodes are steps of their own.
pub fn accesses(
    graph: &Graph,
    step: NodeId,
    scheduled: &dyn Fn(NodeId) -> bool,
) -> Result<Vec<Access>, Error> {
    let mut found = Vec::new();
    walk(graph, step, scheduled, &mut |visit| {
        let (node, env, guarded, delayed) = match visit {
            Visit::Read(node, env, guarded) => (node, env, guarded, None),
            Visit::Delayed(node, env, over) => (node, env, true, Some(over)),
            Visit::Inline(_) => return,
        };
        let dims = graph.node(node).dims.iter();
        found.push(Access {
            node,
            index: dims.map(|dim| env.get(dim).cloned()).collect(),
            guarded,
            delayed,
        });
    })?;
    Ok(found)
}

/// Visits what a step computes inline and what it reads.
pub fn walk(
    graph: &Graph,
    step: NodeId,
    scheduled: &dyn Fn(NodeId) -> bool,
    visit: &mut dyn FnMut(Visit<'_>),
) -> Result<(), Error> {
    let mut env = Env::default();
    let parts = graph.node(step);
    for dim in parts.dims.iter().chain(loop_dims(graph, step).iter()) {
        env.insert(*dim, Expr::symbol(graph.dim(*dim).index));
    }
    if let NodeOp::Scan {
        over,
        reverse: true,
        ..
    } = parts.op
    {
        // The loop counts up; the elements are taken from the last to the first.
        let last = graph.dim(over).size.sub(&Expr::constant(1))?;
        let index = last.sub(&Expr::symbol(graph.dim(over).index))?;
        env.insert(over, index);
    }
    if let NodeOp::Scatter { .. } = parts.op {
        // The base is copied as a whole; index and updates run over the updates' dimensions.
        for input in &parts.inputs[1..] {
            for dim in &graph.node(*input).dims {
                env.insert(*dim, Expr::symbol(graph.dim(*dim).index));
            }
        }
    }
    let mut walk = Walk {
        graph,
        scheduled,
        seen: FxHashMap::default(),
        visit,
    };
    walk.delayed(step, &env)?;
    for (input, inner) in inputs_env(graph, step, &env)? {
        walk.node(input, &inner, false)?;
    }
    Ok(())
}

/// A walk over what a step computes inline, down to what it reads from memory.
struct Walk<'a> {
    graph: &'a Graph,
    scheduled: &'a dyn Fn(NodeId) -> bool,
    /// Where each node was visited: a node that several others read at the same place is visited once,
    /// or a chain of `x + x` would double at each step.
    seen: FxHashMap<NodeId, Vec<(Env, bool)>>,
    visit: &'a mut dyn FnMut(Visit<'_>),
}

/// What a walk comes by.
pub enum Visit<'a> {
    /// Memory that is read, where, and whether only under a condition.
    Read(NodeId, &'a Env, bool),
    /// Memory that is read one step back along a dimension, and where.
    Delayed(NodeId, &'a Env, DimId),
    /// A node that is computed here.
    Inline(NodeId),
}

impl Walk<'_> {
    /// Visits what a node reads one step back, if it does. That is always in memory.
    fn delayed(&mut self, node: NodeId, env: &Env) -> Result<(), Error> {
        if let Some((of, before, over)) = delayed_env(self.graph, node, env)? {
            (self.visit)(Visit::Delayed(of, &before, over));
        }
        Ok(())
    }

    fn node(&mut self, node: NodeId, env: &Env, guarded: bool) -> Result<(), Error> {
        let seen = self.seen.entry(node).or_default();
        if seen
            .iter()
            .any(|(at, under)| at == env && *under == guarded)
        {
            return Ok(());
        }
        seen.push((env.clone(), guarded));
        let parts = self.graph.node(node);
        if is_given(self.graph, node) || (self.scheduled)(node) {
            (self.visit)(Visit::Read(node, env, guarded));
            return Ok(());
        }
        (self.visit)(Visit::Inline(node));
        self.delayed(node, env)?;
        let guarded = guarded || matches!(&parts.op, NodeOp::View(view) if view.outside.is_some());
        for (input, inner) in inputs_env(self.graph, node, env)? {
            self.node(input, &inner, guarded)?;
        }
        Ok(())
    }
}

/// What a node reads one step back, with the indices at which it does for one element, and the dimension.
pub fn delayed_env(
    graph: &Graph,
    node: NodeId,
    env: &Env,
) -> Result<Option<(NodeId, Env, DimId)>, Error> {
    let NodeOp::Previous { of, over, .. } = graph.node(node).op else {
        return Ok(None);
    };
    let mut before = Env::default();
    for dim in &graph.node(of).dims {
        let Some(index) = env.get(dim) else { continue };
        let index = match *dim == over {
            true => index.sub(&Expr::constant(1))?,
            false => index.clone(),
        };
        before.insert(*dim, index);
    }
    Ok(Some((of, before, over)))
}

/// The inputs of a node, each with the indices at which it is read for one element of the node.
/// A gather's table has no entry for its axis, and what a view makes of such an index has none either.
pub fn inputs_env(
    graph: &Graph,
    node: NodeId,
    env: &Env,
) -> Result<SmallVec<[(NodeId, Env); 3]>, Error> {
    let parts = graph.node(node);
    let mut inputs = SmallVec::new();
    for (at, input) in parts.inputs.iter().enumerate() {
        let input_dims = &graph.node(*input).dims;
        let mut inner = Env::default();
        match &parts.op {
            NodeOp::View(view) => {
                // An index that depends on data further out does so further in.
                let known = |expr: &Expr| {
                    let mut dims = parts.dims.iter();
                    dims.all(|dim| env.get(dim).is_some() || !expr.contains(graph.dim(*dim).index))
                };
                for (dim, expr) in input_dims.iter().zip(&view.map) {
                    if known(expr) {
                        inner.insert(*dim, substitute(graph, expr, &parts.dims, env)?);
                    }
                }
            }
            NodeOp::Gather { axis, .. } if at == 0 => {
                for dim in input_dims {
                    if dim != axis
                        && let Some(index) = env.get(dim)
                    {
                        inner.insert(*dim, index.clone());
                    }
                }
            }
            _ => {
                for dim in input_dims {
                    if let Some(index) = env.get(dim) {
                        inner.insert(*dim, index.clone());
                    }
                }
            }
        }
        inputs.push((*input, inner));
    }
    Ok(inputs)
}

/// An expression over the index symbols of `dims`, with what `env` says they are put in.
pub fn substitute(graph: &Graph, expr: &Expr, dims: &[DimId], env: &Env) -> Result<Expr, Error> {
    expr.substitute(&|symbol| {
        let dim = dims.iter().find(|dim| graph.dim(**dim).index == symbol)?;
        env.get(dim).cloned()
    })
}
