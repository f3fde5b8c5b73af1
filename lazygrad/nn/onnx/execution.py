"""Nodes one after the other: each through its row, on arrays where the host knows all that it takes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ...config import DEBUG
from ...jit import JitError
from ...report.terminal import show
from ...tensor import Tensor
from . import table
from .graph import Graph, Node, all_nodes
from .table import Row
from .values import Array, Value, array_of, has_tensor_dtype, tensor_of


class Steered(Exception):
    """Inside of a capture a value is needed on the host: the nodes cannot be captured as one."""


class Scope(dict[str, Value]):
    """The values of a graph by name; those of the graphs around it are seen through it."""

    def __init__(self, outer: Mapping[str, Value], own: Mapping[str, Value]) -> None:
        super().__init__(own)
        self.outer = outer

    def __missing__(self, name: str) -> Value:
        return self.outer[name]


class Body:
    """A graph inside of a node, as a function of values."""

    def __init__(self, run: Run, graph: Graph, scope: Mapping[str, Value]) -> None:
        self.run, self.graph, self.scope = run, graph, scope

    def __call__(self, *values: Value) -> list[Value]:
        inner = Scope(self.scope, self.graph.constants)
        inner.update(zip(self.graph.inputs, values, strict=False))
        self.run.nodes(self.graph.nodes, inner)
        return [inner[name] for name in self.graph.outputs]

    def alone(self) -> Body:
        """The same, for what its results are like: it computes no value that is needed on the host."""
        return Body(Run(self.run.weights, captured=True), self.graph, self.scope)


class Run:
    """What the nodes of one call share.

    captured   the call is being captured: a value that steers cannot be read
    met        the places of the nodes that needed a value of data on the host
    """

    def __init__(self, weights: Weights, captured: bool = False) -> None:
        self.weights, self.captured = weights, captured
        self.position = -1
        self.met: dict[int, list[str]] = {}
        self._node: Node | None = None

    def nodes(self, nodes: Sequence[Node], scope: Scope, places: Sequence[int] | None = None) -> None:
        """Run nodes in order; `places` are theirs in the whole graph, where they are of its top."""
        for number, node in enumerate(nodes):
            if places is not None:
                self.position = places[number]
            outer, self._node = self._node, node
            try:
                results = self.node(node, scope)
            except (Steered, NotImplementedError, NodeError, JitError):
                raise
            except Exception as error:
                raise _at(node, scope, error) from error
            finally:
                self._node = outer
            for name, value in zip(node.outputs, results, strict=False):
                if name:
                    scope[name] = value

    def node(self, node: Node, scope: Scope) -> Sequence[Value]:
        values = [scope[name] if name else None for name in node.inputs]
        if node.function is not None:
            graph = node.function.graph
            inner = Scope({}, graph.constants)
            inner.update(dict.fromkeys(graph.inputs))
            inner.update(zip(graph.inputs, values, strict=False))
            self.nodes(graph.nodes, inner)
            return [inner[name] for name in graph.outputs]
        row = node.row
        assert row is not None, "the builder has refused the graph"
        attributes = node.attributes
        if row.wants or row.raw:
            attributes = {
                name: Body(self, value, scope) if isinstance(value, Graph) else value
                for name, value in attributes.items()
            }
            if "outputs" in row.wants:
                attributes["outputs"] = len(node.outputs)
            if "file_opset" in row.wants:
                attributes["file_opset"] = node.opset
            if "run" in row.wants:
                attributes["run"] = self
        if row.raw:
            return _several(row.function(*values, **attributes))
        if values and all(v is None or isinstance(v, np.ndarray) for v in values):
            found = _on_host(row, values, attributes)
            if found is not None:
                return found
        given: list[Value] = []
        for number, value in enumerate(values):
            if value is None or isinstance(value, list):
                given.append(value)
            elif row.input_name(number) in row.host:
                given.append(self.on_host(value, node.inputs[number]))
            else:
                given.append(self.weights.tensor(value))
        return _several(row.function(*given, **attributes))

    def input_name(self, number: int) -> str:
        """The name of an input of the node that is running."""
        return self._node.inputs[number] if self._node is not None and number < len(self._node.inputs) else ""

    def on_host(self, value: Value, name: str = "") -> Array:
        """The elements of a value that steers; one of data is computed for that, and noted."""
        if not isinstance(value, Tensor):
            return np.asarray(value)
        if self.captured:
            self.met.setdefault(self.position, []).append(name)
            raise Steered(name)
        if self.position not in self.weights.said and DEBUG >= 1 and self._node is not None:
            self.weights.said.add(self.position)
            show(f"ONNX: {self._node} needs the value of {name!r}, so what is before it is computed first")
        self.met.setdefault(self.position, []).append(name)
        return array_of(value)


#: Arrays of more elements are a kernel's work; so are results of more.
_MAX_ON_HOST = 1 << 16


def _on_host(row: Row, values: Sequence[Value], attributes: Mapping[str, Any]) -> list[Array] | None:
    """What an operation makes of arrays by numpy; None where that is none of its business."""
    function = table.host_function(row.domain, row.name)
    if function is None or any(value is not None and value.size > _MAX_ON_HOST for value in values):
        return None
    with np.errstate(all="ignore"):
        results = _several(function(*values, **attributes))
    if any(value is NotImplemented for value in results):
        return None
    return [np.asarray(value) for value in results]


class NodeError(Exception):
    """An error that says at which node it was; see `_at`."""


def _at(node: Node, scope: Scope, error: Exception) -> Exception:
    """The same kind of error, with the node and what it took."""
    given = ", ".join(_shown(scope[name]) if name else "-" for name in node.inputs)
    text = f"{node} of ({given}): {error}"
    words = {IndexError: IndexError, TypeError: TypeError, ValueError: ValueError}
    words |= {KeyError: ValueError, ArithmeticError: ValueError}  # attributes and sizes that make no sense
    kind = next((kind for cause, kind in words.items() if isinstance(error, cause)), RuntimeError)
    made: Exception = type(kind.__name__, (NodeError, kind), {"__module__": "builtins"})(text)
    return made


def _shown(value: Value) -> str:
    if isinstance(value, Tensor):
        return f"{value.dtype.name}{list(value.shape)}"
    if isinstance(value, np.ndarray):
        return f"{value.dtype.name}{list(value.shape)}"
    return f"{len(value)} tensors" if isinstance(value, list) else "nothing"


def _several(result: Any) -> Sequence[Value]:
    results = result if isinstance(result, tuple) else (result,)
    return [np.asarray(value) if isinstance(value, np.generic) else value for value in results]


class Weights:
    """The arrays of a file as Tensors, each made once; arrays that a call made are not kept."""

    def __init__(self) -> None:
        self._arrays: dict[int, tuple[Array, Tensor | None]] = {}
        self._tensors: dict[int, Tensor] = {}
        self._arranged: dict[int, Tensor] = {}
        #: the places of nodes of which it was said that they need a value on the host
        self.said: set[int] = set()

    def keep(self, value: Value) -> None:
        """The Tensor of this array shall be kept; a Tensor is a weight from here on."""
        if isinstance(value, np.ndarray):
            self._arrays.setdefault(id(value), (value, None))
        elif isinstance(value, Tensor):
            self._tensors[id(value)] = value

    def keep_inside(self, graph: Graph) -> None:
        """Those of all nodes, and of the graphs inside of them."""
        for node in all_nodes(graph):
            for value in node.attributes.values():
                self.keep(value)
            for inner in node.graphs():
                for value in inner.constants.values():
                    self.keep(value)

    def tensor(self, value: Value) -> Tensor:
        """The value as a Tensor."""
        if not isinstance(value, np.ndarray) or id(value) not in self._arrays:
            return tensor_of(value)
        tensor = self._arrays[id(value)][1]
        if tensor is None:
            tensor = tensor_of(value)
            if value.size > 1:
                tensor.realize()
                self.keep(tensor)
            self._arrays[id(value)] = (value, tensor)
        return tensor

    def instead(self, array: Array) -> Tensor:
        """The Tensor of an array, which is let go."""
        tensor = self.tensor(array)
        self._arrays.pop(id(array), None)
        return tensor

    def arranged(self, tensor: Tensor, arrange: Callable[[], Tensor]) -> Tensor:
        """Another arrangement of a weight, made once and kept; of other values, made where it is used."""
        if id(tensor) not in self._tensors:
            return arrange()
        found = self._arranged.get(id(tensor))
        if found is None:
            found = self._arranged[id(tensor)] = arrange().contiguous().realize()
        return found

    def forget(self) -> None:
        """All that was kept so far."""
        self._arrays, self._tensors = {}, {}


def _elements(values: Iterable[Value]) -> int:
    return sum(math.prod(value.shape) for value in values if isinstance(value, (Tensor, np.ndarray)))


def folded(graph: Graph, weights: Weights) -> None:
    """Compute the nodes that take nothing but constants, once; what nobody reads any more is let go.

    What would take much more memory than what it is made of stays as it is.
    """
    for value in graph.constants.values():
        weights.keep(value)
    inputs = {*graph.inputs}
    scope = Scope({}, {name: value for name, value in graph.constants.items() if name not in inputs})
    run = Run(weights)
    left: list[Node] = []
    made: list[Tensor] = []
    for node in graph.nodes:
        known = node.row is not None and not node.row.random and not node.graphs()
        if not known or not all(not name or name in scope for name in node.inputs):
            left.append(node)
            continue
        inner = Scope(scope, {})
        run.nodes([node], inner)
        before = _elements(scope[name] for name in node.inputs if name)
        grows = _elements(inner.values()) > max(_MAX_ON_HOST, 4 * before) and node.op_type != "Constant"
        if grows or not all(isinstance(value, (Tensor, np.ndarray)) for value in inner.values()):
            left.append(node)
            continue
        scope |= inner
        made += [value for value in inner.values() if isinstance(value, Tensor)]
    if made:
        made[0].realize(*made[1:])
    graph.nodes = left
    needed = {name for node in left for name in node.reads()} | {*graph.outputs}
    own = {name: value for name, value in graph.constants.items() if name in inputs}
    graph.constants = own | {name: value for name, value in scope.items() if name in needed}
    weights.forget()
    for name, value in graph.constants.items():
        weights.keep(value)
        if isinstance(value, np.ndarray) and value.size > _MAX_ON_HOST and has_tensor_dtype(value):
            graph.constants[name] = weights.instead(value)
    weights.keep_inside(graph)
