"""Views: a write to either side is seen on the other, as in numpy, in functions that are traced and out of them."""

from __future__ import annotations

import copy
import gc
import pickle
import random
import warnings

import loopwright as lw
import numpy as np
import pytest

VIEWS = {
    "slice": lambda x: x[1:, ::-1],
    "row": lambda x: x[1],
    "element": lambda x: x[1, 2, ...],
    "new axis": lambda x: x[:, None],
    "ellipsis": lambda x: x[..., 1],
    "everything": lambda x: x[...],
    "nothing": lambda x: x[3:],
    "T": lambda x: x.T,
    "mT": lambda x: x.mT,
    "permute_dims": lambda x: lw.permute_dims(x, (1, 0)),
    "transpose": lambda x: x.transpose(),
    "matrix_transpose": lambda x: lw.matrix_transpose(x),
    "moveaxis": lambda x: lw.moveaxis(x, 0, 1),
    "reshape": lambda x: lw.reshape(x, (6, 2)),
    "reshape, copy=False": lambda x: lw.reshape(x, (12,), copy=False),
    "method reshape": lambda x: x.reshape(4, -1),
    "expand_dims": lambda x: lw.expand_dims(x, axis=1),
    "squeeze": lambda x: lw.squeeze(x[:, None, :], axis=1),
    "flip": lambda x: lw.flip(x),
    "flip of no axes": lambda x: lw.flip(x, axis=()),
    "iteration": lambda x: list(x)[2],
    "unstack": lambda x: lw.unstack(x, axis=1)[1],
    "named": lambda x: x.named("row", "column"),
    "of a view": lambda x: lw.reshape(x.T[::-1][1:3][:, ::2], (2, 1, 2)),
    "asarray": lambda x: lw.asarray(x),
    "astype": lambda x: lw.astype(x, x.dtype, copy=False),
    "from_dlpack": lambda x: lw.from_dlpack(x),
}  # fmt: skip


def start():
    return lw.reshape(lw.arange(12.0), (3, 4))


@pytest.mark.parametrize("dtype", [lw.float32, lw.complex64])
@pytest.mark.parametrize("name", VIEWS)
def test_a_write_to_either_side_is_seen_on_the_other(name, dtype):
    def both(x):
        view = VIEWS[name](x)
        view += 100
        seen = x + 0
        x[...] = x * 2
        return seen, view + 0, x + 0

    x = lw.astype(start(), dtype)
    kept = np.array(x)
    places = np.asarray(VIEWS[name](lw.reshape(lw.arange(12), (3, 4)))).astype(int)
    changed = kept.copy()
    changed.reshape(-1)[places.reshape(-1)] += 100
    expected = (changed, changed.reshape(-1)[places] * 2, changed * 2)
    if name in ("astype", "asarray", "from_dlpack"):
        places = np.arange(12).reshape(3, 4)
        expected = (kept + 100, (kept + 100) * 2, (kept + 100) * 2)
    if name == "from_dlpack":
        results = [both(x)]
    else:
        results = [lw.jit(both)(x + 0), both(x + 0), both(x)]
    for result in results:
        for given, wanted in zip(result, expected, strict=True):
            np.testing.assert_array_equal(np.asarray(given), wanted)
    np.testing.assert_array_equal(np.asarray(x), expected[2])


COPIES = {
    "element": lambda x: x[1, 2],
    "element of a view": lambda x: x.T[1:][2, -1],
    "element of iteration": lambda x: list(x[1])[2],
    "element of unstack": lambda x: lw.unstack(x[1])[2],
    "element by ()": lambda x: x[1, 2, ...][()],
    "array of integers": lambda x: x[lw.asarray([0, 1, 2])],
    "mask": lambda x: x[x > -1.0],
    "list": lambda x: x[[2, 1]],
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda x: pickle.loads(pickle.dumps(x)),
    "asarray, copy=True": lambda x: lw.asarray(x, copy=True),
    "astype": lambda x: lw.astype(x, x.dtype),
    "reshape, copy=True": lambda x: lw.reshape(x, (12,), copy=True),
    "reshape of what has no strides": lambda x: lw.reshape(x.T, (12,)),
    "flatten": lambda x: x.flatten(),
    "positive": lw.positive,
    "+x": lambda x: +x,
    "real": lw.real,
    "conj": lw.conj,
    "clip": lambda x: lw.clip(x),
    "concat of one": lambda x: lw.concat([x]),
    "concat of one, flat": lambda x: lw.concat([x], axis=None),
    "roll by nothing": lambda x: lw.roll(x, 0),
    "roll by nothing along an axis": lambda x: lw.roll(x, 0, axis=0),
    "tile of one": lambda x: lw.tile(x, (1, 1)),
    "repeat of one": lambda x: lw.repeat(x, 1),
    "pad of nothing": lambda x: lw.pad(x, 0),
    "pad of nothing by edges": lambda x: lw.pad(x, 0, "edge"),
    "sort": lw.sort,
    "sort of an element": lambda x: lw.sort(x[0, 0]),
    "full": lambda x: lw.full((3,), x[0, 0]),
    "meshgrid": lambda x: lw.meshgrid(x[0])[0],
    "matrix_power": lambda x: lw.linalg.matrix_power(x[:, :3], 1),
    "unique_values": lw.unique_values,
    "fftshift": lambda x: lw.fft.fftshift(x[0, 0]),
    "where": lambda x: lw.where(lw.asarray(True), x, x),
    "einsum": lambda x: lw.einsum("ij->ij", x),
    "numpy": lambda x: lw.asarray(np.asarray(x)),
    "label": lambda x: x.label("x"),
    "stop_gradient": lw.stop_gradient,
    "result of a jitted function": lambda x: lw.jit(lambda y: y)(x),
}  # fmt: skip


