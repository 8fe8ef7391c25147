//! Building a graph, step by step, with every step checked.

mod nodes;

use crate::error::GraphError;
use crate::ir::{Dim, DimId, Graph, Node, NodeId, NodeOp, Output, SymbolInfo, Update};
use crate::solve::{self, Claim, Located, Origin};
use crate::statics;
use loopwright_arena::TiVec;
use loopwright_symbolic::{Expr, Symbol};
use loopwright_text::Span;
use rustc_hash::FxHashMap;

/// A graph under construction. Sizes may be unknown until [`GraphBuilder::finish`] solves them.
#[derive(Clone, Debug, Default)]
pub struct GraphBuilder {
    pub(crate) symbols: TiVec<Symbol, SymbolInfo>,
    pub(crate) dims: TiVec<DimId, OpenDim>,
    pub(crate) nodes: TiVec<NodeId, Node>,
    pub(crate) outputs: Vec<Output>,
    pub(crate) updates: Vec<Update>,
    pub(crate) claims: Vec<Claim>,
    /// Names of sizes, statics, dimensions and nodes share one space, so that a name means one thing.
    pub(crate) names: FxHashMap<String, Named>,
    /// The statics, with their places.
    pub(crate) static_places: Vec<(Symbol, Option<Span>)>,
    /// Where each node stands in a source, for those that were read from one.
    pub(crate) places: TiVec<NodeId, Option<Span>>,
    /// Where what is added next stands in a source.
    pub(crate) place: Option<Span>,
}

/// How far a graph is built: see [`GraphBuilder::mark`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mark {
    symbols: usize,
    dims: usize,
    nodes: usize,
    outputs: usize,
    updates: usize,
    claims: usize,
    statics: usize,
}

/// What a name is the name of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Named {
    Size(Symbol),
    Static(Symbol),
    Dim(DimId),
    Node(NodeId),
}

/// A dimension whose size is not solved yet.
#[derive(Clone, Debug)]
pub(crate) struct OpenDim {
    pub(crate) name: String,
    pub(crate) index: Symbol,
    pub(crate) place: Option<Span>,
}

impl GraphBuilder {
    /// An empty graph.
    pub fn new() -> GraphBuilder {
        GraphBuilder::default()
    }

    /// A graph's parts, to be changed or extended; its sizes are kept as claims.
    pub fn from_graph(graph: &Graph) -> GraphBuilder {
        let dims = graph.dims.iter().map(|dim| OpenDim {
            name: dim.name.clone(),
            index: dim.index,
            place: None,
        });
        let claims = graph.dim_ids().map(|dim| Claim {
            dim,
            size: graph.dim(dim).size.clone(),
            origin: Origin {
                text: "the graph".to_owned(),
                place: None,
            },
        });
        let sizes = graph
            .sizes()
            .map(|(symbol, name, _)| (name.to_owned(), Named::Size(symbol)));
        let statics = graph
            .statics()
            .map(|found| (found.name.to_owned(), Named::Static(found.symbol)));
        let named_dims = graph
            .dim_ids()
            .map(|dim| (graph.dim(dim).name.clone(), Named::Dim(dim)));
        let named_nodes = graph
            .node_ids()
            .filter(|node| !graph.node(*node).name.is_empty())
            .map(|node| (graph.node(node).name.clone(), Named::Node(node)));
        GraphBuilder {
            names: sizes
                .chain(statics)
                .chain(named_dims)
                .chain(named_nodes)
                .collect(),
            static_places: graph.statics().map(|found| (found.symbol, None)).collect(),
            symbols: graph.symbols.clone(),
            dims: dims.collect(),
            nodes: graph.nodes.clone(),
            outputs: graph.outputs.clone(),
            updates: graph.updates.clone(),
            claims: claims.collect(),
            places: vec![None; graph.nodes.len()].into(),
            place: None,
        }
    }

    /// How far the graph is built, for [`GraphBuilder::rewind`].
    pub fn mark(&self) -> Mark {
        Mark {
            symbols: self.symbols.len(),
            dims: self.dims.len(),
            nodes: self.nodes.len(),
            outputs: self.outputs.len(),
            updates: self.updates.len(),
            claims: self.claims.len(),
            statics: self.static_places.len(),
        }
    }

