//! Random machines, and programs that must become code for every one of them.
//!
//! What a schedule is depends on a [`Target`]: its caches, vectors, registers, threads and matrix unit. The machines that
//! the compiler is developed on are a few of all there are, so [`random_target`] makes others, each named by a seed, and
//! [`sweep()`] takes a corpus of programs through the compiler for each of them: scheduled, lowered, validated, and written as
//! code by every [`Writer`]. Nothing asks the machine at hand and nothing of it runs, so all of them can be targeted from any machine;
//! a sample small enough is interpreted and compared with the reference evaluator.
//!
//! A schedule of ours that is refused is a failure here, although a user would get a plainer one in its place;
//! so is an annotation of a schedule of ours that the kernel does not carry out.
//!
//! - [`machine`]: the machines.
//! - [`programs`]: programs from text with random sizes: products of products, attention, convolutions, reductions.
//! - [`networks`]: complete networks, forward and training steps, as the layers of `nn` make them.
//! - [`writers()`]: the code that is written.
//! - [`mod@sweep`]: machines × programs.
//!
//! ```
//! use loopwright_targets::{Corpus, SweepOptions, sweep};
//!
//! let corpus = Corpus::conformance();
//! let options = SweepOptions { seed: 7, targets: 1, ..SweepOptions::default() };
//! let report = sweep(&corpus, &options, &|_| ());
//! assert!(report.failures.is_empty());
//! ```
//!
//! [`Target`]: loopwright_looptree::Target

mod corpus;
pub mod machine;
pub mod networks;
pub mod programs;
mod recorder;
pub mod sweep;
pub mod writers;

pub use corpus::{Corpus, CorpusError, Entry};
pub use machine::{describe, random_target};
pub use networks::lstm_gradients;
pub use sweep::{Failure, Report, Step, SweepOptions, sweep};
pub use writers::{Writer, writers};
