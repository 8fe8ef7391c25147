//! The loop tree: the exact control flow.

use crate::access::{Access, accesses};
use crate::error::ScheduleError;
use crate::schedule::{LoopSpec, NodeSchedule, Schedule, can_inline, carries, is_given, loop_dims};
use loopwright_arena::TiVec;
use loopwright_graph::{DimId, Graph, NodeId, NodeOp};
use loopwright_symbolic::Bounds;
use loopwright_threads::interrupt::unwind_if_asked;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::Arc;

loopwright_arena::handle! {
    /// A loop or a leaf of a tree.
    pub struct TreeRef;
}

/// What is at a place.
#[derive(Clone, PartialEq, Debug)]
pub enum TreeNode {
    /// A loop over blocks of a dimension.
    Loop {
        /// Dimension, step and annotation.
        spec: LoopSpec,
        /// What runs in each iteration, in order.
        children: Vec<TreeRef>,
    },
    /// The computation of one element (or, for sorts and scatters, one row) of a node.
    Leaf(NodeId),
}

/// Loops and computations, in the order in which they run.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct LoopTree {
    pub(crate) nodes: TiVec<TreeRef, TreeNode>,
    pub(crate) parents: TiVec<TreeRef, Option<TreeRef>>,
    pub(crate) roots: Vec<TreeRef>,
    /// By outermost place: the backend it is handed to, where it is handed to one.
    pub(crate) delegates: FxHashMap<TreeRef, Arc<str>>,
    /// Loops along which a recurrence runs: their iterations need those before.
    pub(crate) sequential: FxHashSet<TreeRef>,
}

impl LoopTree {
    /// Derives the tree from a graph and a schedule, sharing loops between neighbours as far as the
    /// schedule allows and the dependences permit.
    pub fn new(graph: &Graph, schedule: &Schedule) -> Result<LoopTree, ScheduleError> {
        check(graph, schedule)?;
        let reads = Reads::new(graph, schedule)?;
        reads.check_states(graph, schedule)?;
        reads.check_foreign_loops(graph, schedule)?;
        let mut tree = LoopTree::default();
        let mut leaves = FxHashMap::default();
        for step in &schedule.steps {
            let limit = match tree.roots.last() {
                Some(root) if tree.delegates.get(root) == step.delegate.as_ref() => {
                    step.share.map_or(usize::MAX, |share| share as usize)
                }
                // One backend does not run inside the loops of another.
                _ => 0,
            };
            let mut parent = None;
            let mut depth = 0;
            while depth < step.loops.len().min(limit) {
                let siblings = tree.children_of(parent);
                let Some(candidate) = siblings.last().copied() else {
                    break;
                };
                match tree.node(candidate) {
                    TreeNode::Loop { spec, .. } if *spec == step.loops[depth] => {}
                    _ => break,
                }
                if reads
                    .blocks_sharing(graph, &tree, &leaves, candidate, step.node)
                    .is_some()
                {
                    break;
                }
                parent = Some(candidate);
                depth += 1;
            }
            for spec in &step.loops[depth..] {
                let place = tree.push(
                    parent,
                    TreeNode::Loop {
                        spec: *spec,
                        children: Vec::new(),
                    },
                );
                parent = Some(place);
            }
            let leaf = tree.push(parent, TreeNode::Leaf(step.node));
            leaves.insert(step.node, leaf);
            if let (Some(delegate), Some(root)) = (&step.delegate, tree.roots.last()) {
                tree.delegates.insert(*root, delegate.clone());
            }
        }
        tree.check_recurrences(graph, schedule, &reads, &leaves)?;
        Ok(tree)
    }