    /// Takes back all that was added since a mark of this builder: for front ends whose steps add several things, of
    /// which the last may fail. Names that nodes had before the mark and lost since stay lost.
    pub fn rewind(&mut self, mark: &Mark) {
        self.symbols.truncate(mark.symbols);
        self.dims.truncate(mark.dims);
        self.nodes.truncate(mark.nodes);
        self.places.truncate(mark.nodes);
        self.outputs.truncate(mark.outputs);
        self.updates.truncate(mark.updates);
        self.claims.truncate(mark.claims);
        self.static_places.truncate(mark.statics);
        self.names.retain(|_, named| match named {
            Named::Size(symbol) | Named::Static(symbol) => usize::from(*symbol) < mark.symbols,
            Named::Dim(dim) => usize::from(*dim) < mark.dims,
            Named::Node(node) => usize::from(*node) < mark.nodes,
        });
    }

    /// Says where in a source what is added from now on stands, for errors found in the end.
    pub(crate) fn at(&mut self, place: Span) {
        self.place = Some(place);
    }

    /// A size that is known when the program runs.
    pub fn size(&mut self, name: &str, default: Option<i64>) -> Result<Symbol, GraphError> {
        self.check_name(name)?;
        let symbol = self.symbols.next_key();
        self.names.insert(name.to_owned(), Named::Size(symbol));
        self.symbols.push(SymbolInfo::Size {
            name: name.to_owned(),
            default,
        });
        Ok(symbol)
    }

    /// A size symbol by name.
    pub fn find_size(&self, name: &str) -> Option<Symbol> {
        match self.names.get(name) {
            Some(Named::Size(symbol)) => Some(*symbol),
            _ => None,
        }
    }

    /// A new dimension.
    pub fn dim(&mut self, name: &str) -> Result<DimId, GraphError> {
        self.check_name(name)?;
        let dim = self.dims.next_key();
        let index = self.symbols.next_key();
        self.names.insert(name.to_owned(), Named::Dim(dim));
        self.symbols.push(SymbolInfo::Index(dim));
        self.dims.push(OpenDim {
            name: name.to_owned(),
            index,
            place: self.place,
        });
        Ok(dim)
    }

    /// A dimension by name.
    pub fn find_dim(&self, name: &str) -> Option<DimId> {
        match self.names.get(name) {
            Some(Named::Dim(dim)) => Some(*dim),
            _ => None,
        }
    }

    /// A dimension's name.
    pub fn dim_name(&self, dim: DimId) -> &str {
        &self.dims[dim].name
    }

    /// The symbol of a dimension's index, for views.
    pub fn index_symbol(&self, dim: DimId) -> Symbol {
        self.dims[dim].index
    }

    /// The size of a dimension, known or not, for use in the sizes of others.
    pub fn size_of(&self, dim: DimId) -> Expr {
        Expr::symbol(solve::unknown(dim))
    }

    /// Claims a dimension's size; `origin` says who does, for the error if another claim differs.
    /// Sizes are expressions over size symbols and [`GraphBuilder::size_of`].
    pub fn set_size(&mut self, dim: DimId, size: Expr, origin: impl Into<String>) {
        self.claims.push(Claim {
            dim,
            size,
            origin: Origin {
                text: origin.into(),
                place: self.place,
            },
        });
    }

    /// A node's parts.
    pub fn node(&self, node: NodeId) -> &Node {
        &self.nodes[node]
    }

    /// A node by name.
    pub fn find(&self, name: &str) -> Option<NodeId> {
        match self.names.get(name) {
            Some(Named::Node(node)) => Some(*node),
            _ => None,
        }
    }

    /// Names a node, which loses the name it had; the empty name is none.
    pub fn name(&mut self, node: NodeId, name: &str) -> Result<(), GraphError> {
        if !name.is_empty() {
            self.check_name(name)?;
        }
        let old = std::mem::replace(&mut self.nodes[node].name, name.to_owned());
        if !old.is_empty() {
            self.names.remove(&old);
        }
        if !name.is_empty() {
            self.names.insert(name.to_owned(), Named::Node(node));
        }
        Ok(())
    }

    /// Makes a node a result of the program.
    pub fn output(&mut self, name: &str, node: NodeId) -> Result<(), GraphError> {
        if self.outputs.iter().any(|output| output.name == name) {
            return Err(GraphError::NameTaken {
                name: name.to_owned(),
                taken_by: "another output",
            });
        }
        self.outputs.push(Output {
            name: name.to_owned(),
            node,
        });
        Ok(())
    }

    /// Takes an output back; does nothing where there is none of that name. Nodes that nothing reads
    /// any more stay until dead nodes are removed.
    pub fn remove_output(&mut self, name: &str) {
        self.outputs.retain(|output| output.name != name);
    }

