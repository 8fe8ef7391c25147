//! Why a schedule is not changed.

use crate::error::ScheduleError;
use loopwright_graph::EditError;

/// Why a mutation is refused.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum MutationError {
    /// A node or dimension that the graph does not have.
    #[error("the mutation names a node or a dimension that the program does not have")]
    OtherGraph,
    /// A node without code of its own.
    #[error("`{node}` is not a step of the schedule; `store {node}` makes an inline node one")]
    NotAStep {
        /// The node.
        node: String,
    },
    /// A loop that the step does not have.
    #[error("`{node}` has no loop `{name}`; its loops: {loops}")]
    NoLoop {
        /// The step.
        node: String,
        /// The loop.
        name: String,
        /// Those it has.
        loops: String,
    },
    /// A factor that makes no two loops.
    #[error("the loop `{name}` of `{node}` cannot be split by {factor}: {why}")]
    Factor {
        /// The step.
        node: String,
        /// The loop.
        name: String,
        /// The factor.
        factor: i64,
        /// What is wrong with it.
        why: String,
    },
    /// A loop with no other one over its dimension inside.
    #[error("`{node}` has no other loop over `{dim}` inside `{name}` that it could be merged with")]
    NothingToMerge {
        /// The step.
        node: String,
        /// The loop.
        name: String,
        /// Its dimension.
        dim: String,
    },
    /// Loops that are not neighbours.
    #[error(
        "the loop `{inner}` of `{node}` is not the one right inside `{outer}`; `reorder` moves loops further"
    )]
    NotNeighbours {
        /// The step.
        node: String,
        /// The loop that should be further out.
        outer: String,
        /// The loop that should be right inside it.
        inner: String,
    },
    /// Loops over one dimension in the wrong order.
    #[error(
        "the loop `{inner}` of `{node}` cannot come before `{outer}`: the inner one runs over a block of the outer"
    )]
    SameDimension {
        /// The step.
        node: String,
        /// The loop with the larger step.
        outer: String,
        /// The loop with the smaller step.
        inner: String,
    },
    /// An order that does not have every loop once.
    #[error("`{given}` does not name each loop of `{node}` once; its loops: {loops}")]
    NotAnOrder {
        /// The step.
        node: String,
        /// What is given.
        given: String,
        /// The loops it has.
        loops: String,
    },
    /// A step that can share no further loop.
    #[error("`{node}` cannot share a further loop: {why}")]
    NothingToShare {
        /// The step.
        node: String,
        /// What is in the way.
        why: String,
    },
    /// A dependence between two steps that a shared loop would break.
    #[error("`{node}` cannot share the loop `{name}` with `{other}`: {why}")]
    Dependence {
        /// The step.
        node: String,
        /// The loop.
        name: String,
        /// The step before, inside the loop.
        other: String,
        /// The dependence.
        why: String,
    },
    /// A step that shares nothing.
    #[error("`{node}` shares no loop with the step before it")]
    NothingShared {
        /// The step.
        node: String,
    },
    /// A node that cannot be computed where it is read.
    #[error("`{node}` cannot be inline: {why}")]
    NotInline {
        /// The node.
        node: String,
        /// Why.
        why: &'static str,
    },
    /// A node that cannot become a step.
    #[error("`{node}` cannot become a step: {why}")]
    NotStored {
        /// The node.
        node: String,
        /// Why.
        why: &'static str,
    },
    /// A loop that is not one to add.
    #[error("`{node}` gets no loop `{name}`: {why}")]
    NotAdded {
        /// The step.
        node: String,
        /// The loop.
        name: String,
        /// Why.
        why: String,
    },
    /// A loop over a dimension of the step's own.
    #[error(
        "the loop `{name}` of `{node}` cannot be removed: the step has the dimension; `merge` joins loops"
    )]
    NotRemoved {
        /// The step.
        node: String,
        /// The loop.
        name: String,
    },
    /// A node that is not in memory.
    #[error("`{node}` is not in memory, so there is nothing to copy; `store {node}` puts it there")]
    NotCopied {
        /// The node.
        node: String,
    },
    /// A node that is not a copy that the schedule makes.
    #[error("`{node}` is not a copy that the schedule makes")]
    NotACopy {
        /// The node.
        node: String,
    },
    /// A copy that something else was made of.
    #[error("`{node}` cannot go: another change of the schedule was made to it")]
    InUse {
        /// The copy.
        node: String,
    },
    /// A change to the program that does not fit.
    #[error(transparent)]
    Edit(EditError),
    /// A change to the program, where there is only a schedule.
    #[error("this change makes a new node, which takes a plan and not a schedule alone")]
    NeedsPlan,
    /// A change that changes nothing.
    #[error("`{node}` stays as it is: {why}")]
    Unchanged {
        /// The step.
        node: String,
        /// What is so already.
        why: String,
    },
    /// The new schedule is not one.
    #[error("`{mutation}` is refused: {error}")]
    Refused {
        /// The mutation's text.
        mutation: String,
        /// What would be wrong with the schedule.
        error: ScheduleError,
    },
}
