//! Changing schedules: one small, checked change at a time.
//!
//! A [`Mutation`] is a value; [`mutate`] applies it to a schedule and gives a new one. It keeps what the
//! program computes, or is refused with the dependence that it would break. The old schedule is not
//! touched, so undo is keeping it. A [`Cursor`] at a loop or a step follows it through a change by
//! [`Mutated::follow`]. [`legal`] lists the changes that can be made, for editors and searches.
//!
//! The loops that a mutation names are those of one step. Steps share loops that are equal, so a change to
//! one of them alone ends the sharing from there on; [`for_sharers`] says the change for all of them.

mod annotate;
mod cursor;
mod edits;
mod error;
mod legal;
mod order;
mod presets;
mod repeat;
mod rounding;
mod share;
mod split;
mod steps;

pub use cursor::Cursor;
pub(crate) use edits::{edits_of, legal_edits};
pub use error::MutationError;
pub use legal::legal;
pub(crate) use legal::legal_of;
pub use presets::{maximise_reuse, unroll_inner};
pub use rounding::reassociated;
pub use share::for_sharers;

use crate::schedule::{Annotation, LoopName, LoopSpec, NodeSchedule, Schedule};
use crate::text::print_mutation;
use crate::tree::LoopTree;
use loopwright_graph::{DimId, Graph, Keep, NodeId};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::sync::Arc;

/// A change to a schedule. [`crate::print_mutation`] and [`crate::parse_mutation`] are its text form, one
/// line, which stands first in each comment here.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Mutation {
    /// `split C i 8`: the loop becomes two, `i/8` and `i`, the inner of which runs `factor` times. A factor
    /// that does not divide leaves a tail. A parallel loop's annotation goes to the outer one, others to
    /// the inner. Where the loop may be shared, both may.
    Split {
        /// The step.
        node: NodeId,
        /// Its loop.
        name: LoopName,
        /// Rounds of the inner loop, at least 2.
        factor: i64,
    },
    /// `merge C i/8`: the loop and the next one over the same dimension become one, which stands where the
    /// outer stood and has the step of the inner. It undoes a split.
    Merge {
        /// The step.
        node: NodeId,
        /// The outer of its two loops.
        name: LoopName,
    },
    /// `swap C i j`: the loop and the one right inside it change places.
    Swap {
        /// The step.
        node: NodeId,
        /// Its loop that is further out now.
        outer: LoopName,
        /// The loop right inside it.
        inner: LoopName,
    },
    /// `reorder C k, i, j`: all loops of the step, in a new order.
    Reorder {
        /// The step.
        node: NodeId,
        /// Each of its loops once, outermost first.
        loops: SmallVec<[LoopName; 8]>,
    },
    /// `fuse C`: one more loop is shared with the step before.
    Fuse {
        /// The step.
        node: NodeId,
    },
    /// `unfuse C`: one loop less is shared with the step before.
    Unfuse {
        /// The step.
        node: NodeId,
    },
    /// `move C before D`: another place in the order of the steps.
    MoveBefore {
        /// The step.
        node: NodeId,
        /// The step that comes right after it then.
        other: NodeId,
    },
    /// `move C after D`: another place in the order of the steps.
    MoveAfter {
        /// The step.
        node: NodeId,
        /// The step that comes right before it then.
        other: NodeId,
    },
    /// `inline C`: the step is computed where it is read, each time, and stored no more.
    Inline {
        /// The step.
        node: NodeId,
    },
    /// `store C` or `store C: i, j/8, j`: an inline node becomes a step, right before its first reader.
    Store {
        /// The node.
        node: NodeId,
        /// Its loops; `None`: those of the first reader as far as it has them, so that they are shared.
        loops: Option<SmallVec<[LoopSpec; 8]>>,
    },
    /// `annotate C i parallel`: how the iterations of a loop run. What a backend cannot do stays a plain
    /// loop, which lowering reports; only what would change values is refused.
    Annotate {
        /// The step.
        node: NodeId,
        /// Its loop.
        name: LoopName,
        /// How the iterations run.
        annotation: Annotation,
    },
    /// `add C 0: n/8`: one more loop, over a dimension that the step does not have. It is computed anew in each of
    /// its iterations, so that it can be inside a loop of its readers, and only what they need there is held.
    AddLoop {
        /// The step.
        node: NodeId,
        /// The loop.
        spec: LoopSpec,
        /// How many of the step's loops are around it.
        depth: usize,
    },
    /// `remove C n/8`: a loop over a dimension that the step does not have is taken away.
    RemoveLoop {
        /// The step.
        node: NodeId,
        /// Its loop.
        name: LoopName,
    },
    /// `compute C at D j/16`: the step comes to stand right before a reader and inside the reader's loops, down to
    /// the one named; there it computes what the iteration needs.
    ComputeAt {
        /// The step.
        node: NodeId,
        /// The step that reads it.
        reader: NodeId,
        /// A loop of the reader.
        name: LoopName,
    },
    /// `layout C [j, i/8, i]`: the order in which the elements lie in memory, as that of loops over them. `layout C`
    /// makes it row-major again.
    Layout {
        /// The step.
        node: NodeId,
        /// The order; `None`: row-major over the dimensions.
        layout: Option<SmallVec<[LoopName; 4]>>,
    },
    /// `copy B for C as panel`: a step reads a copy of an array, which becomes a step of its own.
    Copy {
        /// The step that reads.
        node: NodeId,
        /// What it reads: given from outside, or another step.
        of: NodeId,
        /// The copy's name.
        name: Arc<str>,
    },
    /// `uncopy panel`: readers of a copy read what it is a copy of.
    Uncopy {
        /// The copy.
        node: NodeId,
    },
    /// `pad %3 for C as padded`: a view that a step reads and that may leave its input reads an array that has the
    /// values outside in it, which becomes a step of its own.
    Pad {
        /// The step that reads.
        node: NodeId,
        /// The view.
        view: NodeId,
        /// The array's name.
        name: Arc<str>,
    },
    /// `stage C k lanes 16 as part`: a reduction in two stages.
    Stage {
        /// The reduction.
        node: NodeId,
        /// The dimension that the first stage keeps a part of.
        dim: DimId,
        /// How many lanes, or elements of a block.
        count: i64,
        /// What is kept.
        keep: Keep,
        /// The name of the first stage.
        name: Arc<str>,
    },
    /// `delegate C interp`: the step is handed to another backend.
    Delegate {
        /// The step.
        node: NodeId,
        /// The backend's name.
        backend: Arc<str>,
    },
    /// `undelegate C`: the step belongs to the program's own backend again.
    Undelegate {
        /// The step.
        node: NodeId,
    },
}

