//! Random kernels that are valid, stay in bounds, read nothing undefined and end.

use crate::ir::{
    Access, AtomicOp, Block, Function, FunctionId, FunctionKind, Inst, LoopKind, Module, Space,
    Stmt, Type, Value,
};
use loopwright_ops::{DType, Op, ReduceOp, Scalar};

/// Elements of every buffer.
pub(super) const ELEMENTS: i64 = 16;

/// Elements of the buffers, one per dtype, in which computed values are shown to the outside.
pub(super) const SHOWN: i64 = 64;

/// SplitMix64: small, seeded, and the same everywhere.
pub(super) struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }

    /// A value that often lies at an edge.
    pub fn scalar(&mut self, dtype: DType) -> Scalar {
        match self.below(8) {
            0 | 7 => Scalar::zero(dtype),
            1 => Scalar::one(dtype),
            2 => Scalar::min_value(dtype),
            3 if dtype.is_float() => {
                // Negative zero: all but the sign is zero.
                Scalar::from_bits(dtype, 1 << (dtype.bits() - 1))
            }
            4 => Scalar::from_bits(dtype, self.next()),
            _ => Scalar::from_i64(dtype, self.below(17) as i64 - 8),
        }
    }
}

/// A random kernel `fuzzed`, which takes its buffers, one buffer per dtype of [`DTYPES`] that is only
/// written, and an `i64` below 4.
pub(super) struct Kernel {
    pub module: Module,
    pub buffers: Vec<DType>,
}

pub(super) const DTYPES: [DType; 9] = [
    DType::F32,
    DType::I64,
    DType::Bool,
    DType::I32,
    DType::U8,
    DType::U64,
    DType::F16,
    DType::F64,
    DType::I8,
];

/// The kernel of a seed.
pub(super) fn generate(seed: u64) -> Kernel {
    let mut random = Random::new(seed.wrapping_mul(0x1234_5678_9abc_def1));
    let mut function = Function::new("fuzzed", FunctionKind::Kernel { group: None });
    let buffers: Vec<DType> = (0..4)
        .map(|at| match at {
            0 => DType::F32,
            1 => DType::I64,
            _ => random.pick(&DTYPES),
        })
        .collect();
    let mut memory = Vec::new();
    for (at, &dtype) in buffers.iter().enumerate() {
        let ty = Type::Scalar(dtype).pointer(Space::Global);
        let noalias = random.chance(60);
        let ptr = function.param(ty, format!("b{at}"), Access::ReadWrite, noalias);
        memory.push(Array {
            ptr,
            ty: Type::Scalar(dtype),
            count: ELEMENTS,
        });
    }
    let shown = DTYPES.map(|dtype| {
        let ty = Type::Scalar(dtype).pointer(Space::Global);
        (
            function.param(ty, format!("shown_{dtype}"), Access::Write, true),
            0,
        )
    });
    let n = function.param(Type::INDEX, "n", Access::Read, false);
    let mut writer = Writer {
        function,
        random,
        values: vec![n],
        indices: Vec::new(),
        memory,
        shown,
        n,
        budget: 60,
        loops: 0,
        jumps: false,
    };
    let mut body = Block::new();
    writer.block(&mut body, 25, 0);
    writer.function.body = body;
    Kernel {
        module: Module {
            functions: vec![writer.function, bump()].into(),
            ..Module::default()
        },
        buffers,
    }
}

/// `bump(p, i)`: adds 1 to `p[i]` and gives what was there.
fn bump() -> Function {
    let mut function = Function::new("bump", FunctionKind::Device);
    let pointer = Type::Scalar(DType::F32).pointer(Space::Global);
    let ptr = function.param(pointer, "p", Access::ReadWrite, false);
    let index = function.param(Type::INDEX, "i", Access::Read, false);
    let f32 = Type::Scalar(DType::F32);
    function.result = Some(f32.clone());
    let [before, one, after] =
        ["before", "one", "after"].map(|name| function.value(f32.clone(), name));
    function.body = vec![
        Stmt::Let(before, Inst::Load { ptr, index }),
        Stmt::Let(one, Inst::Const(Scalar::f32(1.0))),
        Stmt::Let(
            after,
            Inst::Map(Op::Add, [before, one].into_iter().collect()),
        ),
        Stmt::Store {
            ptr,
            index,
            value: after,
        },
        Stmt::Return(Some(before)),
    ];
    function
}

