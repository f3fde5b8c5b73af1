"""Searching and counting: what occurs, how often, and where it belongs in an order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...dtype import ConstType, dtypes, least_upper_dtype
from ...shape import shape_text, vmax
from ..creation import counting_dtype, index_dtype, iota
from ..face import Tensor
from ..modes import mode
from ..observer import may_read
from .addresses import trusted

#: Up to this many candidates are compared one by one; more are sorted and searched.
FEW = 64


class Searching(Tensor):
    """Searching and counting."""

    # *** order

    def searchsorted(
        self,
        values: Any,
        *,
        right: bool = False,
        side: str | None = None,
        out_int32: bool = False,
        sorter: Tensor | None = None,
    ) -> Tensor:
        """The indices at which values would be inserted to keep this tensor sorted: a binary search.

        self     a 1-d tensor, or rows along the last axis; then values has as many rows; NaN come last
        right    after equal elements instead of before them; so does side="right"
        sorter   the order of an unsorted tensor, as `argsort` gives it

        >>> Tensor([1, 3, 5]).searchsorted(Tensor([3, 6])).tolist()
        [1, 3]
        """
        if side not in (None, "left", "right"):
            raise ValueError(f"searchsorted's side must be 'left' or 'right', not {side!r}")
        if right and side == "left":
            raise ValueError("searchsorted: right=True and side='left' contradict each other")
        wanted: Any = self._operand(values)
        if self.ndim == 0:
            raise ValueError("searchsorted needs a sorted 1-d tensor or sorted rows, not shape ()")
        if self.ndim > 1 and (wanted.ndim != self.ndim or wanted.shape[:-1] != self.shape[:-1]):
            raise ValueError(
                f"searchsorted in rows of shape {shape_text(self.shape)} needs values of as many rows, "
                f"not shape {shape_text(wanted.shape)}"
            )
        ordered = self if sorter is None else self.gather(self.ndim - 1, sorter)  # the one that is checked
        common = least_upper_dtype(self.dtype, wanted.dtype)
        if dtypes.is_int(common) or not (dtypes.is_int(self.dtype) and dtypes.is_int(wanted.dtype)):
            ordered, wanted = ordered.cast(common), wanted.cast(common)  # else compared as integers, exactly
        ordered, wanted = ordered.detach(), wanted.detach()
        size = vmax(self.shape[-1])
        after = right if side is None else side == "right"
        shape = wanted.shape
        queries = wanted if self.ndim > 1 else wanted.reshape((wanted.numel(),))
        found = queries._filled(0, counting_dtype(2 * size))  # a step beyond the end
        step = 1 << max(size.bit_length() - 1, 0)
        while step and size:
            candidate = found + step
            with trusted():
                element = ordered.gather(self.ndim - 1, (candidate - 1).minimum(size - 1))
            passed = _is_before(element, queries, after)
            found = ((candidate <= size) & passed).where(candidate, found)
            step //= 2
        return found.reshape(shape).cast(dtypes.int32 if out_int32 else index_dtype(size))  # type: ignore[no-any-return]

    def bucketize(self, boundaries: Tensor, *, right: bool = False, out_int32: bool = False) -> Tensor:
        """Between which of the sorted boundaries each element lies: how many are below it.

        right  whether boundaries that are equal count as below

        >>> Tensor([0, 3, 9]).bucketize(Tensor([1, 3, 5])).tolist()
        [0, 1, 3]
        """
        if boundaries.ndim != 1:
            raise ValueError(
                f"bucketize needs a 1-d tensor of boundaries, not shape {shape_text(boundaries.shape)}"
            )
        return boundaries.searchsorted(self, right=right, out_int32=out_int32)

    def isin(self, test_elements: Any, *, assume_unique: bool = False, invert: bool = False) -> Tensor:
        """Whether each element occurs in `test_elements`; with `invert`, whether it does not.

        >>> Tensor([1, 2, 3]).isin(Tensor([2, 5])).tolist()
        [False, True, False]
        """
        candidates: Any = self._operand(test_elements)
        line = candidates.reshape((candidates.numel(),))
        count = vmax(line.shape[0])
        if count == 0:
            found = self._filled(False, dtypes.bool)
        elif count <= FEW:
            found = (self.unsqueeze(-1) == line).any(-1)
        else:
            ordered = line.sort(0)[0]
            places = ordered.searchsorted(self).minimum(count - 1)
            with trusted():
                found = ordered[places] == self
        return ~found if invert else found

    # *** what occurs

    def unique(
        self,
        sorted: bool = True,
        return_inverse: bool = False,
        return_counts: bool = False,
        dim: int | None = None,
    ) -> Any:
        """The different values, in order.

        It is computed at once, since the shape depends on the values.

        return_inverse  also where each element is among them, in this tensor's shape
        return_counts   also how often each occurs
        dim             slices along this axis instead of elements, in lexicographic order (on the host)

        >>> Tensor([3, 1, 3]).unique().tolist()
        [1, 3]
        """
        if dim is not None:
            return self._unique_slices(self._axis(dim), return_inverse, return_counts)
        line = self.flatten()
        values, order = line.sort(0)
        found, group, counts = _runs(values)
        inverse: Any = None
        if return_inverse:
            with trusted():
                inverse = group._filled(0).scatter(0, order, group).reshape(self.shape)
        return _answers(found, inverse, counts() if return_counts else None)

    def _unique_slices(self, axis: int, return_inverse: bool, return_counts: bool) -> Any:
        import numpy as np

        _, first, inverse, counts = np.unique(
            self.numpy(), return_index=True, return_inverse=True, return_counts=True, axis=axis
        )
        kind: Any = type(self)
        device, whole = self.device, index_dtype(self.shape[axis])
        places = kind(first.astype(np.int64), device=device)
        return _answers(
            self.index_select(axis, places),
            kind(inverse.reshape(-1).astype(np.int64), device=device, dtype=whole)
            if return_inverse
            else None,
            kind(counts.astype(np.int64), device=device, dtype=whole) if return_counts else None,
        )

    def unique_consecutive(
        self, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
    ) -> Any:
        """The values without those that repeat the one before them.

        It is computed at once, since the shape depends on the values.

        dim  slices along this axis instead of the elements of the flattened tensor

        >>> Tensor([1, 1, 2, 1]).unique_consecutive().tolist()
        [1, 2, 1]
        """
        line = self.flatten() if dim is None else self.movedim(self._axis(dim), 0)
        found, group, counts = _runs(line)
        if dim is not None:
            found = found.movedim(0, self._axis(dim))
        inverse = group.reshape(self.shape) if dim is None else group
        return _answers(found, inverse if return_inverse else None, counts() if return_counts else None)

    # *** how often

    def bincount(self, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
        """How often each number from 0 on occurs in a 1-d tensor of integers, or the sum of their weights.

        It is computed at once, to find the largest number. Captured by a jit, and under `vmap`, there are
        exactly `minlength` counts, since their number cannot depend on the data; a number beyond them
        raises IndexError.

        >>> Tensor([1, 3, 1]).bincount().tolist()
        [0, 2, 0, 1]
        """
        if self.ndim != 1 or not dtypes.is_int(self.dtype):
            raise ValueError(
                f"bincount takes a 1-d tensor of integers, not {self.dtype} of shape {shape_text(self.shape)}"
            )
        if minlength < 0:
            raise ValueError(f"bincount's minlength must be at least 0, not {minlength}")
        if weights is not None and weights.shape != self.shape:
            raise ValueError(
                f"bincount needs a weight for each element of {shape_text(self.shape)}, "
                f"not shape {shape_text(weights.shape)}"
            )
        size, known = minlength, may_read() and not mode.examples
        if not known and minlength == 0:
            raise ValueError(
                "bincount in a jit or under vmap: the number of counts would depend on the data; "
                "say how many with minlength"
            )
        if known and vmax(self.shape[0]):
            least, greatest = (int(t.item()) for t in self.aminmax())
            if least < 0:
                raise ValueError(f"bincount counts numbers from 0 on, not {least}")
            size = max(size, greatest + 1)
        dtype = index_dtype(self.shape[0]) if weights is None else weights.dtype
        empty = self.zeros(size, dtype=dtype, device=self.device)
        if size == 0:
            return empty
        amounts = self._filled(1, dtype) if weights is None else weights
        if not known:
            return empty.scatter_add(0, self, amounts)
        with trusted():
            return empty.scatter_add(0, self, amounts)

    @trusted()
    def histc(self, bins: int = 100, min: ConstType = 0, max: ConstType = 0) -> Tensor:
        """How many elements lie in each of some bins of equal width from min to max; others are not counted.

        If min and max are equal, the smallest and the largest element are used.

        >>> Tensor([0.0, 1.0, 1.5, 4.0]).histc(4, 0, 4).tolist()
        [1.0, 2.0, 0.0, 1.0]
        """
        if bins < 1:
            raise ValueError(f"histc needs a positive number of bins, not {bins}")
        if min > max:
            raise ValueError(f"histc needs min <= max, not {min} and {max}")
        x, dtype = self._wide().flatten().detach(), self._float().dtype
        low, high = float(min), float(max)
        if low != high:
            step: Any = bins / (high - low)
        elif vmax(x.shape[0]):
            low, high = _widened(*x.aminmax(), 1.0)
            step = bins / (high - low)
        else:
            low, high, step = low - 1.0, high + 1.0, bins / 2.0
        place = ((x - low) * step).floor()
        place = (x == high).where(float(bins - 1), place)
        inside = (x >= low) & (x <= high)
        index = inside.where(place, float(bins)).cast(dtypes.int64)  # beyond the end: dropped
        one = x._filled(1.0).cast(dtype)
        return self.zeros(bins, dtype=dtype, device=self.device).scatter_add(0, index, one)

    @trusted()
    def histogram(
        self,
        bins: Any = 100,
        *,
        range: tuple[float, float] | None = None,
        weight: Tensor | None = None,
        density: bool = False,
    ) -> tuple[Tensor, Tensor]:
        """(how many elements, or the sum of their weights, in each bin; the edges of the bins).

        bins  a number of equal bins over `range` (by default from the smallest to the largest element), or
              the edges
        density  the parts of the whole instead, divided by the widths of their bins

        >>> [t.tolist() for t in Tensor([0.0, 1.0, 3.0]).histogram(Tensor([0.0, 1.0, 4.0]))]
        [[1.0, 2.0], [0.0, 1.0, 4.0]]
        """
        x = self._float().flatten().detach()
        if not isinstance(bins, int) and not hasattr(bins, "__len__"):
            raise TypeError(f"histogram's bins must be a number of bins, or their edges, not {bins!r}")
        if range is not None and (not isinstance(range, (tuple, list)) or len(range) != 2):
            raise ValueError(f"histogram's range must be (smallest, largest), not {range!r}")
        edges = _edges(x, bins, range, "histogram")
        count = vmax(edges.shape[0]) - 1
        amounts: Any = x._filled(1.0) if weight is None else weight.reshape((weight.numel(),)).cast(x.dtype)
        empty = self.zeros(count, dtype=x.dtype, device=self.device)
        found = empty.scatter_add(0, _bin_of(x, edges), amounts)
        return found / (found.sum() * edges.diff()) if density else found, edges

    @trusted()
    def histogramdd(
        self,
        bins: Any,
        *,
        range: Sequence[float] | None = None,
        weight: Tensor | None = None,
        density: bool = False,
    ) -> tuple[Tensor, list[Tensor]]:
        """(how many points, or the sum of their weights, in each box of a grid; the edges along each axis).

        self     points, a row of coordinates each
        bins     a number of equal bins, one for each coordinate, or the edges along each
        range    the smallest and the largest value of each coordinate, one pair after another
        density  the parts of the whole instead, divided by the volumes of their boxes

        >>> Tensor([[0.0, 0.0], [1.0, 3.0], [1.0, 4.0]]).histogramdd(2)[0].tolist()
        [[1.0, 0.0], [0.0, 2.0]]
        """
        if self.ndim < 2:
            raise ValueError(f"histogramdd takes rows of coordinates, not shape {shape_text(self.shape)}")
        axes = vmax(self.shape[-1])
        points = self._float().detach().reshape((-1, axes))
        each = [bins] * axes if isinstance(bins, int) else list(bins)
        if len(each) != axes:
            raise ValueError(f"histogramdd needs bins for each of {axes} coordinates, not {len(each)}")
        if range is not None and len(range) != 2 * axes:
            raise ValueError(
                f"histogramdd's range has two ends for each of {axes} coordinates, not {range!r}"
            )
        found = points._filled(0, dtypes.int64)._window(1, 0, 1).squeeze(1)
        edges: list[Tensor] = []
        inside: Any = found == 0
        for axis, wanted in enumerate(each):
            x = points._window(1, axis, axis + 1).squeeze(1)
            pair = None if range is None else (range[2 * axis], range[2 * axis + 1])
            along = _edges(x, wanted, pair, "histogramdd")
            count = vmax(along.shape[0]) - 1
            place = _bin_of(x, along)
            inside = inside & (place < count)
            found = found * count + place
            edges.append(along)
        counts = tuple([vmax(along.shape[0]) - 1 for along in edges])
        total = math.prod(counts)
        amounts: Any = weight.reshape((-1,)).cast(points.dtype) if weight is not None else None
        if amounts is None:
            amounts = found._filled(1.0, points.dtype)
        empty = self.zeros(total, dtype=points.dtype, device=self.device)
        grid = empty.scatter_add(0, inside.where(found, total), amounts).reshape(counts)
        if density:
            grid = grid / grid.sum()
            for axis, along in enumerate(edges):
                grid = grid / along.diff().reshape((-1, *((1,) * (axes - axis - 1))))
        return grid, edges


def _widened(low: Any, high: Any, by: float) -> tuple[Any, Any]:
    """The ends of a range, moved apart where they are equal."""
    same = low == high
    return same.where(low - by, low), same.where(high + by, high)


def _edges(x: Any, bins: Any, ends: Any, name: str) -> Any:
    """The edges of bins: those given, or of so many equal ones."""
    if not isinstance(bins, int):
        return x._operand(bins).cast(x.dtype)
    if bins < 1:
        raise ValueError(f"{name} needs a positive number of bins, not {bins}")
    if ends is not None:
        low, high = ends if ends[0] != ends[1] else (ends[0] - 0.5, ends[1] + 0.5)
        return x.linspace(low, high, bins + 1, dtype=x.dtype, device=x.device)
    least, greatest = x.aminmax()
    low, high = _widened(least, greatest, 0.5)
    number = x._make(iota(bins + 1, dtypes.int32, x.device))
    part = number.cast(x.dtype) / bins
    return (number == bins).where(high, low + (high - low) * part)


def _bin_of(x: Any, edges: Any) -> Any:
    """The bin of each element, one beyond the last for those that are in none."""
    count = vmax(edges.shape[0]) - 1
    place = edges.searchsorted(x, right=True) - 1
    last = edges._window(0, count, count + 1)
    place = (x == last).where(count - 1, place)
    return ((place < 0) | (x > last) | (x != x)).where(count, place)


def _is_before(element: Tensor, query: Tensor, or_equal: bool) -> Tensor:
    """Whether an element of an order precedes a query, or equals it; NaN are equal, and follow all others."""
    before = (element <= query) if or_equal else (element < query)
    if not dtypes.is_float(query.dtype):
        return before
    last = query.isnan()
    return before | (last if or_equal else last & ~element.isnan())


@trusted()
def _runs(line: Any) -> tuple[Any, Any, Any]:
    """Slices along the first axis that differ from the one before: (them, the run of each slice, a function
    that counts the slices of each run)."""
    size = vmax(line.shape[0])
    whole = index_dtype(size)
    if size == 0:
        empty = line.zeros(0, dtype=whole, device=line.device)
        return line, empty, lambda: empty
    begins = line._make(iota(size, whole, line.device)) == 0
    if size > 1:
        x = line.detach()
        differs = x._window(0, 1, size) != x._window(0, 0, size - 1)
        if differs.ndim > 1:
            differs = differs.any(tuple(range(1, differs.ndim)))
        begins = begins | differs.pad((1, 0))
    group = (begins.cast(whole).cumsum(0) - 1).cast(whole).realize()
    total = int(group._window(0, size - 1, size).item()) + 1
    counter = line._make(iota(size, whole, line.device))
    target = begins.where(group, total)  # what begins no run is out of range: dropped
    first = line.zeros(total, dtype=whole, device=line.device).scatter(0, target, counter)

    def counts() -> Any:
        ones = counter._filled(1)
        with trusted():
            return line.zeros(total, dtype=whole, device=line.device).scatter_add(0, group, ones)

    return line[first], group, counts


def _answers(found: Any, inverse: Any, counts: Any) -> Any:
    answers = tuple(t for t in (found, inverse, counts) if t is not None)
    return answers if len(answers) > 1 else found
