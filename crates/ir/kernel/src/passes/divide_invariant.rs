//! Divides many values by one: the reciprocal is computed before the loop.
//!
//! A division takes a vector unit as long as a dozen products. Where the divisor of `f32` vectors does not change in a loop,
//! the pass writes `x / d` as products with the reciprocal `y` of `d`, corrected by the exact remainder: `q = x * y`,
//! `r = x - d * q`, `q + r * y`. If `y` is correctly rounded and the quotient is no subnormal number, so is the result; subnormal
//! results may be off by a unit in the last place. The divisor is first scaled by a power of two to a number near 1,
//! so that its reciprocal is a normal number; where the remainder is zero or no number (as of infinities and zeros), the quotient is that of
//! the products alone, with its sign.
//!
//! Like [`expand_math`](super::expand_math) it is none of [`NAMES`](super::NAMES): it is for backends whose `mul_add` is one
//! instruction, outside strict mode.

use crate::ir::{Block, Function, Inst, Stmt, Type, Value};
use loopwright_arena::TiVec;
use loopwright_ops::{DType, Op, Scalar};
use loopwright_threads::interrupt::unwind_if_asked;
use smallvec::SmallVec;

/// Runs the pass. Invariant motion must follow: everything is written where the division was.
pub fn run(function: &mut Function) {
    let mut pass = Pass {
        depth: vec![0; function.values.len()].into(),
        function,
        loops: 0,
    };
    let body = std::mem::take(&mut pass.function.body);
    pass.function.body = pass.block(body);
}

struct Pass<'f> {
    function: &'f mut Function,
    /// In how many loops each value is defined.
    depth: TiVec<Value, u32>,
    loops: u32,
}

impl Pass<'_> {
    fn block(&mut self, block: Block) -> Block {
        unwind_if_asked();
        let mut out = Block::with_capacity(block.len());
        for mut stmt in block {
            match &mut stmt {
                Stmt::Let(value, inst) => {
                    if let Inst::Map(Op::Div, operands) = inst
                        && let Type::Vector(DType::F32, lanes) = *self.function.ty(*value)
                        && self.depth[operands[1]] < self.loops
                    {
                        let (dividend, divisor) = (operands[0], operands[1]);
                        self.divide(*value, dividend, divisor, lanes, &mut out);
                        self.define(*value);
                        continue;
                    }
                    self.define(*value);
                }
                Stmt::For { var, body, .. } => {
                    self.loops += 1;
                    self.define(*var);
                    *body = self.block(std::mem::take(body));
                    self.loops -= 1;
                }
                Stmt::While { head, body, .. } => {
                    self.loops += 1;
                    *head = self.block(std::mem::take(head));
                    *body = self.block(std::mem::take(body));
                    self.loops -= 1;
                }
                Stmt::If {
                    then, otherwise, ..
                } => {
                    *then = self.block(std::mem::take(then));
                    *otherwise = self.block(std::mem::take(otherwise));
                }
                _ => {}
            }
            out.push(stmt);
        }
        out
    }

    fn define(&mut self, value: Value) {
        if self.depth.next_key() <= value {
            self.depth.resize(usize::from(value) + 1, 0);
        }
        self.depth[value] = self.loops;
    }

    fn divide(&mut self, value: Value, x: Value, d: Value, lanes: u32, out: &mut Block) {
        let mut write = Writer {
            function: self.function,
            out,
            lanes,
        };
        // Of the divisor alone, which invariant motion takes out of the loop. Its exponent, at most that of the largest power of two
        // whose inverse is a normal number, and what brings it near 1: before the division for a divisor below 1, else after it.
        let bits = write.push(DType::I32, Inst::Bitcast(DType::I32, d));
        let [mask, most, above, one] =
            [0x7f80_0000, 253 << 23, 254 << 23, 127 << 23].map(|number| write.int(number));
        let exponent = write.map(DType::I32, Op::And, &[bits, mask]);
        let exponent = write.map(DType::I32, Op::Min, &[exponent, most]);
        let before = write.map(DType::I32, Op::Sub, &[most, exponent]);
        let before = write.map(DType::I32, Op::Max, &[before, one]);
        let before = write.push(DType::F32, Inst::Bitcast(DType::F32, before));
        let after = write.map(DType::I32, Op::Sub, &[above, exponent]);
        let after = write.map(DType::I32, Op::Min, &[after, one]);
        let after = write.push(DType::F32, Inst::Bitcast(DType::F32, after));
        let scaled = write.map(DType::F32, Op::Mul, &[d, before]);
        let scaled = write.map(DType::F32, Op::Mul, &[scaled, after]);
        let reciprocal = write.map(DType::F32, Op::Recip, &[scaled]);
        let negative = write.map(DType::F32, Op::Neg, &[scaled]);
        // Of the dividend.
        let x = write.map(DType::F32, Op::Mul, &[x, before]);
        let quotient = write.map(DType::F32, Op::Mul, &[x, reciprocal]);
        let rest = write.map(DType::F32, Op::MulAdd, &[negative, quotient, x]);
        // Neither zero, nor infinite or NaN: by its bits, less one.
        let size = write.map(DType::F32, Op::Abs, &[rest]);
        let size = write.push(DType::U32, Inst::Bitcast(DType::U32, size));
        let [one, infinity] = [1, 0x7f7f_ffff].map(|number| {
            write.push(
                DType::U32,
                Inst::Const(Scalar::from_bits(DType::U32, number)),
            )
        });
        let size = write.map(DType::U32, Op::Sub, &[size, one]);
        let inexact = write.map(DType::Bool, Op::Lt, &[size, infinity]);
        let corrected = write.map(DType::F32, Op::MulAdd, &[rest, reciprocal, quotient]);
        let chosen = write.map(DType::F32, Op::Select, &[inexact, corrected, quotient]);
        let operands = SmallVec::from_slice(&[chosen, after]);
        out.push(Stmt::Let(value, Inst::Map(Op::Mul, operands)));
        let known = self.function.values.len();
        self.depth.resize(known, self.loops);
    }
}

