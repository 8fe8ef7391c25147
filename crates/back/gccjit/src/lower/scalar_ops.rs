//! Ops on scalars: the compiler's operators where it has them, small functions where it does not.

use super::code::{Code, int_dtype, is_narrow};
use crate::ffi::{Binary, Compare, Ty, Unary, Val, types};
use loopwright_ops::{DType, Kind, Op, Output, ops_of};

impl Code<'_, '_> {
    /// An op on scalars of `dtype` (for `select`, the dtype of what is chosen). Operands are variables or
    /// constants: they may be read more than once.
    pub(super) fn scalar_op(&mut self, op: Op, dtype: DType, operands: &[Val]) -> Val {
        if let Some(value) = self.scalar_operator(op, dtype, operands) {
            return value;
        }
        let ty = self.shared.scalar(dtype);
        let result = match op.info().output {
            Output::Same => ty,
            Output::Bool => self.shared.scalar(DType::Bool),
        };
        let name = format!("lw_{op}_{dtype}");
        let arguments: Vec<(Ty, Val)> = operands.iter().map(|&operand| (ty, operand)).collect();
        self.apply(&name, result, &arguments, |code, places| {
            let values: Vec<Val> = places
                .iter()
                .map(|&place| code.context().value(place))
                .collect();
            let value = match dtype.kind() {
                _ if is_narrow(dtype) => Some(code.narrow_op(op, dtype, &values)),
                Kind::Float => code.float_op(op, dtype, &values),
                Kind::Signed | Kind::Unsigned => code.int_op(op, dtype, &values),
                Kind::Bool => None,
            };
            value.expect("a valid module applies ops to their dtypes, and this one is no operator")
        })
    }

    /// The op as an expression, where it is one.
    fn scalar_operator(&mut self, op: Op, dtype: DType, operands: &[Val]) -> Option<Val> {
        match (op, operands) {
            (Op::Copy, [a]) => return Some(*a),
            (Op::Select, [condition, a, b]) => {
                let condition = self.condition(*condition);
                return Some(self.pick(condition, dtype, *a, *b));
            }
            _ => {}
        }
        if is_narrow(dtype) {
            return None;
        }
        let (bool, float) = (dtype == DType::Bool, dtype.is_float());
        let compared = match op {
            Op::Eq => Some(Compare::Eq),
            Op::Ne => Some(Compare::Ne),
            Op::Lt => Some(Compare::Lt),
            Op::Le => Some(Compare::Le),
            Op::Gt => Some(Compare::Gt),
            Op::Ge => Some(Compare::Ge),
            _ => None,
        };
        if let (Some(compare), [a, b]) = (compared, operands) {
            let truth = self.compare(compare, *a, *b);
            return Some(self.byte(truth));
        }
        Some(match (op, operands) {
            (Op::Not, [a]) if bool => {
                let one = self.integer(dtype, 1);
                self.binary(Binary::Xor, dtype, 1, *a, one)
            }
            (Op::Min, [a, b]) if bool => self.binary(Binary::And, dtype, 1, *a, *b),
            (Op::Max, [a, b]) if bool => self.binary(Binary::Or, dtype, 1, *a, *b),
            (Op::Not, [a]) => self.unary(Unary::Not, dtype, 1, *a),
            (Op::Neg, [a]) => self.unary(Unary::Neg, dtype, 1, *a),
            (Op::Floor | Op::Ceil | Op::Round | Op::Trunc, [a]) if !float => *a,
            (Op::And, [a, b]) => self.binary(Binary::And, dtype, 1, *a, *b),
            (Op::Or, [a, b]) => self.binary(Binary::Or, dtype, 1, *a, *b),
            (Op::Xor, [a, b]) => self.binary(Binary::Xor, dtype, 1, *a, *b),
            (Op::Add, [a, b]) => self.binary(Binary::Add, dtype, 1, *a, *b),
            (Op::Sub, [a, b]) => self.binary(Binary::Sub, dtype, 1, *a, *b),
            (Op::Mul, [a, b]) => self.binary(Binary::Mul, dtype, 1, *a, *b),
            (Op::Div, [a, b]) if float => self.binary(Binary::Div, dtype, 1, *a, *b),
            (Op::MulAdd, [a, b, c]) if !float => {
                let product = self.binary(Binary::Mul, dtype, 1, *a, *b);
                self.binary(Binary::Add, dtype, 1, product, *c)
            }
            _ => return None,
        })
    }

