//! Programs that log what they store.

mod both;

use both::{bound, compilers, graph, output};
use loopwright_compile::{LogRecord, Program, StoreLog};
use loopwright_looptree::parse_schedule;
use loopwright_lower::KernelParam;
use loopwright_text::Source;
use std::sync::Arc;

fn logged(program: &Arc<Program>, sizes: &[(&str, i64)]) -> StoreLog {
    assert_eq!(program.params().last(), Some(&KernelParam::Log));
    let mut bound = bound(program, sizes);
    bound.run().expect("the program runs");
    let first = bound.log().expect("the program logs");
    bound.run().expect("the program runs");
    let second = bound.log().expect("the program logs");
    assert_eq!(
        first.records.len(),
        second.records.len(),
        "a run begins a new log"
    );
    first
}

/// Buffer, index, old and new value of each record, sorted.
fn plain(program: &Program, log: &StoreLog) -> Vec<(String, i64, u64, u64)> {
    let sites = program.log_sites();
    let plain = |record: &LogRecord| {
        let buffer = sites[record.site].buffer.clone();
        (buffer, record.index, record.old.bits(), record.new.bits())
    };
    let mut records: Vec<_> = log.records.iter().map(plain).collect();
    records.sort();
    records
}

#[test]
fn records_say_what_was_stored_and_what_was_there() {
    let graph = graph("size N\ninput a: f32[i=N]\noutput y = a * 2 + 1\n");
    for compiler in compilers() {
        let compiler = compiler.logging();
        let program = compiler.compile(&graph, None).expect("it compiles");
        assert!(program.log_sites().iter().all(|site| site.buffer == "y"));
        assert!(
            program.log_sites()[0].place.contains("store %y["),
            "{:?}",
            program.log_sites()
        );
        let mut bound = bound(&program, &[("N", 21)]);
        let values = output(&mut bound, "y");
        let log = bound.log().expect("the program logs");
        assert_eq!((log.records.len(), log.missed), (21, 0));
        let expected: Vec<_> = (0..21)
            .map(|at| {
                let bits = (values[at as usize] as f32).to_bits();
                ("y".to_owned(), at, 0, u64::from(bits))
            })
            .collect();
        assert_eq!(
            plain(&program, &log),
            expected,
            "{}",
            compiler.backend().name()
        );

        // The second run finds what the first one left.
        bound.run().expect("the program runs");
        let again = bound.log().expect("the program logs");
        assert!(again.records.iter().all(|record| record.old == record.new));
    }
}

#[test]
fn both_backends_log_the_same() {
    let graph = graph(
        "size N\ninput a: f32[i=N, k=N]\ninput b: f32[k, j=N]\n\
         p = sum[k](a * b)\noutput y = sum[j](p)\noutput z = p > 0\n",
    );
    let stores = graph.clone().with_stores();
    let source = Source::new(
        "test.sched",
        "loopwright schedule 1\np: i, j, k\ny: i parallel, j\nz: i parallel, j/4, j vectorize\n",
    );
    let parallel = match parse_schedule(&source, &stores) {
        Ok(schedule) => schedule,
        Err(error) => panic!("{}", error.render(&source)),
    };
    let [interp, cc] = compilers().map(|compiler| compiler.logging());
    let default = cc.compile(&graph, None).expect("it compiles");
    for schedule in [default.schedule(), &parallel] {
        let [interpreted, compiled] =
            [&interp, &cc].map(|compiler| compiler.compile(&graph, Some(schedule)));
        let interpreted = interpreted.expect("it compiles");
        let compiled = compiled.expect("it compiles");
        assert_eq!(interpreted.log_sites(), compiled.log_sites());
        let sizes = [("N", 19)];
        let [left, right] = [&interpreted, &compiled].map(|program| logged(program, &sizes));
        assert_eq!(left.missed, 0);
        assert_eq!(plain(&interpreted, &left), plain(&compiled, &right));
    }
}

#[test]
fn a_log_that_is_full_counts_what_it_missed() {
    let graph = graph("size N\ninput a: f32[i=N]\noutput y = a * 2\n");
    for compiler in compilers() {
        let program = compiler
            .logging()
            .compile(&graph, None)
            .expect("it compiles");
        let log = logged(&program, &[("N", 70_000)]);
        assert_eq!(log.records.len(), 1 << 16);
        assert_eq!(log.missed, 70_000 - (1 << 16));
    }
}

#[test]
fn logging_is_another_program() {
    let graph = graph("input a: f32[i=3]\noutput y = a * 2\n");
    let [interp, _] = compilers();
    let plain = interp.compile(&graph, None).expect("it compiles");
    assert!(plain.log_sites().is_empty());
    assert!(bound(&plain, &[]).log().is_none());
    let interp = interp.logging();
    let logging = interp.compile(&graph, None).expect("it compiles");
    assert_eq!(interp.compile_count(), 2);
    assert_eq!(logging.params().len(), plain.params().len() + 1);
}
