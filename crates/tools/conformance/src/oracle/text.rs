//! Writing every form out and reading it back.

use super::{Blame, Mismatch};
use loopwright_graph::Graph;
use loopwright_kernel::Module;
use loopwright_looptree::{LoopTree, Schedule};
use loopwright_text::{Diagnostic, Source};

/// Checks that reading a text gives what it was written from, and that writing that gives the text.
fn round_trip<T: PartialEq>(
    form: &'static str,
    text: String,
    original: &T,
    read: impl Fn(&Source) -> Result<T, Diagnostic>,
    write: impl Fn(&T) -> String,
) -> Result<(), Mismatch> {
    let source = Source::new(form, text);
    let wrong = |message: String| Err(Mismatch::new(Blame::Text(form), message));
    match read(&source) {
        Err(error) => wrong(format!(
            "what was written cannot be read: {}",
            error.render(&source)
        )),
        Ok(back) if back == *original => Ok(()),
        Ok(back) => {
            let again = write(&back);
            let lines = source.text().lines().zip(again.lines());
            let differing = lines.into_iter().find(|(a, b)| a != b);
            wrong(match differing {
                Some((a, b)) => format!("`{a}` was read and written again as `{b}`"),
                None => format!("it is read back as something else:\n{}", source.text()),
            })
        }
    }
}

pub(super) fn check_graph(graph: &Graph) -> Result<(), Mismatch> {
    let text = loopwright_graph::print(graph);
    round_trip(
        "graph",
        text,
        graph,
        loopwright_graph::parse,
        loopwright_graph::print,
    )
}

/// `graph` is the program with the schedule's changes made.
pub(super) fn check_schedule(
    program: &Graph,
    graph: &Graph,
    schedule: &Schedule,
) -> Result<(), Mismatch> {
    let write = |schedule: &Schedule| loopwright_looptree::print_schedule(graph, schedule);
    let read = |source: &Source| loopwright_looptree::parse_schedule(source, program);
    round_trip("schedule", write(schedule), schedule, read, write)
}

pub(super) fn check_tree(graph: &Graph, tree: &LoopTree) -> Result<(), Mismatch> {
    let write = |tree: &LoopTree| loopwright_looptree::print_tree(graph, tree);
    let read = |source: &Source| loopwright_looptree::parse_tree(source, graph);
    round_trip("tree", write(tree), tree, read, write)
}

pub(super) fn check_kernel(module: &Module) -> Result<(), Mismatch> {
    let text = loopwright_kernel::print(module);
    round_trip(
        "kernel",
        text,
        module,
        loopwright_kernel::parse,
        loopwright_kernel::print,
    )
}
