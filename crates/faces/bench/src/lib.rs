//! Benchmarks: Loopwright and its peers side by side, in one run, interleaved.
//!
//! A [`Report`] holds one [`Row`] for each piece of work: our median, each peer's median, and the
//! ratio to the best peer (above 1 means that we are ahead). Ours and theirs are measured in turn, so
//! that a busy machine slows both. Peers of the [`compile_suite`] and the [`cpu_suite`] run in processes of their
//! own, in a Python environment that the benchmark makes itself, and a row counts only if they computed what we
//! did; those of the [`runtime_suite`] are libraries in this one.
//!
//! ```
//! use loopwright_bench::{Report, Row};
//! use std::collections::BTreeMap;
//!
//! let peers = BTreeMap::from([("other".to_owned(), 20.0)]);
//! let report = Report::new(vec![Row::new("matmul 64", "GFLOP/s", 60.0, peers, Some(0.9))]);
//! assert_eq!(report.rows[0].ratio, Some(3.0));
//! assert!(report.rows[0].reached());
//! ```

// A test implements an unsafe function that computes nothing.
#![cfg_attr(not(test), forbid(unsafe_code))]

mod callable;
mod compile;
mod cores;
mod cpu;
mod exchange;
mod field;
mod peer;
mod plot;
mod race;
mod report;
mod runtime;
mod sample;
mod schedule;
mod side;
mod table;
mod work;

pub use compile::{compile_suite, graph_to_kernel};
pub use cpu::cpu_suite;
pub use peer::{Environment, Peer, PeerError, Prepared};
pub use report::{FailedWork, Report, Row, Standing};
pub use runtime::runtime_suite;

use loopwright::graph::Array;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::num::NonZero;

/// What a side computed, by name.
type Results = BTreeMap<String, Array>;

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
    /// A side computed something else than ours.
    #[error("{work}: {side} computes another `{name}`: {how}")]
    Differs {
        /// The work.
        work: String,
        /// The other side.
        side: String,
        /// The output or state.
        name: String,
        /// How far it is off.
        how: String,
    },
    /// Arrays could not be given to a peer or taken from it.
    #[error("cannot {what}: {reason}")]
    Exchange {
        /// What was attempted.
        what: String,
        /// What happened.
        reason: String,
    },
    /// The device cannot be used.
    #[error("device `{0}` is not available: {1}")]
    Device(String, String),
    /// No work is called so.
    #[error("no work has a name with `{0}` in it")]
    NoSuchWork(String),
}

/// Whom to measure beside our side.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Against {
    /// All peers of the suite that can be had here.
    All,
    /// These, each of which must be there; backends of ours may be among them.
    Named(Vec<String>),
}

/// What to measure.
#[derive(Clone, Debug)]
pub struct Options {
    /// The backend that runs our side.
    pub device: String,
    /// Whom to compare with.
    pub against: Against,
    /// Only work whose name contains this.
    pub only: Option<String>,
    /// How many samples of each side.
    pub samples: usize,
    /// How many threads a peer in a process of its own may use, and how many cores everybody is kept to. Our threads
    /// are those of the process's pool.
    pub threads: NonZero<usize>,
    /// Where Python environments are kept.
    pub environments: std::path::PathBuf,
}

impl Options {
    /// Whether work of this name is asked for.
    fn wants(&self, work: &str) -> bool {
        let only = self.only.as_deref();
        only.is_none_or(|only| work.contains(only))
    }

    /// Refuses a name that no work has, before environments are made and anything is measured. `ask` asks for every
    /// piece of work of the suite, and is given none.
    fn check_only(&self, ask: impl FnOnce(&dyn Fn(&str) -> bool)) -> Result<(), BenchError> {
        let Some(only) = &self.only else {
            return Ok(());
        };
        let found = Cell::new(false);
        ask(&|work| {
            found.set(found.get() || self.wants(work));
            false
        });
        match found.get() {
            true => Ok(()),
            false => Err(BenchError::NoSuchWork(only.clone())),
        }
    }
}
