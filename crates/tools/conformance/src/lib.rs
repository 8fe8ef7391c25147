//! What every backend must do, and the search for programs that it does wrong.
//!
//! - [`generate`]: random programs, schedules and inputs, each named by a seed.
//! - [`oracle`]: runs a program on a backend, compares with the reference evaluator
//!   ([`loopwright_graph::evaluate()`]) and says which stage is to blame for a difference.
//! - [`shrink`]: makes a failing program small and writes it to a file.
//! - [`ops`]: every op at every dtype against values computed independently.
//! - [`kernels`]: kernels written by hand, against the kernel interpreter.
//! - [`features`]: small programs, one for each thing that a backend must be able to run.
//! - [`schedules`]: small programs with schedules, one for each construct of schedules.
//! - [`behaviours`]: what must hold when code meets memory and time, under either scheduler.
//! - [`misuse`]: what must be refused, and how.
//! - [`suite`]: all of it, as `loopwright check` runs it, and as the tests of a backend's crate with one
//!   line ([`conformance_tests!`]).
//! - [`lanes`]: every op at every dtype in scalars and vectors of all widths, for a crate that compiles kernels.
//! - [`mutate`]: damaged texts for the parsers.
//! - [`verify`]: a run of any program, checked after the fact; what `LOOPWRIGHT_VERIFY=1` does.
//!
//! What is tested is a [`Row`]. What a backend does not say that it can do ([`Capabilities`]) does not apply
//! to it. A row that fails because its kernel is made of an op whose own row fails is *blocked*: without the
//! op `exp`, exactly the rows of `exp` fail, and those of everything that has an `exp` in it wait.
//!
//! [`Capabilities`]: loopwright_backend::Capabilities
//!
//! Results are compared without an assumed tolerance; how that is sound is said at
//! [`generate::Arithmetic`].
//!
//! ```
//! use loopwright_backend::Backend;
//! use loopwright_conformance::generate::random_case;
//! use loopwright_conformance::oracle::Oracle;
//! use loopwright_interp::Interp;
//!
//! let oracle = Oracle::new(Backend::kernel_backend(Interp));
//! for seed in 0..10 {
//!     oracle.check(&random_case(seed))?;
//! }
//! # Ok::<(), loopwright_conformance::oracle::Mismatch>(())
//! ```

pub mod behaviours;
mod blocking;
mod buffer;
pub mod changes;
mod error;
pub mod features;
mod files;
mod functions;
mod fuzz;
pub mod generate;
pub mod kernels;
mod kit;
pub mod lanes;
pub mod limits;
pub mod misuse;
pub mod mutate;
pub mod ops;
pub mod oracle;
mod pieces;
mod rebuild;
mod report;
mod rng;
pub mod schedules;
pub mod shrink;
pub mod suite;
mod verdict;
pub mod verify;

pub use error::ConformanceError;
pub use kit::Kit;
pub use pieces::{Piece, Pieces, pieces};
pub use report::{Counts, Failure, Group, Outcome, Report, Row, Table};
pub use rng::Rng;
pub use suite::{CheckOptions, check};
pub use verify::{Difference, VerifiedRun, Verifier};
