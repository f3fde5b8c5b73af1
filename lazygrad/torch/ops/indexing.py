"""Reading and writing at indices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...dtype import dtypes
from ...tensor import Tensor
from ..table import aten


def _subscripts(x: Tensor, indices: Sequence[Any]) -> tuple[Any, ...]:
    """None stands for a whole axis; which elements a mask chooses depends on values."""
    if any(isinstance(each, Tensor) and each.dtype in (dtypes.bool, dtypes.uint8) for each in indices):
        raise NotImplementedError("indexing by a mask: how many elements there are depends on values")
    return tuple(slice(None) if each is None else each for each in indices)


def _ready(values: Tensor) -> Tensor:
    """What is added at places, in memory: a product computed there element by element would be no product of
    tiles.
    """
    return values.contiguous()


@aten("index.Tensor", "_unsafe_index")
def index(x: Tensor, indices: Sequence[Any]) -> Tensor:
    return x[_subscripts(x, indices)]


@aten("index_put", "_unsafe_index_put")
def index_put(
    x: Tensor, indices: Sequence[Any], values: Tensor, accumulate: bool = False, unsafe: bool = False
) -> Tensor:
    masks = [each for each in indices if isinstance(each, Tensor) and each.dtype is dtypes.bool]
    if len(masks) == len(indices) == 1 and values.ndim == 0 and not accumulate:
        mask = masks[0].reshape((*masks[0].shape, *[1] * (x.ndim - masks[0].ndim)))
        return mask.where(values.cast(x.dtype), x)
    return x.index_put(list(_subscripts(x, indices)), _ready(values.cast(x.dtype)), accumulate)


@aten("index_select")
def index_select(x: Tensor, dim: int, index: Tensor) -> Tensor:
    return x.index_select(dim, index) if x.ndim else x


@aten("index_add")
def index_add(x: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Any = 1) -> Tensor:
    return x.index_add(dim, index, _ready(source), alpha=alpha)


@aten("gather")
def gather(x: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False) -> Tensor:
    if x.ndim == 0 or index.ndim == 0:
        return x.reshape(1).gather(0, index.reshape(-1)).reshape(index.shape)
    return x.gather(dim, index)


@aten("scatter.src", "scatter.value")
def scatter(x: Tensor, dim: int, index: Tensor, source: Any) -> Tensor:
    return x.scatter(dim, index, source)


@aten("scatter_add")
def scatter_add(x: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    return x.scatter_add(dim, index, _ready(source))


@aten("scatter_reduce.two")
def scatter_reduce(
    x: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    return x.scatter_reduce(dim, index, source, reduce, include_self=include_self)


@aten("scatter.reduce", "scatter.value_reduce")
def scatter_reduced(x: Tensor, dim: int, index: Tensor, source: Any, *, reduce: str) -> Tensor:
    return x.scatter(dim, index, source, reduce)


@aten("index_reduce")
def index_reduce(
    x: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    return x.index_reduce(dim, index, source, reduce, include_self=include_self)


@aten("put")
def put(x: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    return x.put(index, source, accumulate)


@aten("masked_scatter")
def masked_scatter(x: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    return x.masked_scatter(mask, source)


@aten("embedding")
def embedding(
    weight: Tensor, indices: Tensor, padding_idx: int = -1, scale: bool = False, sparse: bool = False
) -> Tensor:
    return indices.embedding(weight)


@aten("embedding_dense_backward")
def embedding_backward(slope: Tensor, indices: Tensor, rows: int, padding_idx: int, scale: bool) -> Tensor:
    """The sum of the gradients of each row; that of padding is 0."""
    if scale:
        raise NotImplementedError("embedding with scale_grad_by_freq")
    flat, slopes = indices.reshape(-1), slope.reshape(-1, slope.shape[-1])
    if padding_idx >= 0:
        slopes = (flat == padding_idx).unsqueeze(1).where(0.0, slopes)
    return Tensor.zeros(rows, slopes.shape[1], dtype=slope.dtype).index_add(0, flat, _ready(slopes))


@aten("_embedding_bag", "_embedding_bag_forward_only")
def embedding_bag(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int = -1,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Sums (mode 0) or means (mode 1) of rows; which bag each index is in; how many are in a bag, twice.

    Where PyTorch has a quick way, it does not keep the bags.
    """
    if mode not in (0, 1):
        raise NotImplementedError("the places of the maxima of bags")
    padding = padding_idx if padding_idx >= 0 else None
    out = indices.embedding_bag(
        weight, offsets, ("sum", "mean")[mode], per_sample_weights, padding, include_last_offset
    )
    count = indices.shape[0]
    bag = offsets.searchsorted(Tensor.arange(count, dtype=offsets.dtype), right=True) - 1
    counted = Tensor.ones(count, dtype=offsets.dtype) if padding is None else (indices != padding)
    size = Tensor.zeros(out.shape[0], dtype=offsets.dtype).scatter_add(0, bag, counted.cast(offsets.dtype))
    quick = mode == 0 and padding is None and weight.dtype in (dtypes.float32, dtypes.float16)
    return out, bag[:0] if quick else bag, size, size


@aten("bucketize.Tensor")
def bucketize(x: Tensor, boundaries: Tensor, *, out_int32: bool = False, right: bool = False) -> Tensor:
    return x.bucketize(boundaries, out_int32=out_int32, right=right)


@aten("searchsorted.Tensor")
def searchsorted(
    ordered: Tensor,
    x: Tensor,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
) -> Tensor:
    return ordered.searchsorted(x, out_int32=out_int32, right=right, side=side, sorter=sorter)


@aten("histc")
def histc(x: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """How many numbers are in each of equal parts of the range; its end is in the last one."""
    if min == max:
        raise NotImplementedError("a histogram whose range depends on values")
    flat = x.reshape(-1)
    inside = (flat >= min) & (flat <= max)
    part = ((flat - min) * (bins / (max - min))).cast(dtypes.int64).clamp(0, bins - 1)
    counts = Tensor.zeros(bins, dtype=x.dtype)
    return counts.scatter_add(0, inside.where(part, 0), inside.cast(x.dtype))


@aten("histogram.bin_ct")
def histogram(
    x: Tensor,
    bins: int = 100,
    *,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> tuple[Tensor, Tensor]:
    """Counts, and the edges of equal parts of a range that is given."""
    if range is None or range[0] == range[1]:
        raise NotImplementedError("a histogram whose range depends on values")
    return x.histogram(bins, range=(range[0], range[1]), weight=weight, density=density)


@aten("histogram.bins_tensor")
def histogram_between(
    x: Tensor, edges: Tensor, *, weight: Tensor | None = None, density: bool = False
) -> tuple[Tensor, Tensor]:
    return x.histogram(edges, weight=weight, density=density)
