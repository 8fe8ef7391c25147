"""Arrays in another shape or order, and several as one."""

from __future__ import annotations

import array_api_strict as strict
import loopwright as lw
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from .reference import ALL, SHAPES, arrays, check, ours, refused, same, some, theirs

CASES = [
    ("expand_dims", (2, 3), {"axis": 0}), ("expand_dims", (2, 3), {"axis": -1}),
    ("expand_dims", (), {"axis": 0}), ("expand_dims", (2, 0), {"axis": 1}),
    ("flip", (2, 3), {}), ("flip", (2, 3), {"axis": 0}), ("flip", (2, 3), {"axis": (0, -1)}),
    ("flip", (), {}), ("flip", (0, 3), {"axis": 1}),
    ("permute_dims", (2, 3, 4), {"axes": (2, 0, 1)}), ("permute_dims", (2, 3), {"axes": (-1, 0)}),
    ("permute_dims", (), {"axes": ()}), ("permute_dims", (0, 3), {"axes": (1, 0)}),
    ("reshape", (2, 3), {"shape": (3, 2)}), ("reshape", (2, 3), {"shape": (-1,)}),
    ("reshape", (2, 3), {"shape": (1, 6, 1)}), ("reshape", (), {"shape": (1,)}),
    ("reshape", (1, 1), {"shape": ()}), ("reshape", (0, 3), {"shape": (3, 0)}),
    ("reshape", (2, 3), {"shape": (3, -1), "copy": True}),
    ("roll", (5,), {"shift": 2}), ("roll", (5,), {"shift": -7}), ("roll", (2, 3), {"shift": 1}),
    ("roll", (2, 3), {"shift": 1, "axis": 1}), ("roll", (2, 3), {"shift": (1, -1), "axis": (0, 1)}),
    ("roll", (2, 3), {"shift": 2, "axis": (0, 1)}), ("roll", (0,), {"shift": 1}),
    ("roll", (), {"shift": 1}),
    ("squeeze", (1, 3, 1), {"axis": 0}), ("squeeze", (1, 3, 1), {"axis": (0, -1)}),
    ("squeeze", (1, 0), {"axis": 0}), ("squeeze", (2, 3), {"axis": ()}),
    ("broadcast_to", (3,), {"shape": (2, 3)}), ("broadcast_to", (2, 1), {"shape": (2, 4)}),
    ("broadcast_to", (), {"shape": (2, 2)}), ("broadcast_to", (1,), {"shape": (0,)}),
    ("unstack", (3, 2), {}), ("unstack", (3, 2), {"axis": -1}), ("unstack", (0, 2), {}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "shape", "kwargs"), CASES)
def test_one_array(name: str, shape: tuple[int, ...], kwargs: dict) -> None:
    for dtype in ("float32", "bool", "complex128"):
        check(name, some(dtype, shape), **kwargs)


@pytest.mark.parametrize("dtype", ALL)
def test_dtypes(dtype: str) -> None:
    x = some(dtype, (2, 3))
    check("flip", x)
    check("roll", x, 1, axis=1)
    check("permute_dims", x, (1, 0))
    check("reshape", x, (6,))
    check("concat", [x, x])
    check("stack", [x, x], axis=1)
    check("tile", x, (2, 2))
    check("repeat", x, 2, axis=1)
    check("broadcast_to", x, (2, 2, 3))


@given(arrays(["int32", "float64"]), st.data())
def test_reversals_undo_themselves(x: np.ndarray, data: st.DataObject) -> None:
    axes = data.draw(st.permutations(range(x.ndim)))
    check("permute_dims", x, tuple(axes))
    a = lw.asarray(x)
    back = lw.permute_dims(
        lw.permute_dims(a, tuple(axes)), tuple(axes.index(i) for i in range(x.ndim))
    )
    same(back, strict.asarray(x))
    same(lw.flip(lw.flip(a)), strict.asarray(x))


MOVES = [(0, 2), (-1, 0), ((0, 1), (2, 0)), ((0, 2), (1, 0)), (1, 1)]


@pytest.mark.parametrize(("source", "destination"), MOVES)
def test_moveaxis(source, destination) -> None:
    check("moveaxis", some("int32", (2, 3, 4)), source, destination)


