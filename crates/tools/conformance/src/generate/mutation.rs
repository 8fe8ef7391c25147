//! Random changes of schedules, sensible and senseless.

use crate::rng::Rng;
use loopwright_graph::{DimId, Graph, Keep, NodeId, NodeOp};
use loopwright_looptree::{
    Annotation, Edit, LoopName, LoopSpec, Mutation, NodeSchedule, Plan, accesses, loop_dims,
};
use smallvec::SmallVec;
use std::sync::Arc;

/// How many kinds of changes there are.
const KINDS: usize = 21;

/// A change of any kind, legal or not: most of what it names is there, some of it is not.
pub fn random_mutation(rng: &mut Rng, plan: &Plan) -> Mutation {
    let kind = rng.below(KINDS);
    mutation_of_kind(rng, plan, kind)
}

/// A change of a kind that makes the program's arrays lie or be computed elsewhere: loops over other dimensions,
/// layouts, copies and stages.
pub(super) fn placing_mutation(rng: &mut Rng, plan: &Plan) -> Mutation {
    let kind = *rng.pick(&[13, 15, 15, 16, 16, 17, 19, 20]);
    mutation_of_kind(rng, plan, kind)
}

fn mutation_of_kind(rng: &mut Rng, plan: &Plan, kind: usize) -> Mutation {
    let (graph, schedule) = (plan.graph(), plan.schedule());
    let any_node = NodeId::from(rng.below(graph.node_ids().count()));
    let step = match schedule.steps.is_empty() || rng.chance(5) {
        true => None,
        false => Some(rng.pick(&schedule.steps)),
    };
    let node = step.map_or(any_node, |step| step.node);
    let loops: Vec<LoopSpec> = step.map_or(Vec::new(), |step| step.loops.to_vec());
    let other = match schedule.steps.is_empty() {
        true => any_node,
        false => rng.pick(&schedule.steps).node,
    };
    let (first, second) = (name(rng, graph, &loops), name(rng, graph, &loops));
    match kind {
        0 => Mutation::Split {
            node,
            name: first,
            factor: *rng.pick(&[-1, 0, 1, 2, 3, 4, 5, 7, 8, 1 << 40, i64::MAX]),
        },
        1 => Mutation::Merge { node, name: first },
        2 => {
            let at = rng.below(loops.len().max(2) - 1);
            let inner = loops.get(at + 1).map_or(second, |spec| (*spec).into());
            let outer = loops.get(at).map_or(first, |spec| (*spec).into());
            Mutation::Swap { node, outer, inner }
        }
        3 => {
            let mut names: SmallVec<[LoopName; 8]> =
                loops.iter().map(|spec| (*spec).into()).collect();
            rng.shuffle(&mut names);
            Mutation::Reorder { node, loops: names }
        }
        4 => Mutation::Fuse { node },
        5 => Mutation::Unfuse { node },
        6 => Mutation::MoveBefore { node, other },
        7 => Mutation::MoveAfter { node, other },
        8 => Mutation::Inline { node },
        9 => {
            let mut loops: SmallVec<[LoopSpec; 8]> = loop_dims(graph, any_node)
                .into_iter()
                .map(LoopSpec::over)
                .collect();
            rng.shuffle(&mut loops);
            let given = rng.chance(50).then_some(loops);
            Mutation::Store {
                node: any_node,
                loops: given,
            }
        }
        10 => Mutation::Annotate {
            node,
            name: first,
            annotation: *rng.pick(&Annotation::ALL),
        },
        11 => Mutation::Delegate {
            node,
            backend: (*rng.pick(&["a", "b", ""])).into(),
        },
        12 => Mutation::Undelegate { node },
        13 => added_loop(rng, plan, node, loops.len()),
        14 => {
            let own = loop_dims(graph, node);
            let foreign = loops.iter().filter(|spec| !own.contains(&spec.dim));
            let foreign: Vec<LoopName> = foreign.map(|spec| (*spec).into()).collect();
            let name = match foreign.is_empty() {
                true => first,
                false => *rng.pick(&foreign),
            };
            Mutation::RemoveLoop { node, name }
        }
        15 => computed_at(rng, plan, node, other),
        16 => layout(rng, plan, node),
        17 => copy(rng, plan, node),
        18 => {
            let copies = schedule.edits.iter().filter_map(|edit| match edit {
                Edit::Copy { name, .. } => graph.find(name),
                Edit::Pad { .. } | Edit::Stage { .. } => None,
            });
            let copies: Vec<NodeId> = copies.collect();
            let node = match copies.is_empty() || rng.chance(10) {
                true => node,
                false => *rng.pick(&copies),
            };
            Mutation::Uncopy { node }
        }
        19 => stage(rng, plan, node),
        _ => pad(rng, plan, node),
    }
}

