//! From kernel IR to instructions over virtual registers.
//!
//! A scalar integer, `bool` or narrow float is in a general register, extended to 64 bits; a scalar `f32` or `f64` in the
//! lowest lane of a vector register. A vector is in *pieces*: as many lanes as 32-bit elements fill a register, or half as
//! many for 64-bit elements, so that narrower elements leave a register partly empty and conversions go piece by piece.
//! A vector of `bool` is in mask registers with AVX-512, and as 32-bit lanes of zeros or ones without.
//!
//! Integers and floats of 8 and 16 bits are computed in 32 bits. What the machine has no instruction for goes through memory to
//! [`loopwright_ops::evaluate`], which is what the interpreter calls.

mod address;
mod ahead;
mod analyse;
mod calls;
mod coming;
mod convert;
mod exp;
mod fallback;
mod function;
mod int_vectors;
mod integer;
mod lanes;
mod linear;
mod matrix;
mod memory;
mod ops;
mod overwritten;
mod parallel;
mod prepare;
mod stream;
mod tile;
mod transpose;
mod value;
mod vector;
mod watch;

pub(crate) use fallback::{Fallback, fallback_address};
pub(crate) use matrix::{ROW_BYTES, ROWS};
pub(crate) use prepare::prepared;

use crate::asm::{Assembler, Label};
use crate::level::Level;
use crate::machine::Code;
use analyse::analyse;
use function::Writer;
use loopwright_arena::TiVec;
use loopwright_kernel::{
    Block, Function, FunctionId, FunctionKind, Inst, Module, Space, Stmt, mark_callers,
};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Why a function cannot be compiled.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Refusal(pub(crate) String);

/// The result of lowering a module.
pub(crate) struct Lowered {
    /// Functions in the order in which they lie.
    pub(crate) codes: Vec<Code>,
    /// For each kernel, in the module's order: where it is entered.
    pub(crate) entries: Vec<Label>,
    /// Constants.
    pub(crate) pool: Vec<u8>,
    /// What the code asks for in calls; it must live as long as the code.
    pub(crate) fallbacks: Vec<Arc<Fallback>>,
}

/// What all functions of a module share.
pub(crate) struct Shared<'a> {
    pub(crate) level: Level,
    /// Every rounding is kept where the program has it.
    pub(crate) strict: bool,
    /// Tiles may be in the registers of the matrix unit.
    pub(crate) tiles: bool,
    pub(crate) asm: &'a mut Assembler,
    pub(crate) codes: Vec<Code>,
    pub(crate) pool: Vec<u8>,
    pub(crate) pooled: FxHashMap<Vec<u8>, u32>,
    pub(crate) fallbacks: Vec<Arc<Fallback>>,
    /// Where the functions of the module begin.
    pub(crate) functions: TiVec<FunctionId, Label>,
}

impl Shared<'_> {
    /// The place of a constant in the pool. It is aligned to its size.
    pub(crate) fn constant(&mut self, bytes: &[u8]) -> u32 {
        if let Some(at) = self.pooled.get(bytes) {
            return *at;
        }
        // Two operands of SSE may read 16 bytes of a scalar, and those must be aligned.
        let align = bytes.len().next_power_of_two().clamp(16, 64);
        self.pool.resize(self.pool.len().next_multiple_of(align), 0);
        let at = self.pool.len() as u32;
        self.pool.extend_from_slice(bytes);
        self.pooled.insert(bytes.to_vec(), at);
        at
    }
}

/// Lowers a validated module. Tiles are in registers if there is a matrix unit for them and the rounding need not be kept.
/// `Err` names the function that is refused.
pub(crate) fn lower(
    module: &Module,
    level: Level,
    (strict, tiles): (bool, bool),
    asm: &mut Assembler,
) -> Result<Lowered, (String, Refusal)> {
    for function in &module.functions {
        if let Some(what) = group_use(&function.body) {
            let reason = format!(
                "it uses {what}, which needs the work-items of a group to run together; \
                 split the kernel at its barriers first"
            );
            return Err((function.name.clone(), Refusal(reason)));
        }
    }
    let asks = module
        .functions
        .iter()
        .map(|function| asks_for_item(&function.body));
    let calls: Vec<Vec<FunctionId>> = module.functions.iter().map(called).collect();
    let items = mark_callers(asks.collect(), calls.iter().map(Vec::as_slice));

    let functions = module.functions.iter().map(|_| asm.label()).collect();
    let mut shared = Shared {
        level,
        strict,
        tiles,
        asm,
        codes: Vec::new(),
        pool: Vec::new(),
        pooled: FxHashMap::default(),
        fallbacks: Vec::new(),
        functions,
    };
    let mut entries = Vec::new();
    for (at, function) in module.functions.iter_enumerated() {
        let refused = |refusal| (function.name.clone(), refusal);
        let mut analysis = analyse(module, function);
        if shared.tiles {
            let (constants, uses) = (&analysis.constants, &analysis.uses);
            analysis.matrix = matrix::in_registers(function, constants, uses);
        }
        let label = shared.functions[at];
        Writer::function(module, function, &analysis, &mut shared, label).map_err(refused)?;
        if is_kernel(function) {
            entries.push(match items[at] {
                true => calls::each_item(&mut shared, label, &function.name),
                false => label,
            });
        }
    }
    // Whole registers are read from the pool, from wherever a constant begins.
    let padded = shared.pool.len() + 64;
    shared.pool.resize(padded, 0);
    Ok(Lowered {
        codes: shared.codes,
        entries,
        pool: shared.pool,
        fallbacks: shared.fallbacks,
    })
}

pub(crate) fn is_kernel(function: &Function) -> bool {
    matches!(function.kind, FunctionKind::Kernel { .. })
}

fn any(block: &Block, test: &dyn Fn(&Stmt) -> bool) -> bool {
    block.iter().any(|stmt| {
        test(stmt)
            || stmt
                .blocks()
                .into_iter()
                .flatten()
                .any(|inner| any(inner, test))
    })
}

fn asks_for_item(block: &Block) -> bool {
    any(block, &|stmt| {
        matches!(stmt, Stmt::Let(_, Inst::WorkItem(..)))
    })
}

/// The functions that a function calls.
fn called(function: &Function) -> Vec<FunctionId> {
    fn visit(block: &Block, calls: &mut Vec<FunctionId>) {
        for stmt in block {
            match stmt {
                Stmt::Call(id, _) | Stmt::Let(_, Inst::Call(id, _)) => calls.push(*id),
                _ => {}
            }
            for inner in stmt.blocks().into_iter().flatten() {
                visit(inner, calls);
            }
        }
    }
    let mut calls = Vec::new();
    visit(&function.body, &mut calls);
    calls
}

/// What in the block needs the work-items of a group to run together.
fn group_use(block: &Block) -> Option<&'static str> {
    block.iter().find_map(|stmt| match stmt {
        Stmt::Barrier { .. } => Some("a barrier"),
        Stmt::AsyncCopy { .. } | Stmt::AsyncWait { .. } => Some("asynchronous copies"),
        Stmt::Let(
            _,
            Inst::Alloc {
                space: Space::Local,
                ..
            },
        ) => Some("local memory"),
        other => other.blocks().into_iter().flatten().find_map(group_use),
    })
}
