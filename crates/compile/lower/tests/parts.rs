//! Programs in several kernels.

use loopwright_graph::{Graph, parse};
use loopwright_kernel::{Access, FunctionId, Inst, Stmt};
use loopwright_looptree::{Plan, parse_schedule};
use loopwright_lower::{KernelParam, LowerError, Lowered, lower, lower_parts};
use loopwright_text::Source;
use std::ops::Range;

const SOFTMAX: &str = "
loopwright program 1
size N
input x: f32[i=8]
input unused: f32[i]
const w: f32[i] = [1, 2, 3, 4, 5, 6, 7, 8]
e = exp(x * w)
total = sum[i](e)
output y = e / total
output n = size(N)
";

const STEPS: &str = "e: i\ntotal: i\ny: share=0, i\nn:";

fn graph(text: &str) -> Graph {
    let source = Source::new("test.lw", text);
    let graph = parse(&source).unwrap_or_else(|error| panic!("{}", error.render(&source)));
    graph.with_stores()
}

fn program(text: &str, steps: &str) -> Plan {
    let graph = graph(text);
    let source = Source::new("test", format!("loopwright schedule 1\n{steps}\n"));
    let schedule = parse_schedule(&source, &graph);
    let schedule = schedule.unwrap_or_else(|error| panic!("{}", error.render(&source)));
    Plan::new(graph, schedule).expect("the schedule is legal")
}

fn parts(parts: &[Range<usize>]) -> Result<Vec<Lowered>, LowerError> {
    lower_parts(&program(SOFTMAX, STEPS), "p", parts)
}

/// What a part takes, by the names of its kernel's parameters.
fn params(part: &Lowered) -> Vec<(String, Access)> {
    let kernel = &part.module.functions[FunctionId(0)];
    let params = kernel.params.iter();
    params
        .map(|param| {
            let name = kernel.values[param.value].name.clone();
            (name, param.access)
        })
        .collect()
}

fn private_arrays(part: &Lowered) -> Vec<String> {
    let kernel = &part.module.functions[FunctionId(0)];
    let allocs = kernel.body.iter().filter_map(|stmt| match stmt {
        Stmt::Let(value, Inst::Alloc { .. }) => Some(kernel.values[*value].name.clone()),
        _ => None,
    });
    allocs.collect()
}

#[test]
fn one_part_is_the_whole_program() {
    let whole = lower(&program(SOFTMAX, STEPS), "p").unwrap();
    assert_eq!(whole.module.functions[FunctionId(0)].name, "p");
    assert_eq!(whole.params.len(), 6, "what is unused is a parameter");
    assert_eq!(parts(std::slice::from_ref(&(0..3))), Ok(vec![whole]));
}

#[test]
fn each_part_has_the_parameters_it_uses() {
    let found = parts(&[0..1, 1..2, 2..3]).unwrap();
    let names: Vec<&str> = found
        .iter()
        .map(|part| part.module.functions[FunctionId(0)].name.as_str())
        .collect();
    assert_eq!(names, ["p_0", "p_1", "p_2"]);
    let expected = |params: &[(&str, Access)]| -> Vec<(String, Access)> {
        let params = params.iter();
        params.map(|(name, a)| ((*name).to_owned(), *a)).collect()
    };
    let (read, both) = (Access::Read, Access::ReadWrite);
    assert_eq!(
        params(&found[0]),
        expected(&[
            ("x", read),
            ("w", read),
            ("e_memory", both),
            ("total_memory", both)
        ])
    );
    assert_eq!(
        params(&found[1]),
        expected(&[("y", both), ("e_memory", read), ("total_memory", read)])
    );
    assert_eq!(params(&found[2]), expected(&[("n", both), ("N", read)]));
    let scratch: Vec<&str> = found[2].scratch.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(scratch, ["e_memory", "total_memory"]);
    assert_eq!(
        found[1].params[1..],
        [KernelParam::Scratch(0), KernelParam::Scratch(1)]
    );
}

#[test]
fn what_a_part_keeps_to_itself_stays_private() {
    let found = parts(&[0..2, 2..3]).unwrap();
    assert!(found[0].scratch.is_empty(), "{:?}", found[0].scratch);
    assert_eq!(private_arrays(&found[0]), ["e", "total", "total_running"]);
    assert!(private_arrays(&found[1]).is_empty(), "{}", found[1].module);
}

#[test]
fn states_are_written_in_one_part_and_read_in_another() {
    let text = "loopwright program 1\nstate a: f32[i=8]\noutput old = a * 2\nupdate a = a + 1\n";
    let graph = graph(text);
    let store = graph.node_name(graph.updates()[0].value);
    let plan = program(text, &format!("old: i\n{store}: share=0, i"));
    let found = lower_parts(&plan, "p", &[0..1, 1..2]).unwrap();
    let access = |part: &Lowered| params(part).into_iter().find(|(name, _)| name == "a");
    assert_eq!(access(&found[0]), Some(("a".to_owned(), Access::Read)));
    assert_eq!(access(&found[1]), Some(("a".to_owned(), Access::ReadWrite)));
    assert!(found[0].scratch.is_empty());
}

#[test]
fn an_empty_part_is_an_empty_kernel() {
    let found = parts(&[0..0, 0..3]).unwrap();
    assert!(found[0].params.is_empty() && found[0].module.functions[FunctionId(0)].body.is_empty());
    assert_eq!(params(&found[1]).len(), 5, "all but what is unused");
}

#[test]
#[expect(
    clippy::reversed_empty_ranges,
    clippy::single_range_in_vec_init,
    reason = "these are lists of ranges, wrong ones"
)]
fn parts_that_are_not_the_program_are_refused() {
    for wrong in [
        &[][..],
        &[0..2],
        &[1..3],
        &[0..4],
        &[0..1, 2..3],
        &[0..2, 1..3],
        &[0..3, 3..2, 2..3],
    ] {
        let error = parts(wrong).unwrap_err().to_string();
        let expected = format!(
            "the parts {wrong:?} do not follow one another over all of the program's 3 root subtrees"
        );
        assert_eq!(error, expected);
    }
}
