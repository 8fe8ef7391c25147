//! Changes that a schedule makes to a program: copies with memory of their own, padding, and reductions in stages.
//!
//! Each gives a graph with the same results. Existing nodes, dimensions and symbols keep their handles; what is
//! new comes last, *behind* its readers. So the nodes of a changed graph are not in an order in which they could
//! be computed: it is for what works with a schedule, which has an order of its own.

use crate::ir::{Dim, DimId, Graph, Node, NodeId, NodeOp, SymbolInfo, View};
use loopwright_ops::Op;
use loopwright_symbolic::{Error, Expr, Symbol, affine};
use loopwright_text::{Source, Token, lex};
use rustc_hash::FxHashSet;
use smallvec::{SmallVec, smallvec};

/// What the first stage of a reduction keeps of the dimension that it folds.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Keep {
    /// So many running values side by side, each of which takes every so-manieth element: what vectors and
    /// several independent sums need.
    Lanes,
    /// A value for each block of so many neighbouring elements: what threads need.
    Blocks,
}

impl Keep {
    /// Both.
    pub const ALL: [Keep; 2] = [Keep::Lanes, Keep::Blocks];

    /// Its name in text forms.
    pub const fn name(self) -> &'static str {
        match self {
            Keep::Lanes => "lanes",
            Keep::Blocks => "blocks",
        }
    }
}

/// Why a graph is not changed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum EditError {
    /// A name that something has already.
    #[error("the program has a `{0}` already; give another name")]
    NameTaken(String),
    /// A name that cannot be written.
    #[error("`{0}` is not a name: letters, digits and `_`, no digit first")]
    NotAName(String),
    /// A reader that does not read what is copied.
    #[error("`{reader}` does not read `{node}` itself")]
    NotAReader {
        /// Who should read the copy.
        reader: String,
        /// What is copied.
        node: String,
    },
    /// A copy that nobody would read.
    #[error("a copy of `{0}` that nobody reads")]
    NoReader(String),
    /// A node that is not padded.
    #[error("`{node}` is not padded: {why}")]
    NotPadded {
        /// The node.
        node: String,
        /// Why.
        why: &'static str,
    },
    /// A node that does not fold.
    #[error("`{0}` is not a reduction, which alone can be computed in stages")]
    NotAReduction(String),
    /// A dimension that a reduction does not fold.
    #[error("`{node}` does not fold `{dim}`")]
    NotFolded {
        /// The reduction.
        node: String,
        /// The dimension.
        dim: String,
    },
    /// A count that makes no stages.
    #[error("`{node}` cannot be computed in stages of {count}: {why}")]
    Count {
        /// The reduction.
        node: String,
        /// The count.
        count: i64,
        /// What is wrong with it.
        why: String,
    },
    /// A size that cannot be computed.
    #[error("a size is out of range")]
    Size,
}

impl From<Error> for EditError {
    fn from(_: Error) -> EditError {
        EditError::Size
    }
}

/// What [`GraphEditor::stage`] made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Staged {
    /// The first stage, which keeps a part of the dimension.
    pub part: NodeId,
    /// The dimension that it keeps.
    pub kept: DimId,
    /// The dimension that it folds in place of the reduction's.
    pub folded: DimId,
    /// Where the count may not divide the dimension: the reduction of the first stage, and that of the rest
    /// over its dimension. What was the reduction puts the two together.
    pub rest: Option<(NodeId, NodeId, DimId)>,
}

/// Makes several changes to a graph, one after the other.
#[derive(Clone, Debug)]
pub struct GraphEditor {
    graph: Graph,
    /// What nodes and dimensions are called.
    names: FxHashSet<String>,
}

impl GraphEditor {
    /// An editor of a copy of a graph.
    pub fn new(graph: &Graph) -> GraphEditor {
        let nodes = graph.nodes.iter().map(|node| &node.name);
        let dims = graph.dims.iter().map(|dim| &dim.name);
        let names = nodes.chain(dims).filter(|name| !name.is_empty());
        GraphEditor {
            names: names.cloned().collect(),
            graph: graph.clone(),
        }
    }

    /// The graph as it is now.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The changed graph.
    pub fn finish(self) -> Graph {
        self.graph
    }

