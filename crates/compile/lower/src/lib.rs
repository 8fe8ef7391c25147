//! Lowering: from a loop tree to a kernel.
//!
//! The tree says which loops run and what is computed inside them; lowering writes that down as
//! kernel IR. Loops become loops, with a full and a shorter last iteration where a step does not divide
//! what it covers; `unroll` and `vectorize` are carried out here, so that running values which never
//! leave a tile become plain variables; inline nodes are computed where they are read; views become
//! index arithmetic and, where they may leave their input, branches. [`lower`] makes one kernel of a
//! program, [`lower_parts`] one of each part that a backend runs on its own.
//!
//! ```
//! use loopwright_graph::parse;
//! use loopwright_looptree::Target;
//! use loopwright_scheduler::{Order, schedule};
//! use loopwright_lower::{KernelParam, lower};
//! use loopwright_text::Source;
//!
//! let program = "loopwright program 1
//! size N
//! input x: f32[i=N]
//! output y = x * x
//! ";
//! let graph = parse(&Source::new("square.lw", program)).unwrap().with_stores();
//! let plan = schedule(graph, &Target::SCALAR, Order::Free).unwrap().plan;
//! let lowered = lower(&plan, "square").unwrap();
//! // The kernel takes the input, the output and the size.
//! assert!(matches!(
//!     lowered.params[..],
//!     [KernelParam::Parameter(_), KernelParam::Output(0), KernelParam::Size(_)]
//! ));
//! assert!(lowered.module.to_string().contains("for %i: i64"));
//! ```

#![forbid(unsafe_code)]

mod error;
mod fold;
mod index;
mod leaf;
mod memory;
mod nest;
mod parts;
mod program;
mod row;
mod threads;
mod tile;
mod value;

pub use error::LowerError;
pub use parts::lower_parts;
pub use program::{KernelParam, Lowered, Scratch, lower};
