"""Arrays in another shape or order, and several as one."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence

from . import _core, _dtypes
from ._core import Array
from ._operands import axes_of, axis_of, expect

Axes = int | tuple[int, ...]


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that shapes broadcast to.

    >>> import loopwright as lw
    >>> lw.broadcast_shapes((3, 1), (2,))
    (3, 2)
    """
    ndim = max((len(shape) for shape in shapes), default=0)
    joined = [1] * ndim
    for shape in shapes:
        for at, size in enumerate(shape, ndim - len(shape)):
            if size == 1 or size == joined[at]:
                continue
            if joined[at] != 1:
                raise ValueError(f"broadcast_shapes: shapes {shapes} cannot be broadcast together")
            joined[at] = size
    return tuple(joined)


def broadcast_arrays(*arrays: Array) -> tuple[Array, ...]:
    """Arrays repeated along their axes of size 1 so that all have one shape: views, which are read-only.

    >>> import loopwright as lw
    >>> a, b = lw.broadcast_arrays(lw.zeros((3, 1)), lw.zeros((2,)))
    >>> a.shape == b.shape == (3, 2)
    True
    """
    shape = broadcast_shapes(*(expect("broadcast_arrays", x).shape for x in arrays))
    return tuple(_core.broadcast_to(x, shape) for x in arrays)


def broadcast_to(x: Array, /, shape: tuple[int, ...]) -> Array:
    """An array repeated along its axes of size 1 to a shape: a view, which is read-only.

    >>> import loopwright as lw
    >>> lw.broadcast_to(lw.asarray([1, 2]), (2, 2)).tolist()
    [[1, 2], [1, 2]]
    """
    shape = tuple(operator.index(size) for size in shape)
    own = expect("broadcast_to", x).shape
    try:
        fits = broadcast_shapes(own, shape) == shape
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(f"broadcast_to: shape {own} does not become {shape}")
    return _core.broadcast_to(x, shape)


def _as_one_dtype(name: str, arrays: Sequence[Array]) -> list[Array]:
    if not isinstance(arrays, tuple | list):
        raise TypeError(f"{name}: expected a tuple or list of arrays")
    if not arrays:
        raise ValueError(f"{name}: at least one array is needed")
    for x in arrays:
        expect(name, x)
    dtype = _core.result_type(*arrays)
    return [x if x.dtype == dtype else _core.cast(x, dtype) for x in arrays]


def concat(arrays: tuple[Array, ...] | list[Array], /, *, axis: int | None = 0) -> Array:
    """Arrays behind each other along an axis; with `None`, all their elements.

    >>> import loopwright as lw
    >>> lw.concat([lw.asarray([1, 2]), lw.asarray([3])]).tolist()
    [1, 2, 3]
    """
    parts = _as_one_dtype("concat", arrays)
    if axis is None:
        parts = [_core.reshape(x, (x.size,)) for x in parts]
        axis = 0
    first = parts[0].shape
    at = axis_of("concat", axis, len(first))
    for x in parts:
        own = x.shape
        if len(own) != len(first) or own[:at] + own[at + 1 :] != first[:at] + first[at + 1 :]:
            raise ValueError(f"concat: shapes {first} and {own} do not go together at axis {at}")
    # What has no elements adds nothing.
    filled = [x for x in parts if x.shape[at]] or parts[:1]
    return _core.copied(filled[0]) if len(filled) == 1 else _core.concat(filled, at)


def expand_dims(x: Array, /, axis: int = 0) -> Array:
    """An array with a new axis of size 1 at a place.

    >>> import loopwright as lw
    >>> lw.expand_dims(lw.asarray([1, 2]), axis=1).shape
    (2, 1)
    """
    expect("expand_dims", x)
    if isinstance(axis, tuple | list):
        for at in sorted(axes_of("expand_dims", axis, x.ndim + len(axis))):
            x = _core.unsqueeze(x, at)
        return x
    return _core.unsqueeze(x, axis_of("expand_dims", axis, x.ndim + 1))


