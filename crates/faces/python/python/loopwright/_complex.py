"""Complex functions in terms of real ones.

Each takes complex arrays and has the name of the function in the namespace. Formulas are those that
stay precise near branch points and do not overflow before the result does; see Kahan, "Branch cuts
for complex elementary functions", and the references at single functions.
"""

from __future__ import annotations

import math
import operator

from . import _core, _dtypes
from ._core import Array


def parts(z: Array) -> tuple[Array, Array]:
    """Real and imaginary part."""
    return _core.real(z), _core.imag(z)


def _number(value: float, like: Array) -> Array:
    if value in (0.0, 1.0):
        return _core.constant((), int(value), like.dtype, like.device)
    return _core.full((), value, like.dtype, like.device)


def _op(name: str, *xs: Array) -> Array:
    return _core.map(name, *xs)


def _where(condition: Array, a: Array, b: Array) -> Array:
    return _core.where(condition, a, b)


#: What operators do, they do.
abs, negative = operator.abs, operator.neg
add, subtract, multiply = operator.add, operator.sub, operator.mul
divide, pow = operator.truediv, operator.pow
equal, not_equal = operator.eq, operator.ne
exp, log = _core.complex_exp, _core.complex_log


def conj(z: Array) -> Array:
    re, im = parts(z)
    return _core.complex(re, -im)


def isnan(z: Array) -> Array:
    re, im = parts(z)
    return _op("is_nan", re) | _op("is_nan", im)


def isinf(z: Array) -> Array:
    re, im = parts(z)
    return _op("is_inf", re) | _op("is_inf", im)


def isfinite(z: Array) -> Array:
    re, im = parts(z)
    return _op("is_finite", re) & _op("is_finite", im)


def reciprocal(z: Array) -> Array:
    re, im = parts(z)
    one = _core.complex(_number(1.0, re), _number(0.0, im))
    return divide(one, z)


def square(z: Array) -> Array:
    re, im = parts(z)
    return _core.complex((re - im) * (re + im), re * im * 2.0)


def sign(z: Array) -> Array:
    re, im = parts(z)
    # The length of the largest numbers is none, but that of their halves is.
    half = _op("is_inf", _op("hypot", re, im)) & ~_op("is_inf", re) & ~_op("is_inf", im)
    re, im = _where(half, re * 0.5, re), _where(half, im * 0.5, im)
    # That of subnormal numbers has few digits, but that of larger ones in the same direction has all.
    small = _op("hypot", re, im) < _dtypes.finfo(re.dtype).smallest_normal
    re, im = _where(small, re * 2.0**64, re), _where(small, im * 2.0**64, im)
    length = _op("hypot", re, im)
    none, zero = length == 0, _number(0.0, length)
    length = _where(none, _number(1.0, length), length)
    return _core.complex(_where(none, zero, re / length), _where(none, zero, im / length))


def round(z: Array) -> Array:
    re, im = parts(z)
    return _core.complex(_op("round", re), _op("round", im))


def expm1(z: Array) -> Array:
    re, im = parts(z)
    half = _op("sin", im * 0.5)
    along = _op("expm1", re) * _op("cos", im) - half * half * 2.0
    # Where the exponential has an end, or none, it is that of the real part; so for a real argument.
    ended = _op("is_inf", re)
    turned = exp(z)
    along = _where(ended, _core.real(turned) - 1.0, along)
    along = _where(im == 0, _op("expm1", re), along)
    # A zero has no sign, by the standard.
    along = _where((im == 0) & (re == 0), _number(0.0, re), along)
    return _core.complex(along, _core.imag(turned))


def log1p(z: Array) -> Array:
    re, im = parts(z)
    near = _op("hypot", re, im) < 0.5
    small = _where(near, re * (re + 2.0) + im * im, _number(0.0, re))
    along = _where(near, _op("log1p", small) * 0.5, _core.real(log(_core.complex(re + 1.0, im))))
    return _core.complex(along, _op("atan2", im, re + 1.0))


def _scaled_log(z: Array, factor: float) -> Array:
    re, im = parts(log(z))
    return _core.complex(re * factor, im * factor)


def log2(z: Array) -> Array:
    return _scaled_log(z, 1.0 / math.log(2.0))


