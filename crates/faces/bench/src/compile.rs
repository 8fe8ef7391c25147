//! The `compile` suite: how fast a graph becomes a kernel and a kernel code, beside peers that compile, and how fast
//! what is made of the default schedule runs beside loop_tool.

use crate::callable::{COMPILING, callable_rows};
use crate::field::Field;
use crate::race::Limits;
use crate::report::{Measured, Report, Row};
use crate::sample::{median, seconds};
use crate::schedule::schedule_rows;
use crate::work::{Work, ours, parsed};
use crate::{BenchError, Options, cores, peer};
use loopwright::backend::Target;
use loopwright::compile::Kernels;
use loopwright::kernel::passes::Pipeline;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// A machine that is the same everywhere, so that compile times and instruction counts compare.
const TARGET: Target = Target {
    vector_bytes: 64,
    vector_registers: 32,
    threads: 1,
    l1_bytes: 32 << 10,
    l2_bytes: 1 << 20,
    ..Target::SCALAR
};

/// The text of an MNIST-class convolutional network, forward.
const NETWORK: &str = include_str!("network.lw");

/// Takes `matmul` or `network` from graph to optimised kernel, `rounds` times; the instruction counts
/// that the project tracks are counted over this.
pub fn graph_to_kernel(work: &str, rounds: usize) -> Result<(), BenchError> {
    let text = match work {
        "matmul" => Work::matmul(512).text,
        "network" => Cow::Borrowed(NETWORK),
        other => return Err(ours(other, "this suite has only `matmul` and `network`")),
    };
    let graph = parsed(work, &text)?;
    let pipeline = Pipeline::standard();
    for _ in 0..rounds {
        Kernels::new(&graph, None, &TARGET, &pipeline).map_err(|error| ours(work, error))?;
    }
    Ok(())
}

/// Runs the suite; `say` hears about progress.
pub fn compile_suite(options: &Options, say: &dyn Fn(&str)) -> Result<Report, BenchError> {
    let alone = Field::alone(options)?;
    options.check_only(|wanted| {
        rows(options, &alone, wanted, &|_| (), &mut Measured::default());
    })?;
    let [torch, jax] = COMPILING;
    let field = Field::new(options, &[torch, jax, "loop_tool"], say)?;
    cores::pin(options.threads);
    let mut measured = Measured::default();
    let wanted = |name: &str| options.wants(name);
    rows(options, &field, &wanted, say, &mut measured);
    Ok(measured.into_report().in_order_of(peer::names()))
}

/// All rows of work that is wanted.
fn rows(
    options: &Options,
    field: &Field,
    wanted: &dyn Fn(&str) -> bool,
    say: &dyn Fn(&str),
    measured: &mut Measured,
) {
    // The bars are the project's own: 1 ms, and what loop_tool states for such a network, 13 ms.
    for (name, text, goal) in [
        ("graph to kernel: matmul 512", Work::matmul(512).text, 1.0),
        (
            "graph to kernel: MNIST-class network",
            Cow::Borrowed(NETWORK),
            13.0,
        ),
    ] {
        if wanted(name) {
            say(name);
            let row = compile_row(name, &text, goal, options.samples);
            measured.take(name, row.map(|row| [row]));
        }
    }
    schedule_rows(&TARGET, options.samples, wanted, say, measured);
    callable_rows(options, field, wanted, say, measured);
    // A sample is one run, right after the other sides' runs.
    let limits = Limits {
        samples: options.samples,
        seconds: f64::INFINITY,
        burst: 0.0,
        rest: None,
    };
    let works = [64, 128, 256, 512]
        .map(Work::matmul)
        .into_iter()
        .chain([Work::conv(64, 56)]);
    for work in works.filter(|work| wanted(&work.name)) {
        say(&work.name);
        measured.take(&work.name, speed_rows(&work, field, &limits));
    }
}

