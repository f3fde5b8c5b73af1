"""Arrays as a kernel's function sees them: what it reads, what it makes, and memory of its own."""

from __future__ import annotations

import math
from typing import Any

from ...dtype import DType, dtypes
from ...ir import index
from ...ir.args import AxisType
from ...ir.index import bounds
from ...ir.ops import Ops
from ...ir.uop import UOp
from ...shape import shape_text
from .outside import Doubt, users_line
from .recording import Block, KernelError, in_range, recorder
from .values import Computed, Value, binary, divided, index_of, value_of


class KernelArray:
    """Memory with axes: `a[i, j]` loads an element, `a[i, j] = value` stores one.

    An index is a number (negative ones count from the end), an index of a loop or anything whole that was
    computed. What is outside of the array for sure raises (`outside.py`). What data or conditions decide is
    looked at when the kernel runs: a load outside gives 0, a store outside is left out.
    """

    def __init__(
        self, name: str, memory: UOp, dtype: DType, shape: tuple[int, ...], number: int | None = None
    ) -> None:
        self.name, self.memory, self.dtype, self.shape = name, memory, dtype, shape
        self.input = number  # which input of the kernel it is

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError(f"{self.name} has no axes")
        return self.shape[0]

    def __repr__(self) -> str:
        return f"<{self.name}: {shape_text(self.shape)} {self.dtype!r} of kernel {recorder().name}>"

    def __getitem__(self, place: Any) -> Value:
        here = recorder()
        if not self.size:  # in a loop without turns, or outside
            return Value(UOp.const(self.dtype, 0), here.root)
        doubts: list[Doubt] = []
        node = here.load(self._access(place, doubts), self.dtype)
        here.doubts += [doubt._replace(node=node) for doubt in doubts]
        return Value(node, here.block)

    def __setitem__(self, place: Any, value: Any) -> None:
        if self.input is not None:
            raise KernelError(
                f"{self.name} is an input: store into what kernel.zeros or kernel.copy({self.name}) gives"
            )
        here = recorder()
        access = self._access(place, here.doubts)
        if not self.size:
            return
        given = value_of(value, self.dtype)
        owner = here.owners.get(self.memory)
        if owner is not None:
            crossed = _grid_between(here.block, owner)
            if crossed is not None and not self.memory.dtype.local:  # type: ignore[attr-defined]
                raise KernelError(
                    f"{self.name} was made outside of the {crossed} and is stored to inside: each point "
                    "has its own; make it inside"
                )
        here.store(access, given.node.cast(self.dtype) if given.dtype is not self.dtype else given.node)

    def __iter__(self) -> Any:
        raise KernelError(f"loop over {self.name} with `for i in kernel.range(len({self.name}))`")

    def _access(self, place: Any, doubts: list[Doubt]) -> UOp:
        """The INDEX of an element, with the condition that it is inside where that is not sure: a doubt."""
        places = place if isinstance(place, tuple) else (place,)
        if len(places) != len(self.shape):
            raise KernelError(
                f"{self.name} of shape {shape_text(self.shape)} takes {len(self.shape)} indices, "
                f"not {len(places)}"
            )
        flat, conditions, exact = index.const(0), [], []
        for axis, (each, size) in enumerate(zip(places, self.shape, strict=True)):
            if isinstance(each, slice):
                raise KernelError(
                    f"{self.name} is indexed by an element at a time, not by a slice: use kernel.range"
                )
            if isinstance(each, int) and not isinstance(each, bool):
                if not -size <= each < size:
                    raise IndexError(
                        f"index {each} is out of range for axis {axis} of {self.name} with size {size}"
                    )
                each = each % size
            value = value_of(each, dtypes.index)
            if not dtypes.is_int(value.dtype):
                raise KernelError(
                    f"axis {axis} of {self.name} is indexed by whole numbers, not by {value.dtype}"
                )
            at = index_of(value)
            least, most = bounds(at)
            if (most < 0 or least >= size) and size and _is_surely_done(recorder().block):
                raise IndexError(
                    f"axis {axis} of {self.name} with size {size} is indexed by {least} to {most}: "
                    "always outside"
                )
            conditions.append(in_range(at, size))
            if conditions[-1] is not index.TRUE and self.size:
                block = recorder().block
                doubts.append(Doubt(None, self.name, axis, size, at, block, users_line()))
            flat = flat * index.const(size) + at
            exact.append(at)
        inside = index.all_of(conditions)
        valid = () if inside is index.TRUE else (inside,)
        access = UOp(Ops.INDEX, self.memory.dtype, (self.memory, flat, *valid))
        if self.input is not None:
            recorder().indices[access] = tuple(exact)
        return access


class Output(KernelArray):
    """An array that the kernel makes: what it returns."""

    def __init__(self, number: int, memory: UOp, dtype: DType, shape: tuple[int, ...]) -> None:
        super().__init__(f"output {number}", memory, dtype, shape)
        self.number = number


class Register(KernelArray, Computed):
    """One number that may change: `r.set(value)`, `r += value`; elsewhere `r` is its value of that moment."""

    def _value(self) -> Value:
        return self[()]

    def set(self, value: Any) -> None:
        """Store a value."""
        self[()] = value

    def __iadd__(self, other: Any) -> Register:
        self.set(self + other)
        return self

    def __isub__(self, other: Any) -> Register:
        self.set(self - other)
        return self

    def __imul__(self, other: Any) -> Register:
        self.set(self * other)
        return self

    def __itruediv__(self, other: Any) -> Register:
        self.set(divided(self, other))
        return self

    def __ifloordiv__(self, other: Any) -> Register:
        self.set(self // other)
        return self

    def __imod__(self, other: Any) -> Register:
        self.set(self % other)
        return self

    def __ipow__(self, other: Any) -> Register:
        self.set(self**other)
        return self

    def __ilshift__(self, other: Any) -> Register:
        self.set(self << other)
        return self

    def __irshift__(self, other: Any) -> Register:
        self.set(self >> other)
        return self

    def __iand__(self, other: Any) -> Register:
        self.set(binary(Ops.AND, self, other))
        return self

    def __ior__(self, other: Any) -> Register:
        self.set(binary(Ops.OR, self, other))
        return self

    def __ixor__(self, other: Any) -> Register:
        self.set(binary(Ops.XOR, self, other))
        return self


def _is_surely_done(block: Block) -> bool:
    """Whether what stands in a block is done at least once, whatever the data."""
    around = [each.opener for each in block.around() if each.opener is not None]
    return all(opener.op is Ops.RANGE and bounds(opener.src[0])[0] > 0 for opener in around)


def _grid_between(block: Block, outer: Block) -> str | None:
    """What runs side by side between a block and one around it."""
    for each in block.around():
        if each is outer:
            return None
        if each.kind is AxisType.GLOBAL:
            return "grid"
        if each.kind is AxisType.LOCAL:
            return "threads"
    return None
