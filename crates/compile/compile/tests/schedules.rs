//! Schedules that are set for programs.

mod both;

use both::{bound, compilers, graph, output};
use loopwright_backend::{
    Backend, BackendError, CompileOptions, Describe, Executable, KernelBackend, Target,
};
use loopwright_compile::Compiler;
use loopwright_interp::Interp;
use loopwright_kernel::{FunctionId, Module};
use loopwright_looptree::{parse_schedule, print_schedule};
use loopwright_scheduler::Effort;
use loopwright_text::Source;
use std::sync::Arc;

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

/// The interpreter on a machine with vectors and threads.
struct Wide;

impl Describe for Wide {
    fn name(&self) -> &str {
        "wide"
    }

    fn target(&self) -> Target {
        Target {
            vector_bytes: 64,
            vector_registers: 32,
            threads: 4,
            ..Target::SCALAR
        }
    }
}

impl KernelBackend for Wide {
    fn compile(
        &self,
        module: &Module,
        options: &CompileOptions,
    ) -> Result<Arc<dyn Executable>, BackendError> {
        Interp.compile(module, options)
    }
}

/// That machine, refusing every kernel whose text has a word.
fn refusing(word: &'static str) -> Compiler {
    let backend = Backend::kernel_backend(Wide).refusing(move |module| {
        let refused = module.to_string().contains(word);
        refused.then(|| BackendError::Unsupported {
            backend: "wide".to_owned(),
            kernel: module.functions[FunctionId(0)].name.clone(),
            reason: format!("it has a {word}"),
        })
    });
    Compiler::new(backend, CompileOptions::default())
}

const LARGE: &str = "input a: f32[i=40, k=48]\ninput b: f32[k, j=64]\noutput y = sum[k](a * b)\n";

#[test]
fn a_schedule_of_ours_that_a_backend_refuses_gives_way_to_a_plainer_one_that_is_named() {
    let program = graph(LARGE);
    let chosen = refusing("nothing").compile(&program, None);
    let chosen = chosen.expect("it compiles");
    assert!(chosen.plainer().is_none(), "nothing was refused");
    assert!(chosen.module().to_string().contains("f32x16"));
    let expected = output(&mut bound(&chosen, &[]), "y");

    let compiler = refusing("f32x16");
    let plain = compiler
        .compile(&program, None)
        .expect("a plainer one is taken");
    let plainer = plain.plainer().expect("the first one was refused");
    assert_eq!(plainer.effort, Effort::Scalar);
    assert_eq!(
        plainer.to_string(),
        "the schedule that was chosen for this machine was refused (backend `wide` cannot run kernel `program`: it has a f32x16), and a plainer one is used: serial loops, no vectors, no tiles and no threads; please report this program"
    );
    assert_eq!(output(&mut bound(&plain, &[]), "y"), expected);
    // It is kept as what the program compiles to.
    let again = compiler.compile(&program, None).expect("it is known");
    assert!(Arc::ptr_eq(&plain, &again));
}

#[test]
fn what_no_schedule_helps_is_refused_for_the_first_reason() {
    let refused = refusing("for").compile(&graph(LARGE), None);
    let message = refused.err().expect("every kernel has a loop").to_string();
    assert_eq!(
        message,
        "backend `wide` cannot run kernel `program`: it has a for"
    );
}

#[test]
fn a_given_schedule_that_is_refused_gives_way_to_none() {
    let program = graph(LARGE);
    let text = "loopwright schedule 1\ny: i, j/16, k, j vectorize\n";
    let stored = program.clone().with_stores();
    let schedule = parse_schedule(&Source::new("own.sched", text), &stored).expect("it fits");
    let refused = refusing("f32x16").compile(&program, Some(&schedule));
    let message = refused.err().expect("it is refused").to_string();
    assert!(message.contains("it has a f32x16"), "{message}");
}
