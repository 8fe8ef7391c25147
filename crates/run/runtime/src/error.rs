//! What can go wrong.

use loopwright_backend::{BackendError, Unavailable};
use loopwright_compile::ProgramError;
use loopwright_graph::GraphError;
use loopwright_ops::DType;
use loopwright_threads::{Cause, ThreadsError};
use std::sync::Arc;

/// Why something could not be done.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeError {
    /// A device's name that no backend has.
    #[error("there is no device `{name}`; the devices are {known} and auto")]
    NoSuchDevice {
        /// The name.
        name: String,
        /// What there is.
        known: String,
    },
    /// A number that a backend has no device of.
    #[error("`{platform}` has {devices} device(s), numbered from 0; there is no {ordinal}")]
    NoSuchOrdinal {
        /// The backend.
        platform: String,
        /// The number.
        ordinal: String,
        /// How many there are.
        devices: usize,
    },
    /// A backend that cannot be used here.
    #[error("device `{name}` is not available: {why}")]
    Unavailable {
        /// The backend.
        name: String,
        /// Why.
        why: Unavailable,
    },
    /// A backend that is there and does not work: `auto` does not pass it over.
    #[error("device `{name}` is broken: {why}; fix it, or choose another device by its name")]
    Broken {
        /// The backend.
        name: String,
        /// Why.
        why: Unavailable,
    },
    /// No backend at all can be used.
    #[error("no device is available ({reasons})")]
    NoDevice {
        /// Each backend with its reason.
        reasons: String,
    },
    /// A program could not be compiled.
    #[error("`{code}`: {reason}")]
    Compile {
        /// The program's name.
        code: String,
        /// Why.
        reason: Box<ProgramError>,
    },
    /// Names or modes of a program's arrays that cannot be.
    #[error("`{code}`: {reason}")]
    Code {
        /// The program's name.
        code: String,
        /// What is wrong.
        reason: String,
    },
    /// Code that was compiled for another backend.
    #[error("`{code}` was compiled for `{made_for}`; the context is on device `{device}`")]
    OtherPlatform {
        /// The program's name.
        code: String,
        /// What it was compiled for.
        made_for: String,
        /// Where it was to be linked.
        device: Arc<str>,
    },
    /// Sizes that do not fit a program.
    #[error("`{code}`: {reason}")]
    Sizes {
        /// The program's name.
        code: String,
        /// What is wrong.
        reason: Box<GraphError>,
    },
    /// A node that had to be in the context.
    #[error("cannot link `{code}`: `{node}` must come from the context, which does not have it")]
    NotInContext {
        /// The program's name.
        code: String,
        /// The node.
        node: String,
    },
    /// A node that the context has, but not so.
    #[error(transparent)]
    Mismatch(Box<Mismatch>),
    /// Two nodes that share memory, one of which is written.
    #[error(
        "cannot link `{code}`: it writes `{written}`, which shares memory with `{other}`, which it uses too"
    )]
    Shared {
        /// The program's name.
        code: String,
        /// The one that is written.
        written: String,
        /// The other one.
        other: String,
    },
    /// An array that no pool can hold.
    #[error("`{node}` needs {bytes} bytes, and a pool holds at most {cap}; raise `pool_cap`")]
    OverCap {
        /// The node.
        node: String,
        /// What it needs.
        bytes: u128,
        /// The most that a pool holds.
        cap: usize,
    },
    /// A device that gave no memory.
    #[error("device `{device}`: no memory for {what} ({bytes} bytes): {reason}")]
    Allocation {
        /// The device.
        device: Arc<str>,
        /// What it was for.
        what: String,
        /// How much.
        bytes: usize,
        /// Why.
        reason: String,
    },
    /// A kernel that could not be prepared.
    #[error("device `{device}`: cannot prepare `{code}`: {reason}")]
    Prepare {
        /// The device.
        device: Arc<str>,
        /// The program's name.
        code: String,
        /// Why.
        reason: String,
    },
    /// A static symbol without a value.
    #[error("routine `{routine}`: `{symbol}` is not bound; it takes a value in {low} .. {high}")]
    Unbound {
        /// The routine.
        routine: Arc<str>,
        /// The symbol.
        symbol: Arc<str>,
        /// The smallest value.
        low: i64,
        /// The first value that is too large.
        high: i64,
    },
    /// A static symbol's value outside of its range.
    #[error("routine `{routine}`: `{symbol}` is {value}, outside of its range {low} .. {high}")]
    OutOfRange {
        /// The routine.
        routine: Arc<str>,
        /// The symbol.
        symbol: Arc<str>,
        /// The value.
        value: i64,
        /// The smallest value.
        low: i64,
        /// The first value that is too large.
        high: i64,
    },
    /// A name that is no static symbol.
    #[error("routine `{routine}` has no static symbol `{symbol}`; it has [{known}]")]
    NoSuchSymbol {
        /// The routine.
        routine: Arc<str>,
        /// The name.
        symbol: String,
        /// What there is.
        known: String,
    },
    /// An array that nothing has written.
    #[error("routine `{routine}` reads `{node}`, which nothing has written yet; write it first")]
    Uninitialised {
        /// The routine.
        routine: Arc<str>,
        /// The node.
        node: Arc<str>,
    },
    /// An array whose writer was interrupted.
    #[error(
        "the values of `{node}` are lost: what was changing them was interrupted; write it anew before it is read"
    )]
    Lost {
        /// The node.
        node: Arc<str>,
    },
    /// A copy of an array that nothing has written.
    #[error("`{node}` is to be copied, and nothing has written it yet")]
    NothingToCopy {
        /// The node.
        node: Arc<str>,
    },
    /// The wrong node, or none, in the merge buffer.
    #[error(
        "`{routine}` merges `{expected}`, and the merge buffer of stream `{stream}` holds {found}"
    )]
    WrongMerge {
        /// The routine or program.
        routine: String,
        /// What it merges.
        expected: String,
        /// The stream.
        stream: Arc<str>,
        /// What is there, in words.
        found: String,
    },
    /// A routine that writes what it merges in place.
    #[error(
        "routine `{routine}` writes `{node}`, which it would merge in place; merge with a copy"
    )]
    MergesItself {
        /// The routine.
        routine: Arc<str>,
        /// The node.
        node: Arc<str>,
    },
    /// Memory of one device that another cannot read in place.
    #[error(
        "device `{device}` cannot read `{node}` in place on `{source_device}`; merge with a copy"
    )]
    NotStreamable {
        /// The reader.
        device: Arc<str>,
        /// The node.
        node: String,
        /// Where it is.
        source_device: Arc<str>,
    },
    /// Values of another dtype or shape than the node's.
    #[error("`{node}` is {expected}, and the values given are {got}")]
    Values {
        /// The node.
        node: String,
        /// What it is.
        expected: String,
        /// What was given.
        got: String,
    },
    /// A slice that cannot be.
    #[error("cannot slice `{node}`: {reason}")]
    Slice {
        /// The node.
        node: String,
        /// Why.
        reason: String,
    },
    /// Host memory that a device cannot work in.
    #[error("device `{device}` cannot work in host memory; write `{node}` instead")]
    NoHostMemory {
        /// The device.
        device: Arc<str>,
        /// The node.
        node: String,
    },
    /// A value of another runtime.
    #[error("{what} belongs to another runtime")]
    OtherRuntime {
        /// What does.
        what: String,
    },
    /// A stream failed, or a thread could not be started.
    #[error("{}", stream_failure(.0))]
    Stream(#[from] ThreadsError),
    /// A file could not be written.
    #[error("cannot write {path}: {reason}")]
    File {
        /// The file.
        path: String,
        /// Why.
        reason: std::io::Error,
    },
}

