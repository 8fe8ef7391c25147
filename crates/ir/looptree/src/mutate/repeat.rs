//! Loops over dimensions that a step does not have, and where in a reader's loops a step is computed.

use super::{Change, LoopName, MutationError, NewLoops, depth, loop_text, position};
use crate::schedule::{LoopSpec, NodeSchedule, Schedule, loop_dims};
use loopwright_graph::{Graph, NodeId};
use smallvec::SmallVec;

pub(super) fn add(
    graph: &Graph,
    step: &NodeSchedule,
    spec: LoopSpec,
    at: usize,
) -> Result<NewLoops, MutationError> {
    let refused = |why: String| MutationError::NotAdded {
        node: graph.node_name(step.node),
        name: loop_text(graph, spec.into()),
        why,
    };
    if loop_dims(graph, step.node).contains(&spec.dim) {
        let why = "its loops over its own dimensions cover them already; `split` makes two of one";
        return Err(refused(why.to_owned()));
    }
    if at > step.loops.len() {
        return Err(refused(format!("it has {} loops", step.loops.len())));
    }
    let mut loops = step.loops.clone();
    loops.insert(at, spec);
    Ok(NewLoops {
        depths: (0..step.loops.len())
            .map(|old| old + usize::from(old >= at))
            .collect(),
        loops,
        share: step.share,
    })
}

pub(super) fn remove(
    graph: &Graph,
    step: &NodeSchedule,
    name: LoopName,
) -> Result<NewLoops, MutationError> {
    let at = depth(graph, step, name)?;
    if loop_dims(graph, step.node).contains(&name.dim) {
        return Err(MutationError::NotRemoved {
            node: graph.node_name(step.node),
            name: loop_text(graph, name),
        });
    }
    let mut loops = step.loops.clone();
    loops.remove(at);
    Ok(NewLoops {
        depths: (0..step.loops.len())
            .map(|old| old - usize::from(old > at))
            .collect(),
        loops,
        share: step.share,
    })
}

/// The step comes to stand right before a reader and runs inside its loops as far as `name`.
pub(super) fn compute_at(
    graph: &Graph,
    schedule: &Schedule,
    node: NodeId,
    reader: NodeId,
    name: LoopName,
) -> Result<Change, MutationError> {
    let (at, to) = (
        position(graph, schedule, node)?,
        position(graph, schedule, reader)?,
    );
    let reader = &schedule.steps[to];
    let inside = depth(graph, reader, name)?;
    let own = loop_dims(graph, node);
    let mut loops: SmallVec<[LoopSpec; 8]> = reader.loops[..=inside].into();
    for dim in own {
        let covered = loops.iter().any(|spec| spec.dim == dim && spec.step == 1);
        if !covered {
            loops.push(LoopSpec::over(dim));
        }
    }
    let old = &schedule.steps[at];
    if loops == old.loops && at + 1 == to && old.share.is_none() {
        return Err(MutationError::Unchanged {
            node: graph.node_name(node),
            why: "it is computed there already".to_owned(),
        });
    }
    let leaf = loops.len();
    let depth_of = |spec: &LoopSpec| {
        let name = LoopName::from(*spec);
        let place = loops.iter().position(|new| LoopName::from(*new) == name);
        place.unwrap_or(leaf)
    };
    let mut depths: SmallVec<[usize; 8]> = old.loops.iter().map(depth_of).collect();
    depths.push(leaf);
    let moved = [(node, depths)].into_iter().collect();
    let mut schedule = schedule.clone();
    let mut step = schedule.steps.remove(at);
    step.loops = loops;
    step.share = None;
    let to = if at < to { to - 1 } else { to };
    schedule.steps.insert(to, step);
    Ok(Change { schedule, moved })
}
