//! The graph: nodes over named dimensions.

use crate::statics::static_bounds;
use loopwright_arena::{TiSlice, TiVec};
use loopwright_ops::{DType, Op, ReduceOp, Scalar};
use loopwright_symbolic::{Bounds, Expr, Range, Symbol};
use smallvec::SmallVec;
use std::sync::Arc;

loopwright_arena::handle! {
    /// A node: an index into the graph's nodes.
    pub struct NodeId;

    /// A named dimension: an index into the graph's dimensions.
    pub struct DimId;
}

/// What a symbol of the graph stands for. Symbols are numbered across all kinds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SymbolInfo {
    /// A size that is known when the program runs.
    Size {
        /// Its name.
        name: String,
        /// The value used where none is given.
        default: Option<i64>,
    },
    /// An integer that is chosen when a run is scheduled, when memory is laid out already.
    Static {
        /// Its name.
        name: String,
        /// Its smallest value, over size symbols.
        lo: Expr,
        /// The end of its range, which is no value any more, over size symbols.
        hi: Expr,
        /// The value used where none is given.
        default: Option<i64>,
    },
    /// The index that runs over a dimension.
    Index(DimId),
}

/// A named dimension. Two nodes that have a dimension in common are indexed alike along it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Dim {
    /// Its name, unique in the graph.
    pub name: String,
    /// The symbol of its index, running from 0 to the size, not included.
    pub index: Symbol,
    /// Its size: a constant, or an expression over size symbols.
    pub size: Expr,
}

/// One step of the program: an array over named dimensions.
#[derive(Clone, PartialEq, Debug)]
pub struct Node {
    /// What it computes.
    pub op: NodeOp,
    /// What it reads.
    pub inputs: SmallVec<[NodeId; 3]>,
    /// Its dimensions; the last one is contiguous where the node is laid out in memory.
    pub dims: SmallVec<[DimId; 4]>,
    /// Its element type.
    pub dtype: DType,
    /// Its name; unique among the named nodes, empty if it has none.
    pub name: String,
}

/// What a node computes.
#[derive(Clone, PartialEq, Debug)]
pub enum NodeOp {
    /// An array given from outside.
    Input,
    /// An array that is given from outside and may be updated in place.
    State,
    /// Values written in the program, in row-major order; one for a scalar.
    Constant(Arc<[Scalar]>),
    /// The index along a dimension, as an integer.
    Index(DimId),
    /// The value (`i64`, no dimensions) of an expression over size and static symbols.
    Size(Expr),
    /// An op of the table, element by element; operands broadcast along dimensions they lack.
    Map(Op),
    /// Conversion to the node's dtype; see [`loopwright_ops::cast`].
    Cast,
    /// The same bits as the node's dtype.
    Bitcast,
    /// Folds dimensions away, in row-major order of `over` as it stands.
    Reduce {
        /// What is folded.
        op: ReduceOp,
        /// The dimensions that vanish; never empty.
        over: SmallVec<[DimId; 2]>,
        /// The dtype of the running value; the result is converted to the node's dtype.
        acc: DType,
    },
    /// The first index (`i64`) of the largest or smallest element along a dimension; NaN counts as
    /// the largest and as the smallest. 0 where the dimension is empty.
    ArgReduce {
        /// Largest or smallest.
        largest: bool,
        /// The dimension that vanishes.
        over: DimId,
    },
    /// Running reduction along a dimension.
    Scan {
        /// What is folded.
        op: ReduceOp,
        /// The dimension it runs along.
        over: DimId,
        /// The dtype of the running value.
        acc: DType,
        /// Whether an element is left out of its own result.
        exclusive: bool,
        /// Whether it runs from the last element to the first.
        reverse: bool,
    },
    /// The element before along a dimension, of a node that may be made of this one. See
    /// [`Graph::recurrences`].
    Previous {
        /// What is read: dtype and dimensions are the node's own. Not one of the inputs, since it comes later.
        of: NodeId,
        /// The dimension.
        over: DimId,
        /// The value that stands before the first element.
        outside: Scalar,
    },
    /// Re-indexing.
    View(View),
    /// `table[.., index, ..]`: the table's dimension `axis` is looked up. Inputs: table, index.
    /// Dimensions: the table's without `axis`, joined with the index's.
    Gather {
        /// The dimension that is looked up.
        axis: DimId,
        /// The value where the index is outside the table.
        outside: Scalar,
    },
    /// The base with `updates` combined in at `index` along `axis`, in row-major order of the
    /// updates; an index outside the base is passed over. Inputs: base, index, updates.
    Scatter {
        /// The dimension of the base that is indexed.
        axis: DimId,
        /// How an update is combined with what is there; `None` replaces it.
        combine: Option<ReduceOp>,
    },
    /// Elements in order along a dimension: ascending, NaN last, or the exact reverse order of keys
    /// when descending (NaN first); stable either way.
    Sort {
        /// The dimension.
        over: DimId,
        /// Largest first.
        descending: bool,
    },
    /// The indices (`i64`) that sort along a dimension.
    ArgSort {
        /// The dimension.
        over: DimId,
        /// Largest first.
        descending: bool,
    },
}

