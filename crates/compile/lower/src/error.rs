//! What can go wrong in lowering.

use loopwright_looptree::ScheduleError;
use std::ops::Range;

/// Why a program could not be lowered.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum LowerError {
    /// The schedule does not fit the graph.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
    /// Parts that are not the program.
    #[error(
        "the parts {parts:?} do not follow one another over all of the program's {roots} root subtrees"
    )]
    Parts {
        /// The parts, as ranges of root subtrees.
        parts: Vec<Range<usize>>,
        /// How many root subtrees there are.
        roots: usize,
    },
    /// An index expression that cannot be handled.
    #[error("{0}")]
    Symbolic(String),
}

impl From<loopwright_symbolic::Error> for LowerError {
    fn from(error: loopwright_symbolic::Error) -> LowerError {
        LowerError::Symbolic(error.to_string())
    }
}
