//! The oracle: runs a program on a backend, compares it with the reference evaluator, and says which
//! stage is to blame for a difference.
//!
//! The stages of a program are checked in the order in which they are made, each by running its
//! result: the kernel that lowering makes runs on the kernel interpreter, then the one that the passes
//! make of it, then what the backend makes of that. The first that differs from the reference
//! evaluator is guilty; a pass is found by interpreting the kernel after each of them. On the way every
//! text form is written and read back, and the validator sees the kernel after every pass.
//!
//! How results are compared with the reference is said by [`Arithmetic`]: bit for bit, any two NaNs being
//! the same; for programs over integers that are compiled without strict mode, as numbers; and for
//! any other program with what other roundings could have given. A kernel after the passes is compared
//! with the one before them bit for bit in any case, and so is what a backend makes of it in strict mode.

mod batch;
mod compare;
mod memory;
mod rounding;
mod text;

pub use compare::Element;

use crate::generate::{Arithmetic, Case};
use compare::{agree, first_difference};
use loopwright_backend::{Backend, CompileOptions, KernelLaunch, MathAccuracy};
use loopwright_compile::{KERNEL, Kernels, Program as Compiled};
use loopwright_graph::{Array, Binding, Graph, NodeId, NodeOp, evaluate};
use loopwright_kernel::Argument;
use loopwright_kernel::interpret::{Grid, Program};
use loopwright_kernel::passes::Pipeline;
use loopwright_kernel::{Module, validate};
use loopwright_looptree::{Plan, loop_dims};
use loopwright_lower::{Scratch, lower};
use loopwright_ops::{Scalar, same_value};
use loopwright_scheduler::{Order, schedule};
use memory::{Memory, Slot, result_places};
use rounding::Roundings;
use std::any::Any;
use std::cell::{OnceCell, RefCell};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};

/// Instructions after which an interpreted kernel is given up, since a wrong pass can make a loop that
/// does not end: a hundred times what the largest generated program needs.
const STEPS: u64 = 50_000_000;

/// The same for each element that a node computes or folds: an op is some ten instructions, and is
/// computed again wherever an inline node is read.
const STEPS_PER_ELEMENT: u64 = 1000;

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
    /// The first element that differs, if that is what is wrong.
    pub element: Option<Box<Element>>,
}

impl Mismatch {
    pub(crate) fn new(blame: Blame, message: impl Into<String>) -> Mismatch {
        Mismatch {
            blame,
            message: message.into(),
            element: None,
        }
    }

    fn of(blame: Blame, fault: Fault) -> Mismatch {
        Mismatch {
            blame,
            message: fault.message,
            element: fault.element,
        }
    }
}

/// What is wrong with the results of a run, whoever is to blame.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    message: String,
    element: Option<Box<Element>>,
}

impl Fault {
    /// The stage that is to blame for it.
    pub(crate) fn blamed_on(self, blame: Blame) -> Mismatch {
        Mismatch::of(blame, self)
    }
}

impl From<Element> for Fault {
    fn from(element: Element) -> Fault {
        Fault {
            message: element.to_string(),
            element: Some(Box::new(element)),
        }
    }
}

impl From<String> for Fault {
    fn from(message: String) -> Fault {
        Fault {
            message,
            element: None,
        }
    }
}

/// Runs programs on a backend and compares.
#[derive(Clone)]
pub struct Oracle {
    backend: Backend,
    pipeline: Pipeline,
    /// Whether text forms are written and read back.
    texts: bool,
    /// Whether the backend computes; else only memory is looked at.
    computes: bool,
}

/// A case that is right as far as the kernel a backend is given.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The case.
    pub case: Case,
    /// The program with its results as stores, and its schedule.
    plan: Plan,
    /// Of the changed graph, which has all dimensions of the program.
    binding: Binding,
    /// What the reference evaluator gives.
    expected: Vec<(String, Array)>,
    /// What the kernel gives before any pass, in the same order.
    unoptimised: Vec<Array>,
    /// What other roundings give; computed when it is needed.
    roundings: OnceLock<Roundings>,
    scratch: Vec<Scratch>,
    /// The kernel that stands for the whole program. Cases of one program share it, and it is compiled once for them.
    launch: Arc<KernelLaunch>,
    /// The kernel before any pass, where that was run.
    lowered: Option<Arc<Module>>,
    steps: Option<u64>,
}

