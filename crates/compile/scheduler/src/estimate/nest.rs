//! How often the loops of a tree run, and what becomes of them in code.

use loopwright_arena::{TiSlice, TiVec};
use loopwright_graph::{DimId, Graph, NodeId, NodeOp};
use loopwright_looptree::{Annotation, carries};
use loopwright_looptree::{LoopTree, TreeNode, TreeRef};
use smallvec::SmallVec;

/// More rounds than this are not written out, and more lanes than this are not made; see `lower`.
const MOST_COPIES: i64 = 64;

/// What a loop becomes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Form {
    /// A loop.
    Loop,
    /// A loop whose rounds run on several threads.
    Threads,
    /// Its rounds, one after the other.
    Copies,
    /// The lanes of vectors.
    Lanes,
}

/// A loop around a step.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Around {
    /// Where it is in the tree; `None` for the loops inside a sort or a scatter.
    pub(super) place: Option<TreeRef>,
    pub(super) dim: DimId,
    /// Rounds of one execution, tails included: the mean over all executions.
    pub(super) rounds: f64,
    pub(super) form: Form,
    /// Whether the step's rounds depend on one another.
    pub(super) carried: bool,
}

impl Around {
    /// Whether it is a loop in the code, too, that runs more than once.
    pub(super) fn is_loop(&self) -> bool {
        matches!(self.form, Form::Loop | Form::Threads) && self.rounds > 1.0
    }
}

/// The loops around a step, outermost first.
pub(super) type Chain = SmallVec<[Around; 8]>;

/// What is known of one loop of the tree.
#[derive(Clone, Debug)]
struct Fact {
    dim: DimId,
    rounds: f64,
    form: Form,
    /// The sizes of the blocks that its rounds cover, and how many there are of each in all.
    blocks: SmallVec<[(i64, f64); 2]>,
}

/// What the steps inside a loop allow.
#[derive(Clone, Copy, Default)]
struct Inside {
    steps: u32,
    carried: bool,
    no_lanes: bool,
    rows: bool,
}

/// What is known of all loops of a tree.
pub(super) struct Nests {
    facts: TiVec<TreeRef, Option<Fact>>,
    inside: TiVec<TreeRef, Inside>,
}

impl Nests {
    /// `sizes` has every dimension's size.
    pub(super) fn new(graph: &Graph, tree: &LoopTree, sizes: &TiSlice<DimId, i64>) -> Nests {
        let places = || (0..tree.len()).map(TreeRef::from);
        let mut inside: TiVec<TreeRef, _> = vec![Inside::default(); tree.len()].into();
        for place in places() {
            let TreeNode::Leaf(node) = tree.node(place) else {
                continue;
            };
            let mut above = tree.parent(place);
            while let Some(at) = above {
                let found = &mut inside[at];
                found.steps += 1;
                found.rows |= works_on_rows(graph, *node);
                if let Some(spec) = tree.spec(at) {
                    found.carried |= carries(graph, *node, spec.dim) || tree.is_sequential(at);
                    found.no_lanes |= !has_vector_form(graph, *node)
                        || !graph.node(*node).dims.contains(&spec.dim);
                }
                above = tree.parent(at);
            }
        }
        let mut facts: TiVec<TreeRef, Option<Fact>> = TiVec::with_capacity(tree.len());
        // A loop is entered into the tree before what is inside it.
        for place in places() {
            let Some(spec) = tree.spec(place) else {
                facts.push(None);
                continue;
            };
            let dim = spec.dim;
            let (mut outer, mut in_lanes) = (None, false);
            let mut above = tree.parent(place);
            while let Some(at) = above {
                if let Some(fact) = &facts[at] {
                    in_lanes |= fact.form == Form::Lanes;
                    if outer.is_none() && fact.dim == dim {
                        outer = Some((fact, tree.spec(at).map_or(1, |spec| spec.step)));
                    }
                }
                above = tree.parent(at);
            }
            let size = sizes[dim];
            let whole: [(i64, f64); 1] = [(size, 1.0)];
            let (covered, full, known) = match &outer {
                Some((fact, step)) => (&fact.blocks[..], (*step).min(size), true),
                None => (&whole[..], size, graph.dim(dim).size.as_const().is_some()),
            };
            let (blocks, rounds) = rounds_of(covered, spec.step);
            let allowed = inside[place];
            let form = match spec.annotation {
                Annotation::Unroll if known && full / spec.step <= MOST_COPIES => Form::Copies,
                Annotation::Vectorize
                    if known
                        && full <= MOST_COPIES
                        && spec.step == 1
                        && !in_lanes
                        && !allowed.carried
                        && !allowed.no_lanes =>
                {
                    Form::Lanes
                }
                Annotation::Parallel if !allowed.carried && !allowed.rows => Form::Threads,
                Annotation::Serial
                | Annotation::Unroll
                | Annotation::Vectorize
                | Annotation::Parallel
                | Annotation::Block
                | Annotation::Thread
                | Annotation::Warp
                | Annotation::Tile
                | Annotation::Prefetch => Form::Loop,
            };
            facts.push(Some(Fact {
                dim,
                rounds,
                form,
                blocks,
            }));
        }
        Nests { facts, inside }
    }

