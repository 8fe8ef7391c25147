//! Conversions between dtypes, of scalars and of vectors.

use super::code::{Code, Held, held_as, int_dtype, is_narrow};
use crate::ffi::{Binary, Compare, Unary, Val, types};
use crate::level::Level;
use loopwright_ops::{DType, Kind, Scalar};

/// The layout of a narrow float.
struct Format {
    exponent: u32,
    mantissa: u32,
    infinities: bool,
}

fn format_of(dtype: DType) -> Format {
    let (exponent, mantissa, infinities) = match dtype {
        DType::F8E4M3 => (4, 3, false),
        DType::F8E5M2 => (5, 2, true),
        DType::F16 => (5, 10, true),
        _ => (8, 7, true),
    };
    Format {
        exponent,
        mantissa,
        infinities,
    }
}

/// Two to the power of `exponent`, exactly.
fn power_of_two(exponent: i32) -> f64 {
    f64::from(exponent).exp2()
}

impl Code<'_, '_> {
    /// A scalar or vector as another dtype.
    pub(super) fn cast(&mut self, from: DType, to: DType, lanes: u32, value: Held) -> Held {
        if from == to {
            value
        } else if lanes == 1 {
            Held::plain(self.cast_scalar(from, to, value.val))
        } else {
            self.cast_vector(from, to, lanes, value)
        }
    }

    fn cast_scalar(&mut self, from: DType, to: DType, value: Val) -> Val {
        if is_narrow(from) {
            let wide = self.widen(from, value);
            if to == DType::F32 {
                return wide;
            }
            let single = self.shared.scalar(DType::F32);
            let wide = self.keep(single, wide);
            return self.cast_scalar(DType::F32, to, wide);
        }
        match (from.kind(), to.kind()) {
            (_, Kind::Bool) => {
                let zero = self.constant(Scalar::zero(from));
                let truth = self.compare(Compare::Ne, value, zero);
                self.byte(truth)
            }
            (Kind::Float, Kind::Signed | Kind::Unsigned) => self.saturated(from, to, value),
            (Kind::Float, Kind::Float) if is_narrow(to) => self.narrow(from, to, value),
            // Integers round to single precision first, as the oracle does.
            (_, Kind::Float) if is_narrow(to) => {
                let single = self.converted(DType::F32, value);
                self.narrow(DType::F32, to, single)
            }
            _ => self.converted(to, value),
        }
    }

    /// Truncates toward zero and saturates; NaN gives 0.
    fn saturated(&mut self, from: DType, to: DType, value: Val) -> Val {
        let types = [to, from].map(|dtype| self.shared.scalar(dtype));
        let name = format!("lw_{to}_from_{from}");
        let arguments = [(types[1], value)];
        self.apply(&name, types[0], &arguments, |code, places| {
            let a = code.context().value(places[0]);
            let Bounds { lower, above } = bounds(to);
            let [lower, above] = [lower, above].map(|bound| code.number(from, 1, bound));
            let [least, most] =
                [Scalar::min_value(to), Scalar::max_value(to)].map(|bound| code.constant(bound));
            let zero = code.integer(to, 0);
            let whole = code.converted(to, a);
            let below = code.compare(Compare::Lt, a, above);
            let inside = code.pick(below, to, whole, most);
            let nan = code.compare(Compare::Ne, a, a);
            let outside = code.pick(nan, to, zero, least);
            let reaches = code.compare(Compare::Ge, a, lower);
            code.pick(reaches, to, inside, outside)
        })
    }

