//! x
#![allow(missing_docs)]
pub mod generate;
pub mod oracle;
mod rng;
pub use rng::Rng;
