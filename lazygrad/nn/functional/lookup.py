"""Lines of a table by the symbols that name them."""

from __future__ import annotations

from ...dtype import dtypes
from ...tensor import Tensor, no_grad
from ...tensor.indexing.addresses import trusted


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    *,
    wrap: bool = False,
) -> Tensor:
    """The line of `weight` that each integer of `input` names; see `Tensor.embedding`.

    max_norm  lines that are asked for and have a greater norm are scaled down to it first, in `weight`, in
              place
    wrap      whether negative integers count from the end; otherwise they raise IndexError when a result is
              read

    >>> nn.functional.embedding(Tensor([1]), Tensor([[1.0], [2.0]])).tolist()
    [[2.0]]
    """
    if max_norm is not None:
        _limit_lines(weight, input, max_norm, norm_type, wrap)
    return input.embedding(weight, padding_idx, wrap=wrap)


def _limit_lines(weight: Tensor, index: Tensor, max_norm: float, norm_type: float, wrap: bool) -> None:
    """Scale the lines of a weight that an index names down to a norm, in place."""
    if not dtypes.is_int(index.dtype) or weight.ndim != 2:
        return  # what looks the lines up says what is wrong
    with no_grad():
        table = weight.detach()
        flat = index.flatten()
        if wrap:
            flat = (flat < 0).where(flat + table.shape[0], flat)
        asked = Tensor.zeros(table.shape[0], dtype=dtypes.bool, device=table.device)
        ones = Tensor.ones(*flat.shape, dtype=dtypes.bool, device=table.device)
        with trusted():  # the look-up itself checks
            asked = asked.scatter(0, flat, ones)
        norm = table.norm(norm_type, 1, keepdim=True)
        limited = table * (max_norm / (norm + 1e-7))
        weight.assign((asked.unsqueeze(1) & (norm > max_norm)).where(limited, table))


def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    *,
    mode: str = "mean",
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
    wrap: bool = False,
) -> Tensor:
    """The sum, mean or maximum of the embeddings of each bag of symbols; see `Tensor.embedding_bag`.

    >>> nn.functional.embedding_bag(Tensor([[0, 1]]), Tensor([[1.0], [2.0]])).tolist()
    [[1.5]]
    """
    return input.embedding_bag(
        weight, offsets, mode, per_sample_weights, padding_idx, include_last_offset, wrap=wrap
    )
