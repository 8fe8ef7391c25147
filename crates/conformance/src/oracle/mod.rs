//! The oracle: runs a program on a backend, compares it with the reference evaluator, and says which
//! stage is to blame for a difference.
//!
//! The stages of a program are checked in the order in which they are made, each by running its
//! result: the kernel that lowering makes runs on the kernel interpreter, then the one that the passes
//! make of it, then what the backend makes of that. The first that differs from the reference
//! evaluator is guilty; a pass is found by interpreting the kernel after each of them. On the way every
//! text form is written and read back, and the validator sees the kernel after every pass.
//!
//! How results are compared is said by [`Arithmetic`]: bit for bit, any two NaNs being the same; or,
//! for programs over whole numbers that are compiled without strict mode, as numbers.

mod batch;
mod compare;
mod memory;
mod text;

pub use compare::first_difference;

use crate::generate::{Arithmetic, Case};
use compare::describe_difference;
use loopwright_backend::{CompileOptions, KERNEL, KernelBackend, Stages};
use loopwright_graph::{Array, Binding, Graph, evaluate};
use loopwright_kernel::interpret::{Arg, Grid, Program};
use loopwright_kernel::passes::Pipeline;
use loopwright_kernel::{Module, validate};
use loopwright_looptree::{Schedule, default_schedule};
use loopwright_lower::{Lowered, lower};
use memory::{Memory, Slot};
use std::any::Any;
use std::cell::RefCell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Instructions after which an interpreted kernel is given up: a hundred times what the largest
/// generated program needs.
const STEPS: u64 = 50_000_000;

/// The stage that is to blame for a difference.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Blame {
    /// The reference evaluator refused the program.
    Evaluator,
    /// A text form, by its name: what was written is not what is read.
    Text(&'static str),
    /// The schedule or the tree.
    Schedule,
    /// Lowering: the kernel is wrong before any pass.
    Lowering,
    /// The pass of this name.
    Pass(String),
    /// The backend: its kernel is right.
    Backend,
}

impl fmt::Display for Blame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Blame::Evaluator => f.write_str("the reference evaluator"),
            Blame::Text(form) => write!(f, "the text form of the {form}"),
            Blame::Schedule => f.write_str("the schedule"),
            Blame::Lowering => f.write_str("lowering"),
            Blame::Pass(name) => write!(f, "pass `{name}`"),
            Blame::Backend => f.write_str("the backend"),
        }
    }
}

/// What is wrong with a program's run.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{blame} is to blame: {message}")]
pub struct Mismatch {
    /// Which stage is to blame.
    pub blame: Blame,
    /// What differs: the first element, what was expected and what was got.
    pub message: String,
}

impl Mismatch {
    pub(crate) fn new(blame: Blame, message: impl Into<String>) -> Mismatch {
        Mismatch {
            blame,
            message: message.into(),
        }
    }
}

/// Runs programs on a backend and compares.
#[derive(Clone)]
pub struct Oracle {
    backend: Arc<dyn KernelBackend>,
    pipeline: Pipeline,
}

/// A case that is right as far as the kernel a backend is given.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The case.
    pub case: Case,
    graph: Graph,
    binding: Binding,
    expected: Vec<(String, Array)>,
    lowered: Lowered,
    module: Module,
}

impl Oracle {
    /// An oracle for a backend and the standard passes.
    pub fn new(backend: Arc<dyn KernelBackend>) -> Oracle {
        Oracle {
            backend,
            pipeline: Pipeline::standard(),
        }
    }

    /// The same with other passes.
    pub fn with_pipeline(mut self, pipeline: Pipeline) -> Oracle {
        self.pipeline = pipeline;
        self
    }

    /// The backend.
    pub fn backend(&self) -> &Arc<dyn KernelBackend> {
        &self.backend
    }

    /// Checks one case through all stages.
    pub fn check(&self, case: &Case) -> Result<(), Mismatch> {
        let prepared = self.prepare(case)?;
        match self.check_batch(&[prepared]).pop() {
            Some(result) => result,
            None => Ok(()),
        }
    }

    /// Checks a case up to the kernel that a backend is given.
    pub fn prepare(&self, case: &Case) -> Result<Prepared, Mismatch> {
        let stage = RefCell::new(Blame::Evaluator);
        let result = catch_unwind(AssertUnwindSafe(|| self.stages(case, &stage)));
        result
            .unwrap_or_else(|panic| Err(Mismatch::new(stage.into_inner(), panic_message(&*panic))))
    }

    fn stages(&self, case: &Case, stage: &RefCell<Blame>) -> Result<Prepared, Mismatch> {
        let wrong = |message: String| Mismatch::new(stage.borrow().clone(), message);
        let enter = |blame: Blame| *stage.borrow_mut() = blame;
        let binding = case
            .graph
            .bind(&case.sizes())
            .map_err(|error| wrong(error.to_string()))?;
        let expected = evaluate(&case.graph, &binding, &case.inputs)
            .map_err(|error| wrong(error.to_string()))?;
        enter(Blame::Text("graph"));
        text::check_graph(&case.graph)?;
        let graph = case.graph.clone().with_stores();
        text::check_graph(&graph)?;
        enter(Blame::Schedule);
        let schedule = self.schedule(case, &graph).map_err(wrong)?;
        enter(Blame::Text("schedule"));
        text::check_schedule(&graph, &schedule)?;
        enter(Blame::Lowering);
        let mut lowered =
            lower(&graph, &schedule, KERNEL).map_err(|error| wrong(error.to_string()))?;
        validate(&lowered.module).map_err(|error| wrong(format!("not valid: {error}")))?;
        lowered.module.compact();
        enter(Blame::Text("tree"));
        text::check_tree(&graph, &lowered.tree)?;
        enter(Blame::Text("kernel"));
        text::check_kernel(&lowered.module)?;
        enter(Blame::Lowering);
        let mut prepared = Prepared {
            case: case.clone(),
            graph,
            binding,
            expected,
            module: lowered.module.clone(),
            lowered,
        };
        prepared.interpret(&prepared.module).map_err(wrong)?;
        prepared.module = self.optimised(&prepared, stage)?;
        enter(Blame::Text("kernel"));
        text::check_kernel(&prepared.module)?;
        Ok(prepared)
    }

