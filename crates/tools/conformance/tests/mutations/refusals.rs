//! What is refused would change values.
//!
//! A change that is refused for what it would do to the program is forced through: the tree that it would make is
//! made without asking, and executed. It must go wrong, for some inputs: with the program's own ops or, where those do
//! not tell a right value from a wrong one, with others in their place. Where it does not, one of the reasons of
//! [`Excuse`] must hold, each of which is decided by a check of its own.

use crate::subject::{Subject, distinct_array};
use crate::{LENGTH, SEQUENCES, Tally, kind};
use loopwright_conformance::Rng;
use loopwright_conformance::generate::random_mutation;
use loopwright_graph::{Array, DimId, Graph, GraphBuilder, NodeId, NodeOp};
use loopwright_looptree::{
    Access, Edit, LoopName, LoopSpec, LoopTree, Mutation, MutationError, NodeSchedule, Plan,
    Schedule, ScheduleError, accesses, carries, loop_dims, parse_tree, reassociated,
};
use loopwright_ops::{ReduceOp, cast, same_value};
use loopwright_text::Source;
use std::sync::Arc;

/// Inputs under which a change that was forced through may show.
const DRAWS: usize = 24;

/// Why a change that was refused need not show.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Excuse {
    /// Iterations that run at the same time would write the same element: a race, which one thread does not show.
    Race,
    /// The loop has one iteration at these sizes, or the array no element: there is nothing to be in another order.
    NothingToOrder,
    /// Right as long as the loop runs upwards, wrong in the other direction. Nothing is carried along it, so no
    /// direction is promised.
    CountsOnDirection,
    /// What is read too early or too late has no part in any result: a view that never reaches its input.
    ReadForNothing,
    /// Whether the element is read depends on data or on a condition, and it is not read for any inputs that were tried.
    NeverReached,
    /// What is folded twice is the neutral element.
    FoldsNothing,
    /// Elements are chosen from twice, which a largest, a smallest, an `any` and an `all` do not notice.
    ChoosesTwice,
    /// The values in question are made of constants alone, so that no input shows them.
    Constant,
    /// Elements of a scan behind its own are read: they are there, as a scan's loop has a direction. Only its own
    /// element is counted on.
    BehindAScan,
    /// A state is changed twice, and the second time it stays what it was after the first: `s = max(s, x)`.
    ChangesTwice,
    /// A sort or scatter runs through the dimension on its own; a loop over it means nothing.
    RunsThrough,
    /// The state's new value is its old one.
    StateStays,
    /// A reverse scan reads another one in step; both run from the last element on.
    ReverseInStep,
}

/// A program as a refused change would leave it.
struct Forced {
    graph: Arc<Graph>,
    tree: LoopTree,
    /// The loop that the change is about, where it is one: its step and its place in that.
    about: Option<(NodeId, usize)>,
}

/// A name as the text of a tree has it.
fn quoted(graph: &Graph, node: NodeId) -> String {
    match graph.node(node).name.as_str() {
        "" => graph.node_name(node),
        name => format!("{name:?}"),
    }
}

/// The text of a tree in which each step shares as many loops with the one before as is said.
fn tree_text(graph: &Graph, steps: &[(NodeSchedule, usize)]) -> String {
    let mut text = "loopwright tree 1\n".to_owned();
    let mut open = 0;
    for (step, shared) in steps {
        while open > *shared {
            text += "}\n";
            open -= 1;
        }
        for spec in &step.loops[*shared..] {
            let dim = &graph.dim(spec.dim).name;
            let (step, annotation) = (spec.step, spec.annotation.name());
            text += &format!("for {dim:?}/{step} {annotation} {{\n");
            open += 1;
        }
        text += &format!("{}\n", quoted(graph, step.node));
    }
    text + &"}\n".repeat(open)
}

/// The tree in which nothing is shared.
fn apart(graph: &Arc<Graph>, steps: Vec<NodeSchedule>) -> Forced {
    let steps: Vec<_> = steps.into_iter().map(|step| (step, 0)).collect();
    Forced {
        tree: tree(graph, &steps),
        graph: Arc::clone(graph),
        about: None,
    }
}

fn tree(graph: &Graph, steps: &[(NodeSchedule, usize)]) -> LoopTree {
    let source = Source::new("forced", tree_text(graph, steps));
    parse_tree(&source, graph).unwrap_or_else(|error| panic!("{}", error.render(&source)))
}

