//! Machines × programs.

use crate::corpus::{Corpus, Entry};
use crate::machine::{describe, random_target};
use crate::programs::{KIND_COUNT, random_programs, small_programs};
use crate::writers::{Writer, writers};
use loopwright_backend::{
    Backend, BackendError, CompileOptions, Describe, Executable, KernelBackend, Target,
};
use loopwright_compile::Kernels;
use loopwright_conformance::Rng;
use loopwright_conformance::generate::{Arithmetic, Case, large_graph, random_array, random_case};
use loopwright_conformance::oracle::Oracle;
use loopwright_graph::Graph;
use loopwright_graph::rewrite::rewrite;
use loopwright_interp::Interp;
use loopwright_kernel::Module;
use loopwright_kernel::passes::Pipeline;
use loopwright_kernel::passes::expand_math::Precision;
use loopwright_scheduler::{Effort, Order, schedule_with};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Nodes of the random graphs; each machine gets one of these.
const GRAPHS: [usize; 10] = [12, 30, 60, 120, 250, 30, 500, 60, 1000, 2000];

/// What else is asked of the scheduler: sums in the program's order, and less of the machine. Programs take turns.
const OTHERS: [(Order, Effort); 3] = [
    (Order::Kept, Effort::Full),
    (Order::Free, Effort::Scalar),
    (Order::Free, Effort::Plain),
];

/// Which machines, and how much for each.
#[derive(Clone, Debug)]
pub struct SweepOptions {
    /// The first machine; the others are those of the following seeds. A sweep that was stopped goes on from a later one.
    pub seed: u64,
    /// How many machines.
    pub targets: u64,
    /// Random programs for each machine, beside the corpus.
    pub programs: usize,
    /// Random programs for each machine that are interpreted and compared with the reference.
    pub interpreted: usize,
    /// Nodes of the largest random graph.
    pub nodes: usize,
    /// Threads to use.
    pub threads: usize,
}

impl Default for SweepOptions {
    fn default() -> SweepOptions {
        SweepOptions {
            seed: 0,
            targets: 200,
            programs: KIND_COUNT,
            interpreted: 6,
            nodes: 2000,
            threads: 1,
        }
    }
}

/// How far a sweep is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    /// The machine that is done.
    pub seed: u64,
    /// The same in words.
    pub machine: String,
    /// Machines that are done, of all.
    pub done: u64,
    /// How many there are in all.
    pub targets: u64,
    /// What failed for this machine.
    pub failures: Vec<Failure>,
    /// How many failed so far.
    pub failed: u64,
    /// The program of this machine that took longest, and how long.
    pub slowest: (String, Duration),
}

/// A program that did not become code for a machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// The machine.
    pub seed: u64,
    /// The program.
    pub program: String,
    /// Who refused it.
    pub stage: String,
    /// Why.
    pub reason: String,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Failure {
            seed,
            program,
            stage,
            reason,
        } = self;
        let machine = describe(&random_target(*seed));
        write!(f, "target {seed} ({machine}): {program}: {stage}: {reason}")
    }
}

/// What a sweep found.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// Machines that it went through.
    pub targets: u64,
    /// Programs that it compiled, counted for each machine.
    pub programs: u64,
    /// Texts and machine code that were written.
    pub written: u64,
    /// Programs that were interpreted.
    pub interpreted: u64,
    /// What failed, in the order of machines.
    pub failures: Vec<Failure>,
    /// The program that took longest, and how long.
    pub slowest: (String, Duration),
}

impl Report {
    fn took(&mut self, program: &str, since: Instant) {
        let time = since.elapsed();
        if time > self.slowest.1 {
            self.slowest = (program.to_owned(), time);
        }
    }
}

