//! The dataflow graph: programs over arrays with named dimensions.
//!
//! A [`Graph`] is a list of nodes ([`Node`]), each an array over named dimensions ([`Dim`]). Two arrays
//! that have a dimension in common are indexed alike along it, and operands broadcast along those they
//! lack; so a matrix product is `sum[k](a * b)`. Everything that only moves elements (padding, slices,
//! windows of a convolution) is a [`View`]: for each dimension of its input an index expression, and
//! the value that stands outside.
//!
//! A [`GraphBuilder`] makes graphs and checks every step. Sizes may be unknown until
//! [`GraphBuilder::finish`], which infers them in both directions, and may stay symbols until
//! [`Graph::bind`] gives them values. A static symbol ([`GraphBuilder::static_symbol`]) is an integer
//! that is chosen even later, in a known range, and decides no size.
//!
//! [`parse`] and [`print()`] are the text form, in files called `.lw`. [`evaluate()`] says what a graph
//! means, node by node: it is the oracle that everything compiled is compared with.
//!
//! ```
//! use loopwright_graph::{Array, evaluate, parse};
//! use loopwright_ops::DType;
//! use loopwright_text::Source;
//!
//! let source = Source::new("blur.lw", "\
//! loopwright program 1
//! size N = 4
//! input x: f32[i=N]
//! const w: f32[k] = [0.25, 0.5, 0.25]
//! output y = sum[k](w * (x[i + k - 1] else 0))   # a convolution is a view, a product and a sum
//! ");
//! let graph = parse(&source).map_err(|error| error.render(&source))?;
//! let x = graph.find("x").ok_or("the program has an input x")?;
//! let ones = Array::from_f64(DType::F32, &[4], &[1.0; 4])?;
//! let results = evaluate(&graph, &graph.bind(&[])?, &[(x, ones)])?;
//! assert_eq!(results[0].1.to_f64(), [0.75, 1.0, 1.0, 0.75]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod binding;
mod builder;
mod dead;
mod edit;
mod error;
mod evaluate;
mod exact;
mod fits;
mod inside;
mod ir;
mod random;
mod recurrence;
pub mod rewrite;
mod solve;
mod specialise;
mod splice;
mod statics;
mod stores;
mod text;

pub use binding::Binding;
pub use builder::{GraphBuilder, Mark};
pub use edit::{EditError, GraphEditor, Keep, MAX_STAGE, Staged};
pub use error::GraphError;
pub use evaluate::{EvaluateError, evaluate};
pub use inside::stays_inside;
pub use ir::{Dim, DimId, Graph, Node, NodeId, NodeOp, Output, SymbolInfo, Update, View};
pub use loopwright_array::{Array, ArrayError};
pub use recurrence::{Delay, Recurrence, components};
pub use statics::Static;
pub use text::{parse, print};
