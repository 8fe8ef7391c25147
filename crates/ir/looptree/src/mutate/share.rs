//! How many loops a step shares with the one before it.

use super::{Change, Mutation, MutationError, depth, loop_text, position};
use crate::error::ScheduleError;
use crate::schedule::{LoopSpec, Schedule, carries};
use crate::tree::{LoopTree, Reads, TreeRef};
use loopwright_graph::{DimId, Graph, NodeId};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// What is shared in a schedule, and why not more.
pub(super) struct Sharing<'a> {
    graph: &'a Graph,
    schedule: &'a Schedule,
    tree: LoopTree,
    leaves: FxHashMap<NodeId, TreeRef>,
    pub(super) reads: Reads,
}

impl<'a> Sharing<'a> {
    pub(super) fn new(
        graph: &'a Graph,
        schedule: &'a Schedule,
    ) -> Result<Sharing<'a>, ScheduleError> {
        Sharing::of_tree(graph, schedule, LoopTree::new(graph, schedule)?)
    }

    /// The same where the tree is known.
    pub(super) fn of_tree(
        graph: &'a Graph,
        schedule: &'a Schedule,
        tree: LoopTree,
    ) -> Result<Sharing<'a>, ScheduleError> {
        Ok(Sharing {
            graph,
            schedule,
            leaves: tree.leaf_places(),
            tree,
            reads: Reads::new(graph, schedule)?,
        })
    }

    /// The loops around a step, outermost first.
    fn around(&self, at: usize) -> SmallVec<[TreeRef; 8]> {
        let leaf = self.leaves.get(&self.schedule.steps[at].node);
        leaf.map(|leaf| self.tree.ancestors(*leaf))
            .unwrap_or_default()
    }

    /// How many loops a step shares with the one before it.
    pub(super) fn shared(&self, at: usize) -> usize {
        let Some(before) = at.checked_sub(1) else {
            return 0;
        };
        let (own, other) = (self.around(at), self.around(before));
        let common = own
            .iter()
            .zip(&other)
            .take_while(|(own, other)| own == other);
        common.count()
    }

    /// How many loops a step shares where it shares one more than now.
    pub(super) fn one_more(&self, at: usize) -> Result<usize, MutationError> {
        let (graph, schedule) = (self.graph, self.schedule);
        let step = &schedule.steps[at];
        let node = || graph.node_name(step.node);
        let nothing = |why: String| MutationError::NothingToShare { node: node(), why };
        let Some(before) = at.checked_sub(1) else {
            return Err(nothing("it is the first step".to_owned()));
        };
        let other = || graph.node_name(schedule.steps[before].node);
        let shared = self.shared(at);
        let Some(own) = step.loops.get(shared) else {
            let why = format!("all its loops are shared with `{}`", other());
            return Err(nothing(why));
        };
        if step.delegate != schedule.steps[before].delegate {
            let why = format!("`{}`, the step before it, runs on another backend", other());
            return Err(nothing(why));
        }
        let place = self.around(before).get(shared).copied();
        let Some((place, spec)) = place.and_then(|place| Some((place, self.tree.spec(place)?)))
        else {
            let why = format!("`{}`, the step before it, has no further loop", other());
            return Err(nothing(why));
        };
        if own != spec {
            let text = |spec: &LoopSpec| {
                let name = loop_text(graph, (*spec).into());
                format!("`{name}` ({})", spec.annotation.name())
            };
            let why = format!(
                "its next loop is {}, and that of `{}`, the step before it, is {}; make them equal first",
                text(own),
                other(),
                text(spec)
            );
            return Err(nothing(why));
        }
        let blocker = self
            .reads
            .blocks_sharing(graph, &self.tree, &self.leaves, place, step.node);
        if let Some(blocker) = blocker {
            return Err(MutationError::Dependence {
                node: node(),
                name: loop_text(graph, (*own).into()),
                other: graph.node_name(blocker),
                why: dependence(graph, &self.reads, step.node, blocker, own.dim),
            });
        }
        Ok(shared + 1)
    }
}

/// What is shared in a schedule, for a change to one step of it.
fn sharing<'a>(
    graph: &'a Graph,
    schedule: &'a Schedule,
    at: usize,
) -> Result<Sharing<'a>, MutationError> {
    Sharing::new(graph, schedule).map_err(|error| MutationError::NothingToShare {
        node: graph.node_name(schedule.steps[at].node),
        why: format!("the schedule is none: {error}"),
    })
}