impl Oracle {
    /// An oracle for a backend and the standard passes.
    pub fn new(backend: Backend) -> Oracle {
        Oracle {
            computes: backend.capabilities().computes,
            backend,
            pipeline: Pipeline::standard(),
            texts: true,
        }
    }

    /// The same without a look at text forms, which have no part in what a program computes.
    pub fn without_texts(mut self) -> Oracle {
        self.texts = false;
        self
    }

    /// The same with other passes.
    pub fn with_pipeline(mut self, pipeline: Pipeline) -> Oracle {
        self.pipeline = pipeline;
        self
    }

    /// The backend.
    pub fn backend(&self) -> &Backend {
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
        let program = case.graph.clone().with_stores();
        if self.texts {
            enter(Blame::Text("graph"));
            text::check_graph(&case.graph)?;
            text::check_graph(&program)?;
        }
        enter(Blame::Schedule);
        let plan = self.plan(case, program).map_err(wrong)?;
        let binding = bound(case, &plan).map_err(wrong)?;
        if self.texts {
            enter(Blame::Text("schedule"));
            text::check_schedule(plan.program(), plan.graph(), plan.schedule())?;
        }
        enter(Blame::Lowering);
        let mut lowered = lower(&plan, KERNEL).map_err(|error| wrong(error.to_string()))?;
        validate(&lowered.module).map_err(|error| wrong(format!("not valid: {error}")))?;
        lowered.module.compact();
        if self.texts {
            enter(Blame::Text("tree"));
            text::check_tree(plan.graph(), plan.tree())?;
            enter(Blame::Text("kernel"));
            text::check_kernel(&lowered.module)?;
        }
        enter(Blame::Lowering);
        let steps = steps(&plan, &binding);
        let mut prepared = Prepared {
            case: case.clone(),
            plan,
            binding,
            expected,
            unoptimised: Vec::new(),
            roundings: OnceLock::new(),
            scratch: lowered.scratch,
            launch: Arc::new(KernelLaunch {
                backend: None,
                module: lowered.module,
                params: lowered.params,
            }),
            lowered: None,
            steps: Some(steps),
        };
        let memory = prepared.interpret(prepared.module());
        let memory = memory.map_err(|fault| Mismatch::of(Blame::Lowering, fault))?;
        prepared
            .compare_with_reference(&prepared.results_in(&memory))
            .map_err(|fault| Mismatch::of(Blame::Lowering, fault))?;
        prepared.unoptimised = prepared.arrays(&prepared.results_in(&memory));
        let optimised = self.optimised(&prepared, stage)?;
        let lowered = std::mem::replace(prepared.module_mut(), optimised);
        prepared.lowered = Some(Arc::new(lowered));
        if self.texts {
            enter(Blame::Text("kernel"));
            text::check_kernel(prepared.module())?;
        }
        Ok(prepared)
    }

    /// Checks a case whose program, schedule and arithmetic are those of one that is ready, and which has other sizes or
    /// inputs. Its plan and its kernel are the same, and are not made again; what they give is compared as in
    /// [`Oracle::prepare`].
    pub(crate) fn prepare_again(
        &self,
        ready: &Prepared,
        case: &Case,
    ) -> Result<Prepared, Mismatch> {
        let Some(lowered) = &ready.lowered else {
            return self.prepare(case);
        };
        let stage = RefCell::new(Blame::Evaluator);
        let again = catch_unwind(AssertUnwindSafe(|| {
            let wrong = |message: String| Mismatch::new(stage.borrow().clone(), message);
            let binding = case.graph.bind(&case.sizes());
            let binding = binding.map_err(|error| wrong(error.to_string()))?;
            let expected = evaluate(&case.graph, &binding, &case.inputs)
                .map_err(|error| wrong(error.to_string()))?;
            *stage.borrow_mut() = Blame::Schedule;
            let binding = bound(case, &ready.plan).map_err(wrong)?;
            *stage.borrow_mut() = Blame::Lowering;
            let mut prepared = Prepared {
                case: case.clone(),
                steps: Some(steps(&ready.plan, &binding)),
                plan: ready.plan.clone(),
                binding,
                expected,
                unoptimised: Vec::new(),
                roundings: OnceLock::new(),
                scratch: ready.scratch.clone(),
                launch: Arc::clone(&ready.launch),
                lowered: Some(Arc::clone(lowered)),
            };
            let blamed = |fault: Fault| Mismatch::of(Blame::Lowering, fault);
            let memory = prepared.interpret(lowered).map_err(blamed)?;
            let results = prepared.results_in(&memory);
            prepared.compare_with_reference(&results).map_err(blamed)?;
            prepared.unoptimised = prepared.arrays(&results);
            if let Err(fault) = prepared.interpret_unchanged(prepared.module()) {
                *prepared.module_mut() = Module::clone(lowered);
                return Err(self.guilty_pass(&prepared, fault));
            }
            Ok(prepared)
        }));
        again.unwrap_or_else(|panic| Err(Mismatch::new(stage.into_inner(), panic_message(&*panic))))
    }