impl RuntimeError {
    /// The error for memory that nothing has written, where that is because its writer was interrupted.
    pub(crate) fn lost(self) -> RuntimeError {
        match self {
            RuntimeError::Uninitialised { node, .. } | RuntimeError::NothingToCopy { node } => {
                RuntimeError::Lost { node }
            }
            other => other,
        }
    }

    /// Whether it says that the work was told to end.
    pub fn is_interrupt(&self) -> bool {
        match self {
            RuntimeError::Stream(ThreadsError::Interrupted) => true,
            RuntimeError::Compile { reason, .. } => {
                matches!(**reason, ProgramError::Backend(BackendError::Interrupted))
            }
            _ => false,
        }
    }
}

/// A node that a context has with another dtype or shape than a program.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "cannot link `{code}`: it has `{node}` as {wanted}, and the context has it as {found} (from `{origin}`)"
)]
pub struct Mismatch {
    /// The program's name.
    pub code: String,
    /// The node.
    pub node: String,
    /// What the program has.
    pub wanted: String,
    /// What the context has.
    pub found: String,
    /// What brought it there.
    pub origin: String,
}

/// A stream's failure in the words of this layer. Streams are called after their device: `cc:0.1`.
fn stream_failure(error: &ThreadsError) -> String {
    let ThreadsError::Poisoned(failure) = error else {
        return error.to_string();
    };
    let (device, _) = failure
        .queue
        .rsplit_once('.')
        .unwrap_or((&failure.queue, ""));
    let how = match &failure.cause {
        Cause::Error(error) => format!("failed: {error}"),
        Cause::Panic(message) => format!("panicked: {message}"),
    };
    format!(
        "device `{device}`, stream `{}`: `{}` {how}",
        failure.queue, failure.task
    )
}

/// A dtype and a shape, as programs write them.
pub(crate) fn describe(dtype: DType, shape: &[usize]) -> String {
    let sizes: Vec<String> = shape.iter().map(usize::to_string).collect();
    format!("{dtype}[{}]", sizes.join(", "))
}
