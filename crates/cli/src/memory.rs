//! The memory plan: everything that a run keeps in memory, before anything runs.

use crate::failure::Failure;
use crate::units;
use loopwright::backend::Stages;
use loopwright::graph::{Binding, Graph, NodeId, NodeOp};
use loopwright::kernel::{Block, Function, Inst, Module, Space, Stmt, Type};
use loopwright::lower::KernelParam;
use loopwright::ops::DType;

/// What memory is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    /// Given and only read.
    Input,
    /// Given and kept.
    State,
    /// Values written in the program.
    Constant,
    /// A result.
    Output,
    /// Results on the way, for the whole run.
    Scratch,
    /// Results on the way, on the stack of each thread.
    Private,
}

impl Role {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Role::Input => "input",
            Role::State => "state",
            Role::Constant => "constant",
            Role::Output => "output",
            Role::Scratch => "scratch",
            Role::Private => "private",
        }
    }
}

/// A piece of memory.
#[derive(Clone, Debug)]
pub(crate) struct Buffer {
    pub(crate) role: Role,
    pub(crate) name: String,
    /// Elements, as text forms write them.
    pub(crate) element: String,
    pub(crate) shape: Vec<u64>,
    pub(crate) bytes: u128,
    /// How many there are; tiles written out have many of one kind.
    pub(crate) copies: u64,
}

/// All memory of a run.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) buffers: Vec<Buffer>,
    /// Bytes on each thread's stack, at most.
    pub(crate) stack: u128,
}

impl Plan {
    /// The memory that a program needs at these sizes.
    pub(crate) fn new(stages: &Stages, binding: &Binding) -> Result<Plan, Failure> {
        let graph = &stages.graph;
        let mut buffers = Vec::new();
        for param in &stages.lowered.params {
            buffers.push(match param {
                // A log is no memory of the program, and lowering asks for none.
                KernelParam::Size(_) | KernelParam::Log => continue,
                KernelParam::Parameter(node) => {
                    let role = match graph.node(*node).op {
                        NodeOp::State => Role::State,
                        _ => Role::Input,
                    };
                    of_node(graph, binding, role, *node, graph.node_name(*node))
                }
                KernelParam::Constant(node) => of_node(
                    graph,
                    binding,
                    Role::Constant,
                    *node,
                    graph.node_name(*node),
                ),
                KernelParam::Output(at) => {
                    let output = &graph.outputs()[*at as usize];
                    of_node(
                        graph,
                        binding,
                        Role::Output,
                        output.node,
                        output.name.clone(),
                    )
                }
                KernelParam::Scratch(at) => {
                    let scratch = &stages.lowered.scratch[*at as usize];
                    let elements = scratch
                        .elements
                        .evaluate(&|symbol| Some(binding.value(symbol)))
                        .map_err(|error| {
                            let names = |symbol| graph.symbol_name(symbol);
                            Failure::new(format!(
                                "the size of the scratch memory `{}` cannot be computed: {}",
                                scratch.name,
                                error.display(&names)
                            ))
                        })?;
                    let elements = elements.max(0) as u64;
                    of_elements(Role::Scratch, &scratch.name, scratch.dtype, vec![elements])
                }
            });
        }
        let mut stack = 0;
        for function in &stages.module.functions {
            stack += private(&stages.module, function, &function.body, &mut buffers);
        }
        Ok(Plan { buffers, stack })
    }

    /// Bytes on the heap while the program runs; everything is there at the same time.
    pub(crate) fn peak(&self) -> u128 {
        let on_heap = self
            .buffers
            .iter()
            .filter(|buffer| buffer.role != Role::Private);
        on_heap.map(|buffer| buffer.bytes).sum()
    }

    /// Refuses what this machine has no memory for. Without that the system would promise the memory
    /// and end the process when it is used.
    pub(crate) fn check_fits(&self) -> Result<(), Failure> {
        let Some(available) = available() else {
            return Ok(());
        };
        if self.peak() <= available {
            return Ok(());
        }
        let largest = self
            .buffers
            .iter()
            .filter(|buffer| buffer.role != Role::Private)
            .max_by_key(|buffer| buffer.bytes);
        let largest = largest.map_or_else(String::new, |buffer| {
            format!(
                ", {} of it for {} `{}`",
                units::bytes(buffer.bytes),
                buffer.role.name(),
                buffer.name
            )
        });
        Err(Failure::new(format!(
            "out of memory: the program needs {} ({} bytes){largest}, and {} are available",
            units::bytes(self.peak()),
            self.peak(),
            units::bytes(available)
        ))
        .help("use smaller sizes with `--set`; `loopwright dump PROGRAM --stage plan` shows what needs how much"))
    }
}

fn of_node(graph: &Graph, binding: &Binding, role: Role, node: NodeId, name: String) -> Buffer {
    let shape = binding.shape(graph, node);
    let shape = shape.iter().map(|size| *size as u64).collect();
    of_elements(role, &name, graph.node(node).dtype, shape)
}

