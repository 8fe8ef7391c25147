//! Loops over steps: what depends on itself one step back.
//!
//! In a graph, the steps of a loop are a dimension, and what is carried is read one step back along it. A loop that runs
//! from the last step to the first has a dimension of its own for that, which counts backwards: what is inside of it reads
//! everything outside of it from the end, and is read from the end.

use super::{Lowering, Value, connections};
use crate::node::{Kind, Tensor};
use crate::program::Program;
use crate::recurrence::{Carried, carried_by};
use loopwright_graph::{DimId, GraphError, NodeId, components};
use loopwright_ops::Scalar;
use loopwright_symbolic::Expr;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// The loops of a program.
pub(super) struct Loops {
    /// What they carry.
    pub(super) carried: Vec<Carried>,
    /// The node that reads each of them one step back, by the tensor that stands for it, and what its axes are there.
    nodes: FxHashMap<u64, (NodeId, SmallVec<[DimId; 4]>)>,
    /// By place in the program: the loop that a tensor is computed in, known by any number, and whether it runs from
    /// the last step to the first.
    member: Vec<Option<(usize, bool)>>,
    /// Dimensions that count backwards, with their sizes.
    pub(super) backwards: FxHashMap<DimId, Expr>,
}

impl Loops {
    pub(super) fn new(program: &Program<'_>) -> Loops {
        let order = program.order;
        let closed = order
            .iter()
            .enumerate()
            .filter(|(at, _)| !program.is_given(*at));
        let carried = carried_by(closed.map(|(_, tensor)| tensor));
        let mut loops = Loops {
            carried,
            nodes: FxHashMap::default(),
            member: vec![None; order.len()],
            backwards: FxHashMap::default(),
        };
        if loops.carried.is_empty() {
            return loops;
        }
        let at: FxHashMap<u64, usize> = (0..)
            .zip(order)
            .map(|(at, tensor)| (tensor.node.id, at))
            .collect();
        let next: FxHashMap<u64, usize> = loops
            .carried
            .iter()
            .map(|carried| (carried.previous.node.id, at[&carried.next.node.id]))
            .collect();
        let found = components(order.len(), |place, see| {
            let node = &order[place].node;
            if !program.is_given(place) {
                node.inputs.iter().for_each(|input| see(at[&input.node.id]));
                next.get(&node.id).into_iter().for_each(|next| see(*next));
            }
        });
        for (number, members) in found.into_iter().enumerate() {
            let reverse = members.iter().find_map(|member| {
                let node = &order[*member].node;
                let Kind::Previous { reverse, .. } = node.kind else {
                    return None;
                };
                let next = next.get(&node.id)?;
                members.contains(next).then_some(reverse)
            });
            let Some(reverse) = reverse else { continue };
            for member in members {
                loops.member[member] = Some((number, reverse));
            }
        }
        loops
    }
}

