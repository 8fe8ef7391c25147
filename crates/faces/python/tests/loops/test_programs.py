"""Lines 1 to 12 of the list of behaviours: programs, on every device and against the reference."""

from __future__ import annotations

import loopwright as lw
import numpy as np
import pytest
from loops_support import check, on_every_device, program
from loopwright.loops import Graph, op_table, ops, symbols


def counting(start: int, *shape: int, dtype: str = "f4") -> np.ndarray:
    return np.arange(start, start + int(np.prod(shape)), dtype=dtype).reshape(shape)


@on_every_device
def test_line_01_matrix_product(device):
    g = Graph()
    i, j, k = symbols("i j k")
    a = g.input("a", "f32", {i: 13, k: 7})
    b = g.input("b", "f32", {k: 7, j: 19})
    g.output("c", (a * b).sum(k))
    x, y = counting(-40, 13, 7), counting(-60, 7, 19)
    np.testing.assert_array_equal(check(g, device, a=x, b=y)["c"], x @ y)


@on_every_device
def test_line_02_broadcast(device):
    g = Graph()
    a = g.input("a", "i32", {"i": 3})
    b = g.input("b", "i32", {"j": 4})
    s = g.input("s", "i32")
    g.output("outer", a * b)
    g.output("scaled", a * s + 1)
    x, y = counting(1, 3, dtype="i4"), counting(2, 4, dtype="i4")
    results = check(g, device, a=x, b=y, s=np.int32(5))
    np.testing.assert_array_equal(results["outer"], np.outer(x, y))
    np.testing.assert_array_equal(results["scaled"], x * 5 + 1)


@on_every_device
def test_line_03_every_pointwise_operation(device):
    g = Graph()
    x, y = g.input("x", "f32", {"i": 5}), g.input("y", "f32", ["i"])
    c = g.input("c", "bool", ["i"])
    n, m = g.input("n", "i32", ["i"]), g.input("m", "i32", ["i"])
    w = g.input("w", "u64", ["i"])
    count = 0
    for name, arity, _ in op_table():
        takes = {1: (x,), 2: (x, y), 3: (x, y, x)}[arity]
        if name == "select":
            takes = (c, x, y)
        elif name == "threefry":
            takes = (w, w)
        elif name in {"not", "popcount", "clz", "ctz", "and", "or", "xor", "shl", "shr"}:
            takes = (n, m)[:arity]
        g.output(f"o_{name}", g.map(name, *takes))
        count += 1
    given = {
        "x": np.array([0.5, -1.25, 2.0, 0.0, 7.75], "f4"),
        "y": np.array([2.0, 3.0, -0.5, 1.0, 2.5], "f4"),
        "c": np.array([True, False, True, False, True]),
        "n": np.array([0, 1, -5, 12, 1 << 20], "i4"),
        "m": np.array([3, 1, 2, 31, 5], "i4"),
        "w": np.array([0, 1, 2, 3, 1 << 63], "u8"),
    }
    results = check(g, device, **given)
    assert len(results) == count == len(op_table()) > 60
    np.testing.assert_array_equal(results["o_abs"], np.abs(given["x"]))
    np.testing.assert_array_equal(results["o_copy"], given["x"])
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(results["o_log"], np.log(given["x"]), rtol=1e-6)


def test_line_03_ops_are_functions_methods_and_operators():
    g = Graph()
    x = g.input("x", "f32", {"i": 4})
    for name, arity, doc in op_table():
        function = getattr(ops, name, None) or getattr(ops, name + "_")
        assert doc.split(".")[0] in function.__doc__, (name, arity)
    g.output("a", ops.exp(x))
    g.output("b", x.exp())
    g.output("c", 2 - x / 4)
    given = np.array([0, 1, -2, 3], "f4")
    results = {name: np.asarray(value) for name, value in g.evaluate(x=given).items()}
    np.testing.assert_array_equal(results["a"], results["b"])
    np.testing.assert_array_equal(results["c"], 2 - given / 4)
    with pytest.raises(AttributeError, match="no op is called so"):
        x.exponential()
    with pytest.raises(TypeError, match="`shl` needs an integer dtype, not f32"):
        x << 2


@on_every_device
def test_line_04_reductions(device):
    g = Graph()
    x = g.input("x", "i32", {"i": 2, "j": 3, "k": 2})
    g.output("s", x.sum("j"))
    g.output("p", x.prod("i", "k"))
    g.output("most", x.max("i j k"))
    g.output("least", x.min("k", "i"))
    g.output("everything", x.sum())
    given = counting(1, 2, 3, 2, dtype="i4")
    results = check(g, device, x=given)
    np.testing.assert_array_equal(results["s"], given.sum(1))
    np.testing.assert_array_equal(results["p"], given.prod((0, 2)))
    np.testing.assert_array_equal(results["least"], given.min((0, 2)))
    assert results["most"] == 12 and results["everything"] == 78
    assert results["everything"].shape == ()