/// Takes programs through the compiler for each machine. `progress` is told of every machine that is done.
pub fn sweep(corpus: &Corpus, options: &SweepOptions, progress: &(dyn Fn(&Step) + Sync)) -> Report {
    let writers = writers();
    let next = AtomicU64::new(0);
    let report = Mutex::new(Report::default());
    let work = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            if at >= options.targets {
                return;
            }
            let seed = options.seed.wrapping_add(at);
            let found = one_machine(corpus, seed, options, &writers);
            let mut report = report.lock().unwrap_or_else(PoisonError::into_inner);
            report.targets += 1;
            report.programs += found.programs;
            report.written += found.written;
            report.interpreted += found.interpreted;
            report.failures.extend_from_slice(&found.failures);
            if found.slowest.1 > report.slowest.1 {
                report.slowest = found.slowest.clone();
            }
            progress(&Step {
                failures: found.failures,
                slowest: found.slowest,
                seed,
                machine: describe(&random_target(seed)),
                done: report.targets,
                targets: options.targets,
                failed: report.failures.len() as u64,
            });
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..options.threads.max(1) {
            scope.spawn(work);
        }
        work();
    });
    let mut report = report.into_inner().unwrap_or_else(PoisonError::into_inner);
    report
        .failures
        .sort_by(|a, b| (a.seed, &a.program).cmp(&(b.seed, &b.program)));
    report
}

fn one_machine(corpus: &Corpus, seed: u64, options: &SweepOptions, writers: &[Writer]) -> Report {
    let target = random_target(seed);
    let mut report = Report::default();
    let fail = |report: &mut Report, program: &str, (stage, reason): (String, String)| {
        report.failures.push(Failure {
            seed,
            program: program.to_owned(),
            stage,
            reason,
        });
    };
    let nodes = GRAPHS[(seed % GRAPHS.len() as u64) as usize].min(options.nodes);
    let random = Entry {
        name: format!("graph of {nodes} nodes of seed {seed}"),
        graph: large_graph(seed, nodes),
    };
    let drawn = random_programs(seed, options.programs);
    for entry in corpus.entries.iter().chain(&drawn).chain([&random]) {
        report.programs += 1;
        let start = Instant::now();
        match compiled(&entry.graph, &target) {
            Ok(module) => {
                for writer in writers {
                    match without_panic(|| writer.write(&module)) {
                        Ok(()) => report.written += 1,
                        Err(reason) => {
                            fail(&mut report, &entry.name, (writer.name.clone(), reason));
                        }
                    }
                }
            }
            Err(refusal) => fail(&mut report, &entry.name, refusal),
        }
        let turn = seed.wrapping_add(report.programs) % OTHERS.len() as u64;
        let (order, effort) = OTHERS[turn as usize];
        if let Err(refusal) = scheduled(&entry.graph, &target, order, effort) {
            fail(&mut report, &entry.name, refusal);
        }
        report.took(&entry.name, start);
    }
    let backend = Backend::kernel_backend(InterpretedFor(target));
    let oracle = Oracle::new(backend).without_texts();
    let cases = interpreted_cases(seed, options.interpreted);
    let networks = networks_in_turn(corpus, seed, options.interpreted);
    for (name, case) in cases.into_iter().chain(networks) {
        report.interpreted += 1;
        let start = Instant::now();
        if let Err(mismatch) = oracle.prepare(&case) {
            fail(
                &mut report,
                &name,
                ("interpreted".to_owned(), mismatch.to_string()),
            );
        }
        report.took(&format!("{name}, interpreted"), start);
    }
    report
}

/// The kernel of a program for a machine; who refused it and why where there is none, a plainer one than was chosen, or
/// one with a loop that is not run as its annotation says.
fn compiled(graph: &Graph, target: &Target) -> Result<Module, (String, String)> {
    let made = without_panic(|| {
        let kernels = Kernels::new(graph, None, target, &Pipeline::standard());
        kernels.map_err(|error| error.to_string())
    });
    let kernels = made.map_err(|reason| ("schedule".to_owned(), reason))?;
    if let Some(plainer) = kernels.plainer {
        return Err(("plainer schedule".to_owned(), plainer.reason));
    }
    // What the rewriting of the program says is no fault.
    let (_, rewritten) = rewrite(graph);
    let mut notes = kernels.notes.iter();
    match notes.find(|note| !rewritten.contains(note)) {
        Some(note) => Err(("plainer loop".to_owned(), note.clone())),
        None => Ok(kernels.module().into_owned()),
    }
}

