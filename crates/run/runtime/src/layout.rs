//! What a program needs at given sizes, before it meets a context.

use crate::error::RuntimeError;
use crate::ledger::Use;
use crate::node::ArrayInfo;
use loopwright_backend::{ALIGNMENT, LaunchArgument};
use loopwright_compile::{Packed, Program, pack};
use loopwright_graph::{Binding, Graph, NodeId, NodeOp};
use loopwright_lower::KernelParam;
use loopwright_ops::DType;
use loopwright_symbolic::Symbol;
use std::sync::Arc;

/// Behind a node's name: the value of that node that another stream has, in the merge buffer.
pub const MERGE: &str = ".merge";

/// A program at given sizes: its arrays, its arguments, its scratch memory.
pub(crate) struct Layout {
    pub(crate) program: Arc<Program>,
    /// Its sizes; those of statics are not said.
    pub(crate) binding: Binding,
    /// Arrays that are a context's: inputs, states and outputs.
    pub(crate) arrays: Vec<ArrayLayout>,
    /// By the kernel's parameters.
    pub(crate) arguments: Vec<LaunchArgument<LayoutMemory>>,
    pub(crate) constants: Vec<ConstantLayout>,
    pub(crate) scratch: Vec<ScratchLayout>,
    pub(crate) packed: Packed,
    pub(crate) statics: Vec<StaticLayout>,
    pub(crate) merge: Option<MergeLayout>,
}

pub(crate) struct ArrayLayout {
    pub(crate) info: Arc<ArrayInfo>,
    pub(crate) usage: Use,
    /// Input, state or output.
    pub(crate) role: &'static str,
}

pub(crate) struct ScratchLayout {
    pub(crate) name: String,
    pub(crate) bytes: usize,
    pub(crate) live: std::ops::Range<u32>,
}

pub(crate) struct ConstantLayout {
    pub(crate) name: String,
    pub(crate) dtype: DType,
    pub(crate) shape: Vec<usize>,
    /// Its place among the program's constants.
    pub(crate) at: usize,
    pub(crate) hash: blake3::Hash,
}

pub(crate) struct StaticLayout {
    pub(crate) symbol: Symbol,
    pub(crate) name: Arc<str>,
    pub(crate) low: i64,
    pub(crate) high: i64,
    /// What it is where nothing is said.
    pub(crate) default: Option<i64>,
}

pub(crate) struct MergeLayout {
    /// The node whose value on another stream it is.
    pub(crate) node: Arc<str>,
    /// What the kernel takes.
    pub(crate) info: ArrayInfo,
}

/// What memory of a program an argument is.
#[derive(Clone, Copy)]
pub(crate) enum LayoutMemory {
    /// By its place in [`Layout::arrays`].
    Array(usize),
    /// By its place in [`Layout::constants`].
    Constant(usize),
    /// By its place in [`Layout::scratch`].
    Scratch(usize),
    /// The log of stores.
    Log,
}

