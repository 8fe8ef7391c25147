//! Comparisons of vectors, which give masks.
//!
//! The library compares scalars alone. Where the processor has an instruction, it is written out; everywhere else bits
//! are compared by arithmetic.

use super::code::{Code, Held, held_as, int_dtype};
use crate::ffi::{Binary, Compare, Unary, Val};
use loopwright_ops::{DType, Kind};

/// `V?CMPP?`'s number for a comparison that is false for NaN (for `!=`: true), and does not trap.
fn predicate(compare: Compare) -> u32 {
    match compare {
        Compare::Eq => 0x00,
        Compare::Ne => 0x04,
        Compare::Lt => 0x11,
        Compare::Le => 0x12,
        Compare::Ge => 0x1d,
        Compare::Gt => 0x1e,
    }
}

/// The letter of an instruction on integers so many bits wide.
fn letter(bits: u32) -> char {
    match bits {
        8 => 'b',
        16 => 'w',
        32 => 'd',
        _ => 'q',
    }
}

impl Code<'_, '_> {
    /// Compares vectors of a dtype that is not narrow, lane by lane.
    pub(super) fn compare_vectors(
        &mut self,
        compare: Compare,
        dtype: DType,
        lanes: u32,
        a: Val,
        b: Val,
    ) -> Held {
        let dtype = held_as(dtype);
        let bits = dtype.bits();
        let ty = self.shared.vector(dtype, lanes);
        let mask = self.shared.vector(int_dtype(bits, true), lanes);
        let word = match compare {
            Compare::Eq => "eq",
            Compare::Ne => "ne",
            Compare::Lt => "lt",
            Compare::Le => "le",
            Compare::Gt => "gt",
            Compare::Ge => "ge",
        };
        let name = format!("lw_{word}_{dtype}x{lanes}_mask");
        let arguments = [(ty, a), (ty, b)];
        let val = self.apply(&name, mask, &arguments, |code, places| {
            let [a, b] = [places[0], places[1]].map(|place| code.context().value(place));
            let bytes = lanes as usize * dtype.bytes();
            let register = code.shared.level.has_register(bytes);
            match dtype.kind() {
                Kind::Float if register => {
                    let precision = if bits == 32 { 's' } else { 'd' };
                    let instruction = format!("vcmpp{precision} ${}", predicate(compare));
                    code.compare_instruction(&instruction, bits, lanes, a, b)
                }
                Kind::Float => code.compare_floats(compare, dtype, lanes, a, b),
                _ => code.compare_integers(compare, dtype, lanes, a, b),
            }
        });
        Held {
            val,
            mask: Some(bits),
        }
    }

    /// A comparison that one instruction does: in registers of 512 bits it sets a mask register, from which lanes are
    /// filled.
    fn compare_instruction(
        &mut self,
        instruction: &str,
        bits: u32,
        lanes: u32,
        a: Val,
        b: Val,
    ) -> Val {
        let ty = self.shared.vector(int_dtype(bits, true), lanes);
        let mask = self.temporary(ty);
        let context = self.context();
        let separator = if instruction.contains(' ') { ',' } else { ' ' };
        if lanes * bits == 512 {
            let text = format!(
                "{instruction}{separator} %2, %1, %%k1\n\tvpmovm2{} %%k1, %0",
                letter(bits)
            );
            let inputs = [("v", a), ("v", b)];
            context.assembly(self.block, &text, ("=v", mask), &inputs, &["k1"]);
        } else {
            let text = format!("{instruction}{separator} %2, %1, %0");
            let inputs = [("x", a), ("x", b)];
            context.assembly(self.block, &text, ("=x", mask), &inputs, &[]);
        }
        context.value(mask)
    }

    fn compare_integers(
        &mut self,
        compare: Compare,
        dtype: DType,
        lanes: u32,
        a: Val,
        b: Val,
    ) -> Val {
        let bits = dtype.bits();
        let signed = int_dtype(bits, true);
        let ty = self.shared.vector(signed, lanes);
        let [mut a, mut b] = [a, b].map(|value| {
            let value = self.bits_as(signed, lanes, value);
            self.keep(ty, value)
        });
        let ordered = !matches!(compare, Compare::Eq | Compare::Ne);
        if ordered && dtype.kind() == Kind::Unsigned {
            // The sign bit flipped, unsigned order is signed order.
            let flip = self.integers(signed, lanes, i64::MIN >> (64 - bits));
            [a, b] = [a, b].map(|value| {
                let value = self.binary(Binary::Xor, signed, lanes, value, flip);
                self.keep(ty, value)
            });
        }
        let register = self
            .shared
            .level
            .has_register(lanes as usize * dtype.bytes());
        let wide = lanes * bits == 512;
        let equal = |code: &mut Self| {
            if register && wide {
                let name = format!("vpcmp{} $0", letter(bits));
                code.compare_instruction(&name, bits, lanes, a, b)
            } else if register {
                code.compare_instruction(&format!("vpcmpeq{}", letter(bits)), bits, lanes, a, b)
            } else {
                code.equal_bits(signed, lanes, a, b)
            }
        };
        let greater = |code: &mut Self, a: Val, b: Val| {
            if register && wide {
                let name = format!("vpcmp{} $6", letter(bits));
                code.compare_instruction(&name, bits, lanes, a, b)
            } else if register {
                code.compare_instruction(&format!("vpcmpgt{}", letter(bits)), bits, lanes, a, b)
            } else {
                code.less_bits(signed, lanes, b, a)
            }
        };
        let (value, negate) = match compare {
            Compare::Eq => (equal(self), false),
            Compare::Ne => (equal(self), true),
            Compare::Gt => (greater(self, a, b), false),
            Compare::Le => (greater(self, a, b), true),
            Compare::Lt => (greater(self, b, a), false),
            Compare::Ge => (greater(self, b, a), true),
        };
        match negate {
            true => self.unary(Unary::Not, signed, lanes, value),
            false => value,
        }
    }

