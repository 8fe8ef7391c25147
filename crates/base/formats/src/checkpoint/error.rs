//! What can go wrong with a file.

use crate::checkpoint::header::ArrayInfo;
use loopwright_array::ArrayError;
use loopwright_ops::DType;
use std::io;

/// Why arrays cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// The system refused.
    #[error("cannot {action} {file}: {reason}")]
    File {
        /// `open`, `read` or `write`.
        action: &'static str,
        /// The file.
        file: String,
        /// What the system says.
        reason: io::Error,
    },
    /// The file is not what the format asks for.
    #[error("{file} is not a whole safetensors file: {fault}")]
    Broken {
        /// The file.
        file: String,
        /// What is wrong with it.
        fault: Fault,
    },
    /// An array that is not in the file.
    #[error("{file} has no array `{}`{}", .name.escape_debug(), did_you_mean(.near))]
    Absent {
        /// The file.
        file: String,
        /// The name that was asked for.
        name: String,
        /// A name in the file that resembles it.
        near: Option<String>,
    },
    /// A name that an array cannot be written under.
    #[error("cannot write {file}: {reason}")]
    Name {
        /// The file.
        file: String,
        /// The name and what is wrong with it.
        reason: String,
    },
    /// More bytes than there is memory for.
    #[error("cannot read `{}` from {file}: {reason}", .name.escape_debug())]
    Memory {
        /// The file.
        file: String,
        /// The array.
        name: String,
        /// The array that there is no memory for.
        reason: ArrayError,
    },
}

impl CheckpointError {
    pub(crate) fn file(action: &'static str, file: &str, reason: io::Error) -> CheckpointError {
        CheckpointError::File {
            action,
            file: file.to_owned(),
            reason,
        }
    }
}

/// `; did you mean …?` where there is something to mean.
pub(crate) fn did_you_mean(near: &Option<String>) -> String {
    match near {
        Some(near) => format!("; did you mean `{}`?", near.escape_debug()),
        None => String::new(),
    }
}

/// What is wrong with the bytes of a file.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Fault {
    /// Not even the header's length.
    #[error("it has {bytes} bytes, and the length of its header alone takes 8")]
    NoLength {
        /// What it has.
        bytes: u64,
    },
    /// A file that ends within its header, or is something else.
    #[error(
        "its header is said to be {length} bytes long, and {left} follow; it was cut off, or is a file of another kind"
    )]
    CutHeader {
        /// What is announced.
        length: u64,
        /// What there is.
        left: u64,
    },
    /// A header beyond what the format allows.
    #[error(
        "its header is said to be {length} bytes long, and the format allows {limit}; it may be a file of another kind"
    )]
    LongHeader {
        /// What is announced.
        length: u64,
        /// What is allowed.
        limit: u64,
    },
    /// A header that is no JSON object, or whose metadata are no strings.
    #[error("its header cannot be read: {reason}")]
    Header {
        /// What is wrong and where.
        reason: String,
    },
    /// An array's entry in the header that lacks something or has it in another form.
    #[error("the entry of `{}` in its header cannot be read: {reason}", .name.escape_debug())]
    Entry {
        /// The array.
        name: String,
        /// What is wrong.
        reason: String,
    },
    /// Two entries of one name.
    #[error("its header has two entries `{}`", .name.escape_debug())]
    Twice {
        /// The name.
        name: String,
    },
    /// Elements of a type that no dtype stands for.
    #[error(
        "`{}` has elements of type `{}`, which is not known here; {} are", .name.escape_debug(), .stored.escape_debug(), crate::checkpoint::header::stored_names()
    )]
    DType {
        /// The array.
        name: String,
        /// The type as the file has it.
        stored: String,
    },
    /// A shape too large for the address space.
    #[error("`{}` of shape {shape:?} does not fit into memory", .name.escape_debug())]
    TooLarge {
        /// The array.
        name: String,
        /// Its shape.
        shape: Vec<u64>,
    },
    /// Bytes that end before they begin.
    #[error("the bytes of `{}` end at {end}, before they begin at {begin}", .name.escape_debug())]
    Backwards {
        /// The array.
        name: String,
        /// The first byte.
        begin: u64,
        /// The byte after the last.
        end: u64,
    },
    /// More or fewer bytes than shape and dtype make.
    #[error("`{}` is {info}, which takes {expected} bytes, and {got} are set aside for it", .name.escape_debug())]
    Count {
        /// The array.
        name: String,
        /// What it is said to be.
        info: ArrayInfo,
        /// What that takes.
        expected: u64,
        /// What there is.
        got: u64,
    },
    /// Bytes behind the end of the file.
    #[error("the bytes of `{}` end at {end} of {data}: the file was cut off", .name.escape_debug())]
    Beyond {
        /// The array.
        name: String,
        /// The byte after its last.
        end: u64,
        /// The bytes after the header.
        data: u64,
    },
    /// Two arrays that share bytes.
    #[error("the bytes of `{}` and `{}` overlap at {at}", .names.0.escape_debug(), .names.1.escape_debug())]
    Overlap {
        /// The arrays.
        names: (String, String),
        /// The first byte of both.
        at: u64,
    },
    /// Bytes of no array.
    #[error("the {bytes} bytes from {at} on belong to no array")]
    Unused {
        /// The first of them.
        at: u64,
        /// How many.
        bytes: u64,
    },
    /// A boolean that is neither.
    #[error("element {at} of `{}` is the {dtype} {byte}, and only 0 and 1 are", .name.escape_debug())]
    Truth {
        /// The array.
        name: String,
        /// Its dtype.
        dtype: DType,
        /// Which element, in row-major order.
        at: usize,
        /// What it is.
        byte: u8,
    },
}