    /// A name for what is new that nothing has: `stem`, or that with a number.
    pub fn free_name(&self, stem: &str) -> String {
        let mut name = stem.to_owned();
        let mut number = 2;
        while FAMILY
            .iter()
            .any(|end| self.names.contains(&format!("{name}{end}")))
        {
            name = format!("{stem}{number}");
            number += 1;
        }
        name
    }

    /// Makes `readers` read a copy of a node that is called `name`.
    ///
    /// # Errors
    /// A name that is taken, and readers that do not read the node.
    pub fn copy(
        &mut self,
        node: NodeId,
        readers: &[NodeId],
        name: &str,
    ) -> Result<NodeId, EditError> {
        self.require_free(name)?;
        let graph = &self.graph;
        if readers.is_empty() {
            return Err(EditError::NoReader(graph.node_name(node)));
        }
        let mut strangers = readers.iter();
        if let Some(reader) = strangers.find(|reader| !graph.node(**reader).inputs.contains(&node))
        {
            return Err(EditError::NotAReader {
                reader: graph.node_name(*reader),
                node: graph.node_name(node),
            });
        }
        let parts = graph.node(node);
        let copy = Node {
            op: NodeOp::Map(Op::Copy),
            inputs: smallvec![node],
            dims: parts.dims.clone(),
            dtype: parts.dtype,
            name: name.to_owned(),
        };
        let copy = self.append(copy);
        for reader in readers {
            for input in &mut self.graph.nodes[*reader].inputs {
                if *input == node {
                    *input = copy;
                }
            }
        }
        Ok(copy)
    }

