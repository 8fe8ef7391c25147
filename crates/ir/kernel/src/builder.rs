//! Writing functions statement by statement.
//!
//! A [`Builder`] owns the function under construction and a stack of open blocks; whatever is
//! emitted goes to the end of the innermost one. It computes result types, reuses constants and pure
//! values that are already visible and folds index arithmetic on constants, so that a lowering which
//! writes `start + 0 * stride` in every copy of an unrolled body leaves nothing behind.
//!
//! Operands of the wrong type are the caller's mistake: debug builds stop at them, and what a
//! release build makes of them is refused by [`crate::validate`].

mod index;

use crate::ir::{
    Access, AtomicOp, Block, Function, FunctionId, FunctionKind, Inst, LoopKind, Space, Stmt,
    TileRole, TileType, Type, Value, WorkItem,
};
use loopwright_arena::TiVec;
use loopwright_ops::{DType, Op, ReduceOp, Scalar};
use loopwright_threads::interrupt::unwind_if_asked;
use rustc_hash::FxHashMap;

/// A function under construction.
///
/// ```
/// use loopwright_kernel::{Access, Builder, FunctionKind, LoopKind, Space};
/// use loopwright_ops::{DType, Op};
///
/// let mut b = Builder::new("double", FunctionKind::Kernel { group: None });
/// let a = b.param_ptr(DType::F32, Space::Global, "a", Access::ReadWrite, true);
/// let n = b.param_scalar(DType::I64, "n");
/// let (zero, one) = (b.const_i64(0), b.const_i64(1));
/// b.for_loop(zero, n, one, LoopKind::Serial, "i", |b, i| {
///     let x = b.load(a, i);
///     let y = b.map(Op::Add, &[x, x]);
///     b.store(a, i, y);
/// });
/// let function = b.finish();
/// assert_eq!(function.body.len(), 3);
/// ```
#[derive(Debug)]
pub struct Builder {
    function: Function,
    open: Vec<OpenBlock>,
    /// The constants visible at the end of the innermost block.
    constants: FxHashMap<Scalar, Value>,
    /// The pure values visible at the end of the innermost block.
    pure: FxHashMap<Pure, Value>,
    /// What each value is known to be.
    known: TiVec<Value, Option<Scalar>>,
}

/// What makes a pure value the same as another.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Pure {
    Map(Op, [Option<Value>; 3]),
    Cast(DType, Value),
    Splat(Value, u32),
    /// A load through a pointer that nothing in the function writes through.
    Load(Value, Value, u32),
}

/// A block that statements are still added to.
#[derive(Debug)]
struct OpenBlock {
    owner: Owner,
    statements: Block,
    /// The constants defined in it, which stop being visible with it.
    constants: Vec<Scalar>,
    /// The pure values defined in it, likewise.
    pure: Vec<Pure>,
}

/// What an open block belongs to.
#[derive(Debug)]
enum Owner {
    Function,
    For {
        var: Value,
        start: Value,
        end: Value,
        step: Value,
        kind: LoopKind,
    },
    Then {
        cond: Value,
    },
    Otherwise {
        cond: Value,
        then: Block,
    },
    WhileHead,
    WhileBody {
        head: Block,
        cond: Value,
    },
}

impl Builder {
    /// A function without parameters or statements.
    pub fn new(name: impl Into<String>, kind: FunctionKind) -> Builder {
        let mut builder = Builder {
            function: Function::new(name, kind),
            open: Vec::new(),
            constants: FxHashMap::default(),
            pure: FxHashMap::default(),
            known: TiVec::new(),
        };
        builder.open_block(Owner::Function);
        builder
    }

    /// Adds a parameter that is a pointer to scalars.
    pub fn param_ptr(
        &mut self,
        dtype: DType,
        space: Space,
        name: &str,
        access: Access,
        noalias: bool,
    ) -> Value {
        let ty = Type::Scalar(dtype).pointer(space);
        self.param(ty, name, access, noalias)
    }

    /// Adds a parameter that is a scalar.
    pub fn param_scalar(&mut self, dtype: DType, name: &str) -> Value {
        self.param(Type::Scalar(dtype), name, Access::Read, false)
    }

    /// Adds a parameter of any type.
    pub fn param(&mut self, ty: Type, name: &str, access: Access, noalias: bool) -> Value {
        self.known.push(None);
        self.function.param(ty, name, access, noalias)
    }

    /// Says what the function returns.
    pub fn returns(&mut self, ty: Type) {
        self.function.result = Some(ty);
    }