    /// Checks that what is read one step back has been computed by then, and finds the loops along which that makes
    /// iterations depend on those before.
    fn check_recurrences(
        &mut self,
        graph: &Graph,
        schedule: &Schedule,
        reads: &Reads,
        leaves: &FxHashMap<NodeId, TreeRef>,
    ) -> Result<(), ScheduleError> {
        for step in &schedule.steps {
            for access in reads.of(step.node) {
                let Some(over) = access.delayed else { continue };
                if is_given(graph, access.node) {
                    continue;
                }
                let name = graph.node_name(access.node);
                let Some(of) = leaves.get(&access.node) else {
                    return Err(ScheduleError::Missing {
                        node: name,
                        why: "it is read one step back, so that it has to be in memory",
                    });
                };
                let own = self.ancestors(leaves[&step.node]);
                let others = self.ancestors(*of);
                let common = own.iter().zip(&others).take_while(|(a, b)| a == b).count();
                let along =
                    |place: &TreeRef| self.spec(*place).is_some_and(|spec| spec.dim == over);
                let first = own[..common].iter().position(along);
                let is_later = *of >= leaves[&step.node];
                // Before the loop along which it runs, only what is read where it is computed may be common.
                let outside = &own[..first.unwrap_or(common)];
                let apart = outside.iter().any(|place| {
                    self.spec(*place).is_some_and(|spec| {
                        graph.node(access.node).dims.contains(&spec.dim)
                            && !access.is_identity(graph, spec.dim)
                    })
                });
                let torn = own[common..].iter().any(along) || others[common..].iter().any(along);
                if (is_later || first.is_some()) && (apart || torn || first.is_none()) {
                    return Err(ScheduleError::Recurrence {
                        node: name,
                        reader: graph.node_name(step.node),
                        dim: graph.dim(over).name.clone(),
                    });
                }
                let loops: Vec<TreeRef> = own[..common].iter().copied().filter(along).collect();
                for place in loops {
                    let concurrent = self
                        .spec(place)
                        .is_some_and(|spec| spec.annotation.is_concurrent());
                    if concurrent {
                        return Err(ScheduleError::NotParallel {
                            node: name,
                            dim: graph.dim(over).name.clone(),
                        });
                    }
                    self.sequential.insert(place);
                }
            }
        }
        Ok(())
    }

    /// Whether a recurrence runs along a loop, so that its iterations need those before.
    pub fn is_sequential(&self, place: TreeRef) -> bool {
        self.sequential.contains(&place)
    }

    /// The outermost places, in order.
    pub fn roots(&self) -> &[TreeRef] {
        &self.roots
    }

    /// What is at a place.
    pub fn node(&self, place: TreeRef) -> &TreeNode {
        &self.nodes[place]
    }

    /// How many places there are.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether nothing runs.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The loop around a place.
    pub fn parent(&self, place: TreeRef) -> Option<TreeRef> {
        self.parents[place]
    }

    /// What runs inside a loop; nothing for a leaf.
    pub fn children(&self, place: TreeRef) -> &[TreeRef] {
        match self.node(place) {
            TreeNode::Loop { children, .. } => children,
            TreeNode::Leaf(_) => &[],
        }
    }

    /// The loop at a place.
    pub fn spec(&self, place: TreeRef) -> Option<&LoopSpec> {
        match self.node(place) {
            TreeNode::Loop { spec, .. } => Some(spec),
            TreeNode::Leaf(_) => None,
        }
    }

    /// The outermost place around a place, which may be itself.
    pub fn root(&self, place: TreeRef) -> TreeRef {
        let mut root = place;
        while let Some(parent) = self.parent(root) {
            root = parent;
        }
        root
    }

    /// Whether a place is a loop's or inside it.
    pub fn is_inside(&self, place: TreeRef, outer: TreeRef) -> bool {
        let mut at = Some(place);
        while let Some(place) = at {
            if place == outer {
                return true;
            }
            at = self.parent(place);
        }
        false
    }

    /// The backend that a place's root subtree is handed to; `None`: the program's own.
    pub fn delegate(&self, place: TreeRef) -> Option<&str> {
        self.delegates.get(&self.root(place)).map(|name| &**name)
    }

    /// The loops around a place, outermost first.
    pub fn ancestors(&self, place: TreeRef) -> SmallVec<[TreeRef; 8]> {
        let mut chain: SmallVec<[TreeRef; 8]> = SmallVec::new();
        let mut at = self.parent(place);
        while let Some(place) = at {
            chain.push(place);
            at = self.parent(place);
        }
        chain.reverse();
        chain
    }

    /// The innermost loop around both places; `None` where that is the whole program.
    pub fn lowest_common_ancestor(&self, a: TreeRef, b: TreeRef) -> Option<TreeRef> {
        let (a, b) = (self.ancestors(a), self.ancestors(b));
        let common = a.iter().zip(&b).take_while(|(a, b)| a == b);
        common.last().map(|(place, _)| *place)
    }

    /// The leaf that computes a node.
    pub fn find(&self, node: NodeId) -> Option<TreeRef> {
        self.nodes
            .iter()
            .position(|at| matches!(at, TreeNode::Leaf(found) if *found == node))
            .map(TreeRef::from)
    }

