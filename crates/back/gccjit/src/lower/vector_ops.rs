//! Ops on vectors: the compiler's operators on them where there are some, blends of masks, and loops over lanes.

use super::code::{Code, Held, int_dtype, is_narrow};
use crate::ffi::{Binary, Compare, Place, Ty, Unary, Val};
use loopwright_ops::{DType, Kind, Op, Output, ReduceOp, Scalar};

fn comparison(op: Op) -> Option<Compare> {
    Some(match op {
        Op::Eq => Compare::Eq,
        Op::Ne => Compare::Ne,
        Op::Lt => Compare::Lt,
        Op::Le => Compare::Le,
        Op::Gt => Compare::Gt,
        Op::Ge => Compare::Ge,
        _ => return None,
    })
}

impl Code<'_, '_> {
    /// An op on vectors of `dtype` (for `select`, the dtype of what is chosen). Operands are variables or constants.
    pub(super) fn vector_op(
        &mut self,
        op: Op,
        dtype: DType,
        lanes: u32,
        operands: &[Held],
    ) -> Held {
        match (op, operands) {
            (Op::Copy, [a]) => return *a,
            (Op::Select, [condition, a, b]) => {
                let [a, b] = [a, b].map(|value| self.bytes(lanes, *value));
                return Held::plain(self.select_vectors(dtype, lanes, *condition, a, b));
            }
            _ => {}
        }
        if dtype == DType::Bool {
            return self.bool_op(op, lanes, operands);
        }
        let values: Vec<Val> = operands.iter().map(|operand| operand.val).collect();
        if is_narrow(dtype) {
            return self.narrow_vector_op(op, dtype, lanes, &values);
        }
        if let (Some(compare), [a, b]) = (comparison(op), &values[..]) {
            return self.compare_vectors(compare, dtype, lanes, *a, *b);
        }
        if let Some(value) = self.vector_operator(op, dtype, lanes, &values) {
            return Held::plain(value);
        }
        if op.info().output == Output::Bool {
            return self.class_of_float(op, dtype, lanes, values[0]);
        }
        let name = format!("lw_{op}_{dtype}x{lanes}");
        let ty = self.shared.vector(dtype, lanes);
        if self.has_blend(op, dtype, lanes) {
            let arguments: Vec<(Ty, Val)> = values.iter().map(|&value| (ty, value)).collect();
            let value = self.apply(&name, ty, &arguments, |code, places| {
                let values: Vec<Val> = places
                    .iter()
                    .map(|&place| code.context().value(place))
                    .collect();
                code.blended(op, dtype, lanes, &values)
            });
            return Held::plain(value);
        }
        let value = self.lane_by_lane(&name, [dtype, dtype], lanes, &values, |code, operands| {
            code.scalar_op(op, dtype, operands)
        });
        Held::plain(value)
    }

    /// The op as an expression of the compiler's vector operators, where it is one.
    fn vector_operator(
        &mut self,
        op: Op,
        dtype: DType,
        lanes: u32,
        operands: &[Val],
    ) -> Option<Val> {
        let float = dtype.is_float();
        let mut binary = |op: Binary, a: &Val, b: &Val| self.binary(op, dtype, lanes, *a, *b);
        Some(match (op, operands) {
            (Op::Floor | Op::Ceil | Op::Round | Op::Trunc, [a]) if !float => *a,
            (Op::And, [a, b]) => binary(Binary::And, a, b),
            (Op::Or, [a, b]) => binary(Binary::Or, a, b),
            (Op::Xor, [a, b]) => binary(Binary::Xor, a, b),
            (Op::Add, [a, b]) => binary(Binary::Add, a, b),
            (Op::Sub, [a, b]) => binary(Binary::Sub, a, b),
            (Op::Mul, [a, b]) => binary(Binary::Mul, a, b),
            (Op::Div, [a, b]) if float => binary(Binary::Div, a, b),
            (Op::MulAdd, [a, b, c]) if !float => {
                let product = binary(Binary::Mul, a, b);
                binary(Binary::Add, &product, c)
            }
            (Op::Not, [a]) => self.unary(Unary::Not, dtype, lanes, *a),
            (Op::Neg, [a]) => self.unary(Unary::Neg, dtype, lanes, *a),
            (Op::Recip, [a]) => {
                let one = self.number(dtype, lanes, 1.0);
                self.binary(Binary::Div, dtype, lanes, one, *a)
            }
            _ => return None,
        })
    }

