//! The kernel IR: structured, typed, C-level code.
//!
//! A [`Module`] holds functions; a [`Function`] is a tree of statements over immutable, typed
//! values. A value is defined once, by a parameter, by a `Let` or as a loop's variable, and is
//! visible in the rest of its block and in the blocks below. What changes over time lives in
//! memory: `Alloc` makes an array in private or local space, and loads and stores go through
//! pointers. There are no jumps but `Break`, `Continue` and `Return`.

use loopwright_arena::TiVec;
use loopwright_ops::{DType, Op, ReduceOp, Scalar};
use smallvec::SmallVec;

loopwright_arena::handle! {
    /// A value of a function: an index into [`Function::values`].
    pub struct Value;

    /// A struct type of a module: an index into [`Module::structs`].
    pub struct StructId;

    /// A function of a module: an index into [`Module::functions`].
    pub struct FunctionId;
}

/// Where memory lies.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Space {
    /// Device memory that all work-items see.
    Global,
    /// Device memory that is only read.
    Constant,
    /// Memory of one work-group.
    Local,
    /// Memory of one work-item: registers or stack.
    Private,
}

/// A type.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Type {
    /// One element.
    Scalar(DType),
    /// `lanes` elements side by side; `lanes` is at least 2.
    Vector(DType, u32),
    /// The address of elements of a type.
    Pointer(Space, Box<Type>),
    /// A fixed number of elements of a type, only behind a pointer or in a struct.
    Array(Box<Type>, u64),
    /// A struct, only behind a pointer or in another struct.
    Struct(StructId),
    /// A matrix fragment held jointly by the work-items of a warp or, on CPUs, by one thread.
    Tile(TileType),
}

/// The shape of a matrix fragment.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TileType {
    /// Element type.
    pub dtype: DType,
    /// Rows.
    pub rows: u32,
    /// Columns.
    pub cols: u32,
    /// What part the fragment plays in a matrix product, which decides its layout.
    pub role: TileRole,
}

/// What part a fragment plays in `accumulator += left * right`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TileRole {
    /// The left operand.
    Left,
    /// The right operand.
    Right,
    /// The accumulator.
    Accumulator,
}

/// A struct's layout: fields in order, each aligned as its type is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StructType {
    /// Its name.
    pub name: String,
    /// Names and types of its fields.
    pub fields: Vec<(String, Type)>,
}

/// A set of functions compiled together.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Module {
    /// Struct types.
    pub structs: TiVec<StructId, StructType>,
    /// Functions.
    pub functions: TiVec<FunctionId, Function>,
}

/// A function.
#[derive(Clone, PartialEq, Debug)]
pub struct Function {
    /// Its name, unique in the module.
    pub name: String,
    /// How it is called.
    pub kind: FunctionKind,
    /// Its parameters.
    pub params: Vec<Param>,
    /// What it returns; kernels return nothing.
    pub result: Option<Type>,
    /// Type and name of each value.
    pub values: TiVec<Value, ValueInfo>,
    /// Its statements.
    pub body: Block,
}

/// How a function is called.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FunctionKind {
    /// From the host, once for every work-item of a grid; a loop-tree kernel has a grid of one.
    Kernel {
        /// The work-group size the kernel insists on.
        group: Option<[u32; 3]>,
    },
    /// From other functions of the module.
    Device,
}

/// A parameter.
#[derive(Clone, PartialEq, Debug)]
pub struct Param {
    /// The value that holds the argument; its name and type stand in [`Function::values`].
    pub value: Value,
    /// For pointers: what the function does through them.
    pub access: Access,
    /// For pointers: no other pointer of this call reaches the same memory.
    pub noalias: bool,
}

/// What is done through a pointer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Access {
    /// Only read.
    Read,
    /// Only written.
    Write,
    /// Both.
    ReadWrite,
}

/// What is known of a value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ValueInfo {
    /// Its type.
    pub ty: Type,
    /// A name to read it by; made unique when printed. Empty: it is known by its number.
    pub name: String,
}

/// Statements in order.
pub type Block = Vec<Stmt>;

