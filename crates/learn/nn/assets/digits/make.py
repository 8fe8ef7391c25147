#!/usr/bin/env python3
"""Makes digits.idx.gz from the copy of the digits in scikit-learn's package.

    make.py scikit_learn-1.9.1-….whl     (from `pip download --no-deps scikit-learn`)

The result is one IDX file of bytes, compressed: 1797 rows of 65, the 64 pixels (0 to 16) and the digit.
"""

import gzip
import io
import pathlib
import struct
import sys
import zipfile

CSV = "sklearn/datasets/data/digits.csv.gz"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with zipfile.ZipFile(sys.argv[1]) as wheel:
        text = gzip.decompress(wheel.read(CSV)).decode()
    rows = [bytes(map(int, line.split(","))) for line in text.splitlines()]
    if any(len(row) != 65 or max(row[:64]) > 16 or row[64] > 9 for row in rows):
        sys.exit("these are not the digits")
    idx = struct.pack(">HBBII", 0, 8, 2, len(rows), 65) + b"".join(rows)
    made = io.BytesIO()
    with gzip.GzipFile("", "wb", 9, made, mtime=0) as file:
        file.write(idx)
    path = pathlib.Path(__file__).resolve().parent / "digits.idx.gz"
    path.write_bytes(made.getvalue())
    print(f"{len(rows)} digits, {len(idx)} bytes, {path.stat().st_size} compressed")


if __name__ == "__main__":
    main()
