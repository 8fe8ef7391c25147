#!/usr/bin/env python3
"""Writes training runs and layers of PyTorch, and a GPT-2 saved by Hugging Face's transformers, for the tests to follow.

    generate.py            writes the *.safetensors files beside this script, and manifest.json
    generate.py --check    fails if the files are not what it would write

This needs torch and transformers, which are gigabytes, and so are not among the pinned packages of
xtask/requirements.txt. Where they are not installed, --check says so, makes nothing anew, and still holds the files
and made_by_torch.py to manifest.json by their SHA-256, and looks for 50 finite losses in each run. Where they are,
every file is made again in memory: first values and data have to be the same to the bit, results within CLOSE, because
they depend on the order in which a CPU's kernels add.

Each run (mlp, cnn, lstm, gpt) is a file with

    first.NAME    the weights and statistics before the first step, by the names of torch's state_dict
    last.NAME     the same after the last step
    x.., y..      the batches, along a first axis; step n learns from batch n modulo their number
    losses        the loss of each step, before its update
    rates         the learning rate of each step, as torch's scheduler gives it
    used          the loss of the last batch after the last step, with the network in use rather than in training

layers.safetensors has layers and losses that are in no run: NAME.x, NAME.value.WEIGHT, the result NAME.y, and the
gradients NAME.gradient.WEIGHT of the sum of its squares. The GPT-2 is gpt2.safetensors as save_pretrained writes it,
with what it says to some tokens in gpt2-said.safetensors.

A run is only worth following as far as it does not depend on rounding: each is also made in f64, and has to have the
same losses there within STEADY. What is made lies in made_by_torch.py.
"""

import hashlib
import json
import pathlib
import sys

import numpy as np
import safetensors
import safetensors.numpy

try:
    import made_by_torch

    ABSENT = None
except ImportError as error:
    ABSENT = error.name or str(error)

HERE = pathlib.Path(__file__).resolve().parent
MANIFEST = HERE / "manifest.json"
MAKER = HERE / "made_by_torch.py"
RUNS = ["mlp", "cnn", "lstm", "gpt"]
STEPS = 50
RESULTS = ["losses", "used", "logits"]
# How far results may lie apart on two machines, relative to the largest of an array.
CLOSE = 1e-4


def maker():
    """Which version of the script the values are of, whatever ends its lines."""
    return hashlib.sha256(MAKER.read_text(encoding="utf-8").encode()).hexdigest()


def write(files):
    for name, made in files.items():
        (HERE / name).write_bytes(made)
    manifest = {
        "made with": {
            **made_by_torch.versions(),
            "numpy": np.__version__,
            "safetensors": safetensors.__version__,
        },
        "made by": {MAKER.name: maker()},
        "sha256": {name: hashlib.sha256(made).hexdigest() for name, made in files.items()},
    }
    MANIFEST.write_text(json.dumps(manifest, indent=2) + "\n")


def check_kept(manifest):
    """What is wrong with the files by themselves."""
    wrong = []
    if manifest["made by"] != {MAKER.name: maker()}:
        wrong.append(f"{MAKER.name} has changed since the files were made")
    names = {path.name for path in HERE.glob("*.safetensors")}
    for name in sorted(names ^ set(manifest["sha256"])):
        wrong.append(f"{name} is in one of the folder and manifest.json alone")
    for name in sorted(names & set(manifest["sha256"])):
        kept = (HERE / name).read_bytes()
        if hashlib.sha256(kept).hexdigest() != manifest["sha256"][name]:
            wrong.append(f"{name} has not the SHA-256 of manifest.json")
            continue
        arrays = safetensors.numpy.load(kept)
        if not all(np.isfinite(array).all() for array in arrays.values()):
            wrong.append(f"{name} has numbers that are not finite")
        if name.removesuffix(".safetensors") in RUNS and arrays["losses"].shape != (STEPS,):
            wrong.append(f"{name} has not {STEPS} losses")
    return wrong


def check_made(files):
    """Where the files are not what is made now."""
    wrong = []
    for name, made in files.items():
        made = safetensors.numpy.load(made)
        kept = safetensors.numpy.load((HERE / name).read_bytes())
        if made.keys() != kept.keys():
            wrong.append(f"{name} has other arrays: {sorted(made.keys() ^ kept.keys())}")
            continue
        for array, new in made.items():
            old = kept[array]
            if (new.shape, new.dtype) != (old.shape, old.dtype):
                wrong.append(f"{array} in {name} has another shape or dtype")
            elif array in RESULTS or array.startswith("last.") or ".gradient." in array or array.endswith(".y"):
                apart = np.max(np.abs(new - old)) / np.max(np.abs(old))
                # A bias of keys moves all scores of a query alike, so that only rounding moves it.
                if not array.endswith("key.bias") and not apart < CLOSE:
                    wrong.append(f"{array} in {name} is {apart:.1e} apart")
            elif not np.array_equal(new, old):
                wrong.append(f"{array} in {name} is another one")
    return wrong


def main():
    arguments = sys.argv[1:]
    if arguments not in ([], ["--check"]):
        sys.exit(__doc__)
    if not arguments:
        if ABSENT:
            sys.exit(f"{ABSENT} is not installed here, and is needed to make the files")
        write(made_by_torch.make_all())
    manifest = json.loads(MANIFEST.read_text())
    made_with = ", ".join(f"{name} {version}" for name, version in manifest["made with"].items())
    wrong = check_kept(manifest)
    if ABSENT:
        print(f"{ABSENT} is not installed here: the values of {made_with} were NOT made anew, only their files checked")
    elif arguments and not wrong:
        wrong = check_made(made_by_torch.make_all())
    if wrong:
        sys.exit("\n".join([*wrong, "run generate.py without --check to write the files again"]))
    print(f"{len(manifest['sha256'])} files of {made_with}")


if __name__ == "__main__":
    main()
