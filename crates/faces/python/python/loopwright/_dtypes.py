"""Data types: what they are called, what they hold, and what becomes of two of them."""

from __future__ import annotations

import builtins
from typing import NamedTuple

from . import _core
from ._core import Array, DType

bool = _core.bool
int8, int16, int32, int64 = _core.int8, _core.int16, _core.int32, _core.int64
uint8, uint16, uint32, uint64 = _core.uint8, _core.uint16, _core.uint32, _core.uint64
float8_e4m3fn, float8_e5m2 = _core.float8_e4m3fn, _core.float8_e5m2
float16, bfloat16 = _core.float16, _core.bfloat16
float32, float64 = _core.float32, _core.float64
complex64, complex128 = _core.complex64, _core.complex128

SIGNED = (int8, int16, int32, int64)
UNSIGNED = (uint8, uint16, uint32, uint64)
BOOL = frozenset((bool,))
INTEGRAL = frozenset(SIGNED + UNSIGNED)
FLOATING = frozenset((float8_e4m3fn, float8_e5m2, float16, bfloat16, float32, float64))
COMPLEX = frozenset((complex64, complex128))
REAL = INTEGRAL | FLOATING
NUMERIC = REAL | COMPLEX
INEXACT = FLOATING | COMPLEX
BITS = BOOL | INTEGRAL
ALL = BOOL | NUMERIC

#: The kinds that `isdtype` and `__array_namespace_info__` speak of.
KINDS: dict[str, frozenset[DType]] = {
    "bool": BOOL,
    "signed integer": frozenset(SIGNED),
    "unsigned integer": frozenset(UNSIGNED),
    "integral": INTEGRAL,
    "real floating": FLOATING,
    "complex floating": COMPLEX,
    "numeric": NUMERIC,
}

#: Classes of dtypes in words, for messages.
WORDS = {
    ALL: "any dtype",
    BOOL: "bool",
    INTEGRAL: "an integer dtype",
    BITS: "an integer dtype or bool",
    FLOATING: "a real floating-point dtype",
    INEXACT: "a floating-point dtype",
    REAL: "a real numeric dtype",
    NUMERIC: "a numeric dtype",
    COMPLEX: "a complex dtype",
}

NAMES = {
    "bool": bool,
    **{f"int{8 << i}": dtype for i, dtype in enumerate(SIGNED)},
    **{f"uint{8 << i}": dtype for i, dtype in enumerate(UNSIGNED)},
    "float8_e4m3fn": float8_e4m3fn,
    "float8_e5m2": float8_e5m2,
    "float16": float16,
    "bfloat16": bfloat16,
    "float32": float32,
    "float64": float64,
    "complex64": complex64,
    "complex128": complex128,
}

#: Floats that the standard does not have.
NARROW = (float8_e4m3fn, float8_e5m2, float16, bfloat16)

#: The dtypes of the standard.
STANDARD = {name: dtype for name, dtype in NAMES.items() if dtype not in NARROW}


def named(dtype: object | None) -> DType | None:
    """A dtype that may be given by its name, or as a type of Python or numpy; `None` stays `None`."""
    return dtype if dtype is None or isinstance(dtype, DType) else _core.dtype(dtype)


def default_float() -> DType:
    """The dtype that Python floats become."""
    return _core.default_dtype()


def set_default_dtype(dtype: DType | str, /) -> None:
    """The dtype of Python floats, of quotients of integers, and of new arrays for which no dtype is given.

    It is float32, and may be float64, float16 or bfloat16. A function made by `jit` is traced anew under another
    default. Complex numbers have parts of float64 where the default is float64, else of float32.

    >>> import loopwright as lw
    >>> lw.set_default_dtype("float64")
    >>> lw.zeros(3).dtype, lw.asarray(1j).dtype
    (loopwright.float64, loopwright.complex128)
    >>> lw.set_default_dtype(lw.float32)
    """
    _core.set_default_dtype(dtype)


def get_default_dtype() -> DType:
    """The dtype that `set_default_dtype` has set.

    >>> import loopwright as lw
    >>> lw.get_default_dtype()
    loopwright.float32
    """
    return _core.default_dtype()


def default_int() -> DType:
    """The dtype that Python ints become, and that indices have."""
    return int64


def default_complex() -> DType:
    """The dtype that Python complex numbers become."""
    return complex_of(default_float())


def complex_of(dtype: DType) -> DType:
    """The complex dtype whose parts are (at least) as precise as a dtype."""
    if dtype in COMPLEX:
        return dtype
    return complex128 if dtype == float64 else complex64


def real_of(dtype: DType) -> DType:
    """The dtype of the parts of a complex dtype; any other is its own."""
    if dtype == complex64:
        return float32
    if dtype == complex128:
        return float64
    return dtype


def width(dtype: DType) -> int:
    """The bits of an element; of a complex dtype, of one part."""
    return real_of(dtype).itemsize * 8


def of(x: Array | DType) -> DType:
    """The dtype of an array, or a dtype itself."""
    if isinstance(x, Array):
        return x.dtype
    if isinstance(x, DType):
        return x
    if isinstance(x, str | type) or hasattr(x, "name"):
        return _core.dtype(x)
    raise TypeError(f"expected an array or a dtype, not {type(x).__name__}")


