"""How older scripts train: an optimizer trains what it is given, and a list of weights has all tensors.

A tensor of which nobody said whether it requires a gradient does so once an optimizer has it; one of which
somebody said that it does not (a layer's running statistics) stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .. import nn
from ..dtype import dtypes
from ..nn.optim import Optimizer
from ..nn.state import get_state_dict
from ..tensor import Tensor


def get_parameters(obj: Any) -> list[Tensor]:
    """Every tensor of a model."""
    return list(get_state_dict(obj).values())


def to_train(params: Any) -> Any:
    """What is left to an optimizer of the tensors it was given; anything but tensors is the optimizer's."""
    if not isinstance(params, Iterable) or isinstance(params, (Tensor, Mapping)):
        return params
    given = list(params)
    if not given or not all(isinstance(param, Tensor) for param in given):
        return given
    for param in given:
        if param._requires_grad is None and dtypes.is_float(param.dtype):
            param.requires_grad_()
    trained = list({id(param): param for param in given if param.requires_grad}.values())
    if not trained:
        raise ValueError("an optimizer needs a parameter to train: every tensor has requires_grad=False")
    return trained


_own_init = Optimizer.__init__


def init_optimizer(self: Optimizer, params: Any, *args: Any, **kwargs: Any) -> None:
    """An optimizer of any tensors."""
    _own_init(self, to_train(params), *args, **kwargs)


class OptimizerGroup:
    """Several optimizers that step together."""

    def __init__(self, *optimizers: Optimizer) -> None:
        self.optimizers = optimizers

    @property
    def params(self) -> list[Tensor]:
        return [param for optimizer in self.optimizers for param in optimizer.params]

    def __getitem__(self, place: int) -> Optimizer:
        return self.optimizers[place]

    def zero_grad(self) -> None:
        for optimizer in self.optimizers:
            optimizer.zero_grad()

    def schedule_step(self) -> list[Tensor]:
        """Record a step of each: it runs when the tensors are realized."""
        return [tensor for optimizer in self.optimizers for tensor in optimizer.schedule_step()]

    def step(self) -> None:
        Tensor.realize(*self.schedule_step())


class Muon(nn.optim.Muon):
    """`nn.optim.Muon`, whose `ns_coefficients` were `ns_params`."""

    def __init__(self, params: Any, *args: Any, **kwargs: Any) -> None:
        if "ns_params" in kwargs:
            kwargs["ns_coefficients"] = kwargs.pop("ns_params")
        super().__init__(params, *args, **kwargs)


def load_state_dict(
    model: Any,
    state_dict: dict[str, Tensor],
    strict: bool = True,
    verbose: bool = True,
    consume: bool = False,
) -> None:
    """Give a model's tensors these values, brought to where each of them lies."""
    moved = dict(state_dict)
    for name, target in get_state_dict(model).items():
        value = moved.get(name)
        if isinstance(value, Tensor) and value.shape != target.shape:
            raise ValueError(
                f"Shape mismatch in layer `{name}`: Expected shape {target.shape}, but found {value.shape} "
                "in state dict."
            )
        if isinstance(value, Tensor) and value.device != target.device and value.shape == target.shape:
            moved[name] = value.shard_like(target)
    nn.state.load_state_dict(model, moved, strict=strict, verbose=verbose)
    if consume:
        state_dict.clear()


class Embedding(nn.Embedding):
    """`nn.Embedding`, which takes whole numbers in floats, too."""

    def __call__(self, idx: Tensor) -> Tensor:
        return super().__call__(idx.int() if dtypes.is_float(idx.dtype) else idx)


class RMSNorm(nn.RMSNorm):
    """`nn.RMSNorm`, whose eps is 1e-6 if not given."""

    def __init__(self, dim: Any, eps: float = 1e-6, elementwise_affine: bool = True) -> None:
        super().__init__(dim, eps, elementwise_affine)