/// A re-indexing: where each element comes from, and what stands where it comes from nowhere.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct View {
    /// For each dimension of the input, its index, over the index symbols of the view's own
    /// dimensions, size symbols and static symbols.
    pub map: SmallVec<[Expr; 4]>,
    /// Further conditions (nonzero is true) under which there is an element.
    pub constraints: Vec<Expr>,
    /// The value where an index is out of the input's range or a constraint does not hold. `None`:
    /// that never happens, which is checked.
    pub outside: Option<Scalar>,
}

/// A result of the program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Output {
    /// Its name, unique among outputs.
    pub name: String,
    /// What is returned.
    pub node: NodeId,
}

/// A state's value after the run. All reads of the state see the value before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Update {
    /// The state.
    pub state: NodeId,
    /// Its new value: same dtype, same dimensions in the same order.
    pub value: NodeId,
}

/// A program: built by a [`crate::GraphBuilder`], with all sizes solved and everything checked.
#[derive(Clone, PartialEq, Debug)]
pub struct Graph {
    pub(crate) symbols: TiVec<Symbol, SymbolInfo>,
    pub(crate) dims: TiVec<DimId, Dim>,
    pub(crate) nodes: TiVec<NodeId, Node>,
    pub(crate) outputs: Vec<Output>,
    pub(crate) updates: Vec<Update>,
}

impl Graph {
    /// Symbols, addressed by [`Symbol`].
    pub fn symbols(&self) -> &TiSlice<Symbol, SymbolInfo> {
        &self.symbols
    }

    /// What a symbol stands for.
    pub fn symbol(&self, symbol: Symbol) -> &SymbolInfo {
        &self.symbols[symbol]
    }

    /// The name a symbol is read by: its own, or its dimension's.
    pub fn symbol_name(&self, symbol: Symbol) -> String {
        match &self.symbols[symbol] {
            SymbolInfo::Size { name, .. } | SymbolInfo::Static { name, .. } => name.clone(),
            SymbolInfo::Index(dim) => self.dim(*dim).name.clone(),
        }
    }

    /// The size symbols, in order. [`Graph::integers`] has the statics too.
    pub fn sizes(&self) -> impl Iterator<Item = (Symbol, &str, Option<i64>)> {
        self.symbols
            .iter_enumerated()
            .filter_map(|(symbol, info)| match info {
                SymbolInfo::Size { name, default } => Some((symbol, name.as_str(), *default)),
                SymbolInfo::Static { .. } | SymbolInfo::Index(_) => None,
            })
    }

    /// Dimensions, addressed by [`DimId`].
    pub fn dims(&self) -> &TiSlice<DimId, Dim> {
        &self.dims
    }

    /// A dimension.
    pub fn dim(&self, dim: DimId) -> &Dim {
        &self.dims[dim]
    }

    /// All dimensions' handles.
    pub fn dim_ids(&self) -> impl Iterator<Item = DimId> + use<> {
        self.dims.keys()
    }

    /// A dimension by name.
    pub fn find_dim(&self, name: &str) -> Option<DimId> {
        self.dim_ids().find(|dim| self.dim(*dim).name == name)
    }

    /// A node.
    pub fn node(&self, node: NodeId) -> &Node {
        &self.nodes[node]
    }

    /// All nodes' handles, every node after its inputs; in a graph that a schedule changed
    /// ([`crate::GraphEditor`]) new nodes come last.
    pub fn node_ids(&self) -> impl DoubleEndedIterator<Item = NodeId> + use<> {
        self.nodes.keys()
    }

    /// A node by name.
    pub fn find(&self, name: &str) -> Option<NodeId> {
        self.node_ids()
            .find(|node| !name.is_empty() && self.node(*node).name == name)
    }

    /// The name a node is read by: its own, or its number behind `%`, as in the text forms.
    pub fn node_name(&self, node: NodeId) -> String {
        let name = &self.node(node).name;
        if name.is_empty() {
            format!("%{}", node.0)
        } else {
            name.clone()
        }
    }

    /// Results, in order.
    pub fn outputs(&self) -> &[Output] {
        &self.outputs
    }

    /// State updates, in order.
    pub fn updates(&self) -> &[Update] {
        &self.updates
    }

    /// Inputs and states, in order.
    pub fn parameters(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.node_ids()
            .filter(|node| matches!(self.node(*node).op, NodeOp::Input | NodeOp::State))
    }

    /// For each node, the nodes that read it, in order.
    pub fn consumers(&self) -> TiVec<NodeId, Vec<NodeId>> {
        let mut consumers: TiVec<NodeId, _> = vec![Vec::new(); self.nodes.len()].into();
        for node in self.node_ids() {
            for input in &self.node(node).inputs {
                let list: &mut Vec<NodeId> = &mut consumers[*input];
                if list.last() != Some(&node) {
                    list.push(node);
                }
            }
        }
        consumers
    }

    /// What is known of all symbols: sizes are not negative, indices lie within their dimension,
    /// statics within their range.
    pub fn bounds(&self) -> Bounds {
        let mut bounds = Bounds::default();
        for (at, info) in self.symbols.iter_enumerated() {
            let hi = match info {
                SymbolInfo::Size { .. } => None,
                SymbolInfo::Index(dim) => self.dim(*dim).size.as_const().map(|size| size - 1),
                // A static's range is over sizes, which must be known first.
                SymbolInfo::Static { .. } => continue,
            };
            bounds.insert(at, Range { lo: Some(0), hi });
        }
        for found in self.statics() {
            let range = static_bounds(found.lo, found.hi, &bounds);
            bounds.insert(found.symbol, range);
        }
        bounds
    }
}
