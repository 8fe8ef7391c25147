//! The schedules that contractions and what is around them get by themselves.

use loopwright_graph::parse;
use loopwright_looptree::{Order, Target, schedule};
use loopwright_text::Source;

const MACHINE: Target = Target {
    vector_bytes: 64,
    vector_registers: 32,
    l1_bytes: 48 << 10,
    l2_bytes: 1280 << 10,
    ..Target::SCALAR
};

/// The schedule's lines that are not edits.
fn steps(program: &str) -> Vec<String> {
    let program = format!("loopwright program 1\n{program}");
    let graph = parse(&Source::new("program.lw", program.as_str())).expect("the program is right");
    let explained =
        schedule(graph.with_stores(), &MACHINE, Order::Free).expect("it has a schedule");
    let text = explained.plan.to_string();
    let lines = text.lines().filter(|line| line.contains(": "));
    lines.map(str::to_owned).collect()
}

#[test]
fn a_tile_has_as_many_vectors_and_rows_as_leave_the_smallest_rest() {
    let product = |m: i64, n: i64| {
        steps(&format!(
            "input A: f32[i={m}, k=64]\ninput B: f32[k, j={n}]\noutput C = sum[k](A * B)\n"
        ))
    };
    assert_eq!(
        product(128, 128),
        ["C: j/64, i/6, k, i unroll, j/16 unroll, j vectorize"]
    );
    // All of a row in one tile needs no loop around it.
    assert_eq!(
        product(96, 64),
        ["C: i/6, k, i unroll, j/16 unroll, j vectorize"]
    );
    assert_eq!(
        product(96, 48),
        ["C: i/8, k, i unroll, j/16 unroll, j vectorize"]
    );
}

#[test]
fn what_follows_a_tile_takes_it_from_registers() {
    let program = "input A: f32[i=96, k=64]\ninput B: f32[k, j=128]\ninput bias: f32[j]\n\
                   sums = sum[k](A * B)\noutput C = max(sums + bias, 0)\n";
    assert_eq!(
        steps(program),
        [
            "sums: j/64, i/6, k, i unroll, j/16 unroll, j vectorize",
            "C: j/64, i/6, i unroll, j/16 unroll, j vectorize",
        ]
    );
}

#[test]
fn a_deep_product_is_folded_in_blocks_of_a_panel() {
    let program = "input A: f32[i=384, k=8192]\ninput B: f32[k, j=256]\noutput C = sum[k](A * B)\n";
    assert_eq!(
        steps(program),
        [
            "panel1: layout=[j/64, k, j], j/64, k/2048, k, j/16, j vectorize",
            "C: j/64, k/2048, i/6, k, i unroll, j/16 unroll, j vectorize",
        ]
    );
}

#[test]
fn vectors_of_a_convolution_lie_along_the_dimension_that_fills_them() {
    let program = "dim y = 56, x = 56\ninput W: f32[o=64, c=64, ky=3, kx=3]\n\
                   input X: f32[c, iy=58, ix=58]\n\
                   Y[o, y, x] = sum[c, ky, kx](W * X[c, y + ky, x + kx])\noutput Y\n";
    let found = steps(program);
    assert!(
        found[1].contains("y, x/6, c, ky, kx, x unroll, o/16 unroll, o vectorize"),
        "{found:#?}"
    );
    // Twice as wide, the rows fill vectors.
    let found = steps(
        &program
            .replace("x = 56", "x = 64")
            .replace("ix=58", "ix=66"),
    );
    assert!(found[0].ends_with("x/16 unroll, x vectorize"), "{found:#?}");
}

#[test]
fn attention_holds_some_rows_of_its_scores() {
    let program = "input query: f32[head=8, q=512, d=64]\ninput key: f32[head, k=512, d]\n\
                   input value: f32[head, k, e=64]\nscores = sum[d](query * key) / 8\n\
                   weights = exp(scores - max[k](scores))\nshares = weights / sum[k](weights)\n\
                   output Y = sum[k](shares * value)\n";
    let found = steps(program);
    let (panel, rest) = found.split_first().expect("there are steps");
    assert!(panel.starts_with("panel1: "), "{found:#?}");
    for line in rest {
        assert!(line.contains(": head, q/24, "), "{found:#?}");
    }
}
