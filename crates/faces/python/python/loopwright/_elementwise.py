"""Elementwise functions: one row each.

A row has the function's name, the op of the table that it is, the dtypes that it takes, and its
documentation with an example. Complex arrays go to the function of the same name in `_complex`.
"""

from __future__ import annotations

from collections.abc import Callable

from . import _complex, _core, _dtypes
from ._core import Array, DType
from ._dtypes import BITS, FLOATING, INEXACT, INTEGRAL, NUMERIC, REAL
from ._operands import Scalar, as_dtype, expect, is_complex, together

Unary = Callable[[Array], Array]
Binary = Callable[[Array | Scalar, Array | Scalar], Array]
Operand = Array | Scalar

_BOOL = _dtypes.BOOL
_ANY = _dtypes.ALL


def _document(function: Callable, name: str, doc: str, example: str, result: str) -> None:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"{doc}\n\n    >>> import loopwright as lw\n    >>> {example}\n    {result}\n    "
    )


def _unary(
    name: str, op: str, allowed: frozenset[DType], doc: str, example: str, result: str
) -> Unary:
    of_complex = getattr(_complex, name, None)

    def function(x: Operand, /) -> Array:
        if not isinstance(x, Array) and isinstance(x, Scalar):
            x = _core.asarray(x)
        x = expect(name, x, allowed)
        if of_complex is not None and is_complex(x):
            return of_complex(x)
        return _core.map(op, x)

    _document(function, name, doc, example, result)
    return function


def _binary(
    name: str, op: str, allowed: frozenset[DType], doc: str, example: str, result: str
) -> Binary:
    of_complex = getattr(_complex, name, None)

    def function(x1: Operand, x2: Operand, /) -> Array:
        a, b = together(name, x1, x2, allowed=allowed)
        if of_complex is not None and is_complex(a):
            return of_complex(a, b)
        return _core.map(op, a, b)

    _document(function, name, doc, example, result)
    return function


