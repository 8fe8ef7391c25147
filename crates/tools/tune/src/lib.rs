//! Searching for good schedules: measured, checked, safe, in a given time.
//!
//! [`tune()`] is the search that `loopwright tune` runs. It goes over the mutations of
//! [`loopwright_looptree`], guided by a model of what plans cost ([`Predict`]), and measures what looks good in
//! a process of its own ([`Process`]): a candidate that crashes or never ends costs that process and nothing
//! else. A candidate counts only if its results are those of the reference ([`Expected`]). The best so far is
//! a schedule file at any moment, the log lets a search go on where it was ended, and at the end winner and
//! default are measured once more in turns: what is kept is never worse than the default.
//!
//! [`agent`] is the same for searches of one's own: actions, the legal ones, undo, features of each loop, and a
//! reward. A random walk over a product, measured on the interpreter:
//!
//! ```
//! use loopwright_graph::parse;
//! use loopwright_interp as _; // the backend `interp`
//! use loopwright_looptree::{Plan, Target};
//! use loopwright_scheduler::default_schedule;
//! use loopwright_text::Source;
//! use loopwright_tune::agent::Session;
//! use loopwright_tune::{Bench, FEATURES, Work};
//! use std::sync::Arc;
//!
//! let work = Work {
//!     program: "loopwright program 1
//! input A: f32[i=6, k=5]
//! input B: f32[k, j=7]
//! output C = sum[k](A * B)
//! "
//!     .to_owned(),
//!     sizes: Vec::new(),
//!     device: "interp".to_owned(),
//!     strict: false,
//!     fallback: None,
//!     seed: 1,
//! };
//! let graph = Arc::new(work.graph()?);
//! let binding = Arc::new(work.binding(&graph)?);
//! let plan = Plan::new(Arc::clone(&graph), default_schedule(&graph, &Target::SCALAR)?)?;
//!
//! let mut session = Session::measured(plan, binding, Box::new(Bench::with_reference(work)?));
//! for choice in [3, 1, 4, 1, 5] {
//!     let actions = session.actions();
//!     let step = session.apply(&actions[choice % actions.len()])?;
//!     // How many times faster than the start, as a power of two; checked against the reference.
//!     assert!(step.reward.is_some());
//! }
//! for line in session.features() {
//!     assert_eq!(line.values.len(), FEATURES.len());
//! }
//! while session.undo() {}
//! assert_eq!(session.reward(), Some(0.0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod agent;
mod error;
mod features;
mod header;
mod inputs;
mod measure;
mod moves;
mod predict;
mod random;
mod reference;
pub mod roofline;
mod search;
mod store;
mod tune;

pub use error::TuneError;
pub use features::{FEATURE_COUNT, FEATURES, LoopFeatures, features};
pub use header::TUNED;
pub use inputs::{fill_random, index_limit, random_inputs};
pub use measure::{
    Bench, Measure, Outcome, Process, ProcessOptions, Timing, Trial, Version, Work, serve,
};
pub use predict::{CostModel, Predict};
pub use reference::Expected;
pub use search::{Candidate, Search, SearchOptions};
pub use store::{Log, Record, ScheduleKey, ScheduleStore, Tried};
pub use tune::{Counts, Options, Progress, Report, TIME_IS_UP, processor, tune};

/// The page of the book, whose example is compiled and run as a test.
#[cfg(doctest)]
mod book {
    #[doc = include_str!("../../../../docs/tuning.md")]
    struct Tuning;
}
