//! Annotations that cannot be carried out are said, not passed over.

use loopwright_graph::parse;
use loopwright_looptree::{Plan, parse_schedule};
use loopwright_lower::lower;
use loopwright_text::Source;

fn notes(schedule: &str) -> Vec<String> {
    let program =
        "loopwright program 1\nsize N\ninput x: f32[i=N, j=100]\ns = sum[j](x)\noutput y = x / s\n";
    let graph = parse(&Source::new("p", program)).unwrap().with_stores();
    let text = format!("loopwright schedule 1\n{schedule}\n");
    let schedule = parse_schedule(&Source::new("s", text), &graph).unwrap();
    lower(&Plan::new(graph, schedule).unwrap(), "p")
        .unwrap()
        .notes
}

#[test]
fn what_is_carried_out_needs_no_note() {
    let plain = "s: i, j\ny: i, j";
    assert_eq!(notes(plain), [""; 0]);
    // The rounds of a tail are not known; those of the full blocks are.
    let split = "s: i/4 parallel, i unroll, j\ny: i/4 parallel, i, j/16, j vectorize";
    assert_eq!(notes(split), [""; 0]);
}

#[test]
fn what_is_not_carried_out_says_why() {
    for (schedule, expected) in [
        (
            "s: i unroll, j\ny: i, j",
            "the loop over `i` around `s` is not unrolled: its number of rounds is not known before the program runs; split it and annotate the inner loop",
        ),
        (
            "s: i, j\ny: i, j unroll",
            "the loop over `j` around `y` is not unrolled: it has more than 64 rounds; split it and unroll the inner loop",
        ),
        (
            "s: i, j\ny: i, j vectorize",
            "the loop over `j` around `y` is not vectorized: it has more than 64 rounds; split it and vectorize the inner loop",
        ),
        (
            "s: i, j/10, j vectorize\ny: i, j",
            "the loop over `j` around `s` is not vectorized: each round needs the one before",
        ),
        (
            "s: i, j\ny: i, j/10 vectorize, j",
            "the loop over `j` around `y` is not vectorized: its rounds are blocks, not elements; vectorize the loop inside it",
        ),
    ] {
        assert_eq!(notes(schedule), [expected], "{schedule}");
    }
}
