//! Failing programs as files.

use super::Shrunk;
use crate::error::ConformanceError;
use crate::files::{create_private, write_whole};
use loopwright_graph::{Array, Graph};
use loopwright_looptree::{Schedule, print_schedule};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Writes a failing case into a directory, which is made if it is not there: the program as
/// `NAME.lw`, with what differs and the values it differs for in comments, and its schedule, if it has
/// one of its own, as `NAME.schedule`. Each file is there whole or not at all, and only this user can
/// read it.
pub fn write_failure(
    directory: &Path,
    name: &str,
    device: &str,
    shrunk: &Shrunk,
) -> Result<PathBuf, ConformanceError> {
    create_private(directory)?;
    let case = &shrunk.case;
    let mut head = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(head, "# {name}: wrong on `{device}`");
    for line in shrunk.mismatch.to_string().lines() {
        let _ = writeln!(head, "# {line}");
    }
    if case.arithmetic.is_strict() {
        let _ = writeln!(head, "# compiled in strict mode");
    }
    if !case.sizes.is_empty() {
        let sizes = case
            .sizes
            .iter()
            .map(|(name, value)| format!("--set {name}={value}"));
        let _ = writeln!(head, "# sizes: {}", sizes.collect::<Vec<_>>().join(" "));
    }
    for (node, array) in &case.inputs {
        let name = case.graph.node_name(*node);
        let _ = writeln!(head, "# {name} = {}", values_text(array));
    }
    if let Some(schedule) = &case.schedule {
        let _ = writeln!(head, "# schedule: {name}.schedule");
        let text = schedule_text(&case.graph, schedule);
        write_whole(directory, &format!("{name}.schedule"), text.as_bytes())?;
    }
    let text = format!("{head}{}", case.graph);
    write_whole(directory, &format!("{name}.lw"), text.as_bytes())
}

/// The text of a schedule of a program. What does not fit the program is left out.
pub(crate) fn schedule_text(graph: &Graph, schedule: &Schedule) -> String {
    let program = graph.clone().with_stores();
    match schedule.edited(&program) {
        Ok(graph) => print_schedule(&graph, schedule),
        Err(error) => {
            let nodes = program.node_ids().count();
            let written = schedule.steps.iter();
            let written = written.filter(|step| usize::from(step.node) < nodes);
            let steps = Schedule::of_steps(written.cloned().collect());
            format!("# {error}\n{}", print_schedule(&program, &steps))
        }
    }
}

fn values_text(array: &Array) -> String {
    let values: Vec<String> = array.iter().map(|value| value.to_string()).collect();
    format!(
        "{}{:?} [{}]",
        array.dtype(),
        array.shape(),
        values.join(", ")
    )
}
