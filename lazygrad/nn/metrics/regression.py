"""Metrics of numbers: how far predictions are from what was wanted."""

from __future__ import annotations

import math

from ...device import Devices
from ...dtype import dtypes
from ...shape import shape_text
from ...tensor import Tensor, no_grad
from .means import Data, Mean, OnDevice


class _Differences:
    """A metric that is a mean of what follows from each difference."""

    def __init__(self, device: Devices | None = None) -> None:
        self.mean = Mean(device)

    def update(self, predicted: Data, target: Data) -> None:
        """Add predictions and what was wanted, of one shape; predictions may be (..., 1)."""
        with no_grad():
            self.mean.update(self._of(_pair(self.mean, predicted, target)))

    def _of(self, pair: tuple[Tensor, Tensor]) -> Tensor:
        raise NotImplementedError

    def reset(self) -> None:
        """Begin anew."""
        self.mean.reset()


class RMSE(_Differences):
    """The root of the mean squared difference.

    >>> rmse = nn.metrics.RMSE()
    >>> rmse.update([1.0, 2.0], [1.0, 4.0])
    >>> round(rmse.compute(), 4)
    1.4142
    """

    def _of(self, pair: tuple[Tensor, Tensor]) -> Tensor:
        return (pair[0] - pair[1]).square()

    def compute(self) -> float:
        """The root; NaN where nothing was added."""
        return math.sqrt(self.mean.compute())


class MAE(_Differences):
    """The mean absolute difference.

    >>> mae = nn.metrics.MAE()
    >>> mae.update([1.0, 2.0], [1.0, 4.0])
    >>> mae.compute()
    1.0
    """

    def _of(self, pair: tuple[Tensor, Tensor]) -> Tensor:
        return (pair[0] - pair[1]).abs()

    def compute(self) -> float:
        """The mean; NaN where nothing was added."""
        return self.mean.compute()


class R2(OnDevice):
    """How much of the variance of what was wanted the predictions explain: the coefficient of determination.

    1 where all are right, 0 where their mean would be as good, below that where it would be better. Mean and
    variance are carried from batch to batch (Chan, Golub and LeVeque 1979).

    >>> r2 = nn.metrics.R2()
    >>> r2.update([1.0, 2.0, 4.0], [1.0, 2.0, 3.0])
    >>> r2.compute()
    0.5
    """

    def __init__(self, device: Devices | None = None) -> None:
        self.squares = Mean(device)
        self.count = self._memory(dtype=dtypes.int64, device=device)
        self.mean = self._memory(dtype=dtypes.float32, device=device)
        self.spread = self._memory(dtype=dtypes.float32, device=device)

    def update(self, predicted: Data, target: Data) -> None:
        """Add predictions and what was wanted: (samples,) both, or (samples, 1)."""
        with no_grad():
            ours, wanted = _pair(self, predicted, target)
            if wanted.ndim > 1 and wanted.shape[-1] != 1:
                raise ValueError(
                    f"R2 is of one number for each sample, not of shape {shape_text(wanted.shape)}; "
                    "take one R2 for each column"
                )
            number = wanted.numel()
            if number == 0:
                return
            mean = wanted.mean()
            before = self.count.cast(dtypes.float32)
            apart, share = mean - self.mean, number / (before + number)
            spread = self.spread + (wanted - mean).square().sum() + apart * apart * before * share
            written = [self.mean.assign(self.mean + apart * share), self.spread.assign(spread)]
            Tensor.realize(*written, self.count.assign(self.count + number))
            self.squares.update((ours - wanted).square())

    def compute(self) -> float:
        """At most 1; NaN of fewer than two samples. Where all that was wanted is equal, 1 or 0: whether all
        predictions are right.
        """
        number, spread = int(self.count.item()), float(self.spread.item())
        if number < 2:
            return math.nan
        rest = self.squares.compute() * number
        return 1.0 - rest / spread if spread else float(rest == 0.0)

    def reset(self) -> None:
        """Begin anew."""
        super().reset()
        self.squares.reset()


def _pair(metric: OnDevice, predicted: Data, target: Data) -> tuple[Tensor, Tensor]:
    """Predictions and what was wanted in float32, of one shape."""
    ours, wanted = (t.cast(dtypes.float32) for t in metric._tensors(predicted, target))
    if ours.ndim == wanted.ndim + 1 and ours.shape[-1] == 1:
        ours = ours.squeeze(-1)
    if ours.shape != wanted.shape:
        raise ValueError(
            f"predictions of shape {shape_text(ours.shape)} for numbers of shape {shape_text(wanted.shape)}"
        )
    return ours, wanted
