"""The table of operations: domain, name and version → a function on values.

    @op("Concat")
    def concat(*tensors, axis): ...

A row's positional parameters are the operation's inputs (None where one is left out), the others its
attributes with the schema's defaults. What was an attribute once and is an input now is one parameter:
`Clip(x, min, max)` reads both. `since` is the first version of the operation that the row is for; of several
rows of a name the latest that a file's opset reaches counts.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

MICROSOFT = "com.microsoft"
TRAINING = "ai.onnx.preview.training"


class Row(NamedTuple):
    """One version of one operation."""

    name: str
    domain: str
    since: int
    function: Callable[..., Any]
    #: the inputs, by name; the last stands for all others where `variadic`
    inputs: tuple[str, ...]
    variadic: bool
    #: the names of attributes; None where the function takes any
    attributes: frozenset[str] | None
    #: inputs whose values steer: they come as arrays
    host: frozenset[str]
    #: the function takes values as they are, and the run as its first argument
    raw: bool
    #: two equal calls may differ
    random: bool
    #: also given: how many results are asked for, the opset
    wants: frozenset[str]

    def input_name(self, number: int) -> str:
        return self.inputs[min(number, len(self.inputs) - 1)] if self.inputs else ""


_ROWS: dict[tuple[str, str], list[Row]] = {}
#: (domain, name) → the same on numpy arrays, for values that the host knows.
_HOST: dict[tuple[str, str], Callable[..., Any]] = {}
#: Rows that need no kernel where the host knows what they take, though they are no functions of arrays.
FREE = {("", name) for name in ("Shape", "Size", "Identity", "Constant", "ConstantOfShape", "Range", "Cast")}
#: What a row may ask for beside its attributes.
_MORE = {"outputs", "file_opset", "run"}


def op(
    *names: str,
    since: int = 1,
    domain: str = "",
    host: tuple[str, ...] = (),
    raw: bool = False,
    random: bool = False,
) -> Callable[[F], F]:
    """Register a function as the row of these operations."""

    def register(function: F) -> F:
        inputs, attributes, variadic, wants = [], set[str](), False, set[str]()
        everything = False
        for name, parameter in inspect.signature(function).parameters.items():
            if parameter.kind is parameter.VAR_POSITIONAL:
                inputs.append(name)
                variadic = True
            elif parameter.kind is parameter.VAR_KEYWORD:
                everything = True
            elif name in _MORE:
                wants.add(name)
            else:
                attributes.add(name)
                if parameter.kind is not parameter.KEYWORD_ONLY:
                    inputs.append(name)
        for name in names:
            row = Row(
                name,
                domain,
                since,
                function,
                tuple(inputs),
                variadic,
                None if everything else frozenset(attributes),
                frozenset(host),
                raw,
                random,
                frozenset(wants),
            )
            rows = _ROWS.setdefault((domain, name), [])
            rows.append(row)
            rows.sort(key=lambda row: row.since)
        return function

    return register


def on_host(*names: str, domain: str = "") -> Callable[[F], F]:
    """Register what the operations do with arrays. They take what the rows of these names take."""

    def register(function: F) -> F:
        for name in names:
            _HOST[domain, name] = function
        return function

    return register


def find(domain: str, name: str, opset: int) -> Row | None:
    """The row for an operation in an opset."""
    rows = [row for row in _ROWS.get((domain, name), ()) if row.since <= opset]
    return rows[-1] if rows else None


def host_function(domain: str, name: str) -> Callable[..., Any] | None:
    return _HOST.get((domain, name))


def needs_no_kernel(domain: str, name: str) -> bool:
    """Whether the host can do the operation with what it knows."""
    return (domain, name) in _HOST or (domain, name) in FREE


def rows() -> Iterator[Row]:
    """All rows."""
    for versions in _ROWS.values():
        yield from versions