# One operand.
abs = _unary(
    "abs", "abs", NUMERIC, "The absolute value.",
    "lw.abs(lw.asarray([-1, 2])).tolist()", "[1, 2]",
)  # fmt: skip
acos = _unary(
    "acos", "acos", INEXACT, "The inverse cosine.",
    "lw.acos(lw.asarray([1.0])).tolist()", "[0.0]",
)  # fmt: skip
acosh = _unary(
    "acosh", "acosh", INEXACT, "The inverse hyperbolic cosine.",
    "lw.acosh(lw.asarray([1.0])).tolist()", "[0.0]",
)  # fmt: skip
asin = _unary(
    "asin", "asin", INEXACT, "The inverse sine.",
    "lw.asin(lw.asarray([0.0])).tolist()", "[0.0]",
)  # fmt: skip
asinh = _unary(
    "asinh", "asinh", INEXACT, "The inverse hyperbolic sine.",
    "lw.asinh(lw.asarray([0.0])).tolist()", "[0.0]",
)  # fmt: skip
atan = _unary(
    "atan", "atan", INEXACT, "The inverse tangent.",
    "lw.atan(lw.asarray([0.0])).tolist()", "[0.0]",
)  # fmt: skip
atanh = _unary(
    "atanh", "atanh", INEXACT, "The inverse hyperbolic tangent.",
    "lw.atanh(lw.asarray([0.0])).tolist()", "[0.0]",
)  # fmt: skip
bitwise_invert = _unary(
    "bitwise_invert", "not", BITS, "Every bit the other way; on bool, the negation.",
    "lw.bitwise_invert(lw.asarray([0, 5])).tolist()", "[-1, -6]",
)  # fmt: skip
ceil = _unary(
    "ceil", "ceil", REAL, "The smallest integer that is not below.",
    "lw.ceil(lw.asarray([1.2, -1.2])).tolist()", "[2.0, -1.0]",
)  # fmt: skip
cos = _unary(
    "cos", "cos", INEXACT, "The cosine.",
    "lw.cos(lw.asarray([0.0])).tolist()", "[1.0]",
)  # fmt: skip
cosh = _unary(
    "cosh", "cosh", INEXACT, "The hyperbolic cosine.",
    "lw.cosh(lw.asarray([0.0])).tolist()", "[1.0]",
)  # fmt: skip
exp = _unary(
    "exp", "exp", INEXACT, "e to the power of the elements.",
    "lw.exp(lw.asarray([0.0])).tolist()", "[1.0]",
)  # fmt: skip
expm1 = _unary(
    "expm1", "expm1", INEXACT, "`exp(x) - 1`, precise near 0.",
    "lw.expm1(lw.asarray([0.0])).tolist()", "[0.0]",
)  # fmt: skip
floor = _unary(
    "floor", "floor", REAL, "The largest integer that is not above.",
    "lw.floor(lw.asarray([1.2, -1.2])).tolist()", "[1.0, -2.0]",
)  # fmt: skip
log = _unary(
    "log", "log", INEXACT, "The natural logarithm.",
    "lw.log(lw.asarray([1.0])).tolist()", "[0.0]",
)  # fmt: skip
log1p = _unary(
    "log1p", "log1p", INEXACT, "`log(1 + x)`, precise near 0.",
    "lw.log1p(lw.asarray([0.0])).tolist()", "[0.0]",
)  # fmt: skip
log2 = _unary(
    "log2", "log2", INEXACT, "The logarithm to base 2.",
    "lw.log2(lw.asarray([8.0])).tolist()", "[3.0]",
)  # fmt: skip
log10 = _unary(
    "log10", "log10", INEXACT, "The logarithm to base 10.",
    "lw.log10(lw.asarray([100.0])).tolist()", "[2.0]",
)  # fmt: skip
logical_not = _unary(
    "logical_not", "not", _BOOL, "What is false.",
    "lw.logical_not(lw.asarray([True, False])).tolist()", "[False, True]",
)  # fmt: skip
negative = _unary(
    "negative", "neg", NUMERIC, "The elements with the other sign.",
    "lw.negative(lw.asarray([1, -2])).tolist()", "[-1, 2]",
)  # fmt: skip
reciprocal = _unary(
    "reciprocal", "recip", INEXACT, "1 divided by the elements.",
    "lw.reciprocal(lw.asarray([4.0])).tolist()", "[0.25]",
)  # fmt: skip
round = _unary(
    "round", "round", NUMERIC, "The nearest integer, of two the even one.",
    "lw.round(lw.asarray([0.5, 1.5, 2.6])).tolist()", "[0.0, 2.0, 3.0]",
)  # fmt: skip
_sign = _unary(
    "sign", "sign", NUMERIC, "-1, 0 or 1; of a complex number `z / abs(z)`.",
    "lw.sign(lw.asarray([-3, 0, 7])).tolist()", "[-1, 0, 1]",
)  # fmt: skip
sin = _unary(
    "sin", "sin", INEXACT, "The sine.",
    "lw.sin(lw.asarray([0.0])).tolist()", "[0.0]",
)  # fmt: skip
sinh = _unary(
    "sinh", "sinh", INEXACT, "The hyperbolic sine.",
    "lw.sinh(lw.asarray([0.0])).tolist()", "[0.0]",
)  # fmt: skip
sqrt = _unary(
    "sqrt", "sqrt", INEXACT, "The square root.",
    "lw.sqrt(lw.asarray([9.0])).tolist()", "[3.0]",
)  # fmt: skip
tan = _unary(
    "tan", "tan", INEXACT, "The tangent.",
    "lw.tan(lw.asarray([0.0])).tolist()", "[0.0]",
)  # fmt: skip
tanh = _unary(
    "tanh", "tanh", INEXACT, "The hyperbolic tangent.",
    "lw.tanh(lw.asarray([0.0])).tolist()", "[0.0]",
)  # fmt: skip
trunc = _unary(
    "trunc", "trunc", REAL, "The elements without their fraction.",
    "lw.trunc(lw.asarray([1.7, -1.7])).tolist()", "[1.0, -1.0]",
)  # fmt: skip

