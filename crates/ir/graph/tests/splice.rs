//! An input replaced by its definition in another program.

mod support;

use loopwright_graph::{Array, Graph, GraphError, NodeId, evaluate, parse, print};
use loopwright_text::Source;
use support::{program, seeded};

/// Values for all parameters of a graph; a parameter of one name has the same values in every graph.
fn inputs(graph: &Graph, sizes: &[(&str, i64)]) -> Vec<(NodeId, Array)> {
    let binding = graph.bind(sizes).expect("the sizes fit");
    let filled = |node: NodeId| {
        let shape = binding.shape(graph, node);
        let shape: Vec<usize> = shape.into_iter().map(|size| size as usize).collect();
        let seed = graph.node(node).name.bytes().map(u64::from).sum();
        (node, seeded(graph.node(node).dtype, &shape, seed))
    };
    graph.parameters().map(filled).collect()
}

fn known<'a>(graph: &Graph, sizes: &[(&'a str, i64)]) -> Vec<(&'a str, i64)> {
    let has = |name: &str| graph.integers().any(|(_, found, _)| found == name);
    sizes
        .iter()
        .filter(|(name, _)| has(name))
        .copied()
        .collect()
}

fn results(
    graph: &Graph,
    sizes: &[(&str, i64)],
    inputs: &[(NodeId, Array)],
) -> Vec<(String, Array)> {
    let binding = graph.bind(sizes).expect("the sizes fit");
    evaluate(graph, &binding, inputs).expect("it evaluates")
}

/// Checks that a program with its input `h` inlined, the first output of another one, computes what the
/// two compute one after the other.
fn check(definition: &str, user: &str, sizes: &[(&str, i64)]) -> Graph {
    let (from, here) = (program(definition), program(user));
    let node = from.outputs()[0].node;
    let both = match here.inline_input("h", &from, node) {
        Ok(both) => both,
        Err(error) => panic!("{error}\n{from}\n{here}"),
    };
    // The definition's value, as a result of a program of its own.
    let mut builder = loopwright_graph::GraphBuilder::from_graph(&from);
    builder.output("the value", node).expect("a new output");
    let alone = builder.finish().expect("the definition is whole");
    let own = known(&alone, sizes);
    let values = results(&alone, &own, &inputs(&alone, &own));
    let found = values.into_iter().find(|(name, _)| name == "the value");
    let (_, value) = found.expect("it is an output");
    let own = known(&here, sizes);
    let mut given = inputs(&here, &own);
    let replaced = here.find("h").expect("the input exists");
    for (node, array) in &mut given {
        if *node == replaced {
            *array = value.clone();
        }
    }
    let expected = results(&here, &own, &given);
    let own = known(&both, sizes);
    let got = results(&both, &own, &inputs(&both, &own));
    assert_eq!(
        format!("{got:?}"),
        format!("{expected:?}"),
        "{definition}\n--\n{user}\n--\n{both}"
    );
    // What comes out is a program: its text gives it back.
    let printed = print(&both);
    let read = parse(&Source::new("both", printed.clone()));
    assert_eq!(read.as_ref(), Ok(&both), "{printed}");
    both
}

#[test]
fn what_is_inlined_is_what_was_given() {
    let n = |n: i64| vec![("N", n), ("M", n + 2), ("s", 1)];
    let definitions = [
        // One array over [N], made in many ways, with names that clash with those of the users.
        "size N = 5\ninput x: f32[k=N]\noutput h = x * 2 + 1",
        "size N = 5\ninput x: f32[i=N, j=3]\ny = x * x\noutput h = sum[j](y)",
        "size N, M\ninput w: f32[j=N, i=M]\ninput x: f32[i=M]\noutput h = sum[i](w * x)",
        "size N\ninput x: f32[i=N]\nturned = x[size(i) - 1 - i]\noutput h = scan_sum[i](turned) + f32(N)",
        "size N, M\nstatic s in 0 .. M - N + 1\ninput z: f32[all=M]\ndim a = N\noutput h = z[a + s] * f32(s)",
        "size N\ninput x: f32[i=N]\nconst t: f32[v] = [1, 2, 4]\nat = i % 3\noutput h = t[at] + (x[i - 1] else 9)",
        "size N\nstate w: f32[q=N]\noutput h = w + 1\nupdate w = h",
        "size N\ninput x: f32[i=N]\norder = argsort[i](x)\noutput h = x[order]",
        "size N\ninput i: f32[total=N]\noutput h = i * f32(argmax[total](i))",
        "size N\ninput h: f32[i=N]\noutput y = h",
    ];
    let users = [
        "size N\ninput h: f32[i=N]\noutput total = sum[i](h), h",
        "size N\ninput x: f32[i=N]\ninput h: f32[i]\noutput y = h * x + (h[i + 1] else 0)",
        "size N\ninput h: f32[j=N]\ninput x: f32[q=N, i=3]\ny = x[j, i]\noutput z = sum[j](h * y)",
        "size N\nstate w: f32[i=N]\ninput h: f32[i]\nupdate w = w * h\noutput w_before = w",
        "size N, M\ninput h: f32[a=N]\ninput w: f32[z_2=N, M_2=M]\noutput x = sum[z](w[z, M_2] * h[z])",
    ];
    let mut checked = 0;
    for definition in definitions {
        let graph = program(definition);
        for user in users {
            for size in [1, 5, 0] {
                let shapes = [graph.clone(), program(user)];
                // Two programs may have one name for different things: that is refused, below.
                if shapes[1]
                    .inline_input("h", &shapes[0], graph.outputs()[0].node)
                    .is_err()
                {
                    continue;
                }
                check(definition, user, &n(size));
                checked += 1;
            }
        }
    }
    assert!(checked >= 100, "only {checked} of 150 pairs were joined");
}

