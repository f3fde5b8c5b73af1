"""lazygrad/tensor/face.pyi: Tensor for type checkers and editors, the methods of all families.

A method stands under the file that defines it, with what it says of itself. An optional argument stands under
its second name as a further keyword; a method whose `dim` has to be given is overloaded.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import re
import sys
import textwrap
import typing
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from lazygrad import tensor
from lazygrad.tensor import face, in_place, names
from lazygrad.tensor.core import TensorCore

from .signatures import parameter_list

HEAD = '"""Written by `python docs/generate.py face` from the files of the families."""\n'
Parameter = inspect.Parameter
#: What stands in the stub itself.
_OWN = {"Tensor", "builtins"}
#: Comparisons give tensors, where `object` promises a bool.
OTHER_THAN_OBJECT = ("__eq__", "__ne__")


def face_stub(families: Iterable[type] = tensor.FAMILIES) -> str:
    """The stub of Tensor."""
    body: list[str] = []
    for family in families:
        body += ["", f"    # {family.__module__.removeprefix('lazygrad.tensor.')}"]
        for name, member in vars(family).items():
            body += _member(name, member)
    body += ["", "    # core, whose methods are in TensorCore: those with a second name of an argument"]
    for name, member in vars(TensorCore).items():
        if inspect.isfunction(member) and not name.startswith("_"):
            found = inspect.unwrap(member)
            body += _function(name, found) if names.renamed_arguments(found) else []
    body += ["", "    # names: other names"]
    for name in names.OTHER_NAMES:
        body += _function(name, _plain(name))
    body += ["", "    # in_place"]
    for name in in_place.names_in_place():
        body += _function(name, _plain(name))
    shown = textwrap.indent(inspect.getdoc(tensor.Tensor) or "", "    ").strip()
    own = ["class Tensor(TensorCore):", f'    """{shown}', '    """']
    return "\n".join([HEAD, *_imports(body), "", *own, *body]) + "\n"


def _plain(name: str) -> Any:
    return inspect.unwrap(getattr(tensor.Tensor, name))


def _member(name: str, member: Any) -> list[str]:
    """The lines of a method or a property; none where only its own file knows the types."""
    if isinstance(member, property):
        lines = _function(name, member.fget)
        return ["    @property", *lines] if lines else []
    kind = type(member).__name__
    if kind in ("classmethod", "staticmethod"):
        return _function(name, inspect.unwrap(member.__func__), f"    @{kind}")
    return _function(name, inspect.unwrap(member)) if inspect.isfunction(member) else []


def _function(name: str, function: Any, decorator: str = "") -> list[str]:
    if any(_home_of(used) is None for used in _names_in(inspect.get_annotations(function).values())):
        return []
    renamed = {} if name.startswith("_") else names.renamed_arguments(function)
    shown = [
        text
        for one in typing.get_overloads(function) or [function]
        for text in _signatures(inspect.signature(one), renamed)
    ]
    lines = []
    doc = "" if name.startswith("_") else inspect.getdoc(function) or ""
    for text in shown:
        lines += ["    @overload"] if len(shown) > 1 else []
        lines += [decorator] if decorator else []
        ignored = "  # type: ignore[override]" if name in OTHER_THAN_OBJECT else ""
        lines.append(f"    def {name}{text}: {repr(doc) if doc else '...'}{ignored}")
        doc = ""
    return lines


def _signatures(signature: inspect.Signature, renamed: dict[str, str]) -> Iterator[str]:
    """The signature with what is optional under both names; and one with the second name of what is not."""
    parameters = list(signature.parameters.values())
    for new, old in renamed.items():
        known = signature.parameters[old]
        if known.default is not Parameter.empty:
            parameters.append(known.replace(name=new, kind=Parameter.KEYWORD_ONLY))
    yield _text(parameters, signature.return_annotation)
    second = []
    kind = Parameter.POSITIONAL_OR_KEYWORD
    for p in parameters:
        new = next((n for n, old in renamed.items() if old == p.name and p.default is Parameter.empty), None)
        if new is not None:
            kind = Parameter.KEYWORD_ONLY
        second.append(p.replace(name=new or p.name, kind=max(p.kind, kind)))
    if kind is Parameter.KEYWORD_ONLY:
        yield _text(second, signature.return_annotation)


def _text(parameters: list[inspect.Parameter], result: str) -> str:
    return f"({parameter_list(parameters, _after_name)}) -> {_qualified(result)}"


def _after_name(p: inspect.Parameter) -> str:
    kind = "" if p.annotation is p.empty else f": {_qualified(p.annotation)}"
    return kind if p.default is p.empty else f"{kind} = {_default(p.default)}"


def _qualified(annotation: str) -> str:
    """The annotation where the methods' names are known: `bool` is one of them."""
    return re.sub(r"\b(bool|float|int)\b", r"builtins.\1", str(annotation))


def _default(value: Any) -> str:
    try:
        ast.literal_eval(repr(value))
    except (ValueError, SyntaxError):
        return "..."  # as stubs say what is no literal
    return repr(value)


# ---- the types ----


def _names_in(annotations: Iterable[Any]) -> set[str]:
    """The names that annotations use, without those of Python and of this file."""
    found = {
        node.id
        for annotation in annotations
        for node in ast.walk(ast.parse(str(annotation)))
        if isinstance(node, ast.Name) and not hasattr(builtins, node.id)
    }
    return found - _OWN


def _imports(body: list[str]) -> list[str]:
    """Lines that import the names in the signatures from the modules that define them."""
    found: dict[str, set[str]] = {"lazygrad.tensor.core": {"TensorCore"}}
    tree = ast.parse("\n".join(["class Tensor:", *body]))
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not hasattr(builtins, node.id) and node.id not in _OWN:
            home = _home_of(node.id)
            if home:
                found.setdefault(home, set()).add(node.id)
    numpy = found.pop("numpy", None)
    lines = [f"from {module} import {', '.join(sorted(used))}" for module, used in sorted(found.items())]
    return ["import builtins", *(["import numpy as np"] if numpy else []), *lines]


def _home_of(name: str) -> str | None:
    """The module that defines a name which annotations use; None where it stands above the face."""
    if name == "np":
        return "numpy"
    if name in ("Any", "Self", "overload"):
        return "typing"
    modules = [module for known, module in sorted(sys.modules.items()) if known.startswith("lazygrad.")]
    family = [module for module in modules if module.__name__.startswith("lazygrad.tensor.")]
    value = next(vars(module)[name] for module in family if name in vars(module))
    home = getattr(value, "__module__", None)
    if not (isinstance(value, type) and home):
        places = [*family, *modules]
        texts = ((m.__name__, Path(m.__file__).read_text("utf-8")) for m in places if m.__file__)
        home = next((m for m, text in texts if re.search(rf"^{name} = ", text, re.M)), home or "typing")
    above = vars(sys.modules[home]).get("Tensor") is tensor.Tensor and home != face.__name__
    return None if above else str(home)
