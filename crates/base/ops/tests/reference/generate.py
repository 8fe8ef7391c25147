#!/usr/bin/env python3
"""Writes the reference values that the oracle, and through it every backend, is checked against.

    generate.py            writes the *.txt files beside this script
    generate.py --check    fails if the files are not what it would write

Nothing here knows how the Rust code computes: expectations come from numpy, from ml_dtypes, from exact
integer and rational arithmetic, or from higher precision rounded once. The list of ops, their arity and
the dtypes they take are read from the op table (src/table.rs), so an op without a definition here is an
error. Values that depend on the C library's functions are checked within the distance the row allows,
everything else to the bit.

The format (version 1) is one record per line, fields separated by spaces:

    set NAME DTYPE HEX                          operands, each element as its bits in fixed-width hex
    WHAT DTYPE RESULT ULP SET... = HEX          what is applied to the sets, element by element or as a whole

HEX is `-` when there are no elements; ULP is how many representable values a result may be away from the
expected one. WHAT is an op's name, `cast`, `bitcast`, `reduce.NAME`, `scan.NAME`, `argmax`, `argmin`,
`sort` or `argsort`. Any NaN is as good as the one written.
"""

import math
import pathlib
import re
import sys
from bisect import bisect_left
from decimal import Decimal, getcontext, localcontext
from fractions import Fraction

import ml_dtypes
import numpy as np

FORMAT = 1
HERE = pathlib.Path(__file__).resolve().parent
TABLE = HERE.parent.parent / "src" / "table.rs"

np.seterr(all="ignore")

# --- dtypes -----------------------------------------------------------------------------------------

NUMPY = {
    "bool": np.bool_,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "u8": np.uint8,
    "u16": np.uint16,
    "u32": np.uint32,
    "u64": np.uint64,
    "f8e4m3": ml_dtypes.float8_e4m3fn,
    "f8e5m2": ml_dtypes.float8_e5m2,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
}
SIGNED = ["i8", "i16", "i32", "i64"]
UNSIGNED = ["u8", "u16", "u32", "u64"]
INTS = SIGNED + UNSIGNED
NARROW = ["f8e4m3", "f8e5m2", "f16", "bf16"]
FLOATS = NARROW + ["f32", "f64"]
ALL = ["bool"] + INTS + FLOATS

CLASSES = {
    "Any": ALL,
    "Number": INTS + FLOATS,
    "Float": FLOATS,
    "Int": INTS,
    "Bits": ["bool"] + INTS,
    "Word": ["u64"],
}

NAN_BITS = {
    "f8e4m3": 0x7F,
    "f8e5m2": 0x7E,
    "f16": 0x7E00,
    "bf16": 0x7FC0,
    "f32": 0x7FC00000,
    "f64": 0x7FF8000000000000,
}


def width(dtype):
    return np.dtype(NUMPY[dtype]).itemsize * 8


def bits_of(array):
    """The elements' bits as Python ints."""
    array = np.ascontiguousarray(array)
    return [int(x) for x in array.view(f"u{array.dtype.itemsize}").ravel()]


def from_bits(dtype, bits):
    return np.array(bits, dtype=f"u{width(dtype) // 8}").view(NUMPY[dtype])


def accumulator(dtype):
    return "f32" if dtype in NARROW else dtype


# --- rounding ---------------------------------------------------------------------------------------


class Narrow:
    """Rounding to a narrow float by looking for the nearest of all its values."""

    def __init__(self, dtype):
        sign = 1 << (width(dtype) - 1)
        values = from_bits(dtype, range(sign)).astype(np.float64)
        finite = int(np.isfinite(values).sum())
        assert np.isfinite(values[:finite]).all()
        self.sign = sign
        self.nan = NAN_BITS[dtype]
        # One value more than there are: what the next pattern would be worth if it were finite.
        # A number that rounds to it gets that pattern, which is infinity (or NaN in e4m3fn).
        self.values = list(values[:finite]) + [2 * values[finite - 1] - values[finite - 2]]

    def bits(self, x):
        if math.isnan(x):
            return self.nan
        sign = self.sign if math.copysign(1.0, x) < 0 else 0
        x = abs(x)
        above = bisect_left(self.values, x)
        if above == 0:
            return sign
        if above == len(self.values):
            return sign | (above - 1)
        low, high = self.values[above - 1], self.values[above]
        middle = (low + high) / 2  # exact in float64
        if x < middle or (x == middle and (above - 1) % 2 == 0):
            return sign | (above - 1)
        return sign | above


NARROWERS = {dtype: Narrow(dtype) for dtype in NARROW}