def astype(
    x: Array, dtype: DType, /, *, copy: builtins.bool = True, device: object | None = None
) -> Array:
    """Converts an array to a dtype.

    Floats lose their fraction on the way to integers, integers wrap. A complex array is not made
    real: take `real` or `abs` of it.

    >>> import loopwright as lw
    >>> lw.astype(lw.asarray([1.7, -1.7]), lw.int32).tolist()
    [1, -1]
    """
    if not isinstance(x, Array):
        raise TypeError(f"astype: expected an array, not {type(x).__name__}")
    dtype = _core.dtype(dtype)
    if x.dtype in COMPLEX and dtype not in COMPLEX:
        if dtype != bool:
            raise TypeError(
                f"astype: {x.dtype} does not become {dtype}; take real(x), imag(x) or abs(x)"
            )
        return (_core.real(x) != 0) | (_core.imag(x) != 0)
    if dtype != x.dtype or copy:
        x = _core.cast(x, dtype)
    if device is not None and device != x.device:
        x = x.to_device(device)
    return x


def can_cast(from_: DType | Array, to: DType, /) -> builtins.bool:
    """Whether one dtype becomes the other by the standard's promotion, which keeps within kinds.

    >>> import loopwright as lw
    >>> lw.can_cast(lw.int8, lw.int32), lw.can_cast(lw.int64, lw.float32)
    (True, False)
    """
    source, to = of(from_), of(to)
    families = (BOOL, INTEGRAL, INEXACT)
    if not any(source in family and to in family for family in families):
        return False
    try:
        return _core.result_type(source, to) == to
    except TypeError:
        return False


def result_type(*arrays_and_dtypes: Array | DType | complex) -> DType:
    """The dtype that arrays, dtypes and Python numbers have together.

    >>> import loopwright as lw
    >>> lw.result_type(lw.int8, lw.uint8) == lw.int16
    True
    """
    if not arrays_and_dtypes:
        raise ValueError("result_type: at least one array or dtype is needed")
    if all(isinstance(x, builtins.bool | int | float | complex) for x in arrays_and_dtypes):
        raise ValueError("result_type: at least one array or dtype is needed beside the numbers")
    return _core.result_type(*arrays_and_dtypes)


def isdtype(dtype: DType, kind: DType | str | tuple[DType | str, ...]) -> builtins.bool:
    """Whether a dtype is of a kind: a dtype, the name of a kind, or a tuple of these.

    >>> import loopwright as lw
    >>> lw.isdtype(lw.uint8, "integral"), lw.isdtype(lw.uint8, ("bool", lw.int8))
    (True, False)
    """
    if not isinstance(dtype, DType):
        if isinstance(dtype, Array) or not (isinstance(dtype, str | type) or hasattr(dtype, "name")):
            raise TypeError(f"isdtype: expected a dtype, not {dtype!r}")
        dtype = _core.dtype(dtype)
    if isinstance(kind, tuple):
        return any(isdtype(dtype, one) for one in kind)
    if isinstance(kind, str):
        if kind in NAMES and kind not in KINDS:
            return dtype == NAMES[kind]
        if kind not in KINDS:
            known = ", ".join(repr(one) for one in KINDS)
            raise ValueError(f"isdtype: no kind is called {kind!r}; there are {known}")
        return dtype in KINDS[kind]
    if isinstance(kind, DType):
        return dtype == kind
    raise TypeError(f"isdtype: a kind is a dtype, a name or a tuple of these, not {kind!r}")


class finfo_object(NamedTuple):
    """What `finfo` tells of a floating-point dtype."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DType


class iinfo_object(NamedTuple):
    """What `iinfo` tells of an integer dtype."""

    bits: int
    max: int
    min: int
    dtype: DType


# Exponent bits and mantissa bits.
_FORMATS = {
    float8_e4m3fn: (4, 3),
    float8_e5m2: (5, 2),
    float16: (5, 10),
    bfloat16: (8, 7),
    float32: (8, 23),
    float64: (11, 52),
}


def finfo(type: DType | Array, /) -> finfo_object:
    """The limits of a floating-point dtype; of a complex one, those of its parts.

    >>> import loopwright as lw
    >>> lw.finfo(lw.float32).eps == 2.0**-23, lw.finfo(lw.complex128).bits
    (True, 64)
    """
    dtype = real_of(of(type))
    if dtype not in _FORMATS:
        raise TypeError(f"finfo: {dtype} is not a floating-point dtype")
    exponent, mantissa = _FORMATS[dtype]
    bias = 2 ** (exponent - 1) - 1
    largest = (2.0 - 2.0**-mantissa) * 2.0**bias
    if dtype == float8_e4m3fn:
        # Without infinities, the largest exponent has numbers, too; its last mantissa is NaN.
        largest = (2.0 - 2.0 * 2.0**-mantissa) * 2.0 ** (bias + 1)
    return finfo_object(
        1 + exponent + mantissa, 2.0**-mantissa, largest, -largest, 2.0 ** (1 - bias), dtype
    )


def iinfo(type: DType | Array, /) -> iinfo_object:
    """The limits of an integer dtype.

    >>> import loopwright as lw
    >>> lw.iinfo(lw.int8).min, lw.iinfo(lw.uint16).max
    (-128, 65535)
    """
    dtype = of(type)
    if dtype in SIGNED:
        bits = width(dtype)
        return iinfo_object(bits, 2 ** (bits - 1) - 1, -(2 ** (bits - 1)), dtype)
    if dtype in UNSIGNED:
        bits = width(dtype)
        return iinfo_object(bits, 2**bits - 1, 0, dtype)
    raise TypeError(f"iinfo: {dtype} is not an integer dtype")
