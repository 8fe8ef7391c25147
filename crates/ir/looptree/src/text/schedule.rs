//! Schedule files: one line for each node with code of its own, in the order in which they run.
//!
//! ```text
//! loopwright schedule 1
//! device "cc on Intel(R) Xeon(R) Processor @ 2.80GHz"
//! gave "2.41 ms, 111 GFLOP/s, 62 % of the roofline"
//! copy panel = B for %4
//! panel: j/48, k, j
//! C: j/48, i/8, k, i unroll, j/16 unroll, j vectorize
//! D: delegate=interp, share=1, j/48, i/8, i, j
//! ```

use super::{
    Names, delegate_text, dim_text, name_text, node_text, parse_delegate, parse_dim, parse_keep,
    parse_layout, parse_node, parse_reader, parse_spec, quoted, spec_text,
};
use crate::schedule::{Edit, NodeSchedule, Schedule};
use loopwright_graph::{Graph, GraphEditor};
use loopwright_text::{Cursor, Diagnostic, Source, Span, Token};
use smallvec::SmallVec;

const FORM: &str = "schedule";
const VERSION: i64 = 1;

/// The word before the device that a schedule was made for.
const DEVICE: &str = "device";
/// The word before what it gave.
const GAVE: &str = "gave";

/// A schedule with what its file says about it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ScheduleFile {
    /// The device that it was made for: a backend's name and, where it runs on a processor, ` on ` and the
    /// processor's name; more may follow behind a comma.
    pub device: Option<String>,
    /// What it gave there, in words.
    pub gave: Option<String>,
    /// The schedule.
    pub schedule: Schedule,
}

/// The text of a schedule. The graph is that with the schedule's changes made ([`Schedule::edited`]).
pub fn print_schedule(graph: &Graph, schedule: &Schedule) -> String {
    let mut text = format!("loopwright {FORM} {VERSION}\n");
    text += &lines_text(graph, schedule);
    text
}

/// The text of a schedule with what is known about it.
pub fn print_schedule_file(graph: &Graph, file: &ScheduleFile) -> String {
    let mut text = format!("loopwright {FORM} {VERSION}\n");
    for (word, known) in [(DEVICE, &file.device), (GAVE, &file.gave)] {
        if let Some(known) = known {
            text += &format!("{word} {}\n", quoted(known));
        }
    }
    text += &lines_text(graph, &file.schedule);
    text
}

