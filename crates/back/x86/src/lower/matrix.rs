//! Which tiles can be in the registers of the matrix unit.
//!
//! The machine adds a product to a tile in place and cannot copy one register to another. So a running tile, read, added to
//! and written back, must be the same register all the way, and nothing may look at it in between. A function in which that
//! holds for every tile, and every tile has the one shape that the registers are set up for, keeps all of them in registers.

use crate::asm::TileDot;
use loopwright_arena::TiSlice;
use loopwright_kernel::{
    Block, Function, FunctionKind, Inst, LoopKind, Space, Stmt, TileRole, TileType, Type, Value,
};
use loopwright_ops::{DType, Scalar};
use rustc_hash::{FxHashMap, FxHashSet};

/// Rows of a tile register.
pub(crate) const ROWS: u32 = 16;
/// Bytes of a row.
pub(crate) const ROW_BYTES: u32 = 64;

/// The tiles of a function, all of which are in registers.
#[derive(Debug, Default)]
pub(crate) struct Matrix {
    /// Arrays of one tile.
    pub(crate) variables: FxHashSet<Value>,
    /// Tiles of zeros, which are made where they are needed.
    pub(crate) zeros: FxHashSet<Value>,
}

/// The instruction that multiplies tiles of these dtypes.
pub(crate) fn dot(left: DType, right: DType, sum: DType) -> Option<TileDot> {
    match (left, right, sum) {
        (DType::BF16, DType::BF16, DType::F32) => Some(TileDot::Bf16),
        (DType::I8, DType::I8, DType::I32) => Some(TileDot::SignedSigned),
        (DType::U8, DType::U8, DType::I32 | DType::U32) => Some(TileDot::UnsignedUnsigned),
        _ => None,
    }
}

/// The tiles of a kernel, if all of them can be in registers and there are some.
pub(crate) fn in_registers(
    function: &Function,
    constants: &TiSlice<Value, Option<Scalar>>,
    uses: &TiSlice<Value, u32>,
) -> Option<Matrix> {
    let is_tile = |info: &loopwright_kernel::ValueInfo| matches!(info.ty, Type::Tile(_));
    if !function.values.iter().any(is_tile) || !matches!(function.kind, FunctionKind::Kernel { .. })
    {
        return None;
    }
    let mut walk = Walk {
        function,
        constants,
        uses,
        found: Matrix::default(),
        made_in: FxHashMap::default(),
        factors: FxHashSet::default(),
        running: FxHashMap::default(),
        of_variable: FxHashMap::default(),
        parallel: 0,
        parallels: 0,
        used_in: FxHashSet::default(),
    };
    walk.block(&function.body)?;
    // A task that another thread, or this one, runs in the middle of the kernel sets the registers up for itself.
    let mixed = walk.used_in.contains(&0) && walk.parallels > 0;
    (!mixed).then_some(walk.found)
}

/// A variable's tile between a read and what is written back.
#[derive(Clone, Copy)]
struct Running {
    value: Value,
    changed: bool,
}

struct Walk<'f> {
    function: &'f Function,
    constants: &'f TiSlice<Value, Option<Scalar>>,
    uses: &'f TiSlice<Value, u32>,
    found: Matrix,
    /// The parallel loop that each variable is made in; 0 outside of all.
    made_in: FxHashMap<Value, u32>,
    /// Left and right tiles.
    factors: FxHashSet<Value>,
    /// Variables whose tile is being added to.
    running: FxHashMap<Value, Running>,
    /// The variable whose register a tile is in.
    of_variable: FxHashMap<Value, Value>,
    parallel: u32,
    parallels: u32,
    /// Parallel loops with tiles.
    used_in: FxHashSet<u32>,
}