    /// The type of a value.
    pub fn ty(&self, value: Value) -> &Type {
        self.function.ty(value)
    }

    /// What a value is known to be.
    pub fn known(&self, value: Value) -> Option<Scalar> {
        self.known.get(value).copied().flatten()
    }

    /// What an `i64` value is known to be.
    pub fn known_i64(&self, value: Value) -> Option<i64> {
        self.known(value)
            .filter(|scalar| scalar.dtype() == DType::I64)
            .and_then(Scalar::as_i64)
    }

    /// Gives a value the name it is printed by.
    pub fn name(&mut self, value: Value, name: &str) {
        if let Some(info) = self.function.values.get_mut(value) {
            name.clone_into(&mut info.name);
        }
    }

    /// Closes every block and gives the function.
    pub fn finish(mut self) -> Function {
        debug_assert_eq!(self.open.len(), 1, "every block is closed before `finish`");
        while self.open.len() > 1 {
            self.end_block();
        }
        if let Some(block) = self.open.pop() {
            self.function.body = block.statements;
        }
        self.function
    }

    // Values.

    /// The `i64` constant; one that is already visible is reused.
    pub fn const_i64(&mut self, value: i64) -> Value {
        self.constant(Scalar::i64(value))
    }

    /// The constant; one that is already visible is reused.
    pub fn constant(&mut self, scalar: Scalar) -> Value {
        if let Some(value) = self.constants.get(&scalar) {
            return *value;
        }
        let value = self.define(Type::Scalar(scalar.dtype()), Inst::Const(scalar), "");
        self.known[value] = Some(scalar);
        self.constants.insert(scalar, value);
        if let Some(block) = self.open.last_mut() {
            block.constants.push(scalar);
        }
        value
    }

    /// The constant in every lane.
    pub fn constant_vector(&mut self, scalar: Scalar, lanes: u32) -> Value {
        if lanes <= 1 {
            return self.constant(scalar);
        }
        self.define(Type::Vector(scalar.dtype(), lanes), Inst::Const(scalar), "")
    }

    /// The op on these operands, lane by lane.
    pub fn map(&mut self, op: Op, operands: &[Value]) -> Value {
        let dtypes: smallvec::SmallVec<[DType; 3]> = operands
            .iter()
            .filter_map(|v| self.ty(*v).dtype())
            .collect();
        let lanes = operands.first().map_or(1, |v| self.ty(*v).lanes());
        debug_assert!(
            operands.iter().all(|v| self.ty(*v).lanes() == lanes),
            "operands of `{op}` have one number of lanes"
        );
        let dtype = match op.result_dtype(&dtypes) {
            Ok(dtype) => dtype,
            Err(error) => {
                debug_assert!(false, "operands fit the op: {error}");
                dtypes.last().copied().unwrap_or(DType::I64)
            }
        };
        let inst = Inst::Map(op, smallvec::SmallVec::from_slice(operands));
        let operand = |at: usize| operands.get(at).copied();
        let pure = Pure::Map(op, [operand(0), operand(1), operand(2)]);
        self.define_pure(pure, Type::of(dtype, lanes), inst)
    }

    /// The value converted to a dtype; itself if it has that one.
    pub fn cast(&mut self, dtype: DType, value: Value) -> Value {
        if self.ty(value).dtype() == Some(dtype) {
            return value;
        }
        let ty = Type::of(dtype, self.ty(value).lanes());
        self.define_pure(Pure::Cast(dtype, value), ty, Inst::Cast(dtype, value))
    }

    /// The value's bits as another dtype of the same width.
    pub fn bitcast(&mut self, dtype: DType, value: Value) -> Value {
        debug_assert_eq!(
            self.ty(value).dtype().map(DType::bits),
            Some(dtype.bits()),
            "a bitcast keeps the width"
        );
        let ty = Type::of(dtype, self.ty(value).lanes());
        self.define(ty, Inst::Bitcast(dtype, value), "")
    }

    /// The scalar in every one of `lanes` lanes; itself for one lane.
    pub fn splat(&mut self, value: Value, lanes: u32) -> Value {
        if lanes <= 1 {
            return value;
        }
        match self.known(value) {
            Some(scalar) => self.constant_vector(scalar, lanes),
            None => {
                let ty = Type::of(self.dtype(value), lanes);
                self.define_pure(Pure::Splat(value, lanes), ty, Inst::Splat(value))
            }
        }
    }

