"""From protos to nodes with their rows: what is missing is found here, before anything runs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

import numpy as np

from . import table
from .files import array_of_proto, onnx_module
from .inputs import is_fixed
from .table import Row
from .values import Array, Value

#: Functions may call others, and graphs be inside of others, so deep.
_MAX_DEPTH = 64
#: So many nodes may the calls of functions become: a file of some kB whose functions call the next one twice
#: would become as many as it likes.
_MAX_INLINED = 1 << 16
#: The elements of a sparse tensor, which is kept as a dense one.
_MAX_DENSE = 1 << 28
_DEFAULT = ("", "ai.onnx")


class Missing:
    """What a file needs and the table lacks: operation → why."""

    def __init__(self) -> None:
        self.reasons: dict[str, str] = {}

    def note(self, operation: str, reason: str = "") -> None:
        self.reasons.setdefault(operation, reason)

    def check(self, name: str) -> None:
        """NotImplementedError that names all of it."""
        if self.reasons:
            lines = [f"{what}{reason and f' ({reason})'}" for what, reason in sorted(self.reasons.items())]
            raise NotImplementedError(f"{name} needs operations that are not supported: {', '.join(lines)}")


class Function:
    """A call of a graph instead of an operation: of a function in the file, or of what a schema says."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph


class Node:
    """One operation: its row or function, the names of its values, its attributes as Python values."""

    __slots__ = ("attributes", "domain", "function", "inputs", "name", "op_type", "opset", "outputs", "row")

    def __init__(self, proto: Any, domain: str, opset: int) -> None:
        self.op_type: str = proto.op_type
        self.name: str = proto.name
        self.domain, self.opset = domain, opset
        self.inputs: list[str] = list(proto.input)
        self.outputs: list[str] = list(proto.output)
        for name in (proto.op_type, proto.domain, proto.name, *self.inputs, *self.outputs):
            if not isinstance(name, str):  # what protobuf gives for bytes that are no text
                raise ValueError(f"a node has the name {name!r}, which is not UTF-8")
        self.row: Row | None = None
        self.function: Function | None = None
        self.attributes: dict[str, Any] = {}

    def __str__(self) -> str:
        operation = f"{self.domain}.{self.op_type}" if self.domain else self.op_type
        return f"{operation} {self.name!r}" if self.name else f"{operation} that makes {self.outputs[0]!r}"

    def graphs(self) -> list[Graph]:
        """The graphs inside of it."""
        inner = [value for value in self.attributes.values() if isinstance(value, Graph)]
        return inner + ([self.function.graph] if self.function else [])

    def reads(self) -> list[str]:
        """The values from outside that it needs, those of the graphs inside of it too."""
        names = [name for name in self.inputs if name]
        for value in self.attributes.values():
            if isinstance(value, Graph):
                names += value.reads()
        return names


class Graph:
    """Nodes in the order of execution, the values that are there before, the names of inputs and outputs."""

    def __init__(self, inputs: Sequence[str], outputs: Sequence[str]) -> None:
        self.inputs, self.outputs = list(inputs), list(outputs)
        self.nodes: list[Node] = []
        #: arrays; of large ones Tensors, once they are used
        self.constants: dict[str, Value] = {}
        self._reads: list[str] | None = None
        #: what the file says of each output: its type and shape; None where it does not say all of it
        self.results: list[tuple[int, tuple[int, ...]] | None] = [None] * len(self.outputs)

    def reads(self) -> list[str]:
        """What it takes from the graphs around it; worked out once, since nodes may share a graph."""
        if self._reads is None:
            self._reads = self._worked_out()
        return self._reads

    def _worked_out(self) -> list[str]:
        own = {*self.inputs, *self.constants}
        found: list[str] = []
        for node in self.nodes:
            found += [name for name in node.reads() if name not in own]
            own.update(node.outputs)
        return found + [name for name in self.outputs if name not in own]


def all_nodes(graph: Graph) -> Iterator[Node]:
    """The nodes of a graph, and of those inside of it, each once."""
    todo, seen = [graph], {id(graph)}
    while todo:
        for node in todo.pop().nodes:
            yield node
            inner = [each for each in node.graphs() if id(each) not in seen]
            seen.update(map(id, inner))
            todo += inner


