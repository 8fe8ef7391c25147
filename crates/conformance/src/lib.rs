//! What every backend must do, and the search for programs that it does wrong.
//!
//! - [`generate`]: random programs, schedules and inputs, each named by a seed.
//! - [`oracle`]: runs a program on a backend, compares with the reference evaluator
//!   ([`loopwright_graph::evaluate()`]) and says which stage is to blame for a difference.
//! - [`shrink`]: makes a failing program small and writes it to a file.
//! - [`ops`]: every op at every dtype against values computed independently.
//! - [`features`]: small programs, one for each thing that a backend must be able to run.
//! - [`suite`]: all of it, as `loopwright check` runs it, and as the tests of a backend's crate with one
//!   line ([`conformance_tests!`]).
//! - [`mutate`]: damaged texts for the parsers.
//! - [`verify`]: a run of any program, checked after the fact; what `LOOPWRIGHT_VERIFY=1` does.
//!
//! Results are compared without an assumed tolerance; how that is sound is said at
//! [`generate::Arithmetic`].
//!
//! ```
//! use loopwright_conformance::generate::random_case;
//! use loopwright_conformance::oracle::Oracle;
//! use loopwright_interp::Interp;
//! use std::sync::Arc;
//!
//! let oracle = Oracle::new(Arc::new(Interp));
//! for seed in 0..10 {
//!     oracle.check(&random_case(seed))?;
//! }
//! # Ok::<(), loopwright_conformance::oracle::Mismatch>(())
//! ```

mod error;
pub mod features;
mod files;
pub mod generate;
pub mod mutate;
pub mod ops;
pub mod oracle;
mod rebuild;
mod rng;
pub mod shrink;
pub mod suite;
pub mod verify;

pub use error::ConformanceError;
pub use rng::Rng;
pub use suite::{CheckOptions, Failure, Report, check};
pub use verify::{Difference, VerifiedRun, Verifier};
