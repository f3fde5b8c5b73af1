"""Tensor graphs as rows of plain values: what a recording keeps of a graph, without its nodes and memory.

Nodes are numbered in the order of the walk, each after its sources. Numbers, devices and what makes memory
unique are no nodes here: a number is a part of the text of who uses it.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

from ..dtype import DType
from ..ir.expression import arg_text, value_text
from ..ir.ops import MOVEMENT, Ops
from ..ir.uop import UOp, toposort
from ..ir.walks import device_of
from ..locks import WeakKeys
from ..nn.module import Module, Watcher
from ..schedule.graph.requested import constant_below, is_materialized
from ..schedule.graph.versions import effective
from ..shape.rules import shape_of
from ..shape.sizes import shape_text, vmax
from ..tensor import Tensor

#: Characters of what a node's argument is shown as.
ARGUMENT = 80
_BESIDE = frozenset((Ops.CONST, Ops.DEVICE, Ops.UNIQUE))
_SHOWN = (int, float, str, bool, tuple, Ops, type(None))


class LayerMarks(Watcher):
    """Which layer made a value: a watcher of modules' calls (`nn.module.watched`).

    A call's result is marked with its layer, and what it was given with the layer around, where nobody has
    marked it before: so inner layers come before outer ones. Layers are called by their path in the outermost
    module that was seen around them, and this by its class.

    met  is told of each module's first call
    """

    def __init__(self, met: Callable[[Module], None] = lambda module: None) -> None:
        self._met = met
        self._paths: WeakKeys[Any, str] = WeakKeys()
        self._walked: WeakKeys[Any, bool] = WeakKeys()
        self._outermost: dict[str, int] = {}
        self._layers: WeakKeys[UOp, tuple[weakref.ref[Any], bool]] = WeakKeys()

    def called(self, module: Module, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        """A module has given a result."""
        try:
            if self._walked.get(module) is None:
                self._walked.put(module, True)
                for name, inner in module.named_modules():
                    if name:
                        self._paths.set(inner, name)
                if self._paths.get(module) is None:
                    self._paths.put(module, self._own_name(module))
                self._met(module)
            reference = weakref.ref(module)
        except TypeError:  # a class of the user's whose objects cannot be referred to weakly
            return
        for inside, value in ((True, result), *((False, each) for each in (*args, *kwargs.values()))):
            for tensor in _tensors(value):
                self._layers.put(tensor.uop, (reference, inside))

    def _own_name(self, module: Any) -> str:
        """What a module is called that is in no other: its class, with a number if it is not the first."""
        kind = type(module).__name__
        count = self._outermost[kind] = self._outermost.get(kind, 0) + 1
        return kind if count == 1 else f"{kind} {count}"

    def path_of(self, node: UOp) -> str | None:
        """The layer of a value; "" outside of all, None where it is unknown."""
        found = self._layers.get(node)
        if found is None:
            return None
        module = found[0]()
        path = "" if module is None else self._paths.get(module) or ""
        return path if found[1] else path.rpartition(".")[0]


def _tensors(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list | tuple):
        return []
    return [each for each in value if isinstance(each, Tensor)]


class GraphNotes:
    """A graph as it was when it was planned, in flat lists: texts are made of them when the script has ended.

    Nothing in them is a node with memory, and a graph is a few objects for the garbage collector, whatever
    its size.
    """

    def __init__(self, roots: Sequence[UOp], most: int, layers: LayerMarks) -> None:
        """Note the graph of these roots: the last nodes of its walk, so many at most."""
        read: dict[UOp, list[UOp]] = {}

        def sources(node: UOp) -> list[UOp]:
            found = read[node] = _sources(node)
            return found

        order = [node for node in toposort(roots, sources) if not _is_beside(node)]
        layer_of = _layers(order, read, layers)
        number: dict[UOp, int] = {}
        for node in order[-most:] if len(order) > most else order:
            number[node] = len(number)
        self.left_out = len(order) - len(number)
        self.roots = [number[root] for root in roots if root in number]
        self.ops = [node.op for node in number]
        self.dtypes = [node.dtype for node in number]
        self.shapes = [shape_of(node) for node in number]
        self.devices = [device_of(node) for node in number]
        self.args = [node.arg if isinstance(node.arg, _SHOWN) else type(node.arg) for node in number]
        self.origins = [node.facts.get("origin") for node in number]
        self.layers = [layer_of[node] for node in number]
        #: of all nodes, one after another: the numbers of what they read, the constants among their sources
        self.reads: list[int] = []
        self.constants: list[UOp] = []
        #: where each node's part of these lists ends
        self.reads_end: list[int] = []
        self.constants_end: list[int] = []
        for node in number:
            self.reads += [number[source] for source in read[node] if source in number]
            self.reads_end.append(len(self.reads))
            for source in node.src:
                constant = source if source.op is Ops.CONST else constant_below(source)
                if constant is not None:
                    self.constants.append(constant)
            self.constants_end.append(len(self.constants))

    @property
    def structure(self) -> int:
        """Equal for graphs of the same operations on the same shapes."""
        lists = self.ops, self.dtypes, self.shapes, self.reads, self.reads_end
        return hash(tuple([tuple(each) for each in lists]))

    def rows(self, call: Callable[[Any], int], name: Callable[[str], int]) -> dict[str, Any]:
        """{"nodes": rows, "roots": numbers, "left_out": count}.

        A row is [op, dtype, shape, bytes, device, argument, call, layer, sources]: texts but for bytes, the
        number of the user's call and of the layer's name (`call` and `name` give these; -1: none), and the
        numbers of the nodes that it reads.
        """
        nodes = []
        read = constant = 0
        for at, (op, dtype, shape) in enumerate(zip(self.ops, self.dtypes, self.shapes, strict=True)):
            path, device = self.layers[at], self.devices[at]
            reads = self.reads[read : self.reads_end[at]]
            constants = self.constants[constant : self.constants_end[at]]
            read, constant = self.reads_end[at], self.constants_end[at]
            nodes.append(
                [
                    op.name,
                    repr(dtype).replace("dtypes.", ""),
                    "" if shape is None else shape_text(shape),
                    _nbytes(shape, dtype),
                    str(device or ""),
                    _argument(op, self.args[at], constants),
                    call(self.origins[at]),
                    name(path) if path else -1,
                    list(dict.fromkeys(reads)),
                ]
            )
        return {"nodes": nodes, "roots": self.roots, "left_out": self.left_out}


def _sources(node: UOp) -> list[UOp]:
    """What a node reads: memory where that is computed already."""
    return (
        [] if is_materialized(node) or node.op is Ops.KERNEL else [effective(source) for source in node.src]
    )


def _is_beside(node: UOp) -> bool:
    return node.op in _BESIDE or (node.op in MOVEMENT and constant_below(node) is not None)


def _layers(order: Sequence[UOp], read: dict[UOp, list[UOp]], marks: LayerMarks) -> dict[UOp, str]:
    """Each node is in the layer that it is marked with, or in that of what reads it."""
    found: dict[UOp, str] = {}
    for node in reversed(order):
        own = marks.path_of(node)
        path = found.get(node, "") if own is None else own
        found[node] = path
        for source in read[node]:
            found.setdefault(source, path)
    return found


def _nbytes(shape: Any, dtype: DType) -> int:
    count = 1
    for size in shape or ():
        count *= vmax(size)
    return 0 if shape is None else int(count) * dtype.itemsize


def _argument(op: Ops, arg: Any, constants: Sequence[UOp]) -> str:
    """What is told of a node besides its shape: its argument, and the numbers that it computes with."""
    said = ", ".join([arg_text(constant) for constant in constants])
    if op not in (Ops.RESHAPE, Ops.EXPAND, Ops.BUFFER) and arg is not None:
        own = arg.__name__ if isinstance(arg, type) else value_text(arg)
        said = f"{own}; {said}" if said else own
    return said if len(said) <= ARGUMENT else f"{said[: ARGUMENT - 1]}…"
