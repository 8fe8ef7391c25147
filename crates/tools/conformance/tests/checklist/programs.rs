//! Lines 1 to 12 and 20: programs.

use crate::{arrays, backends, counting, program, refusal, run, strict};
use loopwright_compile::Compiler;
use loopwright_graph::evaluate;
use loopwright_looptree::parse_schedule;
use loopwright_ops::Op;
use loopwright_text::Source;

#[test]
fn line_01_matrix_product() {
    let text = "input A: f32[i=2, k=3]\ninput B: f32[k, j=2]\noutput C = sum[k](A * B)\n";
    let (a, b) = (counting(1, 6), counting(1, 6));
    let results = run(text, &[], &[("A", &a), ("B", &b)]);
    assert_eq!(results["C"], [22.0, 28.0, 49.0, 64.0]);

    let text =
        "size M\nsize K\ninput A: f32[i=M, k=K]\ninput B: f32[k, j=33]\noutput C = sum[k](A * B)\n";
    for (m, k) in [(1, 1), (17, 40), (0, 3), (5, 0)] {
        let (a, b) = (
            counting(-5, (m * k) as usize),
            counting(-9, (k * 33) as usize),
        );
        let results = run(text, &[("M", m), ("K", k)], &[("A", &a), ("B", &b)]);
        assert_eq!(results["C"].len(), m as usize * 33);
    }
}

#[test]
fn line_02_broadcast() {
    let text = "input a: f32[i=2]\ninput b: f32[j=3]\ninput s: f32\noutput outer = a * b\noutput scaled = a * s + 1\n";
    let results = run(
        text,
        &[],
        &[("a", &[1.0, 2.0]), ("b", &[3.0, 4.0, 5.0]), ("s", &[10.0])],
    );
    assert_eq!(results["outer"], [3.0, 4.0, 5.0, 6.0, 8.0, 10.0]);
    assert_eq!(results["scaled"], [11.0, 21.0]);
}

#[test]
fn line_03_every_pointwise_operation() {
    // The ops on floats, by their names, in one program each way; `tests/backends.rs` has every dtype.
    let mut text = String::from("input x: f32[i=5]\ninput y: f32[i]\ninput c: bool[i]\n");
    let mut count = 0;
    for op in Op::ALL
        .iter()
        .filter(|op| op.info().class.allows(loopwright_ops::DType::F32))
    {
        let operands = match (op, op.arity()) {
            (Op::Select, _) => "c, x, y",
            (_, 1) => "x",
            (_, 2) => "x, y",
            _ => "x, y, x",
        };
        text += &format!("output o_{} = {}({operands})\n", op.name(), op.name());
        count += 1;
    }
    let x = [0.5, -1.25, 2.0, 0.0, 7.75];
    let y = [2.0, 3.0, -0.5, 1.0, 2.5];
    let c = [1.0, 0.0, 1.0, 0.0, 1.0];
    let results = run(&text, &[], &[("x", &x), ("y", &y), ("c", &c)]);
    assert_eq!(results.len(), count);
    assert_eq!(results["o_abs"], [0.5, 1.25, 2.0, 0.0, 7.75]);
    assert_eq!(results["o_copy"], x);
    let logarithm = f64::from(2.0f32.ln());
    assert!(
        (results["o_log"][2] - logarithm).abs() < 1e-6,
        "{:?}",
        results["o_log"]
    );
    assert!(results["o_log"][1].is_nan() && results["o_log"][3] == f64::NEG_INFINITY);
}

#[test]
fn line_04_reductions() {
    let text = "input x: i32[i=2, j=3, k=2]\noutput s = sum[j](x)\noutput p = prod[i, k](x)\noutput most = max[i, j, k](x)\noutput least = min[k, i](x)\noutput all = sum[i, j, k](x)\n";
    let results = run(text, &[], &[("x", &counting(1, 12))]);
    assert_eq!(results["s"], [9.0, 12.0, 27.0, 30.0]);
    assert_eq!(results["p"], [112.0, 1080.0, 3960.0]);
    assert_eq!(results["most"], [12.0]);
    assert_eq!(results["least"], [1.0, 3.0, 5.0]);
    assert_eq!(results["all"], [78.0]);
}

#[test]
fn line_05_padding() {
    // Asymmetric, with the value that the program names.
    let text =
        "input x: f32[i=3]\ndim p = 6\npadded[p] = x[p - 1] else -7\noutput y = padded * 2\n";
    let results = run(text, &[], &[("x", &[1.0, 2.0, 3.0])]);
    assert_eq!(results["y"], [-14.0, 2.0, 4.0, 6.0, -14.0, -14.0]);

    // Ten pads stacked, each with another value.
    let mut text = String::from("input x: f32[i0=2]\np0[i0] = x[i0]\n");
    for at in 1..=10 {
        let before = at - 1;
        text += &format!(
            "dim i{at} = {}\np{at}[i{at}] = p{before}[i{at} - 1] else {at}\n",
            2 + 2 * at
        );
    }
    text += "output y = p10\n";
    let results = run(&text, &[], &[("x", &[100.0, 200.0])]);
    let mut expected: Vec<f64> = (1..=10).rev().map(f64::from).collect();
    expected.extend([100.0, 200.0]);
    expected.extend((1..=10).map(f64::from));
    assert_eq!(results["y"], expected);

    // Several dimensions, and a pointwise operation directly on the view.
    let text = "input x: f32[i=1, j=2]\ndim p = 2\ndim q = 4\noutput y = exp(x[p - 1, q - 2] else 0) + 1\n";
    let results = run(text, &[], &[("x", &[0.0, 0.0])]);
    assert_eq!(results["y"], [2.0; 8]);
}

