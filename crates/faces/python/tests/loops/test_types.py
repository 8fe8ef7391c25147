"""The types that are written down are those of the module."""

from __future__ import annotations

import ast
import inspect
import pathlib

from loopwright import loops

STUB = pathlib.Path(loops.__file__).with_suffix(".pyi")


def test_the_stub_has_what_the_module_has():
    tree = ast.parse(STUB.read_text())
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    for name in loops.__all__:
        thing = getattr(loops, name)
        if not inspect.isclass(thing):
            assert name in functions or name in {"FEATURES", "ops"}, name
            continue
        if issubclass(thing, Exception):
            assert name in classes
            continue
        said = {node.name for node in classes[name].body if isinstance(node, ast.FunctionDef)}
        there = {attribute for attribute in vars(thing) if not attribute.startswith("_")}
        assert {attribute for attribute in said if not attribute.startswith("_")} == there, name
        for attribute in said:
            assert hasattr(thing, attribute) or attribute in {"__buffer__", "__getattr__"}, (
                name,
                attribute,
            )


def test_the_stub_has_the_modules_parameters():
    tree = ast.parse(STUB.read_text())
    for node in tree.body:
        if not isinstance(node, ast.ClassDef) or node.name.startswith("_") or node.bases:
            continue
        for method in node.body:
            if (
                not isinstance(method, ast.FunctionDef)
                or method.name.startswith("_")
                or method.decorator_list
            ):
                continue
            given = [
                each.arg
                for each in (*method.args.posonlyargs, *method.args.args, *method.args.kwonlyargs)
            ]
            signature = inspect.signature(getattr(getattr(loops, node.name), method.name))
            plain = (
                parameter.name
                for parameter in signature.parameters.values()
                if parameter.kind not in (2, 4)
            )
            assert given == list(plain), f"{node.name}.{method.name}{signature}"
