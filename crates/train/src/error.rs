//! What can go wrong with a training run.

use loopwright_checkpoint::{CheckpointError, Mismatch};
use loopwright_data::DataError;
use loopwright_tensor::TensorError;

/// What went wrong with a training run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrainError {
    /// With the network or its step.
    #[error(transparent)]
    Tensor(#[from] TensorError),
    /// With the examples.
    #[error(transparent)]
    Data(#[from] DataError),
    /// With a checkpoint's file.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// A checkpoint of another network.
    #[error("{file} does not fit this network:\n{mismatch}")]
    Mismatch {
        /// The file.
        file: String,
        /// What is missing, too much or different.
        mismatch: Mismatch,
    },
    /// A checkpoint of another run.
    #[error("{file} is of another run: its {what} is {found}, and here it is {expected}")]
    OtherRun {
        /// The file.
        file: String,
        /// What differs.
        what: &'static str,
        /// What it says.
        found: String,
        /// What it should be.
        expected: String,
    },
}