    /// Computes in `f32` and rounds.
    fn narrow_op(&mut self, op: Op, dtype: DType, operands: &[Val]) -> Val {
        let single = self.shared.scalar(DType::F32);
        let wide: Vec<Val> = operands
            .iter()
            .map(|&operand| {
                let wide = self.widen(dtype, operand);
                self.keep(single, wide)
            })
            .collect();
        let result = self.scalar_op(op, DType::F32, &wide);
        match op.info().output {
            Output::Bool => result,
            Output::Same => {
                let result = self.keep(single, result);
                self.narrow(DType::F32, dtype, result)
            }
        }
    }

    /// Calls a builtin that is named after `double`, and with an `f` behind it for `float`.
    pub(super) fn float_builtin(&mut self, name: &str, dtype: DType, arguments: &[Val]) -> Val {
        let suffix = if dtype == DType::F32 { "f" } else { "" };
        let function = self.shared.builtin(&format!("__builtin_{name}{suffix}"));
        self.context().call(function, arguments)
    }

    /// Calls a function of the mathematics library. It is declared as nothing special, so the compiler calls it and
    /// does not put its own idea of it in its place.
    fn math(&mut self, name: &str, dtype: DType, arguments: &[Val]) -> Val {
        let suffix = if dtype == DType::F32 { "f" } else { "" };
        let ty = self.shared.scalar(dtype);
        let params: Vec<(Ty, &str)> = arguments.iter().map(|_| ty).zip(["x", "y"]).collect();
        let function = self
            .shared
            .imported(&format!("{name}{suffix}"), ty, &params);
        self.context().call(function, arguments)
    }

    /// The value of a function on floats; nothing where the op is an operator, or none of floats.
    fn float_op(&mut self, op: Op, dtype: DType, operands: &[Val]) -> Option<Val> {
        let ty = self.shared.scalar(dtype);
        let library = match op {
            Op::Rem | Op::Mod => Some("fmod"),
            _ => op.library_function().map(|[_, double]| double),
        };
        if let Some(name) = library {
            let value = self.math(name, dtype, operands);
            if op != Op::Mod {
                return Some(value);
            }
            let b = operands[1];
            let r = self.keep(ty, value);
            let zero = self.number(dtype, 1, 0.0);
            let none = self.float_builtin("copysign", dtype, &[zero, b]);
            let sum = self.binary(Binary::Add, dtype, 1, r, b);
            let signs = [r, b].map(|x| self.compare(Compare::Lt, x, zero));
            let differ = self.compare(Compare::Ne, signs[0], signs[1]);
            let other = self.pick(differ, dtype, sum, r);
            let exact = self.compare(Compare::Eq, r, zero);
            return Some(self.pick(exact, dtype, none, other));
        }
        let a = operands[0];
        let [zero, one, minus, infinity] =
            [0.0, 1.0, -1.0, f64::INFINITY].map(|value| self.number(dtype, 1, value));
        Some(match op {
            Op::Abs => self.float_builtin("fabs", dtype, &[a]),
            Op::Sign => {
                let negative = self.compare(Compare::Lt, a, zero);
                let other = self.pick(negative, dtype, minus, a);
                let positive = self.compare(Compare::Gt, a, zero);
                self.pick(positive, dtype, one, other)
            }
            Op::Recip => self.binary(Binary::Div, dtype, 1, one, a),
            Op::Sqrt => self.float_builtin("sqrt", dtype, &[a]),
            Op::Rsqrt => {
                let root = self.float_builtin("sqrt", dtype, &[a]);
                self.binary(Binary::Div, dtype, 1, one, root)
            }
            Op::Floor => self.float_builtin("floor", dtype, &[a]),
            Op::Ceil => self.float_builtin("ceil", dtype, &[a]),
            // Nothing changes the rounding mode, so this rounds halves to even.
            Op::Round => self.float_builtin("rint", dtype, &[a]),
            Op::Trunc => self.float_builtin("trunc", dtype, &[a]),
            Op::IsNan => {
                let truth = self.compare(Compare::Ne, a, a);
                self.byte(truth)
            }
            Op::IsInf | Op::IsFinite => {
                let size = self.float_builtin("fabs", dtype, &[a]);
                let compare = match op {
                    Op::IsInf => Compare::Eq,
                    _ => Compare::Lt,
                };
                let truth = self.compare(compare, size, infinity);
                self.byte(truth)
            }
            Op::FloorDiv => {
                let quotient = self.binary(Binary::Div, dtype, 1, a, operands[1]);
                self.float_builtin("floor", dtype, &[quotient])
            }
            Op::CopySign => self.float_builtin("copysign", dtype, operands),
            Op::Min | Op::Max => {
                let compare = match op {
                    Op::Min => Compare::Lt,
                    _ => Compare::Gt,
                };
                let first = self.compare(compare, a, operands[1]);
                let nan = self.compare(Compare::Ne, a, a);
                let first = self.either(first, nan);
                self.pick(first, dtype, a, operands[1])
            }
            Op::MulAdd => self.float_builtin("fma", dtype, operands),
            Op::Copy
            | Op::Select
            | Op::Neg
            | Op::Add
            | Op::Sub
            | Op::Mul
            | Op::Div
            | Op::Rem
            | Op::Mod
            | ops_of!(Library)
            | ops_of!(Comparison)
            | ops_of!(Bits)
            | ops_of!(Int)
            | ops_of!(Word) => return None,
        })
    }

