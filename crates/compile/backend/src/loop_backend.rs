//! The loop backend: a loop tree in, something that runs on host memory out.

use crate::describe::Describe;
use crate::error::BackendError;
use crate::kernel_backend::{CompileOptions, Executable};
use crate::unit::CompileUnit;
use loopwright_graph::{Binding, Graph, NodeId};
use loopwright_kernel::Argument;
use loopwright_looptree::{
    Allocation, Arithmetic, LoopTree, NodeMemory, Plan, Schedule, execute, print_tree,
};
use loopwright_lower::KernelParam;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// What turns loop trees into something that runs on host memory. The level of least effort: about a
/// dozen lines.
pub trait LoopBackend: Describe {
    /// Makes something that runs of a program.
    ///
    /// # Errors
    /// [`BackendError::Unsupported`] for what it cannot do, with the reason.
    fn compile(&self, program: &LoopProgram, options: &CompileOptions) -> LoopResult;
}

/// What comes of compiling a loop tree.
pub type LoopResult = Result<Box<dyn LoopCode>, BackendError>;

/// What a loop backend has made of a program. A function of the memory is one.
pub trait LoopCode: Send + Sync {
    /// Runs the program to its end.
    ///
    /// # Errors
    /// Where it failed.
    fn run(&self, memory: &mut LoopMemory<'_>) -> Result<(), BackendError>;

    /// What was made, in words or code; nothing if the tree says it all.
    fn code(&self) -> Option<String> {
        None
    }
}

impl<F> LoopCode for F
where
    F: Fn(&mut LoopMemory<'_>) -> Result<(), BackendError> + Send + Sync,
{
    fn run(&self, memory: &mut LoopMemory<'_>) -> Result<(), BackendError> {
        self(memory)
    }
}

/// A program as a loop backend is given it: a graph whose results are stores, the loops that compute
/// it, and what follows from them. Clones share everything.
#[derive(Clone)]
pub struct LoopProgram {
    name: Arc<str>,
    plan: Plan,
}

impl LoopProgram {
    fn new(unit: &CompileUnit<'_>) -> Result<LoopProgram, String> {
        // From here on they are known.
        unit.plan.allocations().map_err(|error| error.to_string())?;
        Ok(LoopProgram {
            name: unit.launch.kernel().into(),
            plan: unit.plan.clone(),
        })
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The program; every result is a node of its own ([`Graph::with_stores`]), and the changes that the schedule makes
    /// to it are made. Nodes that are new come last, behind their readers.
    pub fn graph(&self) -> &Graph {
        self.plan.graph()
    }

    /// The same without those changes: what the text of the schedule is for.
    pub fn written(&self) -> &Graph {
        self.plan.program()
    }

    /// The steps with their loops.
    pub fn schedule(&self) -> &Schedule {
        self.plan.schedule()
    }

    /// The loops and what they compute, in the order in which that runs.
    pub fn tree(&self) -> &LoopTree {
        self.plan.tree()
    }

    /// What the steps need memory for, how much of it and for how long.
    pub fn allocations(&self) -> &FxHashMap<NodeId, Allocation> {
        let known = self.plan.allocations();
        known.expect("they were computed when the program was made")
    }

    /// Code that runs the program's loops as they stand and computes the elements with this arithmetic.
    /// With [`loopwright_ops::evaluate`] that is a whole backend.
    ///
    /// # Errors
    /// None; it is what [`LoopBackend::compile`] gives.
    pub fn executed_with<A>(&self, arithmetic: A) -> LoopResult
    where
        A: Arithmetic + Clone + Send + Sync + 'static,
    {
        let program = self.clone();
        let run = move |memory: &mut LoopMemory<'_>| program.execute(memory, arithmetic.clone());
        Ok(Box::new(run))
    }

    /// Runs the program's loops as they stand once; the caller computes the elements.
    ///
    /// # Errors
    /// Where the arithmetic refuses an op.
    pub fn execute<A: Arithmetic>(
        &self,
        memory: &mut LoopMemory<'_>,
        arithmetic: A,
    ) -> Result<(), BackendError> {
        let binding = memory.binding.clone();
        let done = execute(self.graph(), self.tree(), &binding, memory, arithmetic);
        done.map_err(|error| BackendError::Run {
            kernel: self.name().to_owned(),
            reason: error.to_string(),
        })
    }
}

/// The memory of one run, by the nodes of the program.
pub struct LoopMemory<'a> {
    binding: Binding,
    places: &'a FxHashMap<NodeId, usize>,
    arguments: Vec<Held<'a>>,
}

enum Held<'a> {
    Read(&'a [u8]),
    Write(&'a mut [u8]),
    None,
}

impl LoopMemory<'_> {
    /// The values of sizes and statics.
    pub fn binding(&self) -> &Binding {
        &self.binding
    }

    /// The bytes of an input, a state, an array of constants, or of what is stored to an output or a
    /// state; `None` for all other nodes.
    pub fn bytes(&self, node: NodeId) -> Option<&[u8]> {
        match self.arguments.get(*self.places.get(&node)?)? {
            Held::Read(bytes) => Some(bytes),
            Held::Write(bytes) => Some(bytes),
            Held::None => None,
        }
    }

    /// The same, to be written; `None` for what is only read.
    pub fn bytes_mut(&mut self, node: NodeId) -> Option<&mut [u8]> {
        match self.arguments.get_mut(*self.places.get(&node)?)? {
            Held::Write(bytes) => Some(bytes),
            Held::Read(_) | Held::None => None,
        }
    }
}

impl NodeMemory for LoopMemory<'_> {
    fn bytes(&self, node: NodeId) -> Option<&[u8]> {
        LoopMemory::bytes(self, node)
    }

    fn bytes_mut(&mut self, node: NodeId) -> Option<&mut [u8]> {
        LoopMemory::bytes_mut(self, node)
    }
}

/// What a loop backend has made, called as a kernel is.
pub(crate) struct LoopExecutable {
    program: LoopProgram,
    code: Box<dyn LoopCode>,
    /// What the arguments are.
    params: Vec<KernelParam>,
    /// By node: which argument holds its memory.
    places: FxHashMap<NodeId, usize>,
}

impl LoopExecutable {
    pub(crate) fn compile(
        backend: &dyn LoopBackend,
        unit: &CompileUnit<'_>,
        options: &CompileOptions,
    ) -> Result<LoopExecutable, BackendError> {
        let refuse = |reason: String| BackendError::Unsupported {
            backend: backend.name().to_owned(),
            kernel: unit.launch.kernel().to_owned(),
            reason,
        };
        if unit.launch.params.contains(&KernelParam::Log) {
            return Err(refuse(
                "stores are logged by kernels, and this backend takes loop trees".to_owned(),
            ));
        }
        let program = LoopProgram::new(unit).map_err(refuse)?;
        let mut places = FxHashMap::default();
        for (at, param) in unit.launch.params.iter().enumerate() {
            match param {
                KernelParam::Parameter(node) | KernelParam::Constant(node) => {
                    places.insert(*node, at);
                }
                KernelParam::Output(output) => {
                    let output = &unit.plan.graph().outputs()[*output as usize];
                    places.insert(output.node, at);
                }
                KernelParam::Scratch(_) | KernelParam::Size(_) | KernelParam::Log => {}
            }
        }
        for update in unit.plan.graph().updates() {
            if let Some(state) = places.get(&update.state).copied() {
                places.insert(update.value, state);
            }
        }
        Ok(LoopExecutable {
            code: backend.compile(&program, options)?,
            program,
            params: unit.launch.params.clone(),
            places,
        })
    }
}

impl Executable for LoopExecutable {
    unsafe fn run(&self, kernel: &str, arguments: &mut [Argument<'_>]) -> Result<(), BackendError> {
        let wrong = |reason: String| BackendError::Call {
            kernel: kernel.to_owned(),
            reason,
        };
        if kernel != self.program.name() {
            return Err(wrong("the code has no kernel of that name".to_owned()));
        }
        if arguments.len() != self.params.len() {
            let (takes, got) = (self.params.len(), arguments.len());
            return Err(wrong(format!("it takes {takes} arguments, not {got}")));
        }
        let graph = self.program.graph();
        let mut sizes = Vec::new();
        let mut held = Vec::with_capacity(arguments.len());
        for (param, argument) in self.params.iter().zip(arguments) {
            held.push(match argument {
                Argument::Read(bytes) => Held::Read(bytes),
                Argument::Write(bytes) => Held::Write(bytes),
                Argument::Shared(_) | Argument::Local(_) => Held::None,
                Argument::Scalar(value) => {
                    if let KernelParam::Size(symbol) = param {
                        let name = graph.integers().find(|(found, ..)| found == symbol);
                        sizes.extend(name.map(|(_, name, _)| (name, value.bits() as i64)));
                    }
                    Held::None
                }
            });
        }
        let binding = graph
            .bind(&sizes)
            .map_err(|error| wrong(error.to_string()))?;
        for (node, at) in &self.places {
            let bytes = match &held[*at] {
                Held::Read(bytes) => bytes.len(),
                Held::Write(bytes) => bytes.len(),
                Held::None => 0,
            };
            let needed = binding.elements(graph, *node) as usize * graph.node(*node).dtype.bytes();
            if bytes != needed {
                let name = graph.node_name(*node);
                return Err(wrong(format!(
                    "`{name}` has {needed} bytes, and {bytes} are given"
                )));
            }
        }
        self.code.run(&mut LoopMemory {
            binding,
            places: &self.places,
            arguments: held,
        })
    }

    fn code(&self) -> String {
        let tree = || print_tree(self.program.graph(), self.program.tree());
        self.code.code().unwrap_or_else(tree)
    }
}
