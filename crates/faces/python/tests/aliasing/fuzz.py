"""Random programs of views and writes beside numpy.

`python tests/aliasing/fuzz.py --seed 0 --programs 20000` runs programs `seed` to `seed + programs` and prints those that
differ; each is made from its number alone, so that a run is taken up again with another `--seed`. A program makes views of
views (slices with steps of both signs, new axes, permutations, flips, reshapes, broadcasts), copies, writes that overlap with
what they read, in-place operators, jitted calls and arrays of memory that is written later. It runs as it is, or all of it in
`jit`, or differentiated; at the end every array has to be equal to numpy's, element by element. Numbers are small, so that
all arithmetic is exact.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import loopwright as lw

DTYPES = ("float64", "float64", "float32", "int64", "int32", "complex128")

Step = tuple[Any, ...]


class Different(AssertionError):
    """A program gives other numbers than numpy."""


def dense(x: Any) -> np.ndarray:
    """A copy in row-major order, as all results of ours are."""
    return np.array(x, order="C", copy=True)


def element(x: Any) -> np.ndarray:
    """What an index gives; a scalar of numpy's as an array of its own."""
    return x if isinstance(x, np.ndarray) else np.array(x)


def full_key(key: tuple[Any, ...]) -> tuple[Any, ...]:
    """The key with `...`: without it, numpy gives elements that are no arrays."""
    return key if Ellipsis in key else (*key, Ellipsis)


class Numpy:
    """What programs do, with numpy's arrays."""

    def start(self, x: np.ndarray) -> np.ndarray:
        return x.copy()

    lend = start

    def index(self, x, key):
        return element(x[key])

    def row(self, x, at):
        return element(x[at])

    def permute(self, x, axes):
        return np.permute_dims(x, axes)

    def transpose(self, x):
        return np.matrix_transpose(x)

    def flip(self, x, axes):
        # Without axes, numpy gives an element.
        return np.flip(x, axes) if x.ndim else x[...]

    def expand(self, x, axis):
        return np.expand_dims(x, axis)

    def squeeze(self, x, axis):
        return np.squeeze(x, axis)

    def broadcast(self, x, shape):
        return np.broadcast_to(x, shape)

    def reshape(self, x, shape, copy):
        return dense(x).reshape(shape) if copy else np.reshape(x, shape, copy=copy)

    def fancy(self, x, places):
        return dense(x[np.asarray(places, dtype="int64")])

    def copied(self, x):
        return dense(x)

    def plus(self, x, y):
        return dense(x + y)

    def set(self, x, key, value):
        x[full_key(key)] = value

    def set_fancy(self, x, places, value):
        x[np.asarray(places, dtype="int64")] = value

    def in_place(self, x, op, y):
        {"+": np.add, "-": np.subtract, "*": np.multiply}[op](x, y, out=x)

    def call(self, x, y):
        x += y
        x[...] = x[::-1].copy() if x.ndim else x
        return dense(x - y)


class Ours:
    """The same with ours."""

    def start(self, x: np.ndarray):
        return lw.asarray(x, copy=True)

    def lend(self, x: np.ndarray):
        return lw.asarray(x)

    def index(self, x, key):
        return x[key]

    def row(self, x, at):
        return list(x)[at]

    def permute(self, x, axes):
        return lw.permute_dims(x, axes)

    def transpose(self, x):
        return x.T if x.ndim == 2 else x.mT

    def flip(self, x, axes):
        return lw.flip(x, axis=axes)

    def expand(self, x, axis):
        return lw.expand_dims(x, axis=axis)

    def squeeze(self, x, axis):
        return lw.squeeze(x, axis)

    def broadcast(self, x, shape):
        return lw.broadcast_to(x, shape)

    def reshape(self, x, shape, copy):
        return lw.reshape(x, shape, copy=copy)

    def fancy(self, x, places):
        return x[lw.asarray(places, dtype=lw.int64)]

    def copied(self, x):
        return lw.asarray(x, copy=True)

    def plus(self, x, y):
        return x + y

    def set(self, x, key, value):
        x[key] = value

    def set_fancy(self, x, places, value):
        x[lw.asarray(places, dtype=lw.int64)] = value

    def in_place(self, x, op, y):
        if op == "+":
            x += y
        elif op == "-":
            x -= y
        else:
            x *= y

    def call(self, x, y):
        return _called(x, y)


