"""Joining tensors along an existing axis or along a new one, and coordinate grids."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ...dtype import least_upper_dtype
from ...gradient import MAX_CHOICES, choice, in_memory
from ...ir.uop import UOp
from ...shape import movement, resolve_equal, shape_of, shape_text
from ..face import Tensor
from ..same_device import devices_text, meeting
from .movement import checked_axis


class Joining(Tensor):
    """Methods that make one tensor of several."""

    def _joined(self, others: Iterable[Any], method: str) -> list[Tensor]:
        if isinstance(self, (list, tuple)):  # called on the class, as Tensor.cat([a, b])
            if tuple(others):
                raise ValueError(f"{method} takes one list of tensors, or tensors; not a list and more")
            tensors = list(self)
        elif len(found := list(others)) == 1 and isinstance(found[0], (list, tuple)):
            tensors = [self, *found[0]]
        else:
            tensors = [self, *found]
        if not tensors:
            raise ValueError(f"{method} needs at least one tensor")
        for tensor in tensors:
            if not isinstance(tensor, Tensor):
                raise TypeError(f"{method} takes tensors, not {tensor!r}")
        devices = list(dict.fromkeys(t.device for t in tensors if t._device_known()))
        if len(devices) > 1:
            texts = ", ".join(sorted(map(devices_text, devices)))
            step = meeting(devices[0], devices[1], "them")
            raise ValueError(f"{method} of tensors on different devices: {texts}; {step}")
        dtype = least_upper_dtype(*[t.dtype for t in tensors])
        return [t.cast(dtype) for t in tensors]

    def cat(self, *args: Any, dim: int = 0) -> Tensor:
        """Tensors joined along an axis that exists.

        `a.cat(b, c, dim=0)` or `Tensor.cat(a, b, c)`, also of a list.

        All other sizes must be equal, except that a tensor of shape (0,) is left out. Dtypes are promoted to
        a common one.

        >>> Tensor([1]).cat(Tensor([2, 3])).tolist()
        [1, 2, 3]
        """
        if isinstance(self, (list, tuple)) and args and isinstance(args[0], int):
            dim, args = args[0], args[1:]
        tensors = Joining._joined(self, args, "cat")
        lines = [t for t in tensors if t.shape != (0,)]
        if any(t.ndim != 1 for t in lines):  # PyTorch's exception: an empty line fits all
            tensors = lines
        shapes = [t.shape for t in tensors]
        rank = len(shapes[0])
        if rank == 0:
            raise ValueError("cat needs tensors with at least one axis; stack joins 0-d tensors")
        place = checked_axis(dim, rank, shapes[0])
        for shape in shapes:
            same = len(shape) == rank and all(
                i == place or resolve_equal(a, b)
                for i, (a, b) in enumerate(zip(shape, shapes[0], strict=True))
            )
            if not same:
                texts = ", ".join(map(shape_text, shapes[:8])) + (", ..." if len(shapes) > 8 else "")
                raise ValueError(f"cat along axis {place} needs equal sizes on all other axes, not {texts}")
        return _joined_nodes(tensors, [t.uop for t in tensors], place)

    def stack(self, *args: Any, dim: int = 0) -> Tensor:
        """Tensors of one shape joined along a new axis.

        `a.stack(b, dim=0)` or `Tensor.stack(a, b)`, also of a list.

        >>> Tensor([1, 2]).stack(Tensor([3, 4])).tolist()
        [[1, 2], [3, 4]]
        """
        if isinstance(self, (list, tuple)) and args and isinstance(args[0], int):
            dim, args = args[0], args[1:]
        tensors = Joining._joined(self, args, "stack")
        shape = tensors[0].shape
        for t in tensors:
            if len(t.shape) != len(shape) or not all(map(resolve_equal, t.shape, shape)):
                raise ValueError(
                    f"stack needs equal shapes, not {shape_text(shape)} and {shape_text(t.shape)}"
                )
        place = checked_axis(dim, len(shape) + 1, (*shape, len(tensors)))
        unit = shape[:place] + (1,) + shape[place:]
        return _joined_nodes(tensors, [movement.reshape(t.uop, unit) for t in tensors], place)

    def meshgrid(self, *args: Tensor | Sequence[Tensor], indexing: str = "ij") -> tuple[Tensor, ...]:
        """Coordinate grids of 1-d tensors: grid i varies along axis i.

        >>> [t.tolist() for t in Tensor([1, 2]).meshgrid(Tensor([3]))]
        [[[1], [2]], [[3], [3]]]
        """
        if indexing not in ("ij", "xy"):
            raise ValueError(f"meshgrid's indexing must be 'ij' or 'xy', not {indexing!r}")
        lines: list[Any] = [*self, *args] if isinstance(self, (list, tuple)) else [self, *args]
        if len(lines) == 2 and isinstance(lines[1], (list, tuple)):
            lines = [lines[0], *lines[1]]
        if any(line.ndim > 1 for line in lines):
            raise ValueError("meshgrid takes 1-d tensors")
        sizes = tuple(line.numel() for line in lines)
        order = list(range(len(lines)))
        if indexing == "xy" and len(lines) > 1:
            order[0], order[1] = 1, 0
        grids = [
            line.reshape(tuple(sizes[i] if j == i else 1 for j in range(len(lines)))).expand(sizes)
            for i, line in enumerate(lines)
        ]
        return tuple(grid.permute(order) for grid in grids)


def _joined_nodes(tensors: Sequence[Tensor], nodes: Sequence[UOp], axis: int) -> Tensor:
    """The tensor of these tensors' values in other shapes, along an axis."""
    kept = [node for node in nodes if not resolve_equal(shape_of(node)[axis], 0)] or nodes[:1]
    if len(kept) == 1:
        return tensors[nodes.index(kept[0])]._unary(kept[0])
    node = choice(kept, axis) if len(kept) <= MAX_CHOICES else in_memory(kept, axis, tensors[0].device)
    return type(tensors[0])._make(node, *tensors)