    /// Puts a view that may leave its input behind an array called `name` that has the values outside in it, so that
    /// the view itself never leaves it.
    ///
    /// # Errors
    /// A node that is no such view, an index that is not a sum of multiples of the view's indices, a name that
    /// is taken.
    pub fn pad(&mut self, view: NodeId, name: &str) -> Result<NodeId, EditError> {
        let graph = &self.graph;
        let not_padded = |why: &'static str| EditError::NotPadded {
            node: graph.node_name(view),
            why,
        };
        let NodeOp::View(parts) = graph.node(view).op.clone() else {
            return Err(not_padded("it is not a view"));
        };
        let Some(outside) = parts.outside else {
            return Err(not_padded("it never leaves its input"));
        };
        if !parts.constraints.is_empty() {
            return Err(not_padded("its elements have further conditions"));
        }
        let input = graph.node(view).inputs[0];
        let dims = graph.node(input).dims.clone();
        let bounds = graph.bounds();
        let mut ends = Vec::with_capacity(dims.len());
        for (dim, index) in dims.iter().zip(&parts.map) {
            let size = &graph.dim(*dim).size;
            let inside = crate::stays_inside(graph, index, size, &bounds);
            ends.push(match inside {
                true => None,
                false => Some(reach(graph, index).ok_or_else(|| {
                    not_padded("an index is not a sum of multiples of the indices")
                })?),
            });
        }
        self.require_free(name)?;
        for dim in &dims {
            let name = format!("{name}_{}", graph.dim(*dim).name);
            if self.names.contains(&name) {
                return Err(EditError::NameTaken(name));
            }
        }
        let mut own: SmallVec<[DimId; 4]> = SmallVec::new();
        let mut map: SmallVec<[Expr; 4]> = SmallVec::new();
        let mut inner: SmallVec<[Expr; 4]> = SmallVec::new();
        for ((dim, index), ends) in dims.iter().zip(&parts.map).zip(ends) {
            let Some((lo, hi)) = ends else {
                own.push(*dim);
                map.push(Expr::symbol(self.graph.dim(*dim).index));
                inner.push(index.clone());
                continue;
            };
            // Nothing of an empty dimension is read.
            let size = hi.sub(&lo)?.add(&Expr::constant(1))?;
            let size = Expr::max(&size, &Expr::constant(0))?;
            let stem = self.graph.dim(*dim).name.clone();
            let padded = self.new_dim(&format!("{name}_{stem}"), size);
            own.push(padded);
            map.push(Expr::symbol(self.graph.dim(padded).index).add(&lo)?);
            inner.push(index.sub(&lo)?);
        }
        let dtype = self.graph.node(input).dtype;
        let padded = self.append(Node {
            op: NodeOp::View(View {
                map,
                constraints: Vec::new(),
                outside: Some(outside),
            }),
            inputs: smallvec![input],
            dims: own,
            dtype,
            name: name.to_owned(),
        });
        let place = &mut self.graph.nodes[view];
        place.inputs = smallvec![padded];
        place.op = NodeOp::View(View {
            map: inner,
            constraints: Vec::new(),
            outside: None,
        });
        Ok(padded)
    }

    /// Puts a reduction over `dim` in two stages: the first, called `name`, leaves `count` lanes or a value for each
    /// block of `count` elements; the second folds those. What is left over where `count` does not divide
    /// the dimension is folded on its own and comes last. A float reduction is then rounded in another order.
    ///
    /// # Errors
    /// A node that is no reduction over `dim`, a name that is taken, a count below 2 or above the size.
    pub fn stage(
        &mut self,
        node: NodeId,
        dim: DimId,
        count: i64,
        keep: Keep,
        name: &str,
    ) -> Result<Staged, EditError> {
        let graph = &self.graph;
        let NodeOp::Reduce { op, over, acc } = graph.node(node).op.clone() else {
            return Err(EditError::NotAReduction(graph.node_name(node)));
        };
        if !over.contains(&dim) {
            return Err(EditError::NotFolded {
                node: graph.node_name(node),
                dim: graph.dim(dim).name.clone(),
            });
        }
        let size = graph.dim(dim).size.clone();
        let wrong = |why: String| EditError::Count {
            node: graph.node_name(node),
            count,
            why,
        };
        if count < 2 {
            return Err(wrong("a stage has at least 2".to_owned()));
        }
        if count > MAX_STAGE {
            return Err(wrong(format!("a stage has at most {MAX_STAGE}")));
        }
        if let Some(size) = size.as_const().filter(|size| *size < count) {
            let dim = &graph.dim(dim).name;
            return Err(wrong(format!("`{dim}` has {size} elements")));
        }
        self.require_free(name)?;
        let by = Expr::constant(count);
        let blocks = size.floor_div(&by)?;
        let (kept_size, folded_size) = match keep {
            Keep::Lanes => (by.clone(), blocks.clone()),
            Keep::Blocks => (blocks.clone(), by.clone()),
        };
        let kept = self.new_dim(&format!("{name}_kept"), kept_size);
        let folded = self.new_dim(&format!("{name}_folded"), folded_size);
        let (block, within) = match keep {
            Keep::Lanes => (self.index(folded), self.index(kept)),
            Keep::Blocks => (self.index(kept), self.index(folded)),
        };
        let element = block.mul(&by)?.add(&within)?;
        let own = self.graph.node(node).dims.clone();
        let source = self.graph.node(node).inputs[0];
        let input = self.reindexed(source, dim, &[folded, kept], element);
        let put = |other: DimId| -> SmallVec<[DimId; 2]> {
            let dims = over.iter();
            dims.map(|found| if *found == dim { other } else { *found })
                .collect()
        };
        // Lanes lie side by side; what is kept for a block does, one block behind the other.
        let mut part_dims = own.clone();
        match keep {
            Keep::Lanes => part_dims.push(kept),
            Keep::Blocks => part_dims.insert(0, kept),
        }
        let part = self.append(Node {
            op: NodeOp::Reduce {
                op,
                over: put(folded),
                acc,
            },
            inputs: smallvec![input],
            dims: part_dims,
            dtype: acc,
            name: name.to_owned(),
        });
        let second = NodeOp::Reduce {
            op,
            over: smallvec![kept],
            acc,
        };
        let rest_size = size.modulo(&by)?;
        if rest_size.as_const() == Some(0) {
            let place = &mut self.graph.nodes[node];
            place.op = second;
            place.inputs = smallvec![part];
            return Ok(Staged {
                part,
                kept,
                folded,
                rest: None,
            });
        }
        let main = self.append(Node {
            op: second,
            inputs: smallvec![part],
            dims: own.clone(),
            dtype: acc,
            name: format!("{name}_main"),
        });
        let rest_dim = self.new_dim(&format!("{name}_rest"), rest_size);
        let element = blocks.mul(&by)?.add(&self.index(rest_dim))?;
        let input = self.reindexed(source, dim, &[rest_dim], element);
        let rest = self.append(Node {
            op: NodeOp::Reduce {
                op,
                over: put(rest_dim),
                acc,
            },
            inputs: smallvec![input],
            dims: own.clone(),
            dtype: acc,
            name: format!("{name}_rest"),
        });
        let joined = NodeOp::Map(op.combine());
        let dtype = self.graph.node(node).dtype;
        let (op, inputs) = if acc == dtype {
            (joined, smallvec![main, rest])
        } else {
            let joined = self.append(Node {
                op: joined,
                inputs: smallvec![main, rest],
                dims: own,
                dtype: acc,
                name: String::new(),
            });
            (NodeOp::Cast, smallvec![joined])
        };
        let place = &mut self.graph.nodes[node];
        place.op = op;
        place.inputs = inputs;
        Ok(Staged {
            part,
            kept,
            folded,
            rest: Some((main, rest, rest_dim)),
        })
    }

    fn index(&self, dim: DimId) -> Expr {
        Expr::symbol(self.graph.dim(dim).index)
    }

    fn append(&mut self, node: Node) -> NodeId {
        let id = self.graph.nodes.next_key();
        if !node.name.is_empty() {
            self.names.insert(node.name.clone());
        }
        self.graph.nodes.push(node);
        id
    }

    fn new_dim(&mut self, name: &str, size: Expr) -> DimId {
        let dim = self.graph.dims.next_key();
        let index = self.graph.symbols.next_key();
        self.graph.symbols.push(SymbolInfo::Index(dim));
        self.names.insert(name.to_owned());
        self.graph.dims.push(Dim {
            name: name.to_owned(),
            index,
            size,
        });
        dim
    }

    /// A view of a node whose index along `dim` is `element`, an expression over the indices of `dims`; a node
    /// that is the same along `dim` needs none.
    fn reindexed(&mut self, node: NodeId, dim: DimId, dims: &[DimId], element: Expr) -> NodeId {
        let parts = self.graph.node(node);
        if !parts.dims.contains(&dim) {
            return node;
        }
        let mut own: SmallVec<[DimId; 4]> = SmallVec::new();
        let mut map: SmallVec<[Expr; 4]> = SmallVec::new();
        for found in &parts.dims {
            if *found == dim {
                own.extend_from_slice(dims);
                map.push(element.clone());
            } else {
                own.push(*found);
                map.push(self.index(*found));
            }
        }
        let view = Node {
            op: NodeOp::View(View {
                map,
                constraints: Vec::new(),
                // Every index is one of the reduction's own.
                outside: None,
            }),
            inputs: smallvec![node],
            dims: own,
            dtype: parts.dtype,
            name: String::new(),
        };
        self.append(view)
    }

    /// Whether `name` is one, and nothing is called so or as the nodes and dimensions that come with it.
    fn require_free(&self, name: &str) -> Result<(), EditError> {
        let tokens = lex(&Source::new("name", name)).unwrap_or_default();
        if !matches!(tokens.first(), Some((Token::Name(word), _)) if word == name) {
            return Err(EditError::NotAName(name.to_owned()));
        }
        for end in FAMILY {
            let name = format!("{name}{end}");
            if self.names.contains(&name) {
                return Err(EditError::NameTaken(name));
            }
        }
        Ok(())
    }
}

