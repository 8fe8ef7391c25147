//! How long it takes until the work of the `cpu` suite can be called: from a kernel, from a graph, and beside peers
//! that compile when a function is called first.

use crate::cpu::works;
use crate::field::Field;
use crate::report::{Measured, Row};
use crate::sample::{median, seconds};
use crate::work::{Work, ours};
use crate::{BenchError, Options};
use loopwright::backend::{Backend, CompileOptions};
use loopwright::compile::{Compiler, Kernels};
use loopwright::kernel::passes::Pipeline;
use std::collections::BTreeMap;

/// Peers that compile.
pub(crate) const COMPILING: [&str; 2] = ["torch-compile", "jax"];

/// From kernel to code, in the middle of the list, in milliseconds.
const KERNEL_GOAL: f64 = 1.0;

/// From the graph of the largest network to code, in milliseconds.
const NETWORK_GOAL: f64 = 100.0;

/// So many times less than the peers take.
const RATIO_GOAL: f64 = 50.0;

/// A backend that calls a compiler of another language takes a second for some; samples end then.
const SECONDS_PER_WORK: f64 = 2.0;

/// Rows for the list: kernel to code for each, and their median; graph to code beside peers.
pub(crate) fn callable_rows(
    options: &Options,
    field: &Field,
    wanted: &dyn Fn(&str) -> bool,
    say: &dyn Fn(&str),
    measured: &mut Measured,
) {
    let backend = field.ours();
    let mut graphs = Vec::new();
    let mut times = Vec::new();
    for work in works() {
        let name = format!("kernel to code: {}", work.name);
        if wanted(&name) {
            say(&name);
            let row = kernel_to_code(&work, backend, options.samples).map(|time| {
                times.push(time);
                [alone(name.clone(), time, None)]
            });
            measured.take(&name, row);
        }
        let name = format!("graph to code: {}", work.name);
        if wanted(&name) {
            say(&name);
            let rows = graph_to_code(&name, &work, field, options);
            graphs.push((name, rows));
        }
    }
    if !times.is_empty() {
        let name = "kernel to code: median of these";
        let row = alone(name.to_owned(), median(&mut times), Some(KERNEL_GOAL));
        measured.take(name, Ok([row]));
    }
    for (name, rows) in graphs {
        measured.take(&name, rows);
    }
}

fn alone(name: String, milliseconds: f64, goal: Option<f64>) -> Row {
    Row::new(name, "ms", milliseconds, BTreeMap::new(), goal)
}

/// The median time, in milliseconds, of what is done several times.
fn repeated(
    samples: usize,
    mut run: impl FnMut() -> Result<(), BenchError>,
) -> Result<f64, BenchError> {
    let mut times = Vec::new();
    let mut spent = 0.0;
    while times.len() < 3 || (times.len() < samples && spent < SECONDS_PER_WORK) {
        let (time, outcome) = seconds(&mut run);
        outcome?;
        spent += time;
        times.push(time * 1e3);
    }
    Ok(median(&mut times))
}

fn kernel_to_code(work: &Work, backend: &Backend, samples: usize) -> Result<f64, BenchError> {
    let graph = work.graph()?;
    let kernels = Kernels::new(&graph, None, &backend.target(), &Pipeline::standard());
    let kernels = kernels.map_err(|error| ours(&work.name, error))?;
    let units: Vec<_> = kernels.units().collect();
    // Nothing is kept on disk.
    let options = CompileOptions::default();
    repeated(samples, || {
        let compiled = backend.compile(&units, &options);
        compiled.map(drop).map_err(|error| ours(&work.name, error))
    })
}

/// Ours from the graph to what can be called; a peer's first call, less the time of a later one, which is what it
/// compiled in.
fn graph_to_code(
    name: &str,
    work: &Work,
    field: &Field,
    options: &Options,
) -> Result<Vec<Row>, BenchError> {
    let graph = work.graph()?;
    let time = repeated(options.samples, || {
        // A new one each time, since it remembers what it has compiled.
        let compiler = Compiler::new(field.ours().clone(), CompileOptions::default());
        let compiled = compiler.compile(&graph, None);
        compiled.map(drop).map_err(|error| ours(&work.name, error))
    })?;
    let theirs = field.compile_times(work, &COMPILING)?;
    let peers: BTreeMap<String, f64> = theirs
        .seconds
        .into_iter()
        .map(|(peer, seconds)| (peer, seconds * 1e3))
        .collect();
    let mut rows = Vec::new();
    let goal = (!peers.is_empty()).then_some(RATIO_GOAL);
    if work.request == "resnet18" && goal.is_some() {
        rows.push(alone(
            format!("{name}, ours alone"),
            time,
            Some(NETWORK_GOAL),
        ));
    }
    let goal = goal.or((work.request == "resnet18").then_some(NETWORK_GOAL));
    rows.push(Row::new(name, "ms", time, peers, goal).with_left_out(theirs.left_out));
    Ok(rows)
}