# Two operands.
add = _binary(
    "add", "add", NUMERIC, "The sum.",
    "lw.add(lw.asarray([1, 2]), 3).tolist()", "[4, 5]",
)  # fmt: skip
atan2 = _binary(
    "atan2", "atan2", FLOATING, "The angle of the points `(x2, x1)`.",
    "lw.atan2(lw.asarray([0.0]), lw.asarray([1.0])).tolist()", "[0.0]",
)  # fmt: skip
bitwise_and = _binary(
    "bitwise_and", "and", BITS, "The bits that both have.",
    "lw.bitwise_and(lw.asarray([6]), 3).tolist()", "[2]",
)  # fmt: skip
bitwise_left_shift = _binary(
    "bitwise_left_shift", "shl", INTEGRAL, "The bits moved up; amounts that are too large give 0.",
    "lw.bitwise_left_shift(lw.asarray([1]), 3).tolist()", "[8]",
)  # fmt: skip
bitwise_or = _binary(
    "bitwise_or", "or", BITS, "The bits that either has.",
    "lw.bitwise_or(lw.asarray([6]), 3).tolist()", "[7]",
)  # fmt: skip
bitwise_right_shift = _binary(
    "bitwise_right_shift", "shr", INTEGRAL, "The bits moved down, with the sign.",
    "lw.bitwise_right_shift(lw.asarray([-8]), 1).tolist()", "[-4]",
)  # fmt: skip
bitwise_xor = _binary(
    "bitwise_xor", "xor", BITS, "The bits that one of both has.",
    "lw.bitwise_xor(lw.asarray([6]), 3).tolist()", "[5]",
)  # fmt: skip
copysign = _binary(
    "copysign", "copysign", FLOATING, "The first with the sign of the second.",
    "lw.copysign(lw.asarray([2.0]), -0.0).tolist()", "[-2.0]",
)  # fmt: skip
divide = _binary(
    "divide", "div", INEXACT, "The quotient.",
    "lw.divide(lw.asarray([1.0]), 4).tolist()", "[0.25]",
)  # fmt: skip
equal = _binary(
    "equal", "eq", _ANY, "Whether they are equal.",
    "lw.equal(lw.asarray([1, 2]), 2).tolist()", "[False, True]",
)  # fmt: skip
greater = _binary(
    "greater", "gt", REAL, "Whether the first is larger.",
    "lw.greater(lw.asarray([1, 2]), 1).tolist()", "[False, True]",
)  # fmt: skip
greater_equal = _binary(
    "greater_equal", "ge", REAL, "Whether the first is larger or equal.",
    "lw.greater_equal(lw.asarray([0, 1]), 1).tolist()", "[False, True]",
)  # fmt: skip
hypot = _binary(
    "hypot", "hypot", FLOATING, "The length of the hypotenuse.",
    "lw.hypot(lw.asarray([3.0]), 4.0).tolist()", "[5.0]",
)  # fmt: skip
less = _binary(
    "less", "lt", REAL, "Whether the first is smaller.",
    "lw.less(lw.asarray([1, 2]), 2).tolist()", "[True, False]",
)  # fmt: skip
less_equal = _binary(
    "less_equal", "le", REAL, "Whether the first is smaller or equal.",
    "lw.less_equal(lw.asarray([1, 2]), 1).tolist()", "[True, False]",
)  # fmt: skip
logical_and = _binary(
    "logical_and", "and", _BOOL, "Whether both are true.",
    "lw.logical_and(lw.asarray([True, False]), True).tolist()", "[True, False]",
)  # fmt: skip
logical_or = _binary(
    "logical_or", "or", _BOOL, "Whether either is true.",
    "lw.logical_or(lw.asarray([True, False]), False).tolist()", "[True, False]",
)  # fmt: skip
logical_xor = _binary(
    "logical_xor", "xor", _BOOL, "Whether one of both is true.",
    "lw.logical_xor(lw.asarray([True, False]), True).tolist()", "[False, True]",
)  # fmt: skip
maximum = _binary(
    "maximum", "max", REAL, "The larger one; NaN if either is NaN.",
    "lw.maximum(lw.asarray([1, 5]), 3).tolist()", "[3, 5]",
)  # fmt: skip
minimum = _binary(
    "minimum", "min", REAL, "The smaller one; NaN if either is NaN.",
    "lw.minimum(lw.asarray([1, 5]), 3).tolist()", "[1, 3]",
)  # fmt: skip
multiply = _binary(
    "multiply", "mul", NUMERIC, "The product.",
    "lw.multiply(lw.asarray([1, 2]), 3).tolist()", "[3, 6]",
)  # fmt: skip
not_equal = _binary(
    "not_equal", "ne", _ANY, "Whether they differ.",
    "lw.not_equal(lw.asarray([1, 2]), 2).tolist()", "[True, False]",
)  # fmt: skip
pow = _binary(
    "pow", "pow", NUMERIC, "The first to the power of the second.",
    "lw.pow(lw.asarray([2, 3]), 2).tolist()", "[4, 9]",
)  # fmt: skip
remainder = _binary(
    "remainder", "mod", REAL, "What division leaves, with the sign of the second.",
    "lw.remainder(lw.asarray([-7, 7]), 3).tolist()", "[2, 1]",
)  # fmt: skip
subtract = _binary(
    "subtract", "sub", NUMERIC, "The difference.",
    "lw.subtract(lw.asarray([1, 2]), 3).tolist()", "[-2, -1]",
)  # fmt: skip