def log10(z: Array) -> Array:
    return _scaled_log(z, 1.0 / math.log(10.0))


def sqrt(z: Array) -> Array:
    re, im = parts(z)
    # Large arguments by a quarter, tiny ones times a power of four, so that nothing overflows or is lost.
    limits = _dtypes.finfo(re.dtype)
    most = _op("max", _op("abs", re), _op("abs", im))
    up = 2.0 ** (54 if limits.bits == 32 else 108)
    large, tiny = most > limits.max / 4.0, most < limits.smallest_normal * 16.0
    one = _number(1.0, re)
    scale = _where(large, _number(0.25, re), _where(tiny, _number(up, re), one))
    back = _where(large, _number(2.0, re), _where(tiny, _number(up**-0.5, re), one))
    x, y = re * scale, im * scale
    wide = _op("abs", x)
    root = _op("sqrt", (wide + _op("hypot", x, y)) * 0.5)
    zero = root == 0
    other = _op("abs", y) / (_where(zero, one, root) * 2.0)
    right = re >= 0
    along = _where(right, root, other) * back
    across = _op("copysign", _where(right, other, root) * back, im)
    endless = _op("is_inf", im)
    infinity = _number(math.inf, re)
    return _core.complex(_where(endless, infinity, along), _where(endless, im, across))


def sin(z: Array) -> Array:
    re, im = parts(z)
    across, along = _sinh(-im, re)
    return _core.complex(along, -across)


def cos(z: Array) -> Array:
    re, im = parts(z)
    return _core.complex(*_cosh(-im, re))


def sinh(z: Array) -> Array:
    return _core.complex(*_sinh(*parts(z)))


def cosh(z: Array) -> Array:
    return _core.complex(*_cosh(*parts(z)))


def _sinh(re: Array, im: Array) -> tuple[Array, Array]:
    along = _op("sinh", re) * _op("cos", im)
    across = _op("cosh", re) * _op("sin", im)
    # Infinitely long in no direction.
    endless = _op("is_inf", re) & ~_op("is_finite", im)
    along = _where(endless, re, along)
    return _where(re == 0, re, along), _where(im == 0, im, across)


def _cosh(re: Array, im: Array) -> tuple[Array, Array]:
    along = _op("cosh", re) * _op("cos", im)
    across = _op("sinh", re) * _op("sin", im)
    endless = _op("is_inf", re) & ~_op("is_finite", im)
    along = _where(endless, _op("abs", re), along)
    zero, one = _number(0.0, re), _number(1.0, re)
    flat = _op("copysign", zero, re) * _op("copysign", one, im)
    return along, _where((re == 0) | (im == 0), flat, across)


def _tanh(re: Array, im: Array) -> tuple[Array, Array]:
    wide = _op("abs", re)
    far = wide > 20.0
    bounded = _where(far, _number(0.0, re), re)
    tangent = _op("tan", im)
    beta = tangent * tangent + 1.0
    sine = _op("sinh", bounded)
    rho = _op("sqrt", sine * sine + 1.0)
    under = beta * sine * sine + 1.0
    along = beta * rho * sine / under
    across = tangent / under
    tail = _op("sin", im) * _op("cos", im) * 4.0 * _op("exp", wide * -2.0)
    limit = _op("copysign", _number(1.0, re), re)
    # Infinitely far, the imaginary part is gone whatever it was.
    tail = _where(_op("is_inf", re), _number(0.0, re), tail)
    # However near the limit, a number without a direction is none.
    lost = far & _op("is_finite", re) & ~_op("is_finite", im)
    limit = _where(lost, _number(math.nan, re), limit)
    along = _where(re == 0, re, _where(far, limit, along))
    return along, _where(im == 0, im, _where(far, tail, across))


def tanh(z: Array) -> Array:
    return _core.complex(*_tanh(*parts(z)))


def tan(z: Array) -> Array:
    re, im = parts(z)
    across, along = _tanh(-im, re)
    return _core.complex(along, -across)


def _roots(z: Array) -> tuple[Array, Array, Array, Array]:
    """The parts of sqrt(1 - z) and of sqrt(1 + z)."""
    re, im = parts(z)
    less = sqrt(_core.complex(1.0 - re, -im))
    more = sqrt(_core.complex(re + 1.0, im))
    return *parts(less), *parts(more)