    /// All bits set where signed integers are equal: only 0 has no sign, negated or not.
    fn equal_bits(&mut self, signed: DType, lanes: u32, a: Val, b: Val) -> Val {
        let ty = self.shared.vector(signed, lanes);
        let difference = self.binary(Binary::Xor, signed, lanes, a, b);
        let difference = self.keep(ty, difference);
        let negated = self.unary(Unary::Neg, signed, lanes, difference);
        let either = self.binary(Binary::Or, signed, lanes, difference, negated);
        let spread = self.spread_sign(signed, lanes, either);
        self.unary(Unary::Not, signed, lanes, spread)
    }

    /// All bits set where `a < b`: where the signs differ that of `a` says so, else that of the difference, which
    /// does not overflow then.
    fn less_bits(&mut self, signed: DType, lanes: u32, a: Val, b: Val) -> Val {
        let not_b = self.unary(Unary::Not, signed, lanes, b);
        let by_sign = self.binary(Binary::And, signed, lanes, a, not_b);
        let differ = self.binary(Binary::Xor, signed, lanes, a, b);
        let same = self.unary(Unary::Not, signed, lanes, differ);
        let difference = self.binary(Binary::Sub, signed, lanes, a, b);
        let by_difference = self.binary(Binary::And, signed, lanes, same, difference);
        let less = self.binary(Binary::Or, signed, lanes, by_sign, by_difference);
        self.spread_sign(signed, lanes, less)
    }

    /// The sign bit in all bits of a lane.
    pub(super) fn spread_sign(&mut self, signed: DType, lanes: u32, value: Val) -> Val {
        let by = self.integers(signed, lanes, i64::from(signed.bits()) - 1);
        self.binary(Binary::Shr, signed, lanes, value, by)
    }

    /// Compares floats by their bits: the integer with the same bits has their order once negative ones are turned
    /// around. Adding 0 makes one zero of two.
    fn compare_floats(
        &mut self,
        compare: Compare,
        dtype: DType,
        lanes: u32,
        a: Val,
        b: Val,
    ) -> Val {
        let bits = dtype.bits();
        let signed = int_dtype(bits, true);
        let ty = self.shared.vector(signed, lanes);
        let zero = self.number(dtype, lanes, 0.0);
        let size_bits = self.integers(signed, lanes, i64::MAX >> (64 - bits));
        let infinity = if bits == 32 {
            i64::from(f32::INFINITY.to_bits())
        } else {
            f64::INFINITY.to_bits() as i64
        };
        let infinity = self.integers(signed, lanes, infinity);
        let [(a, a_nan), (b, b_nan)] = [a, b].map(|value| {
            let value = self.binary(Binary::Add, dtype, lanes, value, zero);
            let value = self.bits_as(signed, lanes, value);
            let value = self.keep(ty, value);
            let size = self.binary(Binary::And, signed, lanes, value, size_bits);
            let size = self.keep(ty, size);
            let nan = self.less_bits(signed, lanes, infinity, size);
            let sign = self.spread_sign(signed, lanes, value);
            let turn = self.binary(Binary::And, signed, lanes, sign, size_bits);
            let key = self.binary(Binary::Xor, signed, lanes, value, turn);
            (self.keep(ty, key), self.keep(ty, nan))
        });
        let nan = self.binary(Binary::Or, signed, lanes, a_nan, b_nan);
        let number = self.unary(Unary::Not, signed, lanes, nan);
        let (value, negate) = match compare {
            Compare::Eq => (self.equal_bits(signed, lanes, a, b), false),
            Compare::Ne => (self.equal_bits(signed, lanes, a, b), true),
            Compare::Lt => (self.less_bits(signed, lanes, a, b), false),
            Compare::Ge => (self.less_bits(signed, lanes, a, b), true),
            Compare::Gt => (self.less_bits(signed, lanes, b, a), false),
            Compare::Le => (self.less_bits(signed, lanes, b, a), true),
        };
        let value = match negate {
            true => self.unary(Unary::Not, signed, lanes, value),
            false => value,
        };
        match compare {
            Compare::Ne => self.binary(Binary::Or, signed, lanes, value, nan),
            _ => self.binary(Binary::And, signed, lanes, value, number),
        }
    }
}
