"""Files with what was learned."""

from __future__ import annotations

import importlib.util
import threading
from pathlib import Path

import loopwright as lw
import numpy as np
import pytest
from loopwright import checkpoints, data, nn, optim, train

EXAMPLES = Path(__file__).parents[2] / "examples"


def example(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Run:
    """Learns what comes next in a wave."""

    def __init__(self):
        nn.seed(7)
        self.net = nn.Sequential(nn.Dense(8), lw.tanh, nn.Dropout(0.1), nn.Dense(12))
        self.adam = optim.Adam(0.01)
        self.loader = data.Loader(data.waves(64, 12, 0.05, 3), 16, shuffle=1)

        def step(x, y):
            with nn.training():
                return self.adam.step(self.net, lambda: nn.mean_squared_error(self.net(x), y))

        self.step = lw.jit(step)

    def steps(self, count):
        losses = []
        while len(losses) < count:
            for x, y in self.loader:
                losses.append(float(self.step(x, y)))
                if len(losses) == count:
                    break
        return losses


def test_a_run_goes_on_to_the_last_bit(tmp_path):
    path = tmp_path / "run.safetensors"
    whole = Run()
    whole.steps(6)
    checkpoints.save(path, whole.net, optimizer=whole.adam, loader=whole.loader)
    expected = whole.steps(5)
    resumed = Run()
    found = checkpoints.load(path, resumed.net, optimizer=resumed.adam, loader=resumed.loader)
    assert found["position"].startswith("epoch=1 batch=2")
    assert resumed.steps(5) == expected


def test_mismatches(tmp_path):
    path = tmp_path / "net.safetensors"
    checkpoints.write(path, {"weight": lw.zeros((2, 3)), "bias": lw.zeros(2)}, {"by": "me"})
    wanted = {"weights": nn.Parameter(lw.ones((2, 3))), "bias": nn.Parameter(lw.ones(4))}
    with pytest.raises(ValueError) as raised:
        checkpoints.load(path, wanted)
    assert "did you mean `weight`?" in str(raised.value)
    assert "different `bias`: f32[4] is expected, and f32[2] is there" in str(raised.value)
    assert wanted["bias"].tolist() == [1.0] * 4
    part = {"bias": nn.Parameter(lw.ones(2)), "head": nn.Parameter(lw.ones(1))}
    assert checkpoints.load_part(path, part) == {"by": "me"}
    assert part["bias"].tolist() == [0.0, 0.0] and part["head"].tolist() == [1.0]
    with pytest.raises(ValueError, match="`Dense` made at test_checkpoints.py"):
        checkpoints.save(path, nn.Dense(4))
    with pytest.raises(FileNotFoundError):
        checkpoints.load(tmp_path / "none", wanted)
    path.write_bytes(b"hello")
    with pytest.raises(ValueError, match="it has 5 bytes"):
        checkpoints.read(path)


def test_reading_and_writing(tmp_path):
    path = tmp_path / "arrays.safetensors"
    arrays = {
        "a": np.arange(4, dtype=np.uint8),
        "b.c": lw.ones((2, 2), dtype=lw.bfloat16),
        "d": lw.Variable(3.0),
    }
    checkpoints.write(path, arrays, {"step": "3"})
    found, metadata = checkpoints.read(path)
    assert metadata == {"step": "3"} and list(found) == ["a", "b.c", "d"]
    assert found["b.c"].dtype == lw.bfloat16 and found["a"].tolist() == [0, 1, 2, 3]
    reader = checkpoints.Reader(path)
    assert reader.infos["b.c"] == (lw.bfloat16, [2, 2]) and "d" in reader and len(reader) == 3
    assert reader["d"].item() == 3.0
    with pytest.raises(KeyError, match="did you mean `b.c`"):
        _ = reader["b.d"]
    # The format: the length of the header, and the header.
    raw = path.read_bytes()
    assert raw[8:9] == b"{" and int.from_bytes(raw[:8], "little") < len(raw)


def test_files_of_other_programs(tmp_path):
    path = tmp_path / "gpt.safetensors"
    both = np.arange(12, dtype=np.float32).reshape(3, 4)  # [inputs, 2 * outputs]
    checkpoints.write(path, {"c_attn": both, "extra": lw.ones(1)})
    model = {"query": nn.Parameter(lw.zeros((2, 3))), "key": nn.Parameter(lw.zeros((2, 3)))}

    def stored(name):
        at = ["query", "key"].index(name)
        return checkpoints.Stored("c_attn", transposed=True, part=(at, 2))

    with pytest.raises(ValueError, match="unexpected `extra`"):
        checkpoints.load_as(path, model, stored)
    checkpoints.load_as(path, model, stored, unwanted=lambda name: name == "extra")
    assert model["query"].tolist() == both.T[:2].tolist()
    assert model["key"].tolist() == both.T[2:].tolist()


def test_the_digits_run_in_python_is_the_one_in_rust(tmp_path):
    report = train.digits(epochs=3)
    lines, path = [], str(tmp_path / "digits.safetensors")
    history = example("digits").run(3, checkpoint=path, tell=lines.append)
    # Bit for bit: the same layers, the same numbers, the same order.
    assert history["loss"] == report.history["loss"]
    assert history["accuracy"] == report.history["accuracy"]
    assert len(lines) == 3 and lines[0].startswith("epoch  1  loss")
    assert history._repr_svg_().startswith("<svg") and "loss" in repr(history)


def test_the_digits_are_learned():
    history = example("digits").run(30, tell=lambda line: None)
    assert history["accuracy"][-1] > 0.97


def test_train_digits_tells_and_stops():
    told = []
    train.digits(epochs=2, tell=lambda *numbers: told.append(numbers))
    assert [epoch for epoch, *_ in told] == [1, 2]

    def stop(*_):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        train.digits(epochs=2, tell=stop)


def test_other_threads_run_while_a_run_trains():
    train.digits(epochs=1)
    counts, done = [], threading.Event()

    def learn():
        train.digits(epochs=20)
        done.set()

    thread = threading.Thread(target=learn)
    thread.start()
    while not done.wait(0.001):
        counts.append(1)
    thread.join()
    # Each wait needs the interpreter: with its lock held by the run there would be next to none.
    assert len(counts) > 20
