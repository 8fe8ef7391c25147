//! The text of a loop tree, as `dump --stage tree` shows it.
//!
//! ```text
//! loopwright tree 1
//! for i/8 {
//!   for k {
//!     C
//!   }
//! }
//! for i delegate=interp {
//!   D
//! }
//! ```

use super::{
    at_delegate, delegate_text, node_text, parse_delegate, parse_node, parse_spec, spec_text,
};
use crate::tree::{LoopTree, TreeNode, TreeRef};
use loopwright_graph::Graph;
use loopwright_text::{Cursor, Diagnostic, Source, Token};
use std::fmt::Write as _;
use std::sync::Arc;

const FORM: &str = "tree";
const VERSION: i64 = 1;

/// The text of a tree.
pub fn print_tree(graph: &Graph, tree: &LoopTree) -> String {
    let mut text = format!("loopwright {FORM} {VERSION}\n");
    for root in tree.roots() {
        print(graph, tree, *root, 0, &mut text);
    }
    text
}

fn print(graph: &Graph, tree: &LoopTree, place: TreeRef, depth: usize, text: &mut String) {
    let indent = "  ".repeat(depth);
    // It is the same for a whole root subtree.
    let delegate = match tree.delegate(place) {
        Some(name) if depth == 0 => format!(" {}", delegate_text(name)),
        _ => String::new(),
    };
    match tree.node(place) {
        TreeNode::Leaf(node) => {
            let _ = writeln!(text, "{indent}{}{delegate}", node_text(graph, *node));
        }
        TreeNode::Loop { spec, children } => {
            let _ = writeln!(text, "{indent}for {}{delegate} {{", spec_text(graph, spec));
            for child in children {
                print(graph, tree, *child, depth + 1, text);
            }
            let _ = writeln!(text, "{indent}}}");
        }
    }
}

/// Reads a tree for a graph.
pub fn parse_tree(source: &Source, graph: &Graph) -> Result<LoopTree, Diagnostic> {
    let mut cursor = Cursor::new(source)?;
    cursor.expect_header(FORM, VERSION)?;
    let mut tree = LoopTree::default();
    parse(&mut cursor, graph, &mut tree, None)?;
    if cursor.at_end() {
        Ok(tree)
    } else {
        Err(cursor.expected("`for`, a node's name, or the end of the file"))
    }
}

fn parse(
    cursor: &mut Cursor,
    graph: &Graph,
    tree: &mut LoopTree,
    parent: Option<TreeRef>,
) -> Result<(), Diagnostic> {
    cursor.enter()?;
    loop {
        cursor.skip_lines();
        match cursor.peek() {
            Token::End | Token::CloseBrace => break,
            Token::Name(word) if word == "for" => {
                cursor.advance();
                let spec = parse_spec(cursor, graph)?;
                let delegate = delegate_of_root(cursor, parent)?;
                cursor.expect(Token::OpenBrace)?;
                let children = Vec::new();
                let place = tree.push(parent, TreeNode::Loop { spec, children });
                tree.delegates.extend(delegate.map(|name| (place, name)));
                parse(cursor, graph, tree, Some(place))?;
                cursor.expect(Token::CloseBrace)?;
                cursor.expect_line_end()?;
            }
            _ => {
                let node = parse_node(cursor, graph)?;
                let delegate = delegate_of_root(cursor, parent)?;
                let place = tree.push(parent, TreeNode::Leaf(node));
                tree.delegates.extend(delegate.map(|name| (place, name)));
                cursor.expect_line_end()?;
            }
        }
    }
    cursor.leave();
    Ok(())
}

/// The delegate that stands here, which only an outermost place has.
fn delegate_of_root(
    cursor: &mut Cursor,
    parent: Option<TreeRef>,
) -> Result<Option<Arc<str>>, Diagnostic> {
    if parent.is_some() && at_delegate(cursor) {
        let message = "only an outermost loop or step is delegated";
        return Err(Diagnostic::new(cursor.span(), message)
            .help("a backend runs everything inside the loops it is given"));
    }
    let mut delegate = None;
    while parse_delegate(cursor, &mut delegate)? {}
    Ok(delegate)
}