fn of_elements(role: Role, name: &str, dtype: DType, shape: Vec<u64>) -> Buffer {
    let elements: u128 = shape.iter().map(|size| u128::from(*size)).product();
    Buffer {
        role,
        name: name.to_owned(),
        element: dtype.to_string(),
        bytes: elements * dtype.bytes() as u128,
        shape,
        copies: 1,
    }
}

/// Collects the arrays that a block makes on the stack; gives the bytes that it needs there, at most.
/// An array lives until its block ends, so blocks side by side use the same bytes.
fn private(module: &Module, function: &Function, block: &Block, buffers: &mut Vec<Buffer>) -> u128 {
    let mut own = 0;
    let mut inside = 0;
    let mut enter = |block: &Block, buffers: &mut Vec<Buffer>| {
        inside = inside.max(private(module, function, block, buffers));
    };
    for statement in block {
        match statement {
            Stmt::Let(value, Inst::Alloc { space, ty, count }) if *space == Space::Private => {
                let name = match function.values[value.0 as usize].name.as_str() {
                    "" => format!("%{}", value.0),
                    name => name.to_owned(),
                };
                let buffer = Buffer {
                    role: Role::Private,
                    name,
                    element: element_name(ty),
                    shape: vec![*count],
                    bytes: type_bytes(module, ty) * u128::from(*count),
                    copies: 1,
                };
                own += buffer.bytes;
                let same = buffers.iter_mut().find(|known| {
                    known.role == buffer.role
                        && known.name == buffer.name
                        && known.element == buffer.element
                        && known.shape == buffer.shape
                });
                match same {
                    Some(same) => same.copies += 1,
                    None => buffers.push(buffer),
                }
            }
            Stmt::For { body, .. } => enter(body, buffers),
            Stmt::While { head, body, .. } => {
                enter(head, buffers);
                enter(body, buffers);
            }
            Stmt::If {
                then, otherwise, ..
            } => {
                enter(then, buffers);
                enter(otherwise, buffers);
            }
            Stmt::Let(..)
            | Stmt::Store { .. }
            | Stmt::Call(..)
            | Stmt::Break
            | Stmt::Continue
            | Stmt::Return(_)
            | Stmt::Barrier { .. }
            | Stmt::AsyncCopy { .. }
            | Stmt::AsyncWait { .. }
            | Stmt::TileStore { .. } => {}
        }
    }
    own + inside
}

fn element_name(ty: &Type) -> String {
    match ty {
        Type::Scalar(dtype) => dtype.to_string(),
        Type::Vector(dtype, lanes) => format!("{dtype}x{lanes}"),
        Type::Pointer(..) => "pointer".to_owned(),
        Type::Array(element, count) => format!("{}[{count}]", element_name(element)),
        Type::Struct(_) => "struct".to_owned(),
        Type::Tile(tile) => format!("{}[{}, {}]", tile.dtype, tile.rows, tile.cols),
    }
}

fn type_bytes(module: &Module, ty: &Type) -> u128 {
    match ty {
        Type::Scalar(dtype) => dtype.bytes() as u128,
        Type::Vector(dtype, lanes) => dtype.bytes() as u128 * u128::from(*lanes),
        Type::Pointer(..) => 8,
        Type::Array(element, count) => type_bytes(module, element) * u128::from(*count),
        Type::Struct(id) => module.structs.get(id.0 as usize).map_or(0, |of| {
            of.fields.iter().map(|(_, ty)| type_bytes(module, ty)).sum()
        }),
        Type::Tile(tile) => {
            tile.dtype.bytes() as u128 * u128::from(tile.rows) * u128::from(tile.cols)
        }
    }
}

/// Bytes that this process may hope to get; `None` where the system does not say. On Linux what the
/// kernel estimates to be available without ending anybody, and no more than the control group may
/// have.
pub(crate) fn available() -> Option<u128> {
    let machine = std::fs::read_to_string("/proc/meminfo").ok();
    let machine = machine.as_deref().and_then(from_meminfo);
    let group = std::fs::read_to_string("/sys/fs/cgroup/memory.max").ok();
    let group = group.and_then(|text| text.trim().parse().ok());
    match (machine, group) {
        (Some(machine), Some(group)) => Some(u128::min(machine, group)),
        (machine, group) => machine.or(group),
    }
}

fn from_meminfo(text: &str) -> Option<u128> {
    let kibibytes = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        let amount = line.strip_prefix(':')?.trim().strip_suffix("kB")?;
        amount.trim().parse::<u128>().ok()
    };
    Some((kibibytes("MemAvailable")? + kibibytes("SwapFree").unwrap_or(0)) * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn available_memory_counts_swap() {
        let text = "MemTotal:  100 kB\nMemAvailable:   40 kB\nSwapFree:   2 kB\n";
        assert_eq!(from_meminfo(text), Some(42 * 1024));
        assert_eq!(from_meminfo("MemTotal: 1 kB\n"), None);
    }
}
