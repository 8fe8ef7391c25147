//! What can go wrong with data.

use loopwright_array::ArrayError;
use loopwright_formats::image::ImageError;
use loopwright_formats::npy::NpyError;
use loopwright_ops::DType;
use std::io;

/// Why data cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    /// The system refused.
    #[error("cannot {action} {file}: {reason}")]
    File {
        /// `open`, `read`, `write` or `list`.
        action: &'static str,
        /// The file or folder.
        file: String,
        /// What the system says.
        reason: io::Error,
    },
    /// A file that is not what its format asks for.
    #[error("{file} cannot be read: {reason}")]
    Broken {
        /// The file.
        file: String,
        /// What is wrong.
        reason: String,
    },
    /// A field of a table that is not what its column holds.
    #[error("{file}, line {line}, column {column} (`{name}`): {reason}", name = .name.escape_debug())]
    Field {
        /// The file.
        file: String,
        /// The line on which the row starts, from 1.
        line: u64,
        /// The column, from 1.
        column: usize,
        /// The column's name.
        name: String,
        /// What is wrong.
        reason: String,
    },
    /// Batches of another number of arrays than they are taken as.
    #[error("a batch of this set has {found} arrays, and {wanted} are to be taken from it")]
    Arrays {
        /// How many the pattern takes.
        wanted: usize,
        /// How many there are.
        found: usize,
    },
    /// A row of a table that cannot be read.
    #[error("{file}, line {line}: {reason}")]
    Row {
        /// The file.
        file: String,
        /// The line on which the row starts, from 1.
        line: u64,
        /// What is wrong.
        reason: String,
    },
    /// A column that a table does not have.
    #[error("{file} has no column `{name}`; it has {}", .names.join(", "), name = .name.escape_debug())]
    NoColumn {
        /// The file.
        file: String,
        /// The column asked for.
        name: String,
        /// Those that there are.
        names: Vec<String>,
    },
    /// A column whose values the dtype asked for cannot hold.
    #[error("{file}: column `{name}` holds {kind} values, which are not made {dtype}", name = .name.escape_debug())]
    ColumnType {
        /// The file.
        file: String,
        /// The column.
        name: String,
        /// What it holds.
        kind: &'static str,
        /// What was asked for.
        dtype: DType,
    },
    /// An `.npy` file that is not whole.
    #[error("{file} cannot be read: {reason}")]
    Npy {
        /// The file.
        file: String,
        /// What is wrong.
        reason: NpyError,
    },
    /// A picture that cannot be read.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// An array that cannot be made.
    #[error(transparent)]
    Array(#[from] ArrayError),
    /// Arrays whose first sizes differ.
    #[error(
        "the arrays of a set have one first size, the number of examples; array {at} is {dtype}{shape:?}, and {examples} are expected"
    )]
    FirstSize {
        /// Which array, from 0.
        at: usize,
        /// Its dtype.
        dtype: DType,
        /// Its shape.
        shape: Vec<usize>,
        /// The number of examples of the others.
        examples: usize,
    },
    /// Pictures or other arrays to be stacked that differ.
    #[error(
        "{file} is {dtype}{shape:?}, and those before it are {expected_dtype}{expected:?}; arrays of one batch are alike"
    )]
    Unlike {
        /// The file.
        file: String,
        /// Its dtype.
        dtype: DType,
        /// Its shape.
        shape: Vec<usize>,
        /// The dtype of those before.
        expected_dtype: DType,
        /// The shape of those before.
        expected: Vec<usize>,
    },
    /// An example that is not there.
    #[error("there is no example {index} in a set of {examples}")]
    Index {
        /// The index asked for.
        index: usize,
        /// How many there are.
        examples: usize,
    },
    /// A set and options that make no batch.
    #[error("a set of {examples} examples gives no batch of {batch}: {advice}")]
    NoBatch {
        /// How many there are.
        examples: usize,
        /// The size of a batch.
        batch: usize,
        /// What to do.
        advice: &'static str,
    },
    /// An argument out of its range.
    #[error("{what} is {got}, and {range} is expected")]
    Argument {
        /// Which.
        what: &'static str,
        /// What was given.
        got: String,
        /// What can be given.
        range: &'static str,
    },
    /// A character that the vocabulary does not have.
    #[error("the character {character:?} (at {at}) is not in the vocabulary of {size} characters")]
    Character {
        /// The character.
        character: char,
        /// Which of the text, from 0.
        at: usize,
        /// How many the vocabulary has.
        size: usize,
    },
    /// A token that the vocabulary does not have.
    #[error("the token {token} (at {at}) is not in the vocabulary: tokens are 0 to {}", .size.saturating_sub(1))]
    Token {
        /// The token.
        token: i64,
        /// Which, from 0.
        at: usize,
        /// How many there are.
        size: usize,
    },
    /// A text that is no position of a loader.
    #[error("`{}` is not a position of a loader, such as `{}`", .text.escape_debug(), crate::data::position::EXAMPLE)]
    PositionText {
        /// The text.
        text: String,
    },
    /// A position of another loader.
    #[error(
        "the position was saved by a loader with {what} {saved}, and here it is {here}: the batches would be others"
    )]
    Position {
        /// What differs.
        what: &'static str,
        /// What was saved.
        saved: String,
        /// What this loader has.
        here: String,
    },
    /// What a function of the user's said.
    #[error("a batch could not be mapped: {0}")]
    Map(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The thread that makes batches ahead panicked.
    #[error("making a batch panicked: {message}")]
    Panicked {
        /// What it said.
        message: String,
    },
    /// The thread that makes batches ahead cannot be started.
    #[error("a thread that makes batches ahead cannot be started: {0}")]
    Thread(#[source] io::Error),
}

impl DataError {
    pub(crate) fn file(action: &'static str, file: &str, reason: io::Error) -> DataError {
        DataError::File {
            action,
            file: file.to_owned(),
            reason,
        }
    }

    pub(crate) fn broken(file: &str, reason: impl Into<String>) -> DataError {
        DataError::Broken {
            file: file.to_owned(),
            reason: reason.into(),
        }
    }
}
