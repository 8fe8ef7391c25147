"""Random programs of arrays that numpy writes, beside a model of what they have to hold.

`python tests/aliasing/exports.py --seed 0 --programs 2000` runs programs `seed` to `seed + programs` and prints those that
differ; each is made from its number alone. A program exports arrays and views by `np.asarray`, keeps what it is given and
lets go of it in any order, writes on both sides, and computes formulas and jitted functions in between. What numpy writes
is in the array from then on; what the array is given later is not in memory that was exported before; formulas keep what
they were made of. Most arrays have more bytes than are copied without a thought, so that they are exported where they lie.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from typing import Any

import numpy as np

import loopwright as lw

DTYPES = ("float32", "float64", "int32", "uint8", "bool", "complex64")


@lw.jit
def _flipped(x):
    return lw.flip(x, axis=0)


class Different(AssertionError):
    """An array, a formula or exported memory holds something else than it has to."""


class Run:
    """A program while it runs."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.pick = random.Random(number)
        self.dtype = self.pick.choice(DTYPES)
        self.log: list[str] = []
        #: Arrays with what they have to hold.
        self.arrays: list[tuple[Any, np.ndarray]] = []
        #: Exported memory: what numpy has, what it has to hold, where that is in the model of the array, and the array.
        self.exports: list[tuple[np.ndarray, np.ndarray, np.ndarray, Any]] = []
        #: By what exported memory has to hold: that, and what it held when its array was last used.
        self.seen: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        #: Formulas with their values.
        self.formulas: list[tuple[Any, np.ndarray]] = []
        self.make()

    def fresh(self, shape: tuple[int, ...]) -> np.ndarray:
        # Integers are exact in all dtypes.
        count = int(np.prod(shape))
        return ((np.arange(count) * 7 + self.pick.randrange(50)) % 23).reshape(shape).astype(self.dtype)

    def make(self) -> None:
        rows = self.pick.choice((1, 3, 40, 150, 300))
        given = self.fresh((rows, self.pick.choice((1, 33, 64, 130))))
        kind = self.pick.randrange(4)
        x = lw.asarray(given)
        if kind == 1 and self.dtype != "bool":
            x = x + lw.asarray(np.zeros((), self.dtype))
        elif kind == 2:
            x = _flipped(lw.asarray(given[::-1].copy()))
        elif kind == 3:
            x = lw.concat([x, x])[:rows, :]
        self.log.append(f"make {kind} {given.shape}")
        self.arrays.append((x, given.copy()))

    def part(self, x: Any, of: np.ndarray) -> tuple[Any, np.ndarray]:
        """All of an array, or a view of it, and the same of its model."""
        kind = self.pick.randrange(5)
        self.log.append(f"  part {kind}")
        views = (lambda a: a, lambda a: a, lambda a: a[::2], lambda a: a.T, lambda a: a[:, 1:])
        return views[kind](x), views[kind](of)

    def step(self) -> None:
        at = self.pick.randrange(len(self.arrays))
        x, model = self.arrays[at]
        step = self.pick.choice(("export", "export", "write", "write", "set", "drop", "drop", "formula", "jit", "read", "make"))
        self.log.append(f"{step} {at}")
        getattr(self, f"do_{step}")(at, x, model)
        if step not in ("write", "drop", "make"):
            self.looked_at(x)

    def do_make(self, *_: Any) -> None:
        self.make()

    def do_export(self, _: int, x: Any, model: np.ndarray) -> None:
        ours, part = self.part(x, model)
        given = np.asarray(ours)
        if not given.flags.writeable:
            raise Different("exported memory is read-only")
        self.equal("exported memory", given, part)
        # What was exported before may be the same memory.
        known = [held for now, held, *_ in self.exports if now.size and np.shares_memory(now, given)]
        self.exports.append((given, known[0] if known else part.copy(), part, x))

    def do_write(self, *_: Any) -> None:
        if not self.exports:
            return
        given, held, part, owner = self.pick.choice(self.exports)
        if not given.size:
            return
        place = tuple(self.pick.randrange(size) for size in given.shape)
        place = place if self.pick.random() < 0.6 else (slice(None, None, self.pick.choice((1, 2))),)
        value = np.asarray(self.pick.randrange(23)).astype(self.dtype)
        # What is there already is not written, and nobody sees what is written and taken back between two looks.
        _, seen = self.seen.setdefault(id(held), (held, held.copy()))
        if np.any((held[place] != value) & (seen[place] == value)):
            self.look(owner)
        changed = np.zeros(given.shape, bool)
        changed[place] = held[place] != value
        given[place] = value
        held[place] = value
        part[changed] = value
        # Of writes into several copies between two looks at the array, nobody knows which came first.
        others = [now for now, _, _, of in self.exports if of is owner and not np.shares_memory(now, given)]
        if others or self.pick.random() < 0.3:
            self.look(owner)

    def look(self, owner: Any) -> None:
        self.equal("a row", np.array(owner[:1]), self.model_of(owner)[:1])
        self.looked_at(owner)

    def looked_at(self, owner: Any) -> None:
        self.seen |= {id(held): (held, held.copy()) for _, held, _, of in self.exports if of is owner}

    def model_of(self, owner: Any) -> np.ndarray:
        return next(model for x, model in self.arrays if x is owner)

    def do_set(self, _: int, x: Any, model: np.ndarray) -> None:
        ours, part = self.part(x, model)
        value = self.pick.randrange(23)
        value = bool(value % 2) if self.dtype == "bool" else value
        ours[:1, ...] = value
        part[:1, ...] = value

    def do_drop(self, *_: Any) -> None:
        if self.exports:
            del self.exports[self.pick.randrange(len(self.exports))]

    def do_formula(self, _: int, x: Any, model: np.ndarray) -> None:
        self.formulas.append((lw.concat([x, x]), np.concatenate([model, model])))

    def do_jit(self, at: int, x: Any, model: np.ndarray) -> None:
        self.arrays.append((_flipped(x), model[::-1].copy()))

    def do_read(self, _: int, x: Any, model: np.ndarray) -> None:
        self.equal("an array", np.array(x), model)

    def equal(self, what: str, given: Any, expected: np.ndarray) -> None:
        given = np.asarray(given)
        if given.shape != expected.shape or not np.array_equal(given, expected):
            places = np.argwhere(given != expected)[:4].tolist() if given.shape == expected.shape else given.shape
            raise Different(f"program {self.number} ({self.dtype}): {what} differs at {places}\n" + "\n".join(self.log))

    def check(self) -> None:
        for x, model in self.arrays:
            self.equal("an array at the end", np.array(x), model)
        for given, held, *_ in self.exports:
            self.equal("exported memory at the end", given, held)
        for formula, expected in self.formulas:
            self.equal("a formula", np.array(formula), expected)


def check(number: int) -> None:
    """Runs a program; raises `Different` where something is not what it has to be."""
    run = Run(number)
    for _ in range(run.pick.randint(4, 30)):
        run.step()
    run.check()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="the number of the first program")
    parser.add_argument("--programs", type=int, default=1000, help="how many programs")
    arguments = parser.parse_args()
    began, found = time.monotonic(), 0
    for number in range(arguments.seed, arguments.seed + arguments.programs):
        try:
            check(number)
        except Different as error:
            found += 1
            print(error, flush=True)
    print(f"{arguments.programs} programs in {time.monotonic() - began:.0f} s, {found} different")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