    /// A case that was compiled elsewhere, with the kernel of that program and what the reference
    /// evaluator gives. The program's graph and schedule are the case's.
    pub(crate) fn compiled(&self, case: &Case, program: &Compiled) -> Result<Prepared, Mismatch> {
        let wrong = |message: String| Mismatch::new(Blame::Evaluator, message);
        let binding = case
            .graph
            .bind(&case.sizes())
            .map_err(|error| wrong(error.to_string()))?;
        let expected = evaluate(&case.graph, &binding, &case.inputs)
            .map_err(|error| wrong(error.to_string()))?;
        let plan = program.plan().clone();
        let binding = bound(case, &plan).map_err(wrong)?;
        Ok(Prepared {
            case: case.clone(),
            plan,
            binding,
            expected,
            unoptimised: Vec::new(),
            roundings: OnceLock::new(),
            scratch: program.scratch().to_vec(),
            launch: Arc::new(KernelLaunch {
                backend: None,
                module: program.module().into_owned(),
                params: program.params().to_vec(),
            }),
            lowered: None,
            // It has run to its end elsewhere.
            steps: None,
        })
    }

    /// A case up to the kernel that a backend is given, without checks beyond the validator's; what it
    /// should compute is the caller's to know.
    pub(crate) fn lowered(&self, case: &Case) -> Result<Prepared, Mismatch> {
        let wrong = |message: String| Mismatch::new(Blame::Lowering, message);
        let program = case.graph.clone().with_stores();
        let plan = self.plan(case, program).map_err(wrong)?;
        let kernels = Kernels::of_plan(plan, &self.backend.target(), &self.pipeline)
            .map_err(|error| wrong(error.to_string()))?;
        let binding = bound(case, &kernels.plan).map_err(wrong)?;
        let steps = steps(&kernels.plan, &binding);
        Ok(Prepared {
            case: case.clone(),
            launch: Arc::new(KernelLaunch {
                backend: None,
                module: kernels.module().into_owned(),
                params: kernels.params,
            }),
            lowered: None,
            plan: kernels.plan,
            binding,
            expected: Vec::new(),
            unoptimised: Vec::new(),
            roundings: OnceLock::new(),
            scratch: kernels.scratch,
            steps: Some(steps),
        })
    }

    /// A case's schedule for its program, or one that is made for the backend.
    fn plan(&self, case: &Case, program: Graph) -> Result<Plan, String> {
        match &case.schedule {
            Some(schedule) => {
                Plan::new(program, schedule.clone()).map_err(|error| error.to_string())
            }
            None => {
                let order = match case.arithmetic.is_strict() {
                    true => Order::Kept,
                    false => Order::Free,
                };
                let explained = schedule(program, &self.backend.target(), order);
                Ok(explained.map_err(|error| error.to_string())?.plan)
            }
        }
    }

    /// Runs the passes. The result is interpreted; only if it is wrong is that of every pass.
    fn optimised(&self, prepared: &Prepared, stage: &RefCell<Blame>) -> Result<Module, Mismatch> {
        let mut module = prepared.module().clone();
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
        match prepared.interpret_unchanged(&module) {
            Ok(()) => Ok(module),
            Err(fault) => Err(self.guilty_pass(prepared, fault)),
        }
    }

    /// The first pass after which a kernel is wrong, given that it is after the last.
    fn guilty_pass(&self, prepared: &Prepared, last: Fault) -> Mismatch {
        let mut module = prepared.module().clone();
        let mut found = None;
        self.pipeline.run(&mut module, &mut |name, module| {
            if found.is_some() {
                return;
            }
            let mut compacted = module.clone();
            compacted.compact();
            if let Err(fault) = prepared.interpret_unchanged(&compacted) {
                found = Some(Mismatch::of(Blame::Pass(name.to_owned()), fault));
            }
        });
        found.unwrap_or_else(|| Mismatch::of(Blame::Pass("compact".to_owned()), last))
    }
}