@pytest.mark.parametrize("name", COPIES)
def test_a_copy_shares_nothing(name):
    x = start()
    made = COPIES[name](x)
    kept = np.array(made)
    x += 100.0
    np.testing.assert_array_equal(np.asarray(made), kept)
    made[...] = -1.0
    np.testing.assert_array_equal(np.asarray(x), np.arange(100.0, 112.0).reshape(3, 4))


def test_a_reshape_that_would_copy_is_refused_with_copy_false():
    x = start()
    for view in (x.T, x[:, :3], lw.broadcast_to(x[0], (2, 4))):
        np.testing.assert_array_equal(np.asarray(lw.reshape(view, (-1,))), np.asarray(view).reshape(-1))
        with pytest.raises(ValueError, match="copy is forbidden"):
            lw.reshape(view, (-1,), copy=False)


def test_a_broadcast_array_sees_writes_and_is_read_only():
    x = start()
    seen = lw.broadcast_to(x[0], (2, 4))
    first, _ = lw.broadcast_arrays(x, lw.zeros((2, 1, 1)))
    x[0, 0] = 7.0
    assert seen.tolist() == [[7.0, 1.0, 2.0, 3.0]] * 2 and first[1, 0, 0].item() == 7.0
    for view in (seen, seen[0], seen.T, first):
        with pytest.raises(ValueError, match="read-only"):
            view[...] = 1.0
        with pytest.raises(ValueError, match="read-only"):
            view += 1.0
    del x
    gc.collect()
    seen.tolist()
    with pytest.raises(ValueError, match="read-only"):
        seen[0] = 1.0


