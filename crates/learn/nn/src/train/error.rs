//! What can go wrong with a training run.

use crate::data::DataError;
use loopwright_formats::checkpoint::{CheckpointError, Mismatch};
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
    /// Arrays of a checkpoint that contradict each other: sizes that nothing has said are one and the same for several
    /// entries, and the file has several.
    #[error(
        "`{name}` of {file} has the shape {shape:?}, which contradicts the arrays before it: {reason}"
    )]
    Contradiction {
        /// The file.
        file: String,
        /// The array.
        name: String,
        /// The shape of the array.
        shape: Vec<usize>,
        /// Which sizes differ.
        reason: String,
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
    /// An array of a file that is not made of such parts.
    #[error(
        "`{entry}` is to be part {at} of {of} of `{name}` in {file}, counted from 0, and the first axis of {shape:?} \
         has no such part; say another one with `Stored::part`"
    )]
    NoPart {
        /// The file.
        file: String,
        /// The entry that asks for it.
        entry: String,
        /// The array.
        name: String,
        /// The shape of the array, transposed if it is to be.
        shape: Vec<usize>,
        /// Which part.
        at: usize,
        /// Of how many.
        of: usize,
    },
}