@on_every_device
def test_line_05_padding(device):
    # Asymmetric, with the value that the program names, and an op directly on the view.
    g = Graph()
    x = g.input("x", "f32", {"i": 3})
    g.output("y", x.pad("i", 1, 2, value=-7) * 2)
    results = check(g, device, x=np.array([1, 2, 3], "f4"))
    np.testing.assert_array_equal(results["y"], [-14, 2, 4, 6, -14, -14])

    # Ten pads stacked, each with another value.
    g = Graph()
    y = g.input("x", "f32", {"i": 2})
    for at in range(1, 11):
        y = y.pad(y.dims[0], 1, 1, value=at)
    g.output("y", y)
    results = check(g, device, x=np.array([100, 200], "f4"))
    np.testing.assert_array_equal(results["y"], [*range(10, 0, -1), 100, 200, *range(1, 11)])

    # Several dimensions, as one view.
    g = Graph()
    p, q = symbols("p q")
    x = g.input("x", "f32", {"i": 1, "j": 2})
    g.output("y", x.at(p - 1, q - 2, outside=0, dims={"p": 2, "q": 4}).exp() + 1)
    results = check(g, device, x=np.zeros((1, 2), "f4"))
    np.testing.assert_array_equal(results["y"], np.full((2, 4), 2))


@on_every_device
def test_line_06_concatenation(device):
    g = Graph()
    a, b = g.input("a", "i32", {"x": 2}), g.input("b", "i32", {"y": 3})
    g.output("z", g.concat([a, b], ["x", "y"], "z"))
    results = check(g, device, a=np.array([1, 2], "i4"), b=np.array([3, 4, 5], "i4"))
    np.testing.assert_array_equal(results["z"], [1, 2, 3, 4, 5])

    g = Graph()
    a, b = g.input("a", "i32", {"x": 1, "c": 2}), g.input("b", "i32", {"y": 2, "c": 2})
    c = g.input("c_", "i32", {"c": 2, "u": 3})
    g.output("rows", g.concat([a, b], ["x", "y"], "z"))
    g.output("columns", g.concat([a.transpose("c", "x"), c], ["x", "u"], "w"))
    given = {
        "a": np.array([[1, 2]], "i4"),
        "b": np.array([[3, 4], [5, 6]], "i4"),
        "c_": counting(7, 2, 3, dtype="i4"),
    }
    results = check(g, device, **given)
    np.testing.assert_array_equal(results["rows"], np.concatenate([given["a"], given["b"]]))
    np.testing.assert_array_equal(
        results["columns"], np.concatenate([given["a"].T, given["c_"]], 1)
    )


@on_every_device
def test_line_07_convolution_as_views(device):
    i, o, k = symbols("i o k")
    x5 = counting(1, 5)

    g = Graph()
    x, w = g.input("x", "f32", {"i": 5}), g.input("w", "f32", {"k": 3})
    g.output("y", (w * x[o + k]).sum(k))
    results = check(g, device, x=x5, w=np.array([1, 0, -1], "f4"))
    np.testing.assert_array_equal(results["y"], [-2, -2, -2])

    # Stride, dilation and padding.
    g = Graph()
    x, w = g.input("x", "f32", {"i": 5}), g.input("w", "f32", {"k": 2})
    g.dim(o, 3)
    g.output("y", (w * x.window("i", o, k, stride=2, dilation=2, before=1, outside=0)).sum(k))
    results = check(g, device, x=x5, w=np.array([1, 10], "f4"))
    np.testing.assert_array_equal(results["y"], [20, 42, 4])

    # Two dimensions, channels.
    c, h, w_, p, q, a, b = symbols("c h w p q a b")
    g = Graph()
    x = g.input("x", "f32", {c: 2, h: 3, w_: 3})
    f = g.input("f", "f32", {"o": 1, c: 2, a: 2, b: 2})
    g.output("y", (f * x[c, p + a, q + b]).sum(c, a, b))
    results = check(g, device, x=counting(0, 2, 3, 3), f=np.ones((1, 2, 2, 2), "f4"))
    np.testing.assert_array_equal(results["y"].ravel(), [52, 60, 76, 84])

    # Depthwise: each channel with a filter of its own.
    g = Graph()
    x, f = g.input("x", "f32", {c: 2, h: 3}), g.input("f", "f32", {c: 2, a: 2})
    g.output("y", (f * x[c, p + a]).sum(a))
    results = check(g, device, x=counting(1, 2, 3), f=np.array([[1, 1], [1, -1]], "f4"))
    np.testing.assert_array_equal(results["y"], [[3, 5], [-1, -1]])

    # Grouped: two groups of two channels.
    gr, d = symbols("g d")
    g = Graph()
    x, f = g.input("x", "f32", {c: 4, h: 3}), g.input("f", "f32", {gr: 2, "o": 1, d: 2, a: 2})
    g.output("y", (f * x[2 * gr + d, p + a]).sum(d, a))
    results = check(g, device, x=counting(1, 4, 3), f=np.ones((2, 1, 2, 2), "f4"))
    assert sorted(results["y"].ravel()) == [12, 16, 36, 40]