/// The name of one of the loops or, now and then, of any.
fn name(rng: &mut Rng, graph: &Graph, loops: &[LoopSpec]) -> LoopName {
    match loops.is_empty() || rng.chance(3) {
        true => LoopName {
            dim: DimId::from(rng.below(graph.dims().len())),
            step: rng.range(0, 4),
        },
        false => LoopName::from(*rng.pick(loops)),
    }
}

/// The steps that read a node.
fn readers(plan: &Plan, node: NodeId) -> Vec<&NodeSchedule> {
    let (graph, schedule) = (plan.graph(), plan.schedule());
    let is_step = |node: NodeId| schedule.step(node).is_some();
    let reads = |step: &&NodeSchedule| {
        let reads = accesses(graph, step.node, &is_step);
        reads.is_ok_and(|reads| reads.iter().any(|access| access.node == node))
    };
    schedule.steps.iter().filter(reads).collect()
}

/// A loop over any dimension; most often one of a reader's loops, in its place.
fn added_loop(rng: &mut Rng, plan: &Plan, node: NodeId, loops: usize) -> Mutation {
    let readers = readers(plan, node);
    if !readers.is_empty() && rng.chance(80) {
        let reader = *rng.pick(&readers);
        let own = loop_dims(plan.graph(), node);
        let places = reader.loops.iter().enumerate();
        let places: Vec<(usize, &LoopSpec)> = places
            .filter(|(_, spec)| !own.contains(&spec.dim))
            .collect();
        if !places.is_empty() {
            let (depth, spec) = *rng.pick(&places);
            return Mutation::AddLoop {
                node,
                spec: *spec,
                depth: depth.min(loops),
            };
        }
    }
    Mutation::AddLoop {
        node,
        spec: LoopSpec {
            dim: DimId::from(rng.below(plan.graph().dims().len())),
            step: *rng.pick(&[0, 1, 1, 1, 2, 3, 4, 1 << 40]),
            annotation: match rng.chance(60) {
                true => Annotation::Serial,
                false => *rng.pick(&Annotation::ALL),
            },
        },
        depth: rng.below(loops + 2),
    }
}

fn computed_at(rng: &mut Rng, plan: &Plan, node: NodeId, other: NodeId) -> Mutation {
    let readers = readers(plan, node);
    let reader = match readers.is_empty() || rng.chance(10) {
        true => other,
        false => rng.pick(&readers).node,
    };
    let loops = plan.schedule().step(reader);
    let loops = loops.map_or(&[][..], |step| &step.loops);
    Mutation::ComputeAt {
        node,
        reader,
        name: name(rng, plan.graph(), loops),
    }
}

/// The dimensions in any order, some in two pieces; now and then one too many or too few.
fn layout(rng: &mut Rng, plan: &Plan, node: NodeId) -> Mutation {
    if rng.chance(10) {
        return Mutation::Layout { node, layout: None };
    }
    let graph = plan.graph();
    let mut inner: Vec<LoopName> = Vec::new();
    let mut outer: Vec<LoopName> = Vec::new();
    for dim in graph.node(node).dims.iter().copied() {
        inner.push(LoopName { dim, step: 1 });
        while rng.chance(30) {
            let step = *rng.pick(&[2, 3, 4, 5, 8, 16]);
            outer.push(LoopName { dim, step });
        }
    }
    let mut layout: SmallVec<[LoopName; 4]> = SmallVec::new();
    match rng.chance(50) {
        // Blocks outside, elements inside, as packing does.
        true => {
            rng.shuffle(&mut outer);
            rng.shuffle(&mut inner);
            layout.extend(outer.into_iter().chain(inner));
        }
        false => {
            layout.extend(outer.into_iter().chain(inner));
            rng.shuffle(&mut layout);
        }
    }
    // Falling steps for each dimension, most of the time.
    if rng.chance(90) {
        for dim in graph.node(node).dims.iter().copied() {
            let places = (0..layout.len()).filter(|at| layout[*at].dim == dim);
            let places: Vec<usize> = places.collect();
            let mut steps: Vec<i64> = places.iter().map(|at| layout[*at].step).collect();
            steps.sort_unstable_by(|a, b| b.cmp(a));
            for (at, step) in places.into_iter().zip(steps) {
                layout[at].step = step;
            }
        }
        layout.dedup();
    }
    if rng.chance(3) {
        layout.pop();
    }
    Mutation::Layout {
        node,
        layout: Some(layout),
    }
}