    /// A vector of these scalars; the scalar itself if there is one.
    pub fn build(&mut self, values: &[Value]) -> Value {
        debug_assert!(!values.is_empty(), "a vector has lanes");
        match values {
            [value] => *value,
            _ => {
                let dtype = values.first().map_or(DType::I64, |v| self.dtype(*v));
                let ty = Type::of(dtype, values.len() as u32);
                self.define(ty, Inst::Build(values.to_vec()), "")
            }
        }
    }

    /// One lane of a vector; a scalar is its own lane 0.
    pub fn extract(&mut self, vector: Value, lane: u32) -> Value {
        if self.ty(vector).lanes() == 1 {
            return vector;
        }
        let ty = Type::Scalar(self.dtype(vector));
        self.define(ty, Inst::Extract(vector, lane), "")
    }

    /// The vector with one lane replaced.
    pub fn insert(&mut self, vector: Value, lane: u32, scalar: Value) -> Value {
        let ty = self.ty(vector).clone();
        self.define(ty, Inst::Insert(vector, lane, scalar), "")
    }

    /// Lanes picked from two vectors laid end to end.
    pub fn shuffle(&mut self, left: Value, right: Value, lanes: &[u32]) -> Value {
        let ty = Type::of(self.dtype(left), lanes.len() as u32);
        self.define(ty, Inst::Shuffle(left, right, lanes.to_vec()), "")
    }

    /// All lanes combined into one; a scalar is itself.
    pub fn reduce_lanes(&mut self, op: ReduceOp, vector: Value) -> Value {
        if self.ty(vector).lanes() == 1 {
            return vector;
        }
        let ty = Type::Scalar(self.dtype(vector));
        self.define(ty, Inst::ReduceLanes(op, vector), "")
    }

    /// A query about the work-item.
    pub fn work_item(&mut self, query: WorkItem, axis: u8) -> Value {
        self.define(Type::INDEX, Inst::WorkItem(query, axis), "")
    }

    /// Calls a function that returns a value of that type.
    pub fn call(&mut self, function: FunctionId, arguments: &[Value], result: Type) -> Value {
        self.define(result, Inst::Call(function, arguments.to_vec()), "")
    }

    // Memory.

    /// A new array of `count` elements that lives until the block ends.
    pub fn alloc(&mut self, space: Space, ty: Type, count: u64, name: &str) -> Value {
        let pointer = ty.clone().pointer(space);
        self.define(pointer, Inst::Alloc { space, ty, count }, name)
    }

    /// Reads an element.
    pub fn load(&mut self, ptr: Value, index: Value) -> Value {
        let ty = self.element(ptr);
        self.define_load(ptr, index, ty)
    }

    /// Reads `lanes` consecutive scalars; one scalar for one lane.
    pub fn load_vector(&mut self, ptr: Value, index: Value, lanes: u32) -> Value {
        let dtype = self.element(ptr).dtype().unwrap_or(DType::I64);
        self.define_load(ptr, index, Type::of(dtype, lanes))
    }

    /// Writes an element, or a vector over consecutive scalars.
    pub fn store(&mut self, ptr: Value, index: Value, value: Value) {
        self.push(Stmt::Store { ptr, index, value });
    }

    /// The pointer `index` elements further on; itself for 0.
    pub fn offset(&mut self, ptr: Value, index: Value) -> Value {
        if self.known_i64(index) == Some(0) {
            return ptr;
        }
        let ty = self.ty(ptr).clone();
        self.define(ty, Inst::Offset { ptr, index }, "")
    }

    /// The address of a struct's field, whose type the caller knows from the module.
    pub fn field(&mut self, ptr: Value, field: u32, field_type: Type) -> Value {
        let ty = field_type.pointer(self.space(ptr));
        self.define(ty, Inst::Field { ptr, field }, "")
    }

    /// The address of an array's first element.
    pub fn elements(&mut self, ptr: Value) -> Value {
        let element = match self.element(ptr) {
            Type::Array(element, _) => *element,
            other => {
                debug_assert!(false, "`elements` takes a pointer to an array");
                other
            }
        };
        let ty = element.pointer(self.space(ptr));
        self.define(ty, Inst::Elements(ptr), "")
    }

    /// Reads, combines and writes an element at once; gives the value before.
    pub fn atomic(&mut self, op: AtomicOp, ptr: Value, index: Value, value: Value) -> Value {
        let ty = self.element(ptr);
        let inst = Inst::Atomic {
            op,
            ptr,
            index,
            value,
        };
        self.define(ty, inst, "")
    }

