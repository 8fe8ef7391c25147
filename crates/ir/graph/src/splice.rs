//! Putting an array of one program in the place of an input of another.

use crate::error::GraphError;
use crate::ir::{Dim, DimId, Graph, Node, NodeId, NodeOp, SymbolInfo, View};
use crate::text::expr_text;
use loopwright_arena::{TiSlice, TiVec};
use loopwright_symbolic::{Expr, Symbol};
use rustc_hash::FxHashSet;
use smallvec::{SmallVec, smallvec};

impl Graph {
    /// The graph in which an input is replaced by what `node` computes in another graph. Evaluating it is
    /// evaluating `from`, and then this graph with that node's value.
    ///
    /// The node's dimensions are the input's, by position. What the node is made of comes along: sizes,
    /// statics, inputs and states, which are joined with those of the same name here, and everything in
    /// between. A state is read as it is before the run. Dimensions whose names are taken get others, and
    /// computed nodes give up names that are taken.
    ///
    /// ```
    /// use loopwright_graph::parse;
    /// use loopwright_text::Source;
    ///
    /// let read = |text: &str| {
    ///     let source = Source::new("part.lw", format!("loopwright program 1\nsize N = 8\n{text}"));
    ///     parse(&source).map_err(|error| error.render(&source))
    /// };
    /// let squares = read("input x: f32[k=N]\noutput s = x * x")?;
    /// let total = read("input s: f32[i=N]\noutput t = sum[i](s)")?;
    /// let s = squares.find("s").ok_or("it has a node s")?;
    /// let both = total.inline_input("s", &squares, s).map_err(|error| error.to_string())?;
    /// assert_eq!(both, read("dim i = N\ninput x: f32[i]\ns = x * x\noutput t = sum[i](s)")?);
    /// # Ok::<(), String>(())
    /// ```
    pub fn inline_input(
        &self,
        input: &str,
        from: &Graph,
        node: NodeId,
    ) -> Result<Graph, GraphError> {
        let target = self
            .find(input)
            .filter(|found| matches!(self.node(*found).op, NodeOp::Input))
            .ok_or_else(|| GraphError::NotAnInput {
                name: input.to_owned(),
            })?;
        let mut splice = Splice::new(self, from, target, node);
        splice.join_symbols()?;
        splice.take_names()?;
        splice.map_dims()?;
        splice.check_same(target, node)?;
        splice.place_nodes()?;
        Ok(splice.finish())
    }
}

/// A graph under construction: this one's symbols and dimensions with their handles, then what the
/// definition brings.
struct Splice<'a> {
    here: &'a Graph,
    from: &'a Graph,
    /// The input that is replaced.
    target: NodeId,
    /// What replaces it.
    node: NodeId,
    /// Which nodes and symbols of `from` the definition is made of.
    live: TiVec<NodeId, bool>,
    used: TiVec<Symbol, bool>,
    result: Graph,
    /// Names of what is given from outside, which are kept whatever else has them.
    given: FxHashSet<String>,
    /// All names that mean something in the result.
    taken: FxHashSet<String>,
    /// Where what is here has gone to, by node.
    own: TiVec<NodeId, Option<NodeId>>,
    /// Where what is in `from` has gone to, by symbol, dimension and node.
    symbols: TiVec<Symbol, Option<Symbol>>,
    dims: TiVec<DimId, Option<DimId>>,
    nodes: TiVec<NodeId, Option<NodeId>>,
}