    /// `b`, or 1 where dividing by it is undefined: 0, and -1 for signed integers, where the smallest has no
    /// quotient.
    fn divisor(&mut self, dtype: DType, b: Val) -> Val {
        let [zero, one, minus] = [0, 1, -1].map(|value| self.integer(dtype, value));
        let mut undefined = self.compare(Compare::Eq, b, zero);
        if dtype.kind() == Kind::Signed {
            let negation = self.compare(Compare::Eq, b, minus);
            undefined = self.either(undefined, negation);
        }
        self.pick(undefined, dtype, one, b)
    }

    /// Whether two signed integers have different signs.
    fn signs_differ(&mut self, dtype: DType, a: Val, b: Val) -> Val {
        let zero = self.integer(dtype, 0);
        let signs = [a, b].map(|value| self.compare(Compare::Lt, value, zero));
        self.compare(Compare::Ne, signs[0], signs[1])
    }

    /// The value of a function on integers; nothing where the op is an operator, or none of integers.
    fn int_op(&mut self, op: Op, dtype: DType, operands: &[Val]) -> Option<Val> {
        let signed = dtype.kind() == Kind::Signed;
        let bits = dtype.bits();
        let ty = self.shared.scalar(dtype);
        let unsigned = int_dtype(bits, false);
        let a = operands[0];
        let [zero, one, minus, width] =
            [0, 1, -1, i64::from(bits)].map(|value| self.integer(dtype, value));
        Some(match (op, operands) {
            (Op::Abs, _) if signed => {
                let negated = self.unary(Unary::Neg, dtype, 1, a);
                let negative = self.compare(Compare::Lt, a, zero);
                self.pick(negative, dtype, negated, a)
            }
            (Op::Abs, _) => a,
            (Op::Sign, _) if signed => {
                let [above, below] = [Compare::Gt, Compare::Lt].map(|op| {
                    let truth = self.compare(op, a, zero);
                    self.converted(dtype, truth)
                });
                self.binary(Binary::Sub, dtype, 1, above, below)
            }
            (Op::Sign, _) => {
                let truth = self.compare(Compare::Ne, a, zero);
                self.converted(dtype, truth)
            }
            (Op::Popcount, _) => self.count_bits("popcountll", dtype, a),
            (Op::Clz | Op::Ctz, _) => {
                let none = self.compare(Compare::Eq, a, zero);
                // The builtins are undefined for 0.
                let some = self.pick(none, dtype, one, a);
                let count = match op {
                    Op::Clz => {
                        let count = self.count_bits("clzll", dtype, some);
                        let beyond = self.integer(dtype, i64::from(64 - bits));
                        self.binary(Binary::Sub, dtype, 1, count, beyond)
                    }
                    _ => self.count_bits("ctzll", dtype, some),
                };
                self.pick(none, dtype, width, count)
            }
            (Op::Div | Op::FloorDiv, [a, b]) => {
                let (a, b) = (*a, *b);
                let by = self.divisor(dtype, b);
                let mut quotient = self.binary(Binary::Div, dtype, 1, a, by);
                if signed {
                    if op == Op::FloorDiv {
                        let rest = self.binary(Binary::Rem, dtype, 1, a, by);
                        let inexact = self.compare(Compare::Ne, rest, zero);
                        let negative = self.signs_differ(dtype, a, by);
                        let less = self.both(inexact, negative);
                        let less = self.converted(dtype, less);
                        quotient = self.binary(Binary::Sub, dtype, 1, quotient, less);
                    }
                    let negated = self.unary(Unary::Neg, dtype, 1, a);
                    let negation = self.compare(Compare::Eq, b, minus);
                    quotient = self.pick(negation, dtype, negated, quotient);
                }
                let undefined = self.compare(Compare::Eq, b, zero);
                self.pick(undefined, dtype, zero, quotient)
            }
            // By 1 the remainder is 0, which is what it is defined to be for 0 and -1.
            (Op::Rem | Op::Mod, [a, b]) => {
                let by = self.divisor(dtype, *b);
                let rest = self.binary(Binary::Rem, dtype, 1, *a, by);
                if op == Op::Rem || !signed {
                    return Some(rest);
                }
                let rest = self.keep(ty, rest);
                let inexact = self.compare(Compare::Ne, rest, zero);
                let negative = self.signs_differ(dtype, rest, by);
                let wrong = self.both(inexact, negative);
                let moved = self.binary(Binary::Add, dtype, 1, rest, by);
                self.pick(wrong, dtype, moved, rest)
            }
            (Op::Pow, [a, b]) => self.int_power(dtype, *a, *b),
            (Op::Min | Op::Max, [a, b]) => {
                let compare = match op {
                    Op::Min => Compare::Lt,
                    _ => Compare::Gt,
                };
                let first = self.compare(compare, *a, *b);
                self.pick(first, dtype, *a, *b)
            }
            (Op::Shl | Op::Shr, [a, b]) => {
                let amount = self.converted(unsigned, *b);
                let limit = self.integer(unsigned, i64::from(bits));
                let inside = self.compare(Compare::Lt, amount, limit);
                let most = self.integer(dtype, i64::from(bits) - 1);
                let within = self.binary(Binary::And, dtype, 1, *b, most);
                match op {
                    Op::Shr if signed => {
                        let amount = self.pick(inside, dtype, within, most);
                        self.binary(Binary::Shr, dtype, 1, *a, amount)
                    }
                    Op::Shr => {
                        let shifted = self.binary(Binary::Shr, dtype, 1, *a, within);
                        self.pick(inside, dtype, shifted, zero)
                    }
                    _ => {
                        let shifted = self.binary(Binary::Shl, dtype, 1, *a, within);
                        self.pick(inside, dtype, shifted, zero)
                    }
                }
            }
            (Op::Threefry, [a, b]) => self.threefry(*a, *b),
            (
                Op::Copy
                | Op::Select
                | ops_of!(Number)
                | ops_of!(Comparison)
                | Op::Min
                | Op::Max
                | ops_of!(Bits)
                | ops_of!(Float)
                | ops_of!(Int)
                | ops_of!(Word),
                _,
            ) => return None,
        })
    }

