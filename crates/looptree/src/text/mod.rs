//! Text forms of schedules and loop trees.

mod schedule;
mod tree;

pub use schedule::{parse_schedule, print_schedule};
pub use tree::{parse_tree, print_tree};

use crate::schedule::{Annotation, LoopSpec};
use loopwright_graph::{Graph, NodeId};
use loopwright_text::{Cursor, Diagnostic, Token};

fn spec_text(graph: &Graph, spec: &LoopSpec) -> String {
    let mut text = graph.dim(spec.dim).name.clone();
    if spec.step != 1 {
        text += &format!("/{}", spec.step);
    }
    if spec.annotation != Annotation::Serial {
        text += " ";
        text += spec.annotation.name();
    }
    text
}

fn parse_node(cursor: &mut Cursor, graph: &Graph) -> Result<NodeId, Diagnostic> {
    let span = cursor.span();
    let found = match cursor.peek().clone() {
        Token::Name(name) => graph.find(&name).ok_or_else(|| {
            Diagnostic::new(span, format!("the program has no node `{name}`"))
                .help("nodes without a name are written `%3`; `dump --stage graph` shows them")
        })?,
        Token::Sigil('%', number) => {
            let node = number.parse().ok().map(NodeId);
            node.filter(|node| (node.0 as usize) < graph.node_ids().count())
                .ok_or_else(|| {
                    Diagnostic::new(span, format!("the program has no node `%{number}`"))
                })?
        }
        _ => return Err(cursor.expected("a node's name")),
    };
    cursor.advance();
    Ok(found)
}

fn parse_spec(cursor: &mut Cursor, graph: &Graph) -> Result<LoopSpec, Diagnostic> {
    let (name, span) = cursor.expect_name("a dimension's name")?;
    let dim = graph
        .find_dim(&name)
        .ok_or_else(|| Diagnostic::new(span, format!("the program has no dimension `{name}`")))?;
    let mut spec = LoopSpec::over(dim);
    if cursor.take(&Token::Slash) {
        let (step, span) = cursor.expect_integer("a loop's step")?;
        if step < 1 {
            return Err(Diagnostic::new(span, "a loop's step is at least 1"));
        }
        spec.step = step;
    }
    if let Token::Name(word) = cursor.peek().clone() {
        let annotation = Annotation::ALL.into_iter().find(|a| a.name() == word);
        spec.annotation = annotation.ok_or_else(|| {
            Diagnostic::new(cursor.span(), format!("`{word}` is not an annotation"))
                .help("a loop is serial, parallel, vectorize or unroll")
        })?;
        cursor.advance();
    }
    Ok(spec)
}