def _predicate(name: str, op: str, of_int: bool, doc: str, example: str, result: str) -> Unary:
    of_complex = getattr(_complex, name)

    def function(x: Array, /) -> Array:
        x = expect(name, x, NUMERIC)
        if is_complex(x):
            return of_complex(x)
        if x.dtype in INTEGRAL:
            return _core.full(x.shape, of_int, _dtypes.bool, x.device)
        return _core.map(op, x)

    _document(function, name, doc, example, result)
    return function


isfinite = _predicate(
    "isfinite", "is_finite", True, "Whether they are neither infinite nor NaN.",
    "lw.isfinite(lw.asarray([1.0, lw.inf, lw.nan])).tolist()", "[True, False, False]",
)  # fmt: skip
isinf = _predicate(
    "isinf", "is_inf", False, "Whether they are infinite.",
    "lw.isinf(lw.asarray([1.0, lw.inf, lw.nan])).tolist()", "[False, True, False]",
)  # fmt: skip
isnan = _predicate(
    "isnan", "is_nan", False, "Whether they are not a number.",
    "lw.isnan(lw.asarray([1.0, lw.inf, lw.nan])).tolist()", "[False, False, True]",
)  # fmt: skip


# Those that are made of several ops.
def clip(
    x: Array, /, min: Array | int | float | None = None, max: Array | int | float | None = None
) -> Array:
    """The elements, but not below `min` and not above `max`, in the dtype of `x`.

    >>> import loopwright as lw
    >>> lw.clip(lw.asarray([1, 5, 9]), 2, 6).tolist()
    [2, 5, 6]
    """
    x = expect("clip", x, REAL)
    for op, bound in (("max", min), ("min", max)):
        if bound is None:
            continue
        if isinstance(bound, Array):
            expect("clip", bound, REAL)
            if (bound.dtype in FLOATING) != (x.dtype in FLOATING):
                raise TypeError(f"clip: the bounds of {x.dtype} are not {bound.dtype}")
        elif isinstance(bound, bool) or not isinstance(bound, int | float):
            raise TypeError(f"clip: a bound is an array or a real number, not {bound!r}")
        elif isinstance(bound, float) and x.dtype in INTEGRAL:
            raise TypeError(f"clip: the bounds of {x.dtype} are integers, not {bound!r}")
        x = _core.map(op, x, as_dtype("clip", bound, x.dtype, x))
    return _core.copied(x) if min is None and max is None else x


def conj(x: Array, /) -> Array:
    """The conjugate: the imaginary part with the other sign.

    >>> import loopwright as lw
    >>> lw.conj(lw.asarray([1 + 2j])).tolist()
    [(1-2j)]
    """
    x = expect("conj", x, NUMERIC)
    return _complex.conj(x) if is_complex(x) else _core.copied(x)


def real(x: Array, /) -> Array:
    """The real part.

    >>> import loopwright as lw
    >>> lw.real(lw.asarray([1 + 2j])).tolist()
    [1.0]
    """
    x = expect("real", x, NUMERIC)
    return _core.real(x) if is_complex(x) else _core.copied(x)


def imag(x: Array, /) -> Array:
    """The imaginary part.

    >>> import loopwright as lw
    >>> lw.imag(lw.asarray([1 + 2j])).tolist()
    [2.0]
    """
    x = expect("imag", x, NUMERIC)
    return _core.imag(x) if is_complex(x) else _core.constant(x.shape, 0, x.dtype, x.device)