impl Walk<'_> {
    fn block(&mut self, block: &Block) -> Option<()> {
        for stmt in block {
            self.statement(stmt)?;
        }
        self.running.is_empty().then_some(())
    }

    fn tile(&self, value: Value) -> Option<TileType> {
        match self.function.ty(value) {
            Type::Tile(tile) => Some(*tile),
            _ => None,
        }
    }

    fn statement(&mut self, stmt: &Stmt) -> Option<()> {
        match stmt {
            Stmt::Let(value, inst) => self.definition(*value, inst),
            Stmt::Store { ptr, value, .. } if self.found.variables.contains(ptr) => {
                match self.running.remove(ptr) {
                    None if self.found.zeros.contains(value) => self.in_variable(*ptr),
                    Some(running) if running.value == *value => self.in_variable(*ptr),
                    _ => None,
                }
            }
            Stmt::TileStore { tile, .. } => {
                self.used_in.insert(self.parallel);
                let Some(variable) = self.of_variable.get(tile) else {
                    return (!self.found.zeros.contains(tile)).then_some(());
                };
                let running = self.running.remove(variable)?;
                (running.value == *tile && !running.changed).then_some(())
            }
            Stmt::For { kind, body, .. } => {
                let outer = self.parallel;
                if *kind == LoopKind::Parallel && outer == 0 {
                    self.parallels += 1;
                    self.parallel = self.parallels;
                }
                self.inner(body)?;
                self.parallel = outer;
                Some(())
            }
            other => {
                let mut operands = Vec::new();
                other.operands(&mut |operand| operands.push(*operand));
                let touches = |value: &Value| {
                    self.tile(*value).is_some() || self.found.variables.contains(value)
                };
                if operands.iter().any(touches) {
                    return None;
                }
                for inner in other.blocks().into_iter().flatten() {
                    self.inner(inner)?;
                }
                Some(())
            }
        }
    }

    fn inner(&mut self, block: &Block) -> Option<()> {
        match self.running.is_empty() {
            true => self.block(block),
            false => None,
        }
    }

    /// A use of a variable where it can be in a register: in the loop in which it is made.
    fn in_variable(&mut self, variable: Value) -> Option<()> {
        self.used_in.insert(self.parallel);
        (self.made_in[&variable] == self.parallel).then_some(())
    }

    fn definition(&mut self, value: Value, inst: &Inst) -> Option<()> {
        match inst {
            Inst::Alloc {
                space: Space::Private,
                ty: Type::Tile(tile),
                count: 1,
            } => {
                self.found.variables.insert(value);
                self.made_in.insert(value, self.parallel);
                fits(*tile, 1).then_some(())
            }
            Inst::Alloc {
                ty: Type::Tile(_), ..
            } => None,
            Inst::TileSplat(scalar) => {
                let zero = self.constants[*scalar].is_some_and(|of| of.bits() == 0);
                self.found.zeros.insert(value);
                (zero && fits(self.tile(value)?, 1)).then_some(())
            }
            Inst::TileLoad { interleave, .. } => {
                self.used_in.insert(self.parallel);
                let tile = self.tile(value)?;
                self.factors.insert(value);
                (tile.role != TileRole::Accumulator && fits(tile, *interleave)).then_some(())
            }
            Inst::Load { ptr, .. } if self.found.variables.contains(ptr) => {
                self.in_variable(*ptr)?;
                self.of_variable.insert(value, *ptr);
                let running = Running {
                    value,
                    changed: false,
                };
                let free = self.running.insert(*ptr, running).is_none();
                (free && self.uses[value] == 1).then_some(())
            }
            Inst::TileMma {
                left,
                right,
                accumulator,
            } => {
                self.used_in.insert(self.parallel);
                let [l, r, a] = [*left, *right, *accumulator].map(|tile| self.tile(tile));
                dot(l?.dtype, r?.dtype, a?.dtype)?;
                let once = |value: Value| self.uses[value] == 1;
                let zero = self.found.zeros.contains(accumulator);
                let loaded = self.factors.contains(left) && self.factors.contains(right);
                if !loaded || !once(value) || !(zero || once(*accumulator)) {
                    return None;
                }
                if let Some(variable) = self.of_variable.get(accumulator).copied() {
                    let running = self.running.get_mut(&variable)?;
                    if running.value != *accumulator {
                        return None;
                    }
                    *running = Running {
                        value,
                        changed: true,
                    };
                    self.of_variable.insert(value, variable);
                }
                Some(())
            }
            other => {
                let mut plain = self.tile(value).is_none();
                other.operands(&mut |operand| {
                    plain &=
                        self.tile(*operand).is_none() && !self.found.variables.contains(operand);
                });
                plain.then_some(())
            }
        }
    }
}

/// Whether a tile fills a register, and its rows lie in memory as the machine reads them.
fn fits(tile: TileType, interleave: u32) -> bool {
    let size = tile.dtype.bytes() as u32;
    let (rows, row, together) = match tile.role {
        TileRole::Left | TileRole::Accumulator => (tile.rows, tile.cols * size, 1),
        TileRole::Right => (tile.rows * size / 4, tile.cols * 4, (4 / size).max(1)),
    };
    (rows, row, interleave) == (ROWS, ROW_BYTES, together)
}