    /// A narrow float as an `f32`, exactly.
    pub(super) fn widen(&mut self, dtype: DType, value: Val) -> Val {
        let types = [DType::F32, dtype].map(|dtype| self.shared.scalar(dtype));
        let name = format!("lw_f32_from_{dtype}");
        let arguments = [(types[1], value)];
        self.apply(&name, types[0], &arguments, |code, places| {
            let a = code.context().value(places[0]);
            match dtype {
                DType::BF16 => {
                    let word = code.converted(DType::U32, a);
                    let sixteen = code.integer(DType::U32, 16);
                    let bits = code.binary(Binary::Shl, DType::U32, 1, word, sixteen);
                    code.bits_as(DType::F32, 1, bits)
                }
                DType::F16 if code.shared.level >= Level::V3 => {
                    let zero = code.integer(dtype, 0);
                    let mut lanes = [zero; 8];
                    lanes[0] = a;
                    let from = code.shared.vector(DType::U16, 8);
                    let halves = code.context().lanes(from, &lanes);
                    let to = code.shared.vector(DType::F32, 4);
                    let wide = code.temporary(to);
                    let context = code.context();
                    let output = ("=x", wide);
                    context.assembly(
                        code.block,
                        "vcvtph2ps %1, %0",
                        output,
                        &[("x", halves)],
                        &[],
                    );
                    let wide = context.value(wide);
                    code.lane(DType::F32, 4, wide, 0)
                }
                _ => code.widen_bits(dtype, a),
            }
        })
    }

    /// Widening by arithmetic: the exponent is moved, and subnormal values are multiples of the smallest.
    fn widen_bits(&mut self, dtype: DType, a: Val) -> Val {
        let Format {
            exponent,
            mantissa,
            infinities,
        } = format_of(dtype);
        let word = self.shared.scalar(DType::U32);
        let sign_bit = 1i64 << (exponent + mantissa);
        let up = i64::from(23 - mantissa);
        let bias = (1i64 << (exponent - 1)) - 1;
        let mut integer = |value: i64| self.integer(DType::U32, value);
        let [
            magnitude_bits,
            shift,
            offset,
            all_ones,
            none,
            exponent_shift,
        ] = [
            sign_bit - 1,
            up,
            (127 - bias) << 23,
            0x7f80_0000,
            0,
            i64::from(mantissa),
        ]
        .map(&mut integer);
        // From here on magnitudes are infinite or NaN; without infinities only the largest is, and it is NaN.
        let special = integer(if infinities {
            ((1i64 << exponent) - 1) << mantissa
        } else {
            sign_bit - 1
        });
        let wide = self.converted(DType::U32, a);
        let wide = self.keep(word, wide);
        let m = self.binary(Binary::And, DType::U32, 1, wide, magnitude_bits);
        let m = self.keep(word, m);
        let moved = self.binary(Binary::Shl, DType::U32, 1, m, shift);
        let moved = self.keep(word, moved);
        let normal = self.binary(Binary::Add, DType::U32, 1, moved, offset);
        let normal = self.bits_as(DType::F32, 1, normal);
        let single = self.converted(DType::F32, m);
        let smallest = self.number(
            DType::F32,
            1,
            power_of_two(1 - bias as i32 - mantissa as i32),
        );
        let subnormal = self.binary(Binary::Mul, DType::F32, 1, single, smallest);
        let field = self.binary(Binary::Shr, DType::U32, 1, m, exponent_shift);
        let has_exponent = self.compare(Compare::Ne, field, none);
        let finite = self.pick(has_exponent, DType::F32, normal, subnormal);
        let beyond = if infinities {
            let bits = self.binary(Binary::Or, DType::U32, 1, all_ones, moved);
            self.bits_as(DType::F32, 1, bits)
        } else {
            self.constant(Scalar::f32(f32::NAN))
        };
        let is_special = self.compare(Compare::Ge, m, special);
        let size = self.pick(is_special, DType::F32, beyond, finite);
        let negated = self.unary(Unary::Neg, DType::F32, 1, size);
        let sign = self.integer(DType::U32, sign_bit);
        let sign = self.binary(Binary::And, DType::U32, 1, wide, sign);
        let negative = self.compare(Compare::Ne, sign, none);
        self.pick(negative, DType::F32, negated, size)
    }

