"""Memory shared with others: what nobody can write is not copied, shown by addresses; other memory is read at once."""

from __future__ import annotations

import array
import copy
import gc
import io
import pickle
import threading
import time
import weakref

import loopwright as lw
import numpy as np
import pytest

DTYPES = [
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "float32", "float64", "complex64", "complex128",
]  # fmt: skip


def address(x) -> int:
    if isinstance(x, lw.Array):
        return np.from_dlpack(x, copy=False).ctypes.data
    return np.asarray(x).__array_interface__["data"][0]


def numbers(dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    rng = np.random.default_rng()
    if dtype == "bool":
        return np.asarray(rng.integers(0, 2, shape)).astype(bool)
    if dtype.startswith("complex"):
        return np.asarray(rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(dtype)
    return np.asarray(rng.normal(size=shape) * 50).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (7,), (3, 4), (2, 0, 3), (2, 3, 4)])
def test_there_and_back(dtype, shape):
    given = numbers(dtype, shape)
    x = lw.asarray(given)
    assert x.shape == shape and str(x.dtype) == dtype
    np.testing.assert_array_equal(np.asarray(x), given)
    np.testing.assert_array_equal(np.from_dlpack(x), given)
    np.testing.assert_array_equal(np.asarray(lw.from_dlpack(given)), given)


def protected(x: np.ndarray) -> np.ndarray:
    x.flags.writeable = False
    return x


# Booleans are copied: their bytes may be neither 0 nor 1.
@pytest.mark.parametrize("dtype", [name for name in DTYPES if not name.startswith(("complex", "bool"))])
def test_numpy_that_is_read_only_goes_in_and_out_without_a_copy(dtype):
    given = protected(numbers(dtype, (130, 130)))
    x = lw.asarray(given)
    assert address(x) == given.ctypes.data
    assert np.from_dlpack(x).ctypes.data == given.ctypes.data
    assert address(lw.from_dlpack(given)) == given.ctypes.data
    assert address(lw.asarray(given, copy=True)) != given.ctypes.data
    # What comes back from us is read-only memory of ours.
    assert address(lw.asarray(np.asarray(x))) == given.ctypes.data


def test_memory_that_others_can_write_is_copied_or_refused():
    given = numbers("float32", (33, 5))
    seen = given[:]
    seen.flags.writeable = False
    for other in (given, seen, array.array("d", [1.0, 2.0]), bytearray(8)):
        assert address(lw.asarray(other)) != address(other)
        with pytest.raises(ValueError, match="copy is forbidden"):
            lw.asarray(other, copy=False)
    with pytest.raises(ValueError, match="copy is forbidden"):
        lw.from_dlpack(given, copy=False)


@pytest.mark.parametrize(
    "lend",
    [
        lw.asarray,
        lw.from_dlpack,
        memoryview,
        lambda x: x,
        lambda x: lw.asarray(x[::2, ::-1]),
        lambda x: lw.Variable(x),
        lambda x: [x[0], x[1]],
        lambda x: lw.jit(lambda y: y)(x),
        lambda x: lw.jit(lambda y: {"a": y[1:].T})(x)["a"],
    ],
    ids=["asarray", "dlpack", "memoryview", "operand", "strided", "variable", "list", "jit", "jit_view"],
)
@pytest.mark.parametrize("dtype", ["float32", "int64", "bool", "complex128"])
def test_later_writes_to_lent_memory_change_no_result(lend, dtype):
    if lend is memoryview and dtype == "complex128":
        pytest.skip("numpy's memory views have another format for complex numbers")
    given = numbers(dtype, (8, 6)) if dtype != "bool" else np.ones((8, 6), dtype=bool)
    try:
        lent = lend(given)
    except TypeError:
        assert dtype == "complex128"  # Variables are of real numbers.
        return
    if isinstance(lent, (list, memoryview)):
        lent = lw.asarray(lent)
    x = lw.zeros((), dtype=lw.int8) + lent if isinstance(lent, np.ndarray) else lent
    y = x * 2 + 1
    expected = np.asarray(lw.asarray(np.array(x))) * 2 + 1
    given[...] = 0
    np.testing.assert_array_equal(np.asarray(y), expected)
    np.testing.assert_array_equal(np.asarray(x * 2 + 1), expected)


