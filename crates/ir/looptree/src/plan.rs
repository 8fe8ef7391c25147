//! A program with a schedule for it.

use crate::allocation::{Allocation, allocations_in_parts};
use crate::error::ScheduleError;
use crate::mutate::{
    Cursor, Moved, Mutation, MutationError, edits_of, legal_edits, legal_of, mutate,
};
use crate::schedule::{Edit, Schedule};
use crate::text::print_mutation;
use crate::tree::{LoopTree, parts_by_delegate};
use loopwright_graph::{DimId, Graph, NodeId};
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// A program and a schedule for it, checked: the graph with the schedule's changes made, and its loop tree. Cheap to
/// clone; nothing in it changes, so undo is keeping the old one.
///
/// ```
/// use loopwright_graph::parse;
/// use loopwright_looptree::{Plan, parse_mutation, parse_schedule, print_schedule};
/// use loopwright_text::Source;
///
/// let program = "loopwright program 1
/// input A: f32[i=64, k=32]
/// input B: f32[k, j=48]
/// output C = sum[k](A * B)
/// ";
/// let graph = parse(&Source::new("product.lw", program)).unwrap().with_stores();
/// let text = "loopwright schedule 1\nC: j/16, i, k, j vectorize\n";
/// let schedule = parse_schedule(&Source::new("product.sched", text), &graph).unwrap();
/// let plan = Plan::new(graph, schedule)?;
/// // Sixteen columns of B are copied to where they lie one behind the other.
/// let copy = parse_mutation(&Source::new("edit", "copy B for C as panel"), plan.graph()).unwrap();
/// let packed = plan.mutate(&copy)?.plan;
/// assert_eq!(packed.to_string(), "loopwright schedule 1
/// copy panel = B for %2
/// panel: j/16, k, j
/// C: j/16, i, k, j vectorize
/// ");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Plan {
    parts: Arc<Parts>,
}

#[derive(Debug)]
struct Parts {
    program: Arc<Graph>,
    graph: Arc<Graph>,
    schedule: Schedule,
    tree: LoopTree,
    /// Computed when it is first asked for.
    allocations: OnceLock<FxHashMap<NodeId, Allocation>>,
}

impl Plan {
    /// A schedule for a program whose results are stores (see [`Graph::with_stores`]).
    ///
    /// # Errors
    /// What is wrong with the schedule.
    pub fn new(program: impl Into<Arc<Graph>>, schedule: Schedule) -> Result<Plan, ScheduleError> {
        let program = program.into();
        let graph = match schedule.edits.is_empty() {
            true => Arc::clone(&program),
            false => Arc::new(schedule.edited(&program)?.into_owned()),
        };
        Plan::of_edited(program, graph, schedule)
    }

    /// The same for one who has `graph`, the program with the schedule's edits made ([`Schedule::edited`]), already.
    ///
    /// # Errors
    /// What is wrong with the schedule.
    pub fn of_edited(
        program: Arc<Graph>,
        graph: Arc<Graph>,
        schedule: Schedule,
    ) -> Result<Plan, ScheduleError> {
        let tree = LoopTree::new(&graph, &schedule)?;
        Ok(Plan {
            parts: Arc::new(Parts {
                program,
                graph,
                schedule,
                tree,
                allocations: OnceLock::new(),
            }),
        })
    }

    /// The program as it is written.
    pub fn program(&self) -> &Arc<Graph> {
        &self.parts.program
    }

    /// The program with the schedule's changes made: what steps, tree and everything further speak of.
    pub fn graph(&self) -> &Arc<Graph> {
        &self.parts.graph
    }

    /// The schedule.
    pub fn schedule(&self) -> &Schedule {
        &self.parts.schedule
    }

    /// The loop tree.
    pub fn tree(&self) -> &LoopTree {
        &self.parts.tree
    }

    /// The memory of every step, where each backend that the tree is handed to runs its part of it on its own (see
    /// [`parts_by_delegate`]).
    ///
    /// # Errors
    /// Index expressions that are out of range.
    pub fn allocations(&self) -> Result<&FxHashMap<NodeId, Allocation>, ScheduleError> {
        let parts = &*self.parts;
        if let Some(known) = parts.allocations.get() {
            return Ok(known);
        }
        let found = crate::allocations(&parts.graph, &parts.schedule, &parts.tree)?;
        Ok(parts.allocations.get_or_init(|| found))
    }