    /// An `f32` or `f64` rounded to a narrow float.
    pub(super) fn narrow(&mut self, from: DType, to: DType, value: Val) -> Val {
        let types = [to, from].map(|dtype| self.shared.scalar(dtype));
        let name = format!("lw_{to}_from_{from}");
        let arguments = [(types[1], value)];
        self.apply(&name, types[0], &arguments, |code, places| {
            let a = code.context().value(places[0]);
            match (from, to) {
                (DType::F32, DType::BF16) => {
                    let bits = code.bits_as(DType::U32, 1, a);
                    let rounded = code.rounded_to_bf16(1, bits);
                    let rounded = code.converted(DType::U16, rounded);
                    let nan = code.integer(DType::U16, 0x7fc0);
                    let is_nan = code.compare(Compare::Ne, a, a);
                    code.pick(is_nan, DType::U16, nan, rounded)
                }
                (DType::F32, DType::F16) if code.shared.level >= Level::V3 => {
                    let zero = code.number(DType::F32, 1, 0.0);
                    let four = code.shared.vector(DType::F32, 4);
                    let wide = code.context().lanes(four, &[a, zero, zero, zero]);
                    let eight = code.shared.vector(DType::U16, 8);
                    let halves = code.temporary(eight);
                    let context = code.context();
                    let output = ("=x", halves);
                    context.assembly(
                        code.block,
                        "vcvtps2ph $0, %1, %0",
                        output,
                        &[("x", wide)],
                        &[],
                    );
                    let halves = context.value(halves);
                    code.lane(DType::U16, 8, halves, 0)
                }
                _ => {
                    let wide = code.converted(DType::F64, a);
                    let bits = code.encoded(to, wide);
                    code.converted(to, bits)
                }
            }
        })
    }

    /// The upper halves of words, rounded to nearest even.
    fn rounded_to_bf16(&mut self, lanes: u32, bits: Val) -> Val {
        let word = self.shared.of(DType::U32, lanes);
        let bits = self.keep(word, bits);
        let [sixteen, one, almost_half] =
            [16, 1, 0x7fff].map(|value| self.integers(DType::U32, lanes, value));
        let upper = self.binary(Binary::Shr, DType::U32, lanes, bits, sixteen);
        let odd = self.binary(Binary::And, DType::U32, lanes, upper, one);
        let raised = self.binary(Binary::Add, DType::U32, lanes, bits, almost_half);
        let raised = self.binary(Binary::Add, DType::U32, lanes, raised, odd);
        self.binary(Binary::Shr, DType::U32, lanes, raised, sixteen)
    }