/// A statement.
#[derive(Clone, PartialEq, Debug)]
pub enum Stmt {
    /// Defines a value.
    Let(Value, Inst),
    /// Writes a scalar or vector through a pointer, `index` elements (of the pointer's element
    /// type) further on. A vector written through a pointer to its scalars takes consecutive
    /// elements and needs no alignment beyond theirs.
    Store {
        /// The pointer.
        ptr: Value,
        /// The element, an `i64`.
        index: Value,
        /// What is written.
        value: Value,
    },
    /// Calls a function that returns nothing.
    Call(FunctionId, Vec<Value>),
    /// Counts `var` from `start` up to, not including, `end`, by `step` (positive).
    For {
        /// The loop variable, an `i64`, defined in the body.
        var: Value,
        /// First value.
        start: Value,
        /// Bound, excluded.
        end: Value,
        /// Increment, at least 1.
        step: Value,
        /// How the iterations may run.
        kind: LoopKind,
        /// The body.
        body: Block,
    },
    /// Runs `head`, then, while `cond` (a bool defined in `head` or before) holds, `body` and again
    /// `head`.
    While {
        /// Computes the condition; its values are visible in the body.
        head: Block,
        /// The condition.
        cond: Value,
        /// The body.
        body: Block,
    },
    /// Branches on a bool.
    If {
        /// The condition.
        cond: Value,
        /// Where it holds.
        then: Block,
        /// Where it does not.
        otherwise: Block,
    },
    /// Leaves the innermost loop.
    Break,
    /// Goes on with the innermost loop's next iteration.
    Continue,
    /// Leaves the function.
    Return(Option<Value>),
    /// All work-items of the work-group wait here; memory of these spaces is then consistent.
    Barrier {
        /// Local memory.
        local: bool,
        /// Global memory.
        global: bool,
    },
    /// Starts copying `count` elements between global and local memory without waiting.
    AsyncCopy {
        /// Destination pointer and element.
        dst: (Value, Value),
        /// Source pointer and element.
        src: (Value, Value),
        /// How many elements, an `i64`.
        count: Value,
    },
    /// Waits until at most `pending` of the asynchronous copies started before are unfinished.
    AsyncWait {
        /// How many may be unfinished.
        pending: u32,
    },
    /// Writes a tile to memory: row `r`, column `c` goes to `index + r * stride + c`.
    TileStore {
        /// The tile.
        tile: Value,
        /// The pointer.
        ptr: Value,
        /// First element, an `i64`.
        index: Value,
        /// Elements from one row to the next, an `i64`.
        stride: Value,
    },
}

/// How a loop's iterations may run. All but `Parallel` keep the order; none changes a value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LoopKind {
    /// One after the other.
    Serial,
    /// In any order, at the same time: iterations are independent.
    Parallel,
    /// One after the other, written out.
    Unroll,
    /// Iterations are independent; a C compiler may vectorise them.
    Vectorize,
}

/// What defines a value.
#[derive(Clone, PartialEq, Debug)]
pub enum Inst {
    /// A constant; for vector types every lane is the same.
    Const(Scalar),
    /// A scalar op, lane by lane on vectors. All operands have the same number of lanes.
    Map(Op, SmallVec<[Value; 3]>),
    /// Conversion to another dtype, lane by lane; see [`loopwright_ops::cast`].
    Cast(DType, Value),
    /// The same bits as another dtype of the same width, lane by lane.
    Bitcast(DType, Value),
    /// A new array of `count` elements of `ty` in private or local space; gives a pointer to the
    /// first. It lives until the block ends. Its contents are undefined.
    Alloc {
        /// Private or local.
        space: Space,
        /// Element type.
        ty: Type,
        /// How many.
        count: u64,
    },
    /// Reads through a pointer, `index` elements further on. The type of the value read is the
    /// value's own: the pointer's element type, or a vector of consecutive ones.
    Load {
        /// The pointer.
        ptr: Value,
        /// The element, an `i64`.
        index: Value,
    },
    /// The pointer `index` elements further on.
    Offset {
        /// The pointer.
        ptr: Value,
        /// How many elements, an `i64`.
        index: Value,
    },
    /// The address of a struct's field.
    Field {
        /// Pointer to the struct.
        ptr: Value,
        /// Which field.
        field: u32,
    },
    /// The address of an array's first element, from a pointer to the array.
    Elements(Value),
    /// The scalar in every lane.
    Splat(Value),
    /// A vector of these scalars.
    Build(Vec<Value>),
    /// One lane of a vector.
    Extract(Value, u32),
    /// The vector with one lane replaced by a scalar.
    Insert(Value, u32, Value),
    /// Lanes picked from two vectors laid end to end.
    Shuffle(Value, Value, Vec<u32>),
    /// All lanes combined into one scalar, first to last.
    ReduceLanes(ReduceOp, Value),
    /// A query about the work-item.
    WorkItem(WorkItem, u8),
    /// Reads, combines and writes an element at once; gives the value before.
    Atomic {
        /// What is combined.
        op: AtomicOp,
        /// The pointer, to global or local memory.
        ptr: Value,
        /// The element, an `i64`.
        index: Value,
        /// The operand.
        value: Value,
    },
    /// Writes `value` if the element equals `expected`; gives the value before.
    CompareExchange {
        /// The pointer, to global or local memory.
        ptr: Value,
        /// The element, an `i64`.
        index: Value,
        /// What it must equal.
        expected: Value,
        /// What is then written.
        value: Value,
    },
    /// Calls a function of the module.
    Call(FunctionId, Vec<Value>),
    /// Reads a tile: row `r`, column `c` comes from `index + r * stride + c`, or, where `w` rows are interleaved, from
    /// `index + r / w * stride + c * w + r % w`.
    TileLoad {
        /// The pointer.
        ptr: Value,
        /// First element, an `i64`.
        index: Value,
        /// Elements from one row, or group of interleaved rows, to the next, an `i64`.
        stride: Value,
        /// How many rows lie interleaved, element by element; 1 for rows one after the other. It divides their number.
        interleave: u32,
    },
    /// A tile with one scalar everywhere.
    TileSplat(Value),
    /// `accumulator + left * right`. Of floats that are narrower than the accumulator, a matrix unit may add the products in
    /// any order and take subnormal numbers for zero.
    TileMma {
        /// The left operand.
        left: Value,
        /// The right operand.
        right: Value,
        /// The accumulator.
        accumulator: Value,
    },
}

