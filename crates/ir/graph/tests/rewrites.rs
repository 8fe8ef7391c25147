//! Rewritten graphs against the graphs they came from, bit for bit.

mod support;

use loopwright_graph::rewrite::rewrite;
use loopwright_graph::{Array, Graph, NodeId, NodeOp, evaluate, parse, print};
use loopwright_ops::{DType, Scalar, same_value};
use loopwright_text::Source;
use support::{Random, program};

/// Values among which are all that a careless rewrite gets wrong.
fn awkward(dtype: DType, shape: &[usize], random: &mut Random) -> Array {
    let values: Vec<Scalar> = (0..shape.iter().product())
        .map(|_| match (dtype.is_float(), random.below(8)) {
            (true, 0) => Scalar::from_f64(dtype, -0.0),
            (true, 1) => Scalar::from_f64(dtype, f64::NAN),
            (true, 2) => Scalar::from_f64(dtype, f64::INFINITY),
            (true, 3) => Scalar::from_f64(dtype, f64::NEG_INFINITY),
            (true, _) => Scalar::from_f64(dtype, random.below(2001) as f64 / 7.0 - 100.0),
            // Small numbers are indices in and out of range; the others are any bits at all.
            (false, 0..6) => Scalar::from_i64(dtype, random.below(12) as i64 - 3),
            (false, _) => Scalar::from_bits(dtype, random.next()),
        })
        .collect();
    Array::from_scalars(dtype, shape, &values).expect("as many values as elements")
}

fn inputs(graph: &Graph, sizes: &[(&str, i64)], seed: u64) -> Vec<(String, Array)> {
    let binding = graph.bind(sizes).expect("the sizes fit");
    let mut random = Random(seed);
    graph
        .parameters()
        .map(|node| {
            let shape: Vec<usize> = binding
                .shape(graph, node)
                .into_iter()
                .map(|size| size as usize)
                .collect();
            let parts = graph.node(node);
            (
                parts.name.clone(),
                awkward(parts.dtype, &shape, &mut random),
            )
        })
        .collect()
}

fn results(
    graph: &Graph,
    sizes: &[(&str, i64)],
    given: &[(String, Array)],
) -> Vec<(String, Array)> {
    let binding = graph.bind(sizes).expect("the sizes fit");
    let given: Vec<(NodeId, Array)> = given
        .iter()
        .map(|(name, array)| {
            let node = graph.find(name).expect("parameters keep their names");
            (node, array.clone())
        })
        .collect();
    evaluate(graph, &binding, &given).expect("the graph evaluates")
}

/// Whether a node of the graph satisfies a test.
fn has(graph: &Graph, test: impl Fn(&NodeOp) -> bool) -> bool {
    graph.node_ids().any(|node| test(&graph.node(node).op))
}

fn is_gather(op: &NodeOp) -> bool {
    matches!(op, NodeOp::Gather { .. })
}

fn is_reduce(op: &NodeOp) -> bool {
    matches!(op, NodeOp::Reduce { .. })
}

/// Compares both graphs on many inputs; gives the rewritten one.
fn same_results(body: &str, sizes: &[(&str, i64)]) -> Graph {
    let graph = program(body);
    let (rewritten, _) = rewrite(&graph);
    for seed in 0..40 {
        let given = inputs(&graph, sizes, seed);
        let expected = results(&graph, sizes, &given);
        let got = results(&rewritten, sizes, &given);
        assert_eq!(expected.len(), got.len());
        for ((name, expected), (got_name, got)) in expected.iter().zip(&got) {
            assert_eq!(name, got_name);
            assert_eq!(expected.shape(), got.shape(), "{name} of\n{body}");
            for (at, (expected, got)) in expected.iter().zip(got.iter()).enumerate() {
                assert!(
                    same_value(expected, got),
                    "element {at} of `{name}` with seed {seed} is {got}, not {expected}:\n{body}\n{rewritten}"
                );
            }
        }
    }
    // It is a graph like any other: its text says all of it.
    let source = Source::new("rewritten.lw", print(&rewritten));
    match parse(&source) {
        Ok(again) => assert_eq!(again, rewritten),
        Err(error) => panic!("{}", error.render(&source)),
    }
    rewritten
}

