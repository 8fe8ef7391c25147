//! Text forms of schedules, their changes, and loop trees.

mod mutation;
mod schedule;
mod tree;

pub use mutation::{parse_mutation, print_mutation};
pub use schedule::{parse_schedule, print_schedule};
pub use tree::{parse_tree, print_tree};

use crate::schedule::{Annotation, LoopSpec};
use loopwright_graph::{Graph, NodeId};
use loopwright_text::{Cursor, Diagnostic, Source, Token, lex};
use std::sync::Arc;

/// The word before a delegate's name.
const DELEGATE: &str = "delegate";

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

/// `delegate=` and the name.
fn delegate_text(name: &str) -> String {
    format!("{DELEGATE}={}", backend_text(name))
}

/// A backend's name: as it is where the lexer reads it as one word, else in quotes.
fn backend_text(name: &str) -> String {
    let tokens = lex(&Source::new(DELEGATE, name)).unwrap_or_default();
    let is_word = matches!(tokens.first(), Some((Token::Name(word), _)) if word == name);
    if is_word {
        return name.to_owned();
    }
    let mut quoted = String::with_capacity(name.len() + 2);
    for c in name.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            c => quoted.push(c),
        }
    }
    format!("\"{quoted}\"")
}

/// Whether a delegate stands here.
fn at_delegate(cursor: &Cursor) -> bool {
    matches!(cursor.peek(), Token::Name(word) if word == DELEGATE)
        && *cursor.peek_at(1) == Token::Equals
}

/// Reads a delegate, if one stands here, and says whether it does.
fn parse_delegate(
    cursor: &mut Cursor,
    delegate: &mut Option<Arc<str>>,
) -> Result<bool, Diagnostic> {
    if !at_delegate(cursor) {
        return Ok(false);
    }
    let (_, start) = cursor.advance();
    cursor.advance();
    let name = parse_backend(cursor)?;
    if let Some(before) = delegate {
        let message = format!("a delegate is named already: {}", delegate_text(before));
        return Err(Diagnostic::new(start, message).help("one backend runs a step"));
    }
    *delegate = Some(name.into());
    Ok(true)
}

/// Reads a backend's name.
fn parse_backend(cursor: &mut Cursor) -> Result<String, Diagnostic> {
    const QUOTES: &str = "a name that is not a word stands in quotes: `delegate=\"my-backend\"`";
    let span = cursor.span();
    let name = match cursor.peek().clone() {
        Token::Name(word) if *cursor.peek_at(1) != Token::Minus => word,
        Token::Name(_) => {
            cursor.advance();
            return Err(cursor.expected("the end of a backend's name").help(QUOTES));
        }
        Token::Text(text) => text,
        _ => return Err(cursor.expected("a backend's name").help(QUOTES)),
    };
    if name.is_empty() {
        return Err(Diagnostic::new(span, "a backend's name is not empty"));
    }
    cursor.advance();
    Ok(name)
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
    if let Token::Name(word) = cursor.peek().clone()
        && !at_delegate(cursor)
    {
        let annotation = Annotation::ALL.into_iter().find(|a| a.name() == word);
        spec.annotation = annotation.ok_or_else(|| {
            Diagnostic::new(cursor.span(), format!("`{word}` is not an annotation"))
                .help("a loop is serial, parallel, vectorize or unroll")
        })?;
        cursor.advance();
    }
    Ok(spec)
}