fn lines_text(graph: &Graph, schedule: &Schedule) -> String {
    let mut text = String::new();
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
///
/// # Errors
/// What is not a schedule's text, and what the graph does not have. [`crate::replay`] takes the rest of such a file.
pub fn parse_schedule(source: &Source, graph: &Graph) -> Result<Schedule, Diagnostic> {
    parse_schedule_file(source, graph).map(|file| file.schedule)
}

/// Reads a schedule for a graph, as [`parse_schedule`], with what the file says about it.
///
/// # Errors
/// What is not a schedule's text, and what the graph does not have.
pub fn parse_schedule_file(source: &Source, graph: &Graph) -> Result<ScheduleFile, Diagnostic> {
    let mut cursor = Cursor::new(source)?;
    let mut file = parse_head(&mut cursor)?;
    let schedule = &mut file.schedule;
    let mut editor = GraphEditor::new(graph);
    while at_line(&mut cursor) {
        let start = cursor.span();
        match parse_line(&mut cursor, editor.graph())? {
            Line::Edit(_) if !schedule.steps.is_empty() => return Err(late_edit(start)),
            Line::Edit(edit) => {
                edit.apply(&mut editor)
                    .map_err(|error| Diagnostic::new(start, error.to_string()))?;
                schedule.edits.push(edit);
            }
            Line::Step(step) => schedule.steps.push(step),
        }
    }
    Ok(file)
}

/// A line behind the head.
pub(super) enum Line {
    Edit(Edit),
    Step(NodeSchedule),
}

/// Reads the first line and what is said about the schedule.
pub(super) fn parse_head(cursor: &mut Cursor) -> Result<ScheduleFile, Diagnostic> {
    cursor.expect_header(FORM, VERSION)?;
    let mut file = ScheduleFile::default();
    while at_line(cursor) && at_word(cursor, &[DEVICE, GAVE]) {
        let (word, start) = cursor.expect_name("a word")?;
        let (place, what) = match word == DEVICE {
            true => (&mut file.device, "the device in quotes"),
            false => (&mut file.gave, "what the schedule gave, in quotes"),
        };
        let Token::Text(text) = cursor.peek().clone() else {
            return Err(cursor.expected(what));
        };
        cursor.advance();
        cursor.expect_line_end()?;
        if place.replace(text).is_some() {
            return Err(Diagnostic::new(start, format!("a second line `{word}`")));
        }
    }
    Ok(file)
}

/// Whether there is a further line; goes to its start.
pub(super) fn at_line(cursor: &mut Cursor) -> bool {
    cursor.skip_lines();
    !cursor.at_end()
}

/// Reads a line behind the head, with its end.
pub(super) fn parse_line(cursor: &mut Cursor, names: &dyn Names) -> Result<Line, Diagnostic> {
    if at_word(cursor, &[DEVICE, GAVE]) {
        let message = format!("`{DEVICE}` and `{GAVE}` come right behind the first line");
        return Err(Diagnostic::new(cursor.span(), message));
    }
    let line = match at_edit(cursor) {
        true => Line::Edit(parse_edit(cursor, names)?),
        false => Line::Step(parse_step(cursor, names)?),
    };
    cursor.expect_line_end()?;
    Ok(line)
}

/// The error of a change to the program behind a step.
pub(super) fn late_edit(span: Span) -> Diagnostic {
    Diagnostic::new(span, "changes to the program come before the steps")
}

/// Whether a change to the program stands here.
pub(super) fn at_edit(cursor: &Cursor) -> bool {
    at_word(cursor, &["copy", "pad", "stage"])
}

/// Whether a line with one of these words in front stands here: a node may have the word as its name.
fn at_word(cursor: &Cursor, words: &[&str]) -> bool {
    matches!(cursor.peek(), Token::Name(word) if words.contains(&word.as_str()))
        && *cursor.peek_at(1) != Token::Colon
}

fn parse_edit(cursor: &mut Cursor, names: &dyn Names) -> Result<Edit, Diagnostic> {
    let (word, _) = cursor.expect_name("a change")?;
    let (name, _) = cursor.expect_name("a name for what is new")?;
    let name = name.into();
    cursor.expect(Token::Equals)?;
    let node = parse_node(cursor, names)?;
    if word == "pad" {
        return Ok(Edit::Pad { name, view: node });
    }
    if word == "copy" {
        if !cursor.take_word("for") {
            return Err(cursor.expected("`for` and who reads the copy"));
        }
        let mut readers = SmallVec::new();
        readers.push(parse_reader(cursor, names)?);
        while cursor.take(&Token::Comma) {
            readers.push(parse_reader(cursor, names)?);
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
    let dim = parse_dim(cursor, names)?;
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

fn parse_step(cursor: &mut Cursor, names: &dyn Names) -> Result<NodeSchedule, Diagnostic> {
    let node = parse_node(cursor, names)?;
    cursor.expect(Token::Colon)?;
    let mut step = NodeSchedule::new(node, []);
    while !matches!(
        cursor.peek(),
        Token::NewLine | Token::Semicolon | Token::End
    ) {
        let gives = |word: &str| {
            matches!(cursor.peek(), Token::Name(found) if found == word)
                && *cursor.peek_at(1) == Token::Equals
        };
        if gives("share") {
            cursor.advance();
            cursor.advance();
            let (share, span) = cursor.expect_integer("how many loops are shared")?;
            step.share = Some(u32::try_from(share).map_err(|_| {
                Diagnostic::new(span, "a step shares a small number of loops, 0 or more")
            })?);
        } else if gives("layout") {
            cursor.advance();
            cursor.advance();
            step.layout = Some(parse_layout(cursor, names)?);
        } else if !parse_delegate(cursor, &mut step.delegate)? {
            step.loops.push(parse_spec(cursor, names)?);
        }
        if !cursor.take(&Token::Comma) {
            break;
        }
    }
    Ok(step)
}
