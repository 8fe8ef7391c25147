"""Every name of the standard is there, with its signature."""

from __future__ import annotations

import inspect

import array_api_strict as strict
import loopwright as lw
import pytest

from .reference import resolve

OF_STRICT = {
    "ArrayAPIStrictFlags", "Device", "__version__", "get_array_api_strict_flags",
    "reset_array_api_strict_flags", "set_array_api_strict_flags",
}  # fmt: skip

NAMES = [
    *(name for name in strict.__all__ if name not in OF_STRICT),
    *(f"linalg.{name}" for name in strict.linalg.__all__),
    *(f"fft.{name}" for name in strict.fft.__all__),
]
FUNCTIONS = [name for name in NAMES if inspect.isfunction(resolve(strict, name))]

#: Where the standard gives a default that array-api-strict has not.
MORE_DEFAULTS = {("expand_dims", "axis")}

METHODS = [
    "__abs__", "__add__", "__and__", "__array_namespace__", "__bool__", "__complex__",
    "__dlpack__", "__dlpack_device__", "__eq__", "__float__", "__floordiv__", "__ge__",
    "__getitem__", "__gt__", "__index__", "__int__", "__invert__", "__le__", "__lshift__",
    "__lt__", "__matmul__", "__mod__", "__mul__", "__ne__", "__neg__", "__or__", "__pos__",
    "__pow__", "__rshift__", "__setitem__", "__sub__", "__truediv__", "__xor__",
    "__iadd__", "__iand__", "__ifloordiv__", "__ilshift__", "__imatmul__", "__imod__",
    "__imul__", "__ior__", "__ipow__", "__irshift__", "__isub__", "__itruediv__", "__ixor__",
    "__radd__", "__rand__", "__rfloordiv__", "__rlshift__", "__rmatmul__", "__rmod__",
    "__rmul__", "__ror__", "__rpow__", "__rrshift__", "__rsub__", "__rtruediv__", "__rxor__",
    "T", "mT", "device", "dtype", "ndim", "shape", "size", "to_device",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_name(name: str) -> None:
    assert resolve(lw, name) is not None or name == "newaxis"
    space = resolve(lw, name.rpartition(".")[0]) if "." in name else lw
    assert name.rpartition(".")[2] in space.__all__


@pytest.mark.parametrize("name", FUNCTIONS)
def test_signature(name: str) -> None:
    want = inspect.signature(resolve(strict, name)).parameters
    got = inspect.signature(resolve(lw, name)).parameters
    assert list(got) == list(want)
    for one in want:
        assert got[one].kind == want[one].kind, one
        if (name, one) in MORE_DEFAULTS or "Undef" in str(want[one].default):
            continue
        assert got[one].default == want[one].default, one


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
    assert lw.__array_api_version__ == "2024.12"
    x = lw.asarray([1, 2])
    assert x.__array_namespace__() is lw
    for version in ("2021.12", "2022.12", "2023.12", "2024.12"):
        assert x.__array_namespace__(api_version=version) is lw
    with pytest.raises(ValueError):
        x.__array_namespace__(api_version="1999.12")


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
