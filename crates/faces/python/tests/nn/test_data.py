"""Sets, loaders and files."""

from __future__ import annotations

import gzip
import struct
import threading
import time

import loopwright as lw
import numpy as np
import pytest
from loopwright import data


def within(seconds, run):
    """Runs something that may hang, and says so where it does."""
    done = []
    thread = threading.Thread(target=lambda: done.append(run()), daemon=True)
    thread.start()
    thread.join(seconds)
    assert done, f"not done after {seconds} s"
    return done[0]


def test_made_up_sets():
    points, classes = data.moons(10, 0.0, 1)
    assert (points.shape, points.dtype, classes.dtype) == ((10, 2), lw.float32, lw.int64)
    assert data.blobs(9, 3).targets.tolist() == [0, 1, 2] * 3
    assert data.spirals(6, arms=3).inputs.shape == (6, 2)
    examples, weights, bias = data.linear(50, 3, 0.0, seed=5)
    made = np.asarray(examples.inputs) @ np.array(weights) + bias
    np.testing.assert_allclose(np.asarray(examples.targets), made, rtol=1e-4, atol=1e-5)
    inputs, targets = data.waves(4, 12)
    np.testing.assert_allclose(inputs[:, 1:].tolist(), targets[:, :-1].tolist())
    with pytest.raises(ValueError, match="noise"):
        data.moons(3, -1.0)


def test_digits():
    digits = data.digits()
    assert len(digits) == 1797 and digits.inputs.shape == (1797, 8, 8)
    train, test = digits.split(0.2, seed=0)
    assert (len(train), len(test)) == (1438, 359)
    counts = np.bincount(np.asarray(test.targets))
    assert counts.min() >= 34 and counts.max() <= 38


def test_sets():
    x, y = lw.arange(6), lw.arange(6.0) * 2
    numbers = data.ArrayDataset([x, y])
    assert len(numbers) == 6
    assert [part.tolist() for part in numbers.batch([5, 0, 5])] == [[5, 0, 5], [10.0, 0.0, 10.0]]
    assert [part.tolist() for part in numbers[-1]] == [5, 10.0]
    assert numbers[1:4][0].tolist() == [1, 2, 3]
    odd = numbers.select([1, 3, 5]).map(lambda batch: [batch[0] * 10])
    assert len(odd) == 3 and odd.batch([2])[0].tolist() == [50]
    with pytest.raises(IndexError, match="no example 6 in a set of 6"):
        numbers.batch([6])
    with pytest.raises(IndexError):
        _ = numbers[-7]
    with pytest.raises(ValueError, match="array 1 is f32"):
        data.ArrayDataset([lw.ones(2), lw.ones(3)])
    with pytest.raises(ZeroDivisionError):
        numbers.map(lambda batch: 1 / 0).batch([0])


def seen(loader):
    return [value for (batch,) in loader for value in batch.tolist()]


def test_loaders():
    numbers = [lw.arange(10)]
    assert seen(data.Loader(numbers, 4)) == list(range(10))
    assert [len(b) for (b,) in data.Loader(numbers, 4, drop_last=True)] == [4, 4]
    loader, ahead = (data.Loader(numbers, 3, shuffle=7, prefetch=n) for n in (0, 3))
    epochs = [seen(loader) for _ in range(3)]
    assert [seen(ahead) for _ in range(3)] == epochs
    assert all(sorted(epoch) == list(range(10)) for epoch in epochs) and epochs[0] != epochs[1]
    assert (len(loader), loader.examples, loader.epoch) == (4, 10, 3)
    with pytest.raises(ValueError, match="no batch"):
        data.Loader(numbers, 11, drop_last=True)


def test_loaders_go_on_where_they_were():
    numbers = [lw.arange(10)]
    loader = data.Loader(numbers, 3, shuffle=1, prefetch=2)
    next(iter(loader))
    kept = loader.position
    rest = seen(loader)
    other = data.Loader(numbers, 3, shuffle=1)
    other.resume(kept)
    assert seen(other) == rest
    with pytest.raises(ValueError, match="seed"):
        data.Loader(numbers, 3, shuffle=2).resume(kept)
    with pytest.raises(ValueError, match="not a position"):
        other.resume("somewhere")


class Squares:
    """A set by index, each example a pair."""

    def __len__(self):
        return 10

    def __getitem__(self, at):
        if at == 7:
            raise LookupError("seven is missing")
        return np.float32(at), [at, at * at]


class Batches:
    def __len__(self):
        return 4

    def batch(self, indices):
        time.sleep(0.01)
        return [np.array(indices) * 2]