def test_a_batch_buffer_that_is_refilled_gives_every_batch():
    buffer = np.empty((4, 3), dtype="float32")
    double = lw.jit(lambda x: x * 2.0)
    lazy, compiled = [], []
    for at in range(3):
        buffer[...] = at
        lazy.append(lw.asarray(buffer) * 2.0)
        compiled.append(double(buffer))
    for at in range(3):
        assert lazy[at].tolist() == compiled[at].tolist() == [[2.0 * at] * 3] * 4


def test_a_thread_that_writes_lent_memory_changes_no_result_that_was_asked_for():
    buffer = np.zeros(4096, dtype="float64")
    stop = threading.Event()
    # The lock makes of each value one batch; what is computed is read outside of it.
    lock = threading.Lock()

    def write():
        at = 0.0
        while not stop.is_set():
            at += 1.0
            with lock:
                buffer[:] = at

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(50):
            with lock:
                asked = buffer[0] * 2.0 + 1.0
                y = lw.asarray(buffer) * 2.0 + 1.0
            while buffer[0] * 2.0 + 1.0 == asked:
                time.sleep(0)
            np.testing.assert_array_equal(np.asarray(y), np.full(4096, asked))
    finally:
        stop.set()
        writer.join()


def test_copies_for_numpy_can_be_written_and_change_nothing():
    x = lw.asarray([1.0, 2.0])
    for copied in (np.array(x), np.asarray(x, copy=True), np.from_dlpack(x, copy=True), x.__array__(copy=True)):
        copied[0] = 5.0
        assert copied.tolist() == [5.0, 2.0]
    assert np.asarray(x, dtype="float64").flags.writeable
    assert x.tolist() == [1.0, 2.0]
    seen = np.asarray(x)
    x[0] = 7.0
    assert seen.tolist() == [1.0, 2.0]


def test_what_was_computed_is_given_where_it_lies():
    x = lw.asarray(numbers("float32", (256, 64))) * 2.0
    first, second = np.asarray(x), memoryview(x)
    assert first.ctypes.data == address(second)
    used, _ = x.device.memory()
    np.asarray(x)
    assert x.device.memory()[0] == used
    y = x + 1.0
    first, second = np.from_dlpack(y), np.from_dlpack(y)
    assert first.ctypes.data == second.ctypes.data and not first.flags.writeable


def test_what_is_lent_stays_as_it_is():
    @lw.jit
    def double(x):
        return x * 2.0

    kept = []
    for at in range(20):
        x = lw.full((128, 64), float(at))
        kept.append((at, np.asarray(double(x))))
    for at, result in kept:
        assert (result == 2.0 * at).all()


def test_many_elements_are_written_where_they_lie():
    x = lw.ones(1 << 12) + 0.0
    pending, at = x * 2.0, address(x)
    pending.tolist()
    seen = np.asarray(x)
    assert seen.flags.writeable and seen.ctypes.data == at
    seen[0] = 5.0
    # Whoever asks again shares it, and the array itself has what was written.
    assert np.shares_memory(np.asarray(x), seen) and x[0].item() == 5.0
    # What is computed from the array, and what the array is given, is not what numpy has.
    doubled = x * 2.0
    x[1] = 7.0
    seen[2] = 3.0
    assert seen[:3].tolist() == [5.0, 1.0, 3.0] and x[:3].tolist() == [5.0, 7.0, 3.0]
    assert doubled[:3].tolist() == [10.0, 2.0, 2.0] and pending[:3].tolist() == [2.0, 2.0, 2.0]