def _swap(x, y):
    x += y
    if x.ndim:
        x[...] = x[::-1]
    return x - y


def _called(x, y):
    # Looked up anew: a test puts another `jit` in its place.
    return lw.jit(_swap)(x, y) if lw.jit is not _JIT else _CALL(x, y)


_JIT = lw.jit
_CALL = lw.jit(_swap)


class Program:
    """A program: first arrays, and steps that were chosen while numpy ran them."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.random = random.Random(number)
        pick = self.random
        self.mode = pick.choices(("plain", "jit", "grad"), (60, 25, 15))[0]
        self.dtype = "float64" if self.mode == "grad" else pick.choice(DTYPES)
        shape = tuple(pick.choice((1, 2, 2, 3, 3, 4, 0)) for _ in range(pick.choice((1, 1, 2, 2, 3))))
        if self.mode == "grad":
            shape = tuple(max(size, 1) for size in shape)
        count = int(np.prod(shape))
        self.first = np.arange(1, count + 1).reshape(shape).astype(self.dtype)
        #: A second argument of the jitted function that is a view of the first, or nothing.
        self.shared = self.mode == "jit" and pick.random() < 0.3
        self.steps: list[Step] = []
        self.expected = self._made()

    def _made(self) -> list[np.ndarray]:
        machine = Numpy()
        buffers = [self._buffer()]
        arrays = [machine.start(self.first)]
        if self.shared:
            # Dense, as all arguments are to a function that is traced.
            arrays.append(arrays[0][self.first.shape[0] // 2 :])
        for _ in range(self.random.randint(3, 22)):
            step = self._chosen(arrays)
            if step is None:
                continue
            self.steps.append(step)
            run_step(machine, step, arrays, buffers)
        return [np.array(x) for x in arrays]

    def _buffer(self) -> np.ndarray:
        return np.arange(6).reshape(2, 3).astype(self.dtype)

    def _key(self, shape: tuple[int, ...]) -> tuple[Any, ...]:
        pick = self.random
        key: list[Any] = []
        for size in shape:
            if pick.random() < 0.15:
                key.append(None)
            roll = pick.random()
            if roll < 0.2 and size:
                key.append(pick.randrange(-size, size))
            elif roll < 0.85:
                ends = (None, *range(-size - 2, size + 3))
                steps = (None, 1, 1, -1, -1, 2, -2, 3, 2**63 - 1, -(2**63))
                key.append(slice(pick.choice(ends), pick.choice(ends), pick.choice(steps)))
            else:
                break
        if pick.random() < 0.3:
            key.insert(pick.randint(0, len(key)), Ellipsis)
        try:
            np.empty(shape)[full_key(tuple(key))]
        except IndexError:
            # What stands behind `...` is of another axis than it was chosen for.
            key = [slice(None, None, -1), ...] if shape else [...]
        return tuple(key)

    def _operand(self, arrays: list[np.ndarray], shape: tuple[int, ...]) -> Any:
        """A number, or the number of an array that is repeated to a shape."""
        fits = []
        for at, x in enumerate(arrays):
            try:
                if np.broadcast_shapes(x.shape, shape) == shape:
                    fits.append(at)
            except ValueError:
                pass
        if fits and self.random.random() < 0.75:
            return ("array", self.random.choice(fits))
        return ("number", self.random.randint(-3, 3))

    def _chosen(self, arrays: list[np.ndarray]) -> Step | None:
        pick = self.random
        at = pick.randrange(len(arrays))
        x = arrays[at]
        kinds = ["index"] * 5 + ["set"] * 6 + ["in_place"] * 6
        kinds += ["permute", "transpose", "flip", "expand", "squeeze", "broadcast", "reshape", "reshape", "row"]
        kinds += ["fancy", "set_fancy", "copied", "plus"]
        if self.mode == "plain":
            kinds += ["lend", "refill", "refill", "observe", "observe", "call"]
        kind = pick.choice(kinds)
        if kind == "index":
            return (kind, at, self._key(x.shape))
        if kind == "set":
            key = self._key(x.shape)
            return (kind, at, key, self._operand(arrays, x[full_key(key)].shape))
        if kind == "in_place":
            op = pick.choice("+-*")
            operand = self._operand(arrays, x.shape)
            if op == "*":
                operand = ("number", pick.choice((-1, 2, 0, -2)))
            return (kind, at, op, operand)
        if kind == "permute":
            return (kind, at, tuple(pick.sample(range(x.ndim), x.ndim)))
        if kind == "transpose":
            return (kind, at) if x.ndim >= 2 else None
        if kind == "flip":
            return (kind, at, tuple(pick.sample(range(x.ndim), pick.randint(0, x.ndim))))
        if kind == "expand":
            return (kind, at, pick.randint(0, x.ndim)) if x.ndim < 5 else None
        if kind == "squeeze":
            ones = [axis for axis, size in enumerate(x.shape) if size == 1]
            return (kind, at, pick.choice(ones)) if ones else None
        if kind == "broadcast":
            shape = tuple(pick.choice((2, 3)) if size == 1 else size for size in x.shape)
            shape = (2, *shape) if pick.random() < 0.4 and x.ndim < 5 else shape
            return (kind, at, shape) if np.prod(shape) <= 96 else None
        if kind == "reshape":
            return (kind, at, self._shape(x.size), pick.choice((None, None, False, True)))
        if kind == "row":
            return (kind, at, pick.randrange(x.shape[0])) if x.ndim and x.shape[0] else None
        if kind in ("fancy", "set_fancy"):
            if not x.ndim or not x.shape[0]:
                return None
            size = x.shape[0]
            places = pick.sample(range(-size, 0), pick.randint(1, size))
            if kind == "fancy":
                return (kind, at, places)
            return (kind, at, places, pick.randint(-3, 3))
        if kind == "plus":
            return (kind, at, self._operand(arrays, x.shape))
        if kind == "call":
            same = [b for b, y in enumerate(arrays) if y.shape == x.shape]
            if self.dtype == "complex128" or not x.size or not x.flags.writeable:
                return None
            return (kind, at, pick.choice(same))
        if kind == "refill":
            return (kind, pick.randint(-9, 9))
        if kind == "lend":
            return (kind, pick.choice(((), (slice(None, None, -1),), (Ellipsis, slice(None, None, 2)))))
        return (kind, at)

    def _shape(self, count: int) -> tuple[int, ...]:
        if count == 0:
            return self.random.choice(((0,), (2, 0), (0, 3)))
        shape: list[int] = []
        while count > 1 and len(shape) < 4:
            size = self.random.choice([size for size in range(1, count + 1) if count % size == 0])
            shape.append(size)
            count //= size
        if count > 1:
            shape.append(count)
        return tuple(shape)

    def text(self) -> str:
        lines = [f"program {self.number}: {self.mode}, {self.dtype}{list(self.first.shape)}, shared: {self.shared}"]
        return "\n".join(lines + [f"  {at}: {step}" for at, step in enumerate(self.steps)])


def run_step(machine: Any, step: Step, arrays: list[Any], buffers: list[np.ndarray]) -> None:
    """Runs a step; a write to what is read-only, and a reshape that may not copy, are refused on both sides."""

    def operand(given: Any) -> Any:
        kind, value = given
        return arrays[value] if kind == "array" else value

    kind, *rest = step
    made = None
    try:
        if kind == "lend":
            made = machine.lend(buffers[0][rest[0]])
        elif kind == "refill":
            buffers[0][...] = rest[0]
        elif kind == "observe":
            if not isinstance(machine, Numpy):
                np.asarray(arrays[rest[0]])
        elif kind == "set":
            machine.set(arrays[rest[0]], rest[1], operand(rest[2]))
        elif kind == "set_fancy":
            machine.set_fancy(arrays[rest[0]], rest[1], rest[2])
        elif kind == "in_place":
            machine.in_place(arrays[rest[0]], rest[1], operand(rest[2]))
        elif kind == "plus":
            made = machine.plus(arrays[rest[0]], operand(rest[1]))
        elif kind == "call":
            made = machine.call(arrays[rest[0]], arrays[rest[1]])
        else:
            made = getattr(machine, kind)(arrays[rest[0]], *rest[1:])
    except ValueError as error:
        if "read-only" not in str(error) and "copy" not in str(error).lower():
            raise
        # Of another shape where the other side has a view.
        if kind == "reshape":
            made = machine.copied(arrays[rest[0]])
    if made is not None:
        arrays.append(made)


def _compare(program: Program, what: str, given: Any, expected: np.ndarray) -> None:
    given = np.asarray(given)
    if given.shape != expected.shape or not np.array_equal(given, expected):
        raise Different(f"{program.text()}\n{what} is\n{given}\nand in numpy\n{expected}")


def check(program: Program) -> None:
    """Runs a program with ours; raises `Different` where numpy has something else."""
    {"plain": _check_plain, "jit": _check_jit, "grad": _check_grad}[program.mode](program)


def _run(program: Program, machine: Any, arrays: list[Any]) -> list[Any]:
    buffers = [program._buffer()]
    for step in program.steps:
        run_step(machine, step, arrays, buffers)
    return arrays


def _check_plain(program: Program) -> None:
    machine = Ours()
    arrays = _run(program, machine, [machine.start(program.first)])
    if len(arrays) != len(program.expected):
        raise Different(f"{program.text()}\ngives {len(arrays)} arrays, and numpy {len(program.expected)}")
    # In an order that is not that of the program: a view may be read before what it is of.
    for at in sorted(range(len(arrays)), key=lambda at: (at * 7919) % 101):
        _compare(program, f"array {at}", arrays[at], program.expected[at])


def _check_jit(program: Program) -> None:
    def function(*given):
        return tuple(_run(program, Ours(), list(given)))

    first = lw.asarray(program.first, copy=True)
    arguments = (first, first[len(first) // 2 :]) if program.shared else (first,)
    for at, (given, expected) in enumerate(zip(lw.jit(function)(*arguments), program.expected, strict=True)):
        _compare(program, f"result {at} of the jitted function", given, expected)
    _compare(program, "the argument of the jitted function", first, program.expected[0])


def _check_grad(program: Program) -> None:
    """The programs are linear, so that differences are derivatives."""

    def total(machine: Any, x: Any, plus: Callable[[Any], Any]) -> Any:
        arrays = _run(program, machine, [x])
        return sum(plus(y) * float(at % 5 + 1) for at, y in enumerate(arrays))

    def in_numpy(x: np.ndarray) -> float:
        return float(total(Numpy(), x.copy(), lambda y: (y * np.arange(1.0, y.size + 1).reshape(y.shape)).sum()))

    def ours(x: lw.Array) -> lw.Array:
        weights = lambda y: lw.asarray(np.arange(1.0, y.size + 1).reshape(y.shape))
        return total(Ours(), x + 0.0, lambda y: lw.sum(y * weights(y)))

    base = in_numpy(program.first)
    expected = np.zeros(program.first.shape)
    for place in np.ndindex(*program.first.shape):
        moved = program.first.copy()
        moved[place] += 1.0
        expected[place] = in_numpy(moved) - base
    given = lw.grad(ours)(lw.asarray(program.first))
    _compare(program, "the gradient", given, expected)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="the number of the first program")
    parser.add_argument("--programs", type=int, default=1000, help="how many programs")
    parser.add_argument("--keep-going", action="store_true", help="do not end at the first difference")
    arguments = parser.parse_args()
    began, found, modes = time.monotonic(), 0, dict.fromkeys(("plain", "jit", "grad"), 0)
    for number in range(arguments.seed, arguments.seed + arguments.programs):
        program = Program(number)
        modes[program.mode] += 1
        try:
            check(program)
        except KeyboardInterrupt:
            raise
        # A panic of ours is no `Exception`.
        except BaseException as error:
            found += 1
            text = str(error) if isinstance(error, Different) else f"{program.text()}\n{type(error).__name__}: {error}"
            print(text, flush=True)
            if not arguments.keep_going:
                return 1
        done = number - arguments.seed + 1
        if done % 500 == 0:
            seconds = time.monotonic() - began
            print(f"{done} programs in {seconds:.0f} s, {found} different; the next is {number + 1}", flush=True)
    counts = ", ".join(f"{count} {mode}" for mode, count in modes.items())
    print(f"{arguments.programs} programs ({counts}), {found} different")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
