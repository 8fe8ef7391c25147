//! Writes the instructions of an expansion.

use crate::ir::{Block, Function, Inst, Space, Stmt, Type, Value};
use loopwright_ops::{DType, Op, Output, ReduceOp, Scalar};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// The bit of a double that is its sign.
const SIGN: u64 = 1 << 63;

/// The constants of all expansions of a function, each once for each number of lanes. They are defined before
/// everything else, so that no loop computes them again.
#[derive(Default)]
pub(super) struct Constants {
    known: FxHashMap<(Scalar, u32), Value>,
    definitions: Block,
}

impl Constants {
    /// Puts the definitions in front of a function's body.
    pub(super) fn define(mut self, body: &mut Block) {
        self.definitions.append(body);
        *body = self.definitions;
    }
}

/// Appends instructions to a block. All values are scalars or all are vectors of as many lanes.
pub(super) struct Writer<'a> {
    function: &'a mut Function,
    constants: &'a mut Constants,
    out: &'a mut Block,
    lanes: u32,
}

impl<'a> Writer<'a> {
    pub(super) fn new(
        function: &'a mut Function,
        constants: &'a mut Constants,
        out: &'a mut Block,
        lanes: u32,
    ) -> Writer<'a> {
        Writer {
            function,
            constants,
            out,
            lanes,
        }
    }

    fn push_as(&mut self, ty: Type, inst: Inst) -> Value {
        let value = self.function.value(ty, "");
        self.out.push(Stmt::Let(value, inst));
        value
    }

    fn push(&mut self, dtype: DType, inst: Inst) -> Value {
        self.push_as(Type::of(dtype, self.lanes), inst)
    }

    fn dtype(&self, value: Value) -> DType {
        match self.function.ty(value).dtype() {
            Some(dtype) => dtype,
            None => unreachable!("an expansion computes with scalars and vectors"),
        }
    }

    /// Makes `result`, which was written last, the definition of `value`.
    pub(super) fn define(self, value: Value, result: Value) {
        match self.out.last_mut() {
            Some(Stmt::Let(last, _)) if *last == result => *last = value,
            _ => unreachable!("the result of an expansion is its last instruction"),
        }
    }

    fn constant_in(&mut self, scalar: Scalar, lanes: u32) -> Value {
        let Constants { known, definitions } = &mut *self.constants;
        *known.entry((scalar, lanes)).or_insert_with(|| {
            let value = self.function.value(Type::of(scalar.dtype(), lanes), "");
            definitions.push(Stmt::Let(value, Inst::Const(scalar)));
            value
        })
    }

    /// A float of the dtype of another value.
    fn float_like(&mut self, like: Value, number: f64) -> Value {
        let scalar = match self.dtype(like) {
            DType::F64 => Scalar::f64(number),
            _ => Scalar::f32(number as f32),
        };
        self.constant_in(scalar, self.lanes)
    }

    pub(super) fn float(&mut self, value: f32) -> Value {
        self.constant_in(Scalar::f32(value), self.lanes)
    }

    pub(super) fn double(&mut self, value: f64) -> Value {
        self.constant_in(Scalar::f64(value), self.lanes)
    }

    pub(super) fn int(&mut self, value: i32) -> Value {
        let scalar = Scalar::from_bits(DType::I32, u64::from(value as u32));
        self.constant_in(scalar, self.lanes)
    }

    /// Bits of a double.
    pub(super) fn word(&mut self, bits: u64) -> Value {
        self.constant_in(Scalar::from_bits(DType::U64, bits), self.lanes)
    }

    /// Bits of the dtype of others: these of an `f32`, or those of an `f64`.
    fn word_like(&mut self, like: Value, single: i32, double: u64) -> Value {
        match self.dtype(like) {
            DType::U64 => self.word(double),
            _ => self.int(single),
        }
    }

    pub(super) fn map(&mut self, op: Op, operands: &[Value]) -> Value {
        let last = operands[operands.len() - 1];
        let dtype = match op.info().output {
            Output::Same => self.dtype(last),
            Output::Bool => DType::Bool,
        };
        self.push(dtype, Inst::Map(op, SmallVec::from_slice(operands)))
    }

    pub(super) fn add(&mut self, a: Value, b: Value) -> Value {
        self.map(Op::Add, &[a, b])
    }

    pub(super) fn sub(&mut self, a: Value, b: Value) -> Value {
        self.map(Op::Sub, &[a, b])
    }

    pub(super) fn mul(&mut self, a: Value, b: Value) -> Value {
        self.map(Op::Mul, &[a, b])
    }

    pub(super) fn div(&mut self, a: Value, b: Value) -> Value {
        self.map(Op::Div, &[a, b])
    }

    pub(super) fn sqrt(&mut self, a: Value) -> Value {
        self.map(Op::Sqrt, &[a])
    }

    /// The nearest integer.
    pub(super) fn round(&mut self, a: Value) -> Value {
        self.map(Op::Round, &[a])
    }

    pub(super) fn and(&mut self, a: Value, b: Value) -> Value {
        self.map(Op::And, &[a, b])
    }

    pub(super) fn or(&mut self, a: Value, b: Value) -> Value {
        self.map(Op::Or, &[a, b])
    }

    /// Bits of a double, moved up by so many places.
    pub(super) fn up(&mut self, a: Value, places: u64) -> Value {
        let places = self.word(places);
        self.map(Op::Shl, &[a, places])
    }

    /// Bits of a double, moved down by so many places.
    pub(super) fn down(&mut self, a: Value, places: u64) -> Value {
        let places = self.word(places);
        self.map(Op::Shr, &[a, places])
    }

    pub(super) fn xor(&mut self, a: Value, b: Value) -> Value {
        self.map(Op::Xor, &[a, b])
    }

    pub(super) fn equal(&mut self, a: Value, b: Value) -> Value {
        self.map(Op::Eq, &[a, b])
    }

    pub(super) fn differ(&mut self, a: Value, b: Value) -> Value {
        self.map(Op::Ne, &[a, b])
    }

    pub(super) fn below(&mut self, a: Value, b: Value) -> Value {
        self.map(Op::Lt, &[a, b])
    }

    /// `a * scale`.
    pub(super) fn times(&mut self, a: Value, scale: impl Into<f64>) -> Value {
        let scale = self.float_like(a, scale.into());
        self.mul(a, scale)
    }

    /// `a + more`.
    pub(super) fn plus(&mut self, a: Value, more: impl Into<f64>) -> Value {
        let more = self.float_like(a, more.into());
        self.add(a, more)
    }

    /// `a - less`.
    pub(super) fn minus(&mut self, a: Value, less: impl Into<f64>) -> Value {
        let less = self.float_like(a, less.into());
        self.sub(a, less)
    }

    /// `from - a`.
    pub(super) fn taken_from(&mut self, from: impl Into<f64>, a: Value) -> Value {
        let from = self.float_like(a, from.into());
        self.sub(from, a)
    }

    /// `|x|`. The ops `abs` and `copysign` would be the same, but what emitters have for them in lanes
    /// is not always one instruction.
    pub(super) fn magnitude(&mut self, x: Value) -> Value {
        let bits = self.bits(x);
        let mask = self.word_like(bits, i32::MAX, !SIGN);
        let bits = self.and(bits, mask);
        self.float_of(bits)
    }

    /// The bit that is the sign of a float, alone.
    pub(super) fn sign(&mut self, x: Value) -> Value {
        let bits = self.bits(x);
        let mask = self.word_like(bits, i32::MIN, SIGN);
        self.and(bits, mask)
    }

    /// The result of a function that is `x` to all digits where `|x|` is below 2^-25, of `f64` below 2^-55; there half of `x`
    /// need not be exact, and sums have made 0 of -0.
    pub(super) fn itself_if_tiny(&mut self, x: Value, result: Value) -> Value {
        let magnitude = self.magnitude(x);
        let end = match self.dtype(x) {
            DType::F64 => 1.0 / 36_028_797_018_963_968.0,
            _ => 1.0 / 33_554_432.0,
        };
        let tiny = self.less(magnitude, end);
        self.select(tiny, x, result)
    }

    /// `value`, a float that is not negative, with the sign of `x`.
    pub(super) fn signed_like(&mut self, value: Value, x: Value) -> Value {
        let sign = self.sign(x);
        let bits = self.bits(value);
        let bits = self.or(bits, sign);
        self.float_of(bits)
    }

    /// `value` with another sign where the bit of `sign` is set.
    pub(super) fn negated_by(&mut self, value: Value, sign: Value) -> Value {
        let bits = self.bits(value);
        let bits = self.xor(bits, sign);
        self.float_of(bits)
    }

    pub(super) fn at_most(&mut self, a: Value, most: impl Into<f64>) -> Value {
        let most = self.float_like(a, most.into());
        self.map(Op::Min, &[a, most])
    }

    pub(super) fn at_least(&mut self, a: Value, least: impl Into<f64>) -> Value {
        let least = self.float_like(a, least.into());
        self.map(Op::Max, &[a, least])
    }

    pub(super) fn less(&mut self, a: Value, b: impl Into<f64>) -> Value {
        let b = self.float_like(a, b.into());
        self.map(Op::Lt, &[a, b])
    }

    pub(super) fn not_above(&mut self, a: Value, b: impl Into<f64>) -> Value {
        let b = self.float_like(a, b.into());
        self.map(Op::Le, &[a, b])
    }

    pub(super) fn above(&mut self, a: Value, b: impl Into<f64>) -> Value {
        let b = self.float_like(a, b.into());
        self.map(Op::Gt, &[a, b])
    }

    pub(super) fn is(&mut self, a: Value, b: impl Into<f64>) -> Value {
        let b = self.float_like(a, b.into());
        self.map(Op::Eq, &[a, b])
    }

    /// Whether an `f32` that is not negative is above a bound or NaN: infinities and NaN have the largest bits.
    pub(super) fn beyond(&mut self, magnitude: Value, bound: f32) -> Value {
        let bits = self.bits(magnitude);
        let bound = self.int(bound.to_bits() as i32);
        self.map(Op::Gt, &[bits, bound])
    }

    pub(super) fn select(&mut self, condition: Value, a: Value, b: Value) -> Value {
        self.map(Op::Select, &[condition, a, b])
    }

    /// `usual`, but in the lanes where `rare` holds what `write` gives there. If there is none, that is skipped.
    /// A lane's result does not depend on the others.
    pub(super) fn unless(
        &mut self,
        rare: Value,
        usual: Value,
        write: impl FnOnce(&mut Self) -> Value,
    ) -> Value {
        let ty = self.function.ty(usual).clone();
        let place = self.push_as(
            ty.clone().pointer(Space::Private),
            Inst::Alloc {
                space: Space::Private,
                ty: ty.clone(),
                count: 1,
            },
        );
        let index = self.constant_in(Scalar::i64(0), 1);
        let store = |value| Stmt::Store {
            ptr: place,
            index,
            value,
        };
        self.out.push(store(usual));
        let any = match self.lanes {
            1 => rare,
            _ => self.push_as(
                Type::Scalar(DType::Bool),
                Inst::ReduceLanes(ReduceOp::Any, rare),
            ),
        };
        let before = std::mem::take(self.out);
        let there = write(self);
        let result = self.select(rare, there, usual);
        let mut then = std::mem::replace(self.out, before);
        then.push(store(result));
        self.out.push(Stmt::If {
            cond: any,
            then,
            otherwise: Block::new(),
        });
        self.push_as(ty, Inst::Load { ptr: place, index })
    }

    /// `a * b + c`: two instructions, which [`contract`](super::super::contract) makes one where the machine has one for them.
    pub(super) fn mul_add(&mut self, a: Value, b: Value, c: Value) -> Value {
        let product = self.mul(a, b);
        self.add(product, c)
    }

    /// The polynomial with these coefficients, that of the highest power first, at `x`.
    pub(super) fn polynomial<C: Copy + Into<f64>>(
        &mut self,
        x: Value,
        coefficients: &[C],
    ) -> Value {
        let (first, rest) = match coefficients {
            [first, rest @ ..] => (*first, rest),
            [] => unreachable!("a polynomial has a coefficient"),
        };
        let mut sum = self.float_like(x, first.into());
        for coefficient in rest {
            let coefficient = self.float_like(x, (*coefficient).into());
            sum = self.mul_add(sum, x, coefficient);
        }
        sum
    }

    /// `x + x^3 * p(x^2)`, the beginning of an odd function whose slope at 0 is 1, with this polynomial `p`.
    pub(super) fn odd<C: Copy + Into<f64>>(&mut self, x: Value, coefficients: &[C]) -> Value {
        let square = self.mul(x, x);
        let rest = self.polynomial(square, coefficients);
        let cube = self.mul(square, x);
        self.mul_add(rest, cube, x)
    }

    /// The bits of an `f32` as `i32`, those of an `f64` as `u64`, which machines can shift without regard to a sign.
    pub(super) fn bits(&mut self, value: Value) -> Value {
        let word = match self.dtype(value) {
            DType::F64 => DType::U64,
            _ => DType::I32,
        };
        self.push(word, Inst::Bitcast(word, value))
    }

    /// The float with these bits.
    pub(super) fn float_of(&mut self, value: Value) -> Value {
        let float = match self.dtype(value) {
            DType::U64 => DType::F64,
            _ => DType::F32,
        };
        self.push(float, Inst::Bitcast(float, value))
    }

    /// Conversion to another dtype; the value itself if it has that one.
    pub(super) fn cast(&mut self, dtype: DType, value: Value) -> Value {
        match self.dtype(value) == dtype {
            true => value,
            false => self.push(dtype, Inst::Cast(dtype, value)),
        }
    }
}
