//! JavaScript: a dialect of the emitter, and a backend around it.

pub mod backend;
pub mod dialect;
mod ops;
