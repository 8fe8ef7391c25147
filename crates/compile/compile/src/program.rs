//! Compiled programs: a graph, its schedule, the kernel made from them, and the code.

use crate::bound::Bound;
use crate::kernels::{Kernels, Plainer};
use crate::pack::Request;
use loopwright_backend::{BackendError, Executable, KernelLaunch};
use loopwright_graph::{Binding, Graph, GraphError, NodeOp};
use loopwright_kernel::Module;
use loopwright_kernel::passes::log_stores::StoreSite;
use loopwright_looptree::{LoopTree, Plan, Schedule};
use loopwright_lower::{KernelParam, LowerError, Scratch};
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

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
    /// Two programs of a batch with one name.
    #[error("two programs of the batch are called `{name}`; give each its own name")]
    SameName {
        /// The name.
        name: String,
    },
    /// Parts that cannot be handed to another backend.
    #[error("`{program}` cannot be run by several backends: {reason}")]
    Delegate {
        /// The program.
        program: String,
        /// Why.
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
    /// Memory that cannot be allocated.
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

impl ProgramError {
    /// Whether another schedule may help: this one is refused, or what was made of it is.
    pub(crate) fn is_about_schedule(&self) -> bool {
        match self {
            ProgramError::Lower(_)
            | ProgramError::Schedule(_)
            | ProgramError::Invalid { .. }
            | ProgramError::Backend(BackendError::Unsupported { .. }) => true,
            ProgramError::Graph(_)
            | ProgramError::Backend(_)
            | ProgramError::SameName { .. }
            | ProgramError::Delegate { .. }
            | ProgramError::NoSuchArray { .. }
            | ProgramError::Missing { .. }
            | ProgramError::Memory { .. }
            | ProgramError::OutOfMemory { .. } => false,
        }
    }
}

/// A program that can run, at any sizes.
///
/// A compiler makes it: its code is that of its kernel, so that it stays within memory that is laid out for it. With the code of
/// another program, safe functions would run a kernel on memory that it does not fit.
///
/// ```compile_fail,E0624
/// use loopwright_backend::Executable;
/// use loopwright_compile::{Kernels, Program};
/// use std::sync::Arc;
///
/// fn with_code_of_another(kernels: Kernels, code: Arc<dyn Executable>) -> Program {
///     Program::new(kernels, code)
/// }
/// ```
pub struct Program {
    kernels: Kernels,
    executable: Arc<dyn Executable>,
    /// Bytes of the arrays of constants, in the order of the kernel's parameters.
    constants: Vec<Vec<u8>>,
}

impl Program {
    /// A program from its kernels and the code that was made of them.
    pub(crate) fn new(kernels: Kernels, executable: Arc<dyn Executable>) -> Program {
        let graph = kernels.plan.graph();
        let constants = kernels.params.iter().filter_map(|param| match param {
            KernelParam::Constant(node) => match &graph.node(*node).op {
                NodeOp::Constant(values) => {
                    let width = graph.node(*node).dtype.bytes();
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
            kernels,
            executable,
        }
    }

    /// The program, its schedule and the loops that follow.
    pub fn plan(&self) -> &Plan {
        &self.kernels.plan
    }

    /// The graph, every result a node of its own, with the changes that the schedule makes.
    pub fn graph(&self) -> &Graph {
        self.kernels.plan.graph()
    }

    /// The same without the schedule's changes: what the reference evaluator takes.
    pub fn written(&self) -> &Graph {
        self.kernels.plan.program()
    }

    /// How it runs.
    pub fn schedule(&self) -> &Schedule {
        self.kernels.plan.schedule()
    }

    /// The loop tree.
    pub fn tree(&self) -> &LoopTree {
        self.kernels.plan.tree()
    }

    /// The name of its kernel in the compiled code.
    pub fn kernel(&self) -> &str {
        &self.kernels.name
    }

    /// The kernel after all passes: of this program alone, also where others share its code. Where it is several, one that
    /// calls them; see [`Kernels::module`].
    pub fn module(&self) -> Cow<'_, Module> {
        self.kernels.module()
    }

    /// The kernels, in the order in which they run.
    pub fn launches(&self) -> &[KernelLaunch] {
        &self.kernels.launches
    }

    /// Whether parts of the program are delegated to other backends than its own.
    pub fn is_delegated(&self) -> bool {
        self.kernels.is_delegated()
    }

    /// What the kernel's parameters are.
    pub fn params(&self) -> &[KernelParam] {
        &self.kernels.params
    }

    /// The stores that a run logs, by number; none unless the program was compiled for that
    /// ([`crate::Compiler::logging`]).
    pub fn log_sites(&self) -> &[StoreSite] {
        &self.kernels.log_sites
    }

    /// Annotations of the schedule that were not carried out, each with the reason, and what was
    /// rewritten in the graph.
    pub fn notes(&self) -> &[String] {
        &self.kernels.notes
    }

    /// Where its schedule stands in for one that was chosen first and refused: see [`Plainer`].
    pub fn plainer(&self) -> Option<&Plainer> {
        self.kernels.plainer.as_ref()
    }

    /// The scratch memory that a run needs.
    pub fn scratch(&self) -> &[Scratch] {
        &self.kernels.scratch
    }

    /// By scratch number: the steps of a run that use it, as a half-open range; empty if none does.
    /// Two whose ranges do not overlap may lie in the same memory; see [`crate::pack`]. What lies in
    /// scratch memory before a run does not matter.
    pub fn scratch_live(&self) -> &[Range<u32>] {
        &self.kernels.scratch_live
    }

    /// What scratch memory a run at these sizes asks for, by number.
    ///
    /// # Errors
    /// The first one whose size is too large to be counted.
    pub fn scratch_requests(
        &self,
        binding: &Binding,
        align: u64,
    ) -> Result<Vec<Request>, &Scratch> {
        let requests = self.scratch().iter().zip(self.scratch_live());
        let request = |scratch: &Scratch, live: &Range<u32>| {
            let value = |symbol| Some(binding.value(symbol));
            let elements = scratch.elements.evaluate(&value).ok()?;
            let bytes = (elements.max(0) as u64).checked_mul(scratch.dtype.bytes() as u64)?;
            Some(Request {
                bytes,
                align,
                live: live.clone(),
            })
        };
        requests
            .map(|(scratch, live)| request(scratch, live).ok_or(scratch))
            .collect()
    }

    /// The code that the backend made, with that of all programs it was compiled together with.
    pub fn code(&self) -> String {
        self.executable.code()
    }

    /// The compiled code.
    pub fn executable(&self) -> &Arc<dyn Executable> {
        &self.executable
    }

    /// Bytes of the arrays of constants, in the order of the kernel's parameters.
    pub fn constants(&self) -> &[Vec<u8>] {
        &self.constants
    }

    /// Prepares a run with these sizes; memory is bound next.
    pub fn bind<'m>(self: &Arc<Program>, sizes: &[(&str, i64)]) -> Result<Bound<'m>, ProgramError> {
        let binding = self.graph().bind(sizes)?;
        Ok(Bound::new(self.clone(), binding))
    }
}