/// The sizes of all dimensions of a program with its schedule's changes.
fn bound(case: &Case, plan: &Plan) -> Result<Binding, String> {
    let binding = plan.graph().bind(&case.sizes());
    binding.map_err(|error| error.to_string())
}

/// Instructions after which a program's interpreted kernel is given up.
fn steps(plan: &Plan, binding: &Binding) -> u64 {
    let (graph, schedule) = (plan.graph(), plan.schedule());
    let product = |sizes: &mut dyn Iterator<Item = i64>| {
        let sizes = sizes.map(|size| size.max(1) as u64);
        sizes.fold(1, u64::saturating_mul)
    };
    let elements = graph.node_ids().map(|node| {
        let dims = loop_dims(graph, node);
        let own = product(&mut dims.iter().map(|dim| binding.size(*dim)));
        // In loops over other dimensions it is computed again and again.
        let loops = schedule.step(node).map_or(&[][..], |step| &step.loops);
        let others = loops.iter().filter(|spec| !dims.contains(&spec.dim));
        let again = product(&mut others.map(|spec| binding.size(spec.dim)));
        own.saturating_mul(again)
    });
    let elements = elements.fold(0, u64::saturating_add);
    STEPS.saturating_add(STEPS_PER_ELEMENT.saturating_mul(elements))
}

fn validate_compacted(module: &Module) -> Result<(), String> {
    let mut module = module.clone();
    module.compact();
    validate(&module).map_err(|error| error.to_string())
}

pub(crate) fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied());
    format!("it panicked: {}", text.unwrap_or("without a message"))
}

impl Prepared {
    /// The kernel that a backend is given.
    pub fn module(&self) -> &Module {
        &self.launch.module
    }

    /// The same, for those who know what it must still compute.
    pub(crate) fn module_mut(&mut self) -> &mut Module {
        &mut Arc::make_mut(&mut self.launch).module
    }

    /// How to compile it.
    fn options(&self) -> CompileOptions {
        CompileOptions {
            strict: self.case.arithmetic.is_strict(),
            math: self.case.arithmetic.math(),
            ..CompileOptions::default()
        }
    }

    fn memory(&self) -> Memory {
        self.memory_for(&self.binding, &self.case.inputs)
    }

    fn memory_for(&self, binding: &Binding, inputs: &[(NodeId, Array)]) -> Memory {
        let (graph, params) = (self.plan.graph(), &self.launch.params);
        Memory::new(graph, binding, params, &self.scratch, inputs)
    }

    /// Runs a version of the kernel on the interpreter.
    fn interpret(&self, module: &Module) -> Result<Memory, Fault> {
        let program = Program::new(module).map_err(|error| error.to_string())?;
        let mut memory = self.memory();
        let mut arguments: Vec<Argument<'_>> = memory
            .slots()
            .map(|slot| match slot {
                Slot::Read(bytes) => Argument::Read(bytes),
                Slot::Write(bytes) => Argument::Write(bytes),
                Slot::Scalar(scalar) => Argument::Scalar(scalar),
            })
            .collect();
        program
            .run(
                self.launch.kernel(),
                &mut arguments,
                Grid::default(),
                self.steps,
            )
            .map_err(|error| error.to_string())?;
        drop(arguments);
        memory.check_guards()?;
        Ok(memory)
    }

    /// Runs a version of the kernel on the interpreter: it must give what it gave before the passes.
    fn interpret_unchanged(&self, module: &Module) -> Result<(), Fault> {
        let memory = self.interpret(module)?;
        self.compare_with(&self.unoptimised, &self.results_in(&memory))
    }

    /// The kernel as a backend is given it, on the interpreter: what it leaves.
    pub(crate) fn interpreted(&self) -> Result<Vec<Array>, Fault> {
        let memory = self.interpret(self.module())?;
        Ok(self.arrays(&self.results_in(&memory)))
    }

