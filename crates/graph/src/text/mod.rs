//! The text form of programs.

mod ast;
mod call;
mod index;
mod lower;
mod parser;
mod printer;
mod suggest;
mod value;

use crate::ir::Graph;
use loopwright_text::{Diagnostic, Source, Span};

pub use printer::print;

/// Reads a program.
///
/// ```
/// use loopwright_graph::parse;
/// use loopwright_text::Source;
///
/// let source = Source::new("product.lw", "\
/// loopwright program 1
/// size M = 4
/// input a: f32[i=M, k]
/// input b: f32[k=3, j=5]
/// output c = sum[k](a * b)
/// ");
/// let graph = parse(&source).map_err(|error| error.render(&source))?;
/// assert_eq!(graph.outputs()[0].name, "c");
/// assert_eq!(parse(&Source::new("printed", graph.to_string())), Ok(graph));
/// # Ok::<(), String>(())
/// ```
pub fn parse(source: &Source) -> Result<Graph, Diagnostic> {
    let statements = parser::statements(source)?;
    let end = source.text().trim_end().len();
    lower::lower(&statements, Span::new(end, end))
}
