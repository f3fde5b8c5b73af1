"""Arranging: joining and splitting by numpy's names, turning, diagonals, grids, `rearrange` by formula."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..device import Device
from ..dtype import ConstType, DType, default_int, dtypes, to_dtype
from ..shape import resolve_equal, shape_text
from .base import TensorBase
from .creation import iota
from .floats import FloatsMixin
from .joining import JoiningMixin
from .movement import sizes_of

if TYPE_CHECKING:
    from .. import Tensor


class ArrangingMixin(FloatsMixin):
    """Methods that move elements around, beyond those of `JoiningMixin`."""

    __slots__ = ()

    # *** at least so many axes

    def atleast_1d(self) -> Tensor:
        """A 0-d tensor as a line of one; others as they are.

        >>> Tensor(3).atleast_1d().shape
        (1,)
        """
        return self.reshape(1) if self.ndim == 0 else self.reshape(self.shape)

    def atleast_2d(self) -> Tensor:
        """A line as a row; a 0-d tensor as a 1×1 matrix.

        >>> Tensor([1, 2]).atleast_2d().shape
        (1, 2)
        """
        return self.reshape((1,) * max(0, 2 - self.ndim) + self.shape)

    def atleast_3d(self) -> Tensor:
        """A line of n as (1, n, 1), a matrix as (m, n, 1).

        >>> Tensor([1, 2]).atleast_3d().shape
        (1, 2, 1)
        """
        if self.ndim == 2:
            return self.unsqueeze(2)
        return (
            self.reshape((1,) + self.shape + (1,))
            if self.ndim == 1
            else self.reshape((1,) * max(0, 3 - self.ndim) + self.shape)
        )

    # *** joining

    def hstack(self, *args: Any) -> Tensor:
        """Tensors beside each other: lines end to end, others along the second axis.

        >>> Tensor.hstack(Tensor([1]), Tensor([2, 3])).tolist()
        [1, 2, 3]
        """
        tensors: list[Any] = [t.atleast_1d() for t in JoiningMixin._joined(self, args, "hstack")]  # type: ignore[attr-defined]
        return tensors[0].cat(*tensors[1:], dim=0 if tensors[0].ndim == 1 else 1)  # type: ignore[no-any-return]

    def vstack(self, *args: Any) -> Tensor:
        """Tensors on top of each other: lines are rows.

        >>> Tensor.vstack(Tensor([1, 2]), Tensor([3, 4])).tolist()
        [[1, 2], [3, 4]]
        """
        tensors: list[Any] = [t.atleast_2d() for t in JoiningMixin._joined(self, args, "vstack")]  # type: ignore[attr-defined]
        return tensors[0].cat(*tensors[1:], dim=0)  # type: ignore[no-any-return]

    def row_stack(self, *args: Any) -> Tensor:
        """`vstack` by its other name.

        >>> Tensor.row_stack(Tensor([1, 2]), Tensor([3, 4])).shape
        (2, 2)
        """
        return ArrangingMixin.vstack(self, *args)

    def dstack(self, *args: Any) -> Tensor:
        """Tensors behind each other, along the third axis.

        >>> Tensor.dstack(Tensor([1, 2]), Tensor([3, 4])).tolist()
        [[[1, 3], [2, 4]]]
        """
        tensors: list[Any] = [t.atleast_3d() for t in JoiningMixin._joined(self, args, "dstack")]  # type: ignore[attr-defined]
        return tensors[0].cat(*tensors[1:], dim=2)  # type: ignore[no-any-return]

    def column_stack(self, *args: Any) -> Tensor:
        """Lines as the columns of a matrix; matrices beside each other.

        >>> Tensor.column_stack(Tensor([1, 2]), Tensor([3, 4])).tolist()
        [[1, 3], [2, 4]]
        """
        found: list[Any] = JoiningMixin._joined(self, args, "column_stack")
        tensors = [t.reshape(t.numel(), 1) if t.ndim < 2 else t for t in found]
        return tensors[0].cat(*tensors[1:], dim=1)  # type: ignore[no-any-return]

    def block_diag(self, *args: Any) -> Tensor:
        """Matrices (lines are rows) along the diagonal of a matrix of zeros.

        >>> Tensor.block_diag(Tensor([[1, 2]]), Tensor([3])).tolist()
        [[1, 2, 0], [0, 0, 3]]
        """
        found: list[Any] = [t.atleast_2d() for t in JoiningMixin._joined(self, args, "block_diag")]  # type: ignore[attr-defined]
        for tensor in found:
            if tensor.ndim != 2:
                raise ValueError(f"block_diag takes at most two axes, not shape {shape_text(tensor.shape)}")
        width, before, rows = sum(t.shape[1] for t in found), 0, []
        for tensor in found:
            rows.append(tensor.pad(((0, 0), (before, width - before - tensor.shape[1]))))
            before += tensor.shape[1]
        return rows[0].cat(*rows[1:], dim=0)  # type: ignore[no-any-return]

    # *** splitting

    def tensor_split(self, indices_or_sections: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
        """An axis in so many parts (the first ones are one longer where it does not divide), or cut before
        these places.

        >>> [t.tolist() for t in Tensor([1, 2, 3, 4, 5]).tensor_split(2)]
        [[1, 2, 3], [4, 5]]
        """
        axis = self._axis(dim)
        size = self.shape[axis]
        if not isinstance(size, int):
            raise NotImplementedError(f"tensor_split of an axis of symbolic size, {shape_text(self.shape)}")
        if isinstance(indices_or_sections, int):
            count = indices_or_sections
            if count < 1:
                raise ValueError(f"tensor_split needs a positive number of parts, not {count}")
            lengths = [size // count + (i < size % count) for i in range(count)]
            ends = list(itertools.accumulate(lengths))
            return tuple(self._window(axis, e - n, e) for e, n in zip(ends, lengths, strict=True))
        cuts = [slice(0, c).indices(size)[1] for c in indices_or_sections]
        pairs = zip([0, *cuts], [*cuts, size], strict=True)
        return tuple(self._window(axis, begin, max(begin, end)) for begin, end in pairs)

    def hsplit(self, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
        """`tensor_split` of the second axis; of the only one of a line.

        >>> [t.tolist() for t in Tensor([[1, 2], [3, 4]]).hsplit(2)]
        [[[1], [3]], [[2], [4]]]
        """
        return self._split_evenly("hsplit", 0 if self.ndim == 1 else 1, 1, indices_or_sections)

    def vsplit(self, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
        """`tensor_split` of the first axis.

        >>> [t.tolist() for t in Tensor([[1, 2], [3, 4]]).vsplit(2)]
        [[[1, 2]], [[3, 4]]]
        """
        return self._split_evenly("vsplit", 0, 2, indices_or_sections)

    def dsplit(self, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
        """`tensor_split` of the third axis.

        >>> [t.shape for t in Tensor.zeros(1, 2, 4).dsplit(2)]
        [(1, 2, 2), (1, 2, 2)]
        """
        return self._split_evenly("dsplit", 2, 3, indices_or_sections)

    def _split_evenly(
        self, name: str, axis: int, rank: int, parts: int | Sequence[int]
    ) -> tuple[Tensor, ...]:
        if self.ndim < rank:
            raise ValueError(f"{name} needs at least {rank} axes, not shape {shape_text(self.shape)}")
        size = self.shape[axis]
        if isinstance(parts, int) and (parts < 1 or size % parts):
            raise ValueError(f"{name} into {parts} equal parts: axis {axis} has size {size}")
        return self.tensor_split(parts, axis)

    # *** turning

    def rot90(self, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
        """Turned k quarters from the first of two axes towards the second.

        >>> Tensor([[1, 2], [3, 4]]).rot90().tolist()
        [[2, 4], [1, 3]]
        """
        axes = self._axes(tuple(dims))
        if len(axes) != 2:
            raise ValueError(f"rot90 turns two axes, not {tuple(dims)}")
        first, second = axes
        turns = k % 4
        if turns == 2:
            return self.flip(first, second)
        if turns == 0:
            return self.reshape(self.shape)
        return (
            self.flip(second).transpose(first, second)
            if turns == 1
            else self.transpose(first, second).flip(second)
        )

    def fliplr(self) -> Tensor:
        """The second axis backwards.

        >>> Tensor([[1, 2]]).fliplr().tolist()
        [[2, 1]]
        """
        if self.ndim < 2:
            raise ValueError(f"fliplr needs at least two axes, not shape {shape_text(self.shape)}")
        return self.flip(1)

    def flipud(self) -> Tensor:
        """The first axis backwards.

        >>> Tensor([1, 2]).flipud().tolist()
        [2, 1]
        """
        if self.ndim < 1:
            raise ValueError("flipud needs at least one axis, not shape ()")
        return self.flip(0)

    def t(self) -> Tensor:
        """The transpose of a matrix; a line as it is.

        >>> Tensor([[1, 2]]).t().tolist()
        [[1], [2]]
        """
        if self.ndim > 2:
            raise ValueError(f"t() takes at most two axes, not shape {shape_text(self.shape)}; use .mT")
        return self.transpose() if self.ndim == 2 else self.reshape(self.shape)

    def adjoint(self) -> Tensor:
        """The last two axes exchanged (numbers are real).

        >>> Tensor([[1, 2]]).adjoint().tolist()
        [[1], [2]]
        """
        return self.transpose(-2, -1)

    # *** diagonals

    def diag_embed(self, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
        """The last axis as the diagonal of a new pair of axes, zeros beside it.

        >>> Tensor([1, 2]).diag_embed().tolist()
        [[1, 0], [0, 2]]
        """
        if self.ndim == 0:
            raise ValueError("diag_embed needs at least one axis, not shape ()")
        size = self.shape[-1]
        if not isinstance(size, int):
            raise NotImplementedError(f"diag_embed of symbolic size, {shape_text(self.shape)}")
        whole, above, left = size + abs(offset), max(-offset, 0), max(offset, 0)
        line = self.pad((above, whole - size - above)).unsqueeze(-1).expand(*self.shape[:-1], whole, whole)
        row = self._make(iota(whole, dtypes.int32, self.device)).unsqueeze(1)
        column = self._make(iota(whole, dtypes.int32, self.device))
        made = (column == row + left - above).where(line, line._filled(0))
        rank = self.ndim + 1
        return made.movedim((-2, -1), (dim1 % rank, dim2 % rank))

    def diagflat(self, offset: int = 0) -> Tensor:
        """All elements as the diagonal of a matrix.

        >>> Tensor([[1], [2]]).diagflat().tolist()
        [[1, 0], [0, 2]]
        """
        return self.flatten().diag_embed(offset)

    @classmethod
    def tril_indices(cls, row: int, col: int, offset: int = 0, *, device: str | None = None) -> Tensor:
        """The places of the lower triangle of a matrix: a row of rows and a row of columns.

        >>> Tensor.tril_indices(2, 2).tolist()
        [[0, 1, 1], [0, 0, 1]]
        """
        _check_sizes("tril_indices", row, col)
        found = [(i, j) for i in range(row) for j in range(col) if j <= i + offset]
        return cls._places(found, device)

    @classmethod
    def triu_indices(cls, row: int, col: int, offset: int = 0, *, device: str | None = None) -> Tensor:
        """The places of the upper triangle of a matrix: a row of rows and a row of columns.

        >>> Tensor.triu_indices(2, 2).tolist()
        [[0, 0, 1], [0, 1, 1]]
        """
        _check_sizes("triu_indices", row, col)
        found = [(i, j) for i in range(row) for j in range(col) if j >= i + offset]
        return cls._places(found, device)

    @classmethod
    def _places(cls, found: list[tuple[int, int]], device: str | None) -> Tensor:
        if not found:
            return cls.zeros(2, 0, dtype=default_int(), device=device)
        made: Any = cls([[i for i, _ in found], [j for _, j in found]], device=device, dtype=default_int())
        return made  # type: ignore[no-any-return]

    # *** combinations

    def cartesian_prod(self, *args: TensorBase) -> Tensor:
        """All tuples of elements of some lines, a row for each; of one line the line.

        >>> Tensor([1, 2]).cartesian_prod(Tensor([3, 4])).tolist()
        [[1, 3], [1, 4], [2, 3], [2, 4]]
        """
        if not args:
            return self.reshape(self.shape)
        grids = self.meshgrid(*args)
        flat = [grid.flatten() for grid in grids]
        return flat[0].stack(*flat[1:], dim=1)

    def combinations(self, r: int = 2, with_replacement: bool = False) -> Tensor:
        """All choices of r elements of a line in their order, a row for each.

        >>> Tensor([1, 2, 3]).combinations().tolist()
        [[1, 2], [1, 3], [2, 3]]
        """
        if self.ndim != 1:
            raise ValueError(f"combinations takes a line, not shape {shape_text(self.shape)}")
        choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
        rows = list(choose(range(len(self)), r))
        if not rows:
            return self.zeros(0, r, dtype=self.dtype, device=self.device)
        index: Any = type(self)(rows, device=self.device)
        return self[index]

    def vander(self, N: int | None = None, increasing: bool = False) -> Tensor:
        """The powers of the elements of a line, a row for each: from N - 1 down to 0, or upwards.

        >>> Tensor([2, 3]).vander(3).tolist()
        [[4, 2, 1], [9, 3, 1]]
        """
        if self.ndim != 1:
            raise ValueError(f"vander takes a line, not shape {shape_text(self.shape)}")
        count = len(self) if N is None else N
        columns = [self.pow(k) for k in range(count)]
        if not columns:
            return self.zeros(len(self), 0, dtype=self.dtype, device=self.device)
        ordered = columns if increasing else columns[::-1]
        return ordered[0].stack(*ordered[1:], dim=1)

    # *** shape

    def as_strided(self, size: Sequence[int], stride: Sequence[int], storage_offset: int = 0) -> Tensor:
        """Element (i, j, ...) is number offset + i·stride[0] + j·stride[1] + ... of the flattened tensor.

        The elements count in row-major order, whatever memory the tensor is in; the result is no view.

        >>> Tensor([1, 2, 3, 4]).as_strided((3, 2), (1, 1)).tolist()
        [[1, 2], [2, 3], [3, 4]]
        """
        if len(size) != len(stride):
            raise ValueError(
                f"as_strided needs a stride for each size, not {tuple(size)} and {tuple(stride)}"
            )
        span = [(s - 1) * d for s, d in zip(size, stride, strict=True)]
        low = storage_offset + sum(min(x, 0) for x in span)
        high = storage_offset + sum(max(x, 0) for x in span)
        if math.prod(size) and (low < 0 or high >= self.numel()):
            raise ValueError(
                f"as_strided({tuple(size)}, {tuple(stride)}, {storage_offset}) reads elements {low} "
                f"to {high} of {self.numel()}"
            )
        place: Tensor = self.full(tuple(size), storage_offset, dtype=dtypes.int64, device=self.device)
        for axis, (s, d) in enumerate(zip(size, stride, strict=True)):
            line = self._make(iota(s, dtypes.int64, self.device)) * d
            place = place + line.reshape((s,) + (1,) * (len(size) - axis - 1))
        return self.flatten()[place]

    def sum_to_size(self, *size: Any) -> Tensor:
        """The sum over what broadcasting of this shape would have repeated.

        >>> Tensor([[1, 2], [3, 4]]).sum_to_size(1, 2).tolist()
        [[4, 6]]
        """
        wanted = sizes_of(size)
        extra = self.ndim - len(wanted)
        fits = extra >= 0 and all(
            resolve_equal(w, 1) or resolve_equal(w, s)
            for w, s in zip(wanted, self.shape[extra:], strict=True)
        )
        if not fits:
            raise ValueError(f"sum_to_size to {wanted}: {shape_text(self.shape)} is no broadcast of it")
        axes = tuple(i for i in range(self.ndim) if i < extra or resolve_equal(wanted[i - extra], 1))
        return (self.sum(axes, keepdim=True) if axes else self).reshape(wanted)

    def rearrange(self, formula: str, **sizes: int) -> Tensor:
        """Axes split, joined and put in another order by a formula with names, as einops writes it.

        formula  the axes before and after `->`; in parentheses those that are one axis there; `...` for all
                 that are not named; `1` for an axis of size 1
        sizes    of names in parentheses; one of each parenthesis may be left out

        >>> Tensor.zeros(2, 12, 5).rearrange("b (h w) c -> b c h w", h=3).shape
        (2, 5, 3, 4)
        """
        left, arrow, right = formula.partition("->")
        if not arrow:
            raise ValueError(f"rearrange {formula!r} needs '->'")
        before, after = _groups(formula, left), _groups(formula, right)
        dots = self.ndim - len(before) + 1 if ["..."] in before else 0
        if dots < 0 or (["..."] not in before and len(before) != self.ndim):
            raise ValueError(
                f"rearrange {formula!r} does not name the axes of shape {shape_text(self.shape)}"
            )
        spread = [[f".{i}"] for i in range(dots)]
        before, after = _with_dots(before, spread), _with_dots(after, spread)
        known: dict[str, Any] = dict(sizes)
        for group, size in zip(before, self.shape, strict=True):
            _solve_group(formula, group, size, known)
        names, wanted = [n for g in before for n in g], [n for g in after for n in g]
        for name in sizes:
            if name not in names:
                raise ValueError(f"rearrange {formula!r} has no axis {name!r}")
        if sorted(names) != sorted(wanted) or len(set(names)) != len(names):
            raise ValueError(f"rearrange {formula!r}: both sides name the same axes, each once")
        split = self.reshape(tuple(known[n] for n in names))
        return split.permute([names.index(n) for n in wanted]).reshape(
            tuple(math.prod(known[n] for n in group) for group in after)
        )

    # *** small questions and other places

    def equal(self, other: Any) -> bool:
        """Whether another tensor has this shape and these values. It runs.

        >>> Tensor([1, 2]).equal(Tensor([1, 2]))
        True
        """
        right = self._operand(other)
        return self.shape == right.shape and bool((self == right).all().item())

    def is_floating_point(self) -> bool:
        """Whether the dtype is a float.

        >>> Tensor([1]).is_floating_point()
        False
        """
        return dtypes.is_float(self.dtype)

    def cpu(self) -> Tensor:
        """The tensor on device CPU.

        >>> Tensor([1]).cpu().device
        'CPU'
        """
        return self.to("CPU")

    @property
    def mH(self) -> Tensor:
        """The last two axes exchanged: `adjoint()`."""
        return self.adjoint()

    @property
    def H(self) -> Tensor:
        """The transpose of a matrix."""
        if self.ndim != 2:
            raise ValueError(f".H is for matrices, not shape {shape_text(self.shape)}; use .mH")
        return self.adjoint()

    # *** like another tensor

    def randint_like(self, low: int, high: int | None = None, **more: Any) -> Tensor:
        """Whole numbers from low (0 if only one bound is given) to high, which is not included, in the shape,
        dtype and place of this tensor.

        >>> Tensor([1, 2]).randint_like(3, 4).tolist()
        [3, 3]
        """
        bounds = (0, low) if high is None else (low, high)
        whole = self.dtype if dtypes.is_int(self.dtype) else dtypes.int64
        made = self.randint(*self.shape, low=bounds[0], high=bounds[1], dtype=whole, device=self.device)
        return made.cast(more.get("dtype", self.dtype))

    def type_as(self, other: TensorBase) -> Tensor:
        """Cast to the dtype of another tensor.

        >>> Tensor([1]).type_as(Tensor([0.5])).tolist()
        [1.0]
        """
        return self.cast(other.dtype)

    def new_full(self, size: Any, fill_value: ConstType, **more: Any) -> Tensor:
        """One value in a shape, in the dtype and on the device of this tensor.

        >>> Tensor([1.0]).new_full((2,), 3).tolist()
        [3.0, 3.0]
        """
        return self.full(size, fill_value, **{"dtype": self.dtype, "device": self.device, **more})

    def new_zeros(self, *size: Any, **more: Any) -> Tensor:
        """Zeros in the dtype and on the device of this tensor.

        >>> Tensor([1]).new_zeros(2).tolist()
        [0, 0]
        """
        return self.new_full(sizes_of(size), 0, **more)

    def new_ones(self, *size: Any, **more: Any) -> Tensor:
        """Ones in the dtype and on the device of this tensor.

        >>> Tensor([1]).new_ones(2).tolist()
        [1, 1]
        """
        return self.new_full(sizes_of(size), 1, **more)

    def new_empty(self, *size: Any, **more: Any) -> Tensor:
        """Memory in the dtype and on the device of this tensor; it reads zeros.

        >>> Tensor([1]).new_empty(2).shape
        (2,)
        """
        return self.empty(*sizes_of(size), **{"dtype": self.dtype, "device": self.device, **more})

    def new_tensor(self, data: Any, *, dtype: DType | str | None = None, device: str | None = None) -> Tensor:
        """Data as a tensor in the dtype and on the device of this one.

        >>> Tensor([1.0]).new_tensor([2, 3]).tolist()
        [2.0, 3.0]
        """
        chosen = self.dtype if dtype is None else to_dtype(dtype)
        made: Any = type(self)(data, device=Device.canonicalize(device or self.device), dtype=chosen)
        return made  # type: ignore[no-any-return]


def _groups(formula: str, side: str) -> list[list[str]]:
    """One side of a formula of `rearrange`: the names of each axis."""
    groups: list[list[str]] = []
    inside: list[str] | None = None
    for word in side.replace("(", " ( ").replace(")", " ) ").split():
        if word == "(" and inside is None:
            inside = []
        elif word == ")" and inside is not None:
            groups.append(inside)
            inside = None
        elif word == "1":
            (groups.append([]) if inside is None else None)
        elif word == "..." or word.isidentifier():
            groups.append([word]) if inside is None else inside.append(word)
        else:
            raise ValueError(
                f"rearrange {formula!r}: axes are names, '1', '...' and parentheses, not {word!r}"
            )
    if inside is not None:
        raise ValueError(f"rearrange {formula!r}: a parenthesis is not closed")
    return groups


def _with_dots(groups: list[list[str]], spread: list[list[str]]) -> list[list[str]]:
    made: list[list[str]] = []
    for group in groups:
        if group == ["..."]:
            made.extend(spread)
        elif "..." in group:
            where = group.index("...")
            made.append([*group[:where], *(name for (name,) in spread), *group[where + 1 :]])
        else:
            made.append(group)
    return made


def _solve_group(formula: str, group: list[str], size: Any, known: dict[str, Any]) -> None:
    """The sizes of the names of one axis; one of them may be unknown."""
    unknown = [n for n in group if n not in known]
    rest = math.prod(known[n] for n in group if n in known)
    if len(unknown) > 1:
        raise ValueError(f"rearrange {formula!r}: give the sizes of all but one of {', '.join(unknown)}")
    if unknown and isinstance(size, int) and (rest == 0 or size % rest):
        raise ValueError(f"rearrange {formula!r}: an axis of size {size} is not split by {rest}")
    if unknown:
        known[unknown[0]] = size if rest == 1 else size // rest
    elif not resolve_equal(rest, size):
        raise ValueError(f"rearrange {formula!r}: ({' '.join(group)}) has size {rest}, the axis has {size}")


def _check_sizes(name: str, row: int, col: int) -> None:
    if row < 0 or col < 0:
        raise ValueError(f"{name} needs sizes that are not negative, not {row!r} and {col!r}")
