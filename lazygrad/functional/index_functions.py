"""Functions of places: indices, pairs of rows, borders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..shape import vmax
from ..tensor import Tensor


def unravel_index(indices: Tensor, shape: int | Sequence[int]) -> tuple[Tensor, ...]:
    """The index along each axis of places counted in rows of rows.

    >>> [t.tolist() for t in functional.unravel_index(Tensor([4]), (2, 3))]
    [[1], [1]]
    """
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    rest, found = indices, []
    for size in reversed(sizes):
        found.append(rest % size)
        rest = rest // size
    return tuple(reversed(found))


def pdist(input: Tensor, p: float = 2.0) -> Tensor:
    """The distances (p-norms) of all pairs of rows, (0, 1), (0, 2), ... (n - 2, n - 1).

    >>> functional.pdist(Tensor([[0.0, 0.0], [3.0, 4.0]])).tolist()
    [5.0]
    """
    if input.ndim != 2:
        raise ValueError(f"pdist takes rows (n, k), not shape {input.shape}")
    pairs: Any = Tensor.triu_indices(vmax(input.shape[0]), vmax(input.shape[0]), 1)
    return (input[pairs[0]] - input[pairs[1]]).norm(p, -1)


def constant_pad_nd(input: Tensor, pad: Sequence[int], value: float = 0) -> Tensor:
    """Borders of a constant, the last axis first.

    >>> functional.constant_pad_nd(Tensor([1, 2]), (1, 0)).tolist()
    [0, 1, 2]
    """
    return input.pad(tuple(pad), value=value)
