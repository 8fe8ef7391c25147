//! A graph at given sizes computes what the general one computes at them.

mod support;

use loopwright_graph::{Graph, evaluate, parse, print};
use loopwright_text::Source;
use support::{examples, program, seeded};

/// Checks a graph against itself at these sizes.
fn check(name: &str, graph: &Graph, sizes: &[(&str, i64)]) -> Graph {
    let binding = graph.bind(sizes).expect("the sizes fit");
    let special = graph.with_sizes(&binding);
    assert_eq!(special.sizes().count(), 0, "{name}");
    assert_eq!(special.integers().count(), graph.integers().count());
    for dim in special.dims() {
        assert!(dim.size.as_const().is_some(), "{name}: {}", dim.name);
    }
    let again = special.bind(sizes).expect("the sizes are the same");
    for (symbol, ..) in graph.integers() {
        assert_eq!(again.value(symbol), binding.value(symbol), "{name}");
    }
    let inputs: Vec<_> = graph
        .parameters()
        .enumerate()
        .map(|(at, node)| {
            let shape = binding.shape(graph, node);
            let shape: Vec<usize> = shape.into_iter().map(|size| size as usize).collect();
            (node, seeded(graph.node(node).dtype, &shape, at as u64))
        })
        .collect();
    let expected = evaluate(graph, &binding, &inputs).expect("the program evaluates");
    for binding in [&binding, &again] {
        let got = evaluate(&special, binding, &inputs).expect("it evaluates at its sizes");
        assert_eq!(format!("{got:?}"), format!("{expected:?}"), "{name}");
    }
    let printed = print(&special);
    let read = parse(&Source::new(name, printed.clone()));
    assert_eq!(read.as_ref(), Ok(&special), "{name}:\n{printed}");
    special
}

#[test]
fn every_example_at_its_defaults() {
    for (name, text) in examples() {
        let source = Source::new(name.clone(), text);
        let graph = parse(&source).unwrap_or_else(|error| panic!("{}", error.render(&source)));
        check(&name, &graph, &[]);
    }
}

#[test]
fn other_sizes_and_statics() {
    let graph = program(
        "size N = 9, B = 2\nstatic s in 0 .. N // B = 0\ninput x: f32[i=N]\ndim at = B\noutput y = x[s*B + at], z = x[i % B] else 0, n = N * B + s, w = x[(i + 1) % size(i)]",
    );
    for (n, b, s) in [(9, 2, 3), (4, 4, 0), (7, 1, 6)] {
        check("statics", &graph, &[("N", n), ("B", b), ("s", s)]);
    }
    let special = check("statics", &graph, &[("N", 9), ("B", 2)]);
    let text = print(&special);
    assert!(text.contains("static N in 9 .. 10 = 9\n"), "{text}");
    assert!(text.contains("static s in 0 .. 4 = 0\n"), "{text}");
    let error = special.bind(&[("N", 8)]).expect_err("it is for 9");
    assert_eq!(error.to_string(), "`N` is 8, outside its range 9 .. 10");
}
