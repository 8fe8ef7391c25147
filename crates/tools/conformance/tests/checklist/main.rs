//! What loop_tool does, as behaviours: each test is named after its line of the checklist.
//!
//! Whatever runs, runs on every backend that computes, under its default schedule and the plainest one, and is
//! compared with the reference evaluator as well as with values worked out by hand.

mod analysis;
mod life;
mod programs;
mod schedules;
#[path = "../support/mod.rs"]
mod support;

use loopwright_backend::{Backend, CompileOptions};
use loopwright_compile::Compiler;
use loopwright_conformance::generate::plain_schedule;
use loopwright_graph::{Array, Graph, NodeId, evaluate, parse};
use loopwright_ops::same_value;
use loopwright_text::Source;
use std::collections::BTreeMap;
use {
    loopwright_cc as _, loopwright_gccjit as _, loopwright_interp as _, loopwright_manycore as _,
    loopwright_x86 as _,
};

/// Reads a program; its first line is added.
fn program(text: &str) -> Graph {
    let source = Source::new("program.lw", format!("loopwright program 1\n{text}"));
    parse(&source).unwrap_or_else(|error| panic!("{}", error.render(&source)))
}

/// What is wrong with a program.
fn refusal(text: &str) -> String {
    let source = Source::new("program.lw", format!("loopwright program 1\n{text}"));
    match parse(&source) {
        Ok(graph) => panic!("it should have been refused:\n{graph}"),
        Err(error) => error.render(&source),
    }
}

/// Every backend that computes and can be used here. What is left out is printed; where `CI` is set nothing is.
fn backends() -> Vec<Backend> {
    let known = loopwright_backend::backends().into_iter();
    let usable = |backend: &Backend| match backend.availability() {
        Ok(()) => backend.capabilities().computes,
        Err(why) => {
            let name = backend.name();
            assert!(
                std::env::var_os("CI").is_none(),
                "CI must have {name}: {why}"
            );
            eprintln!("SKIP: {name}: {why}");
            false
        }
    };
    known.filter(usable).collect()
}

/// Runs a check on every backend, each on a thread of its own: most of the time is spent waiting for compilers.
fn on_every_backend(check: impl Fn(&Backend) + Sync) {
    std::thread::scope(|scope| {
        for backend in backends() {
            let check = &check;
            scope.spawn(move || check(&backend));
        }
    });
}

/// A backend that is not linked in would be a suite that passes without it.
#[test]
fn the_checklist_runs_on_every_backend_of_the_processor() {
    let known = loopwright_backend::backends();
    for name in ["interp", "cc", "x86", "gccjit", "manycore"] {
        let backend = known.iter().find(|backend| backend.name() == name);
        let backend = backend.unwrap_or_else(|| panic!("{name} is linked in"));
        assert!(backend.capabilities().computes, "{name} computes");
        let runs = backends().iter().any(|backend| backend.name() == name);
        assert_eq!(runs, backend.availability().is_ok(), "{name}");
    }
}

fn strict() -> CompileOptions {
    CompileOptions {
        strict: true,
        ..CompileOptions::default()
    }
}

/// A program's inputs, given by name.
fn arrays(graph: &Graph, sizes: &[(&str, i64)], inputs: &[(&str, &[f64])]) -> Vec<(NodeId, Array)> {
    let binding = graph.bind(sizes).unwrap_or_else(|error| panic!("{error}"));
    let given = inputs.iter().map(|(name, values)| {
        let node = graph
            .find(name)
            .unwrap_or_else(|| panic!("there is no input `{name}`"));
        let shape = binding.shape(graph, node);
        let shape: Vec<usize> = shape.iter().map(|size| *size as usize).collect();
        let array = Array::from_f64(graph.node(node).dtype, &shape, values);
        (
            node,
            array.unwrap_or_else(|error| panic!("`{name}`: {error}")),
        )
    });
    given.collect()
}

/// Runs a program everywhere, compares with the reference evaluator, and gives the results.
fn run(text: &str, sizes: &[(&str, i64)], inputs: &[(&str, &[f64])]) -> BTreeMap<String, Vec<f64>> {
    let graph = program(text);
    let inputs = arrays(&graph, sizes, inputs);
    let binding = graph.bind(sizes).unwrap_or_else(|error| panic!("{error}"));
    let expected = evaluate(&graph, &binding, &inputs).unwrap_or_else(|error| panic!("{error}"));
    let plain = plain_schedule(&graph.clone().with_stores());
    for backend in backends() {
        let compiler = Compiler::new(backend.clone(), strict());
        for schedule in [None, Some(&plain)] {
            let compiled = compiler.compile(&graph, schedule);
            let compiled = compiled.unwrap_or_else(|error| panic!("{error}"));
            let mut bound = compiled
                .bind(sizes)
                .unwrap_or_else(|error| panic!("{error}"));
            for (node, array) in &inputs {
                let name = graph.node_name(*node);
                bound
                    .give(&name, array.clone())
                    .unwrap_or_else(|error| panic!("{error}"));
            }
            bound.run().unwrap_or_else(|error| panic!("{error}"));
            for (name, expected) in &expected {
                let got = bound
                    .array(name)
                    .unwrap_or_else(|| panic!("there is no `{name}`"));
                assert_eq!(
                    got.shape(),
                    expected.shape(),
                    "{name} on {}",
                    backend.name()
                );
                for (at, (got, expected)) in got.iter().zip(expected.iter()).enumerate() {
                    assert!(
                        same_value(got, expected),
                        "element {at} of `{name}` on {}: expected {expected}, got {got}",
                        backend.name()
                    );
                }
            }
        }
    }
    expected
        .into_iter()
        .map(|(name, array)| (name, array.to_f64()))
        .collect()
}

/// The numbers from `first` on.
fn counting(first: i64, count: usize) -> Vec<f64> {
    (0..count).map(|at| (first + at as i64) as f64).collect()
}
