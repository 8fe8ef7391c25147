//! Programs that several backends run.

mod both;

use both::{bound, graph, output};
use loopwright_backend::{Backend, BackendError, CompileOptions, Target, backends};
use loopwright_compile::{Compiler, Kernels, Program, ProgramError};
use loopwright_graph::{Graph, NodeOp};
use loopwright_kernel::passes::Pipeline;
use loopwright_kernel::{Block, FunctionId, Inst, Module, Stmt, interpret};
use loopwright_looptree::Schedule;
use loopwright_ops::Op;
use loopwright_scheduler::default_schedule;
use std::sync::Arc;

const PROGRAM: &str = "size N
input a: f32[i=N, k=N]
input b: f32[k, j=N]
state seen: f32[i]
product = sum[k](a * b)
squashed = tanh(product)
total = sum[j](squashed)
output y = total + seen
output z = max[i, j](product)
update seen = total
input c: f32[m=3]
output w = c * 2
";

fn named(name: &str) -> Backend {
    let found = backends()
        .into_iter()
        .find(|backend| backend.name() == name);
    found.expect("every build of these tests has it")
}

/// Available backends that can hand on parts.
fn own() -> Vec<Backend> {
    let all = both::compilers().map(|compiler| compiler.backend().clone());
    all.into_iter()
        .filter(|backend| backend.availability().is_ok())
        .collect()
}

fn strict(backend: Backend) -> Compiler {
    let options = CompileOptions {
        strict: true,
        ..CompileOptions::default()
    };
    Compiler::new(backend, options)
}

/// The default schedule with the steps that `choose` names handed to a backend.
fn delegated(graph: &Graph, to: &str, choose: impl Fn(&str, &NodeOp) -> bool) -> Schedule {
    let stored = graph.clone().with_stores();
    let mut schedule = default_schedule(&stored, &Target::SCALAR).expect("it can be scheduled");
    for step in &mut schedule.steps {
        if choose(&stored.node_name(step.node), &stored.node(step.node).op) {
            step.delegate = Some(to.into());
        }
    }
    schedule
}

fn results(program: &Arc<Program>, size: i64) -> Vec<Vec<f64>> {
    let mut run = bound(program, &[("N", size)]);
    ["y", "z", "w", "seen"]
        .iter()
        .map(|name| output(&mut run, name))
        .collect()
}

#[test]
fn parts_on_other_backends_give_what_the_whole_gives() {
    let graph = graph(PROGRAM);
    for backend in own() {
        let compiler = strict(backend.clone());
        let whole = compiler.compile(&graph, None).expect("it compiles");
        for to in ["interp", "cc"] {
            if named(to).availability().is_err() {
                continue;
            }
            for steps in [
                &["product"][..],
                &["total", "z"],
                &["y"],
                &["seen", "product"],
            ] {
                let schedule = delegated(&graph, to, |name, _| steps.contains(&name));
                let program = compiler.compile(&graph, Some(&schedule));
                let program = program.unwrap_or_else(|error| panic!("{error}"));
                let code = program.code();
                assert!(code.contains(&format!("{to} runs program_")), "{code}");
                for size in [1, 4, 7] {
                    assert_eq!(
                        results(&program, size),
                        results(&whole, size),
                        "{steps:?} of {} on {to}, N = {size}",
                        backend.name()
                    );
                }
            }
        }
    }
}

#[test]
fn the_kernel_of_a_program_in_parts_means_the_whole() {
    let graph = graph(PROGRAM);
    let schedule = delegated(&graph, "interp", |name, _| name == "product");
    let kernels = Kernels::new(
        &graph,
        Some(&schedule),
        &Target::SCALAR,
        &Pipeline::standard(),
    );
    let kernels = kernels.expect("it lowers");
    assert!(kernels.launches.len() > 1);
    let whole = kernels.module();
    assert_eq!(whole.functions[FunctionId(0)].name, "program");
    interpret::Program::new(&whole).expect("the interpreter takes it");
}

#[test]
fn what_cannot_be_handed_on_says_why() {
    let graph = graph(PROGRAM);
    let refused = |to: &str| {
        let schedule = delegated(&graph, to, |name, _| name == "product");
        match strict(named("interp")).compile(&graph, Some(&schedule)) {
            Ok(_) => panic!("`{to}` has a part"),
            Err(error) => error.to_string(),
        }
    };
    assert_eq!(
        refused("nowhere"),
        "`program` cannot be run by several backends: there is no backend `nowhere` to hand a part to; \
         `loopwright devices` lists what there is"
    );
    let schedule = delegated(&graph, "interp", |name, _| name == "product");
    let logging = strict(named("interp")).logging();
    let error = logging.compile(&graph, Some(&schedule)).err();
    assert!(matches!(error, Some(ProgramError::Delegate { .. })));
}

fn uses(block: &Block, op: Op) -> bool {
    block.iter().any(|stmt| {
        matches!(stmt, Stmt::Let(_, Inst::Map(used, _)) if *used == op)
            || stmt
                .blocks()
                .into_iter()
                .flatten()
                .any(|inner| uses(inner, op))
    })
}

/// A backend without an op.
fn without(backend: Backend, op: Op) -> Backend {
    let name = backend.name().to_owned();
    backend.refusing(move |module: &Module| {
        let refused = module.functions.iter().find(|f| uses(&f.body, op))?;
        Some(BackendError::Unsupported {
            backend: name.clone(),
            kernel: refused.name.clone(),
            reason: format!("there is no `{op}` here"),
        })
    })
}

#[test]
fn what_a_backend_refuses_is_refused_or_left_to_another_when_asked() {
    let graph = graph(PROGRAM);
    for backend in own() {
        let whole = strict(backend.clone())
            .compile(&graph, None)
            .expect("it compiles");
        let poor = without(backend, Op::Tanh);
        let Err(error) = strict(poor.clone()).compile(&graph, None) else {
            panic!("it has no tanh");
        };
        assert!(
            error.to_string().contains("there is no `tanh` here"),
            "{error}"
        );

        let compiler = strict(poor).with_fallback("interp");
        let program = compiler
            .compile(&graph, None)
            .unwrap_or_else(|error| panic!("{error}"));
        let notes = program.notes().join("\n");
        assert!(
            notes.contains("left to `interp`: there is no `tanh` here"),
            "{notes}"
        );
        let parts = program.launches();
        assert!(
            parts.iter().any(|part| part.backend.is_none()),
            "the rest stays"
        );
        assert!(
            parts
                .iter()
                .any(|part| part.backend.as_deref() == Some("interp"))
        );
        for size in [1, 5] {
            assert_eq!(results(&program, size), results(&whole, size), "N = {size}");
        }
        // What is not refused is not split.
        let simple = both::graph("input a: f32[i=3]\noutput y = a + 1\n");
        let simple = compiler.compile(&simple, None).expect("it compiles");
        assert!(!simple.is_delegated() && simple.notes().is_empty());
    }
}
