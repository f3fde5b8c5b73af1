"""Functions of lazygrad as operators of PyTorch, with their gradients."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import torch

from ..tensor import Tensor
from ..tensor.modes import usual_modes
from ..tensor.random import sampling
from .dtypes import from_torch_dtype, to_torch_dtype
from .replay import Replayed
from .table import ATEN


def custom_op(fn: Callable[..., Any], name: str | None = None) -> Callable[..., Any]:
    """An operator of PyTorch that computes a lazygrad function, in kernels of its own, and its gradient.

    It works in eager code, under autograd, and in what `torch.compile` compiles with any backend.

    fn    takes tensors, one for each of its parameters, and gives a tensor or a tuple of them; it is run when
          a call has shapes or dtypes that are new, and its kernels are replayed otherwise. It writes no
          argument and reads no value. If it draws random numbers, it has no gradient
    name  the operator's, in the namespace `lazygrad`; None is that of the function

    In a graph of the backend lazygrad, and in a model that `from_torch` takes, it is fused with the rest.

    Raises ValueError where fn takes anything but a known number of tensors, or the name is none.
    """
    called = name or fn.__name__
    if not called.isidentifier():
        raise ValueError(f"an operator cannot be called {called!r}: give custom_op another name=")
    parameters = inspect.signature(fn).parameters.values()
    plain = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.POSITIONAL_ONLY)
    if not parameters or any(p.kind not in plain or p.default is not p.empty for p in parameters):
        raise ValueError(
            f"custom_op takes a function of one or more tensors, without defaults: {called} has "
            f"the parameters ({', '.join(map(str, parameters))})"
        )
    names = [p.name for p in parameters]

    def computed(*given: Tensor) -> list[Tensor]:
        return _results(fn(*given), called)

    def slopes_computed(*given: Any) -> list[Tensor]:
        return _gradients(computed, given[: len(names)], given[-1])

    forward = Replayed(lambda given: computed(*given))
    backward = Replayed(lambda given: slopes_computed(*given[: len(names)], given[len(names) :]))
    ATEN[f"lazygrad.{called}.default"] = computed
    ATEN[f"lazygrad.{called}_backward.default"] = slopes_computed
    takes = ", ".join(f"Tensor {each}" for each in names)

    @torch.library.custom_op(f"lazygrad::{called}", mutates_args=(), schema=f"({takes}) -> Tensor[]")
    def run(*inputs: Any) -> Any:
        return _fresh(forward(inputs), inputs)

    @run.register_fake
    def _(*inputs: Any) -> Any:
        with usual_modes():
            return [_empty(value, inputs[0]) for value in computed(*map(_like, inputs))]

    takes_slopes = f"({takes}, Tensor[] {'_'.join([*names, 'slopes'])}) -> Tensor[]"

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


def _results(value: Any, called: str) -> list[Tensor]:
    made = list(value) if isinstance(value, (tuple, list)) else [value]
    if not made or not all(isinstance(each, Tensor) for each in made):
        raise TypeError(
            f"the function of custom_op gives a tensor or a tuple of them: {called} gave {value!r}"
        )
    return made


def _gradients(
    fn: Callable[..., list[Tensor]], given: Sequence[Tensor], slopes: Sequence[Tensor]
) -> list[Tensor]:
    """The gradient of each input, given those of the results; zeros for whole numbers, and where no result
    depends on an input.
    """
    leaves = [x.detach().requires_grad_() if x.is_floating_point() else x for x in given]
    before = sampling.drawn()
    pairs = [(y, slope) for y, slope in zip(fn(*leaves), slopes, strict=True) if y.requires_grad]
    if sampling.drawn() != before:
        raise NotImplementedError(
            "the gradient of a function that draws random numbers would be computed with other ones: give "
            "them to the function as an argument"
        )
    found = [x.zeros_like() for x in leaves]
    floats = [place for place, x in enumerate(leaves) if x.is_floating_point()]
    if not pairs:
        return found
    total: Any = sum((y * slope).sum() for y, slope in pairs)
    try:
        some = dict(zip(floats, total.gradient(*[leaves[place] for place in floats]), strict=True))
    except ValueError:  # it does not depend on one of them
        some = {}
        for place in floats:
            with contextlib.suppress(ValueError):
                (some[place],) = total.gradient(leaves[place])
    return [some.get(place, zeros) for place, zeros in enumerate(found)]


def _fresh(results: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """An operator gives new tensors: what a function hands on is copied."""
    return [x.clone() if any(x is given for given in inputs) else x for x in results]


def _like(x: torch.Tensor) -> Tensor:
    return Tensor.empty(*map(int, x.shape), dtype=from_torch_dtype(x.dtype))


def _empty(value: Tensor, like: torch.Tensor) -> torch.Tensor:
    return like.new_empty(value.shape, dtype=to_torch_dtype(value.dtype))