    fn results_in<'m>(&self, memory: &'m Memory) -> Vec<&'m [u8]> {
        memory.results(self.plan.graph(), &self.launch.params)
    }

    /// The results among what stands in memory after a run, given for each parameter of the kernel.
    pub(crate) fn results_among<'m>(&self, after: &[&'m [u8]]) -> Vec<&'m [u8]> {
        let places = result_places(self.plan.graph(), &self.launch.params).into_iter();
        let bytes = places.map(|place| place.and_then(|at| after.get(at).copied()));
        bytes.map(Option::unwrap_or_default).collect()
    }

    /// Results as arrays. What is no array of its dtype is left as it is expected; it was compared before.
    fn arrays(&self, results: &[&[u8]]) -> Vec<Array> {
        let results = self.expected.iter().zip(results);
        let arrays = results.map(|((_, expected), bytes)| {
            Array::from_bytes(expected.dtype(), expected.shape(), bytes)
                .unwrap_or_else(|_| expected.clone())
        });
        arrays.collect()
    }

    /// Whether the program has an op that a backend of this accuracy computes in its own way.
    pub(crate) fn has_inexact(&self, accuracy: &MathAccuracy) -> bool {
        if accuracy.is_exact() {
            return false;
        }
        let graph = self.plan.program();
        let inexact = |node: NodeId| {
            let parts = graph.node(node);
            matches!(parts.op, NodeOp::Map(op) if accuracy.ulps(op, parts.dtype) > 0)
        };
        graph.node_ids().any(inexact)
    }

    /// Compares what a run on the backend has left with what it should have.
    fn compare_backend(&self, memory: &Memory, accuracy: &MathAccuracy) -> Result<(), Fault> {
        memory.check_guards()?;
        let results = self.results_in(memory);
        match self.case.arithmetic {
            Arithmetic::Rounded { strict: true, .. } if !self.has_inexact(accuracy) => {
                self.compare_with(&self.unoptimised, &results)
            }
            _ => self.compare_with_accuracy(&results, accuracy),
        }
    }

    /// Compares results bit for bit.
    pub(crate) fn compare_with(&self, expected: &[Array], got: &[&[u8]]) -> Result<(), Fault> {
        let results = self.expected.iter().zip(expected).zip(got);
        let same = |_: usize, expected: Scalar, got: Scalar| same_value(expected, got);
        for (((name, _), expected), got) in results {
            if let Some(element) = first_difference(name, expected, got, same) {
                return Err(element.into());
            }
        }
        Ok(())
    }

    /// Compares results with the reference evaluator's, as the arithmetic says.
    pub(crate) fn compare_with_reference(&self, got: &[&[u8]]) -> Result<(), Fault> {
        let arithmetic = self.case.arithmetic;
        let rounded = matches!(arithmetic, Arithmetic::Rounded { .. });
        for (at, ((name, expected), got)) in self.expected.iter().zip(got).enumerate() {
            let alike = |flat: usize, expected: Scalar, got: Scalar| {
                agree(expected, got, arithmetic)
                    || rounded && self.roundings().admit(at, flat, expected, got)
            };
            if let Some(element) = first_difference(name, expected, got, alike) {
                return Err(element.into());
            }
        }
        Ok(())
    }

    /// The same for results of a backend that states how near its functions are: where the program has such functions, a
    /// result may also be what these could have given, through everything that is computed from them.
    pub(crate) fn compare_with_accuracy(
        &self,
        got: &[&[u8]],
        accuracy: &MathAccuracy,
    ) -> Result<(), Fault> {
        if !self.has_inexact(accuracy) {
            return self.compare_with_reference(got);
        }
        // Another backend's accuracy is another, so these are not kept.
        let roundings = OnceCell::new();
        let disturbed = || Roundings::new(&self.case, &self.plan, &self.binding, accuracy);
        for (at, ((name, expected), got)) in self.expected.iter().zip(got).enumerate() {
            let alike = |flat: usize, expected: Scalar, got: Scalar| {
                agree(expected, got, self.case.arithmetic)
                    || roundings
                        .get_or_init(disturbed)
                        .admit(at, flat, expected, got)
            };
            if let Some(element) = first_difference(name, expected, got, alike) {
                return Err(element.into());
            }
        }
        Ok(())
    }

    fn roundings(&self) -> &Roundings {
        let exact = MathAccuracy::exact();
        self.roundings
            .get_or_init(|| Roundings::new(&self.case, &self.plan, &self.binding, &exact))
    }
}