def test_concat() -> None:
    for shapes, axis in [
        (((2, 3), (1, 3)), 0), (((2, 3), (2, 1)), 1), (((2, 3), (2, 2)), -1), (((2,), (0,)), 0),
        (((0, 2), (0, 2)), 0), (((2, 3), (4,), ()), None), (((3,),), 0),
    ]:  # fmt: skip
        parts = [some("float32", shape, at) for at, shape in enumerate(shapes)]
        check("concat", parts, axis=axis)
    check("concat", [some("int8", (2,)), some("int32", (3,))])
    check("concat", [some("float32", (2,)), some("complex64", (3,))])
    check("concat", tuple(some("uint8", (2,)) for _ in range(5)))
    refused("concat", [some("int8", (2,)), some("int8", (2, 2))])
    refused("concat", [some("int8", (2, 3)), some("int8", (2, 2))])
    refused("concat", [some("int8", (2,)), some("uint64", (2,))], errors=TypeError)
    refused("concat", [])
    refused("concat", [some("int8", (2,))], axis=1)


def test_stack() -> None:
    for axis in (0, 1, 2, -1, -3):
        check("stack", [some("int32", (2, 3), 1), some("int32", (2, 3), 2)], axis=axis)
    check("stack", [some("int8", ()), some("int32", ())])
    check("stack", [some("int8", (0,)), some("int8", (0,))])
    refused("stack", [some("int8", (2,)), some("int8", (3,))])
    refused("stack", [some("int8", (2,))], axis=2)


def test_repeat() -> None:
    for shape in ((3,), (2, 3), (), (0,), (2, 0)):
        for count in (0, 1, 3):
            check("repeat", some("float64", shape), count)
    check("repeat", some("int32", (2, 3)), 2, axis=0)
    check("repeat", some("int32", (2, 3)), 2, axis=-1)
    check("repeat", some("int32", (3,)), np.asarray([0, 2, 1]))
    check("repeat", some("int32", (2, 3)), np.asarray([1, 0, 2]), axis=1)
    check("repeat", some("int32", (3,)), np.asarray([2]))
    check("repeat", some("int32", (3,)), np.asarray(2))
    refused("repeat", some("int32", (3,)), -1)
    refused("repeat", some("int32", (3,)), np.asarray([1, 2]))


def test_tile() -> None:
    for shape in ((3,), (2, 3), (), (0, 2)):
        for counts in ((), (2,), (2, 1), (1, 2, 2), (0,)):
            check("tile", some("int32", shape), counts)


def test_broadcast_arrays() -> None:
    xs = [some("int32", (2, 1)), some("float32", (3,)), some("bool", ())]
    got = lw.broadcast_arrays(*ours(xs))
    same(tuple(got), tuple(strict.broadcast_arrays(*theirs(xs))))
    refused("broadcast_arrays", some("int8", (2,)), some("int8", (3,)))
    assert lw.broadcast_shapes((2, 1), (3,), ()) == (2, 3)
    refused("broadcast_shapes", (2,), (3,))


def test_mistakes() -> None:
    x = some("float32", (2, 3))
    refused("expand_dims", x, axis=3, errors=IndexError)
    refused("expand_dims", x, axis=-4, errors=IndexError)
    refused("squeeze", x, axis=0, errors=ValueError)
    refused("squeeze", x, axis=2, errors=(IndexError, ValueError))
    refused("permute_dims", x, (0,))
    refused("permute_dims", x, (0, 0))
    refused("reshape", x, (4,))
    refused("reshape", x, (-1, -1))
    refused("reshape", x, (-1, 4))
    refused("reshape", x, (-2, 3))
    refused("flip", x, axis=2)
    refused("roll", x, (1, 2), axis=0)
    refused("roll", x, 1, axis=5)
    refused("broadcast_to", x, (2,))
    refused("broadcast_to", x, (2, 4))
    refused("moveaxis", x, (0, 1), (0,))
    refused("unstack", some("int8", ()))


@pytest.mark.parametrize("shape", SHAPES)
def test_transposes(shape: tuple[int, ...]) -> None:
    x = some("int32", shape)
    if x.ndim == 2:
        same(lw.asarray(x).T, strict.asarray(x).T)
    else:
        with pytest.raises(ValueError):
            _ = lw.asarray(x).T
    if x.ndim >= 2:
        same(lw.asarray(x).mT, strict.asarray(x).mT)
        check("matrix_transpose", x)
    else:
        with pytest.raises(ValueError):
            _ = lw.asarray(x).mT
        refused("matrix_transpose", x)


def test_shapes_that_do_not_broadcast_are_named() -> None:
    with pytest.raises(ValueError, match=r"\(2,\), \(3,\)\) cannot be broadcast together"):
        lw.broadcast_shapes((2,), (3,))


def test_an_axis_that_is_not_there_is_out_of_bounds() -> None:
    for axis in (1, -2):
        with pytest.raises(IndexError, match=f"axis {axis} is out of bounds for array of dimension 1"):
            lw.moveaxis(lw.zeros(3), axis, 0)