    /// The steps inside a loop.
    pub(super) fn steps_inside(&self, place: TreeRef) -> u32 {
        self.inside[place].steps
    }

    /// The loops around a step, with those that a sort or a scatter has inside it.
    pub(super) fn around(
        &self,
        graph: &Graph,
        tree: &LoopTree,
        leaf: TreeRef,
        node: NodeId,
        sizes: &TiSlice<DimId, i64>,
    ) -> Chain {
        let mut chain = Chain::new();
        for place in tree.ancestors(leaf) {
            if let Some(fact) = &self.facts[place] {
                chain.push(Around {
                    place: Some(place),
                    dim: fact.dim,
                    rounds: fact.rounds,
                    form: fact.form,
                    carried: carries(graph, node, fact.dim),
                });
            }
        }
        let parts = graph.node(node);
        let within: &[DimId] = match &parts.op {
            NodeOp::Sort { over, .. } | NodeOp::ArgSort { over, .. } => std::slice::from_ref(over),
            NodeOp::Scatter { .. } => &graph.node(parts.inputs[2]).dims,
            _ => &[],
        };
        for dim in within {
            chain.push(Around {
                place: None,
                dim: *dim,
                rounds: sizes[*dim] as f64,
                form: Form::Loop,
                carried: false,
            });
        }
        chain
    }
}

/// The blocks that a loop with a step makes of those that it covers, and how often it runs in each of
/// them, in the mean.
fn rounds_of(covered: &[(i64, f64)], step: i64) -> (SmallVec<[(i64, f64); 2]>, f64) {
    let mut blocks: SmallVec<[(i64, f64); 2]> = SmallVec::new();
    let mut add = |size: i64, count: f64| {
        if size == 0 || count == 0.0 {
            return;
        }
        match blocks.iter_mut().find(|(found, _)| *found == size) {
            Some(block) => block.1 += count,
            None => blocks.push((size, count)),
        }
    };
    for (size, count) in covered {
        add(step, (size / step) as f64 * count);
        add(size % step, *count);
    }
    let outside: f64 = covered.iter().map(|(_, count)| count).sum();
    let inside: f64 = blocks.iter().map(|(_, count)| count).sum();
    (blocks, if outside > 0.0 { inside / outside } else { 0.0 })
}

fn works_on_rows(graph: &Graph, node: NodeId) -> bool {
    matches!(
        graph.node(node).op,
        NodeOp::Sort { .. } | NodeOp::ArgSort { .. } | NodeOp::Scatter { .. }
    )
}

/// Whether lowering can compute a step in the lanes of vectors.
fn has_vector_form(graph: &Graph, node: NodeId) -> bool {
    matches!(
        graph.node(node).op,
        NodeOp::Map(_)
            | NodeOp::Cast
            | NodeOp::Bitcast
            | NodeOp::View(_)
            | NodeOp::Index(_)
            | NodeOp::Reduce { .. }
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_are_counted() {
        // 100 in blocks of 8: 12 full ones and one of 4.
        let (blocks, rounds) = rounds_of(&[(100, 1.0)], 8);
        assert_eq!(rounds, 13.0);
        assert_eq!(&blocks[..], &[(8, 12.0), (4, 1.0)]);
        // Of those in blocks of 3: 8 is 3, 3, 2, and 4 is 3, 1.
        let (blocks, rounds) = rounds_of(&blocks, 3);
        assert_eq!(rounds, (12.0 * 3.0 + 2.0) / 13.0);
        assert_eq!(&blocks[..], &[(3, 25.0), (2, 12.0), (1, 1.0)]);
        let (_, rounds) = rounds_of(&blocks, 1);
        assert_eq!(rounds, 100.0 / 38.0);
        assert_eq!(rounds_of(&[(0, 1.0)], 4).1, 0.0);
    }
}