@pytest.mark.parametrize("prefetch", [0, 2])
def test_sets_written_in_python(prefetch):
    assert seen(data.Loader(Batches(), 3, prefetch=prefetch)) == [0, 2, 4, 6]
    loader = data.Loader(Squares(), 5, prefetch=prefetch)
    epoch = iter(loader)
    x, y = within(20, lambda: next(epoch))
    assert x.tolist() == [0, 1, 2, 3, 4] and y.tolist()[3] == [3, 9]
    with pytest.raises(LookupError, match="seven"):
        within_raises(lambda: next(epoch))
    with pytest.raises(TypeError, match="a set has"):
        data.Dataset(5)


def within_raises(run):
    found = []

    def call():
        try:
            run()
        except BaseException as error:  # noqa: BLE001
            found.append(error)
            return error
        return None

    error = within(20, call)
    raise error


def test_a_loader_can_be_left_in_the_middle():
    def leave():
        for _ in range(20):
            loader = data.Loader(Batches(), 1, prefetch=2)
            next(iter(loader))
            del loader
        return True

    assert within(30, leave)


def test_texts():
    corpus = data.Corpus("abracadabra")
    assert corpus.characters == "abcdr" and corpus.encode("cab") == [2, 0, 1]
    assert corpus.decode(corpus.tokens) == "abracadabra"
    x, y = corpus.windows(3).batch([4])
    assert (x.tolist(), y.tolist()) == ([[2, 0, 3]], [[0, 3, 0]])
    first, rest = corpus.split(0.2)
    assert (len(first), len(rest)) == (9, 2)
    with pytest.raises(ValueError, match="'x'"):
        corpus.encode("x")


def test_files(tmp_path):
    x = np.arange(6, dtype=np.int16).reshape(2, 3)
    np.save(tmp_path / "x.npy", x)
    read = data.read_npy(tmp_path / "x.npy")
    assert read.dtype == lw.int16 and read.tolist() == x.tolist()
    data.write_npy(str(tmp_path / "y.npy"), read + 1)
    assert np.load(tmp_path / "y.npy").tolist() == (x + 1).tolist()
    data.write_npy(tmp_path / "z.npy", lw.ones(2, dtype=lw.bfloat16))
    assert data.read_npy(tmp_path / "z.npy", "bfloat16").tolist() == [1.0, 1.0]

    head = struct.pack(">BBBBI", 0, 0, 8, 1, 3)
    (tmp_path / "a.idx.gz").write_bytes(gzip.compress(head + bytes([5, 6, 7])))
    assert data.read_idx(tmp_path / "a.idx.gz").tolist() == [5, 6, 7]

    with pytest.raises(FileNotFoundError, match="nowhere.npy"):
        data.read_npy(tmp_path / "nowhere.npy")
    (tmp_path / "broken.npy").write_bytes(b"hello")
    with pytest.raises(ValueError, match="broken.npy"):
        data.read_npy(tmp_path / "broken.npy")


def test_pictures(tmp_path):
    for name, value in (("cat", 10), ("dog", 20)):
        (tmp_path / name).mkdir()
        picture = b"P5 2 2 255\n" + bytes([value] * 4)
        (tmp_path / name / "one.pgm").write_bytes(picture)
    folder = data.ImageFolder(tmp_path)
    assert folder.classes == ["cat", "dog"] and len(folder) == 2
    images, classes = folder.batch([1, 0])
    assert images.shape == (2, 2, 2, 1) and classes.tolist() == [1, 0]
    assert data.read_images([path for path, _ in folder.files]).shape == (2, 2, 2, 1)
    assert len(list(data.Loader(folder, 1, prefetch=1))) == 2


def test_tables(tmp_path):
    path = tmp_path / "fruit.csv"
    path.write_text('height,width,kind\n1.5,2,"round, red"\n2.5,,long\n')
    table = data.Table.read(path)
    assert (table.names, len(table)) == (["height", "width", "kind"], 2)
    assert table.array("height", "float64").tolist() == [1.5, 2.5]
    labels, kinds = table.categories("kind")
    assert kinds == ["long", "round, red"] and labels.tolist() == [1, 0]
    with pytest.raises(KeyError, match="no column `weight`"):
        _ = table["weight"]
    with pytest.raises(ValueError, match="line 3, column 2"):
        data.Table.read(path, types={"width": "int"})
    assert data.Table.parse("1;2\n3;4\n", header=False, delimiter=";")["1"] == [2, 4]