def test_writes_into_a_copy_of_a_part_and_into_all_of_an_array_are_both_seen():
    x = lw.zeros((300, 33)) + 0.0
    part, whole = np.asarray(x[:, 1:]), np.asarray(x)
    part[0, 0], whole[1, 0] = 5.0, 7.0
    assert (x[0, 1].item(), x[1, 0].item()) == (5.0, 7.0)


def test_many_elements_that_numpy_let_go_of_are_not_copied():
    x = lw.ones(1 << 12) + 0.0
    lw.realize(x)
    at = address(x)
    for value in range(3):
        np.asarray(x)[0] = value
        assert address(x) == at
    assert x[:2].tolist() == [2.0, 1.0]


def test_formulas_that_wait_keep_many_elements_as_they_were():
    x = lw.ones(1 << 12) + 0.0
    lw.realize(x)
    waiting = x + 1.0
    np.asarray(x)[:] = 9.0
    assert waiting[0].item() == 2.0 and x[0].item() == 9.0
    # Memory that came in read-only goes out so.
    given = np.ones(1 << 12)
    given.flags.writeable = False
    kept = np.asarray(lw.asarray(given))
    assert kept.ctypes.data == given.ctypes.data and not kept.flags.writeable


def test_compiled_code_writes_into_many_elements():
    x = lw.zeros(1 << 12)
    (np.ctypeslib.ctypes.c_char * 8).from_buffer(x)[0:4] = np.float32(5.0).tobytes()
    assert x[:2].tolist() == [5.0, 0.0]
    ndimage = pytest.importorskip("scipy.ndimage")
    into = lw.zeros((70, 70), dtype=lw.float64)
    given = np.arange(4900.0).reshape(70, 70)
    ndimage.gaussian_filter(given, 2.0, output=np.asarray(into))
    np.testing.assert_array_equal(np.asarray(into), ndimage.gaussian_filter(given, 2.0))


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes_are_those_that_compiled_code_of_numpy_knows_by_number(dtype):
    assert np.asarray(lw.zeros(3, dtype=dtype)).dtype.num == np.dtype(dtype).num


def test_few_elements_are_given_by_dlpack_as_a_copy_that_can_be_written():
    for x in (lw.asarray([1.0, 2.0]), lw.ones(2) * lw.asarray([1.0, 2.0]), lw.asarray([1.0, 2.0])[:]):
        given = np.from_dlpack(x)
        given[0] = 5.0
        assert given.tolist() == [5.0, 2.0] and x.tolist() == [1.0, 2.0]
        assert not np.from_dlpack(x, copy=False).flags.writeable
    assert not np.from_dlpack(lw.ones((128, 64)) + 0.0).flags.writeable


def test_numpy_can_tell_that_few_elements_are_shared():
    # scikit-learn and others copy before they write where memory may be shared.
    x = lw.asarray([1.0, 2.0, 3.0])
    lent = np.asarray(x)
    assert np.may_share_memory(lent, x) and np.shares_memory(np.asarray(x), lent)
    assert not np.may_share_memory(lent, np.asarray(lw.asarray([1.0, 2.0, 3.0])))
    # What was lent stays as it was made, and what is written there is in the array.
    x[0] = 5.0
    again = np.asarray(x)
    assert lent[0] == 1.0 and again[0] == 5.0 and not np.may_share_memory(lent, again)
    lent[2] = 7.0
    again[1] = 6.0
    assert x.tolist() == [5.0, 6.0, 7.0]
    del lent, again
    assert np.asarray(x).tolist() == [5.0, 6.0, 7.0]


def test_scikit_learn_leaves_the_arrays_it_is_given_as_they_are():
    preprocessing = pytest.importorskip("sklearn.preprocessing")
    given = np.random.default_rng(0).normal(size=(30, 10))
    x = lw.asarray(given)
    for scaler in (preprocessing.MaxAbsScaler(), preprocessing.MinMaxScaler(), preprocessing.StandardScaler()):
        np.testing.assert_allclose(scaler.fit_transform(x), scaler.fit_transform(given), rtol=1e-12)
        np.testing.assert_array_equal(np.asarray(x), given)