    /// Gives a state a new value after the run.
    pub fn update(&mut self, state: NodeId, value: NodeId) -> Result<(), GraphError> {
        let target = self.node(state);
        let name = target.name.clone();
        if !matches!(target.op, NodeOp::State) {
            return Err(GraphError::NotAState { name });
        }
        if self.updates.iter().any(|update| update.state == state) {
            return Err(GraphError::UpdatedTwice { name });
        }
        let what = || format!("the new value of state `{name}`");
        if self.node(value).dtype != target.dtype {
            return Err(GraphError::DType {
                what: what(),
                expected: target.dtype.to_string(),
                got: self.node(value).dtype,
            });
        }
        if self.node(value).dims != target.dims {
            return Err(GraphError::Dims {
                what: what(),
                expected: self.dim_list(&target.dims),
                got: self.dim_list(&self.node(value).dims),
            });
        }
        self.updates.push(Update { state, value });
        Ok(())
    }

    /// Solves all sizes, checks the whole, and drops what no result needs (inputs are kept).
    pub fn finish(self) -> Result<Graph, GraphError> {
        self.finish_located().map_err(|located| *located.error)
    }

    /// [`GraphBuilder::finish`], with the places an error concerns.
    pub(crate) fn finish_located(self) -> Result<Graph, Located> {
        if self.outputs.is_empty() && self.updates.is_empty() {
            return Err(GraphError::NoOutput.into());
        }
        let sizes = solve::solve(&self)?;
        let mut symbols = self.symbols;
        for (symbol, place) in &self.static_places {
            let SymbolInfo::Static { lo, hi, .. } = &mut symbols[*symbol] else {
                unreachable!("only statics are listed as such");
            };
            for end in [lo, hi] {
                *end = end
                    .substitute(&|symbol| solve::solved(symbol, &sizes))
                    .map_err(|error| Located::at(error.into(), *place))?;
            }
        }
        let mut nodes = self.nodes;
        for (node, place) in nodes.iter_mut().zip(&self.places) {
            let exprs: Vec<&mut Expr> = match &mut node.op {
                NodeOp::View(view) => view.map.iter_mut().chain(&mut view.constraints).collect(),
                NodeOp::Size(size) => vec![size],
                _ => continue,
            };
            for expr in exprs {
                *expr = expr
                    .substitute(&|symbol| solve::solved(symbol, &sizes))
                    .map_err(|error| Located::at(error.into(), *place))?;
            }
        }
        let dims = self
            .dims
            .iter()
            .zip(sizes)
            .map(|(dim, size)| Dim {
                name: dim.name.clone(),
                index: dim.index,
                size,
            })
            .collect();
        let graph = Graph {
            symbols,
            dims,
            nodes,
            outputs: self.outputs,
            updates: self.updates,
        };
        graph
            .check_recurrences()
            .map_err(|(node, error)| Located::at(error, self.places[node]))?;
        let bounds = graph.bounds();
        statics::check(&graph, &self.static_places, &self.places, &bounds)?;
        solve::check(&graph, &self.places, &self.claims, &bounds)?;
        Ok(graph.without_dead_nodes())
    }

    /// Dimensions as a list of names.
    pub fn dim_list(&self, dims: &[DimId]) -> String {
        let names: Vec<&str> = dims.iter().map(|dim| self.dim_name(*dim)).collect();
        names.join(", ")
    }

    pub(crate) fn check_name(&self, name: &str) -> Result<(), GraphError> {
        let taken_by = match self.names.get(name) {
            Some(Named::Dim(_)) => "a dimension",
            Some(Named::Size(_)) => "a size",
            Some(Named::Static(_)) => "a static",
            Some(Named::Node(_)) => "a node",
            None => return Ok(()),
        };
        Err(GraphError::NameTaken {
            name: name.to_owned(),
            taken_by,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loopwright_ops::DType;

    #[test]
    fn what_was_added_since_a_mark_is_taken_back() -> Result<(), GraphError> {
        let mut builder = GraphBuilder::new();
        let i = builder.dim("i")?;
        builder.set_size(i, Expr::constant(4), "the test");
        let x = builder.input("x", DType::F32, &[i])?;
        builder.output("y", x)?;
        let (mark, before) = (builder.mark(), builder.clone().finish()?);

        let n = builder.size("n", None)?;
        builder.static_symbol("s", Expr::constant(0), Expr::symbol(n), None)?;
        let j = builder.dim("j")?;
        builder.set_size(i, Expr::constant(5), "what contradicts");
        let z = builder.input("z", DType::F32, &[j])?;
        builder.output("z", z)?;
        builder.rewind(&mark);

        assert_eq!(builder.mark(), mark);
        assert_eq!(builder.clone().finish()?, before);
        // The names are free again.
        for name in ["n", "s", "j", "z"] {
            builder.dim(name)?;
        }
        Ok(())
    }
}
