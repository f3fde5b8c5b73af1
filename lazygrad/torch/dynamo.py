"""The backend of `torch.compile`: AOTAutograd makes graphs of ATen operations, forward and backward."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from functorch.compile import make_boxed_func, min_cut_rematerialization_partition
from torch import fx
from torch._decomp import core_aten_decompositions
from torch._dynamo import disable
from torch._dynamo.backends.common import aot_autograd
from torch._guards import TracingContext
from torch._subclasses.fake_tensor import unset_fake_temporarily

from . import inference, ops
from .aliases import asks_what_may_lie_otherwise
from .partition import compiled
from .table import row_of

__all__ = ["backend", "decompositions", "ops"]


def decompositions() -> dict[Any, Callable[..., Any]]:
    """PyTorch's own of what the table has no row for."""
    return {target: way for target, way in core_aten_decompositions().items() if row_of(target) is None}


def _forward(module: fx.GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
    """What AOTAutograd calls with a graph that a backward pass follows: nobody sees how the results that are
    kept for that lie in memory.
    """
    context = TracingContext.try_get()
    said = context and context.fw_metadata
    return _compiled(module, said.num_forward_returns if said else None)


def _backward(module: fx.GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
    """With a backward pass: each gradient has memory of its own, since autograd adds to it in place."""
    return _compiled(module, 0)


def compiled_graph(module: fx.GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
    """With a graph that needs no backward pass."""
    return _compiled(module, None)


def _compiled(module: fx.GraphModule, seen: int | None) -> Callable[..., Any]:
    with unset_fake_temporarily():  # a graph may hold tensors, which are real
        return make_boxed_func(compiled(module, seen))


def backend(module: fx.GraphModule, example_inputs: Sequence[Any], **options: Any) -> Callable[..., Any]:
    """What `torch.compile(model, backend="lazygrad")` calls with each graph that it has found.

    module          a graph of PyTorch's operations        example_inputs  what it is called with first
    """
    if options:
        raise ValueError(f"the backend lazygrad takes no options, not {', '.join(options)}")
    if asks_what_may_lie_otherwise(module):
        warnings.warn(
            "a graph runs in PyTorch, op by op: as_strided of what is computed from tensors that are not "
            "contiguous sees how PyTorch's own kernels leave it",
            RuntimeWarning,
            stacklevel=2,
        )
        return disable(module, reason="what is given to a backend is not traced again")
    ways = decompositions()
    plain = inference.recorded(module, ways)
    if plain is not None:
        return disable(compiled(plain), reason="what is compiled is not traced")
    compile_graph = aot_autograd(
        fw_compiler=_forward,
        bw_compiler=_backward,
        inference_compiler=compiled_graph,
        decompositions=ways,
        partition_fn=min_cut_rematerialization_partition,
    )
    return compile_graph(module, example_inputs)