@pytest.mark.parametrize("dtype", DTYPES)
def test_what_numpy_writes_into_few_elements_is_in_the_array(dtype):
    given = numbers(dtype, (3, 4))
    x, one = lw.asarray(given), np.ones((), dtype)
    before = x[1, :] if dtype == "bool" else x[1, :] + x[1, :] - x[1, :]
    seen = np.asarray(x)
    seen[1, 2] = one
    given[1, 2] = one
    # While it is held, and after that.
    np.testing.assert_array_equal(np.asarray(x), given)
    seen[:, 0] = given[:, 0] = one
    del seen
    np.testing.assert_array_equal(np.asarray(x), given)
    assert before.shape == (4,)


def test_what_numpy_writes_into_a_view_is_in_the_array():
    x = lw.asarray(np.arange(24.0).reshape(4, 6))
    want = np.arange(24.0).reshape(4, 6)
    for of in (lambda a: a[1:, ::2], lambda a: a.T[::-1, 1:3], lambda a: a.reshape((2, 12))[:, 5], lambda a: a[2, 3:4]):
        seen = np.asarray(of(x))
        seen[...] = seen * 2.0 + 1.0
        of(want)[...] = of(want) * 2.0 + 1.0
        np.testing.assert_array_equal(np.asarray(x), want)


def test_writes_of_both_sides_are_kept_and_formulas_stay():
    x = lw.asarray([1.0, 2.0, 3.0])
    doubled, seen = x * 2.0, np.asarray(x)
    seen[0] = 10.0
    x[1] = 20.0
    seen[2] = 30.0
    assert x.tolist() == [10.0, 20.0, 30.0] and doubled.tolist() == [2.0, 4.0, 6.0]
    # What was given shows the array as it was then.
    assert seen.tolist() == [10.0, 2.0, 30.0]
    seen[1] = 5.0
    x[...] = lw.asarray([7.0, 8.0, 9.0])
    assert x.tolist() == [7.0, 8.0, 9.0]


def test_a_view_alone_keeps_what_numpy_writes():
    x = lw.asarray([[1.0, 2.0], [3.0, 4.0]])[1]
    seen = np.asarray(x)
    assert x.tolist() == [3.0, 4.0]
    seen[0] = 5.0
    assert x.tolist() == [5.0, 4.0]


def test_bytes_that_are_no_booleans_become_some():
    x = lw.zeros(3, dtype=lw.bool)
    np.asarray(x).view(np.uint8)[:] = [0, 7, 255]
    assert x.tolist() == [False, True, True]


def test_buffers_are_written_where_elements_are_few():
    x = lw.zeros(2)
    (np.ctypeslib.ctypes.c_char * 8).from_buffer(x)[0:4] = np.float32(5.0).tobytes()
    assert x.tolist() == [5.0, 0.0]
    with pytest.raises((BufferError, TypeError)):
        (np.ctypeslib.ctypes.c_char * 16).from_buffer(lw.broadcast_to(x, (2, 2)))


def test_who_cannot_be_told_that_memory_is_read_only_gets_a_copy():
    class Old:
        """Asks as consumers did before DLPack had versions."""

        def __init__(self, x):
            self.x = x

        def __dlpack__(self, *, stream=None):
            return self.x.__dlpack__()

        def __dlpack_device__(self):
            return self.x.__dlpack_device__()

    x = lw.ones((128, 64)) + 0.0
    assert np.from_dlpack(Old(x)).ctypes.data != address(x)
    assert np.from_dlpack(x).ctypes.data == address(x)
    np.testing.assert_array_equal(np.from_dlpack(Old(x)), np.asarray(x))
    # The standard's suite asks for this without a version.
    assert x.__dlpack__(copy=False) is not None