    /// Whether [`blended`](Code::blended) has the op.
    fn has_blend(&self, op: Op, dtype: DType, lanes: u32) -> bool {
        match op {
            Op::Abs | Op::Sign | Op::Min | Op::Max => true,
            Op::CopySign => dtype.is_float(),
            // One instruction, which rounds once; else a loop over lanes says what is meant.
            Op::MulAdd => self
                .shared
                .level
                .has_register(lanes as usize * dtype.bytes()),
            Op::Shl | Op::Shr => dtype.is_int(),
            _ => false,
        }
    }

    /// Ops that are a few operators and masks.
    fn blended(&mut self, op: Op, dtype: DType, lanes: u32, operands: &[Val]) -> Val {
        let bits = dtype.bits();
        let signed = int_dtype(bits, true);
        let a = operands[0];
        let unsigned = dtype.kind() == Kind::Unsigned;
        let compared = |code: &mut Self, compare: Compare, a: Val, b: Val| {
            code.compare_vectors(compare, dtype, lanes, a, b)
        };
        match op {
            Op::Abs if unsigned => a,
            Op::Abs if dtype.is_float() => {
                let size = self.integers(signed, lanes, i64::MAX >> (64 - bits));
                let own = self.bits_as(signed, lanes, a);
                let bits = self.binary(Binary::And, signed, lanes, own, size);
                self.bits_as(dtype, lanes, bits)
            }
            Op::Abs => {
                let ty = self.shared.vector(dtype, lanes);
                let sign = self.spread_sign(dtype, lanes, a);
                let sign = self.keep(ty, sign);
                let turned = self.binary(Binary::Xor, dtype, lanes, a, sign);
                self.binary(Binary::Sub, dtype, lanes, turned, sign)
            }
            Op::CopySign => {
                let size = self.integers(signed, lanes, i64::MAX >> (64 - bits));
                let sign = self.integers(signed, lanes, i64::MIN >> (64 - bits));
                let [a, b] = [a, operands[1]].map(|value| self.bits_as(signed, lanes, value));
                let size = self.binary(Binary::And, signed, lanes, a, size);
                let sign = self.binary(Binary::And, signed, lanes, b, sign);
                let bits = self.binary(Binary::Or, signed, lanes, size, sign);
                self.bits_as(dtype, lanes, bits)
            }
            Op::Sign => {
                let zero = self.constant(Scalar::zero(dtype));
                let zero = self.splat(dtype, lanes, zero);
                let above = compared(self, Compare::Gt, a, zero);
                if dtype.is_float() {
                    let [one, minus] = [1.0, -1.0].map(|value| self.number(dtype, lanes, value));
                    let below = compared(self, Compare::Lt, a, zero);
                    let other = self.select_vectors(dtype, lanes, below, minus, a);
                    return self.select_vectors(dtype, lanes, above, one, other);
                }
                // Masks are -1 where true.
                let below = match unsigned {
                    true => self.integers(signed, lanes, 0),
                    false => compared(self, Compare::Lt, a, zero).val,
                };
                let sign = self.binary(Binary::Sub, signed, lanes, below, above.val);
                self.bits_as(dtype, lanes, sign)
            }
            Op::MulAdd => {
                let ty = self.shared.vector(dtype, lanes);
                let sum = self.temporary(ty);
                self.assign(sum, operands[2]);
                let precision = if dtype == DType::F32 { 's' } else { 'd' };
                let instruction = format!("vfmadd231p{precision} %2, %1, %0");
                // EVEX, and with it the upper registers, for 512 bits alone.
                let wide = lanes as usize * dtype.bytes() == 64;
                let (to, from) = if wide { ("+v", "v") } else { ("+x", "x") };
                let inputs = [(from, a), (from, operands[1])];
                let context = self.context();
                context.assembly(self.block, &instruction, (to, sum), &inputs, &[]);
                context.value(sum)
            }
            Op::Min | Op::Max if dtype.is_float() => {
                self.extremum(op, dtype, lanes, a, operands[1])
            }
            Op::Min | Op::Max => {
                let compare = if op == Op::Min {
                    Compare::Lt
                } else {
                    Compare::Gt
                };
                let first = compared(self, compare, a, operands[1]);
                self.select_vectors(dtype, lanes, first, a, operands[1])
            }
            Op::Shl | Op::Shr => {
                let amount_dtype = int_dtype(bits, false);
                let amount = self.bits_as(amount_dtype, lanes, operands[1]);
                let amount_type = self.shared.vector(amount_dtype, lanes);
                let amount = self.keep(amount_type, amount);
                let limit = self.integers(amount_dtype, lanes, i64::from(bits));
                let inside = self.compare_vectors(Compare::Lt, amount_dtype, lanes, amount, limit);
                let mask = self.shared.vector(signed, lanes);
                let inside = Held {
                    val: self.keep(mask, inside.val),
                    ..inside
                };
                let most = self.integers(dtype, lanes, i64::from(bits) - 1);
                let within = self.binary(Binary::And, dtype, lanes, operands[1], most);
                if op == Op::Shr && !unsigned {
                    let within = self.select_vectors(dtype, lanes, inside, within, most);
                    return self.binary(Binary::Shr, dtype, lanes, a, within);
                }
                let op = if op == Op::Shl {
                    Binary::Shl
                } else {
                    Binary::Shr
                };
                let shifted = self.binary(op, dtype, lanes, a, within);
                let shifted = self.bits_as(signed, lanes, shifted);
                let shifted = self.binary(Binary::And, signed, lanes, shifted, inside.val);
                self.bits_as(dtype, lanes, shifted)
            }
            _ => unreachable!("`has_blend` says that `{op}` has none"),
        }
    }