class Builder:
    """Makes the graphs of one file."""

    def __init__(self, model: Any, folder: Path | None, name: str) -> None:
        self.folder, self.name = folder, name
        self.opsets = {_plain(entry.domain): int(entry.version) for entry in model.opset_import}
        self.functions = {(_plain(f.domain), f.name, _overload(f)): f for f in model.functions}
        self.missing = Missing()
        self._depth = self._inlined = 0
        self._calling: list[tuple[str, ...]] = []  # the functions in whose bodies we are

    def graph(
        self,
        proto: Any,
        known: Set[str],
        opsets: Mapping[str, int],
        given: Mapping[str, Any] | None = None,
    ) -> Graph:
        """A GraphProto or FunctionProto. `known` are names of the graphs around it, `given` attributes of
        a call.
        """
        if self._depth >= _MAX_DEPTH:
            raise ValueError(f"{self.name}: graphs and functions are nested more than {_MAX_DEPTH} deep")
        if self._calling:
            self._inlined += len(proto.node)
        if self._inlined > _MAX_INLINED:
            raise ValueError(f"{self.name}: its calls of functions become more than {_MAX_INLINED} nodes")
        self._depth += 1
        try:
            return self._graph(proto, known, opsets, given)
        finally:
            self._depth -= 1

    def _graph(
        self,
        proto: Any,
        known: Set[str],
        opsets: Mapping[str, int],
        given: Mapping[str, Any] | None,
    ) -> Graph:
        is_function = not hasattr(proto, "initializer")
        names = list(proto.input) if is_function else [value.name for value in proto.input]
        outputs = list(proto.output) if is_function else [value.name for value in proto.output]
        graph = Graph(names, outputs)
        if not is_function:
            graph.results = [_said(value.type) for value in proto.output]
            for tensor in proto.initializer:
                graph.constants[tensor.name] = array_of_proto(tensor, self.folder)
            for sparse in proto.sparse_initializer:
                graph.constants[sparse.values.name] = self._sparse(sparse)
        there = {*known, *names, *graph.constants, ""}
        for node_proto in proto.node:
            for name in node_proto.input:
                if name not in there:
                    raise ValueError(
                        f"{self.name}: {node_proto.op_type} {node_proto.name!r} takes {name!r}, "
                        "which nothing before it makes"
                    )
            node = self._node(node_proto, there, opsets, given)
            if node is not None:
                graph.nodes.append(node)
            there.update(node_proto.output)
        for name in outputs:
            if name not in there or not name:
                raise ValueError(f"{self.name}: nothing makes the output {name!r}")
        return graph

    def _node(
        self, proto: Any, known: Set[str], opsets: Mapping[str, int], given: Mapping[str, Any] | None
    ) -> Node | None:
        domain = _plain(proto.domain)
        opset = opsets.get(domain, self.opsets.get(domain, 1))
        node = Node(proto, domain, opset)
        if not any(node.outputs):
            return None
        for attribute in proto.attribute:
            self._attribute(node, attribute, known, opsets, given or {})
        own = self.functions.get((domain, proto.op_type, _overload(proto, "overload")))
        if own is not None:
            node.function = Function(self._function(own, proto, node.attributes))
            return node
        node.row = table.find(domain, proto.op_type, opset)
        what = f"{domain}.{proto.op_type}" if domain else proto.op_type
        if node.row is None:
            node.function = self._by_schema(node, proto, opset)
            if node.function is None:
                self.missing.note(
                    what, "" if not table.find(domain, proto.op_type, 1 << 30) else f"in opset {opset}"
                )
            return node
        if node.row.attributes is not None:
            for name in [*node.attributes]:
                if name not in node.row.attributes:
                    self.missing.note(what, f"with the attribute {name!r}")
        if len(node.inputs) > len(node.row.inputs) and not node.row.variadic:
            self.missing.note(what, f"with {len(node.inputs)} inputs in opset {opset}")
        return node

    def _function(self, proto: Any, call: Any, attributes: Mapping[str, Any]) -> Graph:
        """The body of a function with the attributes of one call."""
        key = (_plain(proto.domain), proto.name, _overload(proto))
        if key in self._calling:
            raise ValueError(f"{self.name}: the function {proto.name} calls itself")
        opsets = {_plain(entry.domain): int(entry.version) for entry in proto.opset_import}
        given: dict[str, Any] = {}
        self._calling.append(key)
        try:
            for attribute in proto.attribute_proto:
                holder = Node(call, "", 1)
                self._attribute(holder, attribute, frozenset(), opsets, {})
                given |= holder.attributes
            return self.graph(proto, frozenset(), opsets, given | dict(attributes))
        finally:
            self._calling.pop()

    def _by_schema(self, node: Node, proto: Any, opset: int) -> Function | None:
        """What the operation's schema says it is made of, where it says so."""
        onnx = onnx_module()
        try:
            schema = onnx.defs.get_schema(node.op_type, opset, node.domain)
        except Exception:  # SchemaError: no such operation
            return None
        if not schema.has_function:
            return None
        given = {
            name: _python_value(attribute.default_value)
            for name, attribute in schema.attributes.items()
            if attribute.default_value.type
        }
        return Function(self._function(schema.function_body, proto, given | node.attributes))

    def _attribute(
        self,
        node: Node,
        attribute: Any,
        known: Set[str],
        opsets: Mapping[str, int],
        given: Mapping[str, Any],
    ) -> None:
        kinds = type(attribute)
        if attribute.ref_attr_name:
            if attribute.ref_attr_name in given:
                node.attributes[attribute.name] = given[attribute.ref_attr_name]
        elif attribute.type == kinds.GRAPH:
            node.attributes[attribute.name] = self.graph(attribute.g, known, opsets, given)
        elif attribute.type == kinds.TENSOR:
            node.attributes[attribute.name] = array_of_proto(attribute.t, self.folder)
        elif attribute.type == kinds.SPARSE_TENSOR:
            node.attributes[attribute.name] = self._sparse(attribute.sparse_tensor)
        else:
            node.attributes[attribute.name] = _python_value(attribute)

    def _sparse(self, proto: Any) -> Array:
        """A sparse tensor as a dense one."""
        values = array_of_proto(proto.values, self.folder)
        indices = array_of_proto(proto.indices, self.folder)
        shape = tuple(proto.dims)
        if any(size < 0 for size in shape) or math.prod(shape) > _MAX_DENSE:
            raise ValueError(
                f"{self.name}: the sparse tensor {proto.values.name!r} has shape {list(shape)}, and at most "
                f"{_MAX_DENSE} elements can be kept as a dense one"
            )
        dense = np.zeros(shape, values.dtype)
        try:
            if indices.ndim == 1:
                dense.reshape(-1)[indices] = values
            else:
                dense[tuple(indices.T)] = values
        except (IndexError, ValueError) as error:
            raise ValueError(f"{self.name}: the sparse tensor {proto.values.name!r}: {error}") from error
        return dense


def _said(kind: Any) -> tuple[int, tuple[int, ...]] | None:
    """The elements' type and the shape of a tensor, where a file says both."""
    tensor = kind.tensor_type
    if not tensor.elem_type or not tensor.HasField("shape") or not all(map(is_fixed, tensor.shape.dim)):
        return None
    return tensor.elem_type, tuple(dim.dim_value for dim in tensor.shape.dim)


def _plain(domain: str) -> str:
    return "" if domain in _DEFAULT else str(domain)


def _overload(proto: Any, field: str = "overload") -> str:
    return str(getattr(proto, field, ""))


def _python_value(attribute: Any) -> Any:
    """An attribute as Python has it: numbers, text, lists of them."""
    value = onnx_module().helper.get_attribute_value(attribute)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, (str, int, float)):
        return value
    if hasattr(value, "__iter__"):
        return [part.decode("utf-8", "replace") if isinstance(part, bytes) else part for part in value]
    return value
