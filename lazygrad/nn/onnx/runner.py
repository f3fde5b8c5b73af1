"""`OnnxRunner`: an ONNX file as a function from arrays to tensors."""

from __future__ import annotations

import difflib
import threading
from collections.abc import Mapping
from typing import Any, NamedTuple

from ...dtype import DTypeSaid
from ...tensor import Tensor, no_grad
from . import ops as ops  # the table is filled by these files
from . import table
from .execution import Run, Scope, Steered, Weights, folded
from .files import read_model
from .graph import Builder, Graph, Node, all_nodes
from .inputs import Input, is_fixed
from .segments import Segment, cut
from .values import DTYPE_OF, Value, numpy_dtypes, tensor_of, type_name

#: The opsets of the default domain that the table was held beside.
OPSETS = range(1, 29)


class ValueInfo(NamedTuple):
    """What a file says of an input or output: its name, dtype ("float", ...) and shape.

    dtype   None for sequences and optionals; types that no Tensor has are given by their name in the format
    shape   sizes, the names of those that are open, None for unnamed ones; None where the file says nothing
    """

    name: str
    dtype: DTypeSaid | None
    shape: tuple[int | str | None, ...] | None


class Segments(NamedTuple):
    """A graph cut into parts, and the values that these make."""

    segments: list[Segment | tuple[int, Node]]
    own: set[str]


