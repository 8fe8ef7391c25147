"""Loopwright: arrays that become loops you can read, on every machine.

The namespace is that of the Python Array API standard, version 2024.12, with the extensions `linalg`
and `fft`. Arrays are formulas: nothing is computed until a value is asked for, and then all that it
needs becomes one program.

>>> import loopwright as lw
>>> x = lw.asarray([[1.0, 2.0], [3.0, 4.0]])
>>> lw.sum(x @ x, axis=0).tolist()
[22.0, 32.0]
"""

from __future__ import annotations

import importlib as _importlib
import math as _math
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from . import _core, fft, linalg
from ._core import Array, Error, GradientError, ScheduleError, TracedError, __version__
from ._creation import (
    arange,
    asarray,
    empty,
    empty_like,
    eye,
    from_dlpack,
    full,
    full_like,
    linspace,
    meshgrid,
    ones,
    ones_like,
    tril,
    triu,
    zeros,
    zeros_like,
)
from ._devices import Device, current_device, devices, set_default_device, use_device
from ._dtypes import (
    astype,
    bfloat16,
    bool,
    can_cast,
    complex64,
    complex128,
    finfo,
    float8_e4m3fn,
    float8_e5m2,
    float16,
    float32,
    float64,
    iinfo,
    int8,
    int16,
    int32,
    int64,
    isdtype,
    result_type,
    uint8,
    uint16,
    uint32,
    uint64,
)
from ._elementwise import (
    abs,
    acos,
    acosh,
    add,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    bitwise_and,
    bitwise_invert,
    bitwise_left_shift,
    bitwise_or,
    bitwise_right_shift,
    bitwise_xor,
    ceil,
    clip,
    conj,
    copysign,
    cos,
    cosh,
    divide,
    equal,
    exp,
    expm1,
    floor,
    floor_divide,
    greater,
    greater_equal,
    hypot,
    imag,
    isfinite,
    isinf,
    isnan,
    less,
    less_equal,
    log,
    log1p,
    log2,
    log10,
    logaddexp,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    maximum,
    minimum,
    multiply,
    negative,
    nextafter,
    not_equal,
    positive,
    pow,
    real,
    reciprocal,
    remainder,
    round,
    sign,
    signbit,
    sin,
    sinh,
    sqrt,
    square,
    subtract,
    tan,
    tanh,
    trunc,
)
from ._functions import (
    checkpoint,
    custom_gradient,
    grad,
    hessian,
    jacobian,
    jit,
    jvp,
    stop_gradient,
    value_and_grad,
    vjp,
    vmap,
)
from ._indexing import take, take_along_axis
from ._inspection import __array_namespace_info__
from ._linear import matmul, matrix_transpose, tensordot, vecdot
from ._manipulation import (
    broadcast_arrays,
    broadcast_shapes,
    broadcast_to,
    concat,
    expand_dims,
    flip,
    moveaxis,
    permute_dims,
    repeat,
    reshape,
    roll,
    squeeze,
    stack,
    tile,
    unstack,
)
from ._plot import Chart, plot, sparkline
from ._searching import argmax, argmin, count_nonzero, nonzero, searchsorted, where
from ._sets import isin, unique_all, unique_counts, unique_inverse, unique_values
from ._sorting import argsort, sort
from ._statistics import (
    cumulative_prod,
    cumulative_sum,
    max,
    mean,
    min,
    prod,
    std,
    sum,
    var,
)
from ._tensors import (
    Loops,
    Variable,
    WhileLoop,
    adaptive_avg_pool,
    adaptive_max_pool,
    assign,
    avg_pool,
    choose,
    conv,
    conv_transpose,
    cumulative_max,
    einsum,
    elu,
    erf,
    gelu,
    gelu_tanh,
    global_avg_pool,
    global_max_pool,
    leaky_relu,
    log_softmax,
    logsumexp,
    loops_of,
    max_pool,
    one_hot,
    pad,
    relu,
    repeat_at_most,
    repeat_while,
    rsqrt,
    scan,
    scan_values,
    scatter,
    sigmoid,
    silu,
    softmax,
    softplus,
    topk,
    while_loop,
    window,
)
from ._utility import all, any, diff

realize = _core.realize

__array_api_version__ = "2024.12"

e = _math.e
inf = _math.inf
nan = _math.nan
newaxis = None
pi = _math.pi

if _TYPE_CHECKING:
    from . import checkpoints, data, nn, optim, random, train

# What programs that only compute need not wait for.
_LATER = ("checkpoints", "data", "nn", "optim", "random", "train")


def __getattr__(name: str) -> _Any:
    if name in _LATER:
        return _importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})


__all__ = [  # noqa: PLE0604
    "Array",
    "__array_api_version__",
    "__array_namespace_info__",
    *_LATER,
    *(
        name
        for name in list(globals())
        if not name.startswith("_") and name not in ("annotations", "Array")
    ),
]
