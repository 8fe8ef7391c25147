"""Data to learn from: files as arrays, sets of examples, and loaders that deal them out in shuffled batches.

>>> from loopwright import data
>>> train, test = data.digits().split(0.2, seed=0)
>>> loader = data.Loader(train, 32, shuffle=7, drop_last=True, prefetch=2)
>>> for images, labels in loader:
...     assert images.shape == (32, 8, 8) and labels.shape == (32,)
>>> loader.position
'epoch=1 batch=0 seed=7 examples=1438 size=32'

A set is examples, a list of arrays, or any object with a length and ``batch(indices)`` or examples by index:

>>> squares = [(float(n), float(n * n)) for n in range(6)]
>>> class Squares:
...     def __len__(self):
...         return len(squares)
...     def __getitem__(self, at):
...         return squares[at]
>>> x, y = next(iter(data.Loader(Squares(), 3)))
>>> y.tolist()
[0.0, 1.0, 4.0]
"""

from __future__ import annotations

from ._core import (
    ArrayDataset,
    Corpus,
    Dataset,
    Examples,
    ImageFolder,
    Loader,
    Table,
    blobs,
    digits,
    linear,
    moons,
    read_idx,
    read_images,
    read_npy,
    spirals,
    stratified,
    vocabulary,
    waves,
    write_npy,
)

__all__ = [
    "ArrayDataset",
    "Corpus",
    "Dataset",
    "Examples",
    "ImageFolder",
    "Loader",
    "Table",
    "blobs",
    "digits",
    "linear",
    "moons",
    "read_idx",
    "read_images",
    "read_npy",
    "spirals",
    "stratified",
    "vocabulary",
    "waves",
    "write_npy",
]
