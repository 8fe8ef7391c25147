//! Mutations: one line each.
//!
//! ```text
//! split C i/64 8
//! reorder C k, i/64, j, i
//! move D before C
//! store t: i, j/8, j
//! delegate D interp
//! ```

use super::{
    dim_text, name_text, node_text, parse_backend, parse_dim, parse_keep, parse_layout, parse_name,
    parse_reader, parse_spec, spec_text, word_text,
};
use crate::mutate::Mutation;
use crate::schedule::LoopName;
use loopwright_graph::Graph;
use loopwright_text::{Cursor, Diagnostic, Source, Token};
use smallvec::SmallVec;
use std::sync::Arc;

/// The words that mutations begin with, for front ends that have one thing for each.
pub const MUTATIONS: [&str; 20] = [
    "split",
    "merge",
    "swap",
    "reorder",
    "fuse",
    "unfuse",
    "move",
    "inline",
    "store",
    "annotate",
    "add",
    "remove",
    "compute",
    "layout",
    "copy",
    "uncopy",
    "pad",
    "stage",
    "delegate",
    "undelegate",
];

/// What a change can be, as a sentence.
fn help() -> String {
    let (last, others) = MUTATIONS.split_last().unwrap_or((&"", &[]));
    format!("a change is one of {} and {last}", others.join(", "))
}