impl Mutation {
    /// The step that changes.
    pub fn node(&self) -> NodeId {
        match self {
            Mutation::Split { node, .. }
            | Mutation::Merge { node, .. }
            | Mutation::Swap { node, .. }
            | Mutation::Reorder { node, .. }
            | Mutation::Fuse { node }
            | Mutation::Unfuse { node }
            | Mutation::MoveBefore { node, .. }
            | Mutation::MoveAfter { node, .. }
            | Mutation::Inline { node }
            | Mutation::Store { node, .. }
            | Mutation::Annotate { node, .. }
            | Mutation::AddLoop { node, .. }
            | Mutation::RemoveLoop { node, .. }
            | Mutation::ComputeAt { node, .. }
            | Mutation::Layout { node, .. }
            | Mutation::Copy { node, .. }
            | Mutation::Uncopy { node }
            | Mutation::Pad { node, .. }
            | Mutation::Stage { node, .. }
            | Mutation::Delegate { node, .. }
            | Mutation::Undelegate { node } => *node,
        }
    }

    /// Whether every node and dimension that it names is one of the graph.
    pub(crate) fn belongs_to(&self, graph: &Graph) -> bool {
        let node = |node: &NodeId| usize::from(*node) < graph.node_ids().count();
        let dim = |dim: DimId| usize::from(dim) < graph.dims().len();
        node(&self.node())
            && match self {
                Mutation::Split { name, .. }
                | Mutation::Merge { name, .. }
                | Mutation::RemoveLoop { name, .. }
                | Mutation::Annotate { name, .. } => dim(name.dim),
                Mutation::AddLoop { spec, .. } => dim(spec.dim),
                Mutation::ComputeAt { reader, name, .. } => node(reader) && dim(name.dim),
                Mutation::Layout { layout, .. } => {
                    layout.iter().flatten().all(|name| dim(name.dim))
                }
                Mutation::Copy { of, .. } => node(of),
                Mutation::Pad { view, .. } => node(view),
                Mutation::Stage { dim: staged, .. } => dim(*staged),
                Mutation::Swap { outer, inner, .. } => dim(outer.dim) && dim(inner.dim),
                Mutation::Reorder { loops, .. } => loops.iter().all(|name| dim(name.dim)),
                Mutation::Store { loops, .. } => loops.iter().flatten().all(|spec| dim(spec.dim)),
                Mutation::MoveBefore { other, .. } | Mutation::MoveAfter { other, .. } => {
                    node(other)
                }
                Mutation::Fuse { .. }
                | Mutation::Unfuse { .. }
                | Mutation::Inline { .. }
                | Mutation::Uncopy { .. }
                | Mutation::Delegate { .. }
                | Mutation::Undelegate { .. } => true,
            }
    }
}