impl Layout {
    pub(crate) fn new(
        name: &str,
        program: &Arc<Program>,
        sizes: &[(&str, i64)],
    ) -> Result<Layout, RuntimeError> {
        let graph = program.graph();
        let binding = graph
            .bind_sizes(sizes)
            .map_err(|reason| RuntimeError::Sizes {
                code: name.to_owned(),
                reason: Box::new(reason),
            })?;
        let shape = |node: NodeId| -> Vec<usize> {
            let sizes = binding.shape(graph, node);
            sizes.iter().map(|size| *size as usize).collect()
        };
        let bytes = |shape: &[usize], dtype: DType| {
            // `bind_sizes` checked that this fits.
            shape.iter().product::<usize>() * dtype.bytes()
        };
        let requests = program.scratch_requests(&binding, ALIGNMENT as u64);
        // More than an address holds is too large, too.
        let requests = requests.and_then(|requests| {
            let fits = |bytes: u64| isize::try_from(bytes).is_ok();
            match requests.iter().position(|request| !fits(request.bytes)) {
                Some(at) => Err(&program.scratch()[at]),
                None => Ok(requests),
            }
        });
        let requests = requests.map_err(|scratch| RuntimeError::Code {
            code: name.to_owned(),
            reason: format!(
                "the size of the scratch memory `{}` is too large to be computed",
                scratch.name
            ),
        })?;
        let mut layout = Layout {
            program: Arc::clone(program),
            arrays: Vec::new(),
            arguments: Vec::with_capacity(program.params().len()),
            constants: Vec::new(),
            scratch: Vec::new(),
            packed: pack(&requests),
            statics: Vec::new(),
            merge: None,
            binding: binding.clone(),
        };
        for param in program.params() {
            let argument = match param {
                KernelParam::Parameter(node) | KernelParam::Constant(node) => {
                    let parts = graph.node(*node);
                    let shape = shape(*node);
                    let bytes = bytes(&shape, parts.dtype);
                    match (&parts.op, parts.name.strip_suffix(MERGE)) {
                        (NodeOp::Input, Some(merged)) => {
                            layout.merge = Some(MergeLayout {
                                node: merged.into(),
                                info: ArrayInfo {
                                    name: parts.name.as_str().into(),
                                    dtype: parts.dtype,
                                    shape: shape.into(),
                                    bytes,
                                },
                            });
                            LaunchArgument::Merge { bytes }
                        }
                        (NodeOp::Constant(_), _) => {
                            let at = layout.constants.len();
                            layout.constants.push(ConstantLayout {
                                name: graph.node_name(*node),
                                dtype: parts.dtype,
                                at,
                                hash: constant_hash(parts.dtype, &program.constants()[at]),
                                shape,
                            });
                            LaunchArgument::Memory(LayoutMemory::Constant(at))
                        }
                        (op, _) => {
                            let (usage, role) = match op {
                                NodeOp::State => (state_usage(graph, *node), "state"),
                                _ => (Use::Read, "input"),
                            };
                            layout.array(&parts.name, parts.dtype, shape, bytes, usage, role)
                        }
                    }
                }
                KernelParam::Output(at) => {
                    let output = &graph.outputs()[*at as usize];
                    let dtype = graph.node(output.node).dtype;
                    let shape = shape(output.node);
                    let bytes = bytes(&shape, dtype);
                    layout.array(&output.name, dtype, shape, bytes, Use::Overwrite, "output")
                }
                KernelParam::Scratch(at) => {
                    let scratch = &program.scratch()[*at as usize];
                    let request = &requests[*at as usize];
                    layout.scratch.push(ScratchLayout {
                        name: scratch.name.clone(),
                        bytes: request.bytes as usize,
                        live: request.live.clone(),
                    });
                    LaunchArgument::Memory(LayoutMemory::Scratch(layout.scratch.len() - 1))
                }
                KernelParam::Size(symbol) => {
                    match graph.statics().find(|found| found.symbol == *symbol) {
                        Some(found) => {
                            let (low, high) = binding.static_range(graph, *symbol);
                            layout.statics.push(StaticLayout {
                                symbol: *symbol,
                                name: found.name.into(),
                                low,
                                high,
                                default: found.default,
                            });
                            LaunchArgument::Static(layout.statics.len() - 1)
                        }
                        None => LaunchArgument::Integer(binding.value(*symbol)),
                    }
                }
                KernelParam::Log => LaunchArgument::Memory(LayoutMemory::Log),
            };
            layout.arguments.push(argument);
        }
        Ok(layout)
    }

    fn array(
        &mut self,
        name: &str,
        dtype: DType,
        shape: Vec<usize>,
        bytes: usize,
        usage: Use,
        role: &'static str,
    ) -> LaunchArgument<LayoutMemory> {
        self.arrays.push(ArrayLayout {
            info: Arc::new(ArrayInfo {
                name: name.into(),
                dtype,
                shape: shape.into(),
                bytes,
            }),
            usage,
            role,
        });
        LaunchArgument::Memory(LayoutMemory::Array(self.arrays.len() - 1))
    }
}

/// What a program does with a state.
fn state_usage(graph: &Graph, state: NodeId) -> Use {
    let updated = graph.updates().iter().any(|update| update.state == state);
    let read = graph
        .node_ids()
        .any(|node| graph.node(node).inputs.contains(&state));
    match (updated, read) {
        (true, true) => Use::Update,
        (true, false) => Use::Overwrite,
        (false, _) => Use::Read,
    }
}

fn constant_hash(dtype: DType, bytes: &[u8]) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    hasher.update(dtype.name().as_bytes());
    hasher.update(&[0]);
    hasher.update(bytes);
    hasher.finalize()
}