def check_narrowers():
    """ml_dtypes and numpy round from f32 once, so there they must agree with the search."""
    random = Random(7)
    bits = [random.word() >> 32 for _ in range(4000)] + [x << 16 for x in range(0, 2**16, 7)]
    singles = from_bits("f32", bits)
    for dtype in NARROW:
        theirs = singles.astype(NUMPY[dtype])
        ours = rounded(dtype, singles)
        same = np.array(bits_of(theirs)) == np.array(bits_of(ours))
        assert (same | np.isnan(theirs.astype(np.float64)) & np.isnan(ours.astype(np.float64))).all(), dtype


def rounded(dtype, array):
    """float64 values rounded once to a float dtype."""
    array = np.asarray(array, dtype=np.float64)
    if dtype in NARROW:
        return from_bits(dtype, [NARROWERS[dtype].bits(float(x)) for x in array])
    return array.astype(NUMPY[dtype])


def round_fraction(value, dtype):
    """A nonzero Fraction rounded to nearest even in f32 or f64, as a Python float."""
    precision, smallest, largest = {"f32": (24, -126, 127), "f64": (53, -1022, 1023)}[dtype]
    sign, value = (-1.0, -value) if value < 0 else (1.0, value)
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    if Fraction(2) ** exponent > value:
        exponent -= 1
    unit = max(exponent, smallest) - precision + 1
    count = round(value / Fraction(2) ** unit)  # Python rounds halves to even
    if count * Fraction(2) ** unit >= Fraction(2) ** (largest + 1):
        return sign * math.inf
    return sign * math.ldexp(count, unit)


# --- seeded values ----------------------------------------------------------------------------------


class Random:
    """SplitMix64: the same numbers with every version of numpy."""

    def __init__(self, seed):
        self.state = seed

    def word(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) % 2**64
        z = self.state
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
        return z ^ (z >> 31)

    def uniform(self, low, high):
        return low + (high - low) * (self.word() >> 11) / 2**53

    def bits(self, dtype):
        return self.word() % 2 ** width(dtype)


def seeded(*names):
    return Random(int.from_bytes("/".join(names).encode()[-8:], "little"))