/// How many loops each step shares with the one before it.
fn shares(plan: &Plan) -> Vec<usize> {
    let tree = plan.tree();
    let steps = &plan.schedule().steps;
    let around = |step: &NodeSchedule| {
        let leaf = tree.find(step.node).expect("every step has a leaf");
        tree.ancestors(leaf)
    };
    let mut shares = vec![0; steps.len().min(1)];
    for pair in steps.windows(2) {
        let (before, own) = (around(&pair[0]), around(&pair[1]));
        shares.push(before.iter().zip(&own).take_while(|(a, b)| a == b).count());
    }
    shares
}

/// What comes of a change that was refused for what it would do: the tree that it would make, made without
/// asking. `None` where it was refused because it makes none.
fn forced(plan: &Plan, mutation: &Mutation, error: &MutationError) -> Option<Forced> {
    let (graph, schedule) = (plan.graph(), plan.schedule());
    let mut steps = schedule.steps.clone();
    let place = |node: NodeId| schedule.steps.iter().position(|step| step.node == node);
    let depth = |step: &NodeSchedule, name: &LoopName| {
        let mut names = step.loops.iter().map(|spec| LoopName::from(*spec));
        names.position(|found| found == *name)
    };
    let at = place(mutation.node())?;
    let mut about = None;
    if let MutationError::Dependence { .. } = error {
        let mut shared: Vec<usize> = shares(plan).into_iter().take(at + 1).collect();
        shared[at] += 1;
        about = Some((mutation.node(), shared[at] - 1));
        let rest = std::iter::repeat_n(0, steps.len() - shared.len());
        let shared = shared.into_iter().chain(rest);
        let steps: Vec<_> = steps.into_iter().zip(shared).collect();
        return Some(Forced {
            tree: tree(graph, &steps),
            graph: Arc::clone(graph),
            about,
        });
    }
    let MutationError::Refused { error, .. } = error else {
        return None;
    };
    match error {
        ScheduleError::NotParallel { .. }
        | ScheduleError::ForeignLoop { .. }
        | ScheduleError::EmptyLoop { .. }
        | ScheduleError::TooLate { .. }
        | ScheduleError::StateOverwritten { .. } => {}
        // There is no such program: loops without a last one, a backend without a name, steps out of range.
        _ => return None,
    }
    match mutation {
        Mutation::MoveBefore { other, .. } | Mutation::MoveAfter { other, .. } => {
            let step = steps.remove(at);
            let to = steps.iter().position(|step| step.node == *other)?;
            let after = usize::from(matches!(mutation, Mutation::MoveAfter { .. }));
            steps.insert(to + after, step);
        }
        Mutation::Inline { .. } => {
            steps.remove(at);
        }
        Mutation::Annotate {
            name, annotation, ..
        } => {
            let depth = depth(&steps[at], name)?;
            steps[at].loops[depth].annotation = *annotation;
            about = Some((mutation.node(), depth));
        }
        Mutation::AddLoop { spec, depth, .. } => {
            steps[at].loops.insert(*depth, *spec);
            about = Some((mutation.node(), *depth));
        }
        Mutation::RemoveLoop { name, .. } => {
            let depth = depth(&steps[at], name)?;
            steps[at].loops.remove(depth);
        }
        Mutation::Swap { outer, .. } => {
            let depth = depth(&steps[at], outer)?;
            steps[at].loops.swap(depth, depth + 1);
        }
        Mutation::Reorder { loops, .. } => {
            let old = steps[at].clone();
            steps[at].loops.clear();
            for name in loops {
                let depth = depth(&old, name)?;
                steps[at].loops.push(old.loops[depth]);
            }
        }
        Mutation::ComputeAt { node, reader, name } => {
            let to = place(*reader)?;
            let inside = depth(&steps[to], name)?;
            let mut loops: Vec<LoopSpec> = steps[to].loops[..=inside].to_vec();
            for dim in loop_dims(graph, *node) {
                if !loops.iter().any(|spec| spec.dim == dim && spec.step == 1) {
                    loops.push(LoopSpec::over(dim));
                }
            }
            let mut step = steps.remove(at);
            step.loops = loops.into_iter().collect();
            let to = if at < to { to - 1 } else { to };
            steps.insert(to, step);
        }
        Mutation::Uncopy { node } => return uncopied(plan, *node),
        _ => return None,
    }
    Some(Forced {
        about,
        ..apart(graph, steps)
    })
}

