#!/usr/bin/env python3
"""Writes arrays.safetensors with Python's safetensors package: an array of every dtype, and metadata.

    generate.py            writes the file beside this script
    generate.py --check    fails if the file is not what it would write

The tests read the file, and write the same arrays again: the bytes have to be the same, so that what Rust writes is
what the package writes. The package reads the file back here, so that both ways are covered.
"""

import pathlib
import sys

import ml_dtypes
import numpy as np
import safetensors

FILE = pathlib.Path(__file__).resolve().parent / "arrays.safetensors"

NAMES = {
    "bool": np.bool_,
    "int8": np.int8,
    "int16": np.int16,
    "int32": np.int32,
    "int64": np.int64,
    "uint8": np.uint8,
    "uint16": np.uint16,
    "uint32": np.uint32,
    "uint64": np.uint64,
    "float8_e4m3fn": ml_dtypes.float8_e4m3fn,
    "float8_e5m2": ml_dtypes.float8_e5m2,
    "float16": np.float16,
    "bfloat16": ml_dtypes.bfloat16,
    "float32": np.float32,
    "float64": np.float64,
}


def main():
    arguments = sys.argv[1:]
    if arguments not in ([], ["--check"]):
        sys.exit(__doc__)
    arrays = {}
    for name, dtype in NAMES.items():
        # 0 to 5, which every dtype but bool holds exactly.
        arrays[f"counted.{name}"] = (name, np.arange(6).astype(dtype).reshape(2, 3))
    arrays["scalar"] = ("float64", np.array(-0.5))
    arrays["empty"] = ("float32", np.zeros((3, 0), np.float32))
    arrays['quotes " and \u00e9\n'] = ("uint8", np.array([7], np.uint8))
    data = {
        name: {"dtype": dtype, "shape": list(array.shape), "data": array.tobytes()}
        for name, (dtype, array) in arrays.items()
    }
    made = safetensors.serialize(data, {"step": 'three "hundred"'})
    back = dict(safetensors.deserialize(made))
    for name, (_, array) in arrays.items():
        if bytes(back[name]["data"]) != array.tobytes() or back[name]["shape"] != list(array.shape):
            sys.exit(f"{name!r} does not come back")
    if not arguments:
        FILE.write_bytes(made)
    elif not FILE.exists() or FILE.read_bytes() != made:
        sys.exit(f"{FILE.name} is not what is written now; run generate.py without --check to write it again")
    print(f"{len(arrays)} arrays, {len(made)} bytes, safetensors {safetensors.__version__}")


if __name__ == "__main__":
    main()
