//! Schedules that are set for programs.

mod both;

use both::{bound, compilers, graph, output};
use loopwright_looptree::{parse_schedule, print_schedule};
use loopwright_text::Source;

const PRODUCT: &str =
    "size N\ninput a: f32[i=N, k=N]\ninput b: f32[k, j=N]\noutput y = sum[k](a * b)\n";
const OTHER: &str =
    "size N\ninput a: f32[i=N, k=N]\ninput b: f32[k, j=N]\noutput y = max[k](a * b)\n";
const SCHEDULE: &str = "loopwright schedule 1\ncopy packed = b for %2\npacked: layout=[j, k], j/4, k, j\ny: j/4, i, k, j\n";

#[test]
fn a_schedule_that_is_set_applies_to_later_identical_programs() {
    let (program, other) = (graph(PRODUCT), graph(OTHER));
    let stored = program.clone().with_stores();
    let source = Source::new("set.sched", SCHEDULE);
    let schedule = parse_schedule(&source, &stored).expect("it fits");
    for compiler in compilers() {
        let default = compiler.compile(&program, None).expect("it compiles");
        let expected = output(&mut bound(&default, &[("N", 7)]), "y");
        compiler
            .set_schedule(&program, Some(schedule.clone()))
            .expect("it fits");
        // The same text read again is the same program.
        let set = compiler
            .compile(&graph(PRODUCT), None)
            .expect("it compiles");
        let text = print_schedule(set.graph(), set.schedule());
        assert_eq!(text, SCHEDULE);
        assert_eq!(output(&mut bound(&set, &[("N", 7)]), "y"), expected);
        assert_eq!(compiler.compile_count(), 2, "another schedule is compiled");
        compiler.compile(&program, None).expect("it compiles");
        assert_eq!(compiler.compile_count(), 2, "and only once");
        // Others keep theirs.
        let untouched = compiler.compile(&other, None).expect("it compiles");
        assert!(
            untouched.schedule().edits.is_empty() || untouched.graph().find("packed").is_none()
        );
        compiler
            .set_schedule(&program, None)
            .expect("there is nothing to refuse");
        let again = compiler.compile(&program, None).expect("it compiles");
        assert_eq!(again.schedule(), default.schedule());
    }
}

#[test]
fn a_schedule_of_another_program_is_not_set() {
    let program = graph(PRODUCT);
    let stored = program.clone().with_stores();
    let source = Source::new("set.sched", "loopwright schedule 1\ny: i, j\n");
    let schedule = parse_schedule(&source, &stored).expect("its words are known");
    for compiler in compilers() {
        let refused = compiler.set_schedule(&program, Some(schedule.clone()));
        let message = refused.expect_err("a loop is missing").to_string();
        assert!(message.contains("needs a last loop over `k`"), "{message}");
    }
}
