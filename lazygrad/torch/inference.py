"""Graphs that need no gradient: their ATen operations, recorded in one run with fake tensors.

AOTAutograd runs such a graph twice, through layers that take out writes, find aliases and keep a traceback of
each operation: for a small model that takes longer than compiling its kernels. Where nothing is written and
no result shares memory, one run says the same. Whatever else there is, AOTAutograd is asked (dynamo.py).
"""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import fx
from torch._ops import HigherOrderOperator
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import TorchDispatchMode

#: Functions that change what later ones do.
_LASTING = frozenset(("_set_grad_enabled", "inference_mode", "manual_seed"))


class _AskAOTAutograd(Exception):
    """One run does not say what a graph does."""


def recorded(
    module: fx.GraphModule, decompositions: Mapping[Any, Callable[..., Any]]
) -> fx.GraphModule | None:
    """The ATen operations of a graph of Dynamo's; None where AOTAutograd must look.

    That is where gradients are wanted, something is written, sizes are symbolic, results share memory with
    inputs or with each other, or operations of another kind (autocast, checkpoints) change what is traced.
    """
    nodes = module.graph.nodes
    places = [node for node in nodes if node.op == "placeholder"]
    values = [node.meta.get("example_value") for node in places]
    plain = all(isinstance(x, FakeTensor) and not x._has_symbolic_sizes_strides for x in values)
    wants = torch.is_grad_enabled() and any(isinstance(x, FakeTensor) and x.requires_grad for x in values)
    if not values or not plain or wants or not all(map(_is_plain, nodes)) or _has_modes():
        return None
    recorder = _Recorder(fx.Graph(), decompositions)
    for node, value in zip(places, values, strict=True):
        recorder.note(value, recorder.graph.placeholder(node.name))
    try:
        with torch.no_grad(), _without_symbols(values[0].fake_mode), values[0].fake_mode, recorder:
            results = fx.Interpreter(module).run(*values, enable_io_processing=False)
        if not _have_memory_of_their_own(results, values):
            return None
        recorder.graph.output(recorder.noted(tuple(results)))
    except Exception:  # whatever it is, AOTAutograd says what is wrong
        return None
    recorder.graph.eliminate_dead_code()
    return fx.GraphModule(torch.nn.Module(), recorder.graph)


def _without_symbols(fake_mode: Any) -> Any:
    """Sizes and numbers that depend on values are forgotten: AOTAutograd is asked where there are any."""
    environment = fake_mode.shape_env
    return contextlib.nullcontext() if environment is None else environment.ignore_fresh_unbacked_symbols()


def _is_plain(node: fx.Node) -> bool:
    """Whether a node of Dynamo's graph calls an operation on tensors, and nothing that lasts longer."""
    if node.op == "call_method" or node.op in ("placeholder", "output"):
        return True
    if node.op != "call_function":
        return False
    own = getattr(node.target, "__module__", None) or ""
    return (
        not isinstance(node.target, HigherOrderOperator)
        and not own.startswith(
            ("torch.amp", "torch._functorch", "torch._dynamo", "torch.autograd", "torch._higher_order_ops")
        )
        and getattr(node.target, "__name__", "") not in _LASTING
    )


def _has_modes() -> bool:
    """Whether something else changes what operations do now."""
    layers: int = torch._C._len_torch_dispatch_stack()
    return bool(layers or torch._C._is_any_autocast_enabled() or torch.is_inference_mode_enabled())


def _have_memory_of_their_own(results: Sequence[Any], inputs: Sequence[torch.Tensor]) -> bool:
    known = {x.untyped_storage()._cdata for x in inputs}
    for each in results:
        if not isinstance(each, FakeTensor) or each.requires_grad:
            return False
        if each.untyped_storage()._cdata in known:
            return False
        known.add(each.untyped_storage()._cdata)
    return True


class _Recorder(TorchDispatchMode):
    """Notes the operations that run in its block, except those that decompositions are for."""

    def __init__(self, graph: fx.Graph, decompositions: Mapping[Any, Callable[..., Any]]) -> None:
        super().__init__()
        self.graph, self.decompositions = graph, decompositions
        #: by identity: what each tensor is in the graph, and the tensors, so that they stay
        self.nodes: dict[int, fx.Node] = {}
        self.tensors: list[torch.Tensor] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        way = self.decompositions.get(func)
        if way is not None:
            with self:
                made = way(*args, **kwargs)
            if made is not NotImplemented:
                return made
        if func.namespace == "prim":  # asks what a tensor is, not for its values
            return func(*args, **kwargs)
        if func._schema.is_mutable:
            raise _AskAOTAutograd
        if func._can_decompose():
            with self:
                return func.decompose(*args, **kwargs)
        given, named = self.noted(tuple(args)), self.noted(dict(kwargs))
        made = func(*args, **kwargs)
        self.note(made, self.graph.call_function(func, given, named))
        return made

    def noted(self, value: Any) -> Any:
        """Arguments, with nodes for tensors."""
        if isinstance(value, torch.Tensor):
            node = self.nodes.get(id(value))
            if node is None:
                raise _AskAOTAutograd  # a tensor of values that are known
            return node
        if isinstance(value, (list, tuple)):
            return type(value)([self.noted(each) for each in value])
        if isinstance(value, dict):
            return {key: self.noted(each) for key, each in value.items()}
        if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            raise _AskAOTAutograd
        return value

    def note(self, made: Any, node: fx.Node) -> None:
        """What a node gives."""
        node.meta["val"] = made
        if isinstance(made, (list, tuple)):
            for place, each in enumerate(made):
                if isinstance(each, torch.Tensor):
                    self.note(each, self.graph.call_function(operator.getitem, (node, place)))
        elif isinstance(made, FakeTensor):
            self.nodes[id(made)] = node
            self.tensors.append(made)
        else:
            raise _AskAOTAutograd  # a number that depends on values
