"""Writes `python/loopwright/_core.pyi`: the names and signatures of the extension module, for editors and type checkers.

The signatures are those that the module itself gives. What it does not say, the types, is in the tables below;
a test sees that the file is what this script writes (`python stubs.py --check`).
"""

from __future__ import annotations

import inspect
import sys
from pathlib import Path

import loopwright  # noqa: F401: methods that are written in Python
from loopwright import _core

TARGET = Path(__file__).parent / "python" / "loopwright" / "_core.pyi"

HEAD = '''"""The part of Loopwright that is written in Rust; written by stubs.py."""

import builtins
from collections.abc import Iterator
from typing import Any, ClassVar

'''

# What functions give, by name; most give an array.
GIVES = {
    "dtype": "DType",
    "result_type": "DType",
    "default_dtype": "DType",
    "set_default_dtype": "None",
    "same_kind": "builtins.bool",
    "devices": "list[Device]",
    "current_device": "Device",
    "set_default_device": "None",
    "scope_variable": "None",
    "realize": "None",
    "ops": "list[tuple[str, int, str]]",
    "nonzero": "list[Array]",
    "linalg_on_host": "bool",
    "linalg_slogdet": "tuple[Array, Array]",
    "linalg_qr": "tuple[Array, Array]",
    "linalg_eig": "tuple[Array, Array]",
    "linalg_eigh": "tuple[Array, Array]",
    "linalg_svd": "tuple[Array, Array, Array]",
    "vjp": "tuple[Any, Pullback]",
    "jvp": "tuple[Any, Any]",
    "jacobian": "Any",
    "hessian": "Any",
    "vmap": "Any",
    "checkpoint": "Any",
    "assign": "None",
    "loops_of": "Loops",
    "scan_along": "tuple[Any, Any]",
    "repeat_at_most": "Any",
    "choose": "Any",
    "topk": "tuple[Array, Array]",
    "einsum_with": "tuple[Array, dict[str, int]]",
    "sparkline": "str",
    "seed": "None",
    "is_training": "builtins.bool",
    "set_training": "builtins.bool",
    "set_mixed_precision": "DType | None",
    "value_and_gradients": "tuple[Any, list[Array]]",
    "ArrayDataset": "Dataset",
    "digits": "Examples",
    "moons": "Examples",
    "blobs": "Examples",
    "spirals": "Examples",
    "linear": "tuple[Examples, list[float], float]",
    "waves": "Examples",
    "stratified": "tuple[list[int], list[int]]",
    "vocabulary": "str",
    "write_npy": "None",
    "checkpoint_save": "None",
    "checkpoint_write": "None",
    "checkpoint_load": "dict[str, str]",
    "checkpoint_load_as": "dict[str, str]",
    "checkpoint_read": "tuple[dict[str, Array], dict[str, str]]",
    "train_digits": "dict[str, Any]",
}