    /// A builtin that counts bits of an `unsigned long long`, on an integer's own bits.
    fn count_bits(&mut self, name: &str, dtype: DType, a: Val) -> Val {
        let context = self.context();
        let own = self.converted(int_dtype(dtype.bits(), false), a);
        let word = context.cast(own, context.basic(types::UNSIGNED_LONG_LONG));
        let function = self.shared.builtin(&format!("__builtin_{name}"));
        let count = context.call(function, &[word]);
        self.converted(dtype, count)
    }

    fn int_power(&mut self, dtype: DType, a: Val, b: Val) -> Val {
        let context = self.context();
        let unsigned = int_dtype(dtype.bits(), false);
        let (word, count) = (self.shared.scalar(DType::U64), self.shared.scalar(unsigned));
        let [result, square, left] = [word, word, count].map(|ty| self.temporary(ty));
        let [start, base] = [self.integer(DType::U64, 1), self.converted(DType::U64, a)];
        let exponent = self.converted(unsigned, b);
        self.assign(result, start);
        self.assign(square, base);
        self.assign(left, exponent);
        let blocks = ["head", "body", "odd", "even", "after"];
        let [head, inside, odd, even, after] = blocks.map(|name| self.new_block(name));
        context.jump(self.block, head);
        let [r, s, n] = [result, square, left].map(|place| context.value(place));
        let [none, one] = [0, 1].map(|value| self.integer(unsigned, value));
        context.branch(head, context.compare(Compare::Ne, n, none), inside, after);
        let low = context.binary(Binary::And, count, n, one);
        context.branch(inside, context.compare(Compare::Ne, low, none), odd, even);
        context.assign(odd, result, context.binary(Binary::Mul, word, r, s));
        context.jump(odd, even);
        context.assign(even, square, context.binary(Binary::Mul, word, s, s));
        context.assign(even, left, context.binary(Binary::Shr, count, n, one));
        context.jump(even, head);
        self.block = after;
        let power = self.converted(dtype, r);
        if dtype.kind() != Kind::Signed {
            return power;
        }
        // A negative exponent: only 1 and -1 have reciprocals other than 0.
        let [zero, one, minus] = [0, 1, -1].map(|value| self.integer(dtype, value));
        let low = self.binary(Binary::And, dtype, 1, b, one);
        let even = self.compare(Compare::Eq, low, zero);
        let alternating = self.pick(even, dtype, one, minus);
        let is_minus = self.compare(Compare::Eq, a, minus);
        let other = self.pick(is_minus, dtype, alternating, zero);
        let is_one = self.compare(Compare::Eq, a, one);
        let reciprocal = self.pick(is_one, dtype, one, other);
        let negative = self.compare(Compare::Lt, b, zero);
        self.pick(negative, dtype, reciprocal, power)
    }