/// Memory that may be accessed.
#[derive(Clone)]
struct Array {
    ptr: Value,
    ty: Type,
    count: i64,
}

struct Writer {
    function: Function,
    random: Random,
    /// The values visible here.
    values: Vec<Value>,
    /// Indices visible here, with a bound they are below.
    indices: Vec<(Value, i64)>,
    /// The memory visible here, all of it defined.
    memory: Vec<Array>,
    /// The buffers that show values, and how much of each is used.
    shown: [(Value, i64); DTYPES.len()],
    /// The last parameter.
    n: Value,
    /// Statements that may still be written.
    budget: i64,
    /// Loops around.
    loops: u32,
    /// Whether a `break` or `continue` may stand here.
    jumps: bool,
}

impl Writer {
    fn define(&mut self, out: &mut Block, ty: Type, inst: Inst) -> Value {
        let value = self.function.value(ty, "");
        out.push(Stmt::Let(value, inst));
        self.values.push(value);
        value
    }

    fn constant(&mut self, out: &mut Block, scalar: Scalar) -> Value {
        self.define(out, Type::Scalar(scalar.dtype()), Inst::Const(scalar))
    }

    fn map(&mut self, out: &mut Block, ty: Type, op: Op, args: &[Value]) -> Value {
        self.define(out, ty, Inst::Map(op, args.iter().copied().collect()))
    }

    /// A visible value of a type, or a new constant.
    fn value(&mut self, out: &mut Block, ty: &Type) -> Value {
        let fitting: Vec<Value> = self
            .values
            .iter()
            .copied()
            .filter(|&value| self.function.ty(value) == ty)
            .collect();
        if fitting.is_empty() || self.random.chance(20) {
            let dtype = ty.dtype().expect("only scalars and vectors are asked for");
            let scalar = self.random.scalar(dtype);
            return self.define(out, ty.clone(), Inst::Const(scalar));
        }
        // Values made lately, most of the time: long chains are more interesting than wide ones.
        if self.random.chance(50) {
            let recent = &fitting[fitting.len().saturating_sub(4)..];
            return self.random.pick(recent);
        }
        self.random.pick(&fitting)
    }

    /// An `i64` that is at least 0 and below `bound`.
    fn index(&mut self, out: &mut Block, bound: i64) -> Value {
        // The same index again is what makes loads and stores meet.
        let fitting: Vec<Value> = self
            .indices
            .iter()
            .filter(|(_, below)| *below <= bound)
            .map(|(value, _)| *value)
            .collect();
        if !fitting.is_empty() && self.random.chance(60) {
            return self.random.pick(&fitting);
        }
        if self.random.chance(30) {
            let at = self.random.below(bound as u64) as i64;
            let index = self.constant(out, Scalar::i64(at));
            self.indices.push((index, at + 1));
            return index;
        }
        let at = self.affine(out);
        let limit = self.constant(out, Scalar::i64(bound));
        let index = self.map(out, Type::INDEX, Op::Mod, &[at, limit]);
        self.indices.push((index, bound));
        index
    }

    /// Shows a value to the outside.
    fn show(&mut self, out: &mut Block, value: Value) {
        let ty = self.function.ty(value).clone();
        let place = DTYPES.iter().position(|&dtype| ty.dtype() == Some(dtype));
        let Some(place) = place else { return };
        let (ptr, used) = self.shown[place];
        let lanes = i64::from(ty.lanes());
        if used + lanes > SHOWN {
            return;
        }
        self.shown[place].1 += lanes;
        let index = self.function.value(Type::INDEX, "");
        out.push(Stmt::Let(index, Inst::Const(Scalar::i64(used))));
        out.push(Stmt::Store { ptr, index, value });
    }

    /// An expression as index arithmetic has them.
    fn affine(&mut self, out: &mut Block) -> Value {
        let mut value = self.value(out, &Type::INDEX);
        for _ in 0..self.random.below(4) {
            let op = self.random.pick(&[
                Op::Add,
                Op::Add,
                Op::Sub,
                Op::Mul,
                Op::FloorDiv,
                Op::Mod,
                Op::Div,
                Op::Rem,
                Op::Shl,
                Op::Neg,
                Op::Min,
                Op::Max,
                Op::MulAdd,
            ]);
            let factor = self.random.pick(&[0, 1, 2, 3, 4, 8, -1, 16]);
            let constant = self.constant(out, Scalar::i64(factor));
            let other = match op {
                Op::Add | Op::Sub | Op::Min | Op::Max if self.random.chance(60) => {
                    self.value(out, &Type::INDEX)
                }
                _ => constant,
            };
            let args = match op {
                Op::Neg => vec![value],
                Op::MulAdd => vec![value, constant, self.value(out, &Type::INDEX)],
                _ if self.random.chance(20) => vec![other, value],
                _ => vec![value, other],
            };
            value = self.map(out, Type::INDEX, op, &args);
        }
        value
    }