class OnnxRunner:
    """An ONNX model, called with a dict of its inputs, giving a dict of its outputs.

    source  the path of an .onnx file, its bytes, or an onnx.ModelProto

    ValueError for a file that is damaged or makes no sense, NotImplementedError that names every operation
    that is not there; both before anything runs. The first call with arrays of some shapes runs plainly, the
    next is captured, later ones replay. Values that choose shapes or branches are worked out on the host
    where they follow from shapes, weights and small inputs; where data decide, they are computed in between.

    inputs, outputs  what the file says of them      opset  domain → version ("" is ONNX's own)
    """

    def __init__(self, source: Any) -> None:
        model, folder, name = read_model(source)
        numpy_dtypes()
        builder = Builder(model, folder, name)
        self.opset: dict[str, int] = dict(builder.opsets)
        version = self.opset.get("", 1)
        if version not in OPSETS:
            raise NotImplementedError(f"{name} uses opset {version}; those up to {OPSETS[-1]} are known")
        self._graph: Graph = builder.graph(model.graph, frozenset(), builder.opsets)
        builder.missing.check(name)
        self._given = {value.name: Input(value.name, value.type) for value in model.graph.input}
        self._defaults = {name for name in self._graph.constants if name in self._given}
        self._no_inputs: dict[str, Value] = dict.fromkeys(self._graph.inputs)
        self.inputs: dict[str, ValueInfo] = {
            value.name: _info(value) for value in model.graph.input if value.name not in self._defaults
        }
        self.outputs: dict[str, ValueInfo] = {value.name: _info(value) for value in model.graph.output}
        self._weights = Weights()
        self._folded = False
        self._lock = threading.RLock()
        #: inputs that are read on the host, since they alone decide what is computed
        self._steering: set[str] = set()
        #: the places of nodes that need a value of data on the host
        self._barriers: set[int] = set()
        #: the inputs that a call gives in the place of values of the file → the parts of the graph
        self._segments: dict[frozenset[str], Segments] = {}

    def __repr__(self) -> str:
        return f"<OnnxRunner ({', '.join(self.inputs)}) -> ({', '.join(self.outputs)})>"

    def __call__(self, inputs: Mapping[str, Any] | None = None, **more: Any) -> dict[str, Tensor]:
        """The outputs by name, computed. Inputs are tensors, arrays, or nested lists of numbers.

        Sequences come and go as lists; an optional that is empty is None.
        """
        given = {**(inputs or {}), **more}
        self._check_names(given)
        with self._lock, no_grad():
            if not self._folded:
                folded(self._graph, self._weights)
                self._folded = True
            return self._call({name: self._given[name].read(value) for name, value in given.items()})

    def _check_names(self, given: Mapping[str, Any]) -> None:
        for name in given:
            if name not in self._given:
                close = difflib.get_close_matches(name, self._given, 1)
                hint = f"; did you mean {close[0]!r}?" if close else ""
                raise ValueError(f"the model has no input {name!r}, only {', '.join(self._given)}{hint}")
        missing = [name for name in self.inputs if name not in given and not self._given[name].is_optional]
        if missing:
            raise ValueError(f"the model's input {', '.join(missing)} is missing")

    # *** running

    def _call(self, given: dict[str, Value]) -> dict[str, Tensor]:
        instead = frozenset(self._defaults.intersection(given))
        for _ in range(len(self._graph.nodes) + len(self._given) + 2):
            met: dict[int, list[str]] = {}
            scope = Scope(self._graph.constants, self._no_inputs)
            for name in self._defaults:
                scope[name] = self._graph.constants[name]
            for name, value in given.items():
                scope[name] = self._given[name].on_its_side(value)
            parts = self._segments_for(instead)
            try:
                for part in parts.segments:
                    if isinstance(part, Segment):
                        part.run(scope, met)
                    else:
                        Run(self._weights).nodes([part[1]], scope, [part[0]])
            except Steered:
                self._learn(met, instead)
                continue
            if met:
                self._learn(met, instead)
            return {name: self._result(scope[name], name in parts.own) for name in self._graph.outputs}
        raise RuntimeError("the graph could not be cut into parts that a capture can hold")

    def _segments_for(self, instead: frozenset[str]) -> Segments:
        """The parts for calls that give these inputs in the place of values of the file."""
        if instead not in self._segments:
            found = cut(self._graph, self._barriers, self._weights, instead)
            own = {name for part in found if isinstance(part, Segment) for name in part.outputs}
            self._segments[instead] = Segments(found, own)
        return self._segments[instead]

    def _result(self, value: Value, own: bool) -> Any:
        """A Tensor that is computed, in memory of its own; `own` says that it is one."""
        if isinstance(value, Tensor):
            return value if own else value.clone().realize()
        if isinstance(value, list):
            return [self._result(part, own) for part in value]
        if value is None or value.dtype.kind in "OUT":
            return value
        return tensor_of(value).contiguous().realize()

    def _learn(self, met: Mapping[int, list[str]], instead: frozenset[str]) -> None:
        """Values were needed on the host: from small inputs alone they will be known, else a part ends
        there.
        """
        for place, names in met.items():
            sources: set[str] | None = set()
            for name in names:
                more = self._sources(name, instead)
                sources = sources | more if sources is not None and more is not None else None
            if sources is not None and sources - self._steering:
                self._steering |= sources
                for source in sources:
                    self._given[source].steers = True
            elif place >= 0:
                self._barriers.add(place)
        self._segments = {}

    def _sources(self, name: str, instead: frozenset[str]) -> set[str] | None:
        """The inputs that alone decide a value, by operations that the host can do; None where others do."""
        made_by = {output: node for node in all_nodes(self._graph) for output in node.outputs if output}
        found: set[str] = set()
        todo, seen = [name], set[str]()
        while todo:
            name = todo.pop()
            if name in seen or not name or (name in self._graph.constants and name not in instead):
                continue
            seen.add(name)
            if name in self._given:
                if not self._given[name].is_small:
                    return None
                found.add(name)
            elif name in made_by:
                node = made_by[name]
                if node.row is None:
                    return None
                if node.op_type in ("Shape", "Size"):
                    continue
                if not table.needs_no_kernel(node.row.domain, node.row.name):
                    return None
                todo += node.inputs
            else:
                return None
        return found


def _info(value: Any) -> ValueInfo:
    kind = value.type
    if not kind.HasField("tensor_type"):
        return ValueInfo(value.name, None, None)
    tensor = kind.tensor_type
    shape = None
    if tensor.HasField("shape"):
        shape = tuple(dim.dim_value if is_fixed(dim) else dim.dim_param or None for dim in tensor.shape.dim)
    dtype = DTYPE_OF.get(tensor.elem_type)
    return ValueInfo(value.name, dtype if dtype is not None else type_name(tensor.elem_type), shape)