    /// Threefry-2x32 with 20 rounds, written out.
    fn threefry(&mut self, a: Val, b: Val) -> Val {
        const ROTATIONS: [i64; 8] = [13, 15, 26, 6, 17, 29, 16, 24];
        let word = self.shared.scalar(DType::U32);
        let half = self.integer(DType::U64, 32);
        let halves = |code: &mut Self, value: Val| {
            let high = code.binary(Binary::Shr, DType::U64, 1, value, half);
            [value, high].map(|part| {
                let part = code.converted(DType::U32, part);
                code.keep(word, part)
            })
        };
        let [k0, k1] = halves(self, a);
        let [x, y] = halves(self, b);
        let parity = self.integer(DType::U32, 0x1bd1_1bda);
        let both = self.binary(Binary::Xor, DType::U32, 1, k0, k1);
        let k2 = self.binary(Binary::Xor, DType::U32, 1, parity, both);
        let keys = [k0, k1, self.keep(word, k2)];
        let add = |code: &mut Self, left: Val, right: Val| {
            let sum = code.binary(Binary::Add, DType::U32, 1, left, right);
            code.keep(word, sum)
        };
        let mut x = add(self, x, keys[0]);
        let mut y = add(self, y, keys[1]);
        for round in 0..20 {
            x = add(self, x, y);
            let [by, back] = [ROTATIONS[round % 8], 32 - ROTATIONS[round % 8]]
                .map(|amount| self.integer(DType::U32, amount));
            let up = self.binary(Binary::Shl, DType::U32, 1, y, by);
            let down = self.binary(Binary::Shr, DType::U32, 1, y, back);
            let turned = self.binary(Binary::Or, DType::U32, 1, up, down);
            let mixed = self.binary(Binary::Xor, DType::U32, 1, turned, x);
            y = self.keep(word, mixed);
            if round % 4 == 3 {
                let n = round / 4 + 1;
                x = add(self, x, keys[n % 3]);
                y = add(self, y, keys[(n + 1) % 3]);
                let count = self.integer(DType::U32, n as i64);
                y = add(self, y, count);
            }
        }
        let [x, y] = [x, y].map(|part| self.converted(DType::U64, part));
        let high = self.binary(Binary::Shl, DType::U64, 1, y, half);
        self.binary(Binary::Or, DType::U64, 1, x, high)
    }
}
