"""A function's tensor graph as an ONNX model: its arguments are inputs, its weights initialisers.

The graph is that of the methods, before any planning. What does not depend on an argument is computed now. A
sum of products of two values becomes one Einsum, so matrix products stay what they are.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..config import Context
from ..dtype import DType, dtypes
from ..engine.realize import recording
from ..ir.args import RoutineRecord
from ..ir.ops import Ops
from ..ir.uop import UOp, toposort
from ..jit.capture import capturing
from ..jit.describer import Describer
from ..jit.nest import Nest
from ..jit.tensor_memory import copied_whole
from ..jit.tinyjit import TinyJit, argument_names
from ..schedule.graph.versions import buffer_of, effective
from ..shape import shape_of
from ..tensor import Tensor
from ..tensor.observer import Observer, observing
from .capturing import refuse_training
from .onnx_nodes import OPSET, ROWS, unsaid
from .onnx_writer import MOST_INSIDE, Writer
from .signature import below_views, weight_names

#: Of the layout of the file: that which came with opset 18.
IR_VERSION = 8


def save_onnx(fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], path: str) -> None:
    """Write the graph of `fn(*args)`."""
    inner = fn.fxn if isinstance(fn, TinyJit) else fn
    writer = Writer()
    if capturing.now is not None:
        raise RuntimeError("export is called outside of a TinyJit")
    describer = Describer()
    for value, name in zip(args, argument_names(inner, tuple(args)), strict=True):
        describer.describe(value, name)
    for key, value in kwargs.items():
        describer.describe(value, f"argument `{key}`")
    if describer.binds:
        raise NotImplementedError(
            "exporting a function of Variables to ONNX is not supported: sizes are numbers there"
        )
    observing.by = _InEvaluation()
    try:
        _realized(inner(*args, **kwargs))  # weights that are still to be computed are computed by this
    finally:
        observing.by = None
    inputs: dict[str, tuple[Tensor, Tensor]] = {}
    for tensor, spec in describer.tensors:
        inputs[_name(spec.name, inputs)] = tensor, copied_whole(tensor)
    others = {id(tensor): copy for tensor, copy in inputs.values()}
    own_args = [_with_others(value, others) for value in args]
    own_kwargs = {key: _with_others(value, others) for key, value in kwargs.items()}
    recording.note, observing.by = _refuse_to_run, _InEvaluation()
    try:
        with Context(SCAN=0, FFT=0):  # a loop over time is its turns there, a transform products
            result = inner(*own_args, **own_kwargs)
    finally:
        recording.note = observing.by = None
    results = Nest(result, lambda tensor: False).tensors
    if not results:
        raise TypeError("the function returns no tensor: an ONNX graph needs a result")
    _refuse_routines(results)
    known = {node: name for node, (name, _) in weight_names(inner).items()}
    graph = _Graph(writer, {name: copy for name, (_, copy) in inputs.items()}, known)
    outputs = []
    for number, tensor in enumerate(results):
        name = _name("result" if len(results) == 1 else f"result_{number}", inputs)
        value = graph.value(effective(tensor.uop))
        writer.nodes.append(writer.onnx.helper.make_node("Identity", [value], [name]))
        outputs.append(writer.information(name, tensor.dtype, graph.sizes(tensor.uop)))
    writer.drop_unused([output.name for output in outputs])
    made = writer.onnx.helper.make_graph(
        writer.nodes,
        getattr(inner, "__name__", type(inner).__name__),
        [writer.information(name, copy.dtype, graph.sizes(copy.uop)) for name, (_, copy) in inputs.items()],
        outputs,
        list(writer.initialisers.values()),
    )
    _write(writer, made, path)


def _write(writer: Writer, graph: Any, path: str) -> None:
    onnx = writer.onnx
    opset = onnx.helper.make_opsetid("", OPSET)
    model = onnx.helper.make_model(
        graph, opset_imports=[opset], ir_version=IR_VERSION, producer_name="lazygrad"
    )
    part = f"{path}.{secrets.token_hex(8)}"
    large = sum(len(each.raw_data) for each in writer.initialisers.values()) > MOST_INSIDE
    more = {"save_as_external_data": True, "location": f"{os.path.basename(path)}.data"} if large else {}
    try:
        onnx.save_model(model, part, **more)
        onnx.checker.check_model(part)
        os.replace(part, path)
    finally:
        if os.path.exists(part):
            os.unlink(part)


class _InEvaluation(Observer):
    """Lets nothing be called in training."""

    def is_trained(self, name: str) -> None:
        refuse_training(name)


def _realized(result: Any) -> None:
    tensors = Nest(result, lambda tensor: False).tensors
    if tensors:
        tensors[0].realize(*tensors[1:])


def _refuse_to_run(item: Any) -> None:
    raise NotImplementedError(
        "a function that is exported to ONNX must not compute values on the way: this one calls "
        "realize(), item(), numpy() or writes to a tensor, and what it does with the "
        "value would not be in the graph"
    )


def _refuse_routines(results: Sequence[Tensor]) -> None:
    """ONNX has an operator for the determinant alone, and that has no pivots, which other methods read."""
    found = toposort(tuple([effective(tensor.uop) for tensor in results]))
    programs = [node.arg.kernel for node in found if node.op is Ops.PROGRAM]
    names = sorted({kernel.name for kernel in programs if isinstance(kernel, RoutineRecord)})
    if names:
        raise NotImplementedError(
            f"linear algebra cannot be exported to ONNX, which has no operators for it: the function needs "
            f"the routine{'s' * (len(names) > 1)} {', '.join(names)} (.c and .lzg files have them)"
        )


def _with_others(value: Any, others: Mapping[int, Tensor]) -> Any:
    """An argument, with other tensors in their places."""
    nest = Nest(value, lambda tensor: False)
    return nest.build([others[id(tensor)] for tensor in nest.tensors]) if nest.tensors else value


def _name(text: str, taken: Mapping[str, Any]) -> str:
    name = re.sub(r"\W+", "_", text.removeprefix("argument ")).strip("_") or "argument"
    while name in taken:
        name += "_"
    return name


class _Graph:
    """The values of the graph by node."""

    def __init__(self, writer: Writer, inputs: Mapping[str, Tensor], names: Mapping[UOp, str]) -> None:
        self.writer, self.names = writer, names
        self.values: dict[UOp, str] = {}
        self.leaves: set[UOp] = set()
        for name, tensor in inputs.items():
            node = effective(tensor.uop)
            self.values[node] = name
            writer.dtype[name] = tensor.dtype
            base = below_views(node)
            self.leaves.update((node, base))
            if base is not node:
                self.values[base] = writer.add("Reshape", [name, writer.integers([-1])])
        self._depends: dict[UOp, bool] = dict.fromkeys(self.leaves, True)

    def sizes(self, node: UOp) -> list[int]:
        shape = shape_of(node)
        if not all(isinstance(size, int) for size in shape):
            raise unsaid(node, "sizes are numbers there, and not Variables")
        return [size for size in shape if isinstance(size, int)]

    def value(self, root: UOp) -> str:
        """The name of a node's value; what it needs is written first."""
        todo = [root]
        while todo:
            node = todo[-1]
            if node in self.values:
                todo.pop()
                continue
            needed = [] if self._is_constant(node) else self._sources(node)
            missing = [source for source in needed if source not in self.values]
            if missing:
                todo += missing
                continue
            self.values[node] = self._emitted(node, needed)
            todo.pop()
        return self.values[root]

    def depends(self, root: UOp) -> bool:
        """Whether a value depends on an argument."""
        known, todo = self._depends, [root]
        while todo:
            node = todo[-1]
            if node in known:
                todo.pop()
                continue
            sources = [effective(source) for source in node.src]
            missing = [source for source in sources if source not in known]
            if missing:
                todo += missing
                continue
            known[node] = any(known[source] for source in sources)
            todo.pop()
        return known[root]

    def _is_constant(self, node: UOp) -> bool:
        """Whether it is computed now. What only repeats is not: it would be stored as often."""
        return node.op is Ops.CONST or (node.op is not Ops.EXPAND and not self.depends(node))

    def _sources(self, node: UOp) -> list[UOp]:
        if node.op is Ops.CHECK or node.op in (Ops.CONTIGUOUS, Ops.DETACH, Ops.FUNCTION, Ops.COPY):
            return [effective(node.src[0])]
        product = self._product(node)
        return [effective(source) for source in (node.src if product is None else product[1])]

    def _emitted(self, node: UOp, sources: list[UOp]) -> str:
        w = self.writer
        if node.op is Ops.CONST:
            found = w.scalar(node.arg, node.dtype)
        elif self._is_constant(node):
            found = self._stored(node)
        elif node.op not in ROWS:
            raise unsaid(node)
        else:
            names = [self.values[source] for source in sources]
            product = self._product(node)
            if product is None:
                found = ROWS[node.op](w, node, names)
            else:
                summed = w.add("Einsum", names, equation=product[0])
                found = w.add("Reshape", [summed, w.integers(self.sizes(node))])
        w.dtype[found] = node.dtype
        return found

    def _stored(self, node: UOp) -> str:
        """A constant's value, computed now; a weight by its name."""
        base = below_views(node)
        tensor = Tensor(node) if node.op is not Ops.BUFFER else None
        if tensor is None:
            buffer = buffer_of(node)
            array = buffer.numpy().reshape(self.sizes(node))
        else:
            bits = tensor.dtype.fmt is None
            array = (tensor.bitcast(_BITS[tensor.dtype.itemsize]) if bits else tensor).numpy()
        known = self.names.get(base)
        return self.writer.weights(known or f"weight_{len(self.writer.initialisers)}", array, node.dtype)

    # *** products

    def _product(self, node: UOp) -> tuple[str, list[UOp]] | None:
        """The equation and factors of a sum of products, where each factor only repeats along some axes."""
        if node.op is not Ops.REDUCE_AXIS or node.arg.op is not Ops.ADD or node.dtype not in _EINSUM:
            return None
        inner = effective(node.src[0])
        if inner.op is not Ops.MUL or inner.dtype is not node.dtype:
            return None
        shape = self.sizes(inner)
        factors = [_unrepeated(effective(source), shape) for source in inner.src]
        if not all(len(axes) < sum(size > 1 for size in shape) for _, axes in factors):
            return None
        letters = dict(enumerate("abcdefghijklmnopqrstuvwxyz"))
        if len(shape) > len(letters):
            return None
        used = {axis for _, axes in factors for axis in axes}
        kept = [axis for axis, size in enumerate(shape) if size > 1 and axis not in node.arg.axes]
        if any(axis not in used for axis, size in enumerate(shape) if size > 1):
            return None
        texts = ["".join(letters[axis] for axis in axes) for _, axes in factors]
        equation = f"{texts[0]},{texts[1]}->{''.join(letters[axis] for axis in kept)}"
        return equation, [core for core, _ in factors]