    /// Memory, the type of an access to it, and its index.
    fn access(&mut self, out: &mut Block) -> (Value, Value, Type) {
        let at = self.random.below(self.memory.len() as u64) as usize;
        let array = self.memory[at].clone();
        let mut ty = array.ty.clone();
        let mut lanes = 1;
        if let Type::Scalar(dtype) = ty
            && array.count >= 4
            && self.random.chance(20)
        {
            lanes = 1 << (1 + self.random.below(2));
            ty = Type::Vector(dtype, lanes);
        }
        let mut room = array.count - i64::from(lanes) + 1;
        let mut ptr = array.ptr;
        if room > 8 && self.random.chance(15) {
            let by = self.index(out, 8);
            let ty = self.function.ty(ptr).clone();
            ptr = self.function.value(ty, "");
            out.push(Stmt::Let(
                ptr,
                Inst::Offset {
                    ptr: array.ptr,
                    index: by,
                },
            ));
            room -= 8;
        }
        let index = self.index(out, room);
        (ptr, index, ty)
    }

    pub fn store(&mut self, out: &mut Block) {
        let (ptr, index, ty) = self.access(out);
        let value = self.value(out, &ty);
        out.push(Stmt::Store { ptr, index, value });
    }

    fn block(&mut self, out: &mut Block, most: u64, depth: u32) {
        let (values, memory) = (self.values.len(), self.memory.len());
        let indices = self.indices.len();
        for _ in 0..1 + self.random.below(most) {
            if self.budget <= 0 {
                break;
            }
            self.budget -= 1;
            match self.random.below(if depth < 4 { 22 } else { 14 }) {
                0..4 => self.op(out),
                4 => self.convert(out),
                5 | 6 => self.lanes(out),
                7..10 => {
                    let (ptr, index, ty) = self.access(out);
                    self.define(out, ty, Inst::Load { ptr, index });
                }
                10..12 => self.store(out),
                12 => match self.random.below(3) {
                    0 => {
                        self.affine(out);
                    }
                    1 => self.divide(out),
                    _ => self.compare(out),
                },
                13 => self.effect(out),
                14 => self.alloc(out),
                15 | 16 => self.counted(out, depth),
                17 => self.while_loop(out, depth),
                18 => self.guarded(out),
                19 => self.accumulate(out),
                _ => self.branch(out, depth),
            }
        }
        for at in values..self.values.len() {
            let value = self.values[at];
            if self.random.chance(40) {
                self.show(out, value);
            }
        }
        if depth > 0 {
            self.values.truncate(values);
            self.memory.truncate(memory);
            self.indices.truncate(indices);
        }
    }

    fn op(&mut self, out: &mut Block) {
        let dtype = self.random.pick(&DTYPES);
        let allowed: Vec<Op> = Op::ALL
            .iter()
            .copied()
            .filter(|op| op.info().class.allows(dtype))
            .collect();
        let common = [
            Op::Add,
            Op::Sub,
            Op::Mul,
            Op::Lt,
            Op::Select,
            Op::Neg,
            Op::Min,
        ];
        let mut op = self.random.pick(&allowed);
        if self.random.chance(50) {
            let common = self.random.pick(&common);
            if common.info().class.allows(dtype) {
                op = common;
            }
        }
        let lanes = if self.random.chance(15) { 4 } else { 1 };
        let ty = Type::of(dtype, lanes);
        let mut args: Vec<Value> = (0..op.arity()).map(|_| self.value(out, &ty)).collect();
        let mut dtypes = vec![dtype; op.arity()];
        if op == Op::Select {
            args[0] = self.value(out, &Type::of(DType::Bool, lanes));
            dtypes[0] = DType::Bool;
        }
        if args.len() == 2 && self.random.chance(10) {
            args[1] = args[0];
        }
        let result = op.result_dtype(&dtypes).expect("the op takes the dtype");
        self.map(out, Type::of(result, lanes), op, &args);
    }

