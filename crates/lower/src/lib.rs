//! Lowering: from a loop tree to a kernel.
//!
//! The tree says which loops run and what is computed inside them; lowering writes that down as
//! kernel IR. Loops become loops, with a full and a shorter last round where a step does not divide
//! what it covers; `unroll` and `vectorize` are carried out here, so that running values which never
//! leave a tile become plain variables; inline nodes are computed where they are read; views become
//! index arithmetic and, where they may leave their input, branches.

mod error;
mod fold;
mod index;
mod leaf;
mod memory;
mod nest;
mod program;
mod row;
mod value;

pub use error::LowerError;
pub use program::{KernelParam, Lowered, Scratch, lower};
