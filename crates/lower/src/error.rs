//! What can go wrong in lowering.

use loopwright_looptree::ScheduleError;

/// Why a program could not be lowered.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum LowerError {
    /// The schedule does not fit the graph.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
    /// An index expression that cannot be handled.
    #[error("{0}")]
    Symbolic(String),
}

impl From<loopwright_symbolic::Error> for LowerError {
    fn from(error: loopwright_symbolic::Error) -> LowerError {
        LowerError::Symbolic(error.to_string())
    }
}
