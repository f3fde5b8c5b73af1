"""`nn.summary`: the layers of a model with what they give, hold and compute for an input. Nothing is run."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any, NamedTuple

from ..dtype import dtypes
from ..ir.ops import OPS, Kind, Ops
from ..ir.uop import UOp
from ..shape import prod, shape_of, shape_text, vmax
from ..tensor import Tensor, no_grad
from ..tensor.random.sampling import fork_random
from .module import Module, Watcher, is_layer, is_parameter, walk_tensors, watched
from .state import members_of


class SummaryRow(NamedTuple):
    """A layer of a model.

    name        the path to it; "" for the model itself        depth  how many layers it lies in
    label       the end of the path, from the layer that it lies in
    kind        its class
    shape       of what it gave, "" where it was not called or is of a plain class, which nobody can watch
    parameters  how many numbers its parameters have, those of the layers in it included
    operations  arithmetic on floats that its call makes: one for an element of a result and for each that a
                reduction adds up; a matrix product of n, k, m has 2·n·k·m
    nbytes      of its parameters and buffers
    """

    name: str
    label: str
    depth: int
    kind: str
    shape: str
    parameters: int
    operations: int
    nbytes: int


class Summary:
    """What `summary` found: `rows`, and the sums over the model. It is printed as a table."""

    def __init__(self, rows: list[SummaryRow], trained: int, result_bytes: int) -> None:
        self.rows = rows
        #: how many numbers the parameters have, and how many of those are trained
        self.parameters, self.trained = rows[0].parameters, trained
        #: arithmetic on floats, as in the rows
        self.operations = rows[0].operations
        #: bytes of parameters and buffers; of what the innermost layers give
        self.nbytes, self.result_bytes = rows[0].nbytes, result_bytes

    def __repr__(self) -> str:
        table = [("layer", "result", "parameters", "operations", "bytes")]
        for row in self.rows:
            label = "  " * row.depth + (f"{row.label}: {row.kind}" if row.label else row.kind)
            parameters, operations, held = (
                f"{n:,}" if n else "" for n in (row.parameters, row.operations, row.nbytes)
            )
            table.append((label, row.shape, parameters, operations, held))
        widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
        lines = []
        for line in table:
            left = [line[i].ljust(widths[i]) for i in (0, 1)]
            lines.append("  ".join([*left, *(line[i].rjust(widths[i]) for i in (2, 3, 4))]).rstrip())
        frozen = self.parameters - self.trained
        lines += [
            f"{self.parameters:,} parameters" + (f", of which {frozen:,} are frozen" if frozen else ""),
            f"{self.operations:,} operations; {self.nbytes:,} bytes held, {self.result_bytes:,} of results",
        ]
        return "\n".join(lines)


def summary(model: Any, *inputs: Any, **named: Any) -> Summary:
    """The layers of a model, with what each gives for an input, and holds, and computes.

    inputs, named  what the model is called with; a tuple of sizes stands for a float32 tensor of that shape

    The model is called once, not in training, and its graph is looked at: no kernel runs.

    >>> nn.summary(nn.Sequential(nn.Linear(8, 4), nn.ReLU()), (2, 8))
    layer           result  parameters  operations  bytes
    Sequential      (2, 4)          36         144    144
      0: Linear     (2, 4)          36         136    144
      1: ReLU       (2, 4)                       8
    36 parameters
    144 operations; 144 bytes held, 64 of results
    """
    given = [Tensor.empty(*x) if _is_shape(x) else x for x in inputs]
    layers = list(_layers_in(model))
    watcher = _Recorded()
    with fork_random(), no_grad(), Tensor.test(), watched(watcher):
        result = model(*given, **named)
    if not isinstance(model, Module):  # which has been seen as any other
        watcher.note(model, (given, named), result)
    rows = [
        _row(SummaryRow(name, label, depth, "", "", 0, 0, 0), layer, watcher)
        for name, label, depth, layer in layers
    ]
    tensors = _own_tensors(model)
    trained = sum(t._static_numel() for t in tensors if t.requires_grad)
    inner = {id(layer) for *_, layer in layers if not any(True for _ in _below(layer))}
    results = sum(watcher.bytes[key] for key in inner if key in watcher.bytes)
    return Summary(rows, trained, results)


class _Recorded(Watcher):
    """What the layers gave, by their ids, in this thread: a layer may be called several times."""

    def __init__(self) -> None:
        self.thread = threading.get_ident()
        self.shapes: dict[int, str] = {}
        self.operations: dict[int, int] = {}
        self.bytes: dict[int, int] = {}

    def called(self, module: Module, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        if threading.get_ident() == self.thread:
            self.note(module, (args, kwargs), result)

    def note(self, module: Any, given: Any, result: Any) -> None:
        tensors = list(_tensors_in(result))
        self.shapes[id(module)] = ", ".join(shape_text(t.shape) for t in tensors)
        stop = [*_tensors_in(given), *_own_tensors(module)]
        count = _operations([t.uop for t in tensors], {t.uop for t in stop})
        self.operations[id(module)] = self.operations.get(id(module), 0) + count
        size = sum(t.nbytes() for t in tensors)
        self.bytes[id(module)] = self.bytes.get(id(module), 0) + size


def _row(place: SummaryRow, layer: Any, seen: _Recorded) -> SummaryRow:
    tensors = _own_tensors(layer)
    return place._replace(
        kind=_called(layer),
        shape=seen.shapes.get(id(layer), ""),
        parameters=sum(t._static_numel() for t in tensors if is_parameter(t)),
        operations=seen.operations.get(id(layer), 0),
        nbytes=sum(t.nbytes() for t in tensors),
    )


def _called(layer: Any) -> str:
    return str(getattr(layer, "__name__", type(layer).__name__))  # a model may be a function


def _layers_in(model: Any) -> Iterable[tuple[str, str, int, Any]]:
    """(path, its end, how many layers it lies in, layer): the model, then what is in it, as it stands."""
    visited: set[int] = set()
    todo = [("", "", 0, model)]
    while todo:
        name, label, depth, layer = todo.pop()
        if id(layer) in visited:
            continue
        visited.add(id(layer))
        yield name, label, depth, layer
        below = [(f"{name}.{key}" if name else key, key, depth + 1, part) for key, part in _below(layer)]
        todo.extend(reversed(below))


def _below(layer: Any) -> Iterable[tuple[str, Any]]:
    """The layers directly under one, also those in lists and dicts."""
    todo = [(str(key), part) for key, part in members_of(layer, unsaved=True)][::-1]
    seen = {id(layer)}
    while todo:
        key, part = todo.pop()
        if id(part) in seen or isinstance(part, Tensor):
            continue
        seen.add(id(part))
        if is_layer(part):
            yield key, part
        elif isinstance(part, (list, tuple, dict)):
            todo.extend(reversed([(f"{key}.{inner}", value) for inner, value in members_of(part)]))


def _own_tensors(layer: Any) -> list[Tensor]:
    return [tensor for _, tensor in walk_tensors(layer)]


def _tensors_in(value: Any) -> Iterable[Tensor]:
    """The tensors of arguments or of a result."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _tensors_in(part)
    elif isinstance(value, dict):
        yield from _tensors_in(list(value.values()))


def _operations(results: list[UOp], known: set[UOp]) -> int:
    """The arithmetic on floats between what is known and the results."""
    seen, todo, total = set(known), list(results), 0
    while todo:
        node = todo.pop()
        if node in seen:
            continue
        seen.add(node)
        todo.extend(node.src)
        if dtypes.is_float(node.dtype) and node.op is not Ops.CAST:
            if OPS[node.op].kind is Kind.ELEMENTWISE:
                total += int(vmax(prod(shape_of(node))))
            elif OPS[node.op].kind is Kind.REDUCE:
                total += int(vmax(prod(shape_of(node.src[0]))))
    return total


def _is_shape(value: Any) -> bool:
    return isinstance(value, tuple) and all(isinstance(size, int) for size in value)
