"""Creation: tensors filled by a rule. None of them takes memory until something stores it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..device import Device, Devices
from ..dtype import ConstType, DType, default_float, default_int, dtypes, to_dtype, wide_float
from ..ir.index import sint
from ..ir.ops import Ops
from ..ir.uop import UOp
from ..schedule.extensions import sharding
from ..schedule.graph.versions import empty_buffer
from ..shape import movement, shape_text, vmax, vmin
from ..shape.movement import expanded
from ..shape.sizes import as_size, countable, prod
from .face import Tensor
from .signatures import DTypeLike
from .sources import constant, real_number


def sizes_of(args: Sequence[Any]) -> tuple[Any, ...]:
    """The sizes of a call like `reshape(2, 3)` or `reshape((2, 3))`."""
    if len(args) == 1 and isinstance(args[0], (tuple, list)):
        return tuple(args[0])
    return tuple(args)


def checked_shape(sizes: Any) -> tuple[sint, ...]:
    """Sizes that a user gave; negative ones raise."""
    shape = tuple(as_size(size) for size in sizes)
    if any(vmin(size) < 0 for size in shape):
        raise ValueError(f"sizes must not be negative, as in {shape_text(shape)}")
    return countable(shape)


def iota(count: sint, dtype: DType, device: Devices) -> UOp:
    """The node 0, 1, 2, ..., count - 1."""
    return UOp(Ops.IOTA, dtype, (UOp(Ops.DEVICE, arg=device),), count)


def counting_dtype(count: sint) -> DType:
    """The dtype in which so many elements are counted."""
    return dtypes.int32 if vmax(count) <= dtypes.max(dtypes.int32) else dtypes.int64


def index_dtype(count: sint) -> DType:
    """The dtype of places among so many elements, as a result: the default int, or what is wide enough."""
    return default_int() if vmax(count) <= dtypes.max(default_int()) else counting_dtype(count)


def with_grad(made: Tensor, requires_grad: bool | None) -> Tensor:
    """A tensor that was made, after what its maker said of gradients; None says nothing."""
    return made if requires_grad is None else made.requires_grad_(requires_grad)


class Creation(Tensor):
    """Ways to make a tensor. All take `dtype`, `device` and `requires_grad`."""

    @classmethod
    def _created(cls, node: UOp, requires_grad: bool | None) -> Tensor:
        return with_grad(cls._make(node), requires_grad)

    @classmethod
    def full(
        cls,
        shape: Any,
        fill_value: ConstType,
        *,
        dtype: DTypeLike = None,
        device: Devices | None = None,
        requires_grad: bool | None = None,
    ) -> Tensor:
        """A tensor of one value; its dtype is that of the number if not given.

        >>> Tensor.full((2,), 7).tolist()
        [7, 7]
        """
        if isinstance(fill_value, Tensor):
            raise TypeError(f"a tensor can be filled with a number only, not {fill_value!r}")
        fill_value = real_number(fill_value)
        chosen = dtypes.from_py(fill_value) if dtype is None else to_dtype(dtype)
        sizes = checked_shape(shape if isinstance(shape, (tuple, list)) else (shape,))
        scalar = constant(fill_value, chosen, Device.present(device))
        return cls._created(expanded(scalar, sizes), requires_grad)

    @classmethod
    def zeros(cls, *shape: Any, dtype: DTypeLike = None, **more: Any) -> Tensor:
        """Zeros: `Tensor.zeros(2, 3)`.

        >>> Tensor.zeros(2).tolist()
        [0.0, 0.0]
        """
        return cls.full(sizes_of(shape), 0.0, dtype=default_float() if dtype is None else dtype, **more)

    @classmethod
    def ones(cls, *shape: Any, dtype: DTypeLike = None, **more: Any) -> Tensor:
        """Ones: `Tensor.ones(2, 3)`.

        >>> Tensor.ones(2).tolist()
        [1.0, 1.0]
        """
        return cls.full(sizes_of(shape), 1.0, dtype=default_float() if dtype is None else dtype, **more)

    @classmethod
    def empty(
        cls,
        *shape: Any,
        dtype: DTypeLike = None,
        device: Devices | None = None,
        requires_grad: bool | None = None,
    ) -> Tensor:
        """A new tensor with memory of its own, which holds zeros until it is written.

        >>> Tensor.empty(2).shape
        (2,)
        """
        sizes = checked_shape(sizes_of(shape))
        count = 1
        for size in sizes:
            count *= vmax(size)
        node = empty_buffer(
            Device.present(device), count, default_float() if dtype is None else to_dtype(dtype)
        )
        whole = prod(sizes)
        if not isinstance(whole, int):  # memory is for the greatest size
            node = movement.shrink(node, ((0, whole),))
        return cls._created(movement.reshape(node, sizes), requires_grad)

    def _like(self, dtype: DTypeLike, device: Devices | None) -> dict[str, Any]:
        return {"dtype": self.dtype if dtype is None else dtype, "device": device or self.device}

    def full_like(
        self, fill_value: ConstType, *, dtype: DTypeLike = None, device: Devices | None = None, **more: Any
    ) -> Tensor:
        """One value, with the shape, dtype and device of this tensor.

        >>> Tensor([1, 2]).full_like(7).tolist()
        [7, 7]
        """
        return self.full(self.shape, fill_value, **self._like(dtype, device), **more)

    def zeros_like(self, *, dtype: DTypeLike = None, device: Devices | None = None, **more: Any) -> Tensor:
        """Zeros, with the shape, dtype and device of this tensor.

        >>> Tensor([5, 6]).zeros_like().tolist()
        [0, 0]
        """
        return self.full(self.shape, 0, **self._like(dtype, device), **more)

    def ones_like(self, *, dtype: DTypeLike = None, device: Devices | None = None, **more: Any) -> Tensor:
        """Ones, with the shape, dtype and device of this tensor.

        >>> Tensor([5, 6]).ones_like().tolist()
        [1, 1]
        """
        return self.full(self.shape, 1, **self._like(dtype, device), **more)

    def empty_like(self, *, dtype: DTypeLike = None, device: Devices | None = None, **more: Any) -> Tensor:
        """New memory with the shape, dtype and device of this tensor; it reads as zeros.

        >>> Tensor([1, 2]).empty_like().shape
        (2,)
        """
        if device is None and isinstance(self.device, tuple):
            kind = self.dtype if dtype is None else to_dtype(dtype)
            made = sharding().empty_memory(sharding().value_of(self.uop), kind)
            return self._created(made, more.get("requires_grad"))
        return self.empty(*self.shape, **self._like(dtype, device), **more)

    @classmethod
    def arange(
        cls,
        start: Any,
        stop: Any = None,
        step: ConstType = 1,
        *,
        end: Any = None,
        dtype: DTypeLike = None,
        device: Devices | None = None,
        requires_grad: bool | None = None,
    ) -> Tensor:
        """start, start + step, ... up to stop, which is not included; `arange(n)` counts from 0.

        `end` is PyTorch's name of `stop`.

        Integers give the default int (int64 where they do not fit), floats the default float.

        >>> Tensor.arange(2, 8, 2).tolist()
        [2, 4, 6]
        """
        if end is not None:
            if stop is not None:
                raise TypeError("arange: give stop or end, which are the same, not both")
            stop = end
        if stop is None:
            start, stop = 0, start
        if any(isinstance(x, UOp) for x in (start, stop, step)):
            return cls._symbolic_arange(start, stop, step, dtype, Device.present(device), requires_grad)
        for value in (start, stop, step):
            if not isinstance(value, (int, float)):
                raise TypeError(f"arange takes numbers, not {value!r}")
            if not math.isfinite(value):
                raise ValueError(f"arange takes finite numbers, not {start!r}, {stop!r} and {step!r}")
        if step == 0:
            raise ValueError("arange needs a step other than 0")
        span = stop - start
        exact = isinstance(span, int) and isinstance(step, int)
        count = max(0, -(-span // step) if exact else math.ceil(span / step))
        checked_shape((count,))
        if dtype is not None:
            chosen = to_dtype(dtype)
        elif any(isinstance(x, float) for x in (start, stop, step)):
            chosen = default_float()
        else:
            last = start + step * max(count - 1, 0)
            chosen = (
                default_int()
                if all(dtypes.min(default_int()) <= v <= dtypes.max(default_int()) for v in (start, last))
                else dtypes.int64
            )
        place = Device.present(device)
        if count == 0:
            return cls._created(expanded(constant(0, chosen, place), (0,)), requires_grad)
        return cls._created(_progression(count, start, step, chosen, place), requires_grad)

    @classmethod
    def _symbolic_arange(
        cls, start: Any, stop: Any, step: Any, dtype: DTypeLike, device: Devices, requires_grad: bool | None
    ) -> Tensor:
        if step != 1:
            raise NotImplementedError("arange with symbolic ends takes steps of 1")
        begin, end = as_size(start), as_size(stop)
        chosen = index_dtype(end) if dtype is None else to_dtype(dtype)
        count = end if begin == 0 else as_size(end - begin)
        counting = chosen if dtypes.is_int(chosen) else index_dtype(count)
        counted = cls._created(iota(count, counting, device), None)
        shifted = counted if begin == 0 else counted + begin
        return with_grad(shifted.cast(chosen), requires_grad)

    @classmethod
    def linspace(
        cls,
        start: float,
        stop: float,
        steps: int,
        *,
        dtype: DTypeLike = None,
        device: Devices | None = None,
        requires_grad: bool | None = None,
    ) -> Tensor:
        """`steps` numbers from start to stop, both included, equally far apart.

        >>> Tensor.linspace(0, 1, 3).tolist()
        [0.0, 0.5, 1.0]
        """
        if not isinstance(steps, int) or steps < 0:
            raise ValueError(f"linspace needs a number of steps of at least 0, not {steps!r}")
        chosen = default_float() if dtype is None else to_dtype(dtype)
        if dtypes.is_bool(chosen):
            raise ValueError("linspace makes numbers, not bools: give a numeric dtype")
        work = wide_float(chosen)
        place = Device.present(device)
        if steps < 2:
            return cls.full((steps,), start, dtype=chosen, device=place, requires_grad=requires_grad)
        step = (stop - start) / (steps - 1)
        count = cls._make(iota(steps, counting_dtype(steps), place))
        # counted from the nearer end, so that both ends are exact
        from_start = count.cast(work) * step + start
        from_stop = stop - (steps - 1 - count).cast(work) * step
        return with_grad((count < steps / 2).where(from_start, from_stop).cast(chosen), requires_grad)

    @classmethod
    def logspace(
        cls,
        start: float,
        stop: float,
        steps: int,
        base: float = 10.0,
        *,
        dtype: DTypeLike = None,
        device: Devices | None = None,
        requires_grad: bool | None = None,
    ) -> Tensor:
        """`steps` numbers from base^start to base^stop, with equal ratios.

        >>> Tensor.logspace(0, 2, 3, base=2.0).tolist()
        [1.0, 2.0, 4.0]
        """
        if not base > 0:
            raise ValueError(f"logspace needs a positive base, not {base}")
        chosen = default_float() if dtype is None else to_dtype(dtype)
        exponents = cls.linspace(start, stop, steps, dtype=wide_float(chosen), device=device)
        made = (exponents.exp2() if base == 2 else exponents._filled(base).pow(exponents)).cast(chosen)
        return with_grad(made, requires_grad)

    @classmethod
    def eye(
        cls,
        n: int,
        m: int | None = None,
        *,
        dtype: DTypeLike = None,
        device: Devices | None = None,
        requires_grad: bool | None = None,
    ) -> Tensor:
        """Ones on the diagonal of an n×m (n×n) matrix.

        >>> Tensor.eye(2).tolist()
        [[1.0, 0.0], [0.0, 1.0]]
        """
        rows, columns = checked_shape((n, n if m is None else m))
        place = Device.present(device)
        counting = counting_dtype(max(vmax(rows), vmax(columns)))
        row = cls._make(iota(rows, counting, place)).unsqueeze(1)
        column = cls._make(iota(columns, counting, place))
        return with_grad((row == column).cast(default_float() if dtype is None else dtype), requires_grad)

    def _at_or_below(self, diagonal: int) -> Tensor:
        """Whether a place of the last two axes is on or below a diagonal.

        A comparison of counters, no memory.
        """
        if self.ndim < 2:
            raise ValueError(f"tril and triu need at least two axes, not shape {shape_text(self.shape)}")
        rows, columns = self.shape[-2:]
        if isinstance(diagonal, int):  # one far outside is like the nearest outside
            diagonal = max(min(diagonal, vmax(columns)), -vmax(rows))
        counting = counting_dtype(vmax(rows) + vmax(columns))  # a diagonal is added
        row = self._make(iota(rows, counting, self.device)).unsqueeze(1)
        column = self._make(iota(columns, counting, self.device))
        return column <= row + diagonal if diagonal else column <= row

    def tril(self, diagonal: int = 0) -> Tensor:
        """Zeros above a diagonal of the last two axes (0 is the main one).

        >>> Tensor([[1, 2], [3, 4]]).tril().tolist()
        [[1, 0], [3, 4]]
        """
        return self._at_or_below(diagonal).where(self, self._filled(0))

    def triu(self, diagonal: int = 0) -> Tensor:
        """Zeros below a diagonal of the last two axes (0 is the main one).

        >>> Tensor([[1, 2], [3, 4]]).triu().tolist()
        [[1, 2], [0, 4]]
        """
        return self._at_or_below(diagonal - 1).where(self._filled(0), self)

    def diag(self, diagonal: int = 0) -> Tensor:
        """A matrix with this 1-d tensor as its diagonal; of a matrix, its diagonal.

        >>> Tensor([1, 2]).diag().tolist()
        [[1, 0], [0, 2]]
        """
        if self.ndim == 2:
            return self.diagonal(diagonal)
        if self.ndim != 1:
            raise ValueError(f"diag takes one or two axes, not shape {shape_text(self.shape)}")
        return self.diag_embed(diagonal)


def _progression(count: int, start: ConstType, step: ConstType, dtype: DType, device: Devices) -> UOp:
    """start + i·step: counted exactly in integers, scaled in the dtype (at least float32 for floats)."""
    if dtypes.is_float(dtype):
        work = wide_float(dtype)
    elif isinstance(start, float) or isinstance(step, float):
        work = dtypes.float64
    else:
        work = dtype if dtype.itemsize >= 4 else dtypes.int32
    node = iota(count, work if dtypes.is_int(work) else counting_dtype(count), device).cast(work)
    shape = (count,)
    if step != 1:
        node = node * expanded(UOp.const(work, step), shape)
    if start != 0:
        node = node + expanded(UOp.const(work, start), shape)
    return node.cast(dtype)