    /// The larger or smaller, NaN if either is: x86's own `max(a, b)` is exactly `a > b ? a : b`, which leaves the case
    /// that only `a` is NaN: there all bits are set, which is a NaN as good as any.
    fn extremum(&mut self, op: Op, dtype: DType, lanes: u32, a: Val, b: Val) -> Val {
        let signed = int_dtype(dtype.bits(), true);
        let nan = self.compare_vectors(Compare::Ne, dtype, lanes, a, a);
        if !self
            .shared
            .level
            .has_register(lanes as usize * dtype.bytes())
        {
            let compare = if op == Op::Min {
                Compare::Lt
            } else {
                Compare::Gt
            };
            let first = self.compare_vectors(compare, dtype, lanes, a, b);
            let first = Held {
                val: self.binary(Binary::Or, signed, lanes, first.val, nan.val),
                ..first
            };
            return self.select_vectors(dtype, lanes, first, a, b);
        }
        let instruction = format!(
            "v{op}p{} %2, %1, %0",
            if dtype == DType::F32 { 's' } else { 'd' }
        );
        let ty = self.shared.vector(dtype, lanes);
        let result = self.temporary(ty);
        let context = self.context();
        // EVEX, and with it the upper registers, for 512 bits alone.
        let wide = lanes as usize * dtype.bytes() == 64;
        let (to, from) = if wide { ("=v", "v") } else { ("=x", "x") };
        let inputs = [(from, a), (from, b)];
        context.assembly(self.block, &instruction, (to, result), &inputs, &[]);
        let result = self.bits_as(signed, lanes, context.value(result));
        let result = self.binary(Binary::Or, signed, lanes, result, nan.val);
        self.bits_as(dtype, lanes, result)
    }

    /// Whether a float is NaN, infinite or finite.
    fn class_of_float(&mut self, op: Op, dtype: DType, lanes: u32, a: Val) -> Held {
        if op == Op::IsNan {
            return self.compare_vectors(Compare::Ne, dtype, lanes, a, a);
        }
        let compare = if op == Op::IsInf {
            Compare::Eq
        } else {
            Compare::Lt
        };
        let size = self.vector_op(Op::Abs, dtype, lanes, &[Held::plain(a)]);
        let infinity = self.number(dtype, lanes, f64::INFINITY);
        self.compare_vectors(compare, dtype, lanes, size.val, infinity)
    }