    /// The leaf of every node that has one.
    pub fn leaf_places(&self) -> FxHashMap<NodeId, TreeRef> {
        let places = self.nodes.iter_enumerated();
        places
            .filter_map(|(at, node)| match node {
                TreeNode::Leaf(node) => Some((*node, at)),
                TreeNode::Loop { .. } => None,
            })
            .collect()
    }

    /// Visits every place, outer before inner, in the order in which they run; `depth` counts the
    /// loops around it.
    pub fn walk(&self, visit: &mut dyn FnMut(TreeRef, usize)) {
        fn go(
            tree: &LoopTree,
            place: TreeRef,
            depth: usize,
            visit: &mut dyn FnMut(TreeRef, usize),
        ) {
            visit(place, depth);
            for child in tree.children(place) {
                go(tree, *child, depth + 1, visit);
            }
        }
        for root in &self.roots {
            go(self, *root, 0, visit);
        }
    }

    /// The nodes computed at or below a place, in order.
    pub fn leaves(&self, place: TreeRef) -> Vec<NodeId> {
        let mut found = Vec::new();
        self.collect_leaves(place, &mut found);
        found
    }

    fn collect_leaves(&self, place: TreeRef, found: &mut Vec<NodeId>) {
        match self.node(place) {
            TreeNode::Leaf(node) => found.push(*node),
            TreeNode::Loop { children, .. } => {
                for child in children {
                    self.collect_leaves(*child, found);
                }
            }
        }
    }

    /// Whether a loop's iterations are independent: nothing inside is carried along its dimension.
    pub fn trivially_parallel(&self, graph: &Graph, place: TreeRef) -> bool {
        match self.spec(place) {
            Some(spec) => {
                !self.is_sequential(place)
                    && !self
                        .leaves(place)
                        .iter()
                        .any(|leaf| carries(graph, *leaf, spec.dim))
            }
            None => true,
        }
    }

    fn children_of(&self, parent: Option<TreeRef>) -> &[TreeRef] {
        match parent {
            Some(place) => self.children(place),
            None => &self.roots,
        }
    }

    pub(crate) fn push(&mut self, parent: Option<TreeRef>, node: TreeNode) -> TreeRef {
        let place = self.nodes.push_and_get_key(node);
        self.parents.push(parent);
        match parent {
            Some(at) => {
                if let TreeNode::Loop { children, .. } = &mut self.nodes[at] {
                    children.push(place);
                }
            }
            None => self.roots.push(place),
        }
        place
    }
}

/// Checks what does not depend on the tree: every step has the right loops, in an order in which
/// everything is computed before it is read.
fn check(graph: &Graph, schedule: &Schedule) -> Result<(), ScheduleError> {
    let mut position: FxHashMap<NodeId, usize> = FxHashMap::default();
    for (at, step) in schedule.steps.iter().enumerate() {
        let name = || graph.node_name(step.node);
        if is_given(graph, step.node) {
            return Err(ScheduleError::Parameter { node: name() });
        }
        if position.insert(step.node, at).is_some() {
            return Err(ScheduleError::Twice { node: name() });
        }
        if step.delegate.as_deref() == Some("") {
            return Err(ScheduleError::NamelessDelegate { node: name() });
        }
        let dims = loop_dims(graph, step.node);
        for spec in &step.loops {
            let dim = || graph.dim(spec.dim).name.clone();
            if spec.step < 1 {
                return Err(ScheduleError::Step {
                    node: name(),
                    dim: dim(),
                    step: spec.step,
                });
            }
            if spec.annotation.is_concurrent() && carries(graph, step.node, spec.dim) {
                return Err(ScheduleError::NotParallel {
                    node: name(),
                    dim: dim(),
                });
            }
        }
        for (at, spec) in step.loops.iter().enumerate() {
            let mut before = step.loops[..at].iter();
            if before.any(|outer| outer.dim == spec.dim && outer.step <= spec.step) {
                return Err(ScheduleError::Order {
                    node: name(),
                    dim: graph.dim(spec.dim).name.clone(),
                });
            }
        }
        for dim in &dims {
            let mut inner = step.loops.iter().rev();
            let last = inner.find(|spec| spec.dim == *dim);
            if last.is_none_or(|spec| spec.step != 1) {
                return Err(ScheduleError::Uncovered {
                    node: name(),
                    dim: graph.dim(*dim).name.clone(),
                });
            }
        }
        check_layout(graph, step)?;
    }
    let outputs = graph.outputs().iter().map(|output| output.node);
    let updates = graph.updates().iter().map(|update| update.value);
    for node in outputs.chain(updates) {
        if !position.contains_key(&node) {
            return Err(ScheduleError::Missing {
                node: graph.node_name(node),
                why: "it is a result of the program",
            });
        }
    }
    for step in &schedule.steps {
        require(graph, &position, step.node)?;
    }
    Ok(())
}