    /// Writes `value` if the element equals `expected`; gives the value before.
    pub fn compare_exchange(
        &mut self,
        ptr: Value,
        index: Value,
        expected: Value,
        value: Value,
    ) -> Value {
        let ty = self.element(ptr);
        let inst = Inst::CompareExchange {
            ptr,
            index,
            expected,
            value,
        };
        self.define(ty, inst, "")
    }

    // Tiles.

    /// Reads a tile whose rows lie one after the other.
    pub fn tile_load(&mut self, tile: TileType, ptr: Value, index: Value, stride: Value) -> Value {
        self.tile_load_interleaved(tile, ptr, index, stride, 1)
    }

    /// Reads a tile of whose rows so many at a time lie interleaved.
    pub fn tile_load_interleaved(
        &mut self,
        tile: TileType,
        ptr: Value,
        index: Value,
        stride: Value,
        interleave: u32,
    ) -> Value {
        let inst = Inst::TileLoad {
            ptr,
            index,
            stride,
            interleave,
        };
        self.define(Type::Tile(tile), inst, "")
    }

    /// A tile with one scalar everywhere.
    pub fn tile_splat(&mut self, tile: TileType, value: Value) -> Value {
        self.define(Type::Tile(tile), Inst::TileSplat(value), "")
    }

    /// `accumulator + left * right`.
    pub fn tile_mma(&mut self, left: Value, right: Value, accumulator: Value) -> Value {
        let ty = self.ty(accumulator).clone();
        debug_assert!(
            matches!(&ty, Type::Tile(tile) if tile.role == TileRole::Accumulator),
            "a tile product adds to an accumulator"
        );
        let inst = Inst::TileMma {
            left,
            right,
            accumulator,
        };
        self.define(ty, inst, "")
    }

    /// Writes a tile to memory.
    pub fn tile_store(&mut self, tile: Value, ptr: Value, index: Value, stride: Value) {
        self.push(Stmt::TileStore {
            tile,
            ptr,
            index,
            stride,
        });
    }

    // Control flow.

    /// A loop whose body is what the closure emits.
    pub fn for_loop(
        &mut self,
        start: Value,
        end: Value,
        step: Value,
        kind: LoopKind,
        name: &str,
        body: impl FnOnce(&mut Builder, Value),
    ) {
        let var = self.begin_for(start, end, step, kind, name);
        body(self, var);
        self.end_block();
    }

    /// Opens a loop's body and gives the loop's variable.
    pub fn begin_for(
        &mut self,
        start: Value,
        end: Value,
        step: Value,
        kind: LoopKind,
        name: &str,
    ) -> Value {
        let var = self.function.value(Type::INDEX, name);
        self.known.push(None);
        self.open_block(Owner::For {
            var,
            start,
            end,
            step,
            kind,
        });
        var
    }

    /// Opens the block that runs where `cond` holds.
    pub fn begin_if(&mut self, cond: Value) {
        self.open_block(Owner::Then { cond });
    }

    /// Closes the block opened by [`Builder::begin_if`] and opens the one that runs otherwise.
    pub fn begin_else(&mut self) {
        let (owner, then) = self.close();
        match owner {
            Owner::Then { cond } => self.open_block(Owner::Otherwise { cond, then }),
            other => self.reopen(other, then, "`begin_else` follows `begin_if`"),
        }
    }

    /// An `if` without `else` whose block is what the closure emits.
    pub fn if_then(&mut self, cond: Value, then: impl FnOnce(&mut Builder)) {
        self.begin_if(cond);
        then(self);
        self.end_block();
    }

    /// Opens the head of a `while`, which computes the condition.
    pub fn begin_while(&mut self) {
        self.open_block(Owner::WhileHead);
    }

    /// Ends the head of a `while` with its condition and opens the body. What the head defines
    /// stays visible.
    pub fn while_cond(&mut self, cond: Value) {
        let Some(block) = self.open.last_mut() else {
            return;
        };
        debug_assert!(
            matches!(block.owner, Owner::WhileHead),
            "`while_cond` follows `begin_while`"
        );
        if matches!(block.owner, Owner::WhileHead) {
            // The block stays on the stack, and with it the head's constants stay visible.
            let head = std::mem::take(&mut block.statements);
            block.owner = Owner::WhileBody { head, cond };
        }
    }