@on_every_device
def test_line_08_pooling(device):
    g = Graph()
    p, q, a, b = symbols("p q a b")
    x = g.input("x", "f32", {"h": 4, "w": 4})
    g.dim(a, 2), g.dim(b, 2)
    window = x[2 * p + a, 2 * q + b]
    g.output("most", window.max(a, b))
    g.output("mean", window.mean(a, b))
    given = counting(0, 4, 4)
    results = check(g, device, x=given)
    blocks = given.reshape(2, 2, 2, 2)
    np.testing.assert_array_equal(results["most"], blocks.max((1, 3)))
    np.testing.assert_array_equal(results["mean"], blocks.mean((1, 3)))


@on_every_device
def test_line_09_views_of_views(device):
    i, f = symbols("i f")
    g = Graph()
    x = g.input("x", "i32", {"i": 2, "j": 3})
    y = g.input("y", "i32", {"n": 6})
    g.output("turned", x.transpose("j", "i"))
    g.output("flat", x.flatten("i", "j", to="f"))
    g.output("column", x[i, 1])
    g.output("slice", y.slice("n", 1, 6, step=2))
    g.output("flipped", x.flip("j"))
    g.output("blocks", y.split("n", "a", "b", 2))
    # A slice of a flip of a transpose.
    g.output("third", x.transpose("j", "i").flip("j").slice("j", 1, 3))
    a, b = counting(1, 2, 3, dtype="i4"), counting(1, 6, dtype="i4")
    results = check(g, device, x=a, y=b)
    np.testing.assert_array_equal(results["turned"], a.T)
    np.testing.assert_array_equal(results["flat"], a.ravel())
    np.testing.assert_array_equal(results["column"], a[:, 1])
    np.testing.assert_array_equal(results["slice"], b[1:6:2])
    np.testing.assert_array_equal(results["flipped"], a[:, ::-1])
    np.testing.assert_array_equal(results["blocks"], b.reshape(3, 2))
    np.testing.assert_array_equal(results["third"], a.T[::-1][1:])


@pytest.mark.parametrize(("stride", "size"), [(1, 10), (2, 17)])
def test_line_10_sizes_are_inferred_both_ways(stride, size):
    o, k = symbols("o k")

    def convolution(**sizes):
        g = Graph()
        x = g.input("x", "f32", {"i": sizes.get("i")})
        w = g.input("w", "f32", {"k": 3})
        g.dim(o, sizes.get("o")) if "o" in sizes else None
        g.output("y", (w * x[stride * o + k]).sum(k))
        return {name: extent.value for name, extent in g.dims.items()}

    assert convolution(o=8)["i"] == size
    assert convolution(i=size)["o"] == 8


def test_line_11_contradicting_sizes():
    g = Graph()
    a = g.input("a", "f32", {"i": 3})
    b = g.input("b", "f32", {"i": 4})
    g.output("c", a + b)
    with pytest.raises(ValueError, match="size of `i` is contradicted: 3 .*but 4 ") as caught:
        g.plan()
    message = str(caught.value)
    for part in ["input `a` at test_programs.py:", "input `b` at test_programs.py:"]:
        assert part in message

    with pytest.raises(ValueError) as caught:
        program("input a: f32[i=3]\ninput b: f32[i=4]\noutput c = a + b\n")
    for part in ["`i`", "3", "4", "program.lw:2:14", "program.lw:3:14", "^"]:
        assert part in str(caught.value)


@on_every_device
def test_line_12_chained_convolutions(device):
    a, b, k, n = symbols("a b k n")
    g = Graph()
    x = g.input("x", "f32", {"i": 7})
    v, w = g.input("v", "f32", {k: 3}), g.input("w", "f32", {n: 2})
    first = (v * x[a + k]).sum(k)
    g.output("y", (w * first[b + n]).sum(n))
    results = check(g, device, x=counting(1, 7), v=np.ones(3, "f4"), w=np.array([-1, 1], "f4"))
    np.testing.assert_array_equal(results["y"], [3, 3, 3, 3])


