"""Means over many batches, and what all metrics on a device share."""

from __future__ import annotations

import math
from typing import Any

from ...device import Devices
from ...dtype import DType, dtypes
from ...tensor import Tensor, no_grad
from ..parameters import buffer

#: What `update` takes: a Tensor, an array, numbers in lists.
Data = Any


class OnDevice:
    """A metric whose counts are tensors, written in place."""

    def _memory(self, *shape: int, dtype: DType, device: Devices | None) -> Tensor:
        return buffer(Tensor.zeros(*shape, dtype=dtype, device=device))

    def _tensors(self, *values: Any) -> tuple[Tensor, ...]:
        """What `update` was given, which need not be Tensors: through them no gradient flows."""
        return tuple(
            [(v if isinstance(v, Tensor) else Tensor(v, device=self._device)).detach() for v in values]
        )

    @property
    def _device(self) -> Devices:
        return next(value for value in vars(self).values() if isinstance(value, Tensor)).device

    def reset(self) -> None:
        """Begin anew."""
        memory = [value for value in vars(self).values() if isinstance(value, Tensor)]
        Tensor.realize(*[each.assign(each.zeros_like()) for each in memory])


class Mean(OnDevice):
    """The mean of numbers, each with a weight: losses over the batches of an epoch.

    The sum is carried in two float32 numbers (Kahan 1965), so that it does not depend on how many there are.

    >>> mean = nn.metrics.Mean()
    >>> for loss in (1.0, 2.0, 6.0):
    ...     mean.update(Tensor(loss))
    >>> mean.compute()
    3.0
    """

    def __init__(self, device: Devices | None = None) -> None:
        self.total = self._memory(dtype=dtypes.float32, device=device)
        self.rest = self._memory(dtype=dtypes.float32, device=device)
        self.weight = self._memory(dtype=dtypes.float32, device=device)

    def update(self, values: Data, weight: Data = 1.0) -> None:
        """Add the elements of a tensor; `weight` is of all of them, or one for each."""
        with no_grad():
            values, weights = self._tensors(values, weight)
            values = values.cast(dtypes.float32)
            weights = weights.to(values.device).cast(dtypes.float32).expand(values.shape)
            added = (values * weights).sum() - self.rest
            total = (self.total + added).contiguous()
            rest = (total - self.total) - added
            written = [self.rest.assign(rest), self.total.assign(total)]
            Tensor.realize(*written, self.weight.assign(self.weight + weights.sum()))

    def compute(self) -> float:
        """The mean; NaN where nothing was added."""
        weight = float(self.weight.item())
        return float(self.total.item()) / weight if weight else math.nan


class RunningMean(OnDevice):
    """A mean in which what is older counts less: `decay` times with each update, as a progress bar shows it.

    >>> mean = nn.metrics.RunningMean(decay=0.5)
    >>> for loss in (1.0, 3.0):
    ...     mean.update(Tensor(loss))
    >>> round(mean.compute(), 4)
    2.3333
    """

    def __init__(self, decay: float = 0.98, device: Devices | None = None) -> None:
        if not 0 <= decay < 1:
            raise ValueError(f"decay must be in [0, 1), not {decay}")
        self.decay = decay
        self.total = self._memory(dtype=dtypes.float32, device=device)
        self.weight = self._memory(dtype=dtypes.float32, device=device)

    def update(self, values: Data) -> None:
        """Add the mean of a tensor's elements."""
        with no_grad():
            value = self._tensors(values)[0].cast(dtypes.float32).mean()
            total = self.total * self.decay + value * (1 - self.decay)
            weight = self.weight * self.decay + (1 - self.decay)
            Tensor.realize(self.total.assign(total), self.weight.assign(weight))

    def compute(self) -> float:
        """The mean so far (its first values are not drawn to 0); NaN where nothing was added."""
        weight = float(self.weight.item())
        return float(self.total.item()) / weight if weight else math.nan
