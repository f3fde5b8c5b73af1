"""Reading and writing along an axis by a tensor of indices: gather, scatter, and what selects by them.

Indices are treated as `x[...]` treats index tensors: a negative one counts from the end, one that is out of
range raises IndexError when a result is read, and of repeated indices the last one is kept.
"""

from __future__ import annotations

from typing import Any, Literal, overload

from ...dtype import dtypes
from ...gradient import filled, gather, scatter
from ...ir.index import sint
from ...ir.ops import Ops
from ...ir.uop import UOp
from ...shape import broadcast_shapes, broadcast_to, movement, shape_text, vmax
from ...shape.sizes import sub
from ..creation import counting_dtype, index_dtype, iota
from ..face import Tensor
from .addresses import number, strides_of, wrapped


class Gathering(Tensor):
    """Methods that read and write along an axis by indices."""

    def _index_along(self, dim: int, index: Any, shape: tuple[sint, ...], method: str) -> UOp:
        """Flat places of x[..., index, ...] along an axis, for an index with as many axes as the tensor."""
        axis = self._axis(dim)
        if index.ndim != self.ndim:
            raise ValueError(
                f"{method} needs an index with {self.ndim} axes, as the tensor has, "
                f"not shape {shape_text(index.shape)}"
            )
        if not dtypes.is_int(index.dtype):
            raise TypeError(f"{method} needs an index of integers, not of {index.dtype}")
        for i, (a, b) in enumerate(zip(index.shape, self.shape, strict=True)):
            if i != axis and vmax(sub(a, b)) > 0:
                raise ValueError(
                    f"{method} along axis {axis}: the index of shape {shape_text(index.shape)} "
                    f"is larger on axis {i} than the tensor of shape {shape_text(self.shape)}"
                )
        counting = counting_dtype(self.numel())
        strides = strides_of(self.shape)
        position, inside = wrapped(index.uop, self.shape[axis], counting)
        total = position * number(strides[axis], shape, counting)
        for i, size in enumerate(shape):
            if i != axis:
                line = iota(size, counting, self.device) * number(strides[i], (size,), counting)
                unit = tuple(size if j == i else 1 for j in range(len(shape)))
                total = total + broadcast_to(movement.reshape(line, unit), shape)
        return total if inside is None else inside.where(total, filled(shape, counting, -1))

    def gather(self, dim: int, index: Tensor) -> Tensor:
        """Elements picked along an axis: result[i][j] = self[index[i][j]][j] for axis 0.

        An index out of range raises IndexError when a result is read; under `CHECK_INDEX=0` it gives 0.

        index  integers, with as many axes as the tensor, on the others no larger; the result has its shape

        >>> Tensor([[1, 2], [3, 4]]).gather(1, Tensor([[1], [0]])).tolist()
        [[2], [3]]
        """
        if self.ndim < 2 and index.ndim == 0:
            return self.reshape(-1).gather(dim, index.reshape((1,))).reshape(())
        if self.ndim == 0 and index.ndim == 1:
            return self.reshape(1).gather(dim, index)
        node = self._index_along(dim, index, index.shape, "gather")
        flat = movement.reshape(self.uop, (self.numel(),))
        return self._make(gather(flat, node), self)

    def take_along_dim(self, indices: Tensor, dim: int | None = None) -> Tensor:
        """`gather` with an index that broadcasts on the other axes; of the flattened tensor without `dim`.

        >>> Tensor([[1, 2], [3, 4]]).take_along_dim(Tensor([[1], [0]]), 1).tolist()
        [[2], [3]]
        """
        index: Any = indices
        if dim is None:
            return self.flatten().gather(0, index.flatten())
        axis = self._axis(dim)
        whole = broadcast_shapes(
            tuple(1 if i == axis else s for i, s in enumerate(self.shape)),
            tuple(1 if i == axis else s for i, s in enumerate(index.shape)),
        )
        source = self.expand(tuple(self.shape[axis] if i == axis else s for i, s in enumerate(whole)))
        return source.gather(
            axis, index.expand(tuple(index.shape[axis] if i == axis else s for i, s in enumerate(whole)))
        )

    def scatter(self, dim: int, index: Tensor, src: Tensor | float, reduce: str | None = None) -> Tensor:
        """A copy with values stored along an axis: result[index[i][j]][j] = src[i][j] for axis 0.

        reduce  None (of equal indices the last one is kept), "add" or "multiply"

        >>> Tensor([0, 0]).scatter(0, Tensor([1]), Tensor([5])).tolist()
        [0, 5]
        """
        if reduce not in (None, "add", "multiply"):
            raise ValueError(f"scatter's reduce must be None, 'add' or 'multiply', not {reduce!r}")
        op = {None: None, "add": Ops.ADD, "multiply": Ops.MUL}[reduce]
        return self._scattered(dim, index, src, op, "scatter")

    def scatter_add(self, dim: int, index: Tensor, src: Tensor | float) -> Tensor:
        """A copy with values added along an axis; indices may repeat.

        >>> Tensor([0, 1]).scatter_add(0, Tensor([1, 1]), Tensor([5, 6])).tolist()
        [0, 12]
        """
        return self._scattered(dim, index, src, Ops.ADD, "scatter_add")

    def _scattered(self, dim: int, index: Any, src: Any, op: Ops | None, method: str) -> Tensor:
        if not isinstance(src, Tensor):
            src = self._make(filled(index.shape, self.dtype, src))
        if self.ndim < 2 and index.ndim == 0 and src.ndim == 0:
            line = self.reshape(-1)._scattered(dim, index.reshape(1), src.reshape(1), op, method)
            return line.reshape(self.shape)
        if src.dtype is not self.dtype:
            raise TypeError(f"{method} needs values of {self.dtype}, not of {src.dtype}; cast them first")
        fits = src.ndim == index.ndim and all(
            vmax(sub(a, b)) <= 0 for a, b in zip(index.shape, src.shape, strict=True)
        )
        if not fits:
            raise ValueError(
                f"{method} needs an index that is no larger than the values, not {shape_text(index.shape)} "
                f"for values of shape {shape_text(src.shape)}"
            )
        places = self._index_along(dim, index, index.shape, method)
        values = src.shrink(tuple((0, size) for size in index.shape))
        flat = movement.reshape(self.uop, (self.numel(),))
        node = scatter(flat, places, values.uop, op)
        return self._make(movement.reshape(node, self.shape), self, values)

    def scatter_reduce(
        self, dim: int, index: Tensor, src: Tensor | float, reduce: str, *, include_self: bool = True
    ) -> Tensor:
        """A copy with values combined along an axis: reduce is sum, prod, mean, amax or amin.

        include_self  whether the element that was there takes part

        >>> Tensor([4, 1]).scatter_reduce(0, Tensor([0, 1]), Tensor([3, 3]), "amax").tolist()
        [4, 3]
        """
        ops = {"sum": Ops.ADD, "mean": Ops.ADD, "prod": Ops.MUL, "amax": Ops.MAX, "amin": Ops.MIN}
        if reduce not in ops:
            raise ValueError(f"scatter_reduce's reduce must be one of {', '.join(ops)}, not {reduce!r}")
        op = ops[reduce]
        base: Any = self
        if not include_self:
            identity = {
                Ops.ADD: 0,
                Ops.MUL: 1,
                Ops.MAX: dtypes.min(self.dtype),
                Ops.MIN: dtypes.max(self.dtype),
            }[op]
            base = self._scattered(dim, index, identity, None, "scatter_reduce")
        result: Tensor = base._scattered(dim, index, src, op, "scatter_reduce")
        if reduce == "mean":
            counting = counting_dtype(index.numel() + 1)
            counts = self._filled(1 if include_self else 0, counting)
            counts = counts.scatter_add(dim, index, counts._make(filled(index.shape, counting, 1)))
            counts = counts.maximum(1)
            result = result / counts if dtypes.is_float(self.dtype) else (result // counts).cast(self.dtype)
        return result

    def index_select(self, dim: int, index: Tensor) -> Tensor:
        """The slices of an axis at the indices in a 1-d tensor.

        >>> Tensor([[1, 2], [3, 4]]).index_select(1, Tensor([1])).tolist()
        [[2], [4]]
        """
        if index.ndim > 1:
            raise ValueError(
                f"index_select needs a 1-d tensor of integers, not shape {shape_text(index.shape)}"
            )
        line: Any = index
        if self.ndim == 0:
            return self.reshape(1).index_select(dim, index).reshape(())
        return self[(slice(None),) * self._axis(dim) + (line.reshape((line.numel(),)),)]

    def select(self, dim: int, index: int) -> Tensor:
        """One slice of an axis, without it.

        >>> Tensor([[1, 2], [3, 4]]).select(1, 0).tolist()
        [1, 3]
        """
        return self[(slice(None),) * self._axis(dim) + (index,)]

    def take(self, index: Any) -> Tensor:
        """Elements of the flattened tensor; the result has the shape of the index.

        >>> Tensor([[1, 2], [3, 4]]).take(Tensor([3, 0])).tolist()
        [4, 1]
        """
        return self.flatten()[index]

    def nonzero_static(self, *, size: int, fill_value: int = -1) -> Tensor:
        """The first `size` rows of `nonzero`, then rows of `fill_value`: of known shape.

        So it is lazy, and a jit captures it.

        >>> Tensor([[0, 5], [7, 0]]).nonzero_static(size=3).tolist()
        [[0, 1], [1, 0], [-1, -1]]
        """
        if isinstance(size, bool) or not isinstance(size, int) or size < 0:
            raise ValueError(f"nonzero_static needs a size of at least 0, not {size!r}")
        if not self.ndim:
            return self.full((size, 0), fill_value, dtype=dtypes.int64, device=self.device)
        total = self._static_numel()
        found: Any = self._bool().flatten()
        rank = found.cast(dtypes.int64).cumsum(0) - 1
        row = (found & (rank < size)).where(rank, size)  # what is not asked for shares a row, the last
        place = self.arange(total, dtype=dtypes.int64, device=self.device)
        empty = self.full((size + 1,), -1, dtype=dtypes.int64, device=self.device)
        rest = empty.scatter(0, row, place)[:size]
        there, columns = (rest >= 0).logical_and(self.arange(size, device=self.device) <= rank[-1:]), []
        for length in reversed(self.shape):
            columns.append(rest % length)
            rest = rest // length
        made = columns[-1].stack(*columns[-2::-1], dim=1) if len(columns) > 1 else columns[0].unsqueeze(1)
        result: Tensor = there.unsqueeze(1).where(made, fill_value)
        return result

    @overload
    def nonzero(self, *, as_tuple: Literal[False] = False) -> Tensor: ...

    @overload
    def nonzero(self, *, as_tuple: Literal[True]) -> tuple[Tensor, ...]: ...

    def nonzero(self, *, as_tuple: bool = False) -> Any:
        """The indices of the nonzero elements, one row for each.

        It is computed at once, since the shape depends on the values.

        as_tuple  a 1-d tensor of indices for each axis instead: what `x[...]` takes

        >>> Tensor([0, 7, 8]).nonzero().tolist()
        [[1], [2]]
        """
        import numpy as np

        if as_tuple:
            line = self.reshape(1) if self.ndim == 0 else self
            found = zip(line._mask_positions(line), line.shape, strict=True)
            return tuple(place.cast(index_dtype(size)) for place, size in found)

        rows = np.stack(np.nonzero(self.numpy()), axis=1) if self.ndim else np.zeros((int(bool(self)), 0))
        made: Any = type(self)(rows.astype(np.int64), device=self.device)
        return made.cast(index_dtype(max(map(vmax, self.shape), default=0)))