/// What a work-item can ask about itself; the axis is 0, 1 or 2.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum WorkItem {
    /// Its place in the grid.
    GlobalId,
    /// Its place in its work-group.
    LocalId,
    /// Its work-group's place.
    GroupId,
    /// The size of the grid.
    GlobalSize,
    /// The size of the work-group.
    LocalSize,
    /// How many work-groups there are.
    GroupCount,
}

/// An atomic combination.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum AtomicOp {
    /// Sum.
    Add,
    /// Smaller.
    Min,
    /// Larger.
    Max,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
    /// Replacement.
    Exchange,
}

impl Type {
    /// The scalar `i64`, the type of indices.
    pub const INDEX: Type = Type::Scalar(DType::I64);

    /// A pointer to elements of this type.
    pub fn pointer(self, space: Space) -> Type {
        Type::Pointer(space, Box::new(self))
    }

    /// The dtype of a scalar or vector.
    pub fn dtype(&self) -> Option<DType> {
        match self {
            Type::Scalar(dtype) | Type::Vector(dtype, _) => Some(*dtype),
            Type::Pointer(..) | Type::Array(..) | Type::Struct(_) | Type::Tile(_) => None,
        }
    }

    /// Lanes of a vector; 1 for everything else.
    pub fn lanes(&self) -> u32 {
        match self {
            Type::Vector(_, lanes) => *lanes,
            _ => 1,
        }
    }

    /// A scalar, or a vector if there is more than one lane.
    pub fn of(dtype: DType, lanes: u32) -> Type {
        if lanes > 1 {
            Type::Vector(dtype, lanes)
        } else {
            Type::Scalar(dtype)
        }
    }

    /// What a pointer points at.
    pub fn pointee(&self) -> Option<&Type> {
        match self {
            Type::Pointer(_, pointee) => Some(pointee),
            _ => None,
        }
    }
}

impl Function {
    /// A function without parameters or statements.
    pub fn new(name: impl Into<String>, kind: FunctionKind) -> Function {
        Function {
            name: name.into(),
            kind,
            params: Vec::new(),
            result: None,
            values: TiVec::new(),
            body: Block::new(),
        }
    }

    /// The type of a value.
    pub fn ty(&self, value: Value) -> &Type {
        &self.values[value].ty
    }

    /// A new value of that type, not yet defined by anything.
    pub fn value(&mut self, ty: Type, name: impl Into<String>) -> Value {
        self.values.push_and_get_key(ValueInfo {
            ty,
            name: name.into(),
        })
    }

    /// Adds a parameter.
    pub fn param(
        &mut self,
        ty: Type,
        name: impl Into<String>,
        access: Access,
        noalias: bool,
    ) -> Value {
        let value = self.value(ty, name);
        self.params.push(Param {
            value,
            access,
            noalias,
        });
        value
    }
}