/// The plan without a copy, whatever comes of it.
fn uncopied(plan: &Plan, copy: NodeId) -> Option<Forced> {
    let schedule = plan.schedule();
    let moved = |node: &NodeId| NodeId(node.0 - u32::from(node.0 > copy.0));
    let mut edits = Vec::new();
    let name = &plan.graph().node(copy).name;
    for edit in &schedule.edits {
        edits.push(match edit {
            Edit::Copy { name: found, .. } if **found == **name => continue,
            Edit::Copy { name, of, readers } => Edit::Copy {
                name: Arc::clone(name),
                of: moved(of),
                readers: readers.iter().map(moved).collect(),
            },
            Edit::Pad { name, view } => Edit::Pad {
                name: Arc::clone(name),
                view: moved(view),
            },
            Edit::Stage {
                name,
                node,
                dim,
                count,
                keep,
            } => Edit::Stage {
                name: Arc::clone(name),
                node: moved(node),
                dim: *dim,
                count: *count,
                keep: *keep,
            },
        });
    }
    let without = Schedule {
        edits,
        steps: Vec::new(),
    };
    let graph = without.edited(plan.program()).ok()?.into_owned();
    let steps = schedule.steps.iter().filter(|step| step.node != copy);
    let steps = steps.map(|step| NodeSchedule {
        node: moved(&step.node),
        ..step.clone()
    });
    Some(apart(&Arc::new(graph), steps.collect()))
}

/// The node of that name.
fn named(graph: &Graph, name: &str) -> Option<NodeId> {
    let mut nodes = graph.node_ids();
    nodes.find(|node| graph.node_name(*node) == name)
}

/// Who reads what, of the dependence that a change was refused for.
fn dependence(plan: &Plan, mutation: &Mutation, error: &MutationError) -> Option<(NodeId, NodeId)> {
    let (graph, schedule) = (plan.graph(), plan.schedule());
    let reads = |reader: NodeId, node: NodeId| {
        let is_step = |node: NodeId| schedule.step(node).is_some();
        let found = accesses(graph, reader, &is_step).unwrap_or_default();
        found.iter().any(|access| access.node == node)
    };
    let state_of = |value: NodeId| {
        let mut updates = graph.updates().iter();
        let update = updates.find(|update| update.value == value);
        update.map(|update| update.state)
    };
    match error {
        MutationError::Dependence { other, .. } => {
            let (step, blocker) = (mutation.node(), named(graph, other)?);
            let shared = shares(plan)[schedule.steps.iter().position(|s| s.node == step)?];
            let dim = schedule.step(step)?.loops.get(shared)?.dim;
            let is_step = |node: NodeId| schedule.step(node).is_some();
            let found = accesses(graph, step, &is_step).unwrap_or_default();
            let mut found = found.iter().filter(|access| access.node == blocker);
            let blocks =
                |access: &Access| !access.is_identity(graph, dim) || carries(graph, blocker, dim);
            if found.any(blocks) {
                return Some((step, blocker));
            }
            match state_of(step) {
                Some(state) if reads(blocker, state) => Some((blocker, state)),
                _ => Some((step, state_of(blocker)?)),
            }
        }
        MutationError::Refused { error, .. } => match error {
            ScheduleError::TooLate { node, reader } => {
                Some((named(graph, reader)?, named(graph, node)?))
            }
            ScheduleError::StateOverwritten { state, reader } => {
                Some((named(graph, reader)?, named(graph, state)?))
            }
            _ => None,
        },
        _ => None,
    }
}

/// How often a loop of a step runs in one round of those around it.
fn rounds(subject: &Subject, graph: &Graph, step: &NodeSchedule, depth: usize) -> i64 {
    let binding = graph.bind(&subject.case.sizes()).expect("the sizes fit");
    let spec = step.loops[depth];
    let outer = step.loops[..depth]
        .iter()
        .rev()
        .find(|outer| outer.dim == spec.dim);
    let size = binding.size(spec.dim);
    let covered = outer.map_or(size, |outer| outer.step.min(size));
    covered / spec.step + i64::from(covered % spec.step != 0)
}