def flip(x: Array, /, *, axis: Axes | None = None) -> Array:
    """The elements in reverse along axes.

    >>> import loopwright as lw
    >>> lw.flip(lw.asarray([1, 2, 3])).tolist()
    [3, 2, 1]
    """
    expect("flip", x)
    axes = axes_of("flip", axis, x)
    return _core.flip(x, axes)


def moveaxis(x: Array, source: Axes, destination: Axes, /) -> Array:
    """Axes moved to other places; the others stay in order.

    >>> import loopwright as lw
    >>> lw.moveaxis(lw.zeros((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    expect("moveaxis", x)
    sources = axes_of("moveaxis", source, x)
    places = axes_of("moveaxis", destination, x)
    if len(sources) != len(places):
        raise ValueError("moveaxis: there are as many sources as destinations")
    order = [at for at in range(x.ndim) if at not in sources]
    for place, at in sorted(zip(places, sources, strict=True)):
        order.insert(place, at)
    return _core.permute(x, tuple(order))


def permute_dims(x: Array, /, axes: tuple[int, ...]) -> Array:
    """The axes in another order.

    >>> import loopwright as lw
    >>> lw.permute_dims(lw.zeros((2, 3)), (1, 0)).shape
    (3, 2)
    """
    expect("permute_dims", x)
    order = axes_of("permute_dims", tuple(axes), x)
    if len(order) != x.ndim:
        raise ValueError(f"permute_dims: {tuple(axes)} does not name all {x.ndim} axes")
    return _core.permute(x, order)


def repeat(x: Array, repeats: int | Array, /, *, axis: int | None = None) -> Array:
    """Every element several times, one after the other.

    >>> import loopwright as lw
    >>> lw.repeat(lw.asarray([1, 2]), 2).tolist()
    [1, 1, 2, 2]
    >>> lw.repeat(lw.asarray([1, 2]), lw.asarray([0, 3])).tolist()
    [2, 2, 2]
    """
    expect("repeat", x)
    if axis is None:
        x = _core.reshape(x, (x.size,))
        axis = 0
    at = axis_of("repeat", axis, x)
    size = x.shape[at]
    if isinstance(repeats, Array):
        expect("repeat", repeats, _dtypes.INTEGRAL)
        if repeats.ndim > 1 or (repeats.ndim == 1 and repeats.shape[0] not in (1, size)):
            raise ValueError(f"repeat: shape {repeats.shape} has no count for each of {size}")
        counts = repeats.tolist() if repeats.ndim else [repeats.item()]
        if len(counts) == 1:
            repeats = counts[0]
        else:
            if any(count < 0 for count in counts):
                raise ValueError("repeat: counts are not negative")
            index = [one for one, count in enumerate(counts) for _ in range(count)]
            places = _core.asarray(index, _dtypes.int64, x.device)
            return _core.take(x, places, at)
    count = operator.index(repeats)
    if count < 0:
        raise ValueError("repeat: a count is not negative")
    if count == 0 or x.size == 0:
        shape = x.shape[:at] + (size * count,) + x.shape[at + 1 :]
        return _core.constant(shape, 0, x.dtype, x.device)
    return _core.repeat(x, count, at)


def reshape(x: Array, /, shape: tuple[int, ...], *, copy: bool | None = None) -> Array:
    """The elements in another shape; one size may be -1 and is found.

    It is a view where the elements have strides in that shape, and otherwise a copy. With `copy=False` that is an
    error, with `copy=True` it is always a copy.

    >>> import loopwright as lw
    >>> lw.reshape(lw.asarray([1, 2, 3, 4]), (2, -1)).tolist()
    [[1, 2], [3, 4]]
    """
    expect("reshape", x)
    sizes = [shape] if isinstance(shape, int) else [operator.index(size) for size in shape]
    if any(size < -1 for size in sizes) or sizes.count(-1) > 1:
        raise ValueError(f"reshape: {tuple(sizes)} is not a shape with one open size")
    count = x.size
    # The size of a dynamic axis is not known while a function is traced.
    if count is not None:
        if -1 in sizes:
            known = math.prod(size for size in sizes if size != -1)
            if known == 0 or count % known:
                raise ValueError(f"reshape: {count} elements do not go into {tuple(sizes)}")
            sizes[sizes.index(-1)] = count // known
        if math.prod(sizes) != count:
            raise ValueError(f"reshape: {count} elements do not go into {tuple(sizes)}")
    return _core.reshape(x, tuple(sizes), copy)


def roll(x: Array, /, shift: Axes, *, axis: Axes | None = None) -> Array:
    """The elements moved along axes; what leaves at the end comes in at the front.

    >>> import loopwright as lw
    >>> lw.roll(lw.asarray([1, 2, 3]), 1).tolist()
    [3, 1, 2]
    """
    expect("roll", x)
    if axis is None:
        if isinstance(shift, tuple | list):
            raise ValueError("roll: several shifts need as many axes")
        flat = _core.reshape(x, (x.size,))
        return _core.reshape(roll(flat, shift, axis=0), x.shape)
    axes = tuple(axis) if isinstance(axis, tuple | list) else (axis,)
    shifts = tuple(shift) if isinstance(shift, tuple | list) else (shift,) * len(axes)
    if len(shifts) != len(axes):
        raise ValueError(f"roll: {len(shifts)} shifts do not go with {len(axes)} axes")
    x = _core.copied(x)
    if x.size == 0:
        return x
    for one, by in zip(axes, shifts, strict=True):
        at = axis_of("roll", one, x)
        by = operator.index(by) % x.shape[at]
        if by:
            x = _core.roll(x, by, at)
    return x


def squeeze(x: Array, /, axis: Axes) -> Array:
    """An array without axes of size 1.

    >>> import loopwright as lw
    >>> lw.squeeze(lw.zeros((2, 1)), axis=1).shape
    (2,)
    """
    expect("squeeze", x)
    axes = axes_of("squeeze", axis, x)
    for at in axes:
        if x.shape[at] != 1:
            raise ValueError(f"squeeze: axis {at} of shape {x.shape} is not of size 1")
    return _core.squeeze(x, axes)


def stack(arrays: tuple[Array, ...] | list[Array], /, *, axis: int = 0) -> Array:
    """Arrays of one shape along a new axis.

    >>> import loopwright as lw
    >>> lw.stack([lw.asarray([1, 2]), lw.asarray([3, 4])], axis=1).tolist()
    [[1, 3], [2, 4]]
    """
    parts = _as_one_dtype("stack", arrays)
    if len({x.shape for x in parts}) > 1:
        raise ValueError("stack: the arrays have one shape")
    at = axis_of("stack", axis, parts[0].ndim + 1)
    return concat([_core.unsqueeze(x, at) for x in parts], axis=at)


def tile(x: Array, repetitions: tuple[int, ...], /) -> Array:
    """The whole array several times along its axes.

    >>> import loopwright as lw
    >>> lw.tile(lw.asarray([1, 2]), (2,)).tolist()
    [1, 2, 1, 2]
    """
    expect("tile", x)
    counts = (1,) * (x.ndim - len(repetitions)) + tuple(map(operator.index, repetitions))
    if any(count < 0 for count in counts):
        raise ValueError("tile: counts are not negative")
    own = (1,) * (len(counts) - x.ndim) + x.shape
    x = _core.reshape(x, own, True)
    if x.size == 0 or 0 in counts:
        shape = tuple(size * count for size, count in zip(own, counts, strict=True))
        return _core.constant(shape, 0, x.dtype, x.device)
    for at, count in enumerate(counts):
        if count != 1:
            x = _core.tile(x, count, at)
    return x


def unstack(x: Array, /, *, axis: int = 0) -> tuple[Array, ...]:
    """The parts of an array along an axis, without it.

    >>> import loopwright as lw
    >>> [part.tolist() for part in lw.unstack(lw.asarray([[1, 2], [3, 4]]))]
    [[1, 2], [3, 4]]
    """
    expect("unstack", x)
    at = axis_of("unstack", axis, x)
    lead = (slice(None),) * at
    return tuple(x[(*lead, one)] for one in range(x.shape[at]))
