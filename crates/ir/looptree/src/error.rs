//! What can be wrong with a schedule or a tree.

use loopwright_graph::{EditError, Graph};

/// What is wrong with a schedule.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ScheduleError {
    /// A step for something that is given from outside.
    #[error("`{node}` is given from outside and has no loops; remove it from the schedule")]
    Parameter {
        /// The node.
        node: String,
    },
    /// Two steps for one node.
    #[error("`{node}` stands twice in the schedule")]
    Twice {
        /// The node.
        node: String,
    },
    /// A loop over a dimension that the node does not have, where it would change what is computed.
    #[error("`{node}` cannot run in a loop over `{dim}`, which it does not have: {why}")]
    ForeignLoop {
        /// The node.
        node: String,
        /// The dimension.
        dim: String,
        /// What would go wrong.
        why: &'static str,
    },
    /// A layout that is not one of the node.
    #[error("the layout of `{node}`: {why}")]
    Layout {
        /// The node.
        node: String,
        /// What is wrong.
        why: String,
    },
    /// A change to the program that does not fit.
    #[error(transparent)]
    Edit(#[from] EditError),
    /// A step below 1.
    #[error("the loop of `{node}` over `{dim}` has the step {step}; a step is at least 1")]
    Step {
        /// The node.
        node: String,
        /// The dimension.
        dim: String,
        /// The step.
        step: i64,
    },
    /// A parallel loop whose iterations depend on one another.
    #[error(
        "the loop of `{node}` over `{dim}` cannot be parallel: each iteration needs the one before"
    )]
    NotParallel {
        /// The node.
        node: String,
        /// The dimension.
        dim: String,
    },
    /// A node that is read one step back where it has not been computed yet.
    #[error(
        "`{reader}` reads `{node}` one step back along `{dim}`: both have to run in one loop over `{dim}`, and loops \
         around it only over what is read where it is computed"
    )]
    Recurrence {
        /// What is read.
        node: String,
        /// What reads it.
        reader: String,
        /// The dimension.
        dim: String,
    },
    /// Steps that do not fall.
    #[error("the loops of `{node}` over `{dim}` must have falling steps, outermost first")]
    Order {
        /// The node.
        node: String,
        /// The dimension.
        dim: String,
    },
    /// A dimension that is not run through.
    #[error("`{node}` needs a last loop over `{dim}` with step 1")]
    Uncovered {
        /// The node.
        node: String,
        /// The dimension.
        dim: String,
    },
    /// A step that would not be computed where a loop has no iterations.
    #[error(
        "`{node}` is computed anew in each iteration of a loop over `{dim}`, which may have none, and {reader} needs it even then"
    )]
    EmptyLoop {
        /// The node.
        node: String,
        /// The dimension.
        dim: String,
        /// Who needs it.
        reader: String,
    },
    /// A node that must be in the schedule.
    #[error("`{node}` is not in the schedule, but {why}")]
    Missing {
        /// The node.
        node: String,
        /// Why it must be.
        why: &'static str,
    },
    /// A node that is computed after it is read.
    #[error("`{node}` is computed after `{reader}`, which reads it")]
    TooLate {
        /// The node.
        node: String,
        /// Who reads it.
        reader: String,
    },
    /// A delegate without a name.
    #[error("`{node}` is delegated to a backend without a name")]
    NamelessDelegate {
        /// The node.
        node: String,
    },
    /// A state that is read after it was overwritten.
    #[error(
        "state `{state}` is overwritten before `{reader}` has read its old value; give the new value memory of its own by scheduling it, or move the write to the end"
    )]
    StateOverwritten {
        /// The state.
        state: String,
        /// Who reads it.
        reader: String,
    },
    /// An index expression that cannot be handled.
    #[error("{0}")]
    Symbolic(String),
}

impl ScheduleError {
    /// The error of an index expression, with the names that a graph gives its symbols.
    pub fn symbolic(graph: &Graph, error: &loopwright_symbolic::Error) -> ScheduleError {
        let names = |symbol| graph.symbol_name(symbol);
        ScheduleError::Symbolic(error.display(&names).to_string())
    }
}
