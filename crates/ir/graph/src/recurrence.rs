//! Recurrences: nodes whose elements along a dimension follow from those before.
//!
//! `previous[t](h)` reads `h` one step back along `t`, and `h` may be made of it: that is the only way in which a node
//! of a graph can depend on itself. The nodes on such a cycle are a *recurrence*; they are computed together, one
//! index along the dimension after the other.

use crate::error::GraphError;
use crate::ir::{DimId, Graph, NodeId, NodeOp};
use loopwright_symbolic::Expr;

/// Nodes that are computed together, one index along a dimension after the other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Recurrence {
    /// The dimension.
    pub over: DimId,
    /// The nodes, by number.
    pub members: Vec<NodeId>,
}

/// A node that reads another one step back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Delay {
    /// The node.
    pub node: NodeId,
    /// What it reads.
    pub of: NodeId,
    /// The dimension.
    pub over: DimId,
}

impl Graph {
    /// The nodes that read another one step back, in order.
    pub fn delays(&self) -> impl Iterator<Item = Delay> + '_ {
        self.node_ids().filter_map(|node| match self.node(node).op {
            NodeOp::Previous { of, over, .. } => Some(Delay { node, of, over }),
            _ => None,
        })
    }

    /// The recurrences, each after those that it reads.
    pub fn recurrences(&self) -> Vec<Recurrence> {
        if self.delays().next().is_none() {
            return Vec::new();
        }
        let ordered = self.ordered_components().into_iter();
        ordered
            .filter_map(|members| self.recurrence_of(members))
            .collect()
    }

    /// The nodes in an order in which they can be computed; those of a recurrence together, by number.
    pub fn ordered_components(&self) -> Vec<Vec<NodeId>> {
        let found = components(self.nodes.len(), |at, see| {
            let node = &self.nodes[NodeId::from(at)];
            node.inputs.iter().for_each(|input| see((*input).into()));
            if let NodeOp::Previous { of, .. } = node.op {
                see(of.into());
            }
        });
        let ids = |members: Vec<usize>| members.into_iter().map(NodeId::from).collect();
        found.into_iter().map(ids).collect()
    }

    /// The recurrence that a component is, if it is one.
    pub(crate) fn recurrence_of(&self, members: Vec<NodeId>) -> Option<Recurrence> {
        let over = members.iter().find_map(|member| {
            let NodeOp::Previous { of, over, .. } = self.node(*member).op else {
                return None;
            };
            members.contains(&of).then_some(over)
        })?;
        Some(Recurrence { over, members })
    }

    /// Checks that everything that reads another node one step back fits it, and that what depends on itself does so
    /// along one dimension only, which all that is on the way leaves as it is.
    pub(crate) fn check_recurrences(&self) -> Result<(), (NodeId, GraphError)> {
        for delay in self.delays() {
            let refuse = |reason: String| Err((delay.node, self.refused(delay.node, reason)));
            let Some(of) = self.nodes.get(delay.of) else {
                return refuse("what it reads is not said".to_owned());
            };
            let node = self.node(delay.node);
            if of.dtype != node.dtype || of.dims != node.dims {
                let dims = |dims: &[DimId]| {
                    let names = dims.iter().map(|dim| self.dim(*dim).name.as_str());
                    names.collect::<Vec<_>>().join(", ")
                };
                return refuse(format!(
                    "it is {}[{}], and what it reads is {}[{}]",
                    node.dtype,
                    dims(&node.dims),
                    of.dtype,
                    dims(&of.dims)
                ));
            }
        }
        for recurrence in self.recurrences() {
            for member in &recurrence.members {
                if let Some(reason) = self.why_not_in_step(*member, &recurrence) {
                    return Err((*member, self.refused(*member, reason)));
                }
            }
        }
        Ok(())
    }

    fn refused(&self, node: NodeId, reason: String) -> GraphError {
        GraphError::Recurrence {
            node: self.node_name(node),
            reason,
        }
    }

    /// Why a node on the way of a recurrence cannot be computed one index after the other.
    fn why_not_in_step(&self, member: NodeId, recurrence: &Recurrence) -> Option<String> {
        let over = recurrence.over;
        let name = &self.dim(over).name;
        let node = self.node(member);
        if !node.dims.contains(&over) {
            return Some(format!(
                "it depends on itself along `{name}`, and does not have this dimension"
            ));
        }
        let at_once = || {
            Some(format!(
                "it depends on itself along `{name}`, and needs all elements along it at once"
            ))
        };
        match &node.op {
            NodeOp::Previous { over: other, .. } if *other != over => Some(format!(
                "it depends on itself along `{name}` and along `{}`; a recurrence runs along one dimension",
                self.dim(*other).name
            )),
            NodeOp::Reduce { over: folded, .. } if folded.contains(&over) => at_once(),
            NodeOp::ArgReduce { over: along, .. }
            | NodeOp::Scan { over: along, .. }
            | NodeOp::Sort { over: along, .. }
            | NodeOp::ArgSort { over: along, .. }
                if *along == over =>
            {
                at_once()
            }
            NodeOp::Gather { axis, .. } if *axis == over => at_once(),
            NodeOp::Scatter { .. } => at_once(),
            NodeOp::View(view) => {
                let index = Expr::symbol(self.dim(over).index);
                let input = &self.node(node.inputs[0]).dims;
                let mut along = input.iter().zip(&view.map);
                let kept = along.all(|(dim, at)| match *dim == over {
                    true => *at == index,
                    false => !at.contains(self.dim(over).index),
                });
                let mut conditions = view.constraints.iter();
                let free = conditions.all(|when| !when.contains(self.dim(over).index));
                match kept && free {
                    true => None,
                    false => at_once(),
                }
            }
            _ => None,
        }
    }
}

