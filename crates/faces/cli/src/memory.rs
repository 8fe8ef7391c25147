//! Memory, before anything runs: whether it can be allocated, and what lies on the stack.

use crate::failure::Failure;
use crate::units;
use loopwright::kernel::{Block, Function, Inst, Module, Space, Stmt, Type};
use loopwright::runtime::Plan;

/// Refuses what this machine has no memory for. Without that the system would promise the memory
/// and end the process when it is used.
pub(crate) fn check_fits(plan: &Plan) -> Result<(), Failure> {
    let Some(available) = available() else {
        return Ok(());
    };
    let needed = total(plan);
    if needed <= available {
        return Ok(());
    }
    let largest = plan.entries.iter().max_by_key(|entry| entry.bytes);
    let largest = largest.map_or_else(String::new, |entry| {
        format!(
            ", {} of it for {} `{}`",
            units::bytes(entry.bytes as u128),
            entry.role.name(),
            entry.name
        )
    });
    Err(Failure::new(format!(
        "out of memory: the program needs {} ({needed} bytes){largest}, and {} are available",
        units::bytes(needed),
        units::bytes(available)
    ))
    .help("use smaller sizes with `--set`; `loopwright dump PROGRAM --stage plan` shows what needs how much"))
}

/// Bytes of all pools. Those of a plan that cannot be carried out may be more than an address holds.
pub(crate) fn total(plan: &Plan) -> u128 {
    plan.pools.iter().map(|bytes| *bytes as u128).sum()
}

/// Results on the way that a kernel keeps on the stack of each thread.
#[derive(Default)]
pub(crate) struct Stack {
    pub(crate) arrays: Vec<StackArray>,
    /// Bytes, at most.
    pub(crate) bytes: u128,
}

/// An array on the stack.
pub(crate) struct StackArray {
    pub(crate) name: String,
    /// Elements, as text forms write them.
    element: String,
    count: u64,
    pub(crate) bytes: u128,
    /// How many there are; tiles written out have many of one kind.
    pub(crate) copies: u64,
}

impl StackArray {
    /// What it holds, as arrays are described.
    pub(crate) fn describe(&self) -> String {
        format!("{}[{}]", self.element, self.count)
    }
}

impl Stack {
    /// What the functions of a module keep there.
    pub(crate) fn of(module: &Module) -> Stack {
        let mut stack = Stack::default();
        for function in &module.functions {
            stack.bytes += stack.collect(module, function, &function.body);
        }
        stack
    }

    /// Collects the arrays that a block makes; gives the bytes that it needs, at most. An array lives
    /// until its block ends, so blocks side by side use the same bytes.
    fn collect(&mut self, module: &Module, function: &Function, block: &Block) -> u128 {
        let mut own = 0;
        let mut inside = 0;
        for statement in block {
            match statement {
                Stmt::Let(value, Inst::Alloc { space, ty, count }) if *space == Space::Private => {
                    let name = match function.values[*value].name.as_str() {
                        "" => format!("%{}", value.0),
                        name => name.to_owned(),
                    };
                    let bytes = type_bytes(module, ty) * u128::from(*count);
                    own += bytes;
                    self.add(StackArray {
                        name,
                        element: element_name(ty),
                        count: *count,
                        bytes,
                        copies: 1,
                    });
                }
                Stmt::For { body, .. } => {
                    inside = inside.max(self.collect(module, function, body));
                }
                Stmt::While {
                    head: first,
                    body: second,
                    ..
                }
                | Stmt::If {
                    then: first,
                    otherwise: second,
                    ..
                } => {
                    for block in [first, second] {
                        inside = inside.max(self.collect(module, function, block));
                    }
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

    fn add(&mut self, array: StackArray) {
        let same = self.arrays.iter_mut().find(|known| {
            known.name == array.name && known.element == array.element && known.count == array.count
        });
        match same {
            Some(same) => same.copies += 1,
            None => self.arrays.push(array),
        }
    }
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
        Type::Struct(id) => module.structs.get(*id).map_or(0, |of| {
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
