"""Functions of several tensors, one after another or in a list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import shape as shapes
from ..tensor import Tensor


def atleast_1d(*tensors: Any) -> Any:
    """Each with one axis at least: a tensor of one, a tuple of several.

    >>> [t.shape for t in functional.atleast_1d(Tensor(1.0), Tensor([2.0]))]
    [(1,), (1,)]
    """
    return _each(tensors, Tensor.atleast_1d)


def atleast_2d(*tensors: Any) -> Any:
    """Each with two axes at least.

    >>> functional.atleast_2d(Tensor([1.0, 2.0])).tolist()
    [[1.0, 2.0]]
    """
    return _each(tensors, Tensor.atleast_2d)


def atleast_3d(*tensors: Any) -> Any:
    """Each with three axes at least.

    >>> functional.atleast_3d([Tensor([1.0, 2.0])])[0].shape
    (1, 2, 1)
    """
    return _each(tensors, Tensor.atleast_3d)


def _each(tensors: tuple[Any, ...], method: Any) -> Any:
    if len(tensors) == 1 and isinstance(tensors[0], Tensor):
        return method(tensors[0])
    return tuple(method(tensor) for tensor in _flat(tensors))


def _flat(tensors: tuple[Any, ...]) -> Sequence[Any]:
    return tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else tensors


def broadcast_tensors(*tensors: Any) -> tuple[Tensor, ...]:
    """All expanded to the shape they meet in.

    >>> [t.tolist() for t in functional.broadcast_tensors(Tensor([1, 2]), Tensor([3]))]
    [[1, 2], [3, 3]]
    """
    several = _flat(tensors)
    shape = shapes.broadcast_shapes(*(tensor.shape for tensor in several))
    return tuple(tensor.expand(shape) for tensor in several)


def broadcast_shapes(*sizes: Any) -> tuple[Any, ...]:
    """The shape that shapes (or sizes) meet in.

    >>> functional.broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    return tuple(shapes.broadcast_shapes(*((s,) if isinstance(s, int) else tuple(s) for s in sizes)))
