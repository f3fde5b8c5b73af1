"""Movements: the same numbers in another shape, and parts of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...dtype import dtypes
from ...tensor import Tensor
from ..table import aten


@aten("view", "reshape", "_unsafe_view", "_reshape_alias", "view_copy")
def view(x: Tensor, size: Any, *_: Any) -> Tensor:
    if not isinstance(size, (list, tuple)):
        raise NotImplementedError(f"looking at the bytes of a tensor as {size}")
    return x.reshape(tuple(size))


@aten("permute", "permute_copy")
def permute(x: Tensor, dims: Sequence[int]) -> Tensor:
    return x.permute(tuple(dims))


@aten("transpose")
def transpose(x: Tensor, one: int, other: int) -> Tensor:
    return x.transpose(one, other)


@aten("t")
def t(x: Tensor) -> Tensor:
    return x if x.ndim < 2 else x.transpose(0, 1)


@aten("expand", "expand_copy")
def expand(x: Tensor, size: Sequence[int], *, implicit: bool = False) -> Tensor:
    return x.expand(tuple(size))


@aten("squeeze")
def squeeze(x: Tensor, dims: Any = None) -> Tensor:
    """Of the axes that are named, those of one element go."""
    if dims is None:
        dims = range(x.ndim)
    named = [d % max(x.ndim, 1) for d in ([dims] if isinstance(dims, int) else dims)]
    return x.reshape(tuple(s for d, s in enumerate(x.shape) if d not in named or s != 1))


@aten("unsqueeze")
def unsqueeze(x: Tensor, dim: int) -> Tensor:
    return x.unsqueeze(dim)


@aten("flip")
def flip(x: Tensor, dims: Sequence[int]) -> Tensor:
    return x.flip(tuple(dims)) if len(dims) else x


@aten("roll")
def roll(x: Tensor, shifts: Sequence[int], dims: Sequence[int] = ()) -> Tensor:
    return x.roll(tuple(shifts), tuple(dims) or None)


@aten("repeat")
def repeat(x: Tensor, repeats: Sequence[int]) -> Tensor:
    return x.repeat(*repeats) if len(repeats) else x


@aten("slice")
def part(x: Tensor, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Tensor:
    if x.ndim == 0:
        return x
    index: list[Any] = [slice(None)] * x.ndim
    index[dim] = slice(start, _end(end), step)
    return x[tuple(index)]


def _end(end: Any) -> Any:
    """PyTorch says the greatest number for the end of an axis."""
    return None if isinstance(end, int) and end >= 1 << 62 else end


@aten("select.int")
def select(x: Tensor, dim: int, index: int) -> Tensor:
    subscript: list[Any] = [slice(None)] * x.ndim
    subscript[dim] = index
    return x[tuple(subscript)]


@aten("narrow", "narrow_copy")
def narrow(x: Tensor, dim: int, start: int, length: int) -> Tensor:
    return part(x, dim, start, start + length)


@aten("slice_scatter")
def slice_scatter(
    x: Tensor, source: Tensor, dim: int = 0, start: Any = None, end: Any = None, step: int = 1
) -> Tensor:
    return x.slice_scatter(source, dim, start, _end(end), step)


@aten("select_scatter")
def select_scatter(x: Tensor, source: Tensor, dim: int, index: int) -> Tensor:
    return x.select_scatter(source, dim, index)


@aten("diagonal")
def diagonal(x: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    return x.diagonal(offset, dim1, dim2)


@aten("diagonal_scatter")
def diagonal_scatter(x: Tensor, source: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    return x.diagonal_scatter(source, offset, dim1, dim2)


@aten("as_strided", "as_strided_copy")
def as_strided(x: Tensor, size: Sequence[int], stride: Sequence[int], offset: int | None = None) -> Tensor:
    """Of a tensor that is contiguous in PyTorch: graph.py refuses others."""
    return x.as_strided(tuple(size), tuple(stride), offset or 0)


@aten("as_strided_scatter")
def as_strided_scatter(
    x: Tensor, source: Tensor, size: Sequence[int], stride: Sequence[int], offset: int | None = None
) -> Tensor:
    """With what `as_strided` sees of a tensor that is contiguous in PyTorch replaced."""
    places = Tensor.full(tuple(size), offset or 0, dtype=dtypes.int64)
    for axis, (count, step) in enumerate(zip(size, stride, strict=True)):
        shape = [count if d == axis else 1 for d in range(len(size))]
        places = places + (Tensor.arange(count, dtype=dtypes.int64) * step).reshape(tuple(shape))
    flat = x.reshape(-1).scatter(0, places.reshape(-1), source.expand(tuple(size)).reshape(-1))
    return flat.reshape(x.shape)


@aten("cat")
def cat(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """An empty vector counts for nothing, as in PyTorch, whatever the other shapes."""
    given = [x for x in tensors if x.shape != (0,)]
    if not given:
        return tensors[0]
    return given[0].cat(*given[1:], dim=dim) if len(given) > 1 else given[0]


@aten("stack")
def stack(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    return tensors[0].stack(*tensors[1:], dim=dim)


@aten("split_with_sizes", "split")
def split(x: Tensor, sizes: Any, dim: int = 0) -> tuple[Tensor, ...]:
    return x.split(sizes if isinstance(sizes, int) else list(sizes), dim)


@aten("unbind", "unbind_copy")
def unbind(x: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    return x.unbind(dim)


@aten("constant_pad_nd")
def constant_pad(x: Tensor, pad: Sequence[int], value: Any = 0) -> Tensor:
    return x.pad(tuple(pad), value=value) if len(pad) else x


@aten("reflection_pad1d", "reflection_pad2d", "reflection_pad3d")
def reflection_pad(x: Tensor, pad: Sequence[int]) -> Tensor:
    return x.pad(tuple(pad), mode="reflect")


@aten("replication_pad1d", "replication_pad2d", "replication_pad3d")
def replication_pad(x: Tensor, pad: Sequence[int]) -> Tensor:
    return x.pad(tuple(pad), mode="replicate")


@aten("tril")
def tril(x: Tensor, diagonal: int = 0) -> Tensor:
    return x.tril(diagonal)


@aten("triu")
def triu(x: Tensor, diagonal: int = 0) -> Tensor:
    return x.triu(diagonal)


@aten("unfold")
def unfold(x: Tensor, dim: int, size: int, step: int) -> Tensor:
    return x.unfold(dim, size, step) if x.ndim else x.expand((size,))


@aten("pixel_shuffle")
def pixel_shuffle(x: Tensor, factor: int) -> Tensor:
    return x.pixel_shuffle(factor)