#[test]
fn one_hot_sums_become_look_ups() {
    let bodies = [
        // One dimension, and an index that is a single number.
        "input t: i64\ninput x: f32[k=9]\noutput y = sum[k](select(k == t, x, 0))",
        // The other order, and minus zero for nothing.
        "input t: i64[i=5]\ninput x: f64[k=9]\noutput y = sum[k](select(t == k, x, -0.0))",
        // An embedding, with the dimensions of the table in either order.
        "input t: i64[i=5]\ninput x: f32[k=9, d=3]\noutput y = sum[k](select(k == t, x, 0))",
        "input t: i64[i=5]\ninput x: f32[d=3, k=9]\noutput y = sum[k](select(k == t, x, 0))",
        // Every row has its own index, as in a cross entropy.
        "input t: i64[i=5]\ninput x: f32[i, k=9]\noutput y = sum[k](select(k == t, x, 0))",
        "input t: i64[j=2, i=5]\ninput x: f32[i, k=9, d=3]\noutput y = sum[k](select(k == t, x, 0))",
        // Indices of other dtypes, or cast.
        "input t: i32[i=5]\ninput x: f32[k=9]\noutput y = sum[k](select(index[k, i32] == t, x, 0))",
        "input t: i32[i=5]\ninput x: f32[k=9]\noutput y = sum[k](select(k == i64(t), x, 0))",
        "input t: i32[i=5]\ninput x: f32[k=9]\noutput y = sum[k](select(i32(k) == t, x, 0))",
        "input t: u8[i=5]\ninput x: f32[k=9]\noutput y = sum[k](select(index[k, u8] == t, x, 0))",
        "input t: i8[i=5]\ninput x: f32[k=128]\noutput y = sum[k](select(index[k, i8] == t, x, 0))",
        "input t: u64[i=5]\ninput x: f32[k=9]\noutput y = sum[k](select(index[k, u64] == t, x, 0))",
        // An index that is computed, and a table that is.
        "input t: i64[i=5]\ninput x: f32[k=9]\noutput y = sum[k](select(k == t * 2 - i, x + 1, 0))",
        // Narrow floats accumulate in f32, and any dtype in any other.
        "input t: i64[i=5]\ninput x: f16[k=9]\noutput y = sum[k](select(k == t, x, 0))",
        "input t: i64[i=5]\ninput x: f32[k=9]\noutput y = sum[k, acc=f64](select(k == t, x, 0))",
        "input t: i64[i=5]\ninput x: f32[k=9]\noutput y = sum[k, acc=bf16](select(k == t, x, 0))",
        "input t: i64[i=5]\ninput x: f32[k=9]\noutput y = sum[k, acc=i8](select(k == t, x, 0))",
        "input t: i64[i=5]\ninput x: i32[k=9]\noutput y = sum[k, acc=f16](select(k == t, x, 0))",
        // Integers, chosen or multiplied.
        "input t: i64[i=5]\ninput x: i32[k=9]\noutput y = sum[k](select(k == t, x, 0))",
        "input t: i64[i=5]\ninput x: i32[k=9, d=2]\noutput y = sum[k](i32(k == t) * x)",
        "input t: i64[i=5]\ninput x: u8[k=9, d=2]\noutput y = sum[k](x * u8(t == k))",
        "input t: i64[i=5]\ninput x: i32[k=9]\noutput y = sum[k, acc=i8](x * i32(t == k))",
    ];
    for body in bodies {
        let rewritten = same_results(body, &[]);
        assert!(has(&rewritten, is_gather), "{body}\n{rewritten}");
        assert!(!has(&rewritten, is_reduce), "{body}\n{rewritten}");
    }
}

#[test]
fn sizes_may_be_symbols_and_zero() {
    let body =
        "size N\ninput t: i64[i=5]\ninput x: f32[k=N]\noutput y = sum[k](select(k == t, x, 0))";
    for size in [0, 1, 6] {
        let rewritten = same_results(body, &[("N", size)]);
        assert!(has(&rewritten, is_gather), "{rewritten}");
    }
}

