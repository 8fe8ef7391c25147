//! Mutations that change the program, too: copies and reductions in stages.

use super::steps::{inline_nodes, loops_like};
use super::{LoopName, Moved, Mutation, MutationError, position};
use crate::plan::{Plan, Removed};
use crate::schedule::{Edit, LoopSpec, NodeSchedule, Schedule, is_given, loop_dims};
use loopwright_graph::{DimId, EditError, Graph, GraphEditor, Keep, NodeId, NodeOp, Staged};
use rustc_hash::FxHashSet;
use smallvec::SmallVec;
use std::sync::Arc;

/// A program and a schedule, both changed.
pub(crate) struct Edited {
    pub(crate) graph: Graph,
    pub(crate) schedule: Schedule,
    pub(crate) reassociates: bool,
    pub(crate) moved: Moved,
    pub(crate) removed: Option<Removed>,
}

/// What a mutation makes of program and schedule, if it changes the program. `graph` is `program` with the schedule's
/// changes made.
pub(crate) fn edits_of(
    program: &Graph,
    graph: &Graph,
    schedule: &Schedule,
    mutation: &Mutation,
) -> Result<Option<Edited>, MutationError> {
    if !mutation.belongs_to(graph) {
        return Err(MutationError::OtherGraph);
    }
    let edited = match mutation {
        Mutation::Copy { node, of, name } => copy(graph, schedule, *node, *of, name)?,
        Mutation::Uncopy { node } => uncopy(program, graph, schedule, *node)?,
        Mutation::Stage {
            node,
            dim,
            count,
            keep,
            name,
        } => {
            let edit = Edit::Stage {
                name: Arc::clone(name),
                node: *node,
                dim: *dim,
                count: *count,
                keep: *keep,
            };
            let mut editor = GraphEditor::new(graph);
            let staged = editor
                .stage(*node, *dim, *count, *keep, name)
                .map_err(MutationError::Edit)?;
            stage(editor.finish(), schedule, edit, *node, *dim, &staged)?
        }
        Mutation::Pad { node, view, name } => pad(graph, schedule, *node, *view, name)?,
        _ => return Ok(None),
    };
    Ok(Some(edited))
}

fn copy(
    graph: &Graph,
    schedule: &Schedule,
    step: NodeId,
    of: NodeId,
    name: &Arc<str>,
) -> Result<Edited, MutationError> {
    position(graph, schedule, step)?;
    let scheduled: FxHashSet<NodeId> = schedule.steps.iter().map(|step| step.node).collect();
    if !is_given(graph, of) && !scheduled.contains(&of) {
        return Err(MutationError::NotCopied {
            node: graph.node_name(of),
        });
    }
    let reads = |node: &NodeId| graph.node(*node).inputs.contains(&of);
    let inside = inline_nodes(graph, &scheduled, step);
    let mut readers: SmallVec<[NodeId; 2]> = inside.into_iter().filter(reads).collect();
    if reads(&step) {
        readers.push(step);
    }
    readers.sort_unstable();
    if readers.is_empty() {
        return Err(MutationError::Edit(EditError::NotAReader {
            reader: graph.node_name(step),
            node: graph.node_name(of),
        }));
    }
    let mut editor = GraphEditor::new(graph);
    let copy = editor
        .copy(of, &readers, name)
        .map_err(MutationError::Edit)?;
    let edit = Edit::Copy {
        name: Arc::clone(name),
        of,
        readers: readers.clone(),
    };
    Ok(with_new_step(
        editor.finish(),
        schedule,
        edit,
        copy,
        &readers,
    ))
}

fn pad(
    graph: &Graph,
    schedule: &Schedule,
    step: NodeId,
    view: NodeId,
    name: &Arc<str>,
) -> Result<Edited, MutationError> {
    position(graph, schedule, step)?;
    let scheduled: FxHashSet<NodeId> = schedule.steps.iter().map(|step| step.node).collect();
    if view != step && !inline_nodes(graph, &scheduled, step).contains(&view) {
        return Err(MutationError::Edit(EditError::NotAReader {
            reader: graph.node_name(step),
            node: graph.node_name(view),
        }));
    }
    let mut editor = GraphEditor::new(graph);
    let padded = editor.pad(view, name).map_err(MutationError::Edit)?;
    let edit = Edit::Pad {
        name: Arc::clone(name),
        view,
    };
    Ok(with_new_step(
        editor.finish(),
        schedule,
        edit,
        padded,
        &[view],
    ))
}

