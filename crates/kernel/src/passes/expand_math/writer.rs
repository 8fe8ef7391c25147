//! Writes the instructions of an expansion.

use crate::ir::{Block, Function, Inst, Stmt, Type, Value};
use loopwright_ops::{DType, Op, Output, Scalar};
use smallvec::SmallVec;

/// Writes the result of an op for an operand of dtype `f32`.
pub(super) type Expansion = fn(&mut Writer<'_>, Value) -> Value;

/// Appends instructions to a block. All values are scalars or all are vectors of as many lanes.
pub(super) struct Writer<'a> {
    function: &'a mut Function,
    out: &'a mut Block,
    lanes: u32,
    /// The constants of this expansion.
    constants: Vec<(Scalar, Value)>,
}

impl<'a> Writer<'a> {
    pub(super) fn new(function: &'a mut Function, out: &'a mut Block, lanes: u32) -> Writer<'a> {
        Writer {
            function,
            out,
            lanes,
            constants: Vec::new(),
        }
    }

    fn push(&mut self, dtype: DType, inst: Inst) -> Value {
        let value = self.function.value(Type::of(dtype, self.lanes), "");
        self.out.push(Stmt::Let(value, inst));
        value
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

    fn constant(&mut self, scalar: Scalar) -> Value {
        let known = self.constants.iter().find(|(known, _)| *known == scalar);
        if let Some((_, value)) = known {
            return *value;
        }
        let value = self.push(scalar.dtype(), Inst::Const(scalar));
        self.constants.push((scalar, value));
        value
    }

    pub(super) fn float(&mut self, value: f32) -> Value {
        self.constant(Scalar::f32(value))
    }

    pub(super) fn int(&mut self, value: i32) -> Value {
        self.constant(Scalar::from_bits(DType::I32, u64::from(value as u32)))
    }

    fn map(&mut self, op: Op, operands: &[Value]) -> Value {
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

    pub(super) fn and(&mut self, a: Value, b: Value) -> Value {
        self.map(Op::And, &[a, b])
    }

    /// `|x|`. The ops `abs` and `copysign` would be the same, but what emitters have for them in lanes is not
    /// always one instruction.
    pub(super) fn magnitude(&mut self, x: Value) -> Value {
        let bits = self.bits(x);
        let mask = self.int(i32::MAX);
        let bits = self.and(bits, mask);
        self.float_of(bits)
    }

    /// The result of a function that is `x` to all digits where `|x|` is below 2^-25; there half of `x` need not be exact, and
    /// sums have made 0 of -0.
    pub(super) fn itself_if_tiny(&mut self, x: Value, result: Value) -> Value {
        let magnitude = self.magnitude(x);
        let tiny = self.less(magnitude, 1.0 / 33_554_432.0);
        self.select(tiny, x, result)
    }

    /// `value`, which is not negative, with the sign of `x`.
    pub(super) fn signed_like(&mut self, value: Value, x: Value) -> Value {
        let [bits, sign] = [value, x].map(|value| self.bits(value));
        let mask = self.int(i32::MIN);
        let sign = self.and(sign, mask);
        let bits = self.map(Op::Or, &[bits, sign]);
        self.float_of(bits)
    }

    pub(super) fn at_most(&mut self, a: Value, most: f32) -> Value {
        let most = self.float(most);
        self.map(Op::Min, &[a, most])
    }

    pub(super) fn at_least(&mut self, a: Value, least: f32) -> Value {
        let least = self.float(least);
        self.map(Op::Max, &[a, least])
    }

    pub(super) fn less(&mut self, a: Value, b: f32) -> Value {
        let b = self.float(b);
        self.map(Op::Lt, &[a, b])
    }

    pub(super) fn not_above(&mut self, a: Value, b: f32) -> Value {
        let b = self.float(b);
        self.map(Op::Le, &[a, b])
    }

    pub(super) fn select(&mut self, condition: Value, a: Value, b: Value) -> Value {
        self.map(Op::Select, &[condition, a, b])
    }

    /// `a * b + c`: two instructions, which compilers may contract where the machine has one for them. The op
    /// `mul_add` would be a call of the library where it has none.
    pub(super) fn mul_add(&mut self, a: Value, b: Value, c: Value) -> Value {
        let product = self.mul(a, b);
        self.add(product, c)
    }

    /// The polynomial with these coefficients, that of the highest power first, at `x`.
    pub(super) fn polynomial(&mut self, x: Value, coefficients: &[f32]) -> Value {
        let (first, rest) = match coefficients {
            [first, rest @ ..] => (*first, rest),
            [] => unreachable!("a polynomial has a coefficient"),
        };
        let mut sum = self.float(first);
        for coefficient in rest {
            let coefficient = self.float(*coefficient);
            sum = self.mul_add(sum, x, coefficient);
        }
        sum
    }

    /// The bits of floats as `i32`.
    pub(super) fn bits(&mut self, value: Value) -> Value {
        self.push(DType::I32, Inst::Bitcast(DType::I32, value))
    }

    /// The floats with these bits.
    pub(super) fn float_of(&mut self, value: Value) -> Value {
        self.push(DType::F32, Inst::Bitcast(DType::F32, value))
    }

    /// Conversion to another dtype; the value itself if it has that one.
    pub(super) fn cast(&mut self, dtype: DType, value: Value) -> Value {
        match self.dtype(value) == dtype {
            true => value,
            false => self.push(dtype, Inst::Cast(dtype, value)),
        }
    }
}