def random_values(dtype, random, count):
    """Half of them any bit pattern, half of ordinary size."""
    if dtype == "bool":
        return from_bits("bool", [random.word() % 2 for _ in range(count)])
    wild = [random.bits(dtype) for _ in range(count // 2)]
    if dtype in FLOATS:
        tame = bits_of(rounded(dtype, [random.uniform(-4, 4) for _ in range(count - len(wild))]))
    else:
        tame = [random.word() % 16 for _ in range(count - len(wild))]
        tame = [(x - 8 if dtype in SIGNED else x) % 2 ** width(dtype) for x in tame]
    result = [x for pair in zip(wild, tame) for x in pair] + tame[len(wild) :]
    return from_bits(dtype, result)


def unique(dtype, bits):
    return from_bits(dtype, list(dict.fromkeys(bits)))


def special_bits(dtype):
    """Bits of: infinity or what stands for it, the largest finite value, smallest normal, largest and
    smallest subnormal."""
    mantissa = {"f8e4m3": 3, "f8e5m2": 2, "f16": 10, "bf16": 7, "f32": 23, "f64": 52}[dtype]
    normal = 1 << mantissa
    if dtype == "f8e4m3":
        return [0x7E, 0x7E, normal, normal - 1, 1]
    infinity = (1 << (width(dtype) - 1)) - normal
    return [infinity, infinity - 1, normal, normal - 1, 1]


def edges(dtype):
    """Edge values for ops of one operand and casts."""
    if dtype == "bool":
        return from_bits("bool", [0, 1])
    if dtype in INTS:
        top = 2 ** width(dtype)
        values = [0, 1, 2, 3, 5, 7, 10, 16, 100, 127, 128, 255, top // 2, top // 2 - 1, top // 2 + 1]
        values += [-v for v in values]
        for k in range(8, width(dtype), 8):
            values += [2**k, 2**k - 1, 2 ** (k - 1), -(2**k), 2**k + 1]
        if width(dtype) == 64:
            # Ties, and values beside ties, of rounding to f32 and f64.
            for base in (2**24, 2**53, 2**60, 2**63):
                for shift in (24, 25, 37, 53, 54):
                    ulp = max(base >> (shift - 1), 1)
                    values += [base + ulp // 2, base + ulp // 2 + 1, base + ulp // 2 - 1]
                    values += [base + ulp + ulp // 2, base + ulp + ulp // 2 + 1]
        return unique(dtype, [v % top for v in values])
    if width(dtype) == 8:
        return from_bits(dtype, list(range(256)))
    sign = 1 << (width(dtype) - 1)
    bits = [NAN_BITS[dtype]]
    for x in special_bits(dtype):
        bits += [x, x | sign]
    tame = [0, 0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4.5, 10, 0.1, 1 / 3, math.pi, math.pi / 2, math.e]
    tame += [0.49999997, 0.75, 0.99, 1.01, 20.5, 88.7, 89.5, 104.5, 127, 127.5, 128, 128.5, 200, 255.5]
    tame += [256, 355, 710, 745, 1e-3, 1e-8, 65504, 65520, 1e5, 1e6, 2.0**23 + 0.5, 2.0**24, 2.0**31]
    tame += [2.0**32, 2.0**52 + 0.5, 2.0**53, 2.0**63, 2.0**64, 1e22, 1e30, 464, 464.5, 61440, 3.4e38]
    for x in tame:
        bits += bits_of(rounded(dtype, [x, -x]))
    for x in (1.0, 0.5, 2.0, 128.0, 2.0**15, 2.0**31, 2.0**63):
        (at,) = bits_of(rounded(dtype, [x]))
        bits += [at - 1, at + 1, (at - 1) | sign]
    return unique(dtype, bits)


def unary_operands(dtype):
    random = seeded("unary", dtype)
    parts = [edges(dtype)]
    if dtype in FLOATS and width(dtype) > 8:
        parts.append(random_values(dtype, random, 64))
        parts.append(rounded(dtype, [random.uniform(-1, 1) for _ in range(32)]))
        parts.append(rounded(dtype, [random.uniform(-100, 100) for _ in range(16)]))
    elif dtype in INTS:
        parts.append(random_values(dtype, random, 32))
    return [np.concatenate(parts)]


def binary_edges(dtype):
    if dtype == "bool":
        return from_bits("bool", [0, 1])
    if dtype in INTS:
        top = 2 ** width(dtype)
        values = [0, 1, 2, 3, 7, 10, top // 2, top // 2 - 1, top // 2 + 1, top - 1, top - 2, top - 3]
        return unique(dtype, values)
    sign = 1 << (width(dtype) - 1)
    infinity, largest, normal, _, smallest = special_bits(dtype)
    values = bits_of(rounded(dtype, [0, -0.0, 1, -1, 0.5, -1.5, 2, 3, -3, math.pi]))
    values += [NAN_BITS[dtype], infinity, infinity | sign, largest, largest | sign]
    values += [smallest, smallest | sign, normal]
    return unique(dtype, values)


def cross(*arrays):
    grids = np.meshgrid(*[np.arange(len(a)) for a in arrays], indexing="ij")
    return [a[g.ravel()] for a, g in zip(arrays, grids)]


def joined(first, second):
    return [np.concatenate(pair) for pair in zip(first, second)]


def binary_operands(dtype):
    random = seeded("binary", dtype)
    pairs = cross(binary_edges(dtype), binary_edges(dtype))
    count = {"bool": 0}.get(dtype, 64)
    return joined(pairs, [random_values(dtype, random, count) for _ in range(2)])


def shift_operands(dtype):
    random = seeded("shift", dtype)
    bits = width(dtype)
    amounts = [a % 2**bits for a in (0, 1, 2, bits // 2, bits - 1, bits, bits + 1, 2 * bits, -1, 2 ** (bits - 1))]
    pairs = cross(binary_edges(dtype), unique(dtype, amounts))
    more = from_bits(dtype, [random.word() % bits for _ in range(48)])
    return joined(pairs, [random_values(dtype, random, 48), more])


def int_pow_operands(dtype):
    bits = width(dtype)
    exponents = [0, 1, 2, 3, 5, 7, bits - 1, bits, -1, -2, -3, 2 ** (bits - 1), 2 ** (bits - 1) - 1]
    return cross(edges(dtype)[:24], unique(dtype, [e % 2**bits for e in exponents]))


def ternary_operands(dtype):
    random = seeded("ternary", dtype)
    few = binary_edges(dtype)
    if dtype in FLOATS:
        # -0, 1, -1.5, 3, NaN, infinity, largest, -largest, smallest subnormal
        pick = [b for b in bits_of(few) if b not in bits_of(rounded(dtype, [0, -1, 0.5, 2, -3, math.pi]))]
        few = from_bits(dtype, pick[:9])
    else:
        few = few[np.arange(0, len(few), 2)]
    triples = cross(few, few, few)
    a, b, c = (random_values(dtype, random, 96) for _ in range(3))
    if dtype in FLOATS:
        # Near cancellation, where rounding the product first shows.
        wide = a.astype(np.float64) * b.astype(np.float64)
        cancel = rounded(dtype, -wide)
        c = np.where(np.arange(len(c)) % 3 == 0, cancel.view(f"u{width(dtype) // 8}"), c.view(f"u{width(dtype) // 8}"))
        c = c.view(NUMPY[dtype])
    return joined(triples, [a, b, c])


def select_operands(dtype):
    then, otherwise = binary_operands(dtype)
    condition = np.arange(len(then)) % 3 != 1
    return [condition, then, otherwise]


def threefry_operands(_):
    random = seeded("threefry")
    keys = [0, 2**64 - 1, 0x03707344_13198A2E] + [random.word() for _ in range(29)]
    counters = [0, 2**64 - 1, 0x85A308D3_243F6A88] + [random.word() for _ in range(13)] + list(range(16))
    return [from_bits("u64", keys), from_bits("u64", counters)]


# --- definitions ------------------------------------------------------------------------------------
#
# Each takes the dtype and numpy arrays of it and gives the array of results. Integer definitions work
# on Python ints; `wrapped` brings them back.


def ints(array):
    return [int(x) for x in array]


def wrapped(dtype, values):
    return from_bits(dtype, [v % 2 ** width(dtype) for v in values])


def on_ints(function):
    return lambda dtype, *operands: wrapped(dtype, [function(*xs) for xs in zip(*map(ints, operands))])


def on_bits(function):
    """For the ops that look at the pattern; gets the width as well."""

    def result(dtype, operand):
        return wrapped(dtype, [function(x, width(dtype)) for x in bits_of(operand)])

    return result


def computed(function):
    """An exactly defined float op: in f64 as itself, in f32 for everything narrower, then rounded."""

    def result(dtype, *operands):
        if dtype == "f64":
            return function(*operands)
        wide = function(*[x.astype(np.float32) for x in operands])
        assert wide.dtype in (np.float32, np.bool_), wide.dtype
        return wide if wide.dtype == np.bool_ else rounded(dtype, wide)

    return result


def precise(function):
    """A transcendental float op: in more precision than the result has, then rounded."""

    def result(dtype, *operands):
        wide = np.longdouble if dtype == "f64" else np.float64
        values = function(*[x.astype(wide) for x in operands])
        return values.astype(np.float64) if dtype == "f64" else rounded(dtype, values)

    return result


def either(number, real):
    """One definition for integers (and bool), one for floats."""
    return lambda dtype, *operands: (real if dtype in FLOATS else number)(dtype, *operands)


def unchanged(_, operand):
    return operand


def truncated_quotient(a, b):
    if b == 0:
        return 0
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


def integer_power(a, b):
    if b >= 0:
        return pow(a, b, 2**64)
    return {1: 1, -1: 1 if b % 2 == 0 else -1}.get(a, 0)


def shift_left(dtype, a, b):
    bits = width(dtype)
    return wrapped(dtype, [x << n if 0 <= n < bits else 0 for x, n in zip(ints(a), ints(b))])


def shift_right(dtype, a, b):
    bits = width(dtype)
    return wrapped(dtype, [x >> (n if 0 <= n < bits else bits) for x, n in zip(ints(a), ints(b))])


def leading_zeros(x, bits):
    return bits - x.bit_length()


def trailing_zeros(x, bits):
    return bits if x == 0 else (x & -x).bit_length() - 1


def float_sign(x):
    return np.where(x == 0, x, np.sign(x))


def picks(better):
    """min and max of floats, keeping the bits of the one that is picked."""

    def result(dtype, a, b):
        x, y = a.astype(np.float64), b.astype(np.float64)
        first = better(x, y) | np.isnan(x)
        raw = f"u{width(dtype) // 8}"
        return np.where(first, a.view(raw), b.view(raw)).view(NUMPY[dtype])

    return result


def compares(function):
    def result(dtype, a, b):
        if dtype in NARROW:
            a, b = a.astype(np.float64), b.astype(np.float64)
        return function(a, b)

    return result


def fused(dtype, a, b, c):
    if dtype in NARROW:
        return rounded(dtype, fused("f32", *[x.astype(np.float32) for x in (a, b, c)]))
    results = []
    for x, y, z in zip(a, b, c):
        x, y, z = float(x), float(y), float(z)
        if not (math.isfinite(x) and math.isfinite(y) and math.isfinite(z)):
            if math.isfinite(x) and math.isfinite(y):
                results.append(z)
            else:
                results.append(x * y + z if x * y != 0 or math.isnan(x * y) else z)
            continue
        exact = Fraction(x) * Fraction(y) + Fraction(z)
        if exact != 0:
            results.append(round_fraction(exact, dtype))
        elif x == 0 or y == 0:
            results.append(x * y + z)  # a sum of signed zeros
        else:
            results.append(0.0)  # exact cancellation
    return np.array(results, dtype=NUMPY[dtype])


def select(dtype, condition, then, otherwise):
    raw = f"u{width(dtype) // 8}"
    return np.where(condition, then.view(raw), otherwise.view(raw)).view(NUMPY[dtype])


def threefry(_, keys, counters):
    mask = 2**32 - 1
    results = []
    for key, counter in zip(ints(keys), ints(counters)):
        ks = [key & mask, key >> 32]
        ks.append(0x1BD11BDA ^ ks[0] ^ ks[1])
        x0, x1 = ((counter & mask) + ks[0]) & mask, ((counter >> 32) + ks[1]) & mask
        for group, rotations in enumerate([(13, 15, 26, 6), (17, 29, 16, 24)] * 2 + [(13, 15, 26, 6)]):
            for rotation in rotations:
                x0 = (x0 + x1) & mask
                x1 = ((x1 << rotation | x1 >> (32 - rotation)) & mask) ^ x0
            x0 = (x0 + ks[(group + 1) % 3]) & mask
            x1 = (x1 + ks[(group + 2) % 3] + group + 1) & mask
        results.append(x0 | x1 << 32)
    return from_bits("u64", results)


# The error function is not in numpy: its Taylor series, with digits enough to survive the cancellation
# of terms up to exp(28 * 28), beyond which erfc is 0 in every dtype.
DIGITS = 720
getcontext().prec = DIGITS


def decimal_pi():
    with localcontext() as context:
        context.prec = DIGITS + 10
        # Machin: pi / 4 = 4 atan(1/5) - atan(1/239)
        def arctan_of_reciprocal(n):
            term = total = Decimal(1) / n
            k = 1
            while abs(term) > Decimal(10) ** -(DIGITS + 8):
                term = -term / (n * n)
                k += 2
                total += term / k
            return total

        return 4 * (4 * arctan_of_reciprocal(5) - arctan_of_reciprocal(239))


PI = decimal_pi()
ERFS = {}


def decimal_erf(x):
    x = abs(x)
    if x not in ERFS:
        size = float(x)
        with localcontext() as context:
            # exp(x^2) of cancellation, exp(-x^2) of result in erfc, and 40 digits of that.
            context.prec = min(DIGITS, int(2 * size * size / math.log(10)) + 40)
            z = Decimal(size)
            square = z * z
            term = total = z
            n = 0
            while term != 0 and abs(term) > abs(total).scaleb(-context.prec):
                n += 1
                term = -term * square / n
                total += term / (2 * n + 1)
            ERFS[x] = 2 * total / PI.sqrt()
    return ERFS[x]


def erf(x):
    def one(v):
        v = float(v)
        if math.isnan(v) or v == 0:
            return v
        if abs(v) > 28:
            return math.copysign(1.0, v)
        return math.copysign(float(decimal_erf(v)), v)

    return np.array([one(v) for v in x], dtype=np.float64)


def erfc(x):
    def one(v):
        v = float(v)
        if math.isnan(v):
            return v
        if abs(v) > 28:
            return 0.0 if v > 0 else 2.0
        with localcontext() as context:
            context.prec = DIGITS
            value = decimal_erf(v)
            return float(1 - value if v > 0 else 1 + value)

    return np.array([one(v) for v in x], dtype=np.float64)


EXACT = 0


class Definition:
    """An op's meaning and how far from it a C library may be, in units in the last place of f32 and f64.
    In narrow floats such an error can move a result to the neighbouring value."""

    def __init__(self, function, ulp=(EXACT, EXACT), operands=None):
        self.function, self.ulps, self.operands = function, ulp, operands

    def ulp(self, dtype):
        if dtype == "f64":
            return self.ulps[1]
        return self.ulps[0] if dtype == "f32" else min(self.ulps[0], 1)


D = Definition
DEFINITIONS = {
    "copy": D(unchanged),
    "neg": D(either(on_ints(lambda x: -x), computed(np.negative))),
    "abs": D(either(on_ints(abs), computed(np.abs))),
    "sign": D(either(on_ints(lambda x: (x > 0) - (x < 0)), computed(float_sign))),
    "not": D(lambda dtype, x: np.logical_not(x) if dtype == "bool" else np.invert(x)),
    "recip": D(computed(lambda x: x.dtype.type(1) / x)),
    "sqrt": D(computed(np.sqrt)),
    "rsqrt": D(computed(lambda x: x.dtype.type(1) / np.sqrt(x))),
    "cbrt": D(precise(np.cbrt), (2, 4)),
    "exp": D(precise(np.exp), (1, 1)),
    "exp2": D(precise(np.exp2), (1, 1)),
    "expm1": D(precise(np.expm1), (2, 2)),
    "log": D(precise(np.log), (1, 1)),
    "log2": D(precise(np.log2), (2, 2)),
    "log10": D(precise(np.log10), (2, 2)),
    "log1p": D(precise(np.log1p), (2, 2)),
    "sin": D(precise(np.sin), (1, 1)),
    "cos": D(precise(np.cos), (1, 1)),
    "tan": D(precise(np.tan), (2, 2)),
    "asin": D(precise(np.arcsin), (2, 2)),
    "acos": D(precise(np.arccos), (2, 2)),
    "atan": D(precise(np.arctan), (2, 2)),
    "sinh": D(precise(np.sinh), (3, 3)),
    "cosh": D(precise(np.cosh), (3, 3)),
    "tanh": D(precise(np.tanh), (3, 3)),
    "asinh": D(precise(np.arcsinh), (3, 3)),
    "acosh": D(precise(np.arccosh), (3, 3)),
    "atanh": D(precise(np.arctanh), (3, 3)),
    "erf": D(precise(erf), (2, 2)),
    "erfc": D(precise(erfc), (4, 5)),
    "floor": D(either(unchanged, computed(np.floor))),
    "ceil": D(either(unchanged, computed(np.ceil))),
    "round": D(either(unchanged, computed(np.rint))),
    "trunc": D(either(unchanged, computed(np.trunc))),
    "is_nan": D(computed(np.isnan)),
    "is_inf": D(computed(np.isinf)),
    "is_finite": D(computed(np.isfinite)),
    "popcount": D(on_bits(lambda x, _: x.bit_count())),
    "clz": D(on_bits(leading_zeros)),
    "ctz": D(on_bits(trailing_zeros)),
    "add": D(either(lambda _, a, b: a + b, computed(np.add))),
    "sub": D(either(lambda _, a, b: a - b, computed(np.subtract))),
    "mul": D(either(lambda _, a, b: a * b, computed(np.multiply))),
    "div": D(either(on_ints(truncated_quotient), computed(np.divide))),
    "floor_div": D(either(on_ints(lambda a, b: a // b if b else 0), computed(lambda a, b: np.floor(a / b)))),
    "rem": D(either(on_ints(lambda a, b: a - b * truncated_quotient(a, b) if b else 0), computed(np.fmod))),
    "mod": D(either(on_ints(lambda a, b: a % b if b else 0), computed(np.remainder))),
    "pow": D(
        either(on_ints(integer_power), precise(np.power)),
        (1, 1),
        lambda dtype: int_pow_operands(dtype) if dtype in INTS else binary_operands(dtype),
    ),
    "atan2": D(precise(np.arctan2), (2, 2)),
    "hypot": D(precise(np.hypot), (1, 1)),
    "copysign": D(computed(np.copysign)),
    "min": D(either(lambda _, a, b: np.minimum(a, b), picks(np.less))),
    "max": D(either(lambda _, a, b: np.maximum(a, b), picks(np.greater))),
    "eq": D(compares(np.equal)),
    "ne": D(compares(np.not_equal)),
    "lt": D(compares(np.less)),
    "le": D(compares(np.less_equal)),
    "gt": D(compares(np.greater)),
    "ge": D(compares(np.greater_equal)),
    "and": D(lambda _, a, b: np.bitwise_and(a, b)),
    "or": D(lambda _, a, b: np.bitwise_or(a, b)),
    "xor": D(lambda _, a, b: np.bitwise_xor(a, b)),
    "shl": D(shift_left, operands=shift_operands),
    "shr": D(shift_right, operands=shift_operands),
    "threefry": D(threefry, operands=threefry_operands),
    "select": D(select, operands=select_operands),
    "mul_add": D(either(on_ints(lambda a, b, c: a * b + c), fused)),
}
del D

OPERANDS = {1: unary_operands, 2: binary_operands, 3: ternary_operands}


# --- conversions ------------------------------------------------------------------------------------


def cast(array, source, target):
    if target == "bool":
        return array.astype(np.float64) != 0 if source in FLOATS else array != 0
    if source in FLOATS:
        wide = [float(x) for x in array]
        if target in FLOATS:
            return rounded(target, wide)
        low = -(2 ** (width(target) - 1)) if target in SIGNED else 0
        high = low + 2 ** width(target) - 1

        def whole(x):
            if math.isnan(x):
                return 0
            return (high if x > 0 else low) if math.isinf(x) else min(max(math.trunc(x), low), high)

        return wrapped(target, [whole(x) for x in wide])
    exact = ints(array)
    if target in INTS:
        return wrapped(target, exact)
    through = "f64" if target == "f64" else "f32"
    return rounded(target, [round_fraction(Fraction(x), through) if x else 0.0 for x in exact])


def cast_operands(source):
    """Edges, and around each value where f64 must not be rounded to f32 on the way to a narrow float."""
    parts = unary_operands(source)
    if source == "f64":
        halves = []
        for x in (1.0, 1 + 2.0**-10, 1 + 2.0**-7, 1.125, 1.25, 448.0, 65504.0, 2.0**-14, 2.0**-24):
            for bit in (4, 3, 8, 11, 25, 24):
                middle = x + math.ulp(x) * 2.0 ** (52 - bit)
                halves += [middle, middle * (1 + 2.0**-40), middle * (1 - 2.0**-40), -middle]
        parts = [np.concatenate([parts[0], np.array(halves)])]
    return parts


# --- whole arrays -----------------------------------------------------------------------------------

FOLDS = {
    "sum": lambda a, x: a + x,
    "prod": lambda a, x: a * x,
    "max": lambda a, x: a if a > x or a != a else x,
    "min": lambda a, x: a if a < x or a != a else x,
    "any": lambda a, x: a | x,
    "all": lambda a, x: a & x,
}


def fold_dtypes(name):
    if name in ("any", "all"):
        return ["bool"]
    return INTS + FLOATS if name in ("sum", "prod") else ALL


def identity(name, dtype):
    kind = NUMPY[dtype]
    if name in ("max", "min"):
        largest = name == "min"
        if dtype == "bool":
            return kind(largest)
        if dtype in FLOATS:
            return kind(math.inf if largest else -math.inf)
        return np.iinfo(kind).max if largest else np.iinfo(kind).min
    return kind({"sum": 0, "prod": 1, "any": False, "all": True}[name])


def scan(name, dtype, array):
    """Every prefix's fold, the empty one first, each rounded from the accumulator to the dtype."""
    acc = accumulator(dtype)
    kind = NUMPY[acc]
    value = kind(identity(name, acc))
    values = [value]
    for x in array.astype(kind):
        value = kind(FOLDS[name](value, x))
        values.append(value)
    values = np.array(values, dtype=kind)
    return rounded(dtype, values) if dtype in FLOATS else values


def vectors(dtype):
    """Arrays to be reduced, scanned and sorted: empty, of size 1, with ties, with edge values, random."""
    random = seeded("vector", dtype)
    if dtype == "bool":
        lists = [[], [0], [1], [0, 0, 0], [1, 1, 1], [0, 1, 0, 1], [1, 0, 1]]
        return [from_bits("bool", bits) for bits in lists]
    if dtype in INTS:
        bits = width(dtype)
        lists = [[], [0], [2 ** (bits - 1)], [2**bits - 1], [3, 1, 3, 1, 2], [5, 5, 5]]
        lists += [[2 ** (bits - 1) - 1, 1], [2**bits - 1, 2**bits - 2, 2 ** (bits - 1), 0]]
        lists += [bits_of(random_values(dtype, random, 33))]
        return [from_bits(dtype, x) for x in lists]
    nan, infinity = math.nan, math.nan if dtype == "f8e4m3" else math.inf
    lists = [[], [0.0], [-0.0], [1.5], [nan], [infinity], [1.0, 3.0, 3.0, -2.0, -2.0], [0.0, -0.0, 0.0]]
    lists += [[1.0, nan, 2.0, nan], [infinity, -infinity], [infinity, 1.0, -3.0], [2.0, -infinity, 0.5]]
    lists += [[random.uniform(-4, 4) for _ in range(33)]]
    lists += [[random.uniform(0.5, 1.5) for _ in range(130)]]
    return [rounded(dtype, x) for x in lists]


def sorted_order(array):
    return np.argsort(array.astype(np.float64) if array.dtype.kind in "Vf" else array, kind="stable")


def extreme(array, function):
    return function(array.astype(np.float64) if array.dtype.kind in "Vf" else array)


# --- files ------------------------------------------------------------------------------------------


class File:
    def __init__(self):
        self.lines = [f"# Reference values, format {FORMAT}. Written by generate.py; do not edit."]
        self.sets = {}

    @staticmethod
    def hex(dtype, array, one_nan):
        assert array.dtype == np.dtype(NUMPY[dtype]), (array.dtype, dtype)
        bits = bits_of(array)
        if one_nan and dtype in FLOATS:
            nans = np.isnan(array.astype(np.float64))
            bits = [NAN_BITS[dtype] if nan else x for x, nan in zip(bits, nans)]
        digits = width(dtype) // 4
        return "".join(f"{x:0{digits}x}" for x in bits) or "-"

    def set(self, dtype, array):
        key = (dtype, self.hex(dtype, array, one_nan=False))
        if key not in self.sets:
            self.sets[key] = f"s{len(self.sets)}"
            self.lines.append(f"set {self.sets[key]} {dtype} {key[1]}")
        return self.sets[key]

    def row(self, what, dtype, result, ulp, operands, expected):
        names = []
        for index, operand in enumerate(operands):
            of = "bool" if what == "select" and index == 0 else dtype
            names.append(self.set(of, operand))
        text = self.hex(result, expected, one_nan=True)
        self.lines.append(f"{what} {dtype} {result} {ulp} {' '.join(names)} = {text}")

    def text(self):
        return "\n".join(self.lines) + "\n"


def op_table():
    """(name, arity, class, output) of every op, from the table itself."""
    row = re.compile(r'^    \w+ "(\w+)" \((\d) (\w+) (\w+) ')
    rows = [match.groups() for match in map(row.match, TABLE.read_text().splitlines()) if match]
    names = [row[0] for row in rows]
    missing = [name for name in names if name not in DEFINITIONS]
    gone = [name for name in DEFINITIONS if name not in names]
    if missing or gone or not names:
        sys.exit(f"generate.py has no definition of {missing}, or defines ops the table lacks: {gone}")
    return rows


def reductions():
    names = re.findall(r'ReduceOp::\w+ => "(\w+)"', TABLE.read_text())
    if sorted(names) != sorted(FOLDS):
        sys.exit(f"generate.py folds {sorted(FOLDS)}, the table {sorted(names)}")
    return names


def generate():
    files = {name: File() for name in ("bool", "int", "narrow", "f32", "f64", "convert", "array")}

    def file_of(dtype):
        if dtype in INTS:
            return files["int"]
        return files["narrow" if dtype in NARROW else dtype]

    for name, arity, kind, output in op_table():
        definition = DEFINITIONS[name]
        for dtype in CLASSES[kind]:
            operands = (definition.operands or OPERANDS[int(arity)])(dtype)
            assert len(operands) == int(arity), name
            expected = definition.function(dtype, *operands)
            result = "bool" if output == "Bool" else dtype
            ulp = definition.ulp(dtype) if dtype in FLOATS else EXACT
            file_of(dtype).row(name, dtype, result, ulp, operands, expected)

    for source in ALL:
        operands = cast_operands(source)
        for target in ALL:
            files["convert"].row("cast", source, target, EXACT, operands, cast(operands[0], source, target))
        for target in ALL:
            if "bool" not in (source, target) and width(source) == width(target):
                same = operands[0].view(NUMPY[target])
                files["convert"].row("bitcast", source, target, EXACT, operands, same)

    array = files["array"]
    for dtype in ALL:
        for vector in vectors(dtype):
            for name in reductions():
                if dtype in fold_dtypes(name):
                    prefixes = scan(name, dtype, vector)
                    array.row(f"reduce.{name}", dtype, dtype, EXACT, [vector], prefixes[-1:])
                    if len(vector) < 64:
                        array.row(f"scan.{name}", dtype, dtype, EXACT, [vector], prefixes[1:])
            order = sorted_order(vector)
            array.row("argsort", dtype, "i64", EXACT, [vector], order.astype(np.int64))
            array.row("sort", dtype, dtype, EXACT, [vector], vector[order])
            if len(vector):
                for name, function in (("argmax", np.argmax), ("argmin", np.argmin)):
                    index = np.array([extreme(vector, function)], dtype=np.int64)
                    array.row(name, dtype, "i64", EXACT, [vector], index)
    return {f"{name}.txt": file.text() for name, file in files.items()}


# --- checking ---------------------------------------------------------------------------------------


def place(dtype, bits):
    """A float's position among all values of its dtype, from the most negative to the largest."""
    sign = 1 << (width(dtype) - 1)
    return -1 - (bits - sign) if bits & sign else bits


def close(old, new):
    """Whether two rows of an op that depends on the C library agree within what they allow."""
    old_head, _, old_hex = old.rpartition(" = ")
    new_head, _, new_hex = new.rpartition(" = ")
    if old_head != new_head or len(old_hex) != len(new_hex):
        return False
    _, _, dtype, ulp, *_ = new_head.split(" ")
    if int(ulp) == EXACT:
        return False
    digits = width(dtype) // 4
    for at in range(0, len(new_hex), digits):
        a, b = int(old_hex[at : at + digits], 16), int(new_hex[at : at + digits], 16)
        if a != b and abs(place(dtype, a) - place(dtype, b)) > int(ulp):
            return False
    return True


def check(files):
    failures = []
    for name, text in files.items():
        path = HERE / name
        if not path.exists():
            failures.append(f"{name} is missing")
            continue
        old, new = path.read_text().splitlines(), text.splitlines()
        if len(old) != len(new):
            failures.append(f"{name} has {len(old)} lines, not {len(new)}")
        for number, (a, b) in enumerate(zip(old, new), 1):
            if a != b and not close(a, b):
                failures.append(f"{name}:{number}: expected `{b[:60]}…`, found `{a[:60]}…`")
                break
    extra = {path.name for path in HERE.glob("*.txt")} - set(files)
    failures += [f"{name} is not generated" for name in sorted(extra)]
    if failures:
        sys.exit("\n".join(failures + ["run generate.py without --check to write the files again"]))


def main():
    arguments = sys.argv[1:]
    if arguments not in ([], ["--check"]):
        sys.exit(__doc__)
    check_narrowers()
    files = generate()
    if arguments:
        check(files)
    else:
        for name, text in files.items():
            (HERE / name).write_text(text)
    rows = sum(line.count(" = ") for text in files.values() for line in text.splitlines())
    size = sum(map(len, files.values()))
    print(f"{rows} rows, {size / 1e6:.2f} MB, numpy {np.__version__}, ml_dtypes {ml_dtypes.__version__}")


if __name__ == "__main__":
    main()