/// Whether a program has a schedule of another kind than [`compiled`] makes; who refused it and why where it has none.
fn scheduled(
    graph: &Graph,
    target: &Target,
    order: Order,
    effort: Effort,
) -> Result<(), (String, String)> {
    let made = without_panic(|| {
        let made = schedule_with(graph.clone().with_stores(), target, order, effort);
        made.map(|_| ()).map_err(|error| error.to_string())
    });
    made.map_err(|reason| (format!("schedule, {order:?} and {effort:?}"), reason))
}

/// What a function gives; a panic is an error with its message.
fn without_panic<T>(work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    let message = |panic: Box<dyn Any + Send>| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        format!("panicked: {}", text.unwrap_or("without a message"))
    };
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(message(panic)))
}

/// Small programs with their inputs: random graphs and programs from text in turn, all scheduled for the machine.
fn interpreted_cases(seed: u64, count: usize) -> Vec<(String, Case)> {
    let random = (0..count as u64 / 2).map(|at| {
        let case_seed = seed.wrapping_mul(1 << 8).wrapping_add(at);
        let case = Case {
            schedule: None,
            ..random_case(case_seed)
        };
        (format!("random program {case_seed}"), case)
    });
    let texts = small_programs(seed, count - count / 2);
    let texts = texts.into_iter().filter_map(|entry| {
        let case = with_inputs(&entry.graph, seed)?;
        Some((entry.name, case))
    });
    random.chain(texts).collect()
}

/// Two of the corpus's small programs, others for each machine; none where nothing is to be interpreted.
fn networks_in_turn(corpus: &Corpus, seed: u64, count: usize) -> Vec<(String, Case)> {
    let small = &corpus.interpreted;
    let count = count.min(2).min(small.len());
    let chosen = (0..count as u64).map(|at| {
        let turn = seed.wrapping_mul(count as u64).wrapping_add(at);
        &small[(turn % small.len() as u64) as usize]
    });
    let cases =
        chosen.filter_map(|entry| Some((entry.name.clone(), with_inputs(&entry.graph, seed)?)));
    cases.collect()
}

/// A program with inputs that a seed names; `None` where its sizes do not fit together.
fn with_inputs(graph: &Graph, seed: u64) -> Option<Case> {
    let arithmetic = Arithmetic::Rounded {
        strict: false,
        math: Precision::Accurate,
    };
    let rng = &mut Rng::new(seed);
    // What has no value of its own, such as a batch of any size, gets a small odd one.
    let open = graph.sizes().filter(|(_, _, default)| default.is_none());
    let sizes: Vec<(String, i64)> = open.map(|(_, name, _)| (name.to_owned(), 3)).collect();
    let given: Vec<(&str, i64)> = sizes
        .iter()
        .map(|(name, value)| (name.as_str(), *value))
        .collect();
    let binding = graph.bind(&given).ok()?;
    let inputs = graph.parameters().map(|node| {
        let shape = binding.shape(graph, node);
        let shape: Vec<usize> = shape.iter().map(|size| *size as usize).collect();
        let dtype = graph.node(node).dtype;
        (node, random_array(rng, dtype, &shape, Arithmetic::Whole))
    });
    Some(Case {
        graph: graph.clone(),
        schedule: None,
        inputs: inputs.collect(),
        sizes,
        arithmetic,
    })
}

/// The interpreter, told that the machine is another.
struct InterpretedFor(Target);

impl Describe for InterpretedFor {
    fn name(&self) -> &str {
        "interp"
    }

    fn target(&self) -> Target {
        self.0
    }
}

impl KernelBackend for InterpretedFor {
    fn compile(
        &self,
        module: &Module,
        options: &CompileOptions,
    ) -> Result<Arc<dyn Executable>, BackendError> {
        Interp.compile(module, options)
    }
}