fn with_share(schedule: &Schedule, at: usize, share: usize) -> Change {
    let mut schedule = schedule.clone();
    schedule.steps[at].share = Some(u32::try_from(share).unwrap_or(u32::MAX));
    Change::in_place(schedule)
}

pub(super) fn fuse(graph: &Graph, schedule: &Schedule, at: usize) -> Result<Change, MutationError> {
    let share = sharing(graph, schedule, at)?.one_more(at)?;
    Ok(with_share(schedule, at, share))
}

pub(super) fn unfuse(
    graph: &Graph,
    schedule: &Schedule,
    at: usize,
) -> Result<Change, MutationError> {
    match sharing(graph, schedule, at)?.shared(at) {
        0 => Err(MutationError::NothingShared {
            node: graph.node_name(schedule.steps[at].node),
        }),
        shared => Ok(with_share(schedule, at, shared - 1)),
    }
}

/// What keeps a step out of a loop over `dim` that `blocker` is in.
fn dependence(graph: &Graph, reads: &Reads, step: NodeId, blocker: NodeId, dim: DimId) -> String {
    let dim_name = &graph.dim(dim).name;
    let other = graph.node_name(blocker);
    let mut own = reads.of(step).iter().filter(|read| read.node == blocker);
    if carries(graph, blocker, dim) && own.clone().next().is_some() {
        return format!("it reads `{other}`, whose values are final only after the loop");
    }
    if own.any(|read| !read.is_identity(graph, dim)) {
        return format!("it reads `{other}` at other places of `{dim_name}` than its own");
    }
    let overwritten = |node: NodeId| {
        let mut updates = graph.updates().iter();
        updates
            .find(|update| update.value == node)
            .map(|update| update.state)
    };
    let elsewhere = |state: NodeId, reader: NodeId| {
        let mut reads = reads.of(reader).iter();
        reads.any(|read| read.node == state && !read.is_identity(graph, dim))
    };
    match overwritten(step) {
        Some(state) if elsewhere(state, blocker) => format!(
            "it overwrites state `{}`, which `{other}` reads at other places of `{dim_name}`",
            graph.node_name(state)
        ),
        _ => {
            let state = overwritten(blocker).map(|state| graph.node_name(state));
            format!(
                "it reads state `{}` at other places of `{dim_name}` than `{other}` overwrites",
                state.unwrap_or_default()
            )
        }
    }
}

/// A mutation of a loop that several steps share, for each of them, in the order of the schedule: applied
/// one after the other, they change the loop and keep it shared. Other mutations come back alone.
///
/// # Errors
/// A step or loop that is not there, and a schedule that is not one.
pub fn for_sharers(
    graph: &Graph,
    schedule: &Schedule,
    mutation: &Mutation,
) -> Result<Vec<Mutation>, MutationError> {
    if !mutation.belongs_to(graph) {
        return Err(MutationError::OtherGraph);
    }
    let name = match mutation {
        Mutation::Split { name, .. }
        | Mutation::Merge { name, .. }
        | Mutation::Annotate { name, .. } => *name,
        Mutation::Swap { outer, .. } => *outer,
        Mutation::Reorder { .. }
        | Mutation::Fuse { .. }
        | Mutation::Unfuse { .. }
        | Mutation::MoveBefore { .. }
        | Mutation::MoveAfter { .. }
        | Mutation::Inline { .. }
        | Mutation::Store { .. }
        | Mutation::AddLoop { .. }
        | Mutation::RemoveLoop { .. }
        | Mutation::ComputeAt { .. }
        | Mutation::Layout { .. }
        | Mutation::Copy { .. }
        | Mutation::Uncopy { .. }
        | Mutation::Pad { .. }
        | Mutation::Stage { .. }
        | Mutation::Delegate { .. }
        | Mutation::Undelegate { .. } => return Ok(vec![mutation.clone()]),
    };
    let at = position(graph, schedule, mutation.node())?;
    let step = &schedule.steps[at];
    let depth = depth(graph, step, name)?;
    let sharing = sharing(graph, schedule, at)?;
    let place = sharing.around(at)[depth];
    let for_node = |to: NodeId| {
        let mut mutation = mutation.clone();
        match &mut mutation {
            Mutation::Split { node, .. }
            | Mutation::Merge { node, .. }
            | Mutation::Annotate { node, .. }
            | Mutation::Swap { node, .. } => *node = to,
            _ => {}
        }
        mutation
    };
    let inside = sharing.tree.leaves(place);
    Ok(inside.into_iter().map(for_node).collect())
}
