"""A loop over time as data: the record of PROGRAMs whose body is a graph that runs once for each turn.

`Loop` is the record in the tensor graph: a body on parameters, and what each of them is. In a kernel's AST
it is a `LoopPlan`: the body's own kernels, and which memory each of them works on in which turn.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..dtype import DType, dtypes
from .args import Array, KernelRecord
from .ops import Ops
from .uop import UOp


class Param(NamedTuple):
    """What a parameter of the body is in turn t.

    kind    "whole"   source `first`, in all turns the same
            "slice"   a part along the first axis of source `first`
            "carry"   source `first` in turn 0, then root `then` of the turn before
            "next"    a part of source `then`, that of the next turn, and source `first` in the last turn
    shape   of the parameter
    """

    kind: str
    dtype: DType
    shape: tuple[int, ...]
    first: int
    then: int = -1

    @property
    def array(self) -> Array:
        return Array(self.dtype, self.shape)


class Result(NamedTuple):
    """A result of the loop: a root of the last turn, or `stacked`, of all turns along a new first axis."""

    root: int
    stacked: bool


@dataclass(frozen=True, eq=False)
class Loop(KernelRecord):
    """A body and its turns. Equal ones are one object: `Loop.of`.

    device   that the parameters are on
    iterations  how many there are, at least one; `reverse`: parts are taken and stacked from the last on
    params   the parameters of the body: `parameter(device, number, array)` is the node of each
    roots    what the body computes, on its parameters
    results  one PROGRAM for each
    inputs   the arrays of its sources
    """

    name: str
    device: str
    iterations: int
    reverse: bool
    params: tuple[Param, ...]
    roots: tuple[UOp, ...]
    results: tuple[Result, ...]
    outputs: tuple[Array, ...]
    inputs: tuple[Array, ...]
    #: what planning makes of it, for each target
    plans: dict[Any, LoopPlan] = field(default_factory=dict, repr=False)
    kind = "loop"
    is_unique = has_body = True

    @classmethod
    def of(cls, *fields: Any) -> Loop:
        """The one object with these fields."""
        return _one(cls, fields)  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return f"<{self.name}: {self.iterations} turns>"


def parameter(device: str, number: int, array: Array) -> UOp:
    """The node that stands for a parameter in a body: memory that is nobody's."""
    place = (UOp(Ops.DEVICE, arg=device), UOp(Ops.UNIQUE, dtypes.void, (), -1 - number))
    return UOp(Ops.BUFFER, array.dtype, place, array.size)


# *** planned


class Slot(NamedTuple):
    """Where memory of the body lies: an array of the loop's kernel and the offset in bytes in turn 0.

    Arrays are numbered: outputs, working memory, sources. The offset grows by `step` each turn; in odd turns
    it begins at `odd`. In turn `at` (-1: in none) the memory is `instead`.
    """

    even: tuple[int, int]
    odd: tuple[int, int]
    step: int
    nbytes: int
    at: int = -1
    instead: tuple[int, int] = (0, 0)

    def moved(self, offset: int, nbytes: int) -> Slot:
        """A part of it."""
        ends = [(array, begin + offset) for array, begin in (self.even, self.odd, self.instead)]
        return Slot(ends[0], ends[1], self.step, nbytes, self.at, ends[2])

    def in_iteration(self, turn: int) -> tuple[int, int]:
        """The array and the offset in a turn."""
        if turn == self.at:
            return self.instead
        array, begin = self.odd if turn & 1 else self.even
        return array, begin + turn * self.step


class Launch(NamedTuple):
    """A kernel of the body: the numbers of its places, outputs first, and the values of its Variables."""

    ast: UOp
    slots: tuple[int, ...]
    values: tuple[tuple[UOp, int], ...]


@dataclass(frozen=True, eq=False)
class LoopPlan(KernelRecord):
    """A planned loop. Equal ones are one object: `LoopPlan.of`.

    launches  the kernels of one turn, in order
    slots     what they work on
    outputs   how many arrays it makes; the next one is its working memory, of `working` bytes: values that
              live within a turn and every second one of those that are carried; behind `block` there is
              room for what a native loop notes
    """

    name: str
    iterations: int
    launches: tuple[Launch, ...]
    slots: tuple[Slot, ...]
    outputs: tuple[Array, ...]
    inputs: tuple[Array, ...]
    block: int
    working: int
    kind = "loop"
    is_unique = True

    @classmethod
    def of(cls, *fields: Any) -> LoopPlan:
        """The one object with these fields."""
        return _one(cls, fields)  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return f"<{self.name}: {self.iterations} turns of {len(self.launches)} kernels>"


#: From so many on, the entries of those that are gone are taken out.
MOST_KNOWN = 256
_known: dict[Any, weakref.ref[Any]] = {}


def _one(kind: type, fields: tuple[Any, ...]) -> Any:
    key = (kind, *fields)
    reference = _known.get(key)
    found = None if reference is None else reference()
    if found is None:
        if len(_known) >= MOST_KNOWN:
            for old in [old for old, each in _known.items() if each() is None]:
                del _known[old]
        found = kind(*fields)
        _known[key] = weakref.ref(found)
    return found