/// Whether results stay the same, whatever a step finds where it reads a node.
fn read_for_nothing(
    subject: &Subject,
    plan: &Plan,
    rng: &mut Rng,
    (reader, node): (NodeId, NodeId),
) -> bool {
    let copy = Mutation::Copy {
        node: reader,
        of: node,
        name: "disturbed".into(),
    };
    let Ok(changed) = plan.mutate(&copy) else {
        return false;
    };
    let plan = changed.plan;
    let graph = plan.graph();
    let Some(copy) = graph.find("disturbed") else {
        return false;
    };
    let free = reassociated(graph, plan.schedule());
    (0..DRAWS / 3).all(|_| {
        let subject = subject.with_other_inputs(rng);
        let mut memory = subject.memory(graph);
        let binding = graph.bind(&subject.case.sizes()).expect("the sizes fit");
        let shape = binding.shape(graph, copy);
        let shape: Vec<usize> = shape.iter().map(|size| *size as usize).collect();
        let dtype = graph.node(copy).dtype;
        let at = copy;
        memory.arrays[at] = Some(Array::zeros(dtype, &shape).expect("it is small"));
        let others = distinct_array(rng, dtype, &shape);
        memory.disturbed.insert(at, others);
        let ran = subject.run_in(graph, plan.tree(), (&free, &[]), memory);
        ran.is_ok()
    })
}

/// Whether a state keeps its value, for some inputs.
fn state_stays(subject: &Subject, rng: &mut Rng, state: NodeId) -> bool {
    let graph = &subject.program;
    let name = &graph.node(state).name;
    (0..DRAWS / 3).all(|_| {
        let other = subject.with_other_inputs(rng);
        let old = other.case.inputs.iter().find(|(node, _)| *node == state);
        let new = other.expected_of(name);
        let (Some((_, old)), Some(new)) = (old, new) else {
            return false;
        };
        let mut pairs = old.iter().zip(new.iter());
        pairs.all(|(old, new)| same_value(old, new))
    })
}

/// Whether a state that is changed a second time stays as it is after the first.
fn changes_twice_alike(subject: &Subject, rng: &mut Rng, state: NodeId) -> bool {
    let name = &subject.program.node(state).name;
    (0..DRAWS / 3).all(|_| {
        let first = subject.with_other_inputs(rng);
        let Some(new) = first.expected_of(name) else {
            return false;
        };
        let mut case = first.case.clone();
        for (node, array) in &mut case.inputs {
            if *node == state {
                *array = new.clone();
            }
        }
        let second = Subject::of(case);
        let again = second.expected_of(name);
        again.is_some_and(|again| {
            let mut pairs = new.iter().zip(again.iter());
            pairs.all(|(new, again)| same_value(new, again))
        })
    })
}

/// Whether a forced change goes wrong for some inputs.
fn shows(subject: &Subject, plan: &Plan, forced: &Forced, rng: &mut Rng) -> bool {
    let free = reassociated(plan.graph(), plan.schedule());
    (0..DRAWS).any(|_| {
        let other = subject.with_other_inputs(rng);
        other.run(&forced.graph, &forced.tree, &free).is_err()
    })
}

/// Whether the forced tree goes wrong with its loops in the other direction: with those that something is scanned in
/// as they are or, but for what comes of that, with all of them.
fn shows_backwards(subject: &Subject, plan: &Plan, forced: &Forced, rng: &mut Rng) -> bool {
    let mut ways = [true, false].into_iter();
    ways.any(|keep_scans| shows_turned(subject, plan, forced, keep_scans, rng))
}

fn shows_turned(
    subject: &Subject,
    plan: &Plan,
    forced: &Forced,
    keep_scans: bool,
    rng: &mut Rng,
) -> bool {
    let (graph, tree) = (&forced.graph, &forced.tree);
    let scans = |node: &NodeId| {
        let op = &graph.node(*node).op;
        matches!(op, NodeOp::Scan { .. } | NodeOp::ArgReduce { .. })
    };
    let mut text = "loopwright tree 1\n".to_owned();
    let mut open = 0;
    tree.walk(&mut |at, depth| {
        while open > depth {
            text += "}\n";
            open -= 1;
        }
        match tree.spec(at) {
            Some(spec) => {
                // A parallel loop is executed from the last iteration on.
                let inside = tree.leaves(at);
                let mut scanned = inside.iter().filter(|node| scans(node));
                let kept = keep_scans && scanned.any(|node| carries(graph, *node, spec.dim));
                let annotation = match spec.annotation.is_concurrent() != kept {
                    true => "serial",
                    false => "parallel",
                };
                let dim = &graph.dim(spec.dim).name;
                text += &format!("for {dim:?}/{} {annotation} {{\n", spec.step);
                open += 1;
            }
            None => text += &format!("{}\n", quoted(graph, tree.leaves(at)[0])),
        }
    });
    text += &"}\n".repeat(open);
    let source = Source::new("backwards", text);
    let tree = parse_tree(&source, graph);
    let tree = tree.unwrap_or_else(|error| panic!("{}", error.render(&source)));
    let scans: Vec<NodeId> = match keep_scans {
        true => Vec::new(),
        false => graph.node_ids().filter(scans).collect(),
    };
    differs(subject, plan, (graph, &tree), &scans, rng)
}