def test_strided_memory_is_copied_or_refused():
    given = np.arange(24.0).reshape(4, 6)[::2, 1::2]
    x = lw.asarray(given)
    np.testing.assert_array_equal(np.asarray(x), given)
    np.testing.assert_array_equal(np.asarray(lw.from_dlpack(given)), given)
    backwards = np.arange(5.0)[::-1]
    np.testing.assert_array_equal(np.asarray(lw.asarray(backwards)), backwards)
    with pytest.raises(ValueError, match="copy is forbidden"):
        lw.asarray(given, copy=False)


def test_memory_is_held_as_long_as_it_is_used():
    given = protected(np.arange(10.0))
    gone = weakref.ref(given)
    x = lw.asarray(given)
    del given
    gc.collect()
    assert gone() is not None
    np.testing.assert_array_equal(np.asarray(x), np.arange(10.0))
    del x
    gc.collect()
    lw.asarray(1.0)
    gc.collect()
    assert gone() is None
    y = np.asarray(lw.asarray(np.arange(5.0)) + 1.0)
    gc.collect()
    np.testing.assert_array_equal(y, np.arange(5.0) + 1.0)


def test_other_buffers():
    assert lw.asarray(array.array("d", [1.0, 2.0])).tolist() == [1.0, 2.0]
    assert lw.asarray(bytearray(b"\x01\x02")).tolist() == [1, 2]
    assert lw.asarray(memoryview(b"ab")).tolist() == [97, 98]
    assert lw.asarray(np.float32(1.5)).dtype == lw.float32
    assert bytes(memoryview(lw.asarray([1], dtype=lw.int16))) == b"\x01\x00"


@pytest.mark.parametrize("size", [8, 8192], ids=["few", "many"])
def test_a_write_by_numpy_reaches_the_array_on_every_path(size):
    """Paths that share with `x`: what is written is in `x`."""
    ones = np.ones(size, "float32")
    paths = {
        "asarray": lambda x: np.asarray(x).__setitem__(0, 1),
        "array without a copy": lambda x: np.array(x, copy=False).__setitem__(0, 1),
        "__array__": lambda x: x.__array__().__setitem__(0, 1),
        "__array__ without a copy": lambda x: x.__array__(copy=False).__setitem__(0, 1),
        "memoryview": lambda x: memoryview(x).__setitem__(0, 1.0),
        "frombuffer": lambda x: np.frombuffer(x, "float32").__setitem__(0, 1),
        "readinto": lambda x: io.BytesIO(ones.tobytes()).readinto(x),
        "out": lambda x: np.add(ones, 0, out=np.asarray(x)),
        "in place": lambda x: np.asarray(x).__iadd__(1),
        "copyto": lambda x: np.copyto(np.asarray(x), ones),
        "sort": lambda x: np.asarray(x[:]).sort(),
        "fill_diagonal of a view": lambda x: np.fill_diagonal(np.asarray(x.reshape((2, -1))), 1),
    }
    for name, write in paths.items():
        x = lw.zeros(size)
        x[-1] = 2.0
        write(x)
        assert x[0].item() == (0.0 if name == "sort" else 1.0), name


@pytest.mark.parametrize("size", [8, 8192], ids=["few", "many"])
def test_a_copy_for_numpy_never_reaches_the_array(size):
    x = lw.zeros(size)
    for copied in (
        np.array(x), np.asarray(x, copy=True), np.from_dlpack(x, copy=True), x.__array__(copy=True),
        np.asarray(x, dtype="float64"), x.__array__(np.dtype("float64")),
    ):  # fmt: skip
        copied[0] = 1.0
        assert copied[0] == 1.0 and x[0].item() == 0.0
    assert not np.from_dlpack(x, copy=False).flags.writeable
    with pytest.raises(ValueError, match="copy"):
        x.__array__(np.dtype("float64"), copy=False)
    # numpy takes no arrays of others to write into.
    with pytest.raises(TypeError, match="ArrayType"):
        np.add(np.ones(size), 1, out=x)


