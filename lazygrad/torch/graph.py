"""A graph of ATen operations as a function of lazygrad tensors.

Nothing is computed when the function is called: it makes a tensor graph, as the methods of Tensor do. What
each operation gives must have the shape that PyTorch says, and gets the dtype that PyTorch says.
"""

from __future__ import annotations

import contextlib
import functools
import math
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import fx

from ..dtype import DType, dtypes
from ..tensor import Tensor
from ..tensor.modes import usual_modes
from ..tensor.observer import Observer, observing
from .aliases import is_all_of_its_memory, memory_of
from .dtypes import from_torch_dtype, has_dtype
from .slots import Slot, filled, with_slots
from .table import asks_how_it_lies, name_of, row_of, why_without_row

#: What is done with sizes, which are Python's numbers here.
_ON_NUMBERS = "add sub mul floordiv mod neg truediv pow eq ne lt le gt ge"
_OF_NUMBERS = {
    *[getattr(operator, name) for name in _ON_NUMBERS.split(" ")],
    *(math.floor, math.ceil, math.trunc, max, min, int, float, bool, abs, round),
    *(torch.sym_int, torch.sym_float, torch.sym_max, torch.sym_min, torch.sym_not, torch.sym_ite),
}


class Unsupported(NotImplementedError):
    """An operation that lazygrad cannot do: `node` of the graph."""

    def __init__(self, node: fx.Node, why: str) -> None:
        super().__init__(f"{name_of(node.target)}: {why}")
        self.node, self.why = node, why


def missing(node: fx.Node) -> str:
    """Why an operation cannot be done, as far as can be told without doing it; "" if it can."""
    if node.op != "call_function" or node.target is operator.getitem or node.target in _OF_NUMBERS:
        return ""
    if _is_size(node.target):
        return ""
    if row_of(node.target) is None:
        return why_without_row(node.target)
    every = [*values_of(node), *(value for source in node.all_input_nodes for value in values_of(source))]
    if any(
        isinstance(size, torch.SymInt) and size.node.hint is None for value in every for size in value.shape
    ):
        return "the size of a tensor depends on values"
    for value in every:
        if not has_dtype(value.dtype):
            return f"lazygrad has no dtype like {value.dtype}"
        if value.device.type != "cpu":
            return f"a tensor is on {value.device}"
        if value.layout is not torch.strided:
            return f"a tensor has the layout {value.layout}"
    if "as_strided" in str(node.target):
        memory = node.all_input_nodes[0] if _puts_back(node) else memory_of(node.all_input_nodes[0])
        if memory.op != "call_function" or not is_all_of_its_memory(memory.meta["val"]):
            return "how the memory of its input lies is not known"
    return ""


def _puts_back(node: fx.Node) -> bool:
    """Whether an operation gives what it was given, with a part of its memory replaced."""
    return "as_strided_scatter" in str(node.target)


def _is_size(target: Any) -> bool:
    return str(target).startswith(("aten.sym_size", "aten.sym_numel"))


def values_of(node: fx.Node) -> list[torch.Tensor]:
    """The (fake) tensors that a node gives."""
    value = node.meta.get("val")
    return [each for each in (value if isinstance(value, (list, tuple)) else [value]) if is_tensor(each)]


def is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor)


class _NoValues(Observer):
    """Observes a thread in which no value may be read."""

    def value_is_read(self) -> None:
        raise NotImplementedError("what it computes depends on values")


@contextlib.contextmanager
def _without_values() -> Iterator[None]:
    """Reading a value is an error, as in the capture that follows."""
    before, observing.by = observing.by, _NoValues()
    try:
        yield
    finally:
        observing.by = before


class Said(NamedTuple):
    """What PyTorch says of a result. shape  None where sizes are not known before the call."""

    shape: tuple[int, ...] | None
    dtype: DType


class Step(NamedTuple):
    """One operation: what is done, with what, and what PyTorch says of the result (for each, of several)."""

    node: fx.Node
    number: int
    fn: Callable[..., Any]
    args: Any
    kwargs: Any
    said: Any