/// Whether a tree gives other results than the plan for some inputs and some meaning of the ops.
fn differs(
    subject: &Subject,
    plan: &Plan,
    (graph, tree): (&Graph, &LoopTree),
    ignored: &[NodeId],
    rng: &mut Rng,
) -> bool {
    (0..DRAWS).any(|_| {
        let other = subject.with_other_inputs(rng);
        let right = other.run_with_other_ops(plan.graph(), plan.tree(), ignored);
        let right = right.unwrap_or_else(|error| panic!("a plan runs with any ops: {error}"));
        let got = other.run_with_other_ops(graph, tree, ignored);
        got.ok().as_ref() != Some(&right)
    })
}

/// Why a refused change that went right when it was forced through may do so; `None`: it may not.
fn excuse(
    subject: &Subject,
    plan: &Plan,
    mutation: &Mutation,
    error: &MutationError,
    forced: &Forced,
    rng: &mut Rng,
) -> Option<Excuse> {
    let graph = plan.graph();
    if let MutationError::Refused { error, .. } = error {
        match error {
            ScheduleError::NotParallel { node, dim } => {
                let node = named(&forced.graph, node)?;
                let dim = forced.graph.find_dim(dim)?;
                if !forced.graph.node(node).dims.contains(&dim) {
                    return Some(Excuse::Race);
                }
                return scan_excuse(subject, plan, forced, (node, dim), rng);
            }
            ScheduleError::ForeignLoop { node, dim, .. } => {
                let node = named(&forced.graph, node)?;
                let dim = forced.graph.find_dim(dim)?;
                return foreign_excuse(subject, plan, forced, (node, dim), rng);
            }
            ScheduleError::EmptyLoop { node, .. } => {
                let node = named(&forced.graph, node)?;
                let mut updates = forced.graph.updates().iter();
                let update = updates.find(|update| update.value == node)?;
                let stays = state_stays(subject, rng, update.state);
                return stays.then_some(Excuse::StateStays);
            }
            _ => {}
        }
    }
    let (reader, node) = match dependence(plan, mutation, error) {
        Some(found) => found,
        None => (mutation.node(), mutation.node()),
    };
    let binding = graph.bind(&subject.case.sizes()).expect("the sizes fit");
    let empty = |node: NodeId| {
        let dims = loop_dims(graph, node);
        binding.elements(graph, node) == 0 || dims.iter().any(|dim| binding.size(*dim) == 0)
    };
    if empty(reader) || empty(node) {
        return Some(Excuse::NothingToOrder);
    }
    if let Some((step, depth)) = forced.about
        && let Some(step) = plan.schedule().step(step)
        && step.loops.get(depth).is_some()
        && rounds(subject, graph, step, depth) < 2
    {
        return Some(Excuse::NothingToOrder);
    }
    let is_reverse =
        |node: NodeId| matches!(graph.node(node).op, NodeOp::Scan { reverse: true, .. });
    if reader != node && is_reverse(reader) && is_reverse(node) {
        return Some(Excuse::ReverseInStep);
    }
    if shows_backwards(subject, plan, forced, rng) {
        return Some(Excuse::CountsOnDirection);
    }
    // Who reads a node inline reads it after the change.
    let mut pairs = [(reader, node), (mutation.node(), node)].into_iter();
    if pairs.any(|pair| read_for_nothing(subject, plan, rng, pair)) {
        return Some(Excuse::ReadForNothing);
    }
    let is_state = matches!(graph.node(node).op, NodeOp::State);
    if is_state && state_stays(subject, rng, node) {
        return Some(Excuse::StateStays);
    }
    if is_state && changes_twice_alike(subject, rng, node) {
        return Some(Excuse::ChangesTwice);
    }
    if matches!(graph.node(node).op, NodeOp::Scan { .. }) {
        return Some(Excuse::BehindAScan);
    }
    let schedule = plan.schedule();
    let is_step = |node: NodeId| schedule.step(node).is_some();
    let found = accesses(graph, reader, &is_step).unwrap_or_default();
    let of_node = |access: &&Access| access.node == node;
    let reaches_out =
        matches!(&graph.node(reader).op, NodeOp::View(view) if view.outside.is_some());
    let by_chance = |access: &Access| {
        let by_data = access.index.iter().any(Option::is_none);
        reaches_out || access.guarded || by_data || access.is_fully_identity(graph)
    };
    if found.iter().any(|access| access.node == node) && found.iter().filter(of_node).all(by_chance)
    {
        return Some(Excuse::NeverReached);
    }
    is_constant(graph, reader).then_some(Excuse::Constant)
}

