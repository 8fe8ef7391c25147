"""What exceptions say about files of other people."""

import json
import random
import struct

import pytest

import loopwright as lw

OBEYED = ["\x1b[2J", "\x1b]0;title\x07", "\x9b31m", "\x08", "\r", "\u202e", "\u2066", "\x7f", "\u200b"]


def is_obeyed(text):
    return any(
        ord(c) < 0x20 and c not in "\n\t" or 0x7F <= ord(c) <= 0x9F or c in "\u202e\u2066\u200b"
        for c in text
    )


def damaged(rng, folder, name):
    """Writes a file that cannot be read; gives what reads it."""
    path = folder / f"{name}.bin"
    kind = rng.randrange(7)
    if kind == 0:
        path.write_bytes(b"\x93NUMPY\x01\x00\x02\x00{}")
        return lambda: lw.data.read_npy(path)
    if kind == 1:
        path.write_bytes(name.encode())
        return lambda: lw.data.read_idx(path)
    if kind == 2:
        path.write_text(f"a,b{name}\n1\n")
        return lambda: lw.data.Table.read(path)
    if kind == 3:
        path.write_text(f"{name},b\n1,2\n")
        return lambda: lw.data.Table.read(path).array("missing")
    if kind == 4:
        path.write_bytes(name.encode())
        return lambda: lw.data.read_images([path])
    if kind == 5:
        header = json.dumps({name: {"dtype": name, "shape": [1], "data_offsets": [0, 4]}}).encode()
        path.write_bytes(struct.pack("<Q", len(header)) + header + bytes(4))
        return lambda: lw.checkpoints.read(path)
    return lambda: lw.data.read_npy(path)


def test_exceptions_show_control_characters_in_names_and_contents_of_files(tmp_path):
    for seed in range(60):
        rng = random.Random(seed)
        name = "n" + "".join(rng.choice(OBEYED + ["a", "ä"]) for _ in range(1 + rng.randrange(4)))
        read = damaged(rng, tmp_path, name)
        with pytest.raises((ValueError, KeyError, OSError)) as raised:
            read()
        assert not is_obeyed(str(raised.value)), f"seed {seed}: {raised.value!r}"


def test_exceptions_show_control_characters_in_names_of_devices():
    with pytest.raises(lw.Error) as raised:
        lw.asarray([1.0], device="n\x1b[2J")
    assert "n\\u{1b}[2J" in str(raised.value)