/// Checks the order in which a step's elements lie in memory.
fn check_layout(graph: &Graph, step: &NodeSchedule) -> Result<(), ScheduleError> {
    let Some(layout) = &step.layout else {
        return Ok(());
    };
    let wrong = |why: String| ScheduleError::Layout {
        node: graph.node_name(step.node),
        why,
    };
    let mut outputs = graph.outputs().iter();
    let mut updates = graph.updates().iter();
    if outputs.any(|output| output.node == step.node)
        || updates.any(|update| update.value == step.node)
    {
        let why = "it is a result of the program, which lies as the caller says";
        return Err(wrong(why.to_owned()));
    }
    let dims = &graph.node(step.node).dims;
    for (at, name) in layout.iter().enumerate() {
        let dim = &graph.dim(name.dim).name;
        if !dims.contains(&name.dim) {
            return Err(wrong(format!("it has no dimension `{dim}`")));
        }
        let mut before = layout[..at].iter();
        if before.any(|outer| outer.dim == name.dim && outer.step <= name.step) {
            return Err(wrong(format!(
                "the steps of `{dim}` must fall, outermost first"
            )));
        }
        if name.step < 1 {
            return Err(wrong(format!("a step of `{dim}` is at least 1")));
        }
    }
    for dim in dims {
        let last = layout.iter().rev().find(|name| name.dim == *dim);
        if last.is_none_or(|name| name.step != 1) {
            let dim = &graph.dim(*dim).name;
            return Err(wrong(format!("`{dim}` needs a last place with step 1")));
        }
    }
    Ok(())
}

/// Checks that everything a step reads is computed before it.
fn require(
    graph: &Graph,
    position: &FxHashMap<NodeId, usize>,
    reader: NodeId,
) -> Result<(), ScheduleError> {
    let mut open: Vec<NodeId> = graph.node(reader).inputs.to_vec();
    let mut inlined = FxHashSet::default();
    while let Some(node) = open.pop() {
        if is_given(graph, node) {
            continue;
        }
        match position.get(&node) {
            Some(at) if *at < position[&reader] => {}
            Some(_) => {
                return Err(ScheduleError::TooLate {
                    node: graph.node_name(node),
                    reader: graph.node_name(reader),
                });
            }
            None if !can_inline(graph, node) => {
                return Err(ScheduleError::Missing {
                    node: graph.node_name(node),
                    why: "it cannot be computed where it is read",
                });
            }
            None => {
                if inlined.insert(node) {
                    open.extend(&graph.node(node).inputs);
                }
            }
        }
    }
    Ok(())
}

/// What every step reads.
pub(crate) struct Reads {
    by_step: FxHashMap<NodeId, Vec<Access>>,
    /// The state a step writes.
    writes: FxHashMap<NodeId, NodeId>,
    /// The step that writes a state.
    writers: FxHashMap<NodeId, NodeId>,
    /// By state that is written: the steps that read it, in order.
    readers: FxHashMap<NodeId, Vec<NodeId>>,
}

impl Reads {
    pub(crate) fn new(graph: &Graph, schedule: &Schedule) -> Result<Reads, ScheduleError> {
        let scheduled: FxHashSet<NodeId> = schedule.steps.iter().map(|step| step.node).collect();
        let updates = graph.updates().iter();
        let mut reads = Reads {
            by_step: FxHashMap::default(),
            writes: updates
                .clone()
                .map(|update| (update.value, update.state))
                .collect(),
            writers: updates.map(|update| (update.state, update.value)).collect(),
            readers: FxHashMap::default(),
        };
        for step in &schedule.steps {
            let found = accesses(graph, step.node, &|node| scheduled.contains(&node))
                .map_err(|error| ScheduleError::symbolic(graph, &error))?;
            for access in &found {
                if reads.writers.contains_key(&access.node) {
                    let readers = reads.readers.entry(access.node).or_default();
                    if readers.last() != Some(&step.node) {
                        readers.push(step.node);
                    }
                }
            }
            reads.by_step.insert(step.node, found);
        }
        Ok(reads)
    }

