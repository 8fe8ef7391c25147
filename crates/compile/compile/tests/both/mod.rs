//! What the tests share: programs from text, and the two backends that every build has.

#![allow(dead_code, reason = "no test uses all of it")]

use loopwright_backend::{Backend, CompileOptions};
use loopwright_cc::CcBackend;
use loopwright_compile::{Bound, Compiler, Program};
use loopwright_graph::{Array, Graph, parse};
use loopwright_interp::Interp;
use loopwright_text::Source;
use std::sync::Arc;

pub fn graph(text: &str) -> Graph {
    let source = Source::new("test.lw", format!("loopwright program 1\n{text}"));
    match parse(&source) {
        Ok(graph) => graph,
        Err(error) => panic!("{}", error.render(&source)),
    }
}

/// A compiler for the interpreter, and one for C.
pub fn compilers() -> [Compiler; 2] {
    let backends: [Backend; 2] = [
        Backend::kernel_backend(Interp),
        Backend::kernel_backend(CcBackend::from_env()),
    ];
    backends.map(|backend| {
        let options = CompileOptions {
            strict: true,
            ..CompileOptions::default()
        };
        Compiler::new(backend, options)
    })
}

/// The program with sizes and, for each input and state, small integers that differ from place to place.
pub fn bound(program: &Arc<Program>, sizes: &[(&str, i64)]) -> Bound<'static> {
    let mut bound = program.bind(sizes).expect("the sizes fit");
    let graph = program.graph();
    for node in graph.parameters() {
        let parts = graph.node(node);
        let shape: Vec<usize> = bound
            .binding()
            .shape(graph, node)
            .iter()
            .map(|size| *size as usize)
            .collect();
        let count: usize = shape.iter().product();
        let values: Vec<f64> = (0..count)
            .map(|at| ((at * 7 + usize::from(node) * 3) % 11) as f64 - 5.0)
            .collect();
        let array = Array::from_f64(parts.dtype, &shape, &values).expect("inputs are small");
        bound.give(&parts.name, array).expect("the array fits");
    }
    bound
}

/// The values of an output after a run.
pub fn output(bound: &mut Bound<'static>, name: &str) -> Vec<f64> {
    bound.run().expect("the program runs");
    bound.array(name).expect("it is an output").to_f64()
}
