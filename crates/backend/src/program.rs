//! Compiled programs: a graph, its schedule, the kernel made from them, and the code.

use crate::bound::Bound;
use crate::kernel_backend::{BackendError, CompileOptions, Executable, KernelBackend};
use loopwright_graph::{Graph, GraphError, NodeOp};
use loopwright_kernel::Module;
use loopwright_kernel::passes::Pipeline;
use loopwright_looptree::{LoopTree, Schedule, Target, default_schedule, print_schedule};
use loopwright_lower::{KernelParam, LowerError, Lowered, Scratch, lower};
use rustc_hash::FxHashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The name of the kernel that a program becomes.
pub const KERNEL: &str = "program";

/// What can go wrong between a graph and a running program.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// Lowering failed.
    #[error(transparent)]
    Lower(#[from] LowerError),
    /// The schedule does not fit the graph.
    #[error(transparent)]
    Schedule(#[from] loopwright_looptree::ScheduleError),
    /// Sizes that do not fit the program.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// The backend failed.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// The kernel made is not valid; a bug in Loopwright.
    #[error("internal error: {stage} made an invalid kernel: {reason}; please report this program")]
    Invalid {
        /// What made it.
        stage: String,
        /// What is wrong with it.
        reason: String,
    },
    /// An array that the program does not have.
    #[error("the program has no {what} `{name}`; it has [{known}]")]
    NoSuchArray {
        /// Input, state or output.
        what: &'static str,
        /// The name given.
        name: String,
        /// What there is.
        known: String,
    },
    /// An array that was not given.
    #[error("{what} `{name}` ({expected}) was not given")]
    Missing {
        /// Input or state.
        what: &'static str,
        /// Its name.
        name: String,
        /// Dtype and shape.
        expected: String,
    },
    /// Memory that does not fit.
    #[error("`{name}` needs {expected}, and {got} given")]
    Memory {
        /// The array.
        name: String,
        /// Dtype, shape and bytes.
        expected: String,
        /// What is wrong with what was given.
        got: String,
    },
    /// Memory that is not to be had.
    #[error(
        "out of memory: `{name}` needs {bytes} bytes; use smaller sizes, for example with `--set`"
    )]
    OutOfMemory {
        /// The array.
        name: String,
        /// How much it needs.
        bytes: u128,
    },
}

/// Compiles programs for one backend, each only once.
pub struct Compiler {
    backend: Arc<dyn KernelBackend>,
    options: CompileOptions,
    pipeline: Pipeline,
    programs: Mutex<FxHashMap<blake3::Hash, Arc<Program>>>,
    compiled: AtomicU64,
}

/// The stages of a program up to the kernel that a backend is given.
#[derive(Clone, Debug)]
pub struct Stages {
    /// The graph, every result a node of its own.
    pub graph: Graph,
    /// How it runs.
    pub schedule: Schedule,
    /// Lowered, before any pass.
    pub lowered: Lowered,
    /// The kernel after all passes.
    pub module: Module,
}

impl Stages {
    /// Takes a graph as far as an optimised kernel. `schedule` refers to
    /// [`Graph::with_stores`]; without one, the default for the target is taken.
    pub fn new(
        graph: &Graph,
        schedule: Option<&Schedule>,
        target: &Target,
        pipeline: &Pipeline,
    ) -> Result<Stages, ProgramError> {
        let (graph, schedule) = scheduled(graph, schedule, target)?;
        Stages::lowered(graph, schedule, pipeline)
    }

    /// The same from a graph whose results are stores, and its schedule.
    fn lowered(
        graph: Graph,
        schedule: Schedule,
        pipeline: &Pipeline,
    ) -> Result<Stages, ProgramError> {
        let lowered = lower(&graph, &schedule, KERNEL)?;
        validate(&lowered.module, "lowering")?;
        let mut module = lowered.module.clone();
        pipeline.run(&mut module, &mut |_, _| {});
        validate(&module, "the passes")?;
        Ok(Stages {
            graph,
            schedule,
            lowered,
            module,
        })
    }
}

/// The graph with its results as stores, and the schedule given or made for it.
fn scheduled(
    graph: &Graph,
    schedule: Option<&Schedule>,
    target: &Target,
) -> Result<(Graph, Schedule), ProgramError> {
    let graph = graph.clone().with_stores();
    let schedule = match schedule {
        Some(schedule) => schedule.clone(),
        None => default_schedule(&graph, target)?,
    };
    Ok((graph, schedule))
}

fn validate(module: &Module, stage: &str) -> Result<(), ProgramError> {
    loopwright_kernel::validate(module).map_err(|error| ProgramError::Invalid {
        stage: stage.to_owned(),
        reason: error.to_string(),
    })
}