    fn convert(&mut self, out: &mut Block) {
        let from = self.random.pick(&DTYPES);
        let value = self.value(out, &Type::Scalar(from));
        let to = self.random.pick(&DTYPES);
        // The bits of a NaN are nobody's promise, so floats are not taken apart.
        if self.random.chance(30) && from.is_int() && to.bits() == from.bits() && to != DType::Bool
        {
            self.define(out, Type::Scalar(to), Inst::Bitcast(to, value));
        } else {
            let mid = self.define(out, Type::Scalar(to), Inst::Cast(to, value));
            if self.random.chance(40) {
                let last = self.random.pick(&DTYPES);
                self.define(out, Type::Scalar(last), Inst::Cast(last, mid));
            }
        }
    }

    fn lanes(&mut self, out: &mut Block) {
        let dtype = self.random.pick(&DTYPES);
        let (scalar, vector) = (Type::Scalar(dtype), Type::Vector(dtype, 4));
        let lane = self.random.below(4) as u32;
        match self.random.below(6) {
            0 => {
                let value = self.value(out, &scalar);
                self.define(out, vector, Inst::Splat(value));
            }
            1 => {
                let values = (0..4).map(|_| self.value(out, &scalar)).collect();
                self.define(out, vector, Inst::Build(values));
            }
            2 => {
                let value = self.value(out, &vector);
                self.define(out, scalar, Inst::Extract(value, lane));
            }
            3 => {
                let value = self.value(out, &vector);
                let element = self.value(out, &scalar);
                self.define(out, vector, Inst::Insert(value, lane, element));
            }
            4 => {
                let [left, right] = [(); 2].map(|()| self.value(out, &vector));
                let picks = (0..4).map(|_| self.random.below(8) as u32).collect();
                self.define(out, vector, Inst::Shuffle(left, right, picks));
            }
            _ => {
                let value = self.value(out, &vector);
                let op = self.random.pick(&ReduceOp::ALL);
                if op.allows(dtype) {
                    self.define(out, scalar, Inst::ReduceLanes(op, value));
                }
            }
        }
    }

    /// A call or an atomic, on the first or second buffer.
    fn effect(&mut self, out: &mut Block) {
        let index = self.index(out, ELEMENTS);
        let ptr = self.memory[self.random.below(2) as usize].clone();
        if ptr.ty == Type::Scalar(DType::F32) && self.random.chance(60) {
            let args = vec![ptr.ptr, index];
            self.define(out, ptr.ty, Inst::Call(FunctionId(1), args));
            return;
        }
        let value = self.value(out, &ptr.ty);
        // Floats only add and move atomically.
        let integers = ptr.ty == Type::INDEX;
        let inst = if !integers || self.random.chance(70) {
            let ops = [
                AtomicOp::Add,
                AtomicOp::Exchange,
                AtomicOp::Max,
                AtomicOp::Xor,
            ];
            Inst::Atomic {
                op: self.random.pick(&ops[..if integers { 4 } else { 2 }]),
                ptr: ptr.ptr,
                index,
                value,
            }
        } else {
            Inst::CompareExchange {
                ptr: ptr.ptr,
                index,
                expected: self.value(out, &ptr.ty),
                value,
            }
        };
        self.define(out, ptr.ty, inst);
    }

    /// A private array, written from one end to the other.
    fn alloc(&mut self, out: &mut Block) {
        let dtype = self.random.pick(&DTYPES);
        let ty = match self.random.chance(20) {
            true => Type::Vector(dtype, 4),
            false => Type::Scalar(dtype),
        };
        let count = 1 + self.random.below(6) as i64;
        let ptr = self.function.value(ty.clone().pointer(Space::Private), "a");
        out.push(Stmt::Let(
            ptr,
            Inst::Alloc {
                space: Space::Private,
                ty: ty.clone(),
                count: count as u64,
            },
        ));
        if self.random.chance(50) {
            for at in 0..count {
                let index = self.constant(out, Scalar::i64(at));
                let value = self.value(out, &ty);
                out.push(Stmt::Store { ptr, index, value });
            }
        } else {
            let value = self.value(out, &ty);
            let kind = self
                .random
                .pick(&[LoopKind::Serial, LoopKind::Unroll, LoopKind::Vectorize]);
            let [start, end, step] =
                [0, count, 1].map(|bound| self.constant(out, Scalar::i64(bound)));
            let var = self.function.value(Type::INDEX, "i");
            out.push(Stmt::For {
                var,
                start,
                end,
                step,
                kind,
                body: vec![Stmt::Store {
                    ptr,
                    index: var,
                    value,
                }],
            });
        }
        self.memory.push(Array { ptr, ty, count });
    }