# Methods and attributes, by class and name; of `Array` most methods give one.
MEMBERS = {
    ("Array", "dtype"): "DType",
    ("Array", "shape"): "tuple[int, ...]",
    ("Array", "ndim"): "int",
    ("Array", "size"): "int",
    ("Array", "names"): "tuple[str | None, ...]",
    ("Array", "device"): "Device",
    ("Array", "is_computed"): "builtins.bool",
    ("Array", "item"): "Any",
    ("Array", "tolist"): "Any",
    ("Array", "_repr_html_"): "str | None",
    ("Array", "__array_priority__"): "ClassVar[float]",
    ("DType", "name"): "str",
    ("DType", "itemsize"): "int",
    ("DType", "kind"): "str",
    ("Device", "name"): "str",
    ("Device", "description"): "str",
    ("Device", "wait"): "None",
    ("Device", "memory"): "tuple[int, int]",
    ("Device", "compilations"): "tuple[int, int]",
    ("Array", "loops"): "Loops",
    ("Function", "loops"): "Loops",
    ("Function", "reports"): "list[tuple[str, int, int, int]]",
    ("Variable", "get"): "Array",
    ("Variable", "set"): "None",
    ("Variable", "freeze"): "None",
    ("Variable", "id"): "int",
    ("Variable", "trained"): "builtins.bool",
    ("Key", "split"): "list[Key]",
    ("Key", "fold_in"): "Key",
    ("Key", "of_shard"): "Key",
    ("Key", "seed"): "Array",
    ("Generator", "key"): "Key",
    ("Generator", "seed"): "int",
    ("Generator", "count"): "Variable",
    ("Loops", "graph"): "str",
    ("Loops", "schedule"): "str",
    ("Loops", "tree"): "str",
    ("Loops", "kernel"): "str",
    ("Loops", "code"): "str",
    ("Loops", "notes"): "list[str]",
    ("Loops", "set_schedule"): "Loops",
    ("Loops", "mutate"): "Loops",
    ("Loops", "reset"): "Loops",
    ("Schedule", "after_warmup"): "Schedule",
    ("Schedule", "rate"): "Array",
    ("Chart", "points"): "Chart",
    ("Chart", "values"): "Chart",
    ("Chart", "svg"): "str",
    ("Chart", "terminal"): "str",
    ("Chart", "save"): "None",
    ("Dataset", "batch"): "list[Array]",
    ("Dataset", "map"): "Dataset",
    ("Dataset", "select"): "Dataset",
    ("Examples", "inputs"): "Array",
    ("Examples", "targets"): "Array",
    ("Examples", "dataset"): "Dataset",
    ("Examples", "split"): "tuple[Examples, Examples]",
    ("Loader", "position"): "str",
    ("Loader", "epoch"): "int",
    ("Loader", "examples"): "int",
    ("Loader", "resume"): "None",
    ("Loader", "next_batch"): "list[Array] | None",
    ("Table", "names"): "list[str]",
    ("Table", "matrix"): "Array",
    ("Table", "array"): "Array",
    ("Table", "categories"): "tuple[Array, list[str]]",
    ("Reader", "keys"): "list[str]",
    ("Reader", "metadata"): "dict[str, str]",
    ("Reader", "infos"): "dict[str, tuple[DType, list[int]]]",
    ("Optimizer", "apply"): "None",
    ("Optimizer", "scaled"): "Array",
    ("Optimizer", "variables"): "list[tuple[str, Variable]]",
    ("Layer", "entries"): "list[tuple[str, Variable]]",
    ("Layer", "part"): "Layer",
    ("Average", "update"): "None",
    ("Average", "swap"): "None",
}

# What special methods give.
SPECIAL = {
    "__bool__": "builtins.bool",
    "__complex__": "complex",
    "__contains__": "builtins.bool",
    "__delitem__": "None",
    "__dlpack__": "Any",
    "__dlpack_device__": "tuple[int, int]",
    "__array__": "Any",
    "__array_namespace__": "Any",
    "__call__": "Any",
    "__float__": "float",
    "__format__": "str",
    "__getattr__": "Any",
    "__get__": "Any",
    "__hash__": "int",
    "__index__": "int",
    "__int__": "int",
    "__iter__": "Iterator[Any]",
    "__len__": "int",
    "__next__": "Any",
    "__reduce__": "Any",
    "__repr__": "str",
    "__setitem__": "None",
    "__str__": "str",
    "__eq__": "Any",
    "__ne__": "Any",
}

# Written by the interpreter for every class.
SKIPPED = {
    "__class__", "__delattr__", "__dict__", "__dir__", "__doc__", "__getattribute__", "__getstate__", "__init__",
    "__init_subclass__", "__module__", "__new__", "__reduce_ex__", "__setattr__", "__sizeof__", "__subclasshook__",
    "__weakref__", "__buffer__", "__release_buffer__", "__firstlineno__", "__static_attributes__",
}  # fmt: skip