/// Whether a node is made of constants alone.
fn is_constant(graph: &Graph, node: NodeId) -> bool {
    let parts = graph.node(node);
    !matches!(parts.op, NodeOp::Input | NodeOp::State)
        && parts.inputs.iter().all(|input| is_constant(graph, *input))
}

/// Why a scan whose loop is parallel may be right.
fn scan_excuse(
    subject: &Subject,
    plan: &Plan,
    forced: &Forced,
    (node, dim): (NodeId, DimId),
    rng: &mut Rng,
) -> Option<Excuse> {
    let (graph, tree) = (&forced.graph, &forced.tree);
    let binding = graph.bind(&subject.case.sizes()).expect("the sizes fit");
    let around = tree.ancestors(tree.find(node)?);
    let specs = around.iter().filter_map(|place| tree.spec(*place));
    let mut covered = binding.size(dim);
    let mut several = false;
    for spec in specs.filter(|spec| spec.dim == dim) {
        several |= spec.annotation.is_concurrent() && covered > spec.step;
        covered = covered.min(spec.step);
    }
    if !several || binding.elements(graph, node) == 0 {
        return Some(Excuse::NothingToOrder);
    }
    nobody_cares(subject, plan, rng, node).then_some(Excuse::ReadForNothing)
}

/// Whether results stay the same, whatever all who read a step find there.
fn nobody_cares(subject: &Subject, plan: &Plan, rng: &mut Rng, node: NodeId) -> bool {
    let schedule = plan.schedule();
    let is_step = |node: NodeId| schedule.step(node).is_some();
    let reads = |step: &&NodeSchedule| {
        let found = accesses(plan.graph(), step.node, &is_step).unwrap_or_default();
        found.iter().any(|access| access.node == node)
    };
    let mut readers = schedule.steps.iter().filter(reads).peekable();
    readers.peek().is_some()
        && readers.all(|reader| read_for_nothing(subject, plan, rng, (reader.node, node)))
}

/// Why a step that runs in a loop over a dimension that it does not have may be right.
fn foreign_excuse(
    subject: &Subject,
    plan: &Plan,
    forced: &Forced,
    (node, dim): (NodeId, DimId),
    rng: &mut Rng,
) -> Option<Excuse> {
    let graph = &forced.graph;
    let binding = graph.bind(&subject.case.sizes()).expect("the sizes fit");
    let leaf = forced.tree.find(node)?;
    let around = forced.tree.ancestors(leaf);
    let mut specs = around.iter().filter_map(|place| forced.tree.spec(*place));
    let concurrent = |spec: &LoopSpec| spec.dim == dim && spec.annotation.is_concurrent();
    if specs.clone().any(concurrent) {
        return Some(Excuse::Race);
    }
    let once = |spec: &LoopSpec| spec.dim != dim || binding.size(dim) <= spec.step;
    let dims = loop_dims(graph, node);
    if specs.all(once) || dims.iter().any(|dim| binding.size(*dim) == 0) {
        return Some(Excuse::NothingToOrder);
    }
    let parts = graph.node(node);
    let along = |node: &NodeId| graph.node(*node).dims.contains(&dim);
    let scatters = matches!(parts.op, NodeOp::Scatter { .. });
    if along(&node) || scatters && parts.inputs.iter().any(along) {
        return Some(Excuse::RunsThrough);
    }
    let mut updates = graph.updates().iter();
    if let Some(update) = updates.find(|update| update.value == node)
        && changes_twice_alike(subject, rng, update.state)
    {
        return Some(Excuse::ChangesTwice);
    }
    let chooses = match &parts.op {
        NodeOp::ArgReduce { .. } => true,
        NodeOp::Reduce { op, .. } | NodeOp::Scan { op, .. } => match op {
            ReduceOp::Max | ReduceOp::Min | ReduceOp::Any | ReduceOp::All => true,
            ReduceOp::Sum | ReduceOp::Prod => false,
        },
        _ => false,
    };
    if chooses {
        return Some(Excuse::ChoosesTwice);
    }
    if folds_nothing(subject, rng, node) {
        return Some(Excuse::FoldsNothing);
    }
    let for_nothing = nobody_cares(subject, plan, rng, node);
    for_nothing.then_some(Excuse::ReadForNothing)
}

