//! Functions that have the same bits on every device: the logarithm and the cosine that random numbers need.
//!
//! They are made of ops that are rounded once everywhere (sums, quotients, `mul_add`, ops on bits). A product is added to
//! something by `mul_add` only, or is exact: devices may contract a product and a sum to one rounding, or not, and here that
//! makes no difference. The libraries of devices differ in the last bits of their functions.

use crate::builder::GraphBuilder;
use crate::error::GraphError;
use crate::ir::NodeId;
use loopwright_ops::{DType, Op, Scalar};
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_PI_2, LN_2};

/// How many terms of a series a dtype needs.
fn terms(dtype: DType, narrow: usize, wide: usize) -> usize {
    if dtype == DType::F64 { wide } else { narrow }
}

impl GraphBuilder {
    /// A number of the dtype of a node.
    fn number(&mut self, like: NodeId, value: f64) -> NodeId {
        let dtype = self.node(like).dtype;
        self.constant(Scalar::from_f64(dtype, value))
    }

    /// A polynomial by Horner's rule, of at least one coefficient, the constant one first.
    fn polynomial(&mut self, x: NodeId, coefficients: &[f64]) -> Result<NodeId, GraphError> {
        let mut coefficients = coefficients.iter().rev();
        let mut sum = self.number(x, *coefficients.next().unwrap_or(&0.0));
        for coefficient in coefficients {
            let coefficient = self.number(x, *coefficient);
            sum = self.map(Op::MulAdd, &[sum, x, coefficient])?;
        }
        Ok(sum)
    }

    /// The natural logarithm of positive normal numbers, `f32` or `f64`, within 2 units in the last place.
    pub(crate) fn exact_log(&mut self, x: NodeId) -> Result<NodeId, GraphError> {
        let dtype = self.node(x).dtype;
        let (word, mantissa, bias, root) = match dtype {
            DType::F64 => {
                let root = FRAC_1_SQRT_2.to_bits() & ((1 << 52) - 1);
                (DType::I64, 52, 1023, root as i64)
            }
            _ => {
                let root = (FRAC_1_SQRT_2 as f32).to_bits() & ((1 << 23) - 1);
                (DType::I32, 23, 127, i64::from(root))
            }
        };
        let amount = self.constant(Scalar::from_i64(word, mantissa));
        // x = m * 2**e with m from about the root of 1/2 to that of 2: what is added to the bits carries into the exponent.
        let bits = self.bitcast(x, word)?;
        let carry = self.constant(Scalar::from_i64(word, (1 << mantissa) - root));
        let carried = self.map(Op::Add, &[bits, carry])?;
        let biased = self.map(Op::Shr, &[carried, amount])?;
        let bias = self.constant(Scalar::from_i64(word, bias));
        let exponent = self.map(Op::Sub, &[biased, bias])?;
        let shifted = self.map(Op::Shl, &[exponent, amount])?;
        let near = self.map(Op::Sub, &[bits, shifted])?;
        let near = self.bitcast(near, dtype)?;
        let exponent = self.cast(exponent, dtype);
        // log(m) = 2 atanh(s) with s = (m - 1) / (m + 1): odd powers of at most 0.172.
        let one = self.number(x, 1.0);
        let (less, more) = (
            self.map(Op::Sub, &[near, one])?,
            self.map(Op::Add, &[near, one])?,
        );
        let s = self.map(Op::Div, &[less, more])?;
        let square = self.map(Op::Mul, &[s, s])?;
        let series: Vec<f64> = (0..terms(dtype, 6, 12))
            .map(|k| 2.0 / (2 * k + 1) as f64)
            .collect();
        let sum = self.polynomial(square, &series)?;
        let of_near = self.map(Op::Mul, &[s, sum])?;
        // The first part of log(2) has few bits, so that its multiples are exact.
        let (high, low) = match dtype {
            // log(2) less the first part, which LN_2 has not the bits for.
            DType::F64 => (
                f64::from_bits(LN_2.to_bits() & !0xffff_ffff),
                4.749_325_039_031_672_6e-7,
            ),
            _ => {
                let high = f64::from(f32::from_bits((LN_2 as f32).to_bits() & !0xfff));
                (high, LN_2 - high)
            }
        };
        let (high, low) = (self.number(x, high), self.number(x, low));
        let rest = self.map(Op::MulAdd, &[exponent, low, of_near])?;
        self.map(Op::MulAdd, &[exponent, high, rest])
    }

    /// The cosine of turns, `f32` or `f64`: of 2π times numbers from 0 to 1, which have at least two bits to spare.
    pub(crate) fn exact_cos_of_turns(&mut self, turns: NodeId) -> Result<NodeId, GraphError> {
        let dtype = self.node(turns).dtype;
        // Quarters of a turn, and what is left, from -1/2 to 1/2: all of it is exact.
        let four = self.number(turns, 4.0);
        let quarters = self.map(Op::Mul, &[turns, four])?;
        let quarter = self.map(Op::Round, &[quarters])?;
        let rest = self.map(Op::Sub, &[quarters, quarter])?;
        let square = self.map(Op::Mul, &[rest, rest])?;
        // (-1)^k (π/2)^n / n! for n = 2k and n = 2k + 1.
        let series = |odd: usize| -> Vec<f64> {
            let term = |k: usize| {
                let n = 2 * k + odd;
                let power = (1..=n).fold(1.0, |term, i| term * FRAC_PI_2 / i as f64);
                if k.is_multiple_of(2) { power } else { -power }
            };
            (0..terms(dtype, 6, 10)).map(term).collect()
        };
        let cosine = self.polynomial(square, &series(0))?;
        let sine = self.polynomial(square, &series(1))?;
        let sine = self.map(Op::Mul, &[rest, sine])?;
        let quarter = self.cast(quarter, DType::I32);
        let zero = self.constant(Scalar::zero(DType::I32));
        let mut bit = |mask: i64| {
            let mask = self.constant(Scalar::from_i64(DType::I32, mask));
            let masked = self.map(Op::And, &[quarter, mask])?;
            self.map(Op::Ne, &[masked, zero])
        };
        let (is_odd, is_second_half) = (bit(1)?, bit(2)?);
        // cos, -sin, -cos, sin.
        let value = self.map(Op::Select, &[is_odd, sine, cosine])?;
        let is_negative = self.map(Op::Ne, &[is_odd, is_second_half])?;
        let negative = self.map(Op::Neg, &[value])?;
        self.map(Op::Select, &[is_negative, negative, value])
    }
}
