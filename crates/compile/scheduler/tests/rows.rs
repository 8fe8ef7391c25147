//! The schedules that rows of a matrix get by themselves: reductions along them, masks of indices, and pieces put together.

use loopwright_graph::parse;
use loopwright_looptree::Target;
use loopwright_scheduler::{Order, schedule};
use loopwright_text::Source;

const MACHINE: Target = Target {
    vector_bytes: 64,
    vector_registers: 32,
    ..Target::SCALAR
};

/// The schedule's lines.
fn lines(program: &str) -> Vec<String> {
    let program = format!("loopwright program 1\n{program}");
    let graph = parse(&Source::new("program.lw", program.as_str())).expect("the program is right");
    let explained =
        schedule(graph.with_stores(), &MACHINE, Order::Free).expect("it has a schedule");
    let text = explained.plan.to_string();
    text.lines().map(str::to_owned).collect()
}

/// A mask of indices is no array: it is computed in the lanes of what it masks, in the maximum and in what follows.
#[test]
fn a_mask_of_indices_is_computed_in_lanes() {
    let found = lines(
        "input X: f32[h=12, s=128, t=128]\n\
         dim s = 128, t = 128\n\
         scores = select(t <= s, X * 0.125, -inf)\n\
         weights = exp(scores - max[t](scores))\n\
         output Y = weights / sum[t](weights)\n",
    );
    let text = found.join("\n");
    let of = |name: &str| {
        let start = format!("{name}: ");
        let line = found.iter().find(|line| line.starts_with(&start));
        line.unwrap_or_else(|| panic!("`{name}` is a step of\n{text}"))
            .clone()
    };
    assert!(of("weights").ends_with("t vectorize"), "{text}");
    assert!(of("Y").ends_with("t vectorize"), "{text}");
    assert!(text.contains("stage"), "the maximum is in lanes:\n{text}");
}

/// Pieces that overlap are read from a padded array; pieces that lie side by side are not.
#[test]
fn arrays_that_are_put_together_are_not_padded() {
    let program = "input A: f32[i=64, a=32]\ninput B: f32[i, a]\ninput C: f32[i, a]\n\
                   all = concat[n: a](A, B, C)\noutput Y = sum[i](all)\n";
    let found = lines(program).join("\n");
    assert!(!found.contains("pad"), "{found}");
}
