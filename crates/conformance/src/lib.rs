//! x
#![allow(missing_docs)]
mod error;
pub mod features;
pub mod generate;
pub mod ops;
pub mod oracle;
pub mod mutate;
mod rng;
pub mod shrink;
pub mod suite;
pub use error::ConformanceError;
pub use rng::Rng;
pub use suite::{CheckOptions, Failure, Report, check};
