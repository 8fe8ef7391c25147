//! Changes that a schedule makes to a program: copies with memory of their own, and reductions in stages.
//!
//! Each gives a new graph with the same results. Existing nodes, dimensions and symbols keep their handles; what is
//! new comes last, *behind* its readers. So the nodes of a changed graph are not in an order in which they could
//! be computed: it is for what works with a schedule, which has an order of its own.

use crate::ir::{Dim, DimId, Graph, Node, NodeId, NodeOp, SymbolInfo, View};
use loopwright_ops::Op;
use loopwright_symbolic::{Error, Expr, Symbol};
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

/// What [`Graph::staged`] made, beside the graph.
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

impl Graph {
    /// The same program where `readers` read a copy of a node that is called `name`.
    ///
    /// # Errors
    /// A name that is taken, and readers that do not read the node.
    pub fn copied(
        &self,
        node: NodeId,
        readers: &[NodeId],
        name: &str,
    ) -> Result<(Graph, NodeId), EditError> {
        self.require_free(name)?;
        if readers.is_empty() {
            return Err(EditError::NoReader(self.node_name(node)));
        }
        if let Some(reader) = readers
            .iter()
            .find(|reader| !self.node(**reader).inputs.contains(&node))
        {
            return Err(EditError::NotAReader {
                reader: self.node_name(*reader),
                node: self.node_name(node),
            });
        }
        let mut graph = self.clone();
        let parts = self.node(node);
        let copy = graph.append(Node {
            op: NodeOp::Map(Op::Copy),
            inputs: smallvec![node],
            dims: parts.dims.clone(),
            dtype: parts.dtype,
            name: name.to_owned(),
        });
        for reader in readers {
            for input in &mut graph.nodes[reader.0 as usize].inputs {
                if *input == node {
                    *input = copy;
                }
            }
        }
        Ok((graph, copy))
    }

    /// The same program with a reduction over `dim` in two stages: the first, called `name`, leaves `count` lanes
    /// or a value for each block of `count` elements; the second folds those. What is left over where
    /// `count` does not divide the dimension is folded on its own and comes last. A float reduction is then
    /// rounded in another order.
    ///
    /// # Errors
    /// A node that is no reduction over `dim`, a name that is taken, a count below 2 or above the size.
    pub fn staged(
        &self,
        node: NodeId,
        dim: DimId,
        count: i64,
        keep: Keep,
        name: &str,
    ) -> Result<(Graph, Staged), EditError> {
        let NodeOp::Reduce { op, over, acc } = self.node(node).op.clone() else {
            return Err(EditError::NotAReduction(self.node_name(node)));
        };
        if !over.contains(&dim) {
            return Err(EditError::NotFolded {
                node: self.node_name(node),
                dim: self.dim(dim).name.clone(),
            });
        }
        let size = self.dim(dim).size.clone();
        let wrong = |why: String| EditError::Count {
            node: self.node_name(node),
            count,
            why,
        };
        if count < 2 {
            return Err(wrong("a stage has at least 2".to_owned()));
        }
        if let Some(size) = size.as_const().filter(|size| *size < count) {
            let dim = &self.dim(dim).name;
            return Err(wrong(format!("`{dim}` has {size} elements")));
        }
        self.require_free(name)?;
        let mut graph = self.clone();
        let by = Expr::constant(count);
        let blocks = size.floor_div(&by)?;
        let (kept_size, folded_size) = match keep {
            Keep::Lanes => (by.clone(), blocks.clone()),
            Keep::Blocks => (blocks.clone(), by.clone()),
        };
        let kept = graph.new_dim(&format!("{name}_kept"), kept_size)?;
        let folded = graph.new_dim(&format!("{name}_folded"), folded_size)?;
        let index = |graph: &Graph, dim: DimId| Expr::symbol(graph.dim(dim).index);
        let (block, within) = match keep {
            Keep::Lanes => (index(&graph, folded), index(&graph, kept)),
            Keep::Blocks => (index(&graph, kept), index(&graph, folded)),
        };
        let element = block.mul(&by)?.add(&within)?;
        let own = self.node(node).dims.clone();
        let input = graph.reindexed(self.node(node).inputs[0], dim, &[folded, kept], element);
        let put = |other: DimId| -> SmallVec<[DimId; 2]> {
            let dims = over.iter();
            dims.map(|found| if *found == dim { other } else { *found })
                .collect()
        };
        let mut part_dims = own.clone();
        part_dims.push(kept);
        let part = graph.append(Node {
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
            let place = &mut graph.nodes[node.0 as usize];
            place.op = second;
            place.inputs = smallvec![part];
            let staged = Staged {
                part,
                kept,
                folded,
                rest: None,
            };
            return Ok((graph, staged));
        }
        let main = graph.append(Node {
            op: second,
            inputs: smallvec![part],
            dims: own.clone(),
            dtype: acc,
            name: format!("{name}_main"),
        });
        let rest_dim = graph.new_dim(&format!("{name}_rest"), rest_size)?;
        let element = blocks.mul(&by)?.add(&index(&graph, rest_dim))?;
        let input = graph.reindexed(self.node(node).inputs[0], dim, &[rest_dim], element);
        let rest = graph.append(Node {
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
        let dtype = self.node(node).dtype;
        if acc == dtype {
            let place = &mut graph.nodes[node.0 as usize];
            place.op = joined;
            place.inputs = smallvec![main, rest];
        } else {
            let joined = graph.append(Node {
                op: joined,
                inputs: smallvec![main, rest],
                dims: own,
                dtype: acc,
                name: String::new(),
            });
            let place = &mut graph.nodes[node.0 as usize];
            place.op = NodeOp::Cast;
            place.inputs = smallvec![joined];
        }
        let staged = Staged {
            part,
            kept,
            folded,
            rest: Some((main, rest, rest_dim)),
        };
        Ok((graph, staged))
    }

    fn append(&mut self, node: Node) -> NodeId {
        let id = NodeId(self.nodes.len() as u32);
        self.nodes.push(node);
        id
    }

    fn new_dim(&mut self, name: &str, size: Expr) -> Result<DimId, EditError> {
        if self.find_dim(name).is_some() {
            return Err(EditError::NameTaken(name.to_owned()));
        }
        let dim = DimId(self.dims.len() as u32);
        let index = Symbol(self.symbols.len() as u32);
        self.symbols.push(SymbolInfo::Index(dim));
        self.dims.push(Dim {
            name: name.to_owned(),
            index,
            size,
        });
        Ok(dim)
    }

    /// A view of a node whose index along `dim` is `element`, an expression over the indices of `dims`; a node
    /// that is the same along `dim` needs none.
    fn reindexed(&mut self, node: NodeId, dim: DimId, dims: &[DimId], element: Expr) -> NodeId {
        let parts = self.node(node);
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
                map.push(Expr::symbol(self.dim(*found).index));
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

    /// Whether nothing is called `name` or, as the nodes and dimensions that come with it, after it.
    fn require_free(&self, name: &str) -> Result<(), EditError> {
        let names = [
            name.to_owned(),
            format!("{name}_main"),
            format!("{name}_rest"),
        ];
        for name in names {
            if self.find(&name).is_some() || self.find_dim(&name).is_some() {
                return Err(EditError::NameTaken(name));
            }
        }
        Ok(())
    }
}