#[test]
fn one_name_is_one_input() {
    let both = check(
        "size N = 4\ninput x: f32[a=N, b=3]\noutput h = sum[b](x)",
        "size N = 4\ninput x: f32[i=N, j=3]\ninput h: f32[i]\noutput y = x - h",
        &[("N", 4)],
    );
    assert_eq!(both.parameters().count(), 1, "{both}");
    // A default that two programs do not agree on is none.
    let both = check(
        "size N = 4\ninput x: f32[a=N]\noutput h = x",
        "size N = 5\ninput h: f32[i=N]\noutput y = h",
        &[("N", 3)],
    );
    assert_eq!(
        both.sizes().next().map(|(_, _, default)| default),
        Some(None)
    );
}

#[test]
fn names_give_way_to_what_is_given() {
    // `total` is an input of the definition, and here a dimension and a computed array.
    let both = check(
        "input total: f32[i=4]\ninput mean: f32[i]\nhelp = total * mean\noutput h = help + 1",
        "input h: f32[total=4]\nmean = h / 2\nhelp = mean + 1\noutput y = help",
        &[],
    );
    let names: Vec<&str> = both.dims().iter().map(|dim| dim.name.as_str()).collect();
    assert_eq!(names, ["total_2"], "{both}");
    let given: Vec<&str> = both
        .parameters()
        .map(|node| both.node(node).name.as_str())
        .collect();
    assert_eq!(given, ["total", "mean"]);
}

#[test]
fn conflicts_are_refused() {
    let user = "size N = 4\ninput x: f32[i=N, j=3]\ninput h: f32[i]\noutput y = x - h";
    let cases = [
        (
            "size N = 4\ninput z: i32[a=N]\noutput h = z",
            "`h` is f32[N] in the program and i32[N] in the one it is joined with",
        ),
        (
            "size M = 4\ninput z: f32[a=M]\noutput h = z",
            "`h` is f32[N] in the program and f32[M] in the one it is joined with",
        ),
        (
            "size N = 4\ninput z: f32[a=N, b=2]\noutput h = z",
            "`h` is f32[N] in the program and f32[N, 2] in the one it is joined with",
        ),
        (
            "size N = 4\ninput x: f32[a=N, b=2]\noutput h = sum[b](x)",
            "`x` is f32[N, 3] in the program and f32[N, 2] in the one it is joined with",
        ),
        (
            "size N, x\ninput z: f32[a=N]\noutput h = z * f32(x)",
            "`x` is an array in the program and a size in the one it is joined with",
        ),
        (
            "size M\ninput N: f32[a=M]\noutput h = N",
            "`N` is a size in the program and an array in the one it is joined with",
        ),
        (
            "static N in 0 .. 4\ninput z: f32[a=4]\noutput h = z * f32(N)",
            "`N` is a size in the program and a static in 0 .. 4 in the one it is joined with",
        ),
    ];
    for (definition, message) in cases {
        let (from, here) = (program(definition), program(user));
        let node = from.outputs()[0].node;
        let error = here.inline_input("h", &from, node).expect_err(message);
        assert_eq!(error.to_string(), message, "{definition}");
    }
    let here = program(user);
    for name in ["y", "nothing"] {
        assert_eq!(
            here.inline_input(name, &here, NodeId(0)),
            Err(GraphError::NotAnInput {
                name: name.to_owned()
            })
        );
    }
}