impl<'a> Splice<'a> {
    fn new(here: &'a Graph, from: &'a Graph, target: NodeId, node: NodeId) -> Splice<'a> {
        let live = live_nodes(from, node);
        let used = used_symbols(from, &live);
        Splice {
            here,
            from,
            target,
            node,
            live,
            used,
            result: Graph {
                symbols: here.symbols.clone(),
                dims: here.dims.clone(),
                nodes: TiVec::new(),
                outputs: Vec::new(),
                updates: Vec::new(),
            },
            given: FxHashSet::default(),
            taken: FxHashSet::default(),
            own: vec![None; here.nodes.len()].into(),
            symbols: vec![None; from.symbols.len()].into(),
            dims: vec![None; from.dims.len()].into(),
            nodes: vec![None; from.nodes.len()].into(),
        }
    }

    /// Joins sizes, then the statics whose ranges are made of them.
    fn join_symbols(&mut self) -> Result<(), GraphError> {
        for (symbol, name, default) in self.from.sizes() {
            if self.used[symbol] {
                let info = SymbolInfo::Size {
                    name: name.to_owned(),
                    default,
                };
                self.join_symbol(symbol, info)?;
            }
        }
        for found in self.from.statics() {
            if self.used[found.symbol] {
                let info = SymbolInfo::Static {
                    name: found.name.to_owned(),
                    lo: self.expr(found.lo)?,
                    hi: self.expr(found.hi)?,
                    default: found.default,
                };
                self.join_symbol(found.symbol, info)?;
            }
        }
        Ok(())
    }

    fn join_symbol(&mut self, symbol: Symbol, there: SymbolInfo) -> Result<(), GraphError> {
        let name = self.from.symbol_name(symbol);
        let same = self
            .here
            .integers()
            .find(|(_, found, _)| *found == name)
            .map(|(found, ..)| found);
        let joined = match same {
            None => self.result.symbols.push_and_get_key(there),
            Some(found) => {
                let text = |info: &SymbolInfo| symbol_text(&self.result, info);
                let here = &self.result.symbols[found];
                let conflict = GraphError::SpliceConflict {
                    name,
                    here: text(here),
                    there: text(&there),
                };
                match (&mut self.result.symbols[found], &there) {
                    (SymbolInfo::Size { default, .. }, SymbolInfo::Size { default: other, .. }) => {
                        *default = joined_default(*default, *other)
                    }
                    (
                        SymbolInfo::Static {
                            lo, hi, default, ..
                        },
                        SymbolInfo::Static {
                            lo: other_lo,
                            hi: other_hi,
                            default: other,
                            ..
                        },
                    ) if lo == other_lo && hi == other_hi => {
                        *default = joined_default(*default, *other);
                    }
                    _ => return Err(conflict),
                }
                found
            }
        };
        self.symbols[symbol] = Some(joined);
        Ok(())
    }

    /// Takes the names that are kept: those of all that is given from outside, and what is here. A
    /// dimension that is here gives way to what is given.
    fn take_names(&mut self) -> Result<(), GraphError> {
        let (here, from) = (self.here, self.from);
        let own = here.parameters().filter(|node| *node != self.target);
        let brought = from.parameters().filter(|node| self.live[*node]);
        let parameters = own
            .map(|node| here.node(node).name.as_str())
            .chain(brought.map(|node| from.node(node).name.as_str()));
        for name in parameters.filter(|name| !name.is_empty()) {
            let symbol = self.result.integers().find(|(_, found, _)| *found == name);
            if let Some((symbol, ..)) = symbol {
                let symbol = symbol_text(&self.result, self.result.symbol(symbol));
                let array = "an array".to_owned();
                let is_own = here.find(name).is_some_and(|node| node != self.target);
                let (here, there) = if is_own {
                    (array, symbol)
                } else {
                    (symbol, array)
                };
                return Err(GraphError::SpliceConflict {
                    name: name.to_owned(),
                    here,
                    there,
                });
            }
            self.given.insert(name.to_owned());
        }
        let symbols = self.result.integers().map(|(_, name, _)| name.to_owned());
        self.given.extend(symbols);
        self.taken = self.given.clone();
        self.taken
            .extend(here.dims.iter().map(|dim| dim.name.clone()));
        let nodes = here.node_ids().filter(|node| *node != self.target);
        self.taken
            .extend(nodes.map(|node| here.node(node).name.clone()));
        for at in self.result.dims.keys() {
            if self.given.contains(&here.dims[at].name) {
                self.result.dims[at].name = self.new_name(&here.dims[at].name);
            }
        }
        Ok(())
    }

    /// A name for a dimension: its own, or with a number behind it.
    fn new_name(&mut self, name: &str) -> String {
        let mut found = name.to_owned();
        let mut number = 2;
        while !self.taken.insert(found.clone()) {
            found = format!("{name}_{number}");
            number += 1;
        }
        found
    }

    /// The definition's dimensions are the input's; all others are new.
    fn map_dims(&mut self) -> Result<(), GraphError> {
        let (here, from) = (self.here, self.from);
        let inside = &from.node(self.node).dims;
        for (dim, own) in inside.iter().zip(&here.node(self.target).dims) {
            self.dims[*dim] = Some(*own);
            self.symbols[from.dim(*dim).index] = Some(here.dim(*own).index);
        }
        for dim in from.dim_ids() {
            let index = from.dim(dim).index;
            if !self.used[index] || self.dims[dim].is_some() {
                continue;
            }
            let new = self.result.dims.next_key();
            let symbol = self.result.symbols.next_key();
            let name = self.new_name(&from.dim(dim).name);
            let size = self.expr(&from.dim(dim).size)?;
            self.result.symbols.push(SymbolInfo::Index(new));
            self.result.dims.push(Dim {
                name,
                index: symbol,
                size,
            });
            self.dims[dim] = Some(new);
            self.symbols[index] = Some(symbol);
        }
        Ok(())
    }

    /// Refuses a node of `from` that does not have the dtype and the sizes of one that is here.
    fn check_same(&self, own: NodeId, node: NodeId) -> Result<(), GraphError> {
        let sizes = |graph: &Graph, node: NodeId| -> Vec<Expr> {
            let dims = graph.node(node).dims.iter();
            dims.map(|dim| graph.dim(*dim).size.clone()).collect()
        };
        let here = sizes(self.here, own);
        let there = sizes(self.from, node)
            .iter()
            .map(|size| self.expr(size))
            .collect::<Result<Vec<Expr>, GraphError>>()?;
        let (dtype, other) = (self.here.node(own).dtype, self.from.node(node).dtype);
        if dtype == other && here == there {
            return Ok(());
        }
        let text = |dtype, sizes: &[Expr]| {
            let sizes: Vec<String> = sizes
                .iter()
                .map(|size| expr_text(size, &|symbol| self.result.symbol_name(symbol)))
                .collect();
            format!("{dtype}[{}]", sizes.join(", "))
        };
        Err(GraphError::SpliceConflict {
            name: self.here.node_name(own),
            here: text(dtype, &here),
            there: text(other, &there),
        })
    }

    fn place_nodes(&mut self) -> Result<(), GraphError> {
        let here = self.here;
        for node in here.node_ids() {
            if node == self.target {
                self.place_definition()?;
            } else {
                self.place_own(node);
            }
        }
        Ok(())
    }

    /// A node that is here, unless it has its place already.
    fn place_own(&mut self, node: NodeId) -> NodeId {
        if let Some(placed) = self.own[node] {
            return placed;
        }
        let mut placed = self.here.node(node).clone();
        for input in &mut placed.inputs {
            // Inputs come before their readers.
            *input = self.own[*input].unwrap_or(*input);
        }
        let given = matches!(placed.op, NodeOp::Input | NodeOp::State);
        if !given && self.given.contains(&placed.name) {
            placed.name.clear();
        }
        let placed = self.push(placed);
        self.own[node] = Some(placed);
        placed
    }

    /// Everything the input is replaced by.
    fn place_definition(&mut self) -> Result<(), GraphError> {
        let from = self.from;
        for node in from.node_ids() {
            if !self.live[node] {
                continue;
            }
            let parts = from.node(node);
            let placed = match parts.op {
                NodeOp::Input | NodeOp::State => self.place_parameter(node)?,
                _ => {
                    let mut new = self.renamed(parts)?;
                    if !new.name.is_empty() && !self.taken.insert(new.name.clone()) {
                        new.name.clear();
                    }
                    self.push(new)
                }
            };
            self.nodes[node] = Some(placed);
        }
        self.own[self.target] = self.nodes[self.node];
        Ok(())
    }

    /// An input or state of the definition: the one of that name that is here, or a new one.
    fn place_parameter(&mut self, node: NodeId) -> Result<NodeId, GraphError> {
        let new = self.renamed(self.from.node(node))?;
        let same = self.here.parameters().find(|own| {
            *own != self.target && !new.name.is_empty() && self.here.node(*own).name == new.name
        });
        let Some(own) = same else {
            return Ok(self.push(new));
        };
        self.check_same(own, node)?;
        let placed = self.place_own(own);
        if self.result.node(placed).dims == new.dims {
            return Ok(placed);
        }
        // The same elements, along the definition's dimensions.
        let index = |dim: &DimId| Expr::symbol(self.result.dim(*dim).index);
        let view = View {
            map: new.dims.iter().map(index).collect(),
            constraints: Vec::new(),
            outside: None,
        };
        Ok(self.push(Node {
            op: NodeOp::View(view),
            inputs: smallvec![placed],
            name: String::new(),
            ..new
        }))
    }

    fn push(&mut self, node: Node) -> NodeId {
        self.result.nodes.push_and_get_key(node)
    }

    fn dim(&self, dim: DimId) -> DimId {
        match self.dims[dim] {
            Some(dim) => dim,
            None => unreachable!("the dimensions of a live node are all mapped"),
        }
    }

    fn expr(&self, expr: &Expr) -> Result<Expr, GraphError> {
        let symbol = |symbol: Symbol| self.symbols[symbol].map(Expr::symbol);
        Ok(expr.substitute(&symbol)?)
    }

    /// A node of `from` over the result's dimensions, symbols and nodes.
    fn renamed(&self, node: &Node) -> Result<Node, GraphError> {
        let exprs = |exprs: &[Expr]| -> Result<Vec<Expr>, GraphError> {
            exprs.iter().map(|expr| self.expr(expr)).collect()
        };
        let op = match &node.op {
            NodeOp::Input
            | NodeOp::State
            | NodeOp::Constant(_)
            | NodeOp::Map(_)
            | NodeOp::Cast
            | NodeOp::Bitcast => node.op.clone(),
            NodeOp::Index(dim) => NodeOp::Index(self.dim(*dim)),
            NodeOp::Size(size) => NodeOp::Size(self.expr(size)?),
            NodeOp::Reduce { op, over, acc } => NodeOp::Reduce {
                op: *op,
                over: over.iter().map(|dim| self.dim(*dim)).collect(),
                acc: *acc,
            },
            NodeOp::ArgReduce { largest, over } => NodeOp::ArgReduce {
                largest: *largest,
                over: self.dim(*over),
            },
            NodeOp::Scan {
                op,
                over,
                acc,
                exclusive,
                reverse,
            } => NodeOp::Scan {
                op: *op,
                over: self.dim(*over),
                acc: *acc,
                exclusive: *exclusive,
                reverse: *reverse,
            },
            NodeOp::Previous { of, over, outside } => NodeOp::Previous {
                of: *of,
                over: self.dim(*over),
                outside: *outside,
            },
            NodeOp::View(view) => NodeOp::View(View {
                map: SmallVec::from_vec(exprs(&view.map)?),
                constraints: exprs(&view.constraints)?,
                outside: view.outside,
            }),
            NodeOp::Gather { axis, outside } => NodeOp::Gather {
                axis: self.dim(*axis),
                outside: *outside,
            },
            NodeOp::Scatter { axis, combine } => NodeOp::Scatter {
                axis: self.dim(*axis),
                combine: *combine,
            },
            NodeOp::Sort { over, descending } => NodeOp::Sort {
                over: self.dim(*over),
                descending: *descending,
            },
            NodeOp::ArgSort { over, descending } => NodeOp::ArgSort {
                over: self.dim(*over),
                descending: *descending,
            },
        };
        let inputs = node.inputs.iter().map(|input| {
            // Inputs come before their readers.
            self.nodes[*input].unwrap_or(*input)
        });
        Ok(Node {
            op,
            inputs: inputs.collect(),
            dims: node.dims.iter().map(|dim| self.dim(*dim)).collect(),
            dtype: node.dtype,
            name: node.name.clone(),
        })
    }

    fn finish(mut self) -> Graph {
        // What is read one step back has its place only now.
        for (placed, old) in [(&self.own, self.here), (&self.nodes, self.from)] {
            for delay in old.delays() {
                let (Some(node), Some(of)) = (placed[delay.node], placed[delay.of]) else {
                    continue;
                };
                if let NodeOp::Previous { of: read, .. } = &mut self.result.nodes[node].op {
                    *read = of;
                }
            }
        }
        let own = |node: NodeId| self.own[node].unwrap_or(node);
        self.result.outputs = self.here.outputs.clone();
        for output in &mut self.result.outputs {
            output.node = own(output.node);
        }
        self.result.updates = self.here.updates.clone();
        for update in &mut self.result.updates {
            update.state = own(update.state);
            update.value = own(update.value);
        }
        self.result.without_dead_nodes()
    }
}