/// Whether all that a step folds is the neutral element, for the inputs that are tried.
fn folds_nothing(subject: &Subject, rng: &mut Rng, node: NodeId) -> bool {
    let graph = &subject.case.graph;
    if usize::from(node) >= graph.node_ids().count() {
        return false;
    }
    let (NodeOp::Reduce { op, acc, .. } | NodeOp::Scan { op, acc, .. }) = &graph.node(node).op
    else {
        return false;
    };
    let mut builder = GraphBuilder::from_graph(graph);
    let folded = builder.output("what is folded", graph.node(node).inputs[0]);
    let Ok(with_folded) = folded.and_then(|_| builder.finish()) else {
        return false;
    };
    (0..DRAWS / 3).all(|_| {
        let mut case = subject.with_other_inputs(rng).case;
        case.graph = with_folded.clone();
        let other = Subject::of(case);
        let neutral = op.identity(*acc);
        let values = other.expected_of("what is folded");
        values.is_some_and(|values| {
            let mut values = values.iter();
            values.all(|value| same_value(cast(value, *acc), neutral))
        })
    })
}

/// Whether a loop that is empty at other sizes shows that it is, or nobody needs what is not computed then.
fn shows_when_empty(
    subject: &Subject,
    plan: &Plan,
    forced: &Forced,
    (node, dim, reader): (&str, &str, &str),
    rng: &mut Rng,
) -> bool {
    let reader = named(&forced.graph, reader.trim_matches('`'));
    let found = (named(&forced.graph, node), forced.graph.find_dim(dim));
    let (Some(node), Some(dim)) = found else {
        return false;
    };
    let symbols = forced.graph.dim(dim).size.symbols();
    let free = reassociated(plan.graph(), plan.schedule());
    (0..6 * DRAWS as i64).any(|draw| {
        let value = draw % 6;
        let mut sizes = subject.case.sizes.clone();
        for (symbol, name, _) in subject.program.integers() {
            if symbols.contains(&symbol) {
                let found = sizes.iter_mut().find(|(given, _)| given == name);
                found.into_iter().for_each(|(_, given)| *given = value);
            }
        }
        let Some(other) = subject.with_sizes(sizes, rng) else {
            return false;
        };
        let graph = &forced.graph;
        let Ok(binding) = graph.bind(&other.case.sizes()) else {
            return false;
        };
        let is_empty = |node: NodeId| binding.elements(graph, node) == 0;
        let nothing = is_empty(node) || reader.is_some_and(is_empty);
        binding.size(dim) == 0 && (nothing || other.run(graph, &forced.tree, &free).is_err())
    })
}

/// The subject at sizes at which most loops have several rounds.
fn at_larger_sizes(subject: Subject, rng: &mut Rng) -> Subject {
    let sizes = subject.case.sizes.iter();
    let sizes = sizes.map(|(name, value)| (name.clone(), (*value).max(4)));
    match subject.with_sizes(sizes.collect(), rng) {
        Some(larger) => larger,
        None => subject,
    }
}