    /// Writes the inside of a loop; jumps in it are its own.
    fn inside(&mut self, depth: u32, jumps: bool) -> Block {
        let outer = std::mem::replace(&mut self.jumps, jumps);
        self.loops += 1;
        let mut body = Block::new();
        self.block(&mut body, 8, depth + 1);
        self.loops -= 1;
        self.jumps = outer;
        body
    }

    fn counted(&mut self, out: &mut Block, depth: u32) {
        if self.loops >= 3 {
            return;
        }
        let first = self.random.below(3) as i64;
        let trips = self.random.pick(&[0, 1, 1, 2, 3, 4]);
        let by = 1 + self.random.below(3) as i64;
        let [start, mut end, step] =
            [first, first + trips * by, by].map(|bound| self.constant(out, Scalar::i64(bound)));
        if self.random.chance(25) {
            end = self.n;
        }
        let kind = self.random.pick(&[LoopKind::Serial, LoopKind::Unroll]);
        let var = self.function.value(Type::INDEX, "i");
        let visible = self.values.len();
        self.values.push(var);
        let indices = self.indices.len();
        self.indices.push((var, first + trips.max(4) * by));
        let jumps = self.random.chance(40);
        let body = self.inside(depth, jumps);
        self.values.truncate(visible);
        self.indices.truncate(indices);
        out.push(Stmt::For {
            var,
            start,
            end,
            step,
            kind,
            body,
        });
    }

    /// A loop that counts in memory, which no jump skips.
    fn while_loop(&mut self, out: &mut Block, depth: u32) {
        if self.loops >= 2 {
            return;
        }
        let counter = self
            .function
            .value(Type::INDEX.pointer(Space::Private), "counter");
        out.push(Stmt::Let(
            counter,
            Inst::Alloc {
                space: Space::Private,
                ty: Type::INDEX,
                count: 1,
            },
        ));
        let trips = self.random.below(4) as i64;
        let [zero, one, end] = [0, 1, trips].map(|at| self.constant(out, Scalar::i64(at)));
        out.push(Stmt::Store {
            ptr: counter,
            index: zero,
            value: zero,
        });
        let visible = self.values.len();
        let mut head = Block::new();
        let load = Inst::Load {
            ptr: counter,
            index: zero,
        };
        let at = self.define(&mut head, Type::INDEX, load);
        let cond = self.map(&mut head, Type::Scalar(DType::Bool), Op::Lt, &[at, end]);
        let next = self.map(&mut head, Type::INDEX, Op::Add, &[at, one]);
        let mut body = vec![Stmt::Store {
            ptr: counter,
            index: zero,
            value: next,
        }];
        body.extend(self.inside(depth, true));
        self.values.truncate(visible);
        out.push(Stmt::While { head, cond, body });
    }

    /// A load that only a branch or a jump keeps in bounds.
    fn guarded(&mut self, out: &mut Block) {
        let at = self.random.below(self.memory.len() as u64) as usize;
        let array = self.memory[at].clone();
        let index = self.affine(out);
        let bool = Type::Scalar(DType::Bool);
        let [zero, count] = [0, array.count].map(|at| self.constant(out, Scalar::i64(at)));
        let above = self.map(out, bool.clone(), Op::Ge, &[index, zero]);
        let below = self.map(out, bool.clone(), Op::Lt, &[index, count]);
        let inside = self.map(out, bool.clone(), Op::And, &[above, below]);
        let load = Inst::Load {
            ptr: array.ptr,
            index,
        };
        if self.jumps && self.random.chance(50) {
            let outside = self.map(out, bool, Op::Not, &[inside]);
            let jump = match self.random.chance(50) {
                true => Stmt::Break,
                false => Stmt::Continue,
            };
            out.push(Stmt::If {
                cond: outside,
                then: vec![jump],
                otherwise: Block::new(),
            });
            self.define(out, array.ty, load);
            return;
        }
        let mut then = Block::new();
        let visible = self.values.len();
        let value = self.define(&mut then, array.ty, load);
        self.show(&mut then, value);
        self.values.truncate(visible);
        out.push(Stmt::If {
            cond: inside,
            then,
            otherwise: Block::new(),
        });
    }

