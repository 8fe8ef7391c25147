//! One loop into two, and two into one.

use super::{LoopName, MutationError, NewLoops, depth, loop_text};
use crate::schedule::{Annotation, LoopSpec, NodeSchedule};
use loopwright_graph::Graph;
use smallvec::SmallVec;

pub(super) fn split(
    graph: &Graph,
    step: &NodeSchedule,
    name: LoopName,
    factor: i64,
) -> Result<NewLoops, MutationError> {
    let place = depth(graph, step, name)?;
    let refused = |why: String| MutationError::Factor {
        node: graph.node_name(step.node),
        name: loop_text(graph, name),
        factor,
        why,
    };
    if factor < 2 {
        let why = "the inner loop needs two rounds or more, else there is only one loop";
        return Err(refused(why.to_owned()));
    }
    let Some(outer_step) = name.step.checked_mul(factor) else {
        return Err(refused(
            "the outer loop's step does not fit 64 bits".to_owned(),
        ));
    };
    let rounds = rounds(graph, step, place);
    if let Some(rounds) = rounds
        && factor >= rounds
    {
        let why = match rounds {
            ..3 => format!("it runs {rounds} times, which is too few for two loops"),
            _ => format!(
                "it runs {rounds} times, all of them in one round of the outer loop; take 2 to {}",
                rounds - 1
            ),
        };
        return Err(refused(why));
    }
    let annotation = step.loops[place].annotation;
    // Threads take large pieces; lanes and copies of the code are small ones.
    let (outer, inner) = match annotation {
        Annotation::Parallel | Annotation::Block => (annotation, Annotation::Serial),
        Annotation::Serial
        | Annotation::Vectorize
        | Annotation::Unroll
        | Annotation::Thread
        | Annotation::Warp
        | Annotation::Tile
        | Annotation::Prefetch => (Annotation::Serial, annotation),
    };
    let mut loops = step.loops.clone();
    loops[place].annotation = inner;
    let outer = LoopSpec {
        dim: name.dim,
        step: outer_step,
        annotation: outer,
    };
    loops.insert(place, outer);
    let depths = (0..step.loops.len()).map(|old| if old <= place { old } else { old + 1 });
    Ok(NewLoops {
        loops,
        depths: depths.collect(),
        share: step.share.map(|share| {
            let both = place < share as usize;
            share.saturating_add(u32::from(both))
        }),
    })
}

/// How often a loop runs at most in one round of the loops around it, where that is known.
pub(super) fn rounds(graph: &Graph, step: &NodeSchedule, place: usize) -> Option<i64> {
    let spec = step.loops[place];
    let outer = step.loops[..place]
        .iter()
        .rev()
        .find(|outer| outer.dim == spec.dim);
    let covered = match outer {
        Some(outer) => outer.step,
        None => graph.dim(spec.dim).size.as_const()?,
    };
    // Without overflow, whatever the step.
    Some(covered / spec.step + i64::from(covered % spec.step != 0))
}

pub(super) fn merge(
    graph: &Graph,
    step: &NodeSchedule,
    name: LoopName,
) -> Result<NewLoops, MutationError> {
    let outer = depth(graph, step, name)?;
    let inside = step.loops[outer + 1..]
        .iter()
        .position(|spec| spec.dim == name.dim);
    let Some(inner) = inside.map(|inside| outer + 1 + inside) else {
        return Err(MutationError::NothingToMerge {
            node: graph.node_name(step.node),
            name: loop_text(graph, name),
            dim: graph.dim(name.dim).name.clone(),
        });
    };
    let mut loops = step.loops.clone();
    let mut joined = loops.remove(inner);
    // What a split divides comes together again.
    if loops[outer].annotation == Annotation::Parallel {
        joined.annotation = Annotation::Parallel;
    }
    loops[outer] = joined;
    let depths: SmallVec<[usize; 8]> = (0..step.loops.len())
        .map(|old| match old.cmp(&inner) {
            std::cmp::Ordering::Less => old,
            std::cmp::Ordering::Equal => outer,
            std::cmp::Ordering::Greater => old - 1,
        })
        .collect();
    Ok(NewLoops {
        loops,
        depths,
        share: step.share.map(|share| {
            let both = inner < share as usize;
            share - u32::from(both)
        }),
    })
}