fn compile_row(name: &str, text: &str, goal: f64, samples: usize) -> Result<Row, BenchError> {
    let graph = parsed(name, text)?;
    let pipeline = Pipeline::standard();
    let mut times = Vec::with_capacity(samples);
    for _ in 0..samples.max(3) {
        let (time, kernels) = seconds(|| Kernels::new(&graph, None, &TARGET, &pipeline));
        kernels.map_err(|error| ours(name, error))?;
        times.push(time * 1e3);
    }
    let median = median(&mut times);
    Ok(Row::new(name, "ms", median, BTreeMap::new(), Some(goal)))
}

/// Our speed beside the peers', and the first run of each, compilation included.
fn speed_rows(work: &Work, field: &Field, limits: &Limits) -> Result<[Row; 2], BenchError> {
    // The others' libraries are the `cpu` suite's matter.
    let compiles_itself = |peer: &str| !COMPILING.contains(&peer) && peer != "torch";
    let outcome = field.race(work, limits, compiles_itself)?;
    // Twice as fast as others; no more than a tenth slower than our own.
    let alone = !field.peers().any(compiles_itself);
    let goal = match (alone, field.rivals.is_empty()) {
        (true, true) => None,
        (true, false) => Some(1.0 / 1.1),
        (false, _) => Some(2.0),
    };
    let counted = work.counted;
    let first = Row::new(
        format!("{}: first run", work.name),
        "ms",
        outcome.ours.first * 1e3,
        outcome.others(|times| times.first * 1e3),
        None,
    );
    let speed = Row::new(
        work.name.clone(),
        counted.unit(),
        counted.figure(outcome.ours.median),
        outcome.others(|times| counted.figure(times.median)),
        goal,
    );
    // The mean is of what it takes to compile.
    Ok([first.beside_the_list(), speed.beside_the_list()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Against;
    use loopwright::backend::{
        Argument, Backend, BackendError, CompileOptions, Describe, Executable, KernelBackend,
        register,
    };
    use loopwright::kernel::Module;
    use std::num::NonZero;
    use std::sync::Arc;

    /// A backend that refuses large products and makes nothing of others.
    struct Brittle;

    impl Describe for Brittle {
        fn name(&self) -> &str {
            "brittle"
        }
    }

    impl KernelBackend for Brittle {
        fn compile(
            &self,
            module: &Module,
            _: &CompileOptions,
        ) -> Result<Arc<dyn Executable>, BackendError> {
            match module.to_string().contains("512") {
                true => Err(BackendError::Unsupported {
                    backend: "brittle".to_owned(),
                    kernel: "program".to_owned(),
                    reason: "it is too large".to_owned(),
                }),
                false => Ok(Arc::new(Nothing)),
            }
        }
    }

    struct Nothing;

    impl Executable for Nothing {
        unsafe fn run(&self, _: &str, _: &mut [Argument<'_>]) -> Result<(), BackendError> {
            Ok(())
        }

        fn code(&self) -> String {
            String::new()
        }
    }

    #[test]
    fn one_row_that_fails_does_not_lose_the_others() {
        register(-200, Backend::kernel_backend(Brittle)).expect("the name is free");
        let options = Options {
            device: "brittle".to_owned(),
            against: Against::Named(Vec::new()),
            only: Some("kernel to code: matmul".to_owned()),
            samples: 3,
            threads: NonZero::<usize>::MIN,
            environments: std::path::PathBuf::new(),
        };
        let report = compile_suite(&options, &|_| ()).expect("the suite goes on");
        let measured: Vec<&str> = report.rows.iter().map(|row| row.work.as_str()).collect();
        assert!(
            measured.contains(&"kernel to code: matmul 64"),
            "{measured:?}"
        );
        let failed: Vec<&str> = report.failed.iter().map(|row| row.work.as_str()).collect();
        assert_eq!(failed, ["kernel to code: matmul 512"]);
        assert!(report.failed[0].reason.contains("it is too large"));
        assert!(report.table().contains("kernel to code: matmul 512"));
    }
}
