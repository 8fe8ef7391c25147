//! What can be wrong with a file.

use loopwright_ops::DType;
use std::io;

/// What is wrong with an `.npy` file.
#[derive(Debug, thiserror::Error)]
pub enum NpyError {
    /// Reading or writing failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// Another kind of file.
    #[error("this is not an .npy file: it does not start with \\x93NUMPY")]
    NotNpy,
    /// A version of the format that is not known.
    #[error(
        "version {major}.{minor} of the .npy format is not known; versions 1.0, 2.0 and 3.0 are"
    )]
    Version {
        /// Major version.
        major: u8,
        /// Minor version.
        minor: u8,
    },
    /// A header that is not what the format prescribes.
    #[error("the header is malformed: {0}")]
    Header(String),
    /// Elements of a type that no dtype stands for.
    #[error(
        "elements of type `{0}` are not supported; bool, integers up to 64 bits and floats of 16, 32 or 64 bits are"
    )]
    Unsupported(String),
    /// A shape too large for the address space.
    #[error("an array of shape {0:?} does not fit into memory")]
    TooLarge(Vec<usize>),
    /// A file that ends too early.
    #[error("the file ends too early: the header announces {expected} bytes, and {got} are there")]
    Truncated {
        /// What the header announces.
        expected: usize,
        /// What is there.
        got: usize,
    },
    /// Elements of another type than the one asked for.
    #[error("the file holds elements of type {stored}, not {wanted}")]
    DType {
        /// What the file holds.
        stored: String,
        /// What was asked for.
        wanted: DType,
    },
    /// Bytes that do not make up the array they are said to be.
    #[error("an array {dtype}{shape:?} has {expected} bytes, and {got} are given")]
    Length {
        /// The dtype.
        dtype: DType,
        /// The shape.
        shape: Vec<usize>,
        /// What dtype and shape make.
        expected: usize,
        /// What was given.
        got: usize,
    },
}
