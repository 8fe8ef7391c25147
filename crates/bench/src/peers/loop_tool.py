"""loop_tool as a peer: prepares a piece of work, then times one recomputation for each line on standard input.

Lines in: `prepare WORK`, `time`, `check`. Lines out: one JSON object each.
"""
import json
import os
import sys
import time

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np
import loop_tool as lt

rng = np.random.default_rng(0)
kept = []


def matmul(n):
    a, b = (rng.standard_normal((n, n)).astype(np.float32) for _ in "ab")
    s = lt.SymbolGenerator()
    left, right = lt.Tensor(n, n).set(a), lt.Tensor(n, n).set(b)
    return (left.to(s.m, s.k) * right.to(s.k, s.n)).sum(s.k), a @ b


def conv(channels, out, k):
    x = rng.standard_normal((channels, out + k - 1, out + k - 1)).astype(np.float32)
    w = rng.standard_normal((channels, channels, k, k)).astype(np.float32)
    s = lt.SymbolGenerator()
    # Weights first: the default schedule then has a unit-stride inner loop, which is several times
    # faster than the other way round.
    weights = lt.Tensor(*w.shape).set(w).to(s.Co, s.C, s.Kh, s.Kw)
    windows = lt.Tensor(*x.shape).set(x)[s.C, s.H + s.Kh, s.W + s.Kw]
    y = (weights * windows).sum(s.C, s.Kh, s.Kw).transpose(s.Co, s.H, s.W)
    views = np.lib.stride_tricks.sliding_window_view(x, (k, k), axis=(1, 2))
    return y, np.einsum("chwij,ocij->ohw", views, w, optimize=True)


def answer(**fields):
    print(json.dumps(fields), flush=True)


def main():
    tensor = expected = None
    answer(ready=True, version="0.1.0", backend=lt.get_default_backend())
    for line in sys.stdin:
        verb, *rest = line.split()
        if verb == "prepare":
            name, *sizes = rest
            tensor, expected = {"matmul": matmul, "conv": conv}[name](*map(int, sizes))
            start = time.perf_counter()
            tensor.resolve()
            answer(first=time.perf_counter() - start)
        elif verb == "time":
            tensor.force_recompute()
            start = time.perf_counter()
            tensor.resolve()
            answer(seconds=time.perf_counter() - start)
        elif verb == "check":
            # The array shares the tensor's memory: it is kept, and the tensor is not run again.
            got = tensor.numpy()
            kept.append((tensor, got))
            error = float(np.abs(got - expected).max() / np.abs(expected).max())
            answer(error=error)
        else:
            answer(problem=f"unknown request {verb}")


main()
