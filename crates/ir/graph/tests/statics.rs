//! Static symbols: integers in a known range that are chosen after memory is laid out.

mod support;

use loopwright_graph::{GraphBuilder, GraphError, View, parse, print};
use loopwright_ops::DType;
use loopwright_symbolic::{Expr, Symbol};
use loopwright_text::Source;
use smallvec::smallvec;
use support::{counting, program, refused, run};

#[test]
fn a_batch_is_read_where_it_lies() {
    let graph = program(
        "size N = 10\nstatic batch in 0 .. N // 4\ninput x: f32[row=N]\ndim i = 4\noutput y = x[batch*4 + i], at = batch",
    );
    for batch in 0..2 {
        let result = run(&graph, &[("batch", batch)], &[("x", counting(10))]);
        let first = batch as f64 * 4.0;
        assert_eq!(
            result.values("y"),
            [first, first + 1.0, first + 2.0, first + 3.0]
        );
        assert_eq!(result.values("at"), [batch as f64]);
    }
}

#[test]
fn ranges_prove_that_a_view_stays_inside() {
    let accepted = [
        // Numbers.
        "static s in 0 .. 3\ninput x: f32[i=10]\ndim at = 8\noutput y = x[at + s]",
        "static s in -2 .. 3\ninput x: f32[i=10]\ndim at = 6\noutput y = x[at + s + 2]",
        "static s in 1 .. 4\ninput x: f32[i=10]\ndim at = 10\noutput y = x[at // s]",
        "static a in 0 .. 3, b in 0 .. 4\ninput x: f32[i=12]\noutput y = x[a*4 + b]",
        // Sizes.
        "size N\nstatic s in 0 .. N\ninput x: f32[i=N]\noutput y = x[s]",
        "size N\nstatic s in 0 .. N // 32\ninput x: f32[i=N]\ndim at = 32\noutput y = x[s*32 + at]",
        "size N, B\nstatic s in 0 .. N // B\ninput x: f32[i=N]\ndim at = B\noutput y = x[s*B + at]",
        "size N, B\nstatic s in 0 .. N\ninput x: f32[i=N*B]\ndim at = B\noutput y = x[s*B + at]",
        "size N\nstatic s in 1 .. 4\ninput x: f32[i=N]\noutput y = x[i // s], z = x[i % s] else 0",
        "size N\nstatic s in 0 .. N - 3\ninput x: f32[i=N]\ndim at = 4\noutput y = x[s + at]",
        "size N\ninput x: f32[i=N]\nstatic s in 2 .. size(i)\noutput y = x[s - 2]",
    ];
    for body in accepted {
        program(body);
    }
    let open = [
        "static s in 0 .. 4\ninput x: f32[i=10]\ndim at = 8\noutput y = x[at + s]",
        "static s in -1 .. 3\ninput x: f32[i=10]\ndim at = 8\noutput y = x[at + s]",
        "size N\nstatic s in 0 .. N + 1\ninput x: f32[i=N]\noutput y = x[s]",
        "size N\nstatic s in 0 .. N // 32 + 1\ninput x: f32[i=N]\ndim at = 32\noutput y = x[s*32 + at]",
        "size N, B\nstatic s in 0 .. N // B\ninput x: f32[i=N]\ndim at = B\noutput y = x[s*B + at + 1]",
    ];
    for body in open {
        let error = refused(body);
        assert!(error.contains("which may be outside"), "{body}\n{error}");
    }
}

#[test]
fn what_is_written_is_read_back() {
    let graph = program(
        "size N = 9\ninput x: f32[i=N]\nstatic s in -1 .. max(N // 2, 1) = 0, t in 0 .. size(i) - 1\noutput y = x[i + s] if t < i else 0, z = s * t",
    );
    let text = print(&graph);
    assert!(
        text.contains("static s in -1 .. max(N // 2, 1) = 0\n"),
        "{text}"
    );
    assert!(text.contains("static t in 0 .. N - 1\n"), "{text}");
    assert_eq!(parse(&Source::new("printed", text)), Ok(graph));
}

