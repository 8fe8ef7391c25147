//! Several programs compiled at once.

mod both;

use both::{bound, compilers, graph, output};
use loopwright_compile::{BatchEntry, KERNEL, ProgramError};
use loopwright_scheduler::default_schedule;
use std::sync::Arc;

const PROGRAMS: [(&str, &str); 3] = [
    (
        "product",
        "size N\ninput a: f32[i=N, k=N]\ninput b: f32[k, j=N]\noutput y = sum[k](a * b)\n",
    ),
    ("scale", "size N\ninput a: f32[i=N]\noutput y = a * 2 + 1\n"),
    (
        "total",
        "size N\ninput a: f32[i=N, j=N]\noutput y = sum[i](a)\n",
    ),
];

#[test]
fn a_batch_gives_what_its_programs_give_one_by_one() {
    let graphs = PROGRAMS.map(|(name, text)| (name, graph(text)));
    let entries: Vec<BatchEntry<'_>> = graphs
        .iter()
        .map(|(name, graph)| BatchEntry {
            name,
            graph,
            schedule: None,
        })
        .collect();
    for compiler in compilers() {
        let alone: Vec<Vec<f64>> = graphs
            .iter()
            .map(|(_, graph)| {
                let program = compiler.compile(graph, None).expect("it compiles");
                assert_eq!(program.kernel(), KERNEL);
                output(&mut bound(&program, &[("N", 5)]), "y")
            })
            .collect();
        assert_eq!(compiler.compile_count(), 3, "each program on its own");

        let batch = compiler.compile_batch(&entries).expect("it compiles");
        assert_eq!(compiler.compile_count(), 4, "one more for the batch");
        for (at, program) in batch.iter().enumerate() {
            assert_eq!(program.kernel(), entries[at].name);
            assert!(
                Arc::ptr_eq(program.executable(), batch[0].executable()),
                "the code of a batch is one piece"
            );
            let together = output(&mut bound(program, &[("N", 5)]), "y");
            assert_eq!(together, alone[at], "{}", entries[at].name);
        }

        // What was compiled before is not compiled again, in this company or another.
        let again = compiler.compile_batch(&entries[1..]).expect("it compiles");
        assert_eq!(compiler.compile_count(), 4);
        assert!(Arc::ptr_eq(&again[0], &batch[1]) && Arc::ptr_eq(&again[1], &batch[2]));
        let renamed = BatchEntry {
            name: "another",
            ..entries[0]
        };
        let mixed = compiler
            .compile_batch(&[renamed, entries[1]])
            .expect("it compiles");
        assert_eq!(compiler.compile_count(), 5);
        assert!(Arc::ptr_eq(&mixed[1], &batch[1]));
        assert_eq!(output(&mut bound(&mixed[0], &[("N", 5)]), "y"), alone[0]);
    }
}

#[test]
fn names_that_no_language_allows_are_fine_and_the_same_name_twice_is_not() {
    let scale = graph(PROGRAMS[1].1);
    let entry = |name| BatchEntry {
        name,
        graph: &scale,
        schedule: None,
    };
    for compiler in compilers() {
        let programs = compiler
            .compile_batch(&[entry("a b"), entry("a_b"), entry("for"), entry("2·k")])
            .expect("it compiles");
        for program in &programs {
            let values = output(&mut bound(program, &[("N", 2)]), "y");
            assert_eq!(values, [-9.0, 5.0], "{}", program.kernel());
        }
        let error = compiler.compile_batch(&[entry("x"), entry("y"), entry("x")]);
        let error = error.map(|_| ()).expect_err("two are called x");
        assert!(matches!(&error, ProgramError::SameName { name } if name == "x"));
        let none = compiler.compile_batch(&[]).expect("nothing to do");
        assert!(none.is_empty());
    }
}

#[test]
fn a_program_without_a_schedule_is_rewritten_and_says_so() {
    let graph = graph(
        "size N\ninput tokens: i64[t=N]\ninput table: f32[v=50, d=3]\n\
         output y = sum[v](select(v == tokens, table, 0))\n",
    );
    for compiler in compilers() {
        let rewritten = compiler.compile(&graph, None).expect("it compiles");
        assert_eq!(rewritten.notes().len(), 1, "{:?}", rewritten.notes());
        let scheduled =
            default_schedule(&graph.clone().with_stores(), &compiler.backend().target());
        let scheduled = scheduled.expect("there is a default");
        let plain = compiler
            .compile(&graph, Some(&scheduled))
            .expect("it compiles");
        assert!(plain.notes().is_empty(), "{:?}", plain.notes());
        let [rewritten, plain] =
            [rewritten, plain].map(|program| output(&mut bound(&program, &[("N", 9)]), "y"));
        assert_eq!(rewritten, plain, "{}", compiler.backend().name());
    }
}
