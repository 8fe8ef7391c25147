//! Dropping what no result needs.

use crate::ir::{Graph, NodeId, NodeOp};
use loopwright_arena::TiVec;

impl Graph {
    /// The graph without nodes that no output and no update reads. Inputs and states stay: they are
    /// the program's parameters.
    pub fn without_dead_nodes(mut self) -> Graph {
        let mut live: TiVec<NodeId, _> = vec![false; self.nodes.len()].into();
        for output in &self.outputs {
            live[output.node] = true;
        }
        for update in &self.updates {
            live[update.value] = true;
        }
        let mut again = true;
        while std::mem::take(&mut again) {
            for node in self.node_ids().rev() {
                let parts = self.node(node);
                live[node] |= matches!(parts.op, NodeOp::Input | NodeOp::State);
                if !live[node] {
                    continue;
                }
                for input in &parts.inputs {
                    live[*input] = true;
                }
                // What is read one step back comes later, so that it has been passed by.
                if let NodeOp::Previous { of, .. } = parts.op {
                    again |= !std::mem::replace(&mut live[of], true);
                }
            }
        }
        if live.iter().all(|live| *live) {
            return self;
        }
        let mut next = 0u32;
        let moved: TiVec<NodeId, NodeId> = live
            .iter()
            .map(|live| {
                let node = NodeId(next);
                next += u32::from(*live);
                node
            })
            .collect();
        let mut keep = live.iter();
        self.nodes.retain(|_| keep.next().copied().unwrap_or(false));
        let of = |node: NodeId| moved[node];
        for node in &mut self.nodes {
            for input in &mut node.inputs {
                *input = of(*input);
            }
            if let NodeOp::Previous { of: delayed, .. } = &mut node.op {
                *delayed = of(*delayed);
            }
        }
        for output in &mut self.outputs {
            output.node = of(output.node);
        }
        for update in &mut self.updates {
            update.state = of(update.state);
            update.value = of(update.value);
        }
        self
    }
}