/// A name that nothing has; now and then one that something has, or none.
fn new_name(rng: &mut Rng, graph: &Graph, stem: &str) -> Arc<str> {
    if rng.chance(3) {
        let node = NodeId::from(rng.below(graph.node_ids().count()));
        return graph.node(node).name.as_str().into();
    }
    let taken = |name: &str| graph.find(name).is_some() || graph.find_dim(name).is_some();
    let mut number = 0;
    loop {
        let name = format!("{stem}{number}");
        if !taken(&name) {
            return name.into();
        }
        number += 1;
    }
}

fn copy(rng: &mut Rng, plan: &Plan, node: NodeId) -> Mutation {
    let (graph, schedule) = (plan.graph(), plan.schedule());
    let is_step = |node: NodeId| schedule.step(node).is_some();
    let reads = accesses(graph, node, &is_step).unwrap_or_default();
    let of = match reads.is_empty() || rng.chance(5) {
        true => NodeId::from(rng.below(graph.node_ids().count())),
        false => rng.pick(&reads).node,
    };
    Mutation::Copy {
        node,
        of,
        name: new_name(rng, graph, "packed"),
    }
}

/// A view that may leave its input, if there is one, put behind an array that it does not leave.
fn pad(rng: &mut Rng, plan: &Plan, node: NodeId) -> Mutation {
    let (graph, schedule) = (plan.graph(), plan.schedule());
    let leaves = |node: &NodeId| {
        let op = &graph.node(*node).op;
        matches!(op, NodeOp::View(view) if view.outside.is_some())
    };
    let mut found: Vec<(NodeId, NodeId)> = Vec::new();
    for step in &schedule.steps {
        let mut open = vec![step.node];
        while let Some(node) = open.pop() {
            if leaves(&node) {
                found.push((step.node, node));
            }
            let inputs = graph.node(node).inputs.iter();
            open.extend(inputs.filter(|input| schedule.step(**input).is_none()));
            if found.len() > 64 {
                break;
            }
        }
    }
    let (node, view) = match found.is_empty() || rng.chance(5) {
        true => (node, NodeId::from(rng.below(graph.node_ids().count()))),
        false => *rng.pick(&found),
    };
    Mutation::Pad {
        node,
        view,
        name: new_name(rng, graph, "padded"),
    }
}

/// A stage of a reduction, if there is one.
fn stage(rng: &mut Rng, plan: &Plan, node: NodeId) -> Mutation {
    let (graph, schedule) = (plan.graph(), plan.schedule());
    let mut folded: Vec<(NodeId, DimId)> = Vec::new();
    for step in &schedule.steps {
        if let NodeOp::Reduce { over, .. } = &graph.node(step.node).op {
            folded.extend(over.iter().map(|dim| (step.node, *dim)));
        }
    }
    let (node, dim) = match folded.is_empty() || rng.chance(5) {
        true => (node, DimId::from(rng.below(graph.dims().len()))),
        false => *rng.pick(&folded),
    };
    Mutation::Stage {
        node,
        dim,
        count: *rng.pick(&[0, 1, 2, 2, 3, 3, 4, 5, 7, 8, i64::MAX]),
        keep: *rng.pick(&Keep::ALL),
        name: new_name(rng, graph, "part"),
    }
}