#[test]
fn other_dimensions_stay_summed_in_their_order() {
    let bodies = [
        "input t: i64[i=5]\ninput x: f32[k=9, d=3]\noutput y = sum[k, d](select(k == t, x, 0))",
        "input t: i64[i=5]\ninput x: f32[k=9, d=3]\noutput y = sum[d, k](select(k == t, x, 0))",
        "input t: i64[i=5]\ninput x: f32[k=9, d=3]\noutput y = sum[i, k, d](select(k == t, x, 0))",
        "input t: i64[i=5]\ninput x: f16[i, k=9]\noutput y = sum[i, k](select(k == t, x, 0))",
    ];
    for body in bodies {
        let rewritten = same_results(body, &[]);
        assert!(has(&rewritten, is_gather), "{body}\n{rewritten}");
    }
    // Here the gathers would be added in another order.
    let body = "input t: i64[i=5]\ninput x: f32[k=9]\noutput y = sum[k, i](select(k == t, x, 0))";
    assert!(!has(&same_results(body, &[]), is_gather));
}

#[test]
fn names_states_and_other_readers_are_kept() {
    let body = "
        input t: i64[i=5]
        dim k = 9
        hot = k == t
        input x: f32[k, d=4]
        state total: f32[d, i]
        masked = select(hot, x, 0)
        row = sum[k](masked)
        output row, masked
        output again = row * 2
        update total = total + row";
    let rewritten = same_results(body, &[]);
    assert!(has(&rewritten, is_gather), "{rewritten}");
    for name in ["t", "x", "total", "row", "masked"] {
        assert!(rewritten.find(name).is_some(), "`{name}` of\n{rewritten}");
    }
}

#[test]
fn near_misses_stay_as_they_are() {
    let bodies = [
        // Not a sum.
        "input t: i64[i=5]\ninput x: f32[k=9]\noutput y = max[k](select(k == t, x, 0))",
        "input t: i64[i=5]\ninput x: f32[k=9]\noutput y = scan_sum[k](select(k == t, x, 0))",
        // Not an equality, or not with something fixed.
        "input t: i64[i=5]\ninput x: f32[k=9]\noutput y = sum[k](select(k != t, x, 0))",
        "input t: i64[i=5]\ninput x: f32[k=9]\noutput y = sum[k](select(k <= t, x, 0))",
        "input t: i64[k=9]\ninput x: f32[k]\noutput y = sum[k](select(k == t, x, 0))",
        "input t: i64[i=5]\ninput x: f32[k=9]\noutput y = sum[k](select(k == t - k, x, 0))",
        "input t: i64[i=5]\ninput x: f32[i, k=9]\noutput y = sum[i](select(k == t, x, 0))",
        // Not zero elsewhere.
        "input t: i64[i=5]\ninput x: f32[k=9]\noutput y = sum[k](select(k == t, x, 1))",
        "input t: i64[i=5]\ninput x: f32[k=9]\noutput y = sum[k](select(k == t, x, nan))",
        "input t: i64[i=5]\ninput x: f32[k=9]\noutput y = sum[k](select(k == t, 0, x))",
        // A row that is not chosen spoils a product of floats.
        "input t: i64[i=5]\ninput x: f32[k=9]\noutput y = sum[k](f32(k == t) * x)",
        // Two rows have the same index as far as the dtype goes.
        "input t: u8[i=5]\ninput x: f32[k=300]\noutput y = sum[k](select(index[k, u8] == t, x, 0))",
        "input t: i64[i=5]\ninput x: f32[k=300]\noutput y = sum[k](select(i64(u8(k)) == t, x, 0))",
        "input t: i8[i=5]\ninput x: f32[k=129]\noutput y = sum[k](select(index[k, i8] == t, x, 0))",
        "input t: f32[i=5]\ninput x: f32[k=9]\noutput y = sum[k](select(f32(k) == t, x, 0))",
        // Nothing to look up in.
        "input t: i64[i=5]\ninput x: f32[i]\ndim k = 9\noutput y = sum[k](select(k == t, x, 0))",
    ];
    for body in bodies {
        let graph = program(body);
        let (rewritten, notes) = rewrite(&graph);
        assert_eq!(rewritten, graph, "{body}");
        assert!(notes.is_empty(), "{notes:?}");
    }
}
