"""What the jit asks of tensors. They live a layer above, which puts its answers here.

tensor/jit/capturing.py has them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..device import Buffer
from ..ir.uop import UOp

#: How a tensor looks at memory: movements as (op, argument), the innermost first.
Moves = tuple[tuple[Any, Any], ...]


class Session:
    """One capture, as tensors see it: what was there before, and what has become of it."""

    def existed(self, tensor: Any) -> bool:
        """Whether the tensor is older than the capture."""
        raise NotImplementedError

    def prepare(self, tensor: Any, spec: Any) -> Buffer:
        """Put an argument into whole, contiguous memory, and say in `spec` how it is."""
        raise NotImplementedError

    def realize_before(self, tensor: Any) -> None:
        """Compute a tensor that the function is about to use, so that this is no part of the capture."""
        raise NotImplementedError

    def start(self) -> None:
        """What waits to be written is written; from here on everything counts as the function's."""
        raise NotImplementedError

    def finish(self, results: Sequence[Any]) -> None:
        """Compute the results, what was assigned, and every tensor that outlives the function."""
        raise NotImplementedError

    def end(self) -> None:
        """Put back what was only for the capture. Always called."""
        raise NotImplementedError

    def keeps(self, results: Sequence[Any]) -> bool:
        """Whether there are tensors that are new and no results."""
        raise NotImplementedError

    def storages(self) -> dict[Buffer, list[Any]]:
        """Base Buffer → what joins the tensors that look at it."""
        raise NotImplementedError

    def uses_several(self, used: set[Buffer]) -> bool:
        """Whether a tensor on several devices has its parts in memory of these base Buffers."""
        raise NotImplementedError

    def moved(self) -> list[Any]:
        """The storages that got other memory in the capture, since others hold the old."""
        raise NotImplementedError

    def gradients(self) -> list[tuple[Any, Any, Any]]:
        """(tensor, gradient before, gradient after) for those whose gradient is another."""
        raise NotImplementedError


class Output:
    """Memory that a replay fills and hands out as tensors."""

    def take(self, binds: dict[str, int], numbers: str | None = None) -> tuple[Buffer, list[Any]]:
        """Memory that nobody holds, and the tensors on it; with a number for the Variable `numbers`."""
        raise NotImplementedError


class Watched:
    """Memory that every replay writes."""

    def disturbed(self) -> list[Any]:
        """The storages whose memory somebody else looks at, or will."""
        raise NotImplementedError


class TensorLayer:
    """Tensors as the jit sees them: memory, the movements that look at it, versions that writes make."""

    kind: type = type(None)  #: the class of tensors

    def modes(self) -> tuple[Any, ...]:
        """What holds in this thread and changes what operations record."""
        raise NotImplementedError

    def session(self) -> Session:
        """Begin a capture."""
        raise NotImplementedError

    def on_several(self, tensor: Any) -> bool:
        """Whether several devices hold a tensor together."""
        raise NotImplementedError

    def argument(self, tensor: Any, spec: Any) -> Buffer:
        """The whole, contiguous Buffer of an argument like the captured one. Raises Mismatch."""
        raise NotImplementedError

    def computed(self, results: Sequence[Any]) -> list[Any]:
        """The results of a call that is not captured, in memory and without the graphs they came from."""
        raise NotImplementedError

    # memory

    def storage(self, tensor: Any) -> Any:
        """What joins the tensors that are views of the same memory; None for values not in memory."""
        raise NotImplementedError

    def where(self, tensor: Any) -> tuple[Buffer, Moves] | None:
        """The Buffer that a computed tensor looks at, and how; None where it needs no memory."""
        raise NotImplementedError

    def settled(self, storage: Any) -> tuple[UOp, Buffer]:
        """The newest version of a storage and its Buffer, after the writes that wait have run."""
        raise NotImplementedError

    def is_alone(self, storage: Any) -> bool:
        """Whether one tensor looks at the memory, and nothing that is to be computed will read it."""
        raise NotImplementedError

    def watched(self, storages: Sequence[Any]) -> Watched:
        """The same for the storages that a capture writes; the caller holds one reference to each version."""
        raise NotImplementedError

    def begin_writes(self, storages: Sequence[Any]) -> None:
        """Before memory is written: who needs the old contents is computed, or keeps the old memory."""
        raise NotImplementedError

    def end_writes(self, storages: Sequence[Any]) -> None:
        """After memory was written: its tensors stand for the new contents, old values are gone."""
        raise NotImplementedError

    # sizes

    def sized(self, tensor: Any, axes: Sequence[int], bind: UOp, most: int, known: dict[Any, Any]) -> Any:
        """A copy of a tensor with a bound Variable, of at most `most`, as the size of these axes.

        known  keeps what is equal for the next call
        """
        raise NotImplementedError

    def unsized(self, tensor: Any, name: str, size: int) -> Any:
        """A computed tensor with a number for the Variable of that name."""
        raise NotImplementedError

    def stand_for(self, tensor: Any, other: Any) -> None:
        """From here on, the first tensor is the second once more."""
        raise NotImplementedError

    def agree(self, got: Any, expected: Any) -> bool:
        """Whether two tensors are the same, but for the roundings of sums in another order."""
        raise NotImplementedError

    # results

    def output(self, like: Buffer, parts: Sequence[tuple[type, Moves]]) -> Output:
        """Memory like this one, to be handed out as tensors that look at it in these ways."""
        raise NotImplementedError

    def view(self, kind: type, storage: Any, moves: Moves) -> Any:
        """A tensor that looks at memory which others look at."""
        raise NotImplementedError

    def part(self, kind: type, tensor: Any, size: int, moves: Moves) -> Any:
        """A tensor that looks at an argument, which has `size` elements."""
        raise NotImplementedError

    # random numbers

    def draw(self, count: int) -> tuple[int, int]:
        """(seed, base) of the next `count` random numbers."""
        raise NotImplementedError

    def set_random(self, state: tuple[int, int]) -> None:
        """Go on drawing from here."""
        raise NotImplementedError


layer = TensorLayer()


def install(tensors: TensorLayer) -> None:
    """Called once, by the layer of tensors."""
    global layer
    layer = tensors