def _far(re: Array, im: Array) -> tuple[Array, Array]:
    """Whether squares would overflow, and the logarithm of twice the absolute value."""
    limit = _dtypes.finfo(re.dtype).max ** 0.5 / 8.0
    far = (_op("abs", re) > limit) | (_op("abs", im) > limit)
    length = _op("hypot", re * 0.5, im * 0.5)
    return far, _op("log", length) + 2.0 * math.log(2.0)


def acos(z: Array) -> Array:
    re, im = parts(z)
    far, log = _far(re, im)
    a, b, c, d = _roots(z)
    along = _where(re == 0, _number(math.pi / 2.0, re), _op("atan2", a, c) * 2.0)
    along = _where(far, _op("atan2", _op("abs", im), re), along)
    return _core.complex(along, _where(far, _op("copysign", log, -im), _op("asinh", c * b - d * a)))


def _asin(re: Array, im: Array) -> tuple[Array, Array]:
    far, log = _far(re, im)
    a, b, c, d = _roots(_core.complex(re, im))
    along = _where(re == 0, re, _op("atan2", re, a * c - b * d))
    along = _where(far, _op("atan2", re, _op("abs", im)), along)
    across = _op("asinh", a * d - b * c)
    across = _where(im == 0, _op("copysign", across, im), across)
    return along, _where(far, _op("copysign", log, im), across)


def asin(z: Array) -> Array:
    return _core.complex(*_asin(*parts(z)))


def acosh(z: Array) -> Array:
    re, im = parts(z)
    far, log = _far(re, im)
    a, b = parts(sqrt(_core.complex(re - 1.0, im)))
    c, d = parts(sqrt(_core.complex(re + 1.0, im)))
    along = _where(far, log, _op("asinh", a * c + b * d))
    across = _where(far, _op("atan2", im, re), _op("atan2", b, c) * 2.0)
    # On the imaginary axis it is a quarter of a turn, even where it is not known how far out.
    quarter = _number(math.pi / 2.0, re)
    return _core.complex(along, _where((re == 0) & _op("is_nan", im), quarter, across))


def asinh(z: Array) -> Array:
    re, im = parts(z)
    across, along = _asin(-im, re)
    return _core.complex(along, -across)


def _atanh(re: Array, im: Array) -> tuple[Array, Array]:
    x = _op("abs", re)
    limit = _dtypes.finfo(re.dtype).max ** 0.5 / 4.0
    far = (x > limit) | (_op("abs", im) > limit)
    zero, one = _number(0.0, re), _number(1.0, re)
    x_near, y = _where(far, zero, x), _where(far, zero, im)
    along = _op("log1p", x_near * 4.0 / ((1.0 - x_near) * (1.0 - x_near) + y * y)) * 0.25
    # Beside the pole, what is squared would be 0 before it is.
    beside = _op("log", y * y + 4.0) * 0.25 - _op("log", _op("abs", y)) * 0.5
    along = _where(x == 1.0, beside, along)
    across = _op("atan2", y * 2.0, (1.0 - x_near) * (x_near + 1.0) - y * y) * 0.5
    # Far out it is 1 / z beside a quarter of a turn.
    over_re, _ = parts(divide(_core.complex(one, zero), _core.complex(x, im)))
    over_re = _where(_op("is_inf", re) | _op("is_inf", im), zero, over_re)
    turn = _op("copysign", _number(math.pi / 2.0, re), im)
    turn = _where(_op("is_nan", im), im, turn)
    # NaN beside anything finite is NaN in both parts; beside an infinity the quarter of a turn stays.
    turn = _where(_op("is_nan", re) & ~_op("is_inf", im), re, turn)
    # On the cut above 1, the sign of a zero imaginary part says which side it is.
    across = _where((im == 0) & (x_near > 1.0), turn, across)
    along = _where(re == 0, x, _where(far, over_re, along))
    return _op("copysign", along, re), _where(far, turn, across)


def atanh(z: Array) -> Array:
    return _core.complex(*_atanh(*parts(z)))


def atan(z: Array) -> Array:
    re, im = parts(z)
    across, along = _atanh(-im, re)
    return _core.complex(along, -across)
