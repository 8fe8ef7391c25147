//! Inlining many readers of one node stays affordable.

use loopwright_graph::parse;
use loopwright_kernel::FunctionId;
use loopwright_looptree::{Plan, parse_schedule};
use loopwright_lower::lower;
use loopwright_text::Source;
use std::fmt::Write as _;

#[test]
fn an_inlined_chain_is_computed_once_at_each_step() {
    // Sixty doublings: computed anew for every reader, the last would need 2^60 additions.
    let mut program = "loopwright program 1\ninput x0: f32[i=8]\n".to_owned();
    for step in 1..=60 {
        let before = step - 1;
        let _ = writeln!(program, "x{step} = x{before} + (x{before}[i] else 0)");
    }
    program += "output x60\n";
    let source = Source::new("chain.lw", program);
    let graph = parse(&source).unwrap_or_else(|error| panic!("{}", error.render(&source)));
    let graph = graph.with_stores();
    let schedule = Source::new("chain.sched", "loopwright schedule 1\nx60: i\n");
    let schedule = parse_schedule(&schedule, &graph).unwrap();
    let plan = Plan::new(graph, schedule).unwrap();
    let lowered = lower(&plan, "chain").unwrap();
    assert!(lowered.module.functions[FunctionId(0)].values.len() < 1000);
}