#[test]
fn line_06_concatenation() {
    let text = "input a: i32[x=2]\ninput b: i32[y=3]\noutput z = concat[z: x, y](a, b)\n";
    let results = run(text, &[], &[("a", &[1.0, 2.0]), ("b", &[3.0, 4.0, 5.0])]);
    assert_eq!(results["z"], [1.0, 2.0, 3.0, 4.0, 5.0]);

    let text = "input a: i32[x=1, c=2]\ninput b: i32[y=2, c]\noutput z = concat[z: x, y](a, b)\n";
    let results = run(
        text,
        &[],
        &[("a", &[1.0, 2.0]), ("b", &[3.0, 4.0, 5.0, 6.0])],
    );
    assert_eq!(results["z"], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);

    let text = "input a: i32[c=2, x=1]\ninput b: i32[c, y=2]\noutput z = concat[z: x, y](a, b)\n";
    let results = run(
        text,
        &[],
        &[("a", &[1.0, 2.0]), ("b", &[3.0, 4.0, 5.0, 6.0])],
    );
    assert_eq!(results["z"], [1.0, 3.0, 4.0, 2.0, 5.0, 6.0]);
}

#[test]
fn line_07_convolution_as_views() {
    // One dimension, inside.
    let text = "input x: f32[i=5]\ninput w: f32[k=3]\noutput y = sum[k](w * x[o + k])\n";
    let x = counting(1, 5);
    let results = run(text, &[], &[("x", &x), ("w", &[1.0, 0.0, -1.0])]);
    assert_eq!(results["y"], [-2.0, -2.0, -2.0]);

    // Stride, dilation and padding.
    let text = "input x: f32[i=5]\ninput w: f32[k=2]\ndim o = 3\noutput y = sum[k](w * (x[2*o + 2*k - 1] else 0))\n";
    let results = run(text, &[], &[("x", &x), ("w", &[1.0, 10.0])]);
    assert_eq!(results["y"], [20.0, 42.0, 4.0]);

    // Two dimensions, channels.
    let text = "input x: f32[c=2, h=3, w=3]\ninput f: f32[o=1, c, a=2, b=2]\noutput y = sum[c, a, b](f * x[c, p + a, q + b])\n";
    let results = run(text, &[], &[("x", &counting(0, 18)), ("f", &[1.0; 8])]);
    assert_eq!(results["y"], [52.0, 60.0, 76.0, 84.0]);

    // Depthwise: each channel with a filter of its own.
    let text = "input x: f32[c=2, h=3]\ninput f: f32[c, a=2]\noutput y = sum[a](f * x[c, p + a])\n";
    let results = run(
        text,
        &[],
        &[("x", &counting(1, 6)), ("f", &[1.0, 1.0, 1.0, -1.0])],
    );
    assert_eq!(results["y"], [3.0, 5.0, -1.0, -1.0]);

    // Grouped: two groups of two channels.
    let text = "input x: f32[c=4, h=3]\ninput f: f32[g=2, o=1, d=2, a=2]\noutput y = sum[d, a](f * x[2*g + d, p + a])\n";
    let results = run(text, &[], &[("x", &counting(1, 12)), ("f", &[1.0; 8])]);
    let mut shaped = results["y"].clone();
    shaped.sort_by(f64::total_cmp);
    assert_eq!(shaped, [12.0, 16.0, 36.0, 40.0]);
}

#[test]
fn line_08_pooling() {
    let text = "input x: f32[h=4, w=4]\ndim a = 2\ndim b = 2\nwindow[p, q, a, b] = x[2*p + a, 2*q + b]\noutput most = max[a, b](window)\noutput mean = mean[a, b](window)\n";
    let results = run(text, &[], &[("x", &counting(0, 16))]);
    assert_eq!(results["most"], [5.0, 7.0, 13.0, 15.0]);
    assert_eq!(results["mean"], [2.5, 4.5, 10.5, 12.5]);
}