def parameters(function: object, skip_self: bool) -> str:
    """The parameters as in a `def`, every one of any type."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return "*arguments: Any" if not skip_self else "self, *arguments: Any"
    parts, star, slash = [], False, False
    listed = list(signature.parameters.values())
    for at, parameter in enumerate(listed):
        kind, name = parameter.kind, parameter.name.lstrip("$")
        if kind is parameter.POSITIONAL_ONLY:
            slash = True
        elif slash:
            parts.append("/")
            slash = False
        if kind is parameter.KEYWORD_ONLY and not star:
            parts.append("*")
            star = True
        text = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(kind, "") + name
        star = star or kind is parameter.VAR_POSITIONAL
        if at == 0 and skip_self:
            parts.append("self")
            continue
        text += ": Any"
        if parameter.default is not parameter.empty:
            text += " = ..."
        parts.append(text)
    if slash:
        parts.append("/")
    return ", ".join(parts)


def first_line(thing: object) -> str:
    text = (inspect.getdoc(thing) or "").strip()
    return text.split("\n\n")[0].replace("\n", " ").replace("\\", "\\\\").replace('"""', "'''")


def of_class(cls: type) -> list[str]:
    base = next((b.__name__ for b in cls.__mro__[1:2] if b is not object), None)
    lines = [f"class {cls.__name__}{f'({base})' if base else ''}:", f'    """{first_line(cls)}"""', ""]
    if issubclass(cls, BaseException):
        return lines
    if "__new__" in vars(cls):
        constructor = parameters(cls, False)
        rest = f", {constructor}" if constructor else ""
        lines.append(f"    def __init__(self{rest}) -> None: ...")
    for name in sorted(vars(cls)):
        member = vars(cls)[name]
        if name in SKIPPED:
            continue
        key = (cls.__name__, name)
        if inspect.isgetsetdescriptor(member) or inspect.ismemberdescriptor(member):
            given = MEMBERS.get(key, "Array" if cls.__name__ == "Array" else "Any")
            lines += ["    @property", f"    def {name}(self) -> {given}:", f'        """{first_line(member)}"""']
        elif isinstance(member, (staticmethod, classmethod)):
            function = getattr(cls, name)
            kind = "staticmethod" if isinstance(member, staticmethod) else "classmethod"
            first = "" if kind == "staticmethod" else "cls, "
            lines += [f"    @{kind}"]
            lines += [f"    def {name}({first}{parameters(function, False)}) -> {MEMBERS.get(key, 'Any')}: ..."]
        elif callable(member):
            given = MEMBERS.get(key) or SPECIAL.get(name)
            given = given or ("Array" if cls.__name__ == "Array" else "Any")
            if name == "__hash__" and member is None:
                continue
            lines.append(f"    def {name}({parameters(member, True)}) -> {given}:")
            lines.append(f'        """{first_line(member)}"""')
        elif member is not None or name != "__hash__":
            lines.append(f"    {name}: {MEMBERS.get(key, 'ClassVar[Any]')}")
    return lines


def written() -> str:
    """The whole stub."""
    classes, functions, values = [], [], []
    for name in sorted(vars(_core)):
        thing = getattr(_core, name)
        if name.startswith("__") and name != "__version__":
            continue
        if inspect.isclass(thing):
            classes.append("\n".join(of_class(thing)))
        elif callable(thing) and not isinstance(thing, _core.DType):
            given = GIVES.get(name, "Array")
            functions.append(
                f"def {name}({parameters(thing, False)}) -> {given}:\n"
                f'    """{first_line(thing)}"""'
            )
        elif inspect.ismodule(thing):
            continue
        else:
            values.append(f"{name}: {type(thing).__name__}")
    return HEAD + "\n".join(values) + "\n\n" + "\n\n".join(classes + functions) + "\n"


if __name__ == "__main__":
    text = written()
    if sys.argv[1:] == ["--check"]:
        if TARGET.read_text() != text:
            sys.exit(f"{TARGET.name} is not what the module is; write it anew: python crates/faces/python/stubs.py")
    else:
        TARGET.write_text(text)