/// A schedule that was changed.
#[derive(Clone, PartialEq, Debug)]
pub struct Mutated {
    /// The new schedule.
    pub schedule: Schedule,
    /// Whether a reduction over floats is folded in another order than before, which changes how it
    /// rounds. Strict mode does not allow that; [`reassociated`] says where a schedule stands.
    pub reassociates: bool,
    pub(crate) moved: Moved,
}

impl Mutated {
    /// Where a cursor into the old schedule is in the new one; `None` where its step has become inline,
    /// and for a cursor that was at no place.
    pub fn follow(&self, cursor: Cursor) -> Option<Cursor> {
        let depth = match self.moved.get(&cursor.node) {
            Some(depths) => *depths.get(cursor.depth)?,
            None => cursor.depth,
        };
        let step = self.schedule.step(cursor.node)?;
        (depth <= step.loops.len()).then_some(Cursor { depth, ..cursor })
    }
}

/// By step whose loops changed: for each depth before, the leaf's included, the depth after.
pub(crate) type Moved = FxHashMap<NodeId, SmallVec<[usize; 8]>>;

/// What a mutation makes, before the checks that concern the whole schedule.
struct Change {
    schedule: Schedule,
    moved: Moved,
}

impl Change {
    /// A change that leaves every step's loops where they are.
    fn in_place(schedule: Schedule) -> Change {
        Change {
            schedule,
            moved: Moved::default(),
        }
    }

    /// New loops for a step.
    fn of_loops(schedule: &Schedule, at: usize, new: NewLoops) -> Change {
        let mut schedule = schedule.clone();
        let step = &mut schedule.steps[at];
        let mut depths = new.depths;
        depths.push(new.loops.len());
        step.loops = new.loops;
        step.share = new.share;
        let moved = [(step.node, depths)].into_iter().collect();
        Change { schedule, moved }
    }
}

/// Other loops for a step.
struct NewLoops {
    loops: SmallVec<[LoopSpec; 8]>,
    /// For each of the old loops, its depth among the new ones.
    depths: SmallVec<[usize; 8]>,
    /// How many of them may be shared.
    share: Option<u32>,
}

/// Applies a change to a schedule. Changes that make new nodes are [`crate::Plan`]'s.
///
/// # Errors
/// What does not fit the schedule, and what would change a value.
///
/// ```
/// use loopwright_graph::parse;
/// use loopwright_looptree::{mutate, parse_mutation, parse_schedule, print_schedule};
/// use loopwright_text::Source;
///
/// let program = "loopwright program 1
/// input A: f32[i=64, k=32]
/// input B: f32[k, j=48]
/// output C = sum[k](A * B)
/// ";
/// let graph = parse(&Source::new("product.lw", program)).unwrap().with_stores();
/// let text = "loopwright schedule 1\nC: i, j, k\n";
/// let mut schedule = parse_schedule(&Source::new("product.sched", text), &graph).unwrap();
/// for line in ["split C j 16", "swap C j k", "annotate C j vectorize"] {
///     let mutation = parse_mutation(&Source::new("edit", line), &graph).unwrap();
///     schedule = mutate(&graph, &schedule, &mutation)?.schedule;
/// }
/// assert_eq!(
///     print_schedule(&graph, &schedule),
///     "loopwright schedule 1\nC: i, j/16, k, j vectorize\n"
/// );
/// let mutation = parse_mutation(&Source::new("edit", "annotate C k parallel"), &graph).unwrap();
/// let error = mutate(&graph, &schedule, &mutation).unwrap_err();
/// assert!(error.to_string().contains("each iteration needs the one before"));
/// # Ok::<(), loopwright_looptree::MutationError>(())
/// ```
pub fn mutate(
    graph: &Graph,
    schedule: &Schedule,
    mutation: &Mutation,
) -> Result<Mutated, MutationError> {
    let change = change(graph, schedule, mutation)?;
    if let Err(error) = LoopTree::new(graph, &change.schedule) {
        return Err(MutationError::Refused {
            mutation: print_mutation(graph, mutation),
            error,
        });
    }
    Ok(Mutated {
        reassociates: rounding::reassociates(graph, schedule, &change.schedule),
        schedule: change.schedule,
        moved: change.moved,
    })
}