struct Writer<'a> {
    function: &'a mut Function,
    out: &'a mut Block,
    lanes: u32,
}

impl Writer<'_> {
    fn push(&mut self, dtype: DType, inst: Inst) -> Value {
        let value = self.function.value(Type::Vector(dtype, self.lanes), "");
        self.out.push(Stmt::Let(value, inst));
        value
    }

    fn map(&mut self, dtype: DType, op: Op, operands: &[Value]) -> Value {
        self.push(dtype, Inst::Map(op, SmallVec::from_slice(operands)))
    }

    fn int(&mut self, value: i32) -> Value {
        let scalar = Scalar::from_bits(DType::I32, u64::from(value.cast_unsigned()));
        self.push(DType::I32, Inst::Const(scalar))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loopwright_ops::evaluate;

    /// What the instructions of the pass give, one lane at a time.
    fn by_reciprocal(x: f32, d: f32) -> f32 {
        let f = |op, operands: &[f32]| {
            let operands: Vec<Scalar> = operands.iter().map(|x| Scalar::f32(*x)).collect();
            let value = evaluate(op, &operands).expect("these are floats");
            f32::from_bits(value.bits() as u32)
        };
        let exponent = (d.to_bits() & 0x7f80_0000).min(253 << 23);
        let before = f32::from_bits(((253 << 23) - exponent).max(127 << 23));
        let after = f32::from_bits(((254 << 23) - exponent).min(127 << 23));
        let (x, scaled) = (x * before, d * before * after);
        let reciprocal = f(Op::Recip, &[scaled]);
        let quotient = x * reciprocal;
        let rest = f(Op::MulAdd, &[-scaled, quotient, x]);
        let corrected = f(Op::MulAdd, &[rest, reciprocal, quotient]);
        after
            * if rest != 0.0 && rest.is_finite() {
                corrected
            } else {
                quotient
            }
    }

    fn random(state: &mut u64) -> f32 {
        *state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        f32::from_bits((*state >> 32) as u32)
    }

    #[test]
    fn quotients_are_those_of_a_division() {
        let mut state = 7;
        let mut compared = 0;
        for _ in 0..2_000_000 {
            let (x, d) = (random(&mut state), random(&mut state));
            let (expected, got) = (x / d, by_reciprocal(x, d));
            if expected.is_nan() {
                assert!(got.is_nan(), "{x:e} / {d:e} is NaN, not {got:e}");
                continue;
            }
            // Small operands lose bits of the remainder, and subnormal results are rounded twice.
            let small = x.abs() < 1e-30 || expected.abs() < 1e-36;
            if small {
                let error = (f64::from(expected) - f64::from(got)).abs();
                let unit = f64::from(expected.abs()) * 2.4e-7 + 1.5e-45;
                assert!(error <= unit, "{x:e} / {d:e} = {expected:e}, not {got:e}");
                continue;
            }
            assert_eq!(
                expected.to_bits(),
                got.to_bits(),
                "{x:e} / {d:e} = {expected:e}, not {got:e}"
            );
            compared += 1;
        }
        assert!(compared > 500_000, "{compared} usual quotients");
    }

    #[test]
    fn special_operands_are_as_in_a_division() {
        let special = [
            0.0,
            -0.0,
            1.0,
            -3.0,
            f32::INFINITY,
            f32::NEG_INFINITY,
            f32::NAN,
            f32::MAX,
            1e-45,
        ];
        for x in special {
            for d in special {
                let (expected, got) = (x / d, by_reciprocal(x, d));
                let same = expected == got && expected.is_sign_negative() == got.is_sign_negative();
                assert!(
                    same || expected.is_nan() && got.is_nan(),
                    "{x:e} / {d:e} = {expected:e}, not {got:e}"
                );
            }
        }
    }
}