    pub(crate) fn of(&self, step: NodeId) -> &[Access] {
        unwind_if_asked();
        self.by_step.get(&step).map_or(&[], Vec::as_slice)
    }

    /// Checks that no step reads a state after it was overwritten.
    fn check_states(&self, graph: &Graph, schedule: &Schedule) -> Result<(), ScheduleError> {
        if self.readers.is_empty() {
            return Ok(());
        }
        let steps = schedule.steps.iter().enumerate();
        let position: FxHashMap<NodeId, usize> = steps.map(|(at, step)| (step.node, at)).collect();
        for writer in &schedule.steps {
            let Some(state) = self.writes.get(&writer.node) else {
                continue;
            };
            let late = self
                .readers
                .get(state)
                .into_iter()
                .flatten()
                .find(|reader| {
                    position[*reader] >= position[&writer.node]
                        && self.of(**reader).iter().any(|access| {
                            access.node == *state
                                && !(**reader == writer.node && access.is_fully_identity(graph))
                        })
                });
            if let Some(reader) = late {
                return Err(ScheduleError::StateOverwritten {
                    state: graph.node_name(*state),
                    reader: graph.node_name(*reader),
                });
            }
        }
        Ok(())
    }

    /// Checks the loops over dimensions that a step does not have: it is computed anew in each of their iterations.
    fn check_foreign_loops(&self, graph: &Graph, schedule: &Schedule) -> Result<(), ScheduleError> {
        let mut empty = EmptyLoops::new(graph, schedule, self);
        for step in &schedule.steps {
            let own = loop_dims(graph, step.node);
            let mut folding = false;
            for spec in &step.loops {
                if own.contains(&spec.dim) {
                    folding |= carries(graph, step.node, spec.dim);
                    continue;
                }
                if let Some(why) = self.why_not_anew(graph, step.node, spec, folding) {
                    return Err(ScheduleError::ForeignLoop {
                        node: graph.node_name(step.node),
                        dim: graph.dim(spec.dim).name.clone(),
                        why,
                    });
                }
                empty.check(step.node, spec.dim)?;
            }
        }
        Ok(())
    }

    /// Why a step cannot be computed anew in each iteration of a loop.
    fn why_not_anew(
        &self,
        graph: &Graph,
        step: NodeId,
        spec: &LoopSpec,
        folding: bool,
    ) -> Option<&'static str> {
        let state = self.writes.get(&step);
        let mut outputs = graph.outputs().iter();
        let is_result = state.is_some() || outputs.any(|output| output.node == step);
        let overwrites = || {
            let mut reads = self.of(step).iter();
            reads.any(|access| Some(&access.node) == state)
        };
        let parts = graph.node(step);
        let runs_along = |node: &NodeId| graph.node(*node).dims.contains(&spec.dim);
        // A scatter runs through its updates on its own.
        let scatters = matches!(parts.op, NodeOp::Scatter { .. });
        if runs_along(&step) || scatters && parts.inputs.iter().any(runs_along) {
            Some("it runs through all elements along it at once")
        } else if folding {
            Some("its running values would take the same elements again")
        } else if overwrites() {
            Some("it would take the state's new value for the old one")
        } else if spec.annotation.is_concurrent() && is_result {
            Some("several iterations would write the result at the same time")
        } else {
            None
        }
    }

    /// The node inside the loop at `place` because of which `step` cannot run in the same loop. `leaves` are
    /// those of the tree so far.
    pub(crate) fn blocks_sharing(
        &self,
        graph: &Graph,
        tree: &LoopTree,
        leaves: &FxHashMap<NodeId, TreeRef>,
        place: TreeRef,
        step: NodeId,
    ) -> Option<NodeId> {
        let dim = tree.spec(place)?.dim;
        let inside = |node: NodeId| {
            let leaf = leaves.get(&node);
            leaf.is_some_and(|leaf| tree.is_inside(*leaf, place))
        };
        let dependence = self.of(step).iter().find(|access| {
            // What does not have the dimension is computed anew in every iteration, and all of it is there.
            let has_dim = || loop_dims(graph, access.node).contains(&dim);
            let in_step = || {
                access.delayed == Some(dim)
                    || access.is_identity(graph, dim)
                        && (!carries(graph, access.node, dim) || scans_upwards(graph, access.node))
            };
            inside(access.node) && has_dim() && !in_step()
        });
        if let Some(access) = dependence {
            return Some(access.node);
        }
        // A write to a state may join a loop only if everyone inside reads it in step.
        let reads_in_step = |state: NodeId, reader: NodeId| {
            let mut reads = self.of(reader).iter();
            reads.all(|access| access.node != state || access.is_identity(graph, dim))
        };
        if let Some(state) = self.writes.get(&step) {
            let readers = self.readers.get(state).into_iter().flatten();
            let mut elsewhere =
                readers.filter(|reader| inside(**reader) && !reads_in_step(*state, **reader));
            if let Some(reader) = elsewhere.next() {
                return Some(*reader);
            }
        }
        self.of(step).iter().find_map(|access| {
            let writer = self.writers.get(&access.node)?;
            (inside(*writer) && !access.is_identity(graph, dim)).then_some(*writer)
        })
    }
}

