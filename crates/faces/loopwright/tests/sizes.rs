//! One compiled program runs at many sizes.

mod computing;

use computing::computing;
use loopwright::backend::CompileOptions;
use loopwright::compile::Compiler;
use loopwright::graph::{Array, NodeId, evaluate, parse};
use loopwright::ops::same_value;
use loopwright::text::Source;

const PROGRAM: &str = "
loopwright program 1
size M, N, K
input A: f32[i=M, k=K]
input B: f32[k, j=N]
input bias: f32[j]
C = max(sum[k](A * B) + bias, 0)
padded[i, w] = C[i, w - 1] else -1
dim w = N + 2
rows = sum[w](padded)
order = argsort[i](rows)
output C, rows, order
";

#[test]
fn one_compilation_serves_all_sizes() {
    let source = Source::new("sizes.lw", PROGRAM);
    let graph = parse(&source).unwrap_or_else(|error| panic!("{}", error.render(&source)));
    for backend in computing() {
        let options = CompileOptions {
            strict: true,
            ..CompileOptions::default()
        };
        let compiler = Compiler::new(backend.clone(), options);
        for (m, n, k) in [
            (1, 1, 1),
            (0, 4, 4),
            (5, 0, 3),
            (7, 33, 0),
            (8, 48, 16),
            (25, 100, 7),
            (64, 31, 20),
        ] {
            let sizes = [("M", m), ("N", n), ("K", k)];
            let binding = graph.bind(&sizes).unwrap();
            let inputs: Vec<(NodeId, Array)> = graph
                .parameters()
                .map(|node| {
                    let shape = binding.shape(&graph, node);
                    let shape: Vec<usize> = shape.iter().map(|size| *size as usize).collect();
                    let values: Vec<f64> = (0..shape.iter().product())
                        .map(|at: usize| ((at * 37 + 11) % 23) as f64 / 8.0 - 1.3)
                        .collect();
                    (
                        node,
                        Array::from_f64(graph.node(node).dtype, &shape, &values).unwrap(),
                    )
                })
                .collect();
            let program = compiler.compile(&graph, None).unwrap();
            let mut bound = program.bind(&sizes).unwrap();
            for (node, array) in &inputs {
                bound.give(&graph.node(*node).name, array.clone()).unwrap();
            }
            bound.run().unwrap();
            for (name, expected) in evaluate(&graph, &binding, &inputs).unwrap() {
                let got = bound.array(&name).unwrap();
                assert_eq!(got.shape(), expected.shape(), "{name} at {sizes:?}");
                for (at, (got, want)) in got.iter().zip(expected.iter()).enumerate() {
                    assert!(
                        same_value(got, want),
                        "{name}[{at}] at {sizes:?} on {}: {got} instead of {want}",
                        backend.name()
                    );
                }
            }
        }
        assert_eq!(compiler.compile_count(), 1, "{}", backend.name());
    }
}
