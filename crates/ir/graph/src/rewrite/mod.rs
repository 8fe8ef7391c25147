//! Rewrites: graphs that give the same results with less work.
//!
//! A rewrite keeps every result, bit for bit, but for which NaN a NaN is. It keeps the program's
//! parameters, outputs and updates with their names and order; other nodes may vanish, and handles
//! are new. So a schedule, which names nodes, is made for the graph after the rewrites. One rewrite,
//! one file.

mod one_hot;

use crate::ir::{Graph, Node, NodeId, NodeOp};
use loopwright_arena::TiVec;

/// The graph after all rewrites, and a line for each place that changed, for people.
///
/// ```
/// use loopwright_graph::{parse, rewrite::rewrite};
/// use loopwright_text::Source;
///
/// let source = Source::new("embed.lw", "\
/// loopwright program 1
/// input tokens: i64[t=5]
/// input table: f32[v=1000, d=8]
/// output words = sum[v](select(v == tokens, table, 0))
/// ");
/// let graph = parse(&source).map_err(|error| error.render(&source))?;
/// let (graph, notes) = rewrite(&graph);
/// assert_eq!(notes, ["`words`: the sum over `v` with one row chosen by `tokens` is a gather from `table`"]);
/// # Ok::<(), String>(())
/// ```
pub fn rewrite(graph: &Graph) -> (Graph, Vec<String>) {
    let mut notes = Vec::new();
    let graph = one_hot::rewrite(graph, &mut notes);
    (graph, notes)
}

/// A graph that is copied node by node, some of them as something else.
struct Rewriting<'g> {
    old: &'g Graph,
    nodes: TiVec<NodeId, Node>,
    /// What stands for each of the old nodes copied so far.
    new: TiVec<NodeId, NodeId>,
}

impl<'g> Rewriting<'g> {
    fn new(old: &'g Graph) -> Rewriting<'g> {
        Rewriting {
            old,
            nodes: TiVec::with_capacity(old.nodes.len()),
            new: TiVec::with_capacity(old.nodes.len()),
        }
    }

    /// What stands for an old node.
    fn of(&self, old: NodeId) -> NodeId {
        self.new[old]
    }

    /// A node of the new graph.
    fn node(&self, node: NodeId) -> &Node {
        &self.nodes[node]
    }

    /// Adds a node, whose inputs are new ones.
    fn push(&mut self, node: Node) -> NodeId {
        self.nodes.push_and_get_key(node)
    }

    /// The next of the old nodes stays as it is.
    fn keep(&mut self) {
        let mut node = self.old.nodes[self.new.next_key()].clone();
        for input in &mut node.inputs {
            *input = self.of(*input);
        }
        let node = self.push(node);
        self.new.push(node);
    }

    /// `node` stands for the next of the old nodes, and takes its name.
    fn replace(&mut self, node: NodeId) {
        let name = self.old.nodes[self.new.next_key()].name.clone();
        self.nodes[node].name = name;
        self.new.push(node);
    }

    fn finish(mut self) -> Graph {
        // All that was copied still reads one step back what the old graph has.
        let new = std::mem::take(&mut self.new);
        for node in &mut self.nodes {
            if let NodeOp::Previous { of, .. } = &mut node.op {
                *of = new[*of];
            }
        }
        self.new = new;
        let mut graph = self.old.clone();
        for output in &mut graph.outputs {
            output.node = self.of(output.node);
        }
        for update in &mut graph.updates {
            update.state = self.of(update.state);
            update.value = self.of(update.value);
        }
        graph.nodes = self.nodes;
        graph.without_dead_nodes()
    }
}