class GraphFunction:
    """A function of a value for each placeholder; it gives a list: a value for each output (None stays None).

    No code of PyTorch runs in a call.
    """

    def __init__(self, module: fx.GraphModule) -> None:
        nodes = list(module.graph.nodes)
        self.number = {node: number for number, node in enumerate(nodes)}
        self.nodes = nodes
        self.placeholders = [node for node in nodes if node.op == "placeholder"]
        (output,) = (node for node in nodes if node.op == "output")
        given: Any = output.args[0]
        self.is_one = not isinstance(given, (list, tuple))
        self.outputs: list[Any] = [given] if self.is_one else list(given)
        self._results = [with_slots(node, self.number.__getitem__) for node in self.outputs]
        #: whether an output is an input, or a look at one: any other has memory of its own, even where its
        #: values are an input's (`clone`, `cat` of one tensor)
        self.hands_on = [
            not isinstance(node, fx.Node) or memory_of(node).op != "call_function" for node in self.outputs
        ]
        self._inputs = [self.number[node] for node in self.placeholders]
        #: the tensors that the graph holds, shared with PyTorch
        self._attributes = {
            self.number[node]: _attribute(module, node) for node in nodes if node.op == "get_attr"
        }
        self._steps = [self._step(node) for node in nodes if node.op == "call_function"]

    def __call__(self, values: Sequence[Any]) -> list[Any]:
        made: dict[int, Any] = {**self._attributes, **dict(zip(self._inputs, values, strict=True))}
        for step in self._steps:
            made[step.number] = _done(step, made)
        found = [filled(result, made) for result in self._results]
        given = {id(value) for value in values if isinstance(value, Tensor)}
        return [
            value.clone() if id(value) in given and not hands_on else value
            for value, hands_on in zip(found, self.hands_on, strict=True)
        ]

    def __deepcopy__(self, memo: Any) -> GraphFunction:
        return self  # nothing in it changes

    def __reduce__(self) -> Any:
        raise TypeError(
            "a graph of PyTorch is not pickled; of an imported model save the state_dict(), or export it"
        )

    def refused(self, known: dict[fx.Node, str]) -> dict[fx.Node, str]:
        """The operations that cannot be done, and why, beside those that are known. Each is tried: a tensor
        graph is made, and nothing is computed.
        """
        found: dict[fx.Node, str] = {}
        made: dict[int, Any] = dict(self._attributes)
        for node in self.placeholders:
            made[self.number[node]] = _example(node)
        with _without_values(), usual_modes():
            for step in self._steps:
                if step.node not in known:
                    try:
                        made[step.number] = _done(step, made)
                        continue
                    except Unsupported as error:
                        found[step.node] = error.why
                made[step.number] = _example(step.node)
        return found

    def _step(self, node: fx.Node) -> Step:
        target: Any = node.target
        fn = target
        if _is_size(target):
            fn = functools.partial(_size, "numel" if "sym_numel" in str(target) else "size")
        elif target is not operator.getitem and target not in _OF_NUMBERS:
            fn = row_of(target) or _no_row
            if asks_how_it_lies(target):
                (first,) = node.all_input_nodes[:1]
                fn = functools.partial(fn, contiguous=first.meta["val"].is_contiguous())
        args, kwargs = [with_slots(each, self.number.__getitem__) for each in (node.args, node.kwargs)]
        if "as_strided" in str(target) and not _puts_back(node) and not missing(node):
            args = self._in_whole_memory(node, args)
        return Step(node, self.number[node], fn, args, kwargs, _said(node.meta.get("val")))

    def _in_whole_memory(self, node: fx.Node, args: list[Any]) -> list[Any]:
        """The arguments of `as_strided`, of the memory that its first one looks at: steps and places are
        counted there.
        """
        names = [each.name for each in node.target._schema.arguments]
        place = names.index("storage_offset")
        if len(args) <= place or args[place] is None:
            args = [*args, *[None] * (place + 1 - len(args))]
            args[place] = node.args[0].meta["val"].storage_offset()
        return [Slot(self.number[memory_of(node.args[0])]), *args[1:]]


def _done(step: Step, made: dict[int, Any]) -> Any:
    """What a step gives, as PyTorch says it is."""
    args, kwargs = filled(step.args, made), filled(step.kwargs, made)
    try:
        return _as_said(step.fn(*args, **kwargs), step.said)
    except Exception as error:
        raise Unsupported(step.node, str(error) or type(error).__name__) from error


def _no_row(*args: Any, **kwargs: Any) -> Any:
    raise NotImplementedError("it is not in the table of operations")


def _attribute(module: fx.GraphModule, node: fx.Node) -> Any:
    """A tensor that a graph holds."""
    value: Any = module
    for part in str(node.target).split("."):
        value = getattr(value, part)
    return Tensor.from_torch(value.detach().contiguous()) if is_tensor(value) else value


def _said(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_said(each) for each in value]
    if not is_tensor(value) or not has_dtype(value.dtype):
        return None
    shape = tuple(value.shape)
    known = all(isinstance(size, int) for size in shape)
    return Said(shape if known else None, from_torch_dtype(value.dtype))


def _as_said(result: Any, said: Any) -> Any:
    """With the dtypes that PyTorch says; it must have the shapes."""
    if type(said) is list:
        return tuple([_as_said(value, each) for value, each in zip(result, said, strict=True)])
    if result is None or said is None:
        return result
    value = result if isinstance(result, Tensor) else Tensor(result, dtype=said.dtype)
    if said.shape is not None and value.shape != said.shape:
        if math.prod(said.shape):
            raise NotImplementedError(f"it would give shape {value.shape}, and PyTorch says {said.shape}")
        value = value.reshape(said.shape)
    if value.dtype is said.dtype:
        return value
    return value != 0 if said.dtype is dtypes.bool else value.cast(said.dtype)


def _example(node: fx.Node) -> Any:
    """Something like what a node gives."""
    return fx.node.map_aggregate(node.meta.get("val"), _like)


def _like(value: Any) -> Any:
    """Something of the shape and dtype of a (fake) tensor; a number for a symbolic one; or the value."""
    if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        return 1 if value.node.hint is None else value.node.hint  # 1: it depends on values, and is refused
    if not is_tensor(value) or not has_dtype(value.dtype):
        return value
    shape = tuple(_like(size) for size in value.shape)
    return Tensor.empty(*shape, dtype=from_torch_dtype(value.dtype))


def _size(what: str, x: Tensor, dim: int | None = None) -> Any:
    """A size of a tensor, or how many elements it has."""
    return math.prod(x.shape) if what == "numel" else x.shape if dim is None else x.shape[dim]
