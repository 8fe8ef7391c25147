//! The `compile` suite: how fast a graph becomes a kernel and a kernel code, beside peers that compile, and how fast
//! what is made of the default schedule runs beside loop_tool.

use crate::callable::{COMPILING, callable_rows};
use crate::field::Field;
use crate::race::Limits;
use crate::report::{Report, Row};
use crate::sample::{median, seconds};
use crate::schedule::schedule_rows;
use crate::work::{Work, ours, parsed};
use crate::{BenchError, Options, cores, peer};
use loopwright::backend::{Stages, Target};
use loopwright::kernel::passes::Pipeline;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// A machine that is the same everywhere, so that compile times and instruction counts compare.
const TARGET: Target = Target {
    vector_bytes: 64,
    vector_registers: 32,
    threads: 1,
    l1_bytes: 32 << 10,
    l2_bytes: 1 << 20,
    ..Target::SCALAR
};

/// The text of an MNIST-class convolutional network, forward.
const NETWORK: &str = include_str!("../../../examples/programs/mnist_cnn.lw");

/// Takes `matmul` or `network` from graph to optimised kernel, `rounds` times; the instruction counts
/// that the project tracks are counted over this.
pub fn graph_to_kernel(work: &str, rounds: usize) -> Result<(), BenchError> {
    let text = match work {
        "matmul" => Work::matmul(512).text,
        "network" => Cow::Borrowed(NETWORK),
        other => return Err(ours(other, "this suite has only `matmul` and `network`")),
    };
    let graph = parsed(work, &text)?;
    let pipeline = Pipeline::standard();
    for _ in 0..rounds {
        Stages::new(&graph, None, &TARGET, &pipeline).map_err(|error| ours(work, error))?;
    }
    Ok(())
}

/// Runs the suite; `say` hears about progress.
pub fn compile_suite(options: &Options, say: &dyn Fn(&str)) -> Result<Report, BenchError> {
    let wanted = |name: &str| {
        let only = options.only.as_deref();
        only.is_none_or(|only| name.contains(only))
    };
    let mut rows = Vec::new();
    // The bars are the project's own: 1 ms, and what loop_tool states for such a network, 13 ms.
    for (name, text, goal) in [
        ("graph to kernel: matmul 512", Work::matmul(512).text, 1.0),
        (
            "graph to kernel: MNIST-class network",
            Cow::Borrowed(NETWORK),
            13.0,
        ),
    ] {
        if wanted(name) {
            say(name);
            rows.push(compile_row(name, &text, goal, options.samples)?);
        }
    }
    rows.extend(schedule_rows(&TARGET, options.samples, &wanted, say)?);
    let [torch, jax] = COMPILING;
    let field = Field::new(options, &[torch, jax, "loop_tool"], say)?;
    cores::pin(options.threads);
    rows.extend(callable_rows(options, &field, &wanted, say)?);
    // A sample is one run, right after the other sides' runs.
    let limits = Limits {
        samples: options.samples,
        seconds: f64::INFINITY,
        burst: 0.0,
        rest: None,
    };
    let works = [64, 128, 256, 512]
        .map(Work::matmul)
        .into_iter()
        .chain([Work::conv(64, 56)]);
    for work in works.filter(|work| wanted(&work.name)) {
        say(&work.name);
        rows.extend(speed_rows(&work, &field, &limits)?);
    }
    Ok(Report::new(rows).in_order_of(peer::names()))
}

fn compile_row(name: &str, text: &str, goal: f64, samples: usize) -> Result<Row, BenchError> {
    let graph = parsed(name, text)?;
    let pipeline = Pipeline::standard();
    let mut times = Vec::with_capacity(samples);
    for _ in 0..samples.max(3) {
        let (time, stages) = seconds(|| Stages::new(&graph, None, &TARGET, &pipeline));
        stages.map_err(|error| ours(name, error))?;
        times.push(time * 1e3);
    }
    let median = median(&mut times);
    Ok(Row::new(name, "ms", median, BTreeMap::new(), Some(goal)))
}

/// Our speed beside the peers', and the first run of each, compilation included.
fn speed_rows(work: &Work, field: &Field, limits: &Limits) -> Result<[Row; 2], BenchError> {
    // The others' libraries are the `cpu` suite's matter.
    let compiles_itself = |peer: &str| !COMPILING.contains(&peer) && peer != "torch";
    let outcome = field.race(work, limits, compiles_itself)?;
    // Twice as fast as others; no more than a tenth slower than our own.
    let alone = !field.peers().any(compiles_itself);
    let goal = match (alone, field.rivals.is_empty()) {
        (true, true) => None,
        (true, false) => Some(1.0 / 1.1),
        (false, _) => Some(2.0),
    };
    let counted = work.counted;
    let first = Row::new(
        format!("{}: first run", work.name),
        "ms",
        outcome.ours.first * 1e3,
        outcome.others(|times| times.first * 1e3),
        None,
    );
    let speed = Row::new(
        work.name.clone(),
        counted.unit(),
        counted.figure(outcome.ours.median),
        outcome.others(|times| counted.figure(times.median)),
        goal,
    );
    // The mean is of what it takes to compile.
    Ok([first.beside_the_list(), speed.beside_the_list()])
}
