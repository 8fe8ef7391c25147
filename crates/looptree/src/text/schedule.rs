//! Schedule files: one line for each node with code of its own, in the order in which they run.
//!
//! ```text
//! loopwright schedule 1
//! copy panel = B for %4
//! panel: j/48, k, j
//! C: j/48, i/8, k, i unroll, j/16 unroll, j vectorize
//! D: delegate=interp, share=1, j/48, i/8, i, j
//! ```

use super::{
    delegate_text, dim_text, name_text, node_text, parse_delegate, parse_dim, parse_keep,
    parse_layout, parse_node, parse_reader, parse_spec, spec_text,
};
use crate::schedule::{Edit, NodeSchedule, Schedule};
use loopwright_graph::{Graph, GraphEditor};
use loopwright_text::{Cursor, Diagnostic, Source, Token};
use smallvec::SmallVec;

const FORM: &str = "schedule";
const VERSION: i64 = 1;

/// The text of a schedule.
pub fn print_schedule(graph: &Graph, schedule: &Schedule) -> String {
    let mut text = format!("loopwright {FORM} {VERSION}\n");
    for edit in &schedule.edits {
        text += &edit_text(graph, edit);
        text += "\n";
    }
    for step in &schedule.steps {
        text += &step_text(graph, step);
        text += "\n";
    }
    text
}

fn edit_text(graph: &Graph, edit: &Edit) -> String {
    match edit {
        Edit::Copy { name, of, readers } => {
            let readers: Vec<String> = readers.iter().map(|node| node_text(graph, *node)).collect();
            let of = node_text(graph, *of);
            format!("copy {name} = {of} for {}", readers.join(", "))
        }
        Edit::Pad { name, view } => format!("pad {name} = {}", node_text(graph, *view)),
        Edit::Stage {
            name,
            node,
            dim,
            count,
            keep,
        } => {
            let (node, dim) = (node_text(graph, *node), dim_text(graph, *dim));
            format!("stage {name} = {node} over {dim} {} {count}", keep.name())
        }
    }
}

fn step_text(graph: &Graph, step: &NodeSchedule) -> String {
    let mut text = node_text(graph, step.node);
    text += ":";
    let delegate = step.delegate.as_deref().map(delegate_text);
    let share = step.share.map(|share| format!("share={share}"));
    let layout = step.layout.as_ref().map(|layout| {
        let axes: Vec<String> = layout.iter().map(|name| name_text(graph, *name)).collect();
        format!("layout=[{}]", axes.join(", "))
    });
    let loops = step.loops.iter().map(|spec| spec_text(graph, spec));
    let items = delegate.into_iter().chain(share).chain(layout).chain(loops);
    let items: Vec<String> = items.collect();
    if !items.is_empty() {
        text += " ";
        text += &items.join(", ");
    }
    text
}

/// Reads a schedule for a graph. Its steps speak of the graph with the schedule's changes made
/// ([`Schedule::edited`]).
pub fn parse_schedule(source: &Source, graph: &Graph) -> Result<Schedule, Diagnostic> {
    let mut cursor = Cursor::new(source)?;
    cursor.expect_header(FORM, VERSION)?;
    let mut editor = GraphEditor::new(graph);
    let mut schedule = Schedule::default();
    loop {
        cursor.skip_lines();
        if cursor.at_end() {
            return Ok(schedule);
        }
        if at_edit(&cursor) {
            let start = cursor.span();
            let edit = parse_edit(&mut cursor, editor.graph())?;
            edit.apply(&mut editor)
                .map_err(|error| Diagnostic::new(start, error.to_string()))?;
            cursor.expect_line_end()?;
            if !schedule.steps.is_empty() {
                let message = "changes to the program come before the steps";
                return Err(Diagnostic::new(start, message));
            }
            schedule.edits.push(edit);
        } else {
            let step = parse_step(&mut cursor, editor.graph())?;
            cursor.expect_line_end()?;
            schedule.steps.push(step);
        }
    }
}

/// Whether a change to the program stands here: a node may have its word as a name.
fn at_edit(cursor: &Cursor) -> bool {
    matches!(cursor.peek(), Token::Name(word) if ["copy", "pad", "stage"].contains(&word.as_str()))
        && *cursor.peek_at(1) != Token::Colon
}

fn parse_edit(cursor: &mut Cursor, graph: &Graph) -> Result<Edit, Diagnostic> {
    let (word, _) = cursor.expect_name("a change")?;
    let (name, _) = cursor.expect_name("a name for what is new")?;
    let name = name.into();
    cursor.expect(Token::Equals)?;
    let node = parse_node(cursor, graph)?;
    if word == "pad" {
        return Ok(Edit::Pad { name, view: node });
    }
    if word == "copy" {
        if !cursor.take_word("for") {
            return Err(cursor.expected("`for` and who reads the copy"));
        }
        let mut readers = SmallVec::new();
        readers.push(parse_reader(cursor, graph)?);
        while cursor.take(&Token::Comma) {
            readers.push(parse_reader(cursor, graph)?);
        }
        return Ok(Edit::Copy {
            name,
            of: node,
            readers,
        });
    }
    if !cursor.take_word("over") {
        return Err(cursor.expected("`over` and the dimension"));
    }
    let dim = parse_dim(cursor, graph)?;
    let keep = parse_keep(cursor)?;
    let (count, _) = cursor.expect_integer("how many")?;
    Ok(Edit::Stage {
        name,
        node,
        dim,
        count,
        keep,
    })
}

fn parse_step(cursor: &mut Cursor, graph: &Graph) -> Result<NodeSchedule, Diagnostic> {
    let node = parse_node(cursor, graph)?;
    cursor.expect(Token::Colon)?;
    let mut step = NodeSchedule::new(node, []);
    while !matches!(
        cursor.peek(),
        Token::NewLine | Token::Semicolon | Token::End
    ) {
        let names = |word: &str| {
            matches!(cursor.peek(), Token::Name(found) if found == word)
                && *cursor.peek_at(1) == Token::Equals
        };
        if names("share") {
            cursor.advance();
            cursor.advance();
            let (share, span) = cursor.expect_integer("how many loops are shared")?;
            step.share = Some(u32::try_from(share).map_err(|_| {
                Diagnostic::new(span, "a step shares a small number of loops, 0 or more")
            })?);
        } else if names("layout") {
            cursor.advance();
            cursor.advance();
            step.layout = Some(parse_layout(cursor, graph)?);
        } else if !parse_delegate(cursor, &mut step.delegate)? {
            step.loops.push(parse_spec(cursor, graph)?);
        }
        if !cursor.take(&Token::Comma) {
            break;
        }
    }
    Ok(step)
}