    /// Computes in `f32` and rounds.
    fn narrow_vector_op(&mut self, op: Op, dtype: DType, lanes: u32, operands: &[Val]) -> Held {
        let single = self.shared.vector(DType::F32, lanes);
        let wide: Vec<Held> = operands
            .iter()
            .map(|&operand| {
                let wide = self.widen_vector(dtype, lanes, operand);
                Held::plain(self.keep(single, wide))
            })
            .collect();
        let result = self.vector_op(op, DType::F32, lanes, &wide);
        match op.info().output {
            Output::Bool => result,
            Output::Same => {
                let result = self.keep(single, result.val);
                Held::plain(self.narrow_vector(dtype, lanes, result))
            }
        }
    }

    /// Calls a function that loops over lanes: `result[i] = f(a[i], ..)`. Dtypes are those of the result and of the
    /// operands.
    pub(super) fn lane_by_lane(
        &mut self,
        name: &str,
        [result, operand]: [DType; 2],
        lanes: u32,
        operands: &[Val],
        write: impl FnOnce(&mut Code<'_, '_>, &[Val]) -> Val,
    ) -> Val {
        let result_type = self.shared.vector(result, lanes);
        let operand_type = self.shared.vector(operand, lanes);
        let arguments: Vec<(Ty, Val)> = operands
            .iter()
            .map(|&operand| (operand_type, operand))
            .collect();
        self.apply(name, result_type, &arguments, |code, places| {
            let out: Place = code.temporary(result_type);
            let to = code.lane_pointer(result, out);
            let from: Vec<Val> = places
                .iter()
                .map(|&place| code.lane_pointer(operand, place))
                .collect();
            let element = code.shared.scalar(operand);
            code.repeat(lanes.into(), |code, i| {
                let context = code.context();
                let values: Vec<Val> = from
                    .iter()
                    .map(|&pointer| {
                        let value = context.value(context.element(pointer, i));
                        code.keep(element, value)
                    })
                    .collect();
                let value = write(code, &values);
                code.assign(context.element(to, i), value);
            });
            code.context().value(out)
        })
    }

    /// Ops on vectors of `bool`, which stay masks where their operands are masks of one width.
    fn bool_op(&mut self, op: Op, lanes: u32, operands: &[Held]) -> Held {
        let mask = operands[0].mask;
        let mask = if operands.iter().all(|operand| operand.mask == mask) {
            mask
        } else {
            None
        };
        let values: Vec<Val> = operands
            .iter()
            .map(|&operand| match mask {
                Some(_) => operand.val,
                None => self.bytes(lanes, operand),
            })
            .collect();
        let dtype = mask.map_or(DType::U8, |bits| int_dtype(bits, true));
        let bitwise =
            |code: &mut Self, op: Binary, a: Val, b: Val| code.binary(op, dtype, lanes, a, b);
        let not = |code: &mut Self, a: Val| match mask {
            Some(_) => code.unary(Unary::Not, dtype, lanes, a),
            None => {
                let one = code.integers(dtype, lanes, 1);
                code.binary(Binary::Xor, dtype, lanes, a, one)
            }
        };
        let val = match (op, &values[..]) {
            (Op::Not, [a]) => not(self, *a),
            (Op::Min | Op::And, [a, b]) => bitwise(self, Binary::And, *a, *b),
            (Op::Max | Op::Or, [a, b]) => bitwise(self, Binary::Or, *a, *b),
            (Op::Ne | Op::Xor, [a, b]) => bitwise(self, Binary::Xor, *a, *b),
            (Op::Eq, [a, b]) => {
                let differ = bitwise(self, Binary::Xor, *a, *b);
                not(self, differ)
            }
            (Op::Lt, [a, b]) => {
                let a = not(self, *a);
                bitwise(self, Binary::And, a, *b)
            }
            (Op::Le, [a, b]) => {
                let a = not(self, *a);
                bitwise(self, Binary::Or, a, *b)
            }
            (Op::Gt, [a, b]) => {
                let b = not(self, *b);
                bitwise(self, Binary::And, *a, b)
            }
            (Op::Ge, [a, b]) => {
                let b = not(self, *b);
                bitwise(self, Binary::Or, *a, b)
            }
            _ => unreachable!("the op table allows no bool operands for `{op}`"),
        };
        Held { val, mask }
    }

