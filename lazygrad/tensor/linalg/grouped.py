"""Products of rows that are sorted by groups: each with the matrix of its group, as in a mixture of experts.

On processors each is a routine (`direct/routines/grouped.py`), which reads where groups end from memory and
multiplies each row once. A grid has one thread for a routine: there, and for integers, all rows are
multiplied with all matrices, and each takes its own.
"""

from __future__ import annotations

from ...dtype import dtypes
from ...ir.ops import Ops
from ...schedule.plan import target_of
from ...shape import shape_text, vmax
from ...shape.movement import base_and_tracker
from ..face import Tensor
from ..transforms.function import Function
from .routines import routine


def grouped_product(x: Tensor, weight: Tensor, ends: Tensor) -> Tensor:
    """Each row by the matrix of its group; 0 for rows behind the last group.

    x       (rows, k), sorted by group
    weight  (groups, k, n), of x's dtype
    ends    (groups,) integers that do not decrease: of each group the first row behind it

    The result is (rows, n).
    """
    _check(
        "grouped_product", x.ndim == 2 and weight.ndim == 3 and x.shape[1:] == weight.shape[1:2], x, weight
    )
    _check("grouped_product", ends.shape == weight.shape[:1], weight, ends)
    if _is_routine(x, weight):
        made: Tensor = _Products.apply(x, weight, ends)
        return made
    of_all = x.unsqueeze(0).matmul(weight)
    own = _own(vmax(x.shape[0]), ends)
    return own.unsqueeze(-1).where(of_all, 0).sum(0, dtype=x.dtype)


def grouped_outer(x: Tensor, y: Tensor, ends: Tensor) -> Tensor:
    """For each group the sum of its rows' outer products: xᵀ·y of its rows; 0 of none.

    x  (rows, a)     y  (rows, b), of x's dtype     ends  (groups,), as in `grouped_product`

    The result is (groups, a, b).
    """
    _check("grouped_outer", x.ndim == 2 and y.ndim == 2 and x.shape[:1] == y.shape[:1], x, y)
    if _is_routine(x, y):
        made: Tensor = _Outer.apply(x, y, ends)
        return made
    own = _own(vmax(x.shape[0]), ends).unsqueeze(-1)
    return own.where(x, 0).transpose(-2, -1).matmul(own.where(y, 0))


def _check(name: str, fits: bool, x: Tensor, y: Tensor) -> None:
    if not fits:
        raise ValueError(f"{name} does not take shapes {shape_text(x.shape)} and {shape_text(y.shape)}")


def _is_routine(x: Tensor, y: Tensor) -> bool:
    if not dtypes.is_float(x.dtype) or x.dtype is not y.dtype or 0 in (*x.shape, *y.shape):
        return False
    if not isinstance(x.device, str) or x.device != y.device:
        return False
    known = all(isinstance(size, int) for size in (*x.shape, *y.shape))
    return known and not target_of(x.device).grid


def _own(rows: int, ends: Tensor) -> Tensor:
    """(groups, rows): whether a row is one of the group."""
    row = ends.arange(rows, dtype=dtypes.int64, device=ends.device)
    before = row < ends.cast(dtypes.int64).cummax(0).unsqueeze(-1)
    return before ^ before._window(0, 0, before.shape[0] - 1).pad(((1, 0), (0, 0)))


class _Products(Function):
    def forward(self, x: Tensor, weight: Tensor, ends: Tensor) -> Tensor:
        self.save_for_backward(x, weight, ends)
        rows, k, n = vmax(x.shape[0]), vmax(x.shape[1]), vmax(weight.shape[2])
        sizes = (rows, vmax(ends.shape[0]), k, n)
        turned = _lies_turned(weight)
        lines = weight.transpose(-2, -1) if turned else weight
        name = "grouped_dots" if turned else "grouped_mixes"
        made = routine(name, sizes, x._wide(), lines._wide(), _offsets(ends), core=(2, 3, 1))
        return made.reshape((rows, n)).cast(x.dtype)

    def backward(self, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        x, weight, ends = self.saved_tensors
        of_x = grouped_product(grad, weight.transpose(-2, -1), ends)
        return of_x, outer_like(weight, x, grad, ends), None


class _Outer(Function):
    def forward(self, x: Tensor, y: Tensor, ends: Tensor) -> Tensor:
        self.save_for_backward(x, y, ends)
        groups, a, b = vmax(ends.shape[0]), vmax(x.shape[1]), vmax(y.shape[1])
        sizes = (vmax(x.shape[0]), groups, a, b)
        made = routine("grouped_outer", sizes, x._wide(), y._wide(), _offsets(ends), core=(2, 2, 1))
        return made.reshape((groups, a, b)).cast(x.dtype)

    def backward(self, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        x, y, ends = self.saved_tensors
        return grouped_product(y, grad.transpose(-2, -1), ends), grouped_product(x, grad, ends), None


def outer_like(weight: Tensor, x: Tensor, y: Tensor, ends: Tensor) -> Tensor:
    """`grouped_outer(x, y, ends)`, lying in memory as `weight` does."""
    if _lies_turned(weight):
        return grouped_outer(y, x, ends).transpose(-2, -1)
    return grouped_outer(x, y, ends)


def _offsets(ends: Tensor) -> Tensor:
    return ends.cast(dtypes.int32)


def _lies_turned(weight: Tensor) -> bool:
    """Whether the last axis but one is the innermost in memory."""
    base, tracker = base_and_tracker(weight.uop)
    if len(tracker.views) != 1 or base.op is Ops.CONST:
        return False
    strides = tracker.views[0].strides
    return bool(strides[-2] == 1 and strides[-1] != 1)