/// A schedule with a step for a node that an edit made. Steps may have what reads it in common: it is computed
/// before the first of them.
fn with_new_step(
    graph: Graph,
    schedule: &Schedule,
    edit: Edit,
    new: NodeId,
    readers: &[NodeId],
) -> Edited {
    let scheduled: FxHashSet<NodeId> = schedule.steps.iter().map(|step| step.node).collect();
    let first = schedule.steps.iter().position(|step| {
        let inside = inline_nodes(&graph, &scheduled, step.node);
        readers.contains(&step.node) || inside.iter().any(|node| readers.contains(node))
    });
    let at = first.unwrap_or(0);
    let mut schedule = schedule.clone();
    schedule.edits.push(edit);
    let reader = &schedule.steps[at];
    let step = NodeSchedule {
        delegate: reader.delegate.clone(),
        ..NodeSchedule::new(new, loops_like(&graph, new, reader))
    };
    schedule.steps.insert(at, step);
    Edited {
        graph,
        schedule,
        reassociates: false,
        moved: Moved::default(),
        removed: None,
    }
}

fn uncopy(
    program: &Graph,
    graph: &Graph,
    schedule: &Schedule,
    node: NodeId,
) -> Result<Edited, MutationError> {
    let name = graph.node_name(node);
    let is_it =
        |edit: &Edit| matches!(edit, Edit::Copy { name: found, .. } if **found == *name.as_str());
    let Some(at) = schedule.edits.iter().position(is_it) else {
        return Err(MutationError::NotACopy { node: name });
    };
    let mut before = Schedule::default();
    before.edits.extend_from_slice(&schedule.edits[..at]);
    let with_before = before
        .edited(program)
        .map_err(|error| MutationError::Refused {
            mutation: format!("uncopy {name}"),
            error,
        })?;
    let nodes = with_before.node_ids().count() as u32;
    let removed = Removed {
        nodes: nodes..nodes + 1,
        dims: 0..0,
    };
    let mut edits = before.edits;
    for edit in &schedule.edits[at + 1..] {
        // What was made of the copy needs it.
        let edit = removed.edit(edit).ok_or_else(|| MutationError::InUse {
            node: graph.node_name(node),
        })?;
        edits.push(edit);
    }
    let mut steps = Vec::with_capacity(schedule.steps.len());
    for step in &schedule.steps {
        if let Some(node) = removed.node(step.node) {
            let mut step = step.clone();
            step.node = node;
            steps.push(step);
        }
    }
    let schedule = Schedule { edits, steps };
    let graph = schedule
        .edited(program)
        .map_err(|error| MutationError::Refused {
            mutation: format!("uncopy {name}"),
            error,
        })?
        .into_owned();
    Ok(Edited {
        graph,
        schedule,
        reassociates: false,
        moved: Moved::default(),
        removed: Some(removed),
    })
}

