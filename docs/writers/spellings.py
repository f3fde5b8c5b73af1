"""lazygrad/tensor/spellings.pyi: for a type checker, the methods whose arguments have a second name.

An optional argument stands under its second name as a further keyword; a method whose `dim` has to be given
is overloaded.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from lazygrad import Tensor
from lazygrad.tensor import in_place
from lazygrad.tensor.names import renamed_arguments

from .methods import function_of

HEAD = (
    '"""Written by `python docs/generate.py`: `dim` as `axis`, `keepdim` as `keepdims`, and the reverse."""\n'
)
Parameter = inspect.Parameter


def stub(functions: list[tuple[str, Callable[..., Any]]]) -> str:
    """The stub, for methods by name."""
    rows = [(name, function, renamed_arguments(function)) for name, function in functions]
    rows = [
        (name, function, renamed)
        for name, function, renamed in sorted(rows, key=lambda r: r[0])
        if renamed or function.__module__ == in_place.__name__
    ]
    body: list[str] = []
    for name, function, renamed in rows:
        shown = list(_signatures(inspect.signature(function), renamed))
        for text in shown:
            body += ["    @overload"] if len(shown) > 1 else []
            body += [f"    def {name}{text}: ..."]
    imports = _imports([function for _, function, _ in rows])
    head = [HEAD, *imports, "", "class SpellingsMixin(InPlaceMixin):"]
    return "\n".join([*head, *body]) + "\n"


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
    made, star = [], False
    for p in parameters:
        if p.kind is p.KEYWORD_ONLY and not star:
            made.append("*")
            star = True
        default = "" if p.default is p.empty else f" = {p.default!r}"
        made.append(p.name + (f": {p.annotation}" if p.annotation is not p.empty else "") + default)
    return f"({', '.join(made)}) -> {result}"


def _imports(functions: list[Callable[..., Any]]) -> list[str]:
    """Lines that import the names in the annotations from the modules that define them."""
    found: dict[str, set[str]] = {
        "typing": {"Self", "overload"},
        "lazygrad.tensor": {"Tensor"},
        "lazygrad.tensor.in_place": {"InPlaceMixin"},
    }
    for function in functions:
        for annotation in inspect.get_annotations(function).values():
            for node in ast.walk(ast.parse(annotation)):
                if (
                    isinstance(node, ast.Name)
                    and node.id not in ("Tensor", "Self")
                    and not hasattr(builtins, node.id)
                ):
                    found.setdefault(_home_of(node.id), set()).add(node.id)
    return [f"from {module} import {', '.join(sorted(names))}" for module, names in sorted(found.items())]


def _home_of(name: str) -> str:
    """The module that defines a name which the annotations of methods use."""
    modules = [module for known, module in sorted(sys.modules.items()) if known.startswith("lazygrad.")]
    family = [module for module in modules if module.__name__.startswith("lazygrad.tensor.")]
    value = next(vars(module)[name] for module in family if name in vars(module))
    home = getattr(value, "__module__", None)
    if isinstance(value, type) and home:
        return str(home)
    for module in [*family, *modules]:
        if module.__file__ and re.search(rf"^{name} = ", Path(module.__file__).read_text("utf-8"), re.M):
            return module.__name__
    return str(home or "typing")


def spellings_stub() -> str:
    """The stub for all of Tensor."""
    public = [name for name in dir(Tensor) if not name.startswith("_")]
    return stub([(name, function) for name in public if (function := function_of(name)) is not None])
