"""Functions of lazygrad as operators of PyTorch, with their gradients."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import torch

from ..tensor import Tensor
from .dtypes import from_torch_dtype, to_torch_dtype
from .replay import Replayed


def custom_op(fn: Callable[..., Any], name: str | None = None) -> Callable[..., Any]:
    """An operator of PyTorch that computes a lazygrad function, in kernels of its own, and its gradient.

    It works in eager code, under autograd, and in what `torch.compile` compiles with any backend.

    fn    takes tensors, one for each of its parameters, and gives a tensor or a tuple of them; it is run when
          a call has shapes or dtypes that are new, and its kernels are replayed otherwise
    name  the operator's, in the namespace `lazygrad`; None is that of the function

    Raises ValueError where fn takes anything but a known number of tensors.
    """
    called = name or fn.__name__
    parameters = inspect.signature(fn).parameters.values()
    plain = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.POSITIONAL_ONLY)
    if not parameters or any(p.kind not in plain or p.default is not p.empty for p in parameters):
        raise ValueError(
            f"custom_op takes a function of one or more tensors, without defaults: {called} has "
            f"the parameters ({', '.join(map(str, parameters))})"
        )
    names = [p.name for p in parameters]
    forward = Replayed(lambda given: _results(fn(*given)))
    backward = Replayed(lambda given: _gradients(fn, given, len(names)))
    takes = ", ".join(f"Tensor {each}" for each in names)

    @torch.library.custom_op(f"lazygrad::{called}", mutates_args=(), schema=f"({takes}) -> Tensor[]")
    def run(*inputs: Any) -> Any:
        return _fresh(forward(inputs), inputs)

    @run.register_fake
    def _(*inputs: Any) -> Any:
        return [_empty(value) for value in _results(fn(*map(_like, inputs)))]

    takes_slopes = f"({takes}, Tensor[] slopes) -> Tensor[]"

    @torch.library.custom_op(f"lazygrad::{called}_backward", mutates_args=(), schema=takes_slopes)
    def run_backward(*inputs: Any) -> Any:
        *given, slopes = inputs
        return _fresh(backward([*given, *slopes]), given)

    @run_backward.register_fake
    def _(*inputs: Any) -> Any:
        return [torch.empty_like(x) for x in inputs[:-1]]

    def setup(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)

    def slopes_of(ctx: Any, slopes: Sequence[torch.Tensor]) -> Any:
        found = run_backward(*ctx.saved_tensors, list(slopes))
        return tuple(x if x.dtype.is_floating_point else None for x in found)

    run.register_autograd(slopes_of, setup_context=setup)

    def call(*inputs: Any) -> Any:
        if len(inputs) != len(names):
            raise TypeError(f"{called} takes {len(names)} tensors ({', '.join(names)}), not {len(inputs)}")
        found = run(*inputs)
        return found[0] if len(found) == 1 else tuple(found)

    call.__name__ = call.__qualname__ = called
    call.__doc__ = fn.__doc__
    return call


def _results(value: Any) -> list[Tensor]:
    return list(value) if isinstance(value, (tuple, list)) else [value]


def _gradients(fn: Callable[..., Any], given: Sequence[Tensor], count: int) -> list[Any]:
    """The gradient of each input, given those of the results; zeros for whole numbers."""
    leaves = [x.detach().requires_grad_() if x.is_floating_point() else x for x in given[:count]]
    made = _results(fn(*leaves))
    total = sum((y * slope).sum() for y, slope in zip(made, given[count:], strict=True))
    wanted = [x for x in leaves if x.is_floating_point()]
    found = iter(total.gradient(*wanted)) if wanted else iter(())  # type: ignore[union-attr]
    return [next(found) if x.is_floating_point() else x.zeros_like() for x in leaves]


def _fresh(results: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """An operator gives new tensors: what a function hands on is copied."""
    return [x.clone() if any(x is given for given in inputs) else x for x in results]


def _like(x: torch.Tensor) -> Tensor:
    return Tensor.empty(*map(int, x.shape), dtype=from_torch_dtype(x.dtype))


def _empty(value: Tensor) -> torch.Tensor:
    return torch.empty(value.shape, dtype=to_torch_dtype(value.dtype))