@pytest.mark.parametrize("jit", [lambda f: f, lw.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("dtype", ["float32", "int64", "bool", "complex128"])
def test_elements_are_exchanged_by_assignment_as_in_numpy(dtype, jit):
    def exchange(x):
        x[0], x[3] = x[3], x[0]
        first, second = (x[1], x[2])
        x[1] = second
        x[2] = first
        return x + 0 if dtype != "bool" else x[:]

    given = np.asarray([0, 1, 0, 1]).astype(dtype)
    expected = exchange(given.copy())
    np.testing.assert_array_equal(np.asarray(jit(exchange)(lw.asarray(given))), expected)


def test_a_shuffle_keeps_every_element():
    for shuffle in (random.Random(3).shuffle, np.random.RandomState(3).shuffle):
        x, y = lw.arange(20), np.arange(20)
        with warnings.catch_warnings():
            # numpy warns of whatever is neither its array nor a list.
            warnings.simplefilter("ignore", UserWarning)
            shuffle(x)
        assert sorted(x.tolist()) == y.tolist() and x.tolist() != y.tolist()


def test_an_element_stays_what_it_was_when_the_array_is_changed_in_place():
    x = lw.asarray([2.0, 4.0])
    pivot = x[0]
    x -= pivot
    assert x.tolist() == [0.0, 2.0] and pivot.item() == 2.0
    for value in x:
        value += 1.0
    assert x.tolist() == [0.0, 2.0]
    x[0] += 1.0
    assert x.tolist() == [1.0, 2.0]


def test_overlapping_writes_read_old_elements():
    def shift(x):
        x[1:] = x[:-1]
        x[::-1] -= x
        return x

    expected = shift(np.arange(6.0))
    assert shift(lw.arange(6.0)).tolist() == expected.tolist()
    assert lw.jit(shift)(lw.arange(6.0)).tolist() == expected.tolist()


def test_what_was_computed_before_a_write_stays():
    x = start()
    y, total = x.T * 2.0, lw.sum(x[1])
    x[1] = 0.0
    x.T[...] = 5.0
    assert y[2, 1].item() == 12.0 and total.item() == 22.0
    assert lw.sum(x).item() == 60.0


def test_gradients_flow_through_writes_to_views():
    def loss(x):
        x = x + 0.0
        view = x[1:]
        view *= x[0]
        x.T[0] = 3.0 * x[0, 1]
        return lw.sum(x * x)

    x = np.arange(1.0, 7.0).reshape(3, 2)
    given = np.asarray(lw.grad(loss)(lw.asarray(x)))
    for place in np.ndindex(3, 2):
        ends = []
        for by in (1e-6, -1e-6):
            moved = x.copy()
            moved[place] += by
            ends.append(float(loss(lw.asarray(moved))))
        np.testing.assert_allclose(given[place], (ends[0] - ends[1]) / 2e-6, rtol=1e-6)


def test_a_jitted_function_writes_into_its_arguments():
    @lw.jit
    def write(x, others):
        x[0] = 1.0
        others["b"][1:] += x[0]
        return x + 0.0

    x, b, c = lw.zeros(3), np.zeros(3), lw.zeros((2, 3))
    for row in c:
        assert write(row, {"b": b}).tolist() == [1.0, 0.0, 0.0]
    assert write(x, {"b": b}).tolist() == x.tolist() == [1.0, 0.0, 0.0]
    assert b.tolist() == [0.0, 3.0, 3.0] and c.tolist() == [[1.0, 0.0, 0.0]] * 2


def test_a_jitted_function_sees_that_arguments_share_elements():
    @lw.jit
    def write(x, y):
        x[...] = 1.0
        y += x
        return y * 10.0

    x = lw.zeros(4)
    assert write(x[:3], x[1:]).tolist() == [20.0, 20.0, 10.0]
    assert x.tolist() == [1.0, 2.0, 2.0, 1.0]
    assert write(lw.zeros(2), lw.zeros(2)).tolist() == [10.0, 10.0]
    assert write(x, x).tolist() == [20.0] * 4


def test_an_array_from_outside_cannot_be_written_in_a_trace():
    log = lw.zeros(3)

    @lw.jit
    def write(x):
        log[0] = 1.0
        return x

    for call in (lambda: write(lw.ones(2)), lambda: lw.vmap(lambda x: log.__iadd__(x))(lw.ones((2, 3)))):
        with pytest.raises(lw.TracedError, match="outside"):
            call()
    assert log.tolist() == [0.0] * 3
    lw.grad(lambda x: log.__setitem__(1, x) or x * 2.0)(lw.asarray(3.0))
    assert log.tolist() == [0.0, 3.0, 0.0]


def test_views_of_variables_show_the_value_that_they_have():
    variable = lw.Variable(start())
    row, turned = variable[1], variable.T
    step = lw.jit(lambda: variable.set(variable * 2.0))
    step()
    assert row.tolist() == [8.0, 10.0, 12.0, 14.0]
    row[1:3] = 0.0
    turned[0] += 1.0
    assert variable.tolist() == [[1.0, 2.0, 4.0, 6.0], [9.0, 0.0, 0.0, 14.0], [17.0, 18.0, 20.0, 22.0]]


def test_a_row_does_not_hold_what_it_is_a_part_of_for_ever():
    big = (lw.ones((512, 512)) + 0.0).realize()
    row = big[0]
    used = row.device.memory()[0]
    del big
    row.tolist()
    gc.collect()
    assert row.device.memory()[0] < used


def test_take_counts_negative_indices_from_the_end_once():
    x = lw.asarray([10, 20, 30])
    assert lw.take(x, lw.asarray([-1, -3, 2])).tolist() == [30, 10, 30]
    wrong = [[-4], [-6], [3], [-(2**63)], [2**63 - 1]]
    for index in [*(lw.asarray(one) for one in wrong), lw.asarray([2**64 - 1], dtype=lw.uint64)]:
        with pytest.raises(IndexError):
            lw.take(x, index)
        with pytest.raises(IndexError):
            lw.take_along_axis(x, index)
        with pytest.raises(IndexError):
            x[index]
    for dtype in (lw.int8, lw.uint8, lw.int32, lw.uint64):
        with pytest.raises(IndexError):
            x[lw.asarray([3], dtype=dtype)]


@pytest.mark.parametrize("there", [True, False])
def test_slices_and_indices_at_the_limits_of_64_bits(there):
    limits = (None, 0, 1, -1, 2**63 - 1, -(2**63), 2**63, -(2**64), 2**62, 2)
    expected = np.arange(5)
    x = lw.arange(5) if there else lw.arange(5) + 0
    x = x.realize() if there else x
    for start in limits:
        for stop in limits:
            for step in limits:
                key = slice(start, stop, step)
                if step == 0:
                    with pytest.raises(ValueError):
                        x[key]
                    continue
                assert x[key].shape == expected[key].shape
                if (start, stop) in ((1, None), (-1, -(2**63))):
                    assert x[key].tolist() == expected[key].tolist()
    for at in limits[4:-1]:
        with pytest.raises(IndexError):
            x[at]
        with pytest.raises(IndexError):
            x[at] = 1


def test_reshape_finds_a_size_beside_a_dynamic_axis():
    halves = lw.jit(lambda x: lw.reshape(x, (2, -1)) * 2.0, dynamic=[(0, 0)])
    for rows in (3, 5):
        x = np.arange(rows * 4.0).reshape(rows, 4)
        np.testing.assert_array_equal(np.asarray(halves(lw.asarray(x))), x.reshape(2, -1) * 2.0)
    with pytest.raises(ValueError, match="reshape: .*not known while the function is traced"):
        lw.jit(lambda x: lw.reshape(x, (8, -1)), dynamic=[(0, 0)])(lw.zeros((2, 4)))
