"""The protocol between the benchmark and a peer. This file stands before the peer's own in one script.

Lines in, one JSON object out for each:

    prepare WORK FOLDER   reads FOLDER/in-NAME.npy, runs the work once; `first` is how long that took, compilation
                          included, in seconds; `cannot` says why the peer does not do this work
    time RUNS             runs it so many times; `seconds` is the time of one run
    result                runs it once more on the given inputs and states, writes FOLDER/out-NAME.npy for every result

`problem` in place of an answer says what went wrong.
"""
import json
import os
import sys
import time

# The benchmark has also pinned this process to as many cores; who counts cores sees no others.
peer, threads = sys.argv[1], int(sys.argv[2])
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"):
    os.environ[variable] = str(threads)

import numpy as np


def answer(**fields):
    print(json.dumps(fields), flush=True)


def inputs_of(folder):
    arrays = {}
    for file in sorted(os.listdir(folder)):
        if file.startswith("in-"):
            arrays[file[len("in-") : -len(".npy")]] = np.load(os.path.join(folder, file))
    return arrays


def serve(works, version):
    """Serves until standard input ends. `works` has for every name a function of the inputs that gives three
    functions: `run` starts one run, `finish` waits until all that were started have ended, `result` runs once more from
    the given state and gives the results by name. In place of the function, a text says why there is none."""
    answer(ready=True, version=version)
    folder = run = finish = result = None
    for line in sys.stdin:
        verb, *rest = line.rstrip("\n").split(" ", 2)
        try:
            if verb == "prepare":
                work, folder = rest
                known = works.get(work, "not written for it")
                if isinstance(known, str):
                    answer(cannot=known)
                    continue
                # What the work before held goes first.
                run = finish = result = None
                run, finish, result = known(**inputs_of(folder))
                start = time.perf_counter()
                run()
                finish()
                answer(first=time.perf_counter() - start)
            elif verb == "time":
                runs = int(rest[0])
                start = time.perf_counter()
                for _ in range(runs):
                    run()
                finish()
                answer(seconds=(time.perf_counter() - start) / runs)
            elif verb == "result":
                for name, array in result().items():
                    np.save(os.path.join(folder, f"out-{name}.npy"), array)
                answer(result=True)
            else:
                answer(problem=f"unknown request {verb}")
        except Exception as error:
            answer(problem=f"{type(error).__name__}: {error}")