    /// Closes the innermost block.
    pub fn end_block(&mut self) {
        let (owner, body) = self.close();
        match owner {
            Owner::Function => {
                self.reopen(Owner::Function, body, "`end_block` closes what was opened");
            }
            Owner::For {
                var,
                start,
                end,
                step,
                kind,
            } => self.push(Stmt::For {
                var,
                start,
                end,
                step,
                kind,
                body,
            }),
            Owner::Then { cond } => self.push(Stmt::If {
                cond,
                then: body,
                otherwise: Block::new(),
            }),
            Owner::Otherwise { cond, then } => self.push(Stmt::If {
                cond,
                then,
                otherwise: body,
            }),
            Owner::WhileHead => {
                self.reopen(Owner::WhileHead, body, "`while_cond` ends a `while`'s head");
            }
            Owner::WhileBody { head, cond } => self.push(Stmt::While { head, cond, body }),
        }
    }

    /// Leaves the innermost loop.
    pub fn brk(&mut self) {
        self.push(Stmt::Break);
    }

    /// Goes on with the innermost loop's next iteration.
    pub fn cont(&mut self) {
        self.push(Stmt::Continue);
    }

    /// Leaves the function.
    pub fn ret(&mut self, value: Option<Value>) {
        self.push(Stmt::Return(value));
    }

    /// Makes the work-items of the group wait for one another.
    pub fn barrier(&mut self, local: bool, global: bool) {
        self.push(Stmt::Barrier { local, global });
    }

    /// Adds a statement as it is. Blocks in it must not define what a later constant would reuse.
    pub fn push(&mut self, statement: Stmt) {
        if let Some(block) = self.open.last_mut() {
            block.statements.push(statement);
        }
    }

    /// Defines a value of that type.
    pub fn define(&mut self, ty: Type, inst: Inst, name: &str) -> Value {
        unwind_if_asked();
        let value = self.function.value(ty, name);
        self.known.push(None);
        self.push(Stmt::Let(value, inst));
        value
    }

    /// Defines a pure value, or gives the visible one that is the same.
    fn define_pure(&mut self, pure: Pure, ty: Type, inst: Inst) -> Value {
        if let Some(value) = self.pure.get(&pure) {
            return *value;
        }
        let value = self.define(ty, inst, "");
        self.pure.insert(pure, value);
        if let Some(block) = self.open.last_mut() {
            block.pure.push(pure);
        }
        value
    }

    fn define_load(&mut self, ptr: Value, index: Value, ty: Type) -> Value {
        let inst = Inst::Load { ptr, index };
        // Memory behind such a parameter stays as it is while the function runs.
        let mut params = self.function.params.iter();
        let constant =
            params.any(|param| param.value == ptr && param.noalias && param.access == Access::Read);
        if constant {
            self.define_pure(Pure::Load(ptr, index, ty.lanes()), ty, inst)
        } else {
            self.define(ty, inst, "")
        }
    }

    fn open_block(&mut self, owner: Owner) {
        self.open.push(OpenBlock {
            owner,
            statements: Block::new(),
            constants: Vec::new(),
            pure: Vec::new(),
        });
    }

    fn close(&mut self) -> (Owner, Block) {
        match self.open.pop() {
            Some(block) => {
                for scalar in &block.constants {
                    self.constants.remove(scalar);
                }
                for pure in &block.pure {
                    self.pure.remove(pure);
                }
                (block.owner, block.statements)
            }
            None => (Owner::Function, Block::new()),
        }
    }

    /// Goes on after a block was closed in the wrong way.
    fn reopen(&mut self, owner: Owner, statements: Block, invariant: &str) {
        debug_assert!(false, "{invariant}");
        if matches!(owner, Owner::WhileHead) {
            // A head without a condition has no form in the IR; its statements are kept.
            statements.into_iter().for_each(|s| self.push(s));
            return;
        }
        self.open_block(owner);
        if let Some(block) = self.open.last_mut() {
            block.statements = statements;
        }
    }

    fn dtype(&self, value: Value) -> DType {
        let dtype = self.ty(value).dtype();
        debug_assert!(dtype.is_some(), "the operand is a scalar or vector");
        dtype.unwrap_or(DType::I64)
    }

    fn element(&self, ptr: Value) -> Type {
        let pointee = self.ty(ptr).pointee();
        debug_assert!(pointee.is_some(), "the operand is a pointer");
        pointee.cloned().unwrap_or(Type::INDEX)
    }

    fn space(&self, ptr: Value) -> Space {
        match self.ty(ptr) {
            Type::Pointer(space, _) => *space,
            _ => Space::Private,
        }
    }
}