    /// The bits of a narrow float nearest to an `f64`, as a word: scaled so that its last bit counts 1, the value is
    /// rounded by `rint`, once, and a carry goes into the exponent by itself. Too long to be copied everywhere.
    fn encoded(&mut self, dtype: DType, value: Val) -> Val {
        let Format {
            exponent: exponent_bits,
            mantissa: mantissa_bits,
            infinities,
        } = format_of(dtype);
        let types = [DType::U32, DType::F64].map(|dtype| self.shared.scalar(dtype));
        let name = format!("lw_encode_{dtype}");
        let arguments = [(types[1], value)];
        self.apply(&name, types[0], &arguments, |code, places| {
            let a = code.context().value(places[0]);
            let sign_bit = 1i64 << (exponent_bits + mantissa_bits);
            let infinity = ((1i64 << exponent_bits) - 1) << mantissa_bits;
            let (nan, largest, overflow) = if infinities {
                (infinity | 1 << (mantissa_bits - 1), infinity - 1, infinity)
            } else {
                (sign_bit - 1, sign_bit - 2, sign_bit - 1)
            };
            let [nan, largest, overflow, up] = [nan, largest, overflow, mantissa_bits.into()]
                .map(|value| code.integer(DType::U32, value));
            let smallest = 2 - (1i64 << (exponent_bits - 1));
            let (long, int) = (
                code.shared.scalar(DType::U64),
                code.shared.scalar(DType::I64),
            );
            let word = code.bits_as(DType::U64, 1, a);
            let word = code.keep(long, word);
            let to_sign = code.integer(DType::U64, 63 - i64::from(exponent_bits + mantissa_bits));
            let sign = code.binary(Binary::Shr, DType::U64, 1, word, to_sign);
            let sign = code.converted(DType::U32, sign);
            let only = code.integer(DType::U32, sign_bit);
            let sign = code.binary(Binary::And, DType::U32, 1, sign, only);
            let [fifty_two, field] = [52, 0x7ff].map(|value| code.integer(DType::U64, value));
            let exponent = code.binary(Binary::Shr, DType::U64, 1, word, fifty_two);
            let exponent = code.binary(Binary::And, DType::U64, 1, exponent, field);
            let exponent = code.converted(DType::I64, exponent);
            let [bias, least, most, scaled] = [
                1023,
                smallest,
                1i64 << (exponent_bits - 1),
                i64::from(mantissa_bits) + 1023,
            ]
            .map(|value| code.integer(DType::I64, value));
            let exponent = code.binary(Binary::Sub, DType::I64, 1, exponent, bias);
            let exponent = code.keep(int, exponent);
            let too_large = code.compare(Compare::Gt, exponent, most);
            let tiny = code.compare(Compare::Lt, exponent, least);
            let unit = code.pick(tiny, DType::I64, least, exponent);
            let scale = code.binary(Binary::Sub, DType::I64, 1, scaled, unit);
            let scale = code.converted(DType::U64, scale);
            let scale = code.binary(Binary::Shl, DType::U64, 1, scale, fifty_two);
            let scale = code.bits_as(DType::F64, 1, scale);
            let size = code.float_builtin("fabs", DType::F64, &[a]);
            let units = code.binary(Binary::Mul, DType::F64, 1, size, scale);
            let units = code.float_builtin("rint", DType::F64, &[units]);
            // Without a meaning where the value is not finite or too large, which is looked at below.
            let units = code.converted(DType::I64, units);
            let units = code.converted(DType::U32, units);
            let above = code.binary(Binary::Sub, DType::I64, 1, unit, least);
            let above = code.converted(DType::U32, above);
            let above = code.binary(Binary::Shl, DType::U32, 1, above, up);
            let bits = code.binary(Binary::Add, DType::U32, 1, above, units);
            let bits = code.keep(types[0], bits);
            let overflows = code.compare(Compare::Gt, bits, largest);
            let overflows = code.either(overflows, too_large);
            let bits = code.pick(overflows, DType::U32, overflow, bits);
            let signed = code.binary(Binary::Or, DType::U32, 1, sign, bits);
            let is_nan = code.compare(Compare::Ne, a, a);
            code.pick(is_nan, DType::U32, nan, signed)
        })
    }

    fn cast_vector(&mut self, from: DType, to: DType, lanes: u32, value: Held) -> Held {
        if is_narrow(from) {
            let wide = self.widen_vector(from, lanes, value.val);
            if to == DType::F32 {
                return Held::plain(wide);
            }
            let ty = self.shared.vector(DType::F32, lanes);
            let wide = Held::plain(self.keep(ty, wide));
            return self.cast_vector(DType::F32, to, lanes, wide);
        }
        if to == DType::Bool {
            let zero = self.constant(Scalar::zero(from));
            let zero = self.splat(from, lanes, zero);
            return self.compare_vectors(Compare::Ne, from, lanes, value.val, zero);
        }
        let value = self.bytes(lanes, value);
        Held::plain(match (from.kind(), to.kind()) {
            (Kind::Float, Kind::Signed | Kind::Unsigned) => {
                self.saturated_vector(from, to, lanes, value)
            }
            (Kind::Float, Kind::Float) if is_narrow(to) && from == DType::F32 => {
                self.narrow_vector(to, lanes, value)
            }
            (Kind::Float, Kind::Float) if is_narrow(to) => {
                let name = format!("lw_{to}_from_{from}x{lanes}");
                self.lane_by_lane(&name, [to, from], lanes, &[value], |code, operands| {
                    code.narrow(from, to, operands[0])
                })
            }
            (_, Kind::Float) if is_narrow(to) => {
                let single = self.converted_vector(from, DType::F32, lanes, value);
                let ty = self.shared.vector(DType::F32, lanes);
                let single = self.keep(ty, single);
                self.narrow_vector(to, lanes, single)
            }
            _ => self.converted_vector(from, to, lanes, value),
        })
    }