/// The schedule of a reduction that was put in stages: each stage has the reduction's loops, as far as they are over
/// dimensions that it has, and its own new ones in the place of those over the dimension.
fn stage(
    graph: Graph,
    schedule: &Schedule,
    edit: Edit,
    node: NodeId,
    dim: DimId,
    staged: &Staged,
) -> Result<Edited, MutationError> {
    let at = position(&graph, schedule, node)?;
    let old = &schedule.steps[at];
    let first_stage = loop_dims(&graph, staged.part);
    let with = |new: NodeId, dims: &[DimId]| {
        let own = loop_dims(&graph, new);
        let mut loops: SmallVec<[LoopSpec; 8]> = SmallVec::new();
        let mut placed = false;
        for spec in &old.loops {
            if spec.dim == dim {
                if !placed {
                    loops.extend(dims.iter().map(|dim| LoopSpec::over(*dim)));
                }
                placed = true;
            } else if own.contains(&spec.dim) || !first_stage.contains(&spec.dim) {
                // What the reduction did not have was there to compute it anew; so it is for its stages.
                loops.push(*spec);
            }
        }
        NodeSchedule {
            delegate: old.delegate.clone(),
            ..NodeSchedule::new(new, loops)
        }
    };
    let mut new = vec![with(staged.part, &[staged.folded, staged.kept])];
    match staged.rest {
        None => new.push(with(node, &[staged.kept])),
        Some((main, rest, rest_dim)) => {
            new.push(with(main, &[staged.kept]));
            new.push(with(rest, &[rest_dim]));
            new.push(with(node, &[]));
        }
    }
    let last = new.last_mut().expect("the reduction itself is the last");
    last.layout = old.layout.clone();
    let leaf = last.loops.len();
    let depth_of = |spec: &LoopSpec| {
        let name = LoopName::from(*spec);
        let place = last
            .loops
            .iter()
            .position(|new| LoopName::from(*new) == name);
        place.unwrap_or(leaf)
    };
    let mut depths: SmallVec<[usize; 8]> = old.loops.iter().map(depth_of).collect();
    depths.push(leaf);
    let moved = [(node, depths)].into_iter().collect();
    if let Some(first) = new.first_mut() {
        first.share = old.share;
    }
    let reassociates = matches!(
        &graph.node(staged.part).op,
        NodeOp::Reduce { acc, .. } if acc.is_float()
    );
    let mut schedule = schedule.clone();
    schedule.edits.push(edit);
    schedule.steps.splice(at..=at, new);
    Ok(Edited {
        graph,
        schedule,
        reassociates,
        moved,
        removed: None,
    })
}

/// Lanes and blocks of stages that are worth trying.
const COUNTS: [(Keep, i64); 4] = [
    (Keep::Lanes, 8),
    (Keep::Lanes, 16),
    (Keep::Lanes, 64),
    (Keep::Blocks, 64),
];

/// Changes of the program that may be of use, not all of which are legal.
pub(crate) fn legal_edits(plan: &Plan) -> Vec<Mutation> {
    let (graph, schedule) = (plan.graph(), plan.schedule());
    let scheduled: FxHashSet<NodeId> = schedule.steps.iter().map(|step| step.node).collect();
    let free = |stem: String| -> Arc<str> {
        let taken = |name: &str| graph.find(name).is_some() || graph.find_dim(name).is_some();
        let mut name = stem.clone();
        let mut number = 2;
        while taken(&name) {
            name = format!("{stem}{number}");
            number += 1;
        }
        name.into()
    };
    let mut found = Vec::new();
    for edit in &schedule.edits {
        if let Edit::Copy { name, .. } = edit
            && let Some(node) = graph.find(name)
        {
            found.push(Mutation::Uncopy { node });
        }
    }
    for step in &schedule.steps {
        let node = step.node;
        let NodeOp::Reduce { over, .. } = &graph.node(node).op else {
            continue;
        };
        let mut read: Vec<NodeId> = inline_nodes(graph, &scheduled, node)
            .into_iter()
            .chain([node])
            .flat_map(|node| graph.node(node).inputs.clone())
            .filter(|input| {
                let array = !graph.node(*input).dims.is_empty();
                array && (is_given(graph, *input) || scheduled.contains(input))
            })
            .collect();
        read.sort_unstable();
        read.dedup();
        let views = inline_nodes(graph, &scheduled, node).into_iter();
        let guarded = views.filter(
            |view| matches!(&graph.node(*view).op, NodeOp::View(parts) if parts.outside.is_some()),
        );
        for view in guarded {
            let name = free(format!("padded{}", view.0));
            found.push(Mutation::Pad { node, view, name });
        }
        for of in read {
            let name = free(format!("packed{}", of.0));
            found.push(Mutation::Copy { node, of, name });
        }
        for dim in over {
            for (keep, count) in COUNTS {
                let name = free(format!("part{}", node.0));
                found.push(Mutation::Stage {
                    node,
                    dim: *dim,
                    count,
                    keep,
                    name,
                });
            }
        }
    }
    found
}
