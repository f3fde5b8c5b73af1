"""Stretches of a graph that run under one capture each: all of it, where no value of data steers.

A node that needs a value of data on the host ends a stretch, runs plainly, and another one begins behind it.
A stretch is captured for what comes into it: the shapes of tensors, the values that the host knows.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...config import DEBUG
from ...ir.ops import Ops
from ...jit import JitError, TinyJit
from ...jit.capture import capturing
from ...report.terminal import show
from ...tensor import Tensor
from ...tensor.storage import base_of
from .execution import Run, Scope, Weights
from .graph import Graph, Node
from .values import Value

#: A stretch keeps the captures of so many kinds of what comes in: those that were used last.
MAX_CAPTURES = 16


class Segment:
    """Some nodes that follow each other, and the names of the values that come in and go out.

    final  the outputs of the graph: what the user gets is in memory of its own
    """

    def __init__(
        self,
        nodes: Sequence[Node],
        places: Sequence[int],
        constants: set[str],
        needed: set[str],
        final: set[str],
        weights: Weights,
    ) -> None:
        self.nodes, self.slots, self.weights, self.final = nodes, places, weights, final
        own: set[str] = set()
        read: dict[str, None] = {}
        for node in nodes:
            for name in node.reads():
                if name not in own and name not in constants:
                    read[name] = None
            own.update(node.outputs)
        self.inputs = list(read)
        self.outputs = [
            name for name in dict.fromkeys(n for node in nodes for n in node.outputs) if name in needed
        ]
        self._captures: OrderedDict[Any, _Captured] = OrderedDict()

    def run(self, scope: Scope, met: dict[int, list[str]]) -> None:
        """Replay, or capture, or run plainly; the results are put into the scope."""
        tensors: list[Tensor] = []
        key = tuple(_key(scope[name], tensors) for name in self.inputs)
        captured = self._captures.get(key)
        if captured is None:
            captured = self._captures[key] = _Captured(self, {name: scope[name] for name in self.inputs})
            if len(self._captures) > MAX_CAPTURES:
                self._captures.popitem(last=False)
        else:
            self._captures.move_to_end(key)
        results = captured.call(tensors, scope.outer, met)
        for name, value in zip(self.outputs, results, strict=True):
            scope[name] = value


class _Captured:
    """A segment for one kind of what comes in."""

    def __init__(self, segment: Segment, example: dict[str, Value]) -> None:
        self.segment = segment
        number = [0]
        #: what the host knows, with places for tensors
        self.form = {name: _formed(value, number) for name, value in example.items()}
        self.result_form: list[Value] = []
        self.outer: Any = {}
        self.met: dict[int, list[str]] = {}
        self._jit: TinyJit[Any, list[Tensor]] | None = TinyJit(self._traced)

    def call(self, tensors: list[Tensor], outer: Any, met: dict[int, list[str]]) -> list[Value]:
        self.outer, self.met = outer, met
        if self._jit is not None:
            try:
                results = self._jit(tensors)
                return [_filled(form, results) for form in self.result_form]
            except JitError as error:
                self._jit = None
                if DEBUG >= 1:
                    show(f"ONNX: {len(self.segment.nodes)} nodes run without a capture: {error}")
        results = self._traced(tensors)
        Tensor.realize(*results) if results else None
        return [_filled(form, results) for form in self.result_form]

    def _traced(self, tensors: list[Tensor]) -> list[Tensor]:
        segment = self.segment
        scope = Scope(self.outer, {name: _filled(form, tensors) for name, form in self.form.items()})
        run = Run(segment.weights, captured=capturing.now is not None)
        try:
            run.nodes(segment.nodes, scope, segment.slots)
        finally:
            for place, names in run.met.items():
                self.met.setdefault(place, []).extend(names)
        results: list[Tensor] = []
        self.result_form = []
        for name in segment.outputs:
            value = scope.get(name)
            if name in segment.final:
                value = _unaliased(value)
            found: list[Tensor] = []
            _key(value, found)
            self.result_form.append(_formed(value, [len(results)]))
            results += found
        return results


def _unaliased(value: Value) -> Value:
    """A result in memory of its own, where it would look at an argument or at a weight."""
    if isinstance(value, list):
        return [_unaliased(part) for part in value]
    looks = isinstance(value, Tensor) and base_of(value._value()).op is Ops.BUFFER
    return value.clone() if looks else value


def _key(value: Value, tensors: list[Tensor]) -> Any:
    """What a capture depends on; the tensors in the value are gathered."""
    if isinstance(value, Tensor):
        tensors.append(value)
        return value.shape, value.dtype
    if isinstance(value, np.ndarray):
        data = tuple(value.reshape(-1)) if value.dtype.kind in "OUT" else value.tobytes()
        return value.shape, value.dtype.name, data
    return tuple(_key(part, tensors) for part in value) if isinstance(value, list) else None


class _TensorSlot:
    """Where a tensor stands in a value."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number


def _formed(value: Value, number: list[int]) -> Value:
    """The value with places instead of its tensors, numbered on from `number`."""
    if isinstance(value, Tensor):
        number[0] += 1
        return _TensorSlot(number[0] - 1)
    return [_formed(part, number) for part in value] if isinstance(value, list) else value


def _filled(form: Value, tensors: Sequence[Tensor]) -> Value:
    if isinstance(form, _TensorSlot):
        return tensors[form.number]
    return [_filled(part, tensors) for part in form] if isinstance(form, list) else form


def cut(
    graph: Graph, barriers: set[int], weights: Weights, given: frozenset[str]
) -> list[Segment | tuple[int, Node]]:
    """The graph's nodes as stretches and single nodes that need a value of data. `given` are the inputs that
    a call has values for, in the place of the file's.
    """
    constants, final = {*graph.constants} - given, {*graph.outputs}
    groups: list[list[int]] = [[]]
    for place in range(len(graph.nodes)):
        groups += [[place], []] if place in barriers else []
        if place not in barriers:
            groups[-1].append(place)
    groups = [part for part in groups if part]
    reads = [{name for place in part for name in graph.nodes[place].reads()} for part in groups]
    found: list[Segment | tuple[int, Node]] = []
    for number, part in enumerate(groups):
        if part[0] in barriers:
            found.append((part[0], graph.nodes[part[0]]))
        else:
            needed = final.union(*reads[number + 1 :])
            found.append(
                Segment([graph.nodes[place] for place in part], part, constants, needed, final, weights)
            )
    return found