#[test]
fn a_value_must_be_in_its_range() {
    let graph = program("size N = 8\nstatic s in 0 .. N\ninput x: f32[i=N]\noutput y = x[s]");
    let message = |given: &[(&str, i64)]| match graph.bind(given) {
        Ok(binding) => panic!("accepted: {binding:?}"),
        Err(error) => error.to_string(),
    };
    assert_eq!(
        message(&[("s", 9), ("N", 8)]),
        "`s` is 9, outside its range 0 .. 8"
    );
    assert_eq!(message(&[("s", -1)]), "`s` is -1, outside its range 0 .. 8");
    assert_eq!(
        message(&[]),
        "static `s` has no value; give it one of 0 .. 8, for example `--set s=0`"
    );
    assert_eq!(
        message(&[("N", 0)]),
        "`s` can have no value: its range 0 .. 0 is empty"
    );
    assert_eq!(
        message(&[("t", 0)]),
        "the program has no size `t`; its sizes are [N, s]"
    );
    assert_eq!(
        graph
            .bind(&[("s", 7)])
            .map(|binding| binding.arguments(&graph)),
        Ok(vec![8, 7])
    );
}

#[test]
fn sizes_are_bound_before_statics() {
    let graph = program("size N\nstatic s in 0 .. N = 2\ninput x: f32[i=N]\noutput y = x[s]");
    let s = graph.statics().next().map(|found| found.symbol);
    let s = s.expect("the program has a static");
    let mut binding = graph.bind_sizes(&[("N", 4)]).expect("the size is given");
    assert_eq!(binding.static_range(&graph, s), (0, 4));
    assert_eq!(binding.value(s), 2, "the default");
    assert_eq!(binding.set_static(&graph, s, 3), Ok(()));
    assert_eq!(binding.value(s), 3);
    let outside = GraphError::OutsideRange {
        name: "s".to_owned(),
        value: 4,
        lo: 0,
        hi: 4,
    };
    assert_eq!(binding.set_static(&graph, s, 4), Err(outside.clone()));
    assert_eq!(binding.value(s), 3, "a refused value changes nothing");
    let refused = graph.bind_sizes(&[("N", 4), ("s", 4)]);
    assert_eq!(refused, Err(outside), "what is given is checked");
    // A default outside the range holds a place, as does an empty range, until a value is chosen.
    let mut binding = graph.bind_sizes(&[("N", 2)]).expect("the size is given");
    assert_eq!(binding.value(s), 0);
    assert_eq!(binding.set_static(&graph, s, 1), Ok(()));
    let mut binding = graph.bind_sizes(&[("N", 0)]).expect("nothing is chosen");
    assert_eq!(binding.static_range(&graph, s), (0, 0));
    assert!(matches!(
        binding.set_static(&graph, s, 0),
        Err(GraphError::EmptyRange { .. })
    ));
    let (size, ..) = graph.sizes().next().expect("the program has a size");
    assert_eq!(
        binding
            .set_static(&graph, size, 0)
            .map_err(|e| e.to_string()),
        Err("`N` is not a static, so its value cannot be chosen for a run".to_owned())
    );
}

#[test]
fn a_builder_declares_statics() {
    let mut builder = GraphBuilder::new();
    let rows = builder.dim("rows").expect("the name is free");
    builder.set_size(rows, Expr::constant(6), "the test");
    let end = builder.size_of(rows);
    let row = builder.static_symbol("row", Expr::constant(0), end, None);
    let row = row.expect("the name is free");
    assert_eq!(builder.find_static("row"), Some(row));
    let x = builder.input("x", DType::I32, &[rows]).expect("it is new");
    let view = View {
        map: smallvec![Expr::symbol(row)],
        constraints: Vec::new(),
        outside: None,
    };
    let y = builder
        .view(x, &[], view)
        .expect("the index is over a static");
    builder.output("y", y).expect("the name is free");
    let again = GraphBuilder::from_graph(&builder.clone().finish().expect("it is whole"));
    assert_eq!(again.find_static("row"), Some(row));
    let graph = builder.finish().expect("it is whole");
    assert_eq!(
        graph
            .statics()
            .map(|found| found.hi.as_const())
            .collect::<Vec<_>>(),
        [Some(6)]
    );
    assert_eq!(graph.sizes().count(), 0);
    assert_eq!(
        graph.integers().collect::<Vec<_>>(),
        [(row, "row", None::<i64>)] as [(Symbol, &str, Option<i64>); 1]
    );
}
