"""What happens to gradients and weights around a step: clipping, loss scaling, averages of weights."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from ...device import Devices
from ...dtype import dtypes, wide_float
from ...tensor import Tensor, no_grad
from ..parameters import buffer
from ..state import get_state_dict, load_state_dict
from .optimizer import Optimizer, as_data


def _with_gradients(params: Iterable[Tensor] | Tensor) -> list[Tensor]:
    given = [params] if isinstance(params, Tensor) else list(params)
    return [param for param in given if param.grad is not None]


def clip_grad_norm_(
    parameters: Iterable[Tensor] | Tensor,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
) -> Tensor:
    """Scale all gradients together so that their norm is at most `max_norm`; the norm before, lazy.

    error_if_nonfinite  compute the norm now, and raise if it is infinite or NaN

    >>> weight = Tensor([3.0, 4.0], requires_grad=True)
    >>> _ = (weight * weight / 2).sum().backward()
    >>> nn.optim.clip_grad_norm_([weight], 1.0).item()
    5.0
    >>> weight.grad.round(decimals=3).tolist()
    [0.6000000238418579, 0.800000011920929]
    """
    trained = _with_gradients(parameters)
    if not trained:
        return Tensor(0.0)
    if max_norm < 0 or norm_type <= 0:
        raise ValueError(
            f"max_norm must be at least 0 and norm_type positive, not {max_norm} and {norm_type}"
        )
    with no_grad():
        parts = [_norm_part(_grad(param), norm_type) for param in trained]
        together = Tensor.stack(*parts)
        if math.isinf(norm_type):
            total = together.max()
        else:
            total = together.sum() ** (1.0 / norm_type) if norm_type != 2 else together.sum().sqrt()
        if error_if_nonfinite and not total.isfinite().item():
            raise RuntimeError(f"the {norm_type:g}-norm of the gradients is {total.item()}")
        scale = (max_norm / (total + 1e-6)).clamp(max=1.0)
        for param in trained:
            grad = _grad(param)
            param.grad = (grad * scale).cast(grad.dtype)
    return total


def _grad(param: Tensor) -> Tensor:
    if param.grad is None:
        raise RuntimeError("a parameter without a gradient was left out before")
    return param.grad


def _norm_part(grad: Tensor, norm_type: float) -> Tensor:
    wide = grad.cast(wide_float(grad.dtype))
    if math.isinf(norm_type):
        return wide.abs().max()
    return wide.square().sum() if norm_type == 2 else wide.abs().pow(norm_type).sum()


def clip_grad_value_(parameters: Iterable[Tensor] | Tensor, clip_value: float) -> None:
    """Limit every element of the gradients to [-clip_value, clip_value].

    >>> weight = Tensor([3.0], requires_grad=True)
    >>> _ = (weight * weight).sum().backward()
    >>> nn.optim.clip_grad_value_([weight], 1.0)
    >>> weight.grad.tolist()
    [1.0]
    """
    if clip_value < 0:
        raise ValueError(f"clip_value must be at least 0, not {clip_value}")
    with no_grad():
        for param in _with_gradients(parameters):
            param.grad = _grad(param).clamp(-clip_value, clip_value)


class GradScaler:
    """Scales the loss of float16 training, so that small gradients do not vanish (Micikevicius et al. 2017).

        with Tensor.train():
            scaler.scale(loss).backward()
            scaler.step(optimizer)

    A step whose gradients are not finite changes nothing and multiplies the scale by `backoff_factor`;
    `growth_interval` good steps in a row multiply it by `growth_factor`. Nothing waits for the device: the
    scale is memory, and skipping is a choice within the kernels of the step.

    >>> weight = Tensor([1.0], requires_grad=True)
    >>> optimizer, scaler = nn.optim.SGD([weight], lr=0.5), nn.optim.GradScaler(init_scale=1024.0)
    >>> with Tensor.train():
    ...     _ = scaler.scale((weight * weight).sum()).backward()
    ...     scaler.step(optimizer)
    >>> weight.tolist(), scaler.scale_factor.item()
    ([0.0], 1024.0)
    """

    def __init__(
        self,
        init_scale: float = 65536.0,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        device: Devices | None = None,
    ) -> None:
        if growth_factor <= 1 or not 0 < backoff_factor < 1:
            raise ValueError(
                f"growth_factor must be above 1 and backoff_factor below 1, "
                f"not {growth_factor} and {backoff_factor}"
            )
        self.growth_factor, self.backoff_factor = growth_factor, backoff_factor
        self.growth_interval = growth_interval
        self.scale_factor = buffer(Tensor.full((), float(init_scale), device=device))
        self.good_steps = buffer(Tensor.zeros((), device=device))
        Tensor.realize(self.scale_factor, self.good_steps)
        self._unscaled: dict[int, Tensor] = {}

    def scale(self, loss: Tensor) -> Tensor:
        """The loss times the scale, in float32 at least. From then on the scale is where the loss is."""
        if isinstance(loss.device, tuple) and self.scale_factor.device != loss.device:
            with no_grad():
                for state in (self.scale_factor, self.good_steps):
                    state.replace(state.shard_like(loss)).realize()
        return loss.cast(wide_float(loss.dtype)) * self.scale_factor

    def unscale_(self, optimizer: Optimizer) -> Tensor:
        """Divide the gradients by the scale, once a step (to clip them before it); whether all are finite."""
        if id(optimizer) in self._unscaled:
            raise RuntimeError("unscale_() was called for this optimizer already since its last step")
        good: Any = None
        with no_grad():
            inverse = 1.0 / self.scale_factor
            for param in _with_gradients(optimizer.params):
                grad = _grad(param).cast(dtypes.float32) * inverse
                finite = grad.isfinite().all()
                good = finite if good is None else good & finite
                param.grad = grad
        if good is None:
            raise RuntimeError("no parameter has a gradient: call scaler.scale(loss).backward() first")
        self._unscaled[id(optimizer)] = good
        result: Tensor = good
        return result

    def get_scale(self) -> float:
        """The scale now."""
        return float(self.scale_factor.item())

    def update(self) -> None:
        """Nothing: `step` has adapted the scale. There because PyTorch asks for it."""

    def step(self, optimizer: Optimizer) -> None:
        """Step if all gradients are finite, and adapt the scale."""
        good = self._unscaled.get(id(optimizer))
        if good is None:
            good = self.unscale_(optimizer)
        del self._unscaled[id(optimizer)]
        moved = optimizer.schedule_step(only_if=good)
        with no_grad():
            counted = good.where(self.good_steps + 1.0, 0.0)
            grows = counted >= float(self.growth_interval)
            grown = grows.where(self.scale_factor * self.growth_factor, self.scale_factor)
            shrunk = self.scale_factor * self.backoff_factor
            self.scale_factor.assign(good.where(grown, shrunk))
            self.good_steps.assign(grows.where(0.0, counted))
        Tensor.realize(*moved, self.scale_factor, self.good_steps)


class EMA:
    """An exponential moving average of a model's weights: average = decay · average + (1 - decay) · weight.

    warmup  begin with a smaller decay, (1 + t) / (10 + t), so that the first weights are soon forgotten

    `update()` behind each step; `averages` has PyTorch's names, `copy_to(model)` writes them into a model.

    >>> layer = nn.Linear(2, 2)
    >>> ema = nn.optim.EMA(layer, decay=0.5)
    >>> _ = layer.weight.assign(layer.weight + 1.0)
    >>> ema.update()
    >>> (layer.weight - ema.averages["weight"]).abs().max().round(decimals=3).item()
    0.5
    """

    def __init__(self, model: Any, decay: float = 0.999, warmup: bool = False) -> None:
        if not 0 <= decay <= 1:
            raise ValueError(f"decay must be in [0, 1], not {decay}")
        self.model, self.decay, self.warmup, self.updates = model, decay, warmup, 0
        self.averages = {name: buffer(t.detach()) for name, t in get_state_dict(model).items()}
        Tensor.realize(*self.averages.values())

    def update(self) -> None:
        """Move the averages towards the weights. What is no float is copied."""
        self.updates += 1
        decay = min(self.decay, (1 + self.updates) / (10 + self.updates)) if self.warmup else self.decay
        with no_grad():
            for name, tensor in get_state_dict(self.model).items():
                average = self.averages[name]
                if dtypes.is_float(tensor.dtype):
                    rest = as_data(1.0 - decay, average.device)
                    average.assign((average + (tensor.detach() - average) * rest).cast(average.dtype))
                else:
                    average.assign(tensor.detach())
        Tensor.realize(*self.averages.values())

    def state_dict(self) -> dict[str, Any]:
        """The averages by name, and how often they moved as `updates`."""
        return {"updates": self.updates, **{f"averages.{name}": t for name, t in self.averages.items()}}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on from where another average of the same model was."""
        averages = {
            name.removeprefix("averages."): value
            for name, value in state_dict.items()
            if name != "updates" and value is not self.averages.get(name.removeprefix("averages."))
        }
        if averages:
            load_state_dict(self.averages, averages, verbose=False)
        self.updates = int(state_dict["updates"])

    def copy_to(self, model: Any) -> None:
        """Write the averages into the tensors of a model, in place."""
        targets = get_state_dict(model)
        for name, average in self.averages.items():
            targets[name].assign(average.detach())
        Tensor.realize(*targets.values())


def get_total_norm(tensors: Iterable[Tensor] | Tensor, norm_type: float = 2.0) -> Tensor:
    """The norm of all numbers of several tensors together, lazy: 0 of none.

    >>> nn.optim.get_total_norm([Tensor([3.0]), Tensor([[4.0]])]).item()
    5.0
    """
    several = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    return (
        Tensor(0.0)
        if not several
        else Tensor.stack(*(each.norm(norm_type) for each in several)).norm(norm_type)
    )
