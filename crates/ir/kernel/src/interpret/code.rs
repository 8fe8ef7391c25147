//! The flat form in which functions are run.
//!
//! Every value of a function has a fixed place among its frame's slots of 64 bits: a scalar takes
//! one slot, a vector one per lane, a tile one per element, and a pointer two (which region, and
//! which byte of it). Types are all known, so slots hold bare bits. Control flow is jumps, so that
//! a work-item can stop at a barrier anywhere and go on later.

use crate::ir::{FunctionId, Space, Value, WorkItem};
use loopwright_arena::TiVec;
use loopwright_ops::{DType, Op, ReduceOp};

/// A slot of a frame.
pub(super) type Slot = u32;

/// A place in a function's code.
pub(super) type Pc = u32;

/// A function ready to run.
#[derive(Debug)]
pub(super) struct Function {
    pub name: String,
    pub code: Vec<Code>,
    /// Slots of a frame.
    pub slots: u32,
    /// Private allocs.
    pub privates: u32,
    /// Where each parameter's slots begin.
    pub params: Vec<Slot>,
    /// Names of the values, for errors.
    pub names: TiVec<Value, String>,
}

/// One access: `lanes` elements of `dtype` side by side, `index` times `stride` bytes from `ptr`;
/// or a pointer, which in memory is a `u64`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Access {
    pub ptr: Slot,
    pub index: Slot,
    /// Bytes from one index to the next.
    pub stride: u64,
    pub dtype: DType,
    pub lanes: u32,
    /// Whether what is accessed is itself a pointer.
    pub pointer: bool,
    /// The pointer, for errors.
    pub name: Value,
}

/// An arithmetic op that is computed directly rather than through [`loopwright_ops::evaluate`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fast {
    I64Add,
    I64Sub,
    I64Mul,
    I64Lt,
    I64Le,
    I64Eq,
    I64Ne,
    F32Add,
    F32Sub,
    F32Mul,
    F64Add,
    F64Sub,
    F64Mul,
}

/// An instruction.
#[derive(Debug)]
pub(super) enum Code {
    Const {
        dst: Slot,
        bits: u64,
        lanes: u32,
    },
    Fast {
        op: Fast,
        dst: Slot,
        left: Slot,
        right: Slot,
        lanes: u32,
    },
    Map {
        op: Op,
        dst: Slot,
        args: [Slot; 3],
        dtypes: [DType; 3],
        lanes: u32,
    },
    Cast {
        dst: Slot,
        src: Slot,
        from: DType,
        to: DType,
        lanes: u32,
    },
    /// Copies slots.
    Move {
        dst: Slot,
        src: Slot,
        count: u32,
    },
    Splat {
        dst: Slot,
        src: Slot,
        lanes: u32,
    },
    ReduceLanes {
        op: ReduceOp,
        dst: Slot,
        src: Slot,
        dtype: DType,
        lanes: u32,
    },
    AllocPrivate {
        dst: Slot,
        site: u32,
        bytes: u64,
    },
    AllocLocal {
        dst: Slot,
        site: u32,
    },
    /// `dst = ptr + index * stride + bytes`.
    Offset {
        dst: Slot,
        ptr: Slot,
        index: Option<Slot>,
        stride: u64,
        bytes: u64,
        name: Value,
    },
    Load {
        dst: Slot,
        from: Access,
    },
    Store {
        src: Slot,
        to: Access,
    },
    Atomic {
        op: Option<Op>,
        dst: Slot,
        at: Access,
        value: Slot,
    },
    CompareExchange {
        dst: Slot,
        at: Access,
        expected: Slot,
        value: Slot,
    },
    WorkItem {
        dst: Slot,
        query: WorkItem,
        axis: u8,
    },
    AsyncCopy {
        dst: Access,
        src: Access,
        count: Slot,
    },
    TileLoad {
        dst: Slot,
        from: Access,
        rows: u32,
        cols: u32,
        stride: Slot,
        interleave: u32,
    },
    TileStore {
        src: Slot,
        to: Access,
        rows: u32,
        cols: u32,
        stride: Slot,
    },
    TileMma(Box<TileMma>),
    Call {
        function: FunctionId,
        args: Box<[(Slot, u32)]>,
        dst: Slot,
    },
    Return {
        src: Slot,
        count: u32,
    },
    /// Counts a loop's trips into `remaining` and sets its variable to the first, or, reversed,
    /// the last value; goes to `exit` if there are none.
    LoopEnter {
        var: Slot,
        start: Slot,
        end: Slot,
        step: Slot,
        remaining: Slot,
        reversed: bool,
        exit: Pc,
        name: Value,
    },
    /// Goes to `body` with the next value of the variable if trips remain.
    LoopNext {
        var: Slot,
        step: Slot,
        remaining: Slot,
        reversed: bool,
        body: Pc,
    },
    Jump(Pc),
    JumpUnless {
        cond: Slot,
        to: Pc,
    },
    Barrier,
}

/// The operands of a matrix product of tiles.
#[derive(Debug)]
pub(super) struct TileMma {
    pub dst: Slot,
    pub left: Slot,
    pub right: Slot,
    pub accumulator: Slot,
    pub rows: u32,
    pub cols: u32,
    pub inner: u32,
    pub left_dtype: DType,
    pub right_dtype: DType,
    pub dtype: DType,
}

/// Memory that a work-group has: a local alloc, or a local parameter.
#[derive(Clone, Copy, Debug)]
pub(super) struct LocalSite {
    pub bytes: u64,
}

/// Whether pointers of this space may be written through.
pub(super) fn writable(space: Space) -> bool {
    !matches!(space, Space::Constant)
}