    /// The memory of every step, where each of `parts`, ranges of [`LoopTree::roots`], runs on its own.
    ///
    /// # Errors
    /// Index expressions that are out of range.
    pub fn allocations_in_parts(
        &self,
        parts: &[Range<usize>],
    ) -> Result<Cow<'_, FxHashMap<NodeId, Allocation>>, ScheduleError> {
        let delegated = parts_by_delegate(self.tree());
        let same = delegated.len() == parts.len()
            && delegated
                .iter()
                .zip(parts)
                .all(|((roots, _), part)| roots == part);
        if same || (parts.len() < 2 && delegated.len() < 2) {
            return Ok(Cow::Borrowed(self.allocations()?));
        }
        allocations_in_parts(self.graph(), self.schedule(), self.tree(), parts).map(Cow::Owned)
    }

    /// The plan with one change made.
    ///
    /// # Errors
    /// What does not fit the schedule, and what would change a value.
    pub fn mutate(&self, mutation: &Mutation) -> Result<Changed, MutationError> {
        let (graph, schedule) = (self.graph(), self.schedule());
        let edited = edits_of(self.program(), graph, schedule, mutation)?;
        let (graph, schedule, reassociates, moved, removed) = match edited {
            Some(edited) => (
                Arc::new(edited.graph),
                edited.schedule,
                edited.reassociates,
                edited.moved,
                edited.removed,
            ),
            None => {
                let mutated = mutate(graph, schedule, mutation)?;
                let graph = Arc::clone(graph);
                let moved = mutated.moved;
                (graph, mutated.schedule, mutated.reassociates, moved, None)
            }
        };
        let program = Arc::clone(self.program());
        let plan =
            Plan::of_edited(program, graph, schedule).map_err(|error| MutationError::Refused {
                mutation: print_mutation(self.graph(), mutation),
                error,
            })?;
        Ok(Changed {
            plan,
            reassociates,
            moved,
            removed,
        })
    }

    /// The changes that [`Plan::mutate`] accepts, with parameters that are likely to be of use: see
    /// [`crate::legal`].
    pub fn legal(&self) -> Vec<Mutation> {
        let mut found = legal_of(self.graph(), self.schedule(), self.tree());
        let edits = legal_edits(self);
        found.extend(edits.into_iter().filter(|edit| self.mutate(edit).is_ok()));
        found
    }
}

impl std::fmt::Display for Plan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&crate::text::print_schedule(self.graph(), self.schedule()))
    }
}

/// A plan that was changed.
#[derive(Clone, Debug)]
pub struct Changed {
    /// The new plan.
    pub plan: Plan,
    /// Whether a reduction over floats is folded in another order than before, which changes how it
    /// rounds. Strict mode does not allow that; [`crate::reassociated`] says where a schedule stands.
    pub reassociates: bool,
    moved: Moved,
    removed: Option<Removed>,
}

impl Changed {
    /// Where a cursor into the old plan is in the new one; `None` where its step is none any more, and for a
    /// cursor that was at no place.
    pub fn follow(&self, cursor: Cursor) -> Option<Cursor> {
        let depth = match self.moved.get(&cursor.node) {
            Some(depths) => *depths.get(cursor.depth)?,
            None => cursor.depth,
        };
        let node = match &self.removed {
            Some(removed) => removed.node(cursor.node)?,
            None => cursor.node,
        };
        let step = self.plan.schedule().step(node)?;
        (depth <= step.loops.len()).then_some(Cursor { node, depth })
    }
}

/// Nodes and dimensions that a removed edit had made: those behind them are counted anew.
#[derive(Clone, Debug)]
pub(crate) struct Removed {
    pub(crate) nodes: std::ops::Range<u32>,
    pub(crate) dims: std::ops::Range<u32>,
}

impl Removed {
    /// A node's new handle.
    pub(crate) fn node(&self, node: NodeId) -> Option<NodeId> {
        renumbered(node.0, &self.nodes).map(NodeId)
    }

    /// A dimension's new handle.
    pub(crate) fn dim(&self, dim: DimId) -> Option<DimId> {
        renumbered(dim.0, &self.dims).map(DimId)
    }

    /// An edit that comes after the removed one.
    pub(crate) fn edit(&self, edit: &Edit) -> Option<Edit> {
        Some(match edit {
            Edit::Copy { name, of, readers } => Edit::Copy {
                name: Arc::clone(name),
                of: self.node(*of)?,
                readers: readers
                    .iter()
                    .map(|reader| self.node(*reader))
                    .collect::<Option<_>>()?,
            },
            Edit::Pad { name, view } => Edit::Pad {
                name: Arc::clone(name),
                view: self.node(*view)?,
            },
            Edit::Stage {
                name,
                node,
                dim,
                count,
                keep,
            } => Edit::Stage {
                name: Arc::clone(name),
                node: self.node(*node)?,
                dim: self.dim(*dim)?,
                count: *count,
                keep: *keep,
            },
        })
    }
}

fn renumbered(number: u32, removed: &std::ops::Range<u32>) -> Option<u32> {
    if number < removed.start {
        Some(number)
    } else if number >= removed.end {
        Some(number - (removed.end - removed.start))
    } else {
        None
    }
}