impl Lowering<'_> {
    /// Which axes of tensors run along with each other, among all axes.
    pub(super) fn links(&self, program: &Program<'_>) -> Vec<(usize, usize)> {
        let mut links = Vec::new();
        for (at, tensor) in self.order.iter().enumerate() {
            if program.is_given(at) {
                continue;
            }
            for (input, from, to) in connections(&tensor.node) {
                let from = self.slot(&tensor.node.inputs[input], from);
                links.push((from, self.slot(tensor, to)));
            }
        }
        links
    }

    /// The steps in what is carried and in what stands for it one step back.
    pub(super) fn tied(&self, carried: &Carried) -> (usize, usize) {
        let Kind::Previous { over, .. } = carried.previous.node.kind else {
            unreachable!("what is carried is read one step back")
        };
        (
            self.slot(&carried.next, over),
            self.slot(&carried.previous, over),
        )
    }

    /// By axis among all axes: whether it is the steps of a loop that its tensor is computed in, and whether these run
    /// from the last to the first.
    pub(super) fn steps_of_loops(&self, links: &[(usize, usize)]) -> (Vec<bool>, Vec<bool>) {
        let mut along = vec![false; self.sizes.len()];
        let mut backwards = vec![false; self.sizes.len()];
        if self.loops.carried.is_empty() {
            return (along, backwards);
        }
        let mut owner = vec![None; self.sizes.len()];
        for (at, tensor) in self.order.iter().enumerate() {
            owner[self.first[at]..self.first[at] + tensor.rank()].fill(self.loops.member[at]);
        }
        let mut neighbours: FxHashMap<usize, SmallVec<[usize; 4]>> = FxHashMap::default();
        for (from, to) in links {
            if owner[*from].is_some() && owner[*from] == owner[*to] {
                neighbours.entry(*from).or_default().push(*to);
                neighbours.entry(*to).or_default().push(*from);
            }
        }
        let starts = self.loops.carried.iter().flat_map(|carried| {
            let (next, previous) = self.tied(carried);
            [next, previous]
        });
        let mut open: Vec<usize> = starts.filter(|slot| owner[*slot].is_some()).collect();
        while let Some(slot) = open.pop() {
            if std::mem::replace(&mut along[slot], true) {
                continue;
            }
            backwards[slot] = owner[slot].is_some_and(|(_, reverse)| reverse);
            open.extend(neighbours.get(&slot).into_iter().flatten());
        }
        (along, backwards)
    }

    /// The position along an axis that is this dimension, over its index.
    pub(super) fn position(&self, dim: DimId) -> Result<Expr, GraphError> {
        let index = Expr::symbol(self.builder.index_symbol(dim));
        self.counted(dim, index)
    }

    /// The index of a dimension at a position along the axis that it is, and the other way round.
    pub(super) fn counted(&self, dim: DimId, position: Expr) -> Result<Expr, GraphError> {
        match self.loops.backwards.get(&dim) {
            Some(size) => Ok(size.sub(&Expr::constant(1))?.sub(&position)?),
            None => Ok(position),
        }
    }

    /// What a loop carries, one step back.
    pub(super) fn previous(
        &mut self,
        at: usize,
        over: usize,
        reverse: bool,
    ) -> Result<Value, GraphError> {
        let tensor = &self.order[at];
        let id = tensor.node.id;
        let mut carried = self.loops.carried.iter();
        let Some(carried) = carried.find(|carried| carried.previous.node.id == id) else {
            return Err(GraphError::Recurrence {
                node: "scan".to_owned(),
                reason: "a tensor of a step is used outside of it".to_owned(),
            });
        };
        let (next, zero) = (carried.next.clone(), Scalar::zero(tensor.dtype()));
        let mut dims = SmallVec::<[DimId; 4]>::from_slice(self.own_dims(&next));
        // What is carried and does not depend on itself is not computed in the order of the steps.
        if self.loops.backwards.contains_key(&dims[over]) != reverse {
            let size = self.sizes[self.slot(&next, over)].clone();
            dims[over] = self.new_dim(None, size.clone())?;
            if reverse {
                self.loops.backwards.insert(dims[over], size);
            }
        }
        let node = self.builder.previous(&dims, dims[over], zero)?;
        let value = self.over(node, &dims);
        self.loops.nodes.insert(id, (node, dims));
        Ok(value)
    }

    /// Says what is read one step back, when all that can be is there.
    pub(super) fn close_loops(&mut self) -> Result<(), GraphError> {
        let carried: Vec<(NodeId, SmallVec<[DimId; 4]>, Tensor)> = self
            .loops
            .carried
            .iter()
            .filter_map(|carried| {
                let (node, dims) = self.loops.nodes.get(&carried.previous.node.id)?;
                Some((*node, dims.clone(), carried.next.clone()))
            })
            .collect();
        for (node, dims, next) in carried {
            let value = self.value(&next);
            let of = self.exact(&value, &dims)?;
            self.builder.close_previous(node, of)?;
        }
        Ok(())
    }
}