    /// A vector of `bool` as bytes of 0 and 1; anything else as it is.
    pub(super) fn bytes(&mut self, lanes: u32, value: Held) -> Val {
        let Some(bits) = value.mask else {
            return value.val;
        };
        let signed = int_dtype(bits, true);
        let bytes = self.converted_vector(signed, DType::U8, lanes, value.val);
        let one = self.integers(DType::U8, lanes, 1);
        self.binary(Binary::And, DType::U8, lanes, bytes, one)
    }

    /// A vector of `bool` as a mask of lanes so many bits wide.
    fn masked(&mut self, bits: u32, lanes: u32, value: Held) -> Val {
        let to = int_dtype(bits, true);
        match value.mask {
            Some(held) if held == bits => value.val,
            Some(held) => self.converted_vector(int_dtype(held, true), to, lanes, value.val),
            None => {
                let wide = self.converted_vector(DType::U8, to, lanes, value.val);
                self.unary(Unary::Neg, to, lanes, wide)
            }
        }
    }

    /// `a` where the condition holds, else `b`.
    pub(super) fn select_vectors(
        &mut self,
        dtype: DType,
        lanes: u32,
        condition: Held,
        a: Val,
        b: Val,
    ) -> Val {
        let signed = int_dtype(dtype.bits(), true);
        let mask_type = self.shared.vector(signed, lanes);
        let mask = self.masked(dtype.bits(), lanes, condition);
        let mask = self.keep(mask_type, mask);
        let not = self.unary(Unary::Not, signed, lanes, mask);
        let [a, b] = [a, b].map(|value| self.bits_as(signed, lanes, value));
        let a = self.binary(Binary::And, signed, lanes, mask, a);
        let b = self.binary(Binary::And, signed, lanes, not, b);
        let bits = self.binary(Binary::Or, signed, lanes, a, b);
        self.bits_as(dtype, lanes, bits)
    }

    /// Lanes picked from two vectors in variables, laid end to end.
    pub(super) fn shuffle(
        &mut self,
        dtype: DType,
        lanes: u32,
        [left, right]: [Val; 2],
        picks: &[u32],
    ) -> Val {
        let ty = self.shared.vector(dtype, picks.len() as u32);
        let values: Vec<Val> = picks
            .iter()
            .map(|&pick| match pick.checked_sub(lanes) {
                None => self.lane(dtype, lanes, left, pick),
                Some(pick) => self.lane(dtype, lanes, right, pick),
            })
            .collect();
        self.context().lanes(ty, &values)
    }

    /// A vector in a variable with one lane replaced.
    pub(super) fn insert(
        &mut self,
        dtype: DType,
        lanes: u32,
        vector: Val,
        at: u32,
        value: Val,
    ) -> Val {
        let ty = self.shared.vector(dtype, lanes);
        let values: Vec<Val> = (0..lanes)
            .map(|lane| {
                if lane == at {
                    value
                } else {
                    self.lane(dtype, lanes, vector, lane)
                }
            })
            .collect();
        self.context().lanes(ty, &values)
    }

    /// All lanes of a vector in a variable combined, first to last.
    pub(super) fn reduce(&mut self, op: ReduceOp, dtype: DType, lanes: u32, vector: Val) -> Val {
        let ty = self.shared.scalar(dtype);
        let mut result = self.lane(dtype, lanes, vector, 0);
        result = self.keep(ty, result);
        for lane in 1..lanes {
            let next = self.lane(dtype, lanes, vector, lane);
            let next = self.keep(ty, next);
            result = self.scalar_op(op.combine(), dtype, &[result, next]);
            result = self.keep(ty, result);
        }
        result
    }
}