    /// C's conversion of every lane. Written lane by lane; the compiler finds the instruction that does it at once.
    pub(super) fn converted_vector(
        &mut self,
        from: DType,
        to: DType,
        lanes: u32,
        value: Val,
    ) -> Val {
        let (from, to) = (held_as(from), held_as(to));
        let [from_type, to_type] = [from, to].map(|dtype| self.shared.vector(dtype, lanes));
        if from.bits() == to.bits() && !from.is_float() && !to.is_float() {
            return self.context().bitcast(value, to_type);
        }
        let name = format!("lw_convert_{from}_{to}x{lanes}");
        if from.bits() == 64 && to.bits() == 8 {
            // By a loop: GCC 12 has no way to write the one instruction it finds for AVX-512, and gives up.
            let dtypes = [to, from];
            return self.lane_by_lane(&name, dtypes, lanes, &[value], |code, operands| {
                code.converted(to, operands[0])
            });
        }
        let arguments = [(from_type, value)];
        self.apply(&name, to_type, &arguments, |code, places| {
            let a = code.context().value(places[0]);
            let values: Vec<Val> = (0..lanes)
                .map(|lane| {
                    let value = code.lane(from, lanes, a, lane);
                    code.converted(to, value)
                })
                .collect();
            code.context().lanes(to_type, &values)
        })
    }

    /// Truncates toward zero and saturates, NaN to 0: what does not fit is replaced by 0 before and by the bound
    /// after.
    fn saturated_vector(&mut self, from: DType, to: DType, lanes: u32, value: Val) -> Val {
        let types = [to, from].map(|dtype| self.shared.vector(dtype, lanes));
        let name = format!("lw_{to}_from_{from}x{lanes}");
        let arguments = [(types[1], value)];
        self.apply(&name, types[0], &arguments, |code, places| {
            let a = code.context().value(places[0]);
            let Bounds { lower, above } = bounds(to);
            let [lower, above] = [lower, above].map(|bound| code.number(from, lanes, bound));
            let [least, most] = [Scalar::min_value(to), Scalar::max_value(to)].map(|bound| {
                let bound = code.constant(bound);
                code.splat(to, lanes, bound)
            });
            let [below, beyond, reaches, fits] = [
                (Compare::Lt, lower),
                (Compare::Ge, above),
                (Compare::Ge, lower),
                (Compare::Lt, above),
            ]
            .map(|(compare, bound)| code.compare_vectors(compare, from, lanes, a, bound));
            let mask = int_dtype(from.bits(), true);
            let inside = code.binary(Binary::And, mask, lanes, reaches.val, fits.val);
            let bits = code.bits_as(mask, lanes, a);
            let inside = code.binary(Binary::And, mask, lanes, inside, bits);
            let inside = code.bits_as(from, lanes, inside);
            let inside = code.keep(types[1], inside);
            let whole = code.converted_vector(from, to, lanes, inside);
            let whole = code.select_vectors(to, lanes, beyond, most, whole);
            code.select_vectors(to, lanes, below, least, whole)
        })
    }

    /// A vector of narrow floats as a vector of `f32`.
    pub(super) fn widen_vector(&mut self, dtype: DType, lanes: u32, value: Val) -> Val {
        let types = [DType::F32, dtype].map(|dtype| self.shared.vector(dtype, lanes));
        let name = format!("lw_f32_from_{dtype}x{lanes}");
        let level = self.shared.level;
        match dtype {
            DType::BF16 => {
                let arguments = [(types[1], value)];
                self.apply(&name, types[0], &arguments, |code, places| {
                    let a = code.context().value(places[0]);
                    let word = code.converted_vector(DType::U16, DType::U32, lanes, a);
                    let sixteen = code.integers(DType::U32, lanes, 16);
                    let bits = code.binary(Binary::Shl, DType::U32, lanes, word, sixteen);
                    code.bits_as(DType::F32, lanes, bits)
                })
            }
            DType::F16 if lanes >= 8 && level.has_register(lanes as usize * 4) => {
                let arguments = [(types[1], value)];
                self.apply(&name, types[0], &arguments, |code, places| {
                    let context = code.context();
                    let wide = code.temporary(types[0]);
                    let a = context.value(places[0]);
                    // EVEX, and with it the upper registers, for 512 bits alone.
                    let (to, from) = if lanes == 16 {
                        ("=v", "v")
                    } else {
                        ("=x", "x")
                    };
                    let inputs = [(from, a)];
                    context.assembly(code.block, "vcvtph2ps %1, %0", (to, wide), &inputs, &[]);
                    context.value(wide)
                })
            }
            _ => self.lane_by_lane(
                &name,
                [DType::F32, dtype],
                lanes,
                &[value],
                |code, operands| code.widen(dtype, operands[0]),
            ),
        }
    }