/// The most lanes, or elements of a block, of a stage: there are as many also where a symbolic size is smaller.
pub const MAX_STAGE: i64 = 1 << 16;

/// What the nodes and dimensions that come with a change are called after its name.
const FAMILY: [&str; 5] = ["", "_main", "_rest", "_kept", "_folded"];

/// The smallest and the largest value of an index that is a sum of multiples of the indices of dimensions.
fn reach(graph: &Graph, index: &Expr) -> Option<(Expr, Expr)> {
    let symbols: Vec<Symbol> = index
        .symbols()
        .into_iter()
        .filter(|symbol| matches!(graph.symbol(*symbol), SymbolInfo::Index(_)))
        .collect();
    let form = affine(index, &symbols)?;
    let (mut lo, mut hi) = (form.constant.clone(), form.constant.clone());
    for symbol in &symbols {
        let SymbolInfo::Index(dim) = graph.symbol(*symbol) else {
            return None;
        };
        let factor = form.coefficients.get(symbol)?.as_const()?;
        let last = graph.dim(*dim).size.sub(&Expr::constant(1)).ok()?;
        let far = last.mul(&Expr::constant(factor)).ok()?;
        match factor < 0 {
            true => lo = lo.add(&far).ok()?,
            false => hi = hi.add(&far).ok()?,
        }
    }
    Some((lo, hi))
}
