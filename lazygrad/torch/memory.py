"""PyTorch's tensors as memory: how they lie, and lazygrad tensors on the same bytes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from ..tensor import Tensor


class Lying(NamedTuple):
    """How a tensor lies in memory without holes: `order` are its axes from the outermost to the innermost."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    order: tuple[int, ...]

    @property
    def is_contiguous(self) -> bool:
        return self.order == tuple(range(len(self.shape)))


def lying(shape: Sequence[int], stride: Sequence[int]) -> Lying | None:
    """How a tensor of this shape and these strides lies; None where elements share memory, or leave holes."""
    order = sorted(
        range(len(shape)), key=lambda d: (-(stride[d] if shape[d] > 1 else _before(shape, stride, d)), d)
    )
    if math.prod(shape) == 0:
        return Lying(tuple(shape), tuple(stride), tuple(range(len(shape))))
    expected = 1
    for d in reversed(order):
        if shape[d] > 1:
            if stride[d] != expected:
                return None
            expected *= shape[d]
    return Lying(tuple(shape), tuple(stride), tuple(order))


def _before(shape: Sequence[int], stride: Sequence[int], d: int) -> int:
    """An axis of one element lies where its neighbour does."""
    for other in range(d - 1, -1, -1):
        if shape[other] > 1:
            return stride[other]
    return max((s for s, n in zip(stride, shape, strict=True) if n > 1), default=1)


def without_holes(x: torch.Tensor) -> torch.Tensor:
    """The tensor, or a contiguous copy where its elements share memory or leave holes."""
    if x.layout is not torch.strided:
        raise NotImplementedError(f"lazygrad has no tensors of layout {x.layout}; use x.to_dense()")
    if x.is_contiguous() and not x.is_conj() and not x.is_neg():
        return x
    x = x.resolve_conj().resolve_neg()
    return x if lying(x.shape, x.stride()) is not None else x.contiguous()


def flat(x: torch.Tensor) -> torch.Tensor:
    """The memory of a tensor without holes, in its order."""
    return x.detach().as_strided((x.numel(),), (1,), x.storage_offset())


def on_memory(x: torch.Tensor) -> Tensor:
    """A lazygrad tensor of one axis on the memory of a tensor without holes."""
    return Tensor.from_torch(flat(x))


def viewed(memory: Tensor, how: Lying) -> Tensor:
    """What lies so in memory, as the tensor that it is."""
    if how.is_contiguous:
        return memory.reshape(how.shape)
    moved = memory.reshape(tuple(how.shape[d] for d in how.order))
    return moved.permute(tuple(how.order.index(d) for d in range(len(how.order))))


def laid(value: Tensor, how: Lying) -> Tensor:
    """A value with the axes in the order of the memory of a tensor that lies so. They stay axes, by which a
    kernel that writes them is optimized.
    """
    return value if how.is_contiguous else value.permute(how.order)


def in_order(shape: Sequence[int], order: Sequence[int]) -> Lying:
    """How a tensor lies whose axes are in this order, from the outermost to the innermost."""
    stride, step = [0] * len(shape), 1
    for d in reversed(order):
        stride[d] = step
        step *= max(shape[d], 1)
    return Lying(tuple(shape), tuple(stride), tuple(order))


def lying_now(said: torch.Tensor) -> tuple[int, ...]:
    """The axes of a tensor with symbolic sizes, from the outermost in memory to the innermost, as for the
    sizes that it was traced with.
    """
    shape, stride = [int(_hint(size)) for size in said.shape], [int(_hint(size)) for size in said.stride()]
    way = lying(shape, stride)
    return tuple(range(len(shape))) if way is None else way.order


def _hint(size: Any) -> Any:
    return size.node.hint if isinstance(size, torch.SymInt) else size