    /// A vector of `f32` rounded to narrow floats.
    pub(super) fn narrow_vector(&mut self, dtype: DType, lanes: u32, value: Val) -> Val {
        let types = [dtype, DType::F32].map(|dtype| self.shared.vector(dtype, lanes));
        let name = format!("lw_{dtype}_from_f32x{lanes}");
        let level = self.shared.level;
        match dtype {
            DType::BF16 => {
                let arguments = [(types[1], value)];
                self.apply(&name, types[0], &arguments, |code, places| {
                    let a = code.context().value(places[0]);
                    let nan = code.compare_vectors(Compare::Ne, DType::F32, lanes, a, a);
                    let bits = code.bits_as(DType::U32, lanes, a);
                    let rounded = code.rounded_to_bf16(lanes, bits);
                    let word = code.shared.vector(DType::U32, lanes);
                    let rounded = code.keep(word, rounded);
                    let quiet = code.integers(DType::U32, lanes, 0x7fc0);
                    let bits = code.select_vectors(DType::U32, lanes, nan, quiet, rounded);
                    let bits = code.keep(word, bits);
                    code.converted_vector(DType::U32, DType::U16, lanes, bits)
                })
            }
            DType::F16 if lanes >= 8 && level.has_register(lanes as usize * 4) => {
                let arguments = [(types[1], value)];
                self.apply(&name, types[0], &arguments, |code, places| {
                    let context = code.context();
                    let halves = code.temporary(types[0]);
                    let a = context.value(places[0]);
                    let (to, from) = if lanes == 16 {
                        ("=v", "v")
                    } else {
                        ("=x", "x")
                    };
                    let inputs = [(from, a)];
                    context.assembly(
                        code.block,
                        "vcvtps2ph $0, %1, %0",
                        (to, halves),
                        &inputs,
                        &[],
                    );
                    context.value(halves)
                })
            }
            _ => self.lane_by_lane(
                &name,
                [dtype, DType::F32],
                lanes,
                &[value],
                |code, operands| code.narrow(DType::F32, dtype, operands[0]),
            ),
        }
    }

    /// The bits of a scalar as an integer that atomic operations take.
    pub(super) fn word_of(&mut self, dtype: DType, value: Val) -> Val {
        let word = int_dtype(dtype.bits(), true);
        match dtype {
            DType::F32 | DType::F64 => self.bits_as(word, 1, value),
            _ => self.converted(word, value),
        }
    }

    /// The scalar with these bits.
    pub(super) fn scalar_of(&mut self, dtype: DType, word: Val) -> Val {
        match dtype {
            DType::F32 | DType::F64 => self.bits_as(dtype, 1, word),
            _ => self.converted(dtype, word),
        }
    }

    /// The C type `int`'s constant, for builtins that take one.
    pub(super) fn c_int(&self, value: i64) -> Val {
        let context = self.context();
        context.integer(context.basic(types::INT), value)
    }
}

/// The bounds of an integer dtype as floats: below `lower` and from `above` on nothing fits. Both are powers of two or
/// 0, exact in every float.
struct Bounds {
    lower: f64,
    above: f64,
}

fn bounds(to: DType) -> Bounds {
    let bits = to.bits() as i32;
    match to.kind() {
        Kind::Signed => Bounds {
            lower: -power_of_two(bits - 1),
            above: power_of_two(bits - 1),
        },
        _ => Bounds {
            lower: 0.0,
            above: power_of_two(bits),
        },
    }
}