def positive(x: Array, /) -> Array:
    """The elements themselves.

    >>> import loopwright as lw
    >>> lw.positive(lw.asarray([-1, 2])).tolist()
    [-1, 2]
    """
    return _core.copied(expect("positive", x, NUMERIC))


def square(x: Array, /) -> Array:
    """The square.

    >>> import loopwright as lw
    >>> lw.square(lw.asarray([-3, 2])).tolist()
    [9, 4]
    """
    x = expect("square", x, NUMERIC)
    return _complex.square(x) if is_complex(x) else _core.map("mul", x, x)


def sign(x: Operand, /) -> Array:
    made = _sign(x)
    if made.dtype not in FLOATING:
        return made
    # The op leaves a negative zero as it is; by the standard it becomes a positive one.
    zero = _core.constant((), 0, made.dtype, made.device)
    return _core.where(made == zero, zero, made)


sign.__doc__ = _sign.__doc__


def signbit(x: Array, /) -> Array:
    """Whether the sign is negative, also that of a zero or NaN.

    >>> import loopwright as lw
    >>> lw.signbit(lw.asarray([-0.0, 0.0, -1.0])).tolist()
    [True, False, True]
    """
    x = expect("signbit", x, FLOATING)
    bits = _core.bitcast(x, _dtypes.SIGNED[_dtypes.width(x.dtype).bit_length() - 4])
    return _core.map("lt", bits, _core.constant((), 0, bits.dtype, x.device))


def floor_divide(x1: Operand, x2: Operand, /) -> Array:
    """The quotient, rounded down; `x1 - remainder(x1, x2)` is it times `x2`.

    >>> import loopwright as lw
    >>> lw.floor_divide(lw.asarray([-7, 7]), 2).tolist()
    [-4, 3]
    """
    a, b = together("floor_divide", x1, x2, allowed=REAL)
    return a // b


def logaddexp(x1: Operand, x2: Operand, /) -> Array:
    """`log(exp(x1) + exp(x2))` without overflow.

    >>> import loopwright as lw
    >>> lw.logaddexp(lw.asarray([1000.0]), 0.0).tolist()
    [1000.0]
    """
    a, b = together("logaddexp", x1, x2, allowed=FLOATING)
    largest = _core.map("max", a, b)
    # Two equal infinities have no difference, and their sum is they themselves.
    same = _core.map("eq", a, b)
    apart = _core.map("abs", _core.map("sub", a, b))
    apart = _core.where(same, _core.constant((), 0, a.dtype, a.device), apart)
    return largest + _core.map("log1p", _core.map("exp", -apart))


def nextafter(x1: Operand, x2: Operand, /) -> Array:
    """The number next to the first on the way to the second.

    >>> import loopwright as lw
    >>> lw.nextafter(lw.asarray([1.0]), 2.0).tolist() == [1.0 + lw.finfo(lw.asarray([1.0])).eps]
    True
    """
    a, b = together("nextafter", x1, x2, allowed=FLOATING)
    size = _dtypes.width(a.dtype)
    signed = _dtypes.SIGNED[size.bit_length() - 4]

    def number(value: int) -> Array:
        return _core.full((), value, signed, a.device)

    # As integers, floats of one sign are in order; those below zero run backwards from the smallest.
    smallest = -(2 ** (size - 1))

    def ordered(x: Array) -> Array:
        bits = _core.bitcast(x, signed)
        return _core.where(bits < 0, number(smallest) - bits, bits)

    place, aim = ordered(a), ordered(b)
    step = _core.map("sign", _core.cast(aim > place, signed) - _core.cast(aim < place, signed))
    place = place + step
    back = _core.bitcast(_core.where(place < 0, number(smallest) - place, place), a.dtype)
    # What comes to zero from below is a negative zero.
    from_below = (a < 0) & (back == 0)
    back = _core.where(from_below, _core.map("neg", _core.map("abs", back)), back)
    result = _core.where(a == b, b, back)
    return _core.where(_core.map("is_nan", a) | _core.map("is_nan", b), a + b, result)
