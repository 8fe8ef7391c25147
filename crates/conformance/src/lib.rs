//! x
#![allow(missing_docs)]
mod error;
pub mod generate;
pub mod oracle;
mod rng;
pub mod shrink;
pub use error::ConformanceError;
pub use rng::Rng;
