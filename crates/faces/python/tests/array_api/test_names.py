"""Every name of the standard is there, with its signature, as the standard's own text has them."""

from __future__ import annotations

import inspect

import array_api_strict as strict
import loopwright as lw
import numpy as np
import pytest

from . import specification
from .reference import resolve

#: The namespaces of the standard and what stands before their names here.
SPACES = {"ArrayNamespace": "", "LinalgNamespace": "linalg.", "FftNamespace": "fft."}
NAMES = [before + name for space, before in SPACES.items() for name in specification.fields(space)]
FUNCTIONS = [name for name in NAMES if name.rpartition(".")[2] in specification.classes()]

METHODS = list(specification.members("Array"))

#: What has to be named there may also be given by its place.
EITHER = {"KEYWORD_ONLY": ("KEYWORD_ONLY", "POSITIONAL_OR_KEYWORD")}


@pytest.mark.parametrize("name", NAMES)
def test_name(name: str) -> None:
    assert resolve(lw, name) is not None or name == "newaxis"
    space = resolve(lw, name.rpartition(".")[0]) if "." in name else lw
    assert name.rpartition(".")[2] in space.__all__


@pytest.mark.parametrize("name", FUNCTIONS)
def test_signature(name: str) -> None:
    said = specification.members(name.rpartition(".")[2])["__call__"]
    want = specification.parameters(said)
    got = list(inspect.signature(resolve(lw, name)).parameters.values())
    assert [one.name for one in got] == [one.name for one in want]
    for one, other in zip(got, want, strict=True):
        assert one.kind.name in EITHER.get(other.kind, (other.kind,)), one.name
        default = "None" if one.default is one.empty else repr(one.default)
        assert other.default in (None, default), one.name


@pytest.mark.parametrize("name", FUNCTIONS)
def test_documentation(name: str) -> None:
    assert ">>> " in (resolve(lw, name).__doc__ or ""), "an example belongs to every function"


def test_all_names_are_listed() -> None:
    # Modules beside the namespace are attributes once somebody has imported them.
    public = {
        name
        for name, value in vars(lw).items()
        if not name.startswith("_") and not inspect.ismodule(value)
    } - {"annotations"}
    assert public <= set(lw.__all__), sorted(public - set(lw.__all__))
    assert all(hasattr(lw, name) for name in lw.__all__)
    assert len(set(lw.__all__)) == len(lw.__all__)


@pytest.mark.parametrize("name", METHODS)
def test_method(name: str) -> None:
    assert hasattr(lw.Array, name)


def test_version_and_namespace() -> None:
    assert lw.__array_api_version__ == "2025.12"
    x = lw.asarray([1, 2])
    assert x.__array_namespace__() is lw
    assert x.__array_namespace__(api_version="2025.12") is lw
    for version in ("2021.12", "2022.12", "2023.12", "2024.12"):
        earlier = x.__array_namespace__(api_version=version)
        assert earlier.__array_api_version__ == version
        assert earlier is x.__array_namespace__(api_version=version)
        assert all(hasattr(earlier, name) for name in lw.__all__)
        assert earlier.add is lw.add and earlier.linalg is lw.linalg and earlier.float32 is lw.float32
    with pytest.raises(ValueError, match="1999.12"):
        x.__array_namespace__(api_version="1999.12")


def test_2025_12_gives_tuples_where_2024_12_gives_lists() -> None:
    x = lw.asarray([1, 2])
    earlier = x.__array_namespace__(api_version="2024.12")
    for namespace, kind in ((lw, tuple), (earlier, list)):
        assert type(namespace.meshgrid(x, x)) is kind
        assert type(namespace.broadcast_arrays(x, x)) is kind
        assert type(namespace.__array_namespace_info__().devices()) is kind
    assert [grid.tolist() for grid in earlier.meshgrid(x, x)] == [grid.tolist() for grid in lw.meshgrid(x, x)]


def test_the_sign_of_a_negative_zero_is_a_positive_zero() -> None:
    for dtype in (lw.float32, lw.float64):
        signs = lw.sign(lw.asarray([-0.0, 0.0, -3.0, float("nan")], dtype=dtype))
        assert lw.signbit(signs).tolist()[:3] == [False, False, True]
        assert signs.tolist()[:3] == [0.0, 0.0, -1.0] and lw.isnan(signs).tolist()[3]


@pytest.mark.parametrize("k", [-(2**63), 2**63 - 1, 2**70, -(2**70), -4, 3])
def test_a_diagonal_outside_of_the_matrix_has_no_elements(k: int) -> None:
    assert lw.eye(3, 4, k=k).tolist() == np.eye(3, 4, k=max(-9, min(k, 9))).tolist()


def test_constants() -> None:
    assert (lw.e, lw.pi, lw.inf) == (strict.e, strict.pi, strict.inf)
    assert lw.nan != lw.nan and lw.newaxis is None


def test_information() -> None:
    info = lw.__array_namespace_info__()
    theirs = strict.__array_namespace_info__()
    assert set(info.capabilities()) == set(theirs.capabilities())
    assert info.capabilities()["boolean indexing"] is True
    assert info.capabilities()["data-dependent shapes"] is True
    assert info.default_device() in info.devices()
    assert info.default_device() == lw.zeros(1).device
    assert set(info.default_dtypes()) == set(theirs.default_dtypes())
    for kind in (None, "bool", "signed integer", "unsigned integer", "integral",
                 "real floating", "complex floating", "numeric", ("bool", "integral")):  # fmt: skip
        assert set(info.dtypes(kind=kind)) == set(theirs.dtypes(kind=kind))
    for name, dtype in info.dtypes().items():
        assert dtype == getattr(lw, name)
    with pytest.raises(ValueError):
        info.dtypes(kind="imaginary")
    assert info.default_dtypes()["real floating"] == lw.asarray(1.0).dtype
    assert info.default_dtypes()["complex floating"] == lw.asarray(1j).dtype
    assert info.default_dtypes()["integral"] == lw.asarray(1).dtype
