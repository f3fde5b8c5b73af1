"""Copies with parts replaced: by index, by mask, by view. Nothing is written in place.

Where indices repeat, what combines is combined in order, and what is stored last stays: results do not
depend on how a kernel is run. An index in a tensor that is out of range raises IndexError when a result is
read; under `CHECK_INDEX=0` it is dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...dtype import ConstType, dtypes
from ...gradient import scatter
from ...ir.ops import Ops
from ...shape import broadcast_shapes, movement, shape_text
from ..argument_types import is_number, is_tensor
from ..face import Tensor
from ..sources import check_fits, real_number
from .addresses import addresses_in, checked, is_below, trusted


class Writing(Tensor):
    """Methods that give a copy with parts replaced."""

    def _along(self, dim: int, index: Any, source: Any, name: str) -> tuple[int, Tensor]:
        """An axis, and a line of indices spread over the shape of `source`."""
        axis = 0 if self.ndim == 0 else self._axis(dim)
        if index.ndim > 1 or not dtypes.is_int(index.dtype):
            raise ValueError(
                f"{name} needs a 1-d tensor of integers as index, not {index.dtype} of shape "
                f"{shape_text(index.shape)}"
            )
        line = index.reshape((index.numel(),))
        shape = source.shape
        rest = tuple(s for i, s in enumerate(self.shape) if i != axis)
        if len(shape) != self.ndim or (
            self.ndim and tuple(s for i, s in enumerate(shape) if i != axis) != rest
        ):
            raise ValueError(
                f"{name} along axis {axis} of shape {shape_text(self.shape)} does not take values of shape "
                f"{shape_text(shape)}"
            )
        if self.ndim and shape[axis] != line.shape[0]:
            raise ValueError(
                f"{name} along axis {axis}: {line.shape[0]} indices for values of shape {shape_text(shape)}"
            )
        unit = (-1,) + (1,) * (self.ndim - axis - 1) if self.ndim else ()
        return axis, line.reshape(unit).expand(shape)

    def index_add(self, dim: int, index: Tensor, source: Tensor, *, alpha: ConstType = 1) -> Tensor:
        """A copy with alpha·source[i] added to the slice index[i] of an axis, where indices repeat too.

        >>> Tensor([1, 1]).index_add(0, Tensor([0, 0]), Tensor([2, 3])).tolist()
        [6, 1]
        """
        axis, places = self._along(dim, index, source, "index_add")
        values: Any = source if alpha == 1 else source * alpha
        return self.scatter_add(axis, places, values.cast(self.dtype))

    def index_copy(self, dim: int, index: Tensor, source: Tensor) -> Tensor:
        """A copy with source[i] stored as the slice index[i] of an axis.

        >>> Tensor([1, 2, 3]).index_copy(0, Tensor([2, 0]), Tensor([7, 8])).tolist()
        [8, 2, 7]
        """
        axis, places = self._along(dim, index, source, "index_copy")
        return self.scatter(axis, places, source)

    def index_fill(self, dim: int, index: Tensor, value: Any) -> Tensor:
        """A copy with a number (or 0-d tensor) in the slices of an axis at the indices in a 1-d tensor.

        >>> Tensor([1, 2, 3]).index_fill(0, Tensor([0, -1]), 9).tolist()
        [9, 2, 9]
        """
        axis = 0 if self.ndim == 0 else self._axis(dim)
        if not is_number(value):
            raise TypeError(f"index_fill takes a number or a 0-d tensor, not {value!r}")
        if isinstance(value, Tensor) and value.ndim:
            raise ValueError(
                f"index_fill takes a number or a 0-d tensor, not shape {shape_text(value.shape)}"
            )
        filling: Any = (
            value.cast(self.dtype)
            if isinstance(value, Tensor)
            else self.full((), value, dtype=self.dtype, device=self.device)
        )
        count = index.numel()
        shape = tuple(count if i == axis else s for i, s in enumerate(self.shape))
        return self.index_copy(axis, index, filling.expand(shape))

    def index_reduce(
        self, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
    ) -> Tensor:
        """A copy with source[i] combined into the slice index[i] of an axis: prod, mean, amax or amin.

        >>> Tensor([1, 5]).index_reduce(0, Tensor([0, 1]), Tensor([3, 3]), "amax").tolist()
        [3, 5]
        """
        axis, places = self._along(dim, index, source, "index_reduce")
        return self.scatter_reduce(axis, places, source, reduce, include_self=include_self)

    def index_put(self, indices: Sequence[Any], values: Any, accumulate: bool = False) -> Tensor:
        """A copy with `values` at x[indices]: stored, or added where `accumulate`.

        indices  integer or bool tensors for the first axes, which broadcast

        >>> Tensor([1, 1]).index_put((Tensor([0, 0]),), Tensor([2, 3]), accumulate=True).tolist()
        [6, 1]
        """
        parsed = self._parse(tuple(indices))
        if any(kept is None for kept in parsed.retained) or len(parsed.retained) != self.ndim:
            raise NotImplementedError("index_put takes tensors, one for each of the first axes")
        places, shape = self._flat_index(parsed.tensors)
        source = self._fitted(self._assigned(values), shape)
        flat = movement.reshape(self.uop, (self.numel(),))
        node = scatter(flat, places, source.uop, Ops.ADD if accumulate else None)
        return self._make(movement.reshape(node, self.shape), self, source)

    def put(self, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
        """A copy with values at indices of the flattened tensor: stored, or added where `accumulate`.

        >>> Tensor([[1, 2], [3, 4]]).put(Tensor([3, 0]), Tensor([8, 9])).tolist()
        [[9, 2], [3, 8]]
        """
        if index.numel() != source.numel():
            raise ValueError(
                f"put needs a value for each index, not {shape_text(source.shape)} for "
                f"{shape_text(index.shape)}"
            )
        flat, line = self.flatten(), index.reshape((index.numel(),))
        values = source.reshape((source.numel(),))
        made = flat.scatter_add(0, line, values) if accumulate else flat.scatter(0, line, values)
        return made.reshape(self.shape)

    def put_along_dim(self, indices: Tensor, values: Tensor | float, dim: int) -> Tensor:
        """A copy with values stored along an axis at indices that broadcast on the others (numpy's
        `put_along_axis`).

        >>> Tensor([[1, 2], [3, 4]]).put_along_dim(Tensor([[1], [0]]), 0, 1).tolist()
        [[1, 0], [0, 4]]
        """
        axis = self._axis(dim)
        whole = tuple(indices.shape[axis] if i == axis else s for i, s in enumerate(self.shape))
        source = (
            values
            if isinstance(values, Tensor)
            else self.full((), values, dtype=self.dtype, device=self.device)
        )
        return self.scatter(axis, indices.expand(whole), source.expand(whole))

    def masked_scatter(self, mask: Tensor, source: Tensor) -> Tensor:
        """A copy in which the elements where a mask is True are replaced by those of `source`, in order.

        Too few elements raise IndexError when a result is read; under `CHECK_INDEX=0` they leave
        zeros.

        >>> Tensor([1, 2, 3]).masked_scatter(Tensor([True, False, True]), Tensor([7, 8])).tolist()
        [7, 2, 8]
        """
        if not dtypes.is_bool(mask.dtype):
            raise TypeError(f"masked_scatter needs a bool mask, not {mask.dtype}")
        if source.dtype is not self.dtype:
            raise TypeError(
                f"masked_scatter needs values of {self.dtype}, not of {source.dtype}; cast them first"
            )
        shape = broadcast_shapes(self.shape, mask.shape)
        wide: Any = self._make(movement.broadcast_to(mask.uop, shape))
        turn = wide.flatten().cumsum(0) - 1
        line = source.reshape((source.numel(),))
        if line.shape[0]:  # else the mask holds nowhere, or the index says what is wrong
            good = is_below(turn.uop, line.shape[0]) | wide.flatten().logical_not().uop
            turn = turn._make(checked(turn.uop, good, turn.uop, line.shape[0]), turn)
        with trusted():
            values = line[turn].reshape(shape)
        return wide.where(values, self)  # type: ignore[no-any-return]

    # *** parts that a view names

    def _replaced(self, view: Callable[[Tensor], Tensor], src: Any, name: str) -> Tensor:
        """A copy with `src` where a view looks."""
        part = view(self._make(addresses_in(self.shape, self.device)))
        values = self._operand(src).cast(self.dtype)
        if values.shape != part.shape:
            raise ValueError(
                f"{name} replaces a part of shape {shape_text(part.shape)}, not {shape_text(values.shape)}"
            )
        flat = movement.reshape(self.uop, (self.numel(),))
        node = scatter(flat, part.uop, values.uop, None)
        return self._make(movement.reshape(node, self.shape), self, values)

    def select_scatter(self, src: Tensor, dim: int, index: int) -> Tensor:
        """A copy with one slice of an axis replaced.

        >>> Tensor([[1, 2], [3, 4]]).select_scatter(Tensor([8, 9]), 1, 0).tolist()
        [[8, 2], [9, 4]]
        """
        return self._replaced(lambda x: x.select(dim, index), src, "select_scatter")

    def slice_scatter(
        self, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
    ) -> Tensor:
        """A copy with the part `start:end:step` of an axis replaced.

        >>> Tensor([1, 2, 3]).slice_scatter(Tensor([8, 9]), 0, 1).tolist()
        [1, 8, 9]
        """
        axis = self._axis(dim)
        key = (slice(None),) * axis + (slice(start, end, step),)
        return self._replaced(lambda x: x[key], src, "slice_scatter")

    def diagonal_scatter(self, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
        """A copy with a diagonal replaced.

        >>> Tensor([[1, 2], [3, 4]]).diagonal_scatter(Tensor([8, 9])).tolist()
        [[8, 2], [3, 9]]
        """
        return self._replaced(lambda x: x.diagonal(offset, dim1, dim2), src, "diagonal_scatter")

    # *** in place

    def fill_(self, value: ConstType) -> Any:
        """Write one value into all of this tensor's memory; returns the tensor.

        >>> Tensor([1, 2]).fill_(3).tolist()
        [3, 3]
        """
        if is_tensor(value) and value.shape != ():  # type: ignore[union-attr]
            raise ValueError(f"fill_ takes a number, not a Tensor of shape {value.shape}")  # type: ignore[union-attr]
        if is_tensor(value):
            return self._overwrite(value)
        number = real_number(value)
        check_fits(number, self.dtype)
        return self._overwrite(self._filled(number))

    def zero_(self) -> Any:
        """Write zeros into this tensor's memory; returns the tensor.

        >>> Tensor([1, 2]).zero_().tolist()
        [0, 0]
        """
        return self.fill_(0)

    def copy_(self, src: Tensor) -> Any:
        """Write the values of another tensor, which broadcasts and is cast, into this one's memory.

        >>> Tensor([1, 2]).copy_(Tensor([3.5])).tolist()
        [3, 3]
        """
        moved: Any = src.to(self.device).cast(self.dtype)
        return self._overwrite(moved)