/// The strongly connected components of a graph, each after those that its members point to, its members in rising
/// order. `edges` shows where a node points to.
pub fn components(
    count: usize,
    mut edges: impl FnMut(usize, &mut dyn FnMut(usize)),
) -> Vec<Vec<usize>> {
    const UNSEEN: usize = usize::MAX;
    // Tarjan's algorithm, with a stack of its own: graphs are deep.
    let (mut number, mut low) = (vec![UNSEEN; count], vec![0; count]);
    let mut waiting = vec![false; count];
    let (mut path, mut found) = (Vec::new(), Vec::new());
    let mut next = 0;
    for root in 0..count {
        if number[root] != UNSEEN {
            continue;
        }
        let mut open: Vec<(usize, Vec<usize>)> = Vec::new();
        let mut enter = |node: usize, open: &mut Vec<(usize, Vec<usize>)>| {
            let mut to = Vec::new();
            edges(node, &mut |other| to.push(other));
            to.reverse();
            open.push((node, to));
        };
        enter(root, &mut open);
        (number[root], low[root]) = (next, next);
        next += 1;
        path.push(root);
        waiting[root] = true;
        while let Some((node, to)) = open.last_mut() {
            let node = *node;
            match to.pop() {
                Some(other) if number[other] == UNSEEN => {
                    (number[other], low[other]) = (next, next);
                    next += 1;
                    path.push(other);
                    waiting[other] = true;
                    enter(other, &mut open);
                }
                Some(other) => {
                    if waiting[other] {
                        low[node] = low[node].min(number[other]);
                    }
                }
                None => {
                    open.pop();
                    if let Some((before, _)) = open.last() {
                        low[*before] = low[*before].min(low[node]);
                    }
                    if low[node] == number[node] {
                        let from = path.iter().rposition(|member| *member == node);
                        let mut members = path.split_off(from.unwrap_or(0));
                        members.iter().for_each(|member| waiting[*member] = false);
                        members.sort_unstable();
                        found.push(members);
                    }
                }
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::components;

    #[test]
    fn components_come_after_what_they_point_to() {
        // 0 -> 1 -> 2 -> 1, 3 -> 0, 4 -> 4.
        let edges = [vec![1], vec![2], vec![1], vec![0], vec![4]];
        let found = components(5, |at, see| edges[at].iter().for_each(|to| see(*to)));
        assert_eq!(found, [vec![1, 2], vec![0], vec![3], vec![4]]);
    }
}