    /// Reads an element, combines it, writes it back, often to be read again.
    fn accumulate(&mut self, out: &mut Block) {
        let (ptr, index, ty) = self.access(out);
        let before = self.define(out, ty.clone(), Inst::Load { ptr, index });
        let other = self.value(out, &ty);
        let value = match ty.dtype() {
            Some(DType::Bool) => self.map(out, ty.clone(), Op::Xor, &[before, other]),
            _ => self.map(out, ty.clone(), Op::Add, &[before, other]),
        };
        out.push(Stmt::Store { ptr, index, value });
        // Another element, or perhaps the same, is written in between.
        if self.random.chance(50) {
            let array = self.memory.iter().find(|array| array.ptr == ptr);
            let room = array.map(|array| match array.ty == ty {
                true => array.count,
                false => array.count - i64::from(ty.lanes()) + 1,
            });
            if let Some(room) = room {
                let index = self.index(out, room);
                out.push(Stmt::Store {
                    ptr,
                    index,
                    value: other,
                });
            }
        }
        if self.random.chance(70) {
            let again = self.define(out, ty, Inst::Load { ptr, index });
            self.show(out, again);
        }
    }

    /// `(x * k + j) / k`, which is `x` only if nothing wraps and `j` is below `k`.
    fn divide(&mut self, out: &mut Block) {
        let x = self.any_i64(out);
        let j = match self.random.chance(50) {
            true => self.index(out, 8),
            false => self.value(out, &Type::INDEX),
        };
        let k = self.random.pick(&[1, 2, 4, 8]);
        let k = self.constant(out, Scalar::i64(k));
        let product = self.map(out, Type::INDEX, Op::Mul, &[x, k]);
        let sum = self.map(out, Type::INDEX, Op::Add, &[product, j]);
        let op = self.random.pick(&[Op::FloorDiv, Op::Mod, Op::Div, Op::Rem]);
        let result = self.map(out, Type::INDEX, op, &[sum, k]);
        self.show(out, result);
    }

    /// `x + a < x + b`, which is `a < b` only if nothing wraps.
    fn compare(&mut self, out: &mut Block) {
        let x = self.any_i64(out);
        let [a, b] = [(); 2].map(|()| self.random.pick(&[-8, -1, 0, 1, 8]));
        let [a, b] = [a, b].map(|by| {
            let by = self.constant(out, Scalar::i64(by));
            self.map(out, Type::INDEX, Op::Add, &[x, by])
        });
        let op = self
            .random
            .pick(&[Op::Lt, Op::Le, Op::Gt, Op::Ge, Op::Eq, Op::Ne]);
        let truth = self.map(out, Type::Scalar(DType::Bool), op, &[a, b]);
        self.show(out, truth);
        let op = self.random.pick(&[Op::Min, Op::Max]);
        let chosen = self.map(out, Type::INDEX, op, &[a, b]);
        self.show(out, chosen);
    }

    /// An `i64` of which nothing is known, or perhaps something.
    fn any_i64(&mut self, out: &mut Block) -> Value {
        match self.random.below(3) {
            0 => {
                let ptr = self.memory[1].ptr;
                let index = self.index(out, ELEMENTS);
                self.define(out, Type::INDEX, Inst::Load { ptr, index })
            }
            1 => {
                let at = self.index(out, 8);
                let by = self.constant(out, Scalar::i64(-5));
                self.map(out, Type::INDEX, Op::Add, &[at, by])
            }
            _ => self.value(out, &Type::INDEX),
        }
    }

    fn branch(&mut self, out: &mut Block, depth: u32) {
        let cond = self.value(out, &Type::Scalar(DType::Bool));
        let [mut then, mut otherwise] = [Block::new(), Block::new()];
        self.block(&mut then, 5, depth + 1);
        if self.random.chance(50) {
            self.block(&mut otherwise, 5, depth + 1);
        }
        if self.jumps && self.random.chance(40) {
            then.push(match self.random.chance(50) {
                true => Stmt::Break,
                false => Stmt::Continue,
            });
        }
        if self.random.chance(3) {
            otherwise.push(Stmt::Return(None));
        }
        out.push(Stmt::If {
            cond,
            then,
            otherwise,
        });
    }
}
