//! Loopwright: one program, every machine.
//!
//! This crate is the front door. It re-exports the layers under their names in the design and links
//! in the backends that every build has.

pub use loopwright_backend as backend;
pub use loopwright_cc as cc;
pub use loopwright_graph as graph;
pub use loopwright_interp as interp;
pub use loopwright_kernel as kernel;
pub use loopwright_looptree as looptree;
pub use loopwright_lower as lower;
pub use loopwright_ops as ops;
pub use loopwright_symbolic as symbolic;
pub use loopwright_text as text;