/// The default of a size that two programs have: none where they differ, so that neither is chosen
/// behind the other's back.
fn joined_default(here: Option<i64>, there: Option<i64>) -> Option<i64> {
    match (here, there) {
        (Some(here), Some(there)) => (here == there).then_some(here),
        (here, there) => here.or(there),
    }
}

fn symbol_text(graph: &Graph, info: &SymbolInfo) -> String {
    match info {
        SymbolInfo::Size { .. } => "a size".to_owned(),
        SymbolInfo::Static { lo, hi, .. } => {
            let text = |expr: &Expr| expr_text(expr, &|symbol| graph.symbol_name(symbol));
            format!("a static in {} .. {}", text(lo), text(hi))
        }
        SymbolInfo::Index(_) => "a dimension".to_owned(),
    }
}

/// The nodes that a node is made of, itself included.
fn live_nodes(graph: &Graph, node: NodeId) -> TiVec<NodeId, bool> {
    let mut live: TiVec<_, _> = vec![false; graph.nodes.len()].into();
    let mut open = vec![node];
    while let Some(node) = open.pop() {
        if std::mem::replace(&mut live[node], true) {
            continue;
        }
        open.extend(&graph.node(node).inputs);
        if let NodeOp::Previous { of, .. } = graph.node(node).op {
            open.push(of);
        }
    }
    live
}

