//! One compiled program runs with every value of its statics, and one at fixed sizes gives the same.

mod computing;

use computing::computing;
use loopwright::backend::CompileOptions;
use loopwright::compile::Compiler;
use loopwright::graph::{Array, Graph, NodeId, evaluate, parse};
use loopwright::ops::same_value;
use loopwright::text::Source;

/// Statics in indices that stay inside, in one that does not, in a condition, as a divisor and as values.
const PROGRAM: &str = "
loopwright program 1
size N, B
static batch in 0 .. N // B, shift in -2 .. 3 = 0
static stride in 1 .. 4 = 1
input x: f32[row=N, d=3]
state seen: i64
part = x[batch*B + i, d]
dim i = B
moved = x[row + shift, d] if row != shift else -1
every = part[i // stride, d]
output total = sum[i](part), moved, every, chosen = batch * 10 + stride
update seen = seen + batch
";

fn program() -> Graph {
    let source = Source::new("statics.lw", PROGRAM);
    parse(&source).unwrap_or_else(|error| panic!("{}", error.render(&source)))
}

fn inputs(graph: &Graph, sizes: &[(&str, i64)]) -> Vec<(NodeId, Array)> {
    let binding = graph.bind_sizes(sizes).unwrap();
    let filled = |node: NodeId| {
        let shape = binding.shape(graph, node);
        let shape: Vec<usize> = shape.iter().map(|size| *size as usize).collect();
        let values: Vec<f64> = (0..shape.iter().product())
            .map(|at: usize| ((at * 37 + 11) % 23) as f64)
            .collect();
        let dtype = graph.node(node).dtype;
        (node, Array::from_f64(dtype, &shape, &values).unwrap())
    };
    graph.parameters().map(filled).collect()
}

#[test]
fn one_compilation_serves_all_values() {
    let graph = program();
    let statics: Vec<_> = graph.statics().map(|found| found.symbol).collect();
    let [batch, shift, stride] = statics[..] else {
        panic!("the program has three statics");
    };
    for backend in computing() {
        let options = CompileOptions {
            strict: true,
            ..CompileOptions::default()
        };
        let compiler = Compiler::new(backend.clone(), options);
        let compiled = compiler.compile(&graph, None).unwrap();
        for (n, b) in [(12, 4), (13, 4), (5, 5), (7, 1)] {
            let mut binding = graph.bind_sizes(&[("N", n), ("B", b)]).unwrap();
            let inputs = inputs(&graph, &[("N", n), ("B", b)]);
            assert_eq!(binding.static_range(&graph, batch), (0, n / b));
            let all = (0..n / b)
                .flat_map(|at| (-2..3).map(move |slide| (at, slide)))
                .flat_map(|(at, slide)| (1..4).map(move |step| (at, slide, step)));
            for (at, slide, step) in all {
                let chosen = [(batch, at), (shift, slide), (stride, step)];
                for (symbol, value) in chosen {
                    binding.set_static(&graph, symbol, value).unwrap();
                }
                let given = [
                    ("N", n),
                    ("B", b),
                    ("batch", at),
                    ("shift", slide),
                    ("stride", step),
                ];
                assert_eq!(binding, graph.bind(&given).unwrap());
                let mut bound = compiled.bind(&given).unwrap();
                for (node, array) in &inputs {
                    bound.give(&graph.node(*node).name, array.clone()).unwrap();
                }
                bound.run().unwrap();
                for (name, expected) in evaluate(&graph, &binding, &inputs).unwrap() {
                    let got = bound.array(&name).unwrap();
                    assert_eq!(got.shape(), expected.shape(), "{name} at {given:?}");
                    for (at, (got, want)) in got.iter().zip(expected.iter()).enumerate() {
                        assert!(
                            same_value(got, want),
                            "{name}[{at}] at {given:?} on {}: {got} instead of {want}",
                            backend.name()
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn a_value_outside_its_range_does_not_run() {
    let graph = program();
    let Some(backend) = computing().into_iter().next() else {
        panic!("the interpreter is always there");
    };
    let compiler = Compiler::new(backend.clone(), CompileOptions::default());
    let compiled = compiler.compile(&graph, None).unwrap();
    let refused = compiled.bind(&[("N", 12), ("B", 4), ("batch", 3)]).err();
    let said = refused.map(|error| error.to_string());
    assert_eq!(
        said.as_deref(),
        Some("`batch` is 3, outside its range 0 .. 3")
    );
}

#[test]
fn a_program_at_fixed_sizes_gives_the_same() {
    let graph = program();
    let given = [("N", 13), ("B", 4), ("batch", 2), ("shift", -1)];
    let binding = graph.bind(&given).unwrap();
    let inputs = inputs(&graph, &given);
    let special = graph.with_sizes(&binding);
    for backend in computing() {
        let options = CompileOptions {
            strict: true,
            ..CompileOptions::default()
        };
        let compiler = Compiler::new(backend.clone(), options);
        let compiled = compiler.compile(&special, None).unwrap();
        assert!(
            compiled.bind(&[("N", 12)]).is_err(),
            "it is compiled for 13"
        );
        let mut bound = compiled.bind(&given).unwrap();
        for (node, array) in &inputs {
            bound.give(&graph.node(*node).name, array.clone()).unwrap();
        }
        bound.run().unwrap();
        for (name, expected) in evaluate(&graph, &binding, &inputs).unwrap() {
            let got = bound.array(&name).unwrap();
            assert_eq!(got.shape(), expected.shape(), "{name}");
            for (at, (got, want)) in got.iter().zip(expected.iter()).enumerate() {
                assert!(
                    same_value(got, want),
                    "{name}[{at}] on {}: {got} instead of {want}",
                    backend.name()
                );
            }
        }
    }
}
