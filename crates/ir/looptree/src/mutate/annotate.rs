//! How loops run, and who runs a step.

use super::{Change, LoopName, Mutation, MutationError, NewLoops, depth, loop_text};
use crate::error::ScheduleError;
use crate::schedule::{Annotation, NodeSchedule, Schedule, carries};
use crate::text::print_mutation;
use loopwright_graph::Graph;
use std::sync::Arc;

pub(super) fn annotate(
    graph: &Graph,
    step: &NodeSchedule,
    name: LoopName,
    annotation: Annotation,
) -> Result<NewLoops, MutationError> {
    let place = depth(graph, step, name)?;
    let node = step.node;
    if step.loops[place].annotation == annotation {
        return Err(MutationError::Unchanged {
            node: graph.node_name(node),
            why: format!(
                "its loop `{}` is {} already",
                loop_text(graph, name),
                annotation.name()
            ),
        });
    }
    if annotation.is_concurrent() && carries(graph, node, name.dim) {
        let mutation = Mutation::Annotate {
            node,
            name,
            annotation,
        };
        return Err(MutationError::Refused {
            mutation: print_mutation(graph, &mutation),
            error: ScheduleError::NotParallel {
                node: graph.node_name(node),
                dim: graph.dim(name.dim).name.clone(),
            },
        });
    }
    let mut loops = step.loops.clone();
    loops[place].annotation = annotation;
    let depths = (0..loops.len()).collect();
    Ok(NewLoops {
        loops,
        depths,
        share: step.share,
    })
}

pub(super) fn delegate(
    graph: &Graph,
    schedule: &Schedule,
    at: usize,
    backend: Option<&Arc<str>>,
) -> Result<Change, MutationError> {
    let step = &schedule.steps[at];
    if step.delegate.as_ref() == backend {
        return Err(MutationError::Unchanged {
            node: graph.node_name(step.node),
            why: match backend {
                Some(backend) => format!("it is delegated to `{backend}` already"),
                None => "it is not delegated".to_owned(),
            },
        });
    }
    let mut schedule = schedule.clone();
    schedule.steps[at].delegate = backend.cloned();
    Ok(Change::in_place(schedule))
}
