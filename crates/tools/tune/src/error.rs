//! What can stop a search.

use std::io;
use std::path::{Path, PathBuf};

/// What can stop a search. What is wrong with a candidate is no error but an [`crate::Outcome`].
#[derive(Debug, thiserror::Error)]
pub enum TuneError {
    /// A program that cannot be read.
    #[error("{0}")]
    Program(String),
    /// Sizes that do not fit the program.
    #[error(transparent)]
    Graph(#[from] loopwright_graph::GraphError),
    /// A schedule that does not fit the program.
    #[error(transparent)]
    Schedule(#[from] loopwright_looptree::ScheduleError),
    /// A device that is not there.
    #[error("there is no device `{0}`")]
    Device(String),
    /// Inputs that do not fit the memory.
    #[error("out of memory: {0}")]
    Memory(String),
    /// What a program should give cannot be computed.
    #[error("what the program should give cannot be computed: {0}")]
    Reference(String),
    /// What a program should give takes too long to compute.
    #[error(
        "what the program should give takes longer to compute than there is time; \
         give more seconds, or smaller sizes"
    )]
    TooLarge,
    /// The program cannot be measured as it stands, so there is nothing to compare candidates with.
    #[error("the program cannot be measured {how}: {reason}")]
    Start {
        /// With which schedule.
        how: &'static str,
        /// What happened.
        reason: String,
    },
    /// The process that measures does not start.
    #[error("the process that measures does not start: {0}")]
    Worker(String),
    /// A file that cannot be read or written.
    #[error("cannot {action} {}: {reason}", .path.display())]
    File {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// What happened.
        reason: io::Error,
    },
    /// A log of another search.
    #[error("{} is the log of another program, size or device", .path.display())]
    OtherLog {
        /// The file.
        path: PathBuf,
    },
    /// The cache cannot be used.
    #[error(transparent)]
    Cache(#[from] loopwright_files::cache::CacheError),
    /// A mutation that is not accepted.
    #[error(transparent)]
    Mutation(#[from] loopwright_looptree::MutationError),
}

impl TuneError {
    pub(crate) fn file(action: &'static str, path: &Path, reason: io::Error) -> TuneError {
        TuneError::File {
            action,
            path: path.to_owned(),
            reason,
        }
    }
}
