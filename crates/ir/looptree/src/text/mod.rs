//! Text forms of schedules, their changes, and loop trees.

mod mutation;
mod replay;
mod schedule;
mod tree;

pub use mutation::{MUTATIONS, parse_mutation, print_mutation};
pub use replay::{Replayed, replay};
pub use schedule::{
    ScheduleFile, parse_schedule, parse_schedule_file, print_schedule, print_schedule_file,
};
pub use tree::{parse_tree, print_tree};

use crate::schedule::{Annotation, LoopName, LoopSpec};
use loopwright_graph::{DimId, Graph, Keep, NodeId};
use loopwright_text::{Cursor, Diagnostic, Source, Token, lex};
use smallvec::SmallVec;
use std::sync::Arc;

/// What the names of a text stand for.
trait Names {
    /// The node of a name.
    fn node(&self, name: &str) -> Option<NodeId>;
    /// The node of a number.
    fn numbered(&self, number: u32) -> Option<NodeId>;
    /// The dimension of a name.
    fn dim(&self, name: &str) -> Option<DimId>;
}

impl Names for Graph {
    fn node(&self, name: &str) -> Option<NodeId> {
        self.find(name)
    }

    fn numbered(&self, number: u32) -> Option<NodeId> {
        ((number as usize) < self.node_ids().count()).then_some(NodeId(number))
    }

    fn dim(&self, name: &str) -> Option<DimId> {
        self.find_dim(name)
    }
}

/// The word before a delegate's name.
const DELEGATE: &str = "delegate";

/// A node's name, in quotes where it is not a word or begins something else in a tree.
fn node_text(graph: &Graph, node: NodeId) -> String {
    match graph.node(node).name.as_str() {
        "" => graph.node_name(node),
        "for" => "\"for\"".to_owned(),
        name => word_text(name),
    }
}

/// A dimension's name.
fn dim_text(graph: &Graph, dim: DimId) -> String {
    word_text(&graph.dim(dim).name)
}

/// A loop as it is named: `i/8`.
fn name_text(graph: &Graph, name: LoopName) -> String {
    let dim = dim_text(graph, name.dim);
    match name.step {
        1 => dim,
        step => format!("{dim}/{step}"),
    }
}

fn spec_text(graph: &Graph, spec: &LoopSpec) -> String {
    let mut text = name_text(graph, (*spec).into());
    if spec.annotation != Annotation::Serial {
        text += " ";
        text += spec.annotation.name();
    }
    text
}

/// All annotations, as a sentence lists them.
fn annotation_names() -> String {
    let names = Annotation::ALL.map(Annotation::name);
    let (last, rest) = names.split_last().expect("there are annotations");
    format!("{} or {last}", rest.join(", "))
}

/// `delegate=` and the name.
fn delegate_text(name: &str) -> String {
    format!("{DELEGATE}={}", word_text(name))
}

/// A name: as it is where the lexer reads it as one word, else in quotes.
fn word_text(name: &str) -> String {
    let tokens = lex(&Source::new(DELEGATE, name)).unwrap_or_default();
    let is_word = matches!(tokens.first(), Some((Token::Name(word), _)) if word == name);
    match is_word {
        true => name.to_owned(),
        false => quoted(name),
    }
}

/// A text in quotes.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    for c in text.chars() {
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

fn parse_node(cursor: &mut Cursor, names: &dyn Names) -> Result<NodeId, Diagnostic> {
    let span = cursor.span();
    let found = match cursor.peek().clone() {
        Token::Name(name) | Token::Text(name) => names.node(&name).ok_or_else(|| {
            Diagnostic::new(span, format!("the program has no node `{name}`"))
                .help("nodes without a name are written `%3`; `dump --stage graph` shows them")
        })?,
        Token::Sigil('%', number) => {
            let node = number.parse().ok();
            node.and_then(|node| names.numbered(node)).ok_or_else(|| {
                Diagnostic::new(span, format!("the program has no node `%{number}`"))
            })?
        }
        _ => return Err(cursor.expected("a node's name")),
    };
    cursor.advance();
    Ok(found)
}

/// A node where the lexer reads `%3` behind a word as a remainder.
fn parse_reader(cursor: &mut Cursor, names: &dyn Names) -> Result<NodeId, Diagnostic> {
    if *cursor.peek() != Token::Percent {
        return parse_node(cursor, names);
    }
    let (_, start) = cursor.advance();
    let (number, end) = cursor.expect_integer("a node's number")?;
    let node = u32::try_from(number).ok();
    node.and_then(|node| names.numbered(node)).ok_or_else(|| {
        let message = format!("the program has no node `%{number}`");
        Diagnostic::new(start.to(end), message)
    })
}

fn parse_dim(cursor: &mut Cursor, names: &dyn Names) -> Result<DimId, Diagnostic> {
    let span = cursor.span();
    let name = match cursor.peek().clone() {
        Token::Name(name) | Token::Text(name) => name,
        _ => return Err(cursor.expected("a dimension's name")),
    };
    cursor.advance();
    names
        .dim(&name)
        .ok_or_else(|| Diagnostic::new(span, format!("the program has no dimension `{name}`")))
}

/// A loop's name: a dimension and, where it is not 1, a step.
fn parse_name(cursor: &mut Cursor, names: &dyn Names) -> Result<LoopName, Diagnostic> {
    let dim = parse_dim(cursor, names)?;
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

/// An order in memory: `[k, i/8, i]`.
fn parse_layout(
    cursor: &mut Cursor,
    names: &dyn Names,
) -> Result<SmallVec<[LoopName; 4]>, Diagnostic> {
    cursor.expect(Token::OpenSquare)?;
    let mut layout = SmallVec::new();
    while *cursor.peek() != Token::CloseSquare {
        layout.push(parse_name(cursor, names)?);
        if !cursor.take(&Token::Comma) {
            break;
        }
    }
    cursor.expect(Token::CloseSquare)?;
    Ok(layout)
}

/// What the first stage of a reduction keeps.
fn parse_keep(cursor: &mut Cursor) -> Result<Keep, Diagnostic> {
    let found = Keep::ALL
        .into_iter()
        .find(|keep| cursor.take_word(keep.name()));
    found.ok_or_else(|| cursor.expected("`lanes` or `blocks`"))
}

fn parse_spec(cursor: &mut Cursor, names: &dyn Names) -> Result<LoopSpec, Diagnostic> {
    let name = parse_name(cursor, names)?;
    let mut spec = LoopSpec {
        dim: name.dim,
        step: name.step,
        annotation: Annotation::Serial,
    };
    if let Token::Name(word) = cursor.peek().clone()
        && !at_delegate(cursor)
    {
        let annotation = Annotation::ALL.into_iter().find(|a| a.name() == word);
        spec.annotation = annotation.ok_or_else(|| {
            Diagnostic::new(cursor.span(), format!("`{word}` is not an annotation"))
                .help(format!("a loop is {}", annotation_names()))
        })?;
        cursor.advance();
    }
    Ok(spec)
}