impl Compiler {
    /// A compiler for a backend.
    pub fn new(backend: Arc<dyn KernelBackend>, options: CompileOptions) -> Compiler {
        Compiler {
            backend,
            options,
            pipeline: Pipeline::standard(),
            programs: Mutex::default(),
            compiled: AtomicU64::new(0),
        }
    }

    /// The same with other passes.
    pub fn with_pipeline(mut self, pipeline: Pipeline) -> Compiler {
        self.pipeline = pipeline;
        self
    }

    /// The backend.
    pub fn backend(&self) -> &Arc<dyn KernelBackend> {
        &self.backend
    }

    /// How many programs were compiled, not counting those that had been compiled before.
    pub fn compile_count(&self) -> u64 {
        self.compiled.load(Ordering::Relaxed)
    }

    /// Everything that decides what code comes out: the program with its layouts and dtypes, its
    /// schedule, the backend and what it compiles for, the options, and our own version.
    fn key(&self, graph: &Graph, schedule: &Schedule) -> blake3::Hash {
        let text = format!(
            "{}\n{graph}\n{}\n{}\n{:?}\n{}",
            env!("CARGO_PKG_VERSION"),
            print_schedule(graph, schedule),
            self.backend.name(),
            self.backend.target(),
            self.options.strict,
        );
        blake3::hash(text.as_bytes())
    }

    /// The compiled program; compiled only if the same one has not been before.
    pub fn compile(
        &self,
        graph: &Graph,
        schedule: Option<&Schedule>,
    ) -> Result<Arc<Program>, ProgramError> {
        let (graph, schedule) = scheduled(graph, schedule, &self.backend.target())?;
        let key = self.key(&graph, &schedule);
        let lock = |programs: &Mutex<FxHashMap<_, Arc<Program>>>| {
            let programs = programs.lock().unwrap_or_else(PoisonError::into_inner);
            programs.get(&key).cloned()
        };
        if let Some(program) = lock(&self.programs) {
            return Ok(program);
        }
        let stages = Stages::lowered(graph, schedule, &self.pipeline)?;
        let executable = self.backend.compile(&stages.module, &self.options)?;
        self.compiled.fetch_add(1, Ordering::Relaxed);
        let program = Arc::new(Program::new(stages, executable));
        self.programs
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(key, program.clone());
        Ok(program)
    }
}

/// A program that can run, at any sizes.
pub struct Program {
    stages: Stages,
    executable: Arc<dyn Executable>,
    /// Bytes of the arrays of constants, in the order of the kernel's parameters.
    constants: Vec<Vec<u8>>,
}

impl Program {
    /// A program from its stages and compiled code that holds the kernel [`KERNEL`] of
    /// `stages.module`.
    pub fn new(stages: Stages, executable: Arc<dyn Executable>) -> Program {
        let constants = stages
            .lowered
            .params
            .iter()
            .filter_map(|param| match param {
                KernelParam::Constant(node) => match &stages.graph.node(*node).op {
                    NodeOp::Constant(values) => {
                        let width = stages.graph.node(*node).dtype.bytes();
                        let mut bytes = vec![0; values.len() * width];
                        for (value, bytes) in values.iter().zip(bytes.chunks_exact_mut(width)) {
                            value.write(bytes);
                        }
                        Some(bytes)
                    }
                    _ => None,
                },
                _ => None,
            });
        Program {
            constants: constants.collect(),
            stages,
            executable,
        }
    }

    /// The graph, every result a node of its own.
    pub fn graph(&self) -> &Graph {
        &self.stages.graph
    }

    /// How it runs.
    pub fn schedule(&self) -> &Schedule {
        &self.stages.schedule
    }

    /// The loop tree.
    pub fn tree(&self) -> &LoopTree {
        &self.stages.lowered.tree
    }

    /// The kernel after all passes.
    pub fn module(&self) -> &Module {
        &self.stages.module
    }

    /// What the kernel's parameters are.
    pub fn params(&self) -> &[KernelParam] {
        &self.stages.lowered.params
    }

    /// Annotations of the schedule that were not carried out, each with the reason.
    pub fn notes(&self) -> &[String] {
        &self.stages.lowered.notes
    }

    /// The scratch memory that a run needs.
    pub fn scratch(&self) -> &[Scratch] {
        &self.stages.lowered.scratch
    }

    /// The code that the backend made.
    pub fn code(&self) -> String {
        self.executable.code()
    }

    /// The compiled code.
    pub fn executable(&self) -> &Arc<dyn Executable> {
        &self.executable
    }

    pub(crate) fn constants(&self) -> &[Vec<u8>] {
        &self.constants
    }

    /// Prepares a run with these sizes; memory is bound next.
    pub fn bind<'m>(self: &Arc<Program>, sizes: &[(&str, i64)]) -> Result<Bound<'m>, ProgramError> {
        let binding = self.graph().bind(sizes)?;
        Ok(Bound::new(self.clone(), binding))
    }
}