/// The symbols that live nodes need, those of their dimensions and of sizes included.
fn used_symbols(graph: &Graph, live: &TiSlice<NodeId, bool>) -> TiVec<Symbol, bool> {
    let mut used: TiVec<_, _> = vec![false; graph.symbols.len()].into();
    let mut mark = |expr: &Expr| {
        let mut open: Vec<Symbol> = expr.symbols().into_iter().collect();
        while let Some(symbol) = open.pop() {
            if std::mem::replace(&mut used[symbol], true) {
                continue;
            }
            match graph.symbol(symbol) {
                SymbolInfo::Size { .. } => {}
                SymbolInfo::Static { lo, hi, .. } => {
                    open.extend(lo.symbols());
                    open.extend(hi.symbols());
                }
                SymbolInfo::Index(dim) => open.extend(graph.dim(*dim).size.symbols()),
            }
        }
    };
    for node in graph.node_ids().filter(|node| live[*node]) {
        let parts = graph.node(node);
        // Every dimension that an op folds, looks up or sorts along is one of its operands'.
        for dim in &parts.dims {
            mark(&Expr::symbol(graph.dim(*dim).index));
        }
        match &parts.op {
            NodeOp::View(view) => view.map.iter().chain(&view.constraints).for_each(&mut mark),
            NodeOp::Size(size) => mark(size),
            _ => {}
        }
    }
    used
}