def test_in_place_operators_of_numpy_with_our_arrays_make_a_new_array_of_ours():
    given = np.ones(3)
    changed = given
    changed += lw.ones(3, dtype=lw.float64)
    assert isinstance(changed, lw.Array) and changed.tolist() == [2.0] * 3
    assert given.tolist() == [1.0] * 3


def test_operators_with_numpy():
    x = lw.asarray(np.arange(3.0))
    for result in (x + np.ones(3), np.ones(3) + x, x * np.float64(2.0), np.float64(2.0) * x):
        assert isinstance(result, lw.Array)
        assert result.dtype == lw.float64
    np.testing.assert_array_equal(np.asarray(np.ones(3) - x), [1.0, 0.0, -1.0])


def test_lists():
    assert lw.asarray([[1, 2], [3, 4]]).dtype == lw.int64
    assert lw.asarray([1, 2.5]).dtype == lw.float32
    assert lw.asarray([True, False]).dtype == lw.bool
    assert lw.asarray([1, 2j]).dtype == lw.complex64
    assert lw.asarray([]).shape == (0,)
    assert lw.asarray([[], []]).shape == (2, 0)
    assert lw.asarray([lw.asarray([1.0, 2.0]), lw.asarray([3.0, 4.0])]).tolist() == [[1, 2], [3, 4]]
    with pytest.raises(ValueError, match="one length"):
        lw.asarray([[1, 2], [3]])
    with pytest.raises(TypeError, match="not str"):
        lw.asarray(["a"])
    with pytest.raises(OverflowError, match="300 does not fit in uint8"):
        lw.asarray([300], dtype=lw.uint8)


@pytest.mark.parametrize("dtype", DTYPES + ["bfloat16"])
def test_pickles_and_copies(dtype):
    x = lw.astype(lw.asarray([[1, 0, 1], [0, 1, 1]]), getattr(lw, dtype))
    for again in (pickle.loads(pickle.dumps(x)), copy.copy(x), copy.deepcopy(x)):
        assert again.dtype == x.dtype and again.shape == x.shape
        assert bool(lw.all(again == x))
    named = pickle.loads(pickle.dumps(lw.ones((2, 3)).named("row", "column")))
    assert named.names == ("row", "column")
    assert pickle.loads(pickle.dumps(lw.float32)) == lw.float32
    assert pickle.loads(pickle.dumps(x.device)) == x.device


def test_a_copy_does_not_change_with_the_first():
    x = lw.zeros(3)
    y = copy.copy(x)
    x[0] = 1.0
    x += 1.0
    assert x.tolist() == [2.0, 1.0, 1.0]
    assert y.tolist() == [0.0, 0.0, 0.0]


def test_bfloat16_through_dlpack():
    x = lw.asarray([1.0, 2.5, -3.0], dtype=lw.bfloat16)
    again = lw.from_dlpack(x)
    assert again.dtype == lw.bfloat16 and again.tolist() == [1.0, 2.5, -3.0]
    with pytest.raises(BufferError, match="bfloat16"):
        memoryview(x)


def test_devices():
    x = lw.asarray([1.0, 2.0], device="interp")
    assert x.device.name == "interp:0"
    assert (x + 1.0).device == x.device
    y = x.to_device("x86") if "x86:0" in map(str, lw.devices()) else x
    assert y.tolist() == [1.0, 2.0]
    if y.device != x.device:
        with pytest.raises(ValueError, match="to_device"):
            x + y
    with lw.use_device("interp"):
        assert lw.ones(2).device == x.device
    with pytest.raises(lw.Error, match="abacus"):
        lw.ones(2, device="abacus")


def test_variables_that_are_lent_move_on():
    variable = lw.nn.Parameter(lw.ones((128, 64)))
    double = lw.jit(lambda: variable.set(variable.get() * 2.0))
    lent = []
    for _ in range(6):
        double()
        lent.append(np.asarray(variable))
    assert [float(view[5, 5]) for view in lent] == [2.0, 4.0, 8.0, 16.0, 32.0, 64.0]
    assert all((view == view[0, 0]).all() for view in lent)