#[test]
fn line_09_views_of_views() {
    let text = "input x: i32[i=2, j=3]\nturned[j, i] = x[i, j]\noutput t = turned\ndim f = 6\noutput flat = x[f // 3, f % 3]\noutput slice = x[i, 1]\noutput flip = x[i, 2 - j]\ninput y: i32[n=6]\ndim a = 3\ndim b = 2\noutput split = y[2*a + b]\n";
    let results = run(text, &[], &[("x", &counting(1, 6)), ("y", &counting(1, 6))]);
    assert_eq!(results["t"], [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    assert_eq!(results["flat"], counting(1, 6));
    assert_eq!(results["slice"], [2.0, 5.0]);
    assert_eq!(results["flip"], [3.0, 2.0, 1.0, 6.0, 5.0, 4.0]);
    assert_eq!(results["split"], counting(1, 6));

    // A slice of a flip of a transpose.
    let text = "input x: i32[i=2, j=3]\nturned[j, i] = x[i, j]\nflipped[j, i] = turned[2 - j, i]\ndim s = 2\noutput y = flipped[s + 1, i]\n";
    let results = run(text, &[], &[("x", &counting(1, 6))]);
    assert_eq!(results["y"], [2.0, 5.0, 1.0, 4.0]);
}

#[test]
fn line_10_sizes_are_inferred_both_ways() {
    let size = |text: &str, dim: &str| {
        let graph = program(text);
        let dim = graph
            .find_dim(dim)
            .unwrap_or_else(|| panic!("there is no dimension `{dim}`"));
        graph.dim(dim).size.as_const()
    };
    let text = "input x: f32[i]\ninput w: f32[k=3]\ndim o = 8\noutput y = sum[k](w * x[o + k])\n";
    assert_eq!(size(text, "i"), Some(10));
    let text = "input x: f32[i]\ninput w: f32[k=3]\ndim o = 8\noutput y = sum[k](w * x[2*o + k])\n";
    assert_eq!(size(text, "i"), Some(17));
    let text = "input x: f32[i=10]\ninput w: f32[k=3]\noutput y = sum[k](w * x[o + k])\n";
    assert_eq!(size(text, "o"), Some(8));
    let text = "input x: f32[i=17]\ninput w: f32[k=3]\noutput y = sum[k](w * x[2*o + k])\n";
    assert_eq!(size(text, "o"), Some(8));
}

#[test]
fn line_11_contradicting_sizes() {
    let message = refusal("input a: f32[i=3]\ninput b: f32[i=4]\noutput c = a + b\n");
    for part in ["`i`", "3", "4", "program.lw:2:14", "program.lw:3:14"] {
        assert!(message.contains(part), "`{part}` is missing in\n{message}");
    }
}

#[test]
fn line_12_chained_convolutions() {
    let text = "input x: f32[i=7]\ninput v: f32[k=3]\ninput w: f32[l=2]\nfirst = sum[k](v * x[a + k])\noutput y = sum[l](w * first[b + l])\n";
    let results = run(
        text,
        &[],
        &[
            ("x", &counting(1, 7)),
            ("v", &[1.0, 1.0, 1.0]),
            ("w", &[-1.0, 1.0]),
        ],
    );
    // Sums of three are 6, 9, 12, ...; their differences are 3.
    assert_eq!(results["y"], [3.0; 4]);
}

#[test]
fn line_20_annotations() {
    let graph = program(
        "input A: f32[i=13, k=7]\ninput B: f32[k, j=19]\nC = sum[k](A * B)\noutput D = C + 1\n",
    );
    let (a, b) = (counting(-40, 13 * 7), counting(-60, 7 * 19));
    let inputs = arrays(&graph, &[], &[("A", &a), ("B", &b)]);
    let binding = graph.bind(&[]).expect("it has no sizes");
    let expected = evaluate(&graph, &binding, &inputs).expect("it can be evaluated");
    let stored = graph.clone().with_stores();
    let schedules = [
        "C: i, j, k\n%D: i, j",
        "C: i parallel, j, k\n%D: i parallel, j",
        "C: i, j/8, k, j vectorize\n%D: i, j/8, j vectorize",
        "C: i/4 parallel, i, j/16, k, j/4 unroll, j vectorize\n%D: j parallel, i vectorize",
        "C: i/5, k/3 unroll, i unroll, j/6 vectorize, k, j vectorize\n%D: i unroll, j unroll",
        "C: i unroll, k vectorize, j\n%D: j/8 parallel, i, j",
    ];
    let result = stored.node_name(stored.outputs()[0].node);
    let result = match stored.node(stored.outputs()[0].node).name.as_str() {
        "" => format!("%{}", &result[1..]),
        name => name.to_owned(),
    };
    for text in schedules {
        let text = text.replace("%D", &result);
        let source = Source::new("schedule", format!("loopwright schedule 1\n{text}\n"));
        let schedule = parse_schedule(&source, &stored);
        let schedule = schedule.unwrap_or_else(|error| panic!("{}", error.render(&source)));
        for backend in backends() {
            let compiler = Compiler::new(backend.clone(), strict());
            let compiled = compiler.compile(&graph, Some(&schedule));
            let compiled = compiled.unwrap_or_else(|error| panic!("{error}"));
            let mut bound = compiled.bind(&[]).unwrap_or_else(|error| panic!("{error}"));
            for (node, array) in &inputs {
                let given = bound.give(&graph.node_name(*node), array.clone());
                given.unwrap_or_else(|error| panic!("{error}"));
            }
            bound.run().unwrap_or_else(|error| panic!("{error}"));
            let got = bound.array("D").expect("there is an output D");
            assert_eq!(
                got.bytes(),
                expected[0].1.bytes(),
                "{} with\n{text}",
                backend.name()
            );
        }
    }
}
