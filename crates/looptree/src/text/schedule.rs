//! Schedule files: one line for each node with code of its own, in the order in which they run.
//!
//! ```text
//! loopwright schedule 1
//! C: j/48, i/8, k, i unroll, j/16 unroll, j vectorize
//! D: delegate=interp, share=1, j/48, i/8, i, j
//! ```

use super::{delegate_text, parse_delegate, parse_node, parse_spec, spec_text};
use crate::schedule::{NodeSchedule, Schedule};
use loopwright_graph::Graph;
use loopwright_text::{Cursor, Diagnostic, Source, Token};
use smallvec::SmallVec;

const FORM: &str = "schedule";
const VERSION: i64 = 1;

/// The text of a schedule.
pub fn print_schedule(graph: &Graph, schedule: &Schedule) -> String {
    let mut text = format!("loopwright {FORM} {VERSION}\n");
    for step in &schedule.steps {
        text += &graph.node_name(step.node);
        text += ":";
        let delegate = step.delegate.as_deref().map(delegate_text);
        let share = step.share.map(|share| format!("share={share}"));
        let loops = step.loops.iter().map(|spec| spec_text(graph, spec));
        let items: Vec<String> = delegate.into_iter().chain(share).chain(loops).collect();
        if !items.is_empty() {
            text += " ";
            text += &items.join(", ");
        }
        text += "\n";
    }
    text
}

/// Reads a schedule for a graph.
pub fn parse_schedule(source: &Source, graph: &Graph) -> Result<Schedule, Diagnostic> {
    let mut cursor = Cursor::new(source)?;
    cursor.expect_header(FORM, VERSION)?;
    let mut schedule = Schedule::default();
    loop {
        cursor.skip_lines();
        if cursor.at_end() {
            return Ok(schedule);
        }
        let node = parse_node(&mut cursor, graph)?;
        cursor.expect(Token::Colon)?;
        let mut step = NodeSchedule {
            node,
            loops: SmallVec::new(),
            share: None,
            delegate: None,
        };
        while !matches!(
            cursor.peek(),
            Token::NewLine | Token::Semicolon | Token::End
        ) {
            let shares = matches!(cursor.peek(), Token::Name(word) if word == "share")
                && *cursor.peek_at(1) == Token::Equals;
            if shares {
                cursor.advance();
                cursor.advance();
                let (share, span) = cursor.expect_integer("how many loops are shared")?;
                step.share = Some(u32::try_from(share).map_err(|_| {
                    Diagnostic::new(span, "a step shares a small number of loops, 0 or more")
                })?);
            } else if !parse_delegate(&mut cursor, &mut step.delegate)? {
                step.loops.push(parse_spec(&mut cursor, graph)?);
            }
            if !cursor.take(&Token::Comma) {
                break;
            }
        }
        cursor.expect_line_end()?;
        schedule.steps.push(step);
    }
}