/// Whether a node's element is final in the iteration that takes its input in: that of a scan from the first
/// element on.
fn scans_upwards(graph: &Graph, node: NodeId) -> bool {
    matches!(graph.node(node).op, NodeOp::Scan { reverse: false, .. })
}

/// What is not computed where loops have no iterations.
struct EmptyLoops<'a> {
    graph: &'a Graph,
    schedule: &'a Schedule,
    reads: &'a Reads,
    bounds: Option<Bounds>,
    /// By node: the steps that read it.
    readers: Option<FxHashMap<NodeId, Vec<&'a NodeSchedule>>>,
}

impl<'a> EmptyLoops<'a> {
    fn new(graph: &'a Graph, schedule: &'a Schedule, reads: &'a Reads) -> EmptyLoops<'a> {
        EmptyLoops {
            graph,
            schedule,
            reads,
            bounds: None,
            readers: None,
        }
    }

    /// Checks that a step in a loop over a dimension that it does not have is there for those who need it also where
    /// the loop has no iterations: then they have none either.
    fn check(&mut self, node: NodeId, dim: DimId) -> Result<(), ScheduleError> {
        let graph = self.graph;
        let size = &graph.dim(dim).size;
        let bounds = self.bounds.get_or_insert_with(|| graph.bounds());
        if size.range(bounds).lo.is_some_and(|lo| lo > 0) {
            return Ok(());
        }
        let refused = |reader: String| {
            Err(ScheduleError::EmptyLoop {
                node: graph.node_name(node),
                dim: graph.dim(dim).name.clone(),
                reader,
            })
        };
        let mut outputs = graph.outputs().iter();
        if outputs.any(|output| output.node == node) || self.reads.writes.contains_key(&node) {
            return refused("the caller".to_owned());
        }
        let (schedule, reads) = (self.schedule, self.reads);
        let readers = self.readers.get_or_insert_with(|| {
            let mut readers: FxHashMap<NodeId, Vec<&NodeSchedule>> = FxHashMap::default();
            for step in &schedule.steps {
                for access in reads.of(step.node) {
                    readers.entry(access.node).or_default().push(step);
                }
            }
            readers
        });
        let is_empty = |spec: &LoopSpec| graph.dim(spec.dim).size == *size;
        let mut readers = readers.get(&node).into_iter().flatten();
        match readers.find(|reader| !reader.loops.iter().any(is_empty)) {
            Some(reader) => refused(format!("`{}`", graph.node_name(reader.node))),
            None => Ok(()),
        }
    }
}

/// The dimension of every loop around a place, with its step, outermost first.
pub fn loops_around(tree: &LoopTree, place: TreeRef) -> SmallVec<[(DimId, i64); 8]> {
    tree.ancestors(place)
        .iter()
        .filter_map(|at| tree.spec(*at))
        .map(|spec| (spec.dim, spec.step))
        .collect()
}

/// The longest runs of neighbouring root subtrees that one backend runs, as ranges of
/// [`LoopTree::roots`], each with the delegate. In order, and together all roots; none where the tree
/// is empty.
pub fn parts_by_delegate(tree: &LoopTree) -> Vec<(Range<usize>, Option<Arc<str>>)> {
    let mut parts: Vec<(Range<usize>, Option<Arc<str>>)> = Vec::new();
    for (at, root) in tree.roots.iter().enumerate() {
        let delegate = tree.delegates.get(root);
        match parts.last_mut() {
            Some((roots, last)) if last.as_ref() == delegate => roots.end = at + 1,
            _ => parts.push((at..at + 1, delegate.cloned())),
        }
    }
    parts
}
