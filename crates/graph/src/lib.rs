//! The dataflow graph: programs over arrays with named dimensions.

mod array;
mod binding;
mod builder;
mod dead;
mod error;
mod evaluate;
mod inside;
mod ir;
mod solve;
mod text;
mod stores;

pub use array::{Array, ArrayError};
pub use binding::Binding;
pub use builder::GraphBuilder;
pub use error::GraphError;
pub use ir::{Dim, DimId, Graph, Node, NodeId, NodeOp, Output, SymbolInfo, Update, View};
pub use evaluate::{EvaluateError, evaluate};
pub use inside::stays_inside;
pub use text::{parse, print};
