//! What can go wrong.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

/// Why something could not be done. Cheap to clone: one failure has many waiters.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ThreadsError {
    /// A task failed before what was asked for, on the same queue.
    #[error(transparent)]
    Poisoned(#[from] Arc<Failure>),
    /// A task waits for its own queue to go on.
    #[error(
        "queue `{queue}`: a task that waits for its own queue would wait forever; \
         push or wait from another thread"
    )]
    WaitsForItself {
        /// The queue's name.
        queue: Arc<str>,
    },
    /// The work that waited was told to end.
    #[error("interrupted")]
    Interrupted,
    /// The threads are in the process that this one was forked from.
    #[error(
        "this process was forked from one that had started to compute, and a fork takes no threads along; \
         make devices and arrays anew in the child, or start it with `spawn` or `forkserver` instead of `fork`"
    )]
    Forked,
    /// The system gave no thread.
    #[error("cannot start the thread `{name}`: {reason}")]
    Thread {
        /// The thread's name.
        name: String,
        /// What the system said.
        reason: Arc<std::io::Error>,
    },
    /// The environment asks for a number of threads that cannot be.
    #[error("LOOPWRIGHT_THREADS is `{value}`; it takes a number from 1 to {most}")]
    Threads {
        /// What it says.
        value: String,
        /// The largest number.
        most: usize,
    },
    /// A pool was asked for more threads than one can have.
    #[error("a fork-join pool of {wanted} threads was asked for; it has at most {most}")]
    TooManyThreads {
        /// How many were asked for.
        wanted: usize,
        /// The largest number.
        most: usize,
    },
    /// The size of the process's pool was set after its first use.
    #[error(
        "the fork-join pool of the process already has {threads} threads; \
         {wanted} must be asked for before its first use"
    )]
    AlreadyStarted {
        /// How many it has.
        threads: usize,
        /// How many were asked for.
        wanted: usize,
    },
}

/// The failure that poisoned a queue.
#[derive(Debug)]
pub struct Failure {
    /// The queue's name.
    pub queue: Arc<str>,
    /// The task's name.
    pub task: String,
    /// How many tasks were pushed to the queue before it.
    pub index: u64,
    /// What happened.
    pub cause: Cause,
}

/// How a task failed.
#[derive(Debug)]
pub enum Cause {
    /// It returned an error.
    Error(Box<dyn Error + Send + Sync>),
    /// It panicked, with this message.
    Panic(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Failure { queue, task, .. } = self;
        match &self.cause {
            Cause::Error(error) => write!(f, "queue `{queue}`: task `{task}` failed: {error}"),
            Cause::Panic(message) => {
                write!(f, "queue `{queue}`: task `{task}` panicked: {message}")
            }
        }
    }
}

impl Error for Failure {}