    /// A case up to the kernel that a backend is given, without checks beyond the validator's; what it
    /// should compute is the caller's to know.
    pub(crate) fn lowered(&self, case: &Case) -> Result<Prepared, Mismatch> {
        let wrong = |message: String| Mismatch::new(Blame::Lowering, message);
        let graph = case.graph.clone().with_stores();
        let schedule = self.schedule(case, &graph).map_err(wrong)?;
        let target = self.backend.target();
        let stages = Stages::new(&graph, Some(&schedule), &target, &self.pipeline)
            .map_err(|error| wrong(error.to_string()))?;
        let binding = graph
            .bind(&case.sizes())
            .map_err(|error| wrong(error.to_string()))?;
        Ok(Prepared {
            case: case.clone(),
            graph,
            binding,
            expected: Vec::new(),
            lowered: stages.lowered,
            module: stages.module,
        })
    }

    fn schedule(&self, case: &Case, graph: &Graph) -> Result<Schedule, String> {
        match &case.schedule {
            Some(schedule) => Ok(schedule.clone()),
            None => default_schedule(graph, &self.backend.target()).map_err(|e| e.to_string()),
        }
    }

    /// Runs the passes. The result is interpreted; only if it is wrong is that of every pass.
    fn optimised(&self, prepared: &Prepared, stage: &RefCell<Blame>) -> Result<Module, Mismatch> {
        let mut module = prepared.lowered.module.clone();
        let mut invalid: Option<Mismatch> = None;
        let names = self.pipeline.names();
        let mut at = 0;
        let enter = |at: usize| {
            if let Some(name) = names.get(at) {
                *stage.borrow_mut() = Blame::Pass((*name).to_owned());
            }
        };
        enter(0);
        self.pipeline.run(&mut module, &mut |name, module| {
            at += 1;
            enter(at);
            if invalid.is_none()
                && let Err(error) = validate_compacted(module)
            {
                let blame = Blame::Pass(name.to_owned());
                invalid = Some(Mismatch::new(blame, format!("not valid: {error}")));
            }
        });
        if let Some(invalid) = invalid {
            return Err(invalid);
        }
        match prepared.interpret(&module) {
            Ok(()) => Ok(module),
            Err(message) => Err(self.guilty_pass(prepared, message)),
        }
    }

    /// The first pass after which a kernel is wrong, given that it is after the last.
    fn guilty_pass(&self, prepared: &Prepared, last: String) -> Mismatch {
        let mut module = prepared.lowered.module.clone();
        let mut found = None;
        self.pipeline.run(&mut module, &mut |name, module| {
            if found.is_some() {
                return;
            }
            let mut compacted = module.clone();
            compacted.compact();
            if let Err(message) = prepared.interpret(&compacted) {
                found = Some(Mismatch::new(Blame::Pass(name.to_owned()), message));
            }
        });
        found.unwrap_or_else(|| Mismatch::new(Blame::Pass("compact".to_owned()), last))
    }
}

fn validate_compacted(module: &Module) -> Result<(), String> {
    let mut module = module.clone();
    module.compact();
    validate(&module).map_err(|error| error.to_string())
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied());
    format!("it panicked: {}", text.unwrap_or("without a message"))
}

impl Prepared {
    /// How to compile it.
    fn options(&self) -> CompileOptions {
        CompileOptions {
            strict: self.case.arithmetic == Arithmetic::Strict,
            cache: None,
        }
    }

    fn memory(&self) -> Memory {
        Memory::new(&self.graph, &self.binding, &self.lowered, &self.case.inputs)
    }

    /// Runs a version of the kernel on the interpreter and compares.
    fn interpret(&self, module: &Module) -> Result<(), String> {
        let program = Program::new(module).map_err(|error| error.to_string())?;
        let mut memory = self.memory();
        let mut arguments: Vec<Arg<'_>> = memory
            .slots()
            .map(|slot| match slot {
                Slot::Read(bytes) => Arg::Read(bytes),
                Slot::Write(bytes) => Arg::Write(bytes),
                Slot::Scalar(scalar) => Arg::Scalar(scalar),
            })
            .collect();
        program
            .run(KERNEL, &mut arguments, Grid::default(), Some(STEPS))
            .map_err(|error| error.to_string())?;
        drop(arguments);
        self.compare(&memory)
    }

    /// Compares what a run has left in memory with what is expected.
    fn compare(&self, memory: &Memory) -> Result<(), String> {
        memory.check_guards()?;
        for (at, (name, expected)) in self.expected.iter().enumerate() {
            let got = memory.result(&self.graph, &self.lowered, at);
            if let Some(difference) = describe_difference(name, expected, got, self.case.arithmetic)
            {
                return Err(difference);
            }
        }
        Ok(())
    }
}
