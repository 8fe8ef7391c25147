//! A one-hot contraction becomes a guarded gather, and gives the same bits on every backend.

mod support;

use loopwright_backend::{Backend, CompileOptions};
use loopwright_compile::Compiler;
use loopwright_graph::rewrite::rewrite;
use loopwright_graph::{Array, NodeOp, evaluate, parse};
use loopwright_ops::{DType, Scalar, same_value};
use loopwright_text::Source;

/// The backends there are.
fn backends() -> Vec<Backend> {
    let mut backends = vec![support::interp()];
    backends.extend(support::cc("3"));
    backends
}

#[test]
fn look_ups_keep_the_bits_of_the_sum() {
    // Minus zero becomes zero in a sum, and rows that are not chosen do not count.
    let rows = [-0.0, 0.0, 1.5, f64::NAN, f64::INFINITY, -7.0];
    let indices = [0, 1, 2, 3, 4, 5, -1, 6, i64::MIN, i64::MAX, 2];
    for dtype in [DType::F16, DType::F32, DType::F64] {
        let source = Source::new(
            "one_hot.lw",
            format!(
                "loopwright program 1\nsize N, K\ninput t: i64[i=N]\ninput x: {dtype}[k=K]\n\
                 output y = sum[k](select(k == t, x, 0))\n"
            ),
        );
        let graph = parse(&source).unwrap_or_else(|error| panic!("{}", error.render(&source)));
        let (rewritten, notes) = rewrite(&graph);
        assert_eq!(notes.len(), 1, "{notes:?}");
        let reduces = |op: &NodeOp| matches!(op, NodeOp::Reduce { .. });
        let mut nodes = rewritten.node_ids();
        assert!(
            !nodes.any(|node| reduces(&rewritten.node(node).op)),
            "{rewritten}"
        );

        let t: Vec<Scalar> = indices.map(Scalar::i64).to_vec();
        let x: Vec<Scalar> = rows.map(|row| Scalar::from_f64(dtype, row)).to_vec();
        let t = Array::from_scalars(DType::I64, &[t.len()], &t).expect("as many values");
        let x = Array::from_scalars(dtype, &[x.len()], &x).expect("as many values");
        let sizes = [("N", indices.len() as i64), ("K", rows.len() as i64)];
        let given = |name: &str, array: &Array| {
            let node = graph.find(name).expect("the program has this input");
            (node, array.clone())
        };
        let inputs = [given("t", &t), given("x", &x)];
        let binding = graph.bind(&sizes).expect("the sizes fit");
        let expected = evaluate(&graph, &binding, &inputs).expect("the program evaluates");

        for backend in backends() {
            for strict in [true, false] {
                let options = CompileOptions {
                    strict,
                    ..CompileOptions::default()
                };
                let compiler = Compiler::new(backend.clone(), options);
                let program = compiler.compile(&rewritten, None).expect("it compiles");
                let mut bound = program.bind(&sizes).expect("the sizes fit");
                bound.give("t", t.clone()).expect("the program has t");
                bound.give("x", x.clone()).expect("the program has x");
                bound.run().expect("it runs");
                let got = bound.array("y").expect("the program has y");
                for (at, (got, want)) in got.iter().zip(expected[0].1.iter()).enumerate() {
                    assert!(
                        same_value(got, want),
                        "row {} in {dtype} on {}: {got} instead of {want}",
                        indices[at],
                        backend.name()
                    );
                }
            }
        }
    }
}