/// The text of a mutation.
pub fn print_mutation(graph: &Graph, mutation: &Mutation) -> String {
    let name = |name: &LoopName| name_text(graph, *name);
    let node = node_text(graph, mutation.node());
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
            format!("move {node} before {}", node_text(graph, *other))
        }
        Mutation::MoveAfter { other, .. } => {
            format!("move {node} after {}", node_text(graph, *other))
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
        Mutation::AddLoop { spec, depth, .. } => {
            format!("add {node} {depth}: {}", spec_text(graph, spec))
        }
        Mutation::RemoveLoop { name: removed, .. } => format!("remove {node} {}", name(removed)),
        Mutation::ComputeAt {
            reader,
            name: inside,
            ..
        } => format!(
            "compute {node} at {} {}",
            node_text(graph, *reader),
            name(inside)
        ),
        Mutation::Layout { layout: None, .. } => format!("layout {node}"),
        Mutation::Layout {
            layout: Some(layout),
            ..
        } => {
            let axes: Vec<String> = layout.iter().map(name).collect();
            format!("layout {node} [{}]", axes.join(", "))
        }
        Mutation::Copy { of, name, .. } => {
            format!("copy {} for {node} as {name}", node_text(graph, *of))
        }
        Mutation::Uncopy { .. } => format!("uncopy {node}"),
        Mutation::Pad { view, name, .. } => {
            format!("pad {} for {node} as {name}", node_text(graph, *view))
        }
        Mutation::Stage {
            dim,
            count,
            keep,
            name,
            ..
        } => {
            let dim = dim_text(graph, *dim);
            format!("stage {node} {dim} {} {count} as {name}", keep.name())
        }
        Mutation::Delegate { backend, .. } => format!("delegate {node} {}", word_text(backend)),
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
        .map_err(|error| error.help(help()))?;
    Ok(match word.as_str() {
        "split" => {
            let (node, name) = (parse_reader(cursor, graph)?, parse_name(cursor, graph)?);
            let (factor, _) = cursor.expect_integer("the factor of a split")?;
            Mutation::Split { node, name, factor }
        }
        "merge" => Mutation::Merge {
            node: parse_reader(cursor, graph)?,
            name: parse_name(cursor, graph)?,
        },
        "swap" => Mutation::Swap {
            node: parse_reader(cursor, graph)?,
            outer: parse_name(cursor, graph)?,
            inner: parse_name(cursor, graph)?,
        },
        "reorder" => {
            let node = parse_reader(cursor, graph)?;
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
            node: parse_reader(cursor, graph)?,
        },
        "unfuse" => Mutation::Unfuse {
            node: parse_reader(cursor, graph)?,
        },
        "move" => {
            let node = parse_reader(cursor, graph)?;
            if cursor.take_word("before") {
                let other = parse_reader(cursor, graph)?;
                Mutation::MoveBefore { node, other }
            } else if cursor.take_word("after") {
                let other = parse_reader(cursor, graph)?;
                Mutation::MoveAfter { node, other }
            } else {
                return Err(cursor.expected("`before` or `after`"));
            }
        }
        "inline" => Mutation::Inline {
            node: parse_reader(cursor, graph)?,
        },
        "store" => {
            let node = parse_reader(cursor, graph)?;
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
            let node = parse_reader(cursor, graph)?;
            let spec = parse_spec(cursor, graph)?;
            Mutation::Annotate {
                node,
                name: spec.into(),
                annotation: spec.annotation,
            }
        }
        "add" => {
            let node = parse_reader(cursor, graph)?;
            let (depth, span) = cursor.expect_integer("how many loops are around the new one")?;
            let depth = usize::try_from(depth)
                .map_err(|_| Diagnostic::new(span, "a number of loops is 0 or more"))?;
            cursor.expect(Token::Colon)?;
            let spec = parse_spec(cursor, graph)?;
            Mutation::AddLoop { node, spec, depth }
        }
        "remove" => Mutation::RemoveLoop {
            node: parse_reader(cursor, graph)?,
            name: parse_name(cursor, graph)?,
        },
        "compute" => {
            let node = parse_reader(cursor, graph)?;
            if !cursor.take_word("at") {
                return Err(cursor.expected("`at`, a reader and one of its loops"));
            }
            Mutation::ComputeAt {
                node,
                reader: parse_reader(cursor, graph)?,
                name: parse_name(cursor, graph)?,
            }
        }
        "layout" => {
            let node = parse_reader(cursor, graph)?;
            let layout = match at_line_end(cursor) {
                true => None,
                false => Some(parse_layout(cursor, graph)?),
            };
            Mutation::Layout { node, layout }
        }
        "copy" => {
            let of = parse_reader(cursor, graph)?;
            if !cursor.take_word("for") {
                return Err(cursor.expected("`for` and the step that reads the copy"));
            }
            let node = parse_reader(cursor, graph)?;
            let name = parse_new_name(cursor)?;
            Mutation::Copy { node, of, name }
        }
        "pad" => {
            let view = parse_reader(cursor, graph)?;
            if !cursor.take_word("for") {
                return Err(cursor.expected("`for` and the step that reads the view"));
            }
            let node = parse_reader(cursor, graph)?;
            let name = parse_new_name(cursor)?;
            Mutation::Pad { node, view, name }
        }
        "uncopy" => Mutation::Uncopy {
            node: parse_reader(cursor, graph)?,
        },
        "stage" => {
            let node = parse_reader(cursor, graph)?;
            let dim = parse_dim(cursor, graph)?;
            let keep = parse_keep(cursor)?;
            let (count, _) = cursor.expect_integer("how many")?;
            Mutation::Stage {
                node,
                dim,
                count,
                keep,
                name: parse_new_name(cursor)?,
            }
        }
        "delegate" => Mutation::Delegate {
            node: parse_reader(cursor, graph)?,
            backend: parse_backend(cursor)?.into(),
        },
        "undelegate" => Mutation::Undelegate {
            node: parse_reader(cursor, graph)?,
        },
        _ => {
            let message = format!("`{word}` is not a change of a schedule");
            return Err(Diagnostic::new(span, message).help(help()));
        }
    })
}

fn at_line_end(cursor: &Cursor) -> bool {
    matches!(
        cursor.peek(),
        Token::NewLine | Token::Semicolon | Token::End
    )
}

/// `as` and the name of what is new.
fn parse_new_name(cursor: &mut Cursor) -> Result<Arc<str>, Diagnostic> {
    if !cursor.take_word("as") {
        return Err(cursor.expected("`as` and a name for what is new"));
    }
    let (name, _) = cursor.expect_name("a name for what is new")?;
    Ok(name.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_begins_a_mutation_and_no_other_does() {
        let graph = loopwright_graph::parse(&Source::new(
            "p.lw",
            "loopwright program 1\ninput x: f32[i=4]\noutput y = x + 1\n",
        ))
        .expect("it is a program");
        let complaint = |word: &str| {
            let error = parse_mutation(&Source::new("change", word), &graph);
            error.expect_err("a word alone is no change").message
        };
        for word in MUTATIONS {
            assert!(!complaint(word).contains("is not a change"), "{word}");
        }
        assert!(complaint("turn").contains("is not a change"));
    }
}
