//! The text form of programs.
//!
//! [`parse`] goes from tokens to a syntax tree (`parser`, `ast`) in which all dtypes are said (`infer`) to a graph (`lower` for statements and
//! names, `value` for expressions that make nodes, `index` for those that are indices and sizes, `call`
//! for functions). [`print()`] writes the canonical form, a subset of the language.
//!
//! ```text
//! program   = "loopwright program 1" { statement }          one a line; lines continue in brackets
//! statement = "size" NAME [= number], ..                     a size, with a default
//!           | "static" NAME in size .. size [= number], ..   an integer chosen later, which decides no size
//!           | "dim" NAME [= size], ..                        a dimension, with its size
//!           | "input" NAME [: dtype] [dims]                  given from outside
//!           | "state" NAME [: dtype] [dims]                  given from outside, may be updated
//!           | "const" NAME: dtype [dims] = values            a literal, or nested lists of them
//!           | NAME [dims] = value                            with dims: laid out, broadcast, or a view
//!           | "update" NAME = value                          a state's value after the run
//!           | "output" NAME [= value], ..                    a result
//! dims      = "[" NAME [= size], .. "]"                      new names are new dimensions
//! value     = literal | NAME | value op value | - value | ! value | (value)
//!           | value[index, ..] [if condition, ..] [else literal]     a view, or a gather
//!           | function(value, ..) | function[options](value, ..)
//! ```
//!
//! Operators, loosest first: `|`, `^`, `&`, comparisons, shifts, `+ -`, `* / // %`, unary `- !`, `**`.
//! A dimension's name as a value is the index along it, a size's or static's name its value (`i64`); in a size,
//! a dimension's name is its size, which `size(i)` says everywhere. Names of dimensions, sizes and
//! arrays share one space; `%name` names an array that has no name, and any name may stand in quotes.
//! Literals without a dtype suffix take the dtype of the operand beside them; nothing else converts by
//! itself.

mod ast;
mod call;
mod expr_text;
mod index;
mod infer;
mod lower;
mod parser;
mod printer;
mod random;
mod suggest;
mod value;

use crate::ir::Graph;
use loopwright_text::{Diagnostic, Source, Span};

pub(crate) use expr_text::expr_text;
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
    let mut statements = parser::statements(source)?;
    infer::infer(&mut statements)?;
    let end = source.text().trim_end().len();
    lower::lower(&statements, Span::new(end, end))
}