_EINSUM = (dtypes.float32, dtypes.float64)
_BITS: dict[int, DType] = {1: dtypes.uint8, 2: dtypes.uint16}


def _unrepeated(node: UOp, shape: Sequence[int]) -> tuple[UOp, list[int]]:
    """A value of which this one is repetitions, and the axis of this one that each of its axes is.

    Below EXPANDs, below movements of axes, and of axes of one element.
    """
    axes = list(range(len(shape)))  # of each axis of `node` the axis above; -1: it has one element
    core, best = node, axes
    while True:
        if node.op is Ops.EXPAND:
            below = shape_of(effective(node.src[0]))
            axes = [-1 if size == 1 and above > 1 else axis
                    for size, above, axis in zip(below, shape_of(node), axes, strict=True)]  # fmt: skip
        elif node.op is Ops.PERMUTE:
            before = [0] * len(axes)
            for place, axis in enumerate(node.arg):
                before[axis] = axes[place]
            axes = before
        elif node.op is Ops.RESHAPE and _same_but_ones(shape_of(node), shape_of(effective(node.src[0]))):
            wide = iter([axis for size, axis in zip(shape_of(node), axes, strict=True) if size != 1])
            axes = [-1 if size == 1 else next(wide) for size in shape_of(effective(node.src[0]))]
        else:
            break
        node = effective(node.src[0])
        core, best = node, axes
    return _squeezed(core, best)


def _same_but_ones(a: Sequence[Any], b: Sequence[Any]) -> bool:
    return [size for size in a if size != 1] == [size for size in b if size != 1]


def _squeezed(core: UOp, axes: list[int]) -> tuple[UOp, list[int]]:
    """Without axes of one element."""
    shape = shape_of(core)
    kept = [(size, axis) for size, axis in zip(shape, axes, strict=True) if size != 1]
    if len(kept) == len(shape):
        return core, axes
    return (
        UOp(Ops.RESHAPE, core.dtype, (core,), tuple([size for size, _ in kept])),
        [axis for _, axis in kept],
    )