@on_every_device
def test_look_ups_scans_and_sorts(device):
    g = Graph()
    i, j = symbols("i j")
    x = g.input("x", "i32", {"i": 4, "j": 3})
    at = g.input("at", "i64", {"n": 5})
    g.output("rows", x[at, j])
    g.output("outside", x.gather("i", at, outside=-1))
    g.output("sums", x.scan("sum", "i"))
    g.output("sorted", x.sort("i", descending=True))
    g.output("first", x.argmax("i"))
    g.output("lower", x.at(i, j, where=[j < i], outside=0))
    given = np.array([[3, 1, 2], [9, 9, 0], [4, 4, 8], [1, 5, 8]], "i4")
    where = np.array([0, 3, 1, 1, 2])
    results = check(g, device, x=given, at=where)
    np.testing.assert_array_equal(results["rows"], given[where])
    np.testing.assert_array_equal(results["outside"], given[where])
    np.testing.assert_array_equal(results["sums"], given.cumsum(0))
    np.testing.assert_array_equal(results["sorted"], -np.sort(-given, 0))
    np.testing.assert_array_equal(results["first"], given.argmax(0))
    np.testing.assert_array_equal(results["lower"], np.tril(given, -1))


def test_mistakes_are_errors_at_once():
    g, other = Graph(), Graph()
    i, q = symbols("i q")
    x, n = g.input("x", "f32", {"i": 4}), g.input("n", "i64", {"m": 2})
    y, m = other.input("y", "f32", {"i": 4}), other.input("m", "i64", {"j": 9})
    for mistake in [
        lambda: x + y,
        lambda: x[m],
        lambda: x.gather("i", m),
        lambda: x.scatter("i", m, x),
    ]:
        with pytest.raises(ValueError, match="another graph"):
            mistake()
    with pytest.raises(ValueError, match="`x` has 1 dimension, and 2 indices are given"):
        x[i, 0]
    with pytest.raises(ValueError, match="no dimension `q`; its dimensions are \\[i\\]"):
        x.sum("q")
    with pytest.raises(TypeError, match="0.5 is no value of i64"):
        n + 0.5
    with pytest.raises(TypeError, match="`add` takes 2 operands, and 1 are given"):
        g.map("add", x)
    with pytest.raises(ValueError, match="there is no op `plus`"):
        g.map("plus", x, x)
    with pytest.raises(TypeError, match="unknown dtype|f31"):
        g.input("z", "f31")
    with pytest.raises(ValueError, match="`x` is already the name of a node"):
        g.input("x", "f32")
    with pytest.raises(TypeError, match="is no index expression"):
        x[1.5]
    with pytest.raises(OverflowError):
        g.input("small", "u8", {"i": 4}) + 300
    with pytest.raises(ValueError, match="no output|no result"):
        g.plan()
    # What failed left nothing behind: `q` is no dimension, and the rest goes on.
    g.output("y", x * 2)
    assert "q" not in g.dims
    # A view that may leave its array says so where the graph is first used.
    g.output("z", x.at(i + 1, dims={"i": 4}))
    with pytest.raises(ValueError, match="may be outside 0..4"):
        g.plan()
    with pytest.raises(TypeError, match="no truth value"):
        bool(x > 0)


def test_dimensions_may_come_from_a_generator_that_looks_at_the_graph():
    g = Graph()
    a = g.input("a", "f32", {"i": 2, "j": 3})
    b = g.input(
        "b", "f32", (name for name in ("i", "j", "q") if name in a.dims and a.dtype == "f32")
    )
    g.output("c", (a + b).sum(name for name in a.dims if g["a"].name))
    assert b.dims == ("i", "j")
    assert g.evaluate(a=[[1] * 3] * 2, b=[[2] * 3] * 2)["c"].item() == 18


class Lending:
    """Another library's array, which lends its memory by DLPack alone."""

    def __init__(self, array):
        self.array = array
        self.shape = array.shape

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_arrays_come_by_dlpack_and_say_the_sizes():
    graph = program("size N, M\ninput x: f32[i=N, j=M]\noutput y = sum[i](x)")
    x = np.arange(12, dtype="f4").reshape(3, 4)
    made = graph.plan(target="interp").compile()
    for given in (Lending(x), Lending(x[::-1, ::2]), x[:, ::-1]):
        expected = np.asarray(getattr(given, "array", given)).sum(0)
        np.testing.assert_array_equal(np.asarray(made(x=given)["y"]), expected)
    with pytest.raises(ValueError, match=r"`x` needs f32\[3, 4\], and an array of float64"):
        made(x=Lending(x.astype("f8")))


def test_arrays_of_dtypes_without_a_format_are_taken():
    graph = program("size N\ninput x: bf16[i=N]\noutput y = x + x")
    x = lw.asarray([0.5, 1.0, -2.0], dtype=lw.bfloat16)
    got = graph.plan(target="interp").compile()(x=x)["y"]
    assert got.dtype == lw.bfloat16 and got.tolist() == [1.0, 2.0, -4.0]
