//! Mutations: one line each.
//!
//! ```text
//! split C i/64 8
//! reorder C k, i/64, j, i
//! move D before C
//! store t: i, j/8, j
//! delegate D interp
//! ```

use super::{backend_text, parse_backend, parse_node, parse_spec, spec_text};
use crate::mutate::{LoopName, Mutation};
use crate::schedule::{Annotation, LoopSpec};
use loopwright_graph::{Graph, NodeId};
use loopwright_text::{Cursor, Diagnostic, Source, Token};
use smallvec::SmallVec;

const HELP: &str = "a change is one of split, merge, swap, reorder, fuse, unfuse, move, inline, store, annotate, delegate and undelegate";

/// The text of a mutation.
pub fn print_mutation(graph: &Graph, mutation: &Mutation) -> String {
    let name = |name: &LoopName| {
        let spec = LoopSpec {
            dim: name.dim,
            step: name.step,
            annotation: Annotation::Serial,
        };
        spec_text(graph, &spec)
    };
    let node = graph.node_name(mutation.node());
    match mutation {
        Mutation::Split {
            name: split,
            factor,
            ..
        } => format!("split {node} {} {factor}", name(split)),
        Mutation::Merge { name: outer, .. } => format!("merge {node} {}", name(outer)),
        Mutation::Swap { outer, inner, .. } => {
            format!("swap {node} {} {}", name(outer), name(inner))
        }
        Mutation::Reorder { loops, .. } => {
            let loops: Vec<String> = loops.iter().map(name).collect();
            format!("reorder {node} {}", loops.join(", "))
        }
        Mutation::Fuse { .. } => format!("fuse {node}"),
        Mutation::Unfuse { .. } => format!("unfuse {node}"),
        Mutation::MoveBefore { other, .. } => {
            format!("move {node} before {}", graph.node_name(*other))
        }
        Mutation::MoveAfter { other, .. } => {
            format!("move {node} after {}", graph.node_name(*other))
        }
        Mutation::Inline { .. } => format!("inline {node}"),
        Mutation::Store { loops: None, .. } => format!("store {node}"),
        Mutation::Store {
            loops: Some(loops), ..
        } => {
            let loops: Vec<String> = loops.iter().map(|spec| spec_text(graph, spec)).collect();
            format!("store {node}: {}", loops.join(", "))
        }
        Mutation::Annotate {
            name: annotated,
            annotation,
            ..
        } => format!("annotate {node} {} {}", name(annotated), annotation.name()),
        Mutation::Delegate { backend, .. } => format!("delegate {node} {}", backend_text(backend)),
        Mutation::Undelegate { .. } => format!("undelegate {node}"),
    }
}

/// Reads a mutation of a schedule of a graph.
pub fn parse_mutation(source: &Source, graph: &Graph) -> Result<Mutation, Diagnostic> {
    let mut cursor = Cursor::new(source)?;
    cursor.skip_lines();
    let mutation = parse(&mut cursor, graph)?;
    cursor.expect_line_end()?;
    cursor.skip_lines();
    if cursor.at_end() {
        Ok(mutation)
    } else {
        Err(cursor.expected("the end: a change is one line"))
    }
}

fn parse(cursor: &mut Cursor, graph: &Graph) -> Result<Mutation, Diagnostic> {
    let (word, span) = cursor
        .expect_name("a change")
        .map_err(|error| error.help(HELP))?;
    Ok(match word.as_str() {
        "split" => {
            let (node, name) = (parse_step(cursor, graph)?, parse_name(cursor, graph)?);
            let (factor, _) = cursor.expect_integer("the factor of a split")?;
            Mutation::Split { node, name, factor }
        }
        "merge" => Mutation::Merge {
            node: parse_step(cursor, graph)?,
            name: parse_name(cursor, graph)?,
        },
        "swap" => Mutation::Swap {
            node: parse_step(cursor, graph)?,
            outer: parse_name(cursor, graph)?,
            inner: parse_name(cursor, graph)?,
        },
        "reorder" => {
            let node = parse_step(cursor, graph)?;
            let mut loops = SmallVec::new();
            if !at_line_end(cursor) {
                loops.push(parse_name(cursor, graph)?);
                while cursor.take(&Token::Comma) {
                    loops.push(parse_name(cursor, graph)?);
                }
            }
            Mutation::Reorder { node, loops }
        }
        "fuse" => Mutation::Fuse {
            node: parse_step(cursor, graph)?,
        },
        "unfuse" => Mutation::Unfuse {
            node: parse_step(cursor, graph)?,
        },
        "move" => {
            let node = parse_step(cursor, graph)?;
            if cursor.take_word("before") {
                let other = parse_step(cursor, graph)?;
                Mutation::MoveBefore { node, other }
            } else if cursor.take_word("after") {
                let other = parse_step(cursor, graph)?;
                Mutation::MoveAfter { node, other }
            } else {
                return Err(cursor.expected("`before` or `after`"));
            }
        }
        "inline" => Mutation::Inline {
            node: parse_step(cursor, graph)?,
        },
        "store" => {
            let node = parse_step(cursor, graph)?;
            let loops = if cursor.take(&Token::Colon) {
                let mut loops = SmallVec::new();
                while !at_line_end(cursor) {
                    loops.push(parse_spec(cursor, graph)?);
                    if !cursor.take(&Token::Comma) {
                        break;
                    }
                }
                Some(loops)
            } else {
                None
            };
            Mutation::Store { node, loops }
        }
        "annotate" => {
            let node = parse_step(cursor, graph)?;
            let spec = parse_spec(cursor, graph)?;
            Mutation::Annotate {
                node,
                name: spec.into(),
                annotation: spec.annotation,
            }
        }
        "delegate" => Mutation::Delegate {
            node: parse_step(cursor, graph)?,
            backend: parse_backend(cursor)?.into(),
        },
        "undelegate" => Mutation::Undelegate {
            node: parse_step(cursor, graph)?,
        },
        _ => {
            let message = format!("`{word}` is not a change of a schedule");
            return Err(Diagnostic::new(span, message).help(HELP));
        }
    })
}

fn at_line_end(cursor: &Cursor) -> bool {
    matches!(
        cursor.peek(),
        Token::NewLine | Token::Semicolon | Token::End
    )
}

/// A node. Behind a word, the lexer reads `%3` as a remainder.
fn parse_step(cursor: &mut Cursor, graph: &Graph) -> Result<NodeId, Diagnostic> {
    if *cursor.peek() != Token::Percent {
        return parse_node(cursor, graph);
    }
    let (_, start) = cursor.advance();
    let (number, end) = cursor.expect_integer("a node's number")?;
    let nodes = graph.node_ids().count();
    let node = u32::try_from(number).ok().map(NodeId);
    node.filter(|node| (node.0 as usize) < nodes)
        .ok_or_else(|| {
            let message = format!("the program has no node `%{number}`");
            Diagnostic::new(start.to(end), message)
        })
}

/// A loop's name: a dimension and, where it is not 1, a step.
fn parse_name(cursor: &mut Cursor, graph: &Graph) -> Result<LoopName, Diagnostic> {
    let (name, span) = cursor.expect_name("a loop, like `i` or `i/8`")?;
    let dim = graph
        .find_dim(&name)
        .ok_or_else(|| Diagnostic::new(span, format!("the program has no dimension `{name}`")))?;
    let mut step = 1;
    if cursor.take(&Token::Slash) {
        let (given, span) = cursor.expect_integer("a loop's step")?;
        if given < 1 {
            return Err(Diagnostic::new(span, "a loop's step is at least 1"));
        }
        step = given;
    }
    Ok(LoopName { dim, step })
}