#[test]
fn changes_that_are_refused_would_change_values() {
    let (mut tried, mut different) = (Tally::default(), Tally::default());
    let (mut different_with_other_ops, mut excused) = (Tally::default(), Tally::default());
    let mut unexplained: Vec<String> = Vec::new();
    for seed in 0..SEQUENCES {
        let mut rng = Rng::new(seed ^ 0x5eed);
        let subject = at_larger_sizes(Subject::new(seed), &mut rng);
        let plan = subject.first_plan();
        let steps = plan.schedule().steps.iter();
        let mut mutations: Vec<Mutation> = steps
            .map(|step| Mutation::Fuse { node: step.node })
            .collect();
        mutations.extend((0..2 * LENGTH).map(|_| random_mutation(&mut rng, &plan)));
        for mutation in mutations {
            let Err(error) = plan.mutate(&mutation) else {
                continue;
            };
            let Some(forced) = forced(&plan, &mutation, &error) else {
                continue;
            };
            let what = kind(&mutation);
            tried.count(what);
            let empty = match &error {
                MutationError::Refused {
                    error: ScheduleError::EmptyLoop { node, dim, reader },
                    ..
                } => Some((node.as_str(), dim.as_str(), reader.as_str())),
                _ => None,
            };
            let wrong = match empty {
                Some(what) => shows_when_empty(&subject, &plan, &forced, what, &mut rng),
                None => shows(&subject, &plan, &forced, &mut rng),
            };
            if wrong {
                different.count(what);
                continue;
            }
            // What these ops do not tell apart, others in their place do.
            let (graph, tree) = (&*forced.graph, &forced.tree);
            if empty.is_none() && differs(&subject, &plan, (graph, tree), &[], &mut rng) {
                different_with_other_ops.count(what);
                continue;
            }
            match excuse(&subject, &plan, &mutation, &error, &forced, &mut rng) {
                Some(excuse) => excused.count(&format!("{what}: {excuse:?}")),
                None => unexplained.push(format!(
                    "seed {seed}: {error}\n{}",
                    subject.describe(&plan, &mutation)
                )),
            }
        }
    }
    println!("forced: {:?}", tried.0);
    println!("different: {:?}", different.0);
    println!("different with other ops: {:?}", different_with_other_ops.0);
    println!("excused: {:?}", excused.0);
    for message in unexplained.iter().take(12) {
        println!("{message}");
    }
    assert!(
        unexplained.is_empty(),
        "{} changes are refused and change nothing",
        unexplained.len()
    );
    for what in [
        "move before",
        "move after",
        "fuse",
        "annotate",
        "inline",
        "add",
        "compute",
    ] {
        let times = different.of(what);
        assert!(times >= 20, "`{what}` was seen to go wrong {times} times");
    }
}

#[test]
fn loops_and_steps_that_are_refused_make_no_tree() {
    let mut tried = Tally::default();
    for seed in 0..SEQUENCES {
        let subject = Subject::new(seed);
        let mut rng = Rng::new(seed ^ 0x10ad);
        let plan = subject.first_plan();
        let (graph, mut schedule) = (plan.graph(), plan.schedule().clone());
        let mutation = random_mutation(&mut rng, &plan);
        let Err(error) = plan.mutate(&mutation) else {
            continue;
        };
        let step = schedule
            .steps
            .iter()
            .position(|step| step.node == mutation.node());
        let Some(at) = step else {
            continue;
        };
        let loops = &mut schedule.steps[at].loops;
        let place = |loops: &[LoopSpec], name: LoopName| {
            loops.iter().position(|spec| LoopName::from(*spec) == name)
        };
        match (&mutation, &error) {
            (Mutation::Swap { outer, .. }, MutationError::SameDimension { .. }) => {
                let outer = place(loops, *outer).expect("the loop is there");
                loops.swap(outer, outer + 1);
            }
            (Mutation::Reorder { loops: names, .. }, MutationError::SameDimension { .. }) => {
                let old = loops.clone();
                let places = names.iter().filter_map(|name| place(&old, *name));
                *loops = places.map(|place| old[place]).collect();
            }
            (Mutation::Inline { .. }, MutationError::NotInline { .. }) => {
                schedule.steps.remove(at);
            }
            (Mutation::RemoveLoop { name, .. }, MutationError::NotRemoved { .. })
                if name.step == 1 =>
            {
                let depth = place(loops, *name).expect("the loop is there");
                loops.remove(depth);
            }
            _ => continue,
        }
        tried.count(kind(&mutation));
        if LoopTree::new(graph, &schedule).is_ok() {
            let what = subject.describe(&plan, &mutation);
            panic!("seed {seed}: {error}\nbut it has a tree: {what}");
        }
    }
    println!("without a tree: {:?}", tried.0);
    for what in ["swap", "reorder", "inline", "remove"] {
        assert!(tried.of(what) >= 15, "`{what}`: {}", tried.of(what));
    }
}
