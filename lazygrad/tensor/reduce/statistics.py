"""Statistics: what ignores NaN, quantiles, counts, differences, covariance, areas."""

from __future__ import annotations

import math
from typing import Any

from ...dtype import dtypes
from ...shape import prod, resolve_equal, shape_text, vmax
from ..creation import index_dtype, iota
from ..face import Tensor
from ..indexing.addresses import trusted
from ..indexing.sorting import Middle
from ..signatures import Axis

INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


class Statistics(Tensor):
    """Statistics along axes."""

    # *** without NaN

    def _no_nan(self, value: float) -> Tensor:
        return self.isnan().where(value, self) if dtypes.is_float(self.dtype) else self.cast(self.dtype)

    def nansum(self, dim: Axis = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
        """The sum along axes of what is not NaN.

        >>> Tensor([1.0, math.nan]).nansum().item()
        1.0
        """
        return self._no_nan(0.0).sum(dim, keepdim, dtype)

    def nanmean(self, dim: Axis = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
        """The average along axes of what is not NaN; NaN where nothing is.

        >>> Tensor([1.0, math.nan, 3.0]).nanmean().item()
        2.0
        """
        x = self._float() if dtype is None else self.cast(dtype)
        count = (~x.isnan()).sum(dim, keepdim)
        return (x._no_nan(0.0).sum(dim, keepdim) / count).cast(x.dtype)

    def count_nonzero(self, dim: Axis = None, keepdim: bool = False) -> Tensor:
        """How many elements along axes are nonzero.

        >>> Tensor([0, 3, 4]).count_nonzero().item()
        2
        """
        whole = index_dtype(prod(self.shape[i] for i in self._axes(dim)))
        return self._bool().sum(dim, keepdim).cast(whole)

    def aminmax(self, *, dim: Axis = None, keepdim: bool = False) -> tuple[Tensor, Tensor]:
        """The smallest and the largest element along axes.

        >>> [t.item() for t in Tensor([3, 1, 2]).aminmax()]
        [1, 3]
        """
        return self.min(dim, keepdim), self.max(dim, keepdim)

    # *** order statistics

    def _sorted_line(self, dim: int | None) -> tuple[Tensor, int]:
        """Floats in order along an axis (of the flattened tensor without), and that axis."""
        x = self._float()
        if dim is None:
            return x.flatten().sort(0)[0], 0
        axis = 0 if self.ndim == 0 else self._axis(dim)
        return (x.reshape(1) if self.ndim == 0 else x).sort(axis)[0], axis

    def nanmedian(self, dim: int | None = None, keepdim: bool = False) -> Any:
        """The value in the middle (the lower one of two) of what is not NaN along an axis, and its index.

        Without an axis that of all elements, alone; equal elements share its gradient.

        >>> Tensor([1.0, math.nan, 3.0, 5.0]).nanmedian().item()
        3.0
        """
        if dim is None:
            values: Any = Middle.apply(self, True)
            return values.reshape((1,) * self.ndim) if keepdim else values
        if self.ndim == 0:
            return self.sort(0)
        axis = self._axis(dim)
        if resolve_equal(self.shape[axis], 0):
            raise ValueError(
                f"nanmedian over no elements: axis {axis} of shape {shape_text(self.shape)} has size 0"
            )
        values, places = self.sort(axis)
        known = (~self.isnan()).cast(dtypes.int32).sum(axis, keepdim=True)
        middle = ((known - 1).maximum(0)).idiv(2)
        with trusted():
            found = values.gather(axis, middle), places.gather(axis, middle)
        return found if keepdim else (found[0].squeeze(axis), found[1].squeeze(axis))

    def mode(self, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
        """The most frequent value along an axis (the smallest of equally frequent ones), and its last index.

        >>> [t.item() for t in Tensor([3, 1, 3, 1, 2]).mode()]
        [1, 3]
        """
        if self.ndim == 0:
            return self.sort(0)
        axis = self._axis(dim)
        size = self.shape[axis]
        if resolve_equal(size, 0):
            raise ValueError(
                f"mode over no elements: axis {axis} of shape {shape_text(self.shape)} has size 0"
            )
        values, places = self.sort(axis)
        counter: Tensor = self._make(iota(size, dtypes.int32, self.device))
        counter = counter.reshape((-1,) + (1,) * (self.ndim - axis - 1)).expand(self.shape)
        begins = counter == 0
        if vmax(size) > 1:
            later = values._window(axis, 1, size).detach() != values._window(axis, 0, size - 1).detach()
            begins = begins | later.pad(tuple((1, 0) if i == axis else (0, 0) for i in range(self.ndim)))
        length = counter - begins.where(counter, 0).cummax(axis)
        best = length.argmax(axis, keepdim=True)
        with trusted():
            found = values.gather(axis, best), places.gather(axis, best)
        return found if keepdim else (found[0].squeeze(axis), found[1].squeeze(axis))

    def quantile(
        self, q: Any, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
    ) -> Tensor:
        """The value below which a part q of the elements along an axis lies; NaN where one is NaN.

        q              a number in [0, 1], or a 1-d tensor of them, which becomes the first axis of the result
        interpolation  between two elements: linear, lower, higher, midpoint or nearest

        Between two infinities, and at one, linear and midpoint give NaN, as in PyTorch; the others choose.

        >>> Tensor([1.0, 2.0, 4.0]).quantile([0.5, 0.75]).tolist()
        [2.0, 3.0]
        """
        return self._quantile(q, dim, keepdim, interpolation, "quantile")

    def nanquantile(
        self, q: Any, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
    ) -> Tensor:
        """`quantile` of what is not NaN; NaN where nothing is.

        >>> Tensor([1.0, math.nan, 4.0]).nanquantile(0.5).item()
        2.5
        """
        return self._quantile(q, dim, keepdim, interpolation, "nanquantile")

    def _quantile(self, q: Any, dim: int | None, keepdim: bool, interpolation: str, name: str) -> Tensor:
        if interpolation not in INTERPOLATIONS:
            raise ValueError(
                f"{name}'s interpolation must be one of {', '.join(INTERPOLATIONS)}, not {interpolation!r}"
            )
        values, axis = self._sorted_line(dim)
        fractions: Tensor = self._operand(q).cast(values.dtype) if isinstance(q, Tensor) else values._lift(q)
        fractions = fractions.cast(values.dtype)
        if fractions.ndim > 1:
            raise ValueError(
                f"{name} takes a number or a 1-d tensor of them as q, not shape {shape_text(fractions.shape)}"
            )
        if not isinstance(q, Tensor):
            for part in q if isinstance(q, (list, tuple)) else [q]:
                if not 0 <= part <= 1:
                    raise ValueError(f"{name} needs q in [0, 1], not {part}")
        size = values.shape[axis]
        if resolve_equal(size, 0):
            raise ValueError(f"{name} over no elements, of shape {shape_text(self.shape)}")
        lines = values.movedim(axis, -1)
        nan = lines.isnan()
        known = (~nan).cast(lines.dtype).sum(-1, keepdim=True)
        line = fractions.reshape((fractions.numel(),))
        if name == "quantile":
            place = line * (size - 1) + lines._filled(0.0)._window(lines.ndim - 1, 0, 1)
        else:
            place = line * (known - 1.0).maximum(0.0)
        place = place.detach() if not fractions.requires_grad else place
        low = place.floor()
        if interpolation == "nearest":
            low = place.round()
        elif interpolation == "higher":
            low = place.ceil()
        first = lines.gather(lines.ndim - 1, low.cast(dtypes.int64))
        if interpolation in ("linear", "midpoint"):
            second = lines.gather(lines.ndim - 1, place.ceil().cast(dtypes.int64))
            weight = place - low if interpolation == "linear" else (place != low).where(0.5, 0.0)
            far = weight >= 0.5  # from the nearer end, so that both ends are exact
            step = second - first
            first = far.where(second - step * (1.0 - weight), first + step * weight)
        missing = nan.any(-1, keepdim=True) if name == "quantile" else known == 0
        result = missing.where(math.nan, first).movedim(-1, 0)
        if keepdim:
            rank = self.ndim
            whole = tuple(1 if dim is None or i == axis else s for i, s in enumerate(self.shape))
            result = (
                result.reshape((fractions.numel(), *whole)) if rank else result.reshape((fractions.numel(),))
            )
        return result.reshape(result.shape[1:]) if fractions.ndim == 0 else result

    # *** differences and areas

    def diff(
        self, n: int = 1, dim: int = -1, prepend: Tensor | None = None, append: Tensor | None = None
    ) -> Tensor:
        """The n-th differences of neighbours along an axis; of bools whether they differ.

        prepend, append  tensors that the axis is lengthened by first

        >>> Tensor([1, 4, 9]).diff().tolist()
        [3, 5]
        """
        if self.ndim == 0:
            raise ValueError("diff needs at least one axis, not shape ()")
        if n < 0:
            raise ValueError(f"diff's n must be at least 0, not {n}")
        axis = self._axis(dim)
        if n == 0:
            return self.reshape(self.shape)
        ends: list[Any] = [t for t in (prepend, self, append) if t is not None]
        x: Any = ends[0].cat(*ends[1:], dim=axis) if len(ends) > 1 else self.reshape(self.shape)
        for _ in range(n):
            size = x.shape[axis]
            if resolve_equal(size, 0):
                break
            later, earlier = x._window(axis, 1, size), x._window(axis, 0, size - 1)
            x = later ^ earlier if dtypes.is_bool(x.dtype) else later - earlier
        return x  # type: ignore[no-any-return]

    def trapezoid(self, x: Tensor | None = None, *, dx: float = 1.0, dim: int = -1) -> Tensor:
        """The area below points along an axis, by the trapezoidal rule.

        x   where the points are: a 1-d tensor, or a tensor that broadcasts      dx  else their distance

        >>> Tensor([1.0, 3.0]).trapezoid().item()
        2.0
        """
        return self._trapezoids(x, dx, dim).sum(dim)

    def cumulative_trapezoid(self, x: Tensor | None = None, *, dx: float = 1.0, dim: int = -1) -> Tensor:
        """The running area below points along an axis.

        >>> Tensor([1.0, 3.0, 5.0]).cumulative_trapezoid().tolist()
        [2.0, 6.0]
        """
        return self._trapezoids(x, dx, dim).cumsum(dim)

    def _trapezoids(self, x: Any, dx: float, dim: int) -> Tensor:
        axis = self._axis(dim)
        y = self._float()
        size = self.shape[axis]
        pairs = (y._window(axis, 1, size) + y._window(axis, 0, size - 1)) * 0.5
        if x is None:
            return pairs * dx
        if x.ndim == 1:
            return pairs * x.diff().reshape((-1,) + (1,) * (self.ndim - axis - 1))  # type: ignore[no-any-return]
        return pairs * x.diff(dim=axis - self.ndim)  # type: ignore[no-any-return]

    # *** rows of observations

    def cov(
        self, *, correction: int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None
    ) -> Tensor:
        """The covariances of variables: a row for each, a column for each observation; of one its variance.

        fweights  how often each observation counts (integers)      aweights  how much each weighs

        >>> Tensor([[0.0, 2.0], [1.0, 5.0]]).cov().tolist()
        [[2.0, 4.0], [4.0, 8.0]]
        """
        if self.ndim > 2:
            raise ValueError(f"cov takes at most two axes, not shape {shape_text(self.shape)}")
        x = self._float().reshape((1, -1) if self.ndim < 2 else self.shape)
        weights: Any = None
        if fweights is not None and not dtypes.is_int(fweights.dtype):
            raise TypeError(f"cov's fweights must be integers, not {fweights.dtype}")
        for name, given in (("fweights", fweights), ("aweights", aweights)):
            if given is not None and given.shape != x.shape[1:]:
                raise ValueError(
                    f"cov's {name} must be one for each of the {x.shape[1]} observations, not of shape "
                    f"{shape_text(given.shape)}"
                )
        if fweights is not None:
            weights = fweights.cast(x.dtype)
        if aweights is not None:
            weights = aweights if weights is None else weights * aweights
        if weights is None:
            total: Any = float(vmax(x.shape[1]))
            away = x - x.mean(1, keepdim=True)
            scaled = away
            below: Any = max(total - correction, 0.0)
        else:
            total = weights.sum()
            away = x - (x * weights).sum(1, keepdim=True) / total
            scaled = away * weights
            rest = (weights * aweights).sum() / total * correction if aweights is not None else correction
            below = (total - rest).maximum(0.0)
        result = scaled.dot(away.transpose()) / below
        return result.reshape(()) if resolve_equal(x.shape[0], 1) else result  # type: ignore[no-any-return]

    def corrcoef(self) -> Tensor:
        """The correlations of variables: a row for each, a column for each observation.

        >>> Tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]).corrcoef().round(5).tolist()
        [[1.0, -1.0], [-1.0, 1.0]]
        """
        found = self.cov()
        if found.ndim == 0:
            return found / found
        spread = found.diagonal().sqrt()
        return (found / spread.unsqueeze(1) / spread).clamp(-1.0, 1.0)

    def nanvar(self, dim: Axis = None, keepdim: bool = False, correction: float = 1) -> Tensor:
        """The variance along axes of what is not NaN.

        >>> Tensor([1.0, math.nan, 3.0]).nanvar().item()
        2.0
        """
        x = self._float()
        known = ~x.isnan()
        away = (
            known.where(x - x.nanmean(dim, keepdim=True), 0.0)
            if dim is not None
            else known.where(x - x.nanmean(), 0.0)
        )
        count = known.cast(x.dtype).sum(dim, keepdim)
        return (away * away).sum(dim, keepdim) / (count - correction).maximum(0.0)

    def nanstd(self, dim: Axis = None, keepdim: bool = False, correction: float = 1) -> Tensor:
        """The standard deviation along axes of what is not NaN.

        >>> Tensor([1.0, math.nan, 3.0]).nanstd(correction=0).item()
        1.0
        """
        return self.nanvar(dim, keepdim, correction).sqrt()
