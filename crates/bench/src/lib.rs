//! Benchmarks: Loopwright and its peers side by side, in one run, interleaved.
//!
//! A [`Report`] holds one [`Row`] for each piece of work: our median, each peer's median, and the
//! ratio to the best peer (above 1 means that we are ahead). Ours and theirs are measured in turn, so
//! that a busy machine slows both. Peers of the [`compile_suite`] run in processes of their own, in a Python
//! environment that the benchmark makes itself; those of the [`runtime_suite`] are libraries in this one.

mod compile;
mod peer;
mod report;
mod runtime;
mod sample;

pub use compile::{compile_suite, graph_to_kernel};
pub use peer::{Environment, Peer, PeerError};
pub use report::{Report, Row};
pub use runtime::runtime_suite;

/// What can go wrong in a benchmark.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// A peer could not be run.
    #[error(transparent)]
    Peer(#[from] PeerError),
    /// One of our programs could not be run.
    #[error("{work}: {reason}")]
    Ours {
        /// The work.
        work: String,
        /// What happened.
        reason: String,
    },
    /// The device cannot be used.
    #[error("device `{0}` is not available: {1}")]
    Device(String, String),
}

/// What to measure.
#[derive(Clone, Debug)]
pub struct Options {
    /// The backend that runs our side.
    pub device: String,
    /// Peers to compare with. Without any, the compile suite measures our side alone, and the runtime
    /// suite beside all that it knows.
    pub against: Vec<String>,
    /// Only work whose name contains this.
    pub only: Option<String>,
    /// How many samples of each side.
    pub samples: usize,
    /// Where Python environments are kept.
    pub environments: std::path::PathBuf,
}
