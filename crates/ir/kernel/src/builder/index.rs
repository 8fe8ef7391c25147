//! Index arithmetic, folded where operands are known.

use super::Builder;
use crate::ir::Value;
use loopwright_ops::{Op, Scalar};

impl Builder {
    /// `a + b` on `i64`.
    pub fn add_i64(&mut self, a: Value, b: Value) -> Value {
        match (self.known_i64(a), self.known_i64(b)) {
            (Some(a), Some(b)) => self.const_i64(a.wrapping_add(b)),
            (Some(0), _) => b,
            (_, Some(0)) => a,
            _ => self.map(Op::Add, &[a, b]),
        }
    }

    /// `a - b` on `i64`.
    pub fn sub_i64(&mut self, a: Value, b: Value) -> Value {
        match (self.known_i64(a), self.known_i64(b)) {
            (Some(a), Some(b)) => self.const_i64(a.wrapping_sub(b)),
            (_, Some(0)) => a,
            _ if a == b => self.const_i64(0),
            _ => self.map(Op::Sub, &[a, b]),
        }
    }

    /// `a * b` on `i64`.
    pub fn mul_i64(&mut self, a: Value, b: Value) -> Value {
        match (self.known_i64(a), self.known_i64(b)) {
            (Some(a), Some(b)) => self.const_i64(a.wrapping_mul(b)),
            (Some(0), _) | (_, Some(0)) => self.const_i64(0),
            (Some(1), _) => b,
            (_, Some(1)) => a,
            _ => self.map(Op::Mul, &[a, b]),
        }
    }

    /// `a / b` rounded down, on `i64`; 0 when dividing by 0.
    pub fn floor_div_i64(&mut self, a: Value, b: Value) -> Value {
        match (self.known_i64(a), self.known_i64(b)) {
            (Some(a), Some(b)) => self.const_i64(floor_div(a, b)),
            (Some(0), _) | (_, Some(0)) => self.const_i64(0),
            (_, Some(1)) => a,
            _ => self.map(Op::FloorDiv, &[a, b]),
        }
    }

    /// The remainder of `a / b` with the sign of `b`, on `i64`; 0 when dividing by 0.
    pub fn mod_i64(&mut self, a: Value, b: Value) -> Value {
        match (self.known_i64(a), self.known_i64(b)) {
            (Some(a), Some(b)) => self.const_i64(modulo(a, b)),
            (Some(0), _) | (_, Some(-1..=1)) => self.const_i64(0),
            _ => self.map(Op::Mod, &[a, b]),
        }
    }

    /// The smaller of two `i64`.
    pub fn min_i64(&mut self, a: Value, b: Value) -> Value {
        match (self.known_i64(a), self.known_i64(b)) {
            (Some(a), Some(b)) => self.const_i64(a.min(b)),
            (_, Some(i64::MAX)) => a,
            (Some(i64::MAX), _) => b,
            _ if a == b => a,
            _ => self.map(Op::Min, &[a, b]),
        }
    }

    /// The larger of two `i64`.
    pub fn max_i64(&mut self, a: Value, b: Value) -> Value {
        match (self.known_i64(a), self.known_i64(b)) {
            (Some(a), Some(b)) => self.const_i64(a.max(b)),
            (_, Some(i64::MIN)) => a,
            (Some(i64::MIN), _) => b,
            _ if a == b => a,
            _ => self.map(Op::Max, &[a, b]),
        }
    }

    /// Whether `a < b`, on `i64`.
    pub fn lt_i64(&mut self, a: Value, b: Value) -> Value {
        match (self.known_i64(a), self.known_i64(b)) {
            (Some(a), Some(b)) => self.constant(Scalar::bool(a < b)),
            _ if a == b => self.constant(Scalar::bool(false)),
            _ => self.map(Op::Lt, &[a, b]),
        }
    }

    /// Whether `a >= b`, on `i64`.
    pub fn ge_i64(&mut self, a: Value, b: Value) -> Value {
        match (self.known_i64(a), self.known_i64(b)) {
            (Some(a), Some(b)) => self.constant(Scalar::bool(a >= b)),
            _ if a == b => self.constant(Scalar::bool(true)),
            _ => self.map(Op::Ge, &[a, b]),
        }
    }

    /// Whether both bools hold.
    pub fn and(&mut self, a: Value, b: Value) -> Value {
        let (yes, no) = (Some(Scalar::bool(true)), Some(Scalar::bool(false)));
        match (self.known(a), self.known(b)) {
            (known, _) if known == no => a,
            (_, known) if known == no => b,
            (known, _) if known == yes => b,
            (_, known) if known == yes => a,
            _ if a == b => a,
            _ => self.map(Op::And, &[a, b]),
        }
    }
}

/// The quotient rounded down, as [`Op::FloorDiv`] defines it.
fn floor_div(a: i64, b: i64) -> i64 {
    if b == 0 {
        return 0;
    }
    let quotient = a.wrapping_div(b);
    if a.wrapping_rem(b) != 0 && (a < 0) != (b < 0) {
        quotient - 1
    } else {
        quotient
    }
}

/// The remainder with the sign of the divisor, as [`Op::Mod`] defines it.
fn modulo(a: i64, b: i64) -> i64 {
    if b == 0 {
        return 0;
    }
    let remainder = a.wrapping_rem(b);
    if remainder != 0 && (remainder < 0) != (b < 0) {
        remainder + b
    } else {
        remainder
    }
}
