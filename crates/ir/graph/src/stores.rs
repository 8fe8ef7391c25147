//! Giving every result a node of its own.

use crate::ir::{Graph, Node, NodeId, NodeOp};
use loopwright_arena::TiVec;
use loopwright_ops::Op;
use smallvec::smallvec;

impl Graph {
    /// The graph with copies added so that every output and every new value of a state is a computed
    /// node of its own: then the memory it is computed into can be the caller's. Existing nodes keep
    /// their handles; a graph that already is so is returned as it is.
    ///
    /// A new value is always a `copy` that nothing else reads, so that the write to the state is a
    /// step of its own which can be placed after the last read of the old value.
    pub fn with_stores(mut self) -> Graph {
        let mut used: TiVec<NodeId, _> = vec![false; self.nodes.len()].into();
        for at in 0..self.outputs.len() {
            let node = self.outputs[at].node;
            if self.is_parameter(node) || used[node] {
                self.outputs[at].node = self.copy_of(node);
                used.push(true);
            } else {
                used[node] = true;
            }
        }
        for at in 0..self.updates.len() {
            let value = self.updates[at].value;
            let node = self.node(value);
            let own = matches!(node.op, NodeOp::Map(Op::Copy))
                && !used[value]
                && !self.is_parameter(node.inputs[0])
                && !self.nodes.iter().any(|node| node.inputs.contains(&value));
            if own {
                used[value] = true;
                continue;
            }
            let mut source = value;
            if self.is_parameter(value) {
                source = self.copy_of(value);
                used.push(false);
            }
            self.updates[at].value = self.copy_of(source);
            used.push(true);
        }
        self
    }

    /// Whether a node's memory is not the program's to write.
    fn is_parameter(&self, node: NodeId) -> bool {
        matches!(
            self.node(node).op,
            NodeOp::Input | NodeOp::State | NodeOp::Constant(_)
        )
    }

    fn copy_of(&mut self, node: NodeId) -> NodeId {
        self.nodes.push_and_get_key(Node {
            op: NodeOp::Map(Op::Copy),
            inputs: smallvec![node],
            dims: self.node(node).dims.clone(),
            dtype: self.node(node).dtype,
            name: String::new(),
        })
    }
}