/// What a mutation makes. All that can be wrong with the loops of one step is found here; what concerns
/// several steps is found when the tree is derived.
fn change(
    graph: &Graph,
    schedule: &Schedule,
    mutation: &Mutation,
) -> Result<Change, MutationError> {
    if !mutation.belongs_to(graph) {
        return Err(MutationError::OtherGraph);
    }
    let node = mutation.node();
    let step = || position(graph, schedule, node);
    let of_loops = |new: &dyn Fn(&NodeSchedule) -> Result<NewLoops, MutationError>| {
        let at = step()?;
        let new = new(&schedule.steps[at])?;
        Ok(Change::of_loops(schedule, at, new))
    };
    match mutation {
        Mutation::Split { name, factor, .. } => {
            of_loops(&|step| split::split(graph, step, *name, *factor))
        }
        Mutation::Merge { name, .. } => of_loops(&|step| split::merge(graph, step, *name)),
        Mutation::Swap { outer, inner, .. } => {
            of_loops(&|step| order::swap(graph, step, *outer, *inner))
        }
        Mutation::Reorder { loops, .. } => of_loops(&|step| order::reorder(graph, step, loops)),
        Mutation::Annotate {
            name, annotation, ..
        } => of_loops(&|step| annotate::annotate(graph, step, *name, *annotation)),
        Mutation::Fuse { .. } => share::fuse(graph, schedule, step()?),
        Mutation::Unfuse { .. } => share::unfuse(graph, schedule, step()?),
        Mutation::MoveBefore { other, .. } => {
            let other = position(graph, schedule, *other)?;
            steps::move_to(graph, schedule, step()?, other)
        }
        Mutation::MoveAfter { other, .. } => {
            let other = position(graph, schedule, *other)?;
            steps::move_to(graph, schedule, step()?, other + 1)
        }
        Mutation::Inline { .. } => steps::inline(graph, schedule, step()?),
        Mutation::Store { loops, .. } => steps::store(graph, schedule, node, loops.as_deref()),
        Mutation::AddLoop { spec, depth, .. } => {
            of_loops(&|step| repeat::add(graph, step, *spec, *depth))
        }
        Mutation::RemoveLoop { name, .. } => of_loops(&|step| repeat::remove(graph, step, *name)),
        Mutation::ComputeAt { reader, name, .. } => {
            repeat::compute_at(graph, schedule, node, *reader, *name)
        }
        Mutation::Layout { layout, .. } => {
            let at = step()?;
            if schedule.steps[at].layout == *layout {
                return Err(MutationError::Unchanged {
                    node: graph.node_name(node),
                    why: "it lies so already".to_owned(),
                });
            }
            let mut schedule = schedule.clone();
            schedule.steps[at].layout = layout.clone();
            Ok(Change::in_place(schedule))
        }
        Mutation::Copy { .. }
        | Mutation::Uncopy { .. }
        | Mutation::Pad { .. }
        | Mutation::Stage { .. } => Err(MutationError::NeedsPlan),
        Mutation::Delegate { backend, .. } => {
            annotate::delegate(graph, schedule, step()?, Some(backend))
        }
        Mutation::Undelegate { .. } => annotate::delegate(graph, schedule, step()?, None),
    }
}

/// Where a node's step stands.
fn position(graph: &Graph, schedule: &Schedule, node: NodeId) -> Result<usize, MutationError> {
    let place = schedule.steps.iter().position(|step| step.node == node);
    place.ok_or_else(|| MutationError::NotAStep {
        node: graph.node_name(node),
    })
}

/// The depth of a loop of a step.
fn depth(graph: &Graph, step: &NodeSchedule, name: LoopName) -> Result<usize, MutationError> {
    let place = step
        .loops
        .iter()
        .position(|spec| LoopName::from(*spec) == name);
    place.ok_or_else(|| MutationError::NoLoop {
        node: graph.node_name(step.node),
        name: loop_text(graph, name),
        loops: loops_text(graph, step.loops.iter().map(|spec| (*spec).into())),
    })
}

/// A loop as it is written: `i/8`.
fn loop_text(graph: &Graph, name: LoopName) -> String {
    let dim = &graph.dim(name.dim).name;
    match name.step {
        1 => dim.clone(),
        step => format!("{dim}/{step}"),
    }
}

/// Loops as they are written: `i/8, j, i`.
fn loops_text(graph: &Graph, names: impl Iterator<Item = LoopName>) -> String {
    let names: Vec<String> = names.map(|name| loop_text(graph, name)).collect();
    match names.as_slice() {
        [] => "none".to_owned(),
        names => names.join(", "),
    }
}
