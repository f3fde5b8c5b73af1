"""How each tensor that a captured function returns is made in a replay: a class for each place it can be."""

from __future__ import annotations

from dataclasses import dataclass

from ..schedule.graph.versions import peel
from ..shape.movement import reshape
from ..tensor import Tensor
from ..tensor.storage import Storage
from .layout import Moves, moved
from .specs import Call
from .tensor_memory import tensor_on


@dataclass(frozen=True, slots=True)
class Argument:
    """Tensor `number` of the arguments itself."""

    number: int

    def __call__(self, call: Call, made: list[list[Tensor]]) -> Tensor:
        return call.tensors[self.number]


@dataclass(frozen=True, slots=True)
class ArgumentPart:
    """A tensor that looks at the memory of an argument, which has `size` elements; None on several devices,
    where it is seen as the argument is.
    """

    kind: type[Tensor]
    number: int
    size: int | None
    moves: Moves

    def __call__(self, call: Call, made: list[list[Tensor]]) -> Tensor:
        tensor = call.tensors[self.number]
        value = peel(tensor._value())
        memory = value if self.size is None else reshape(value, (self.size,))
        return self.kind._make(moved(memory, self.moves), tensor).detach()


@dataclass(frozen=True, slots=True)
class Constant:
    """A tensor that is the same in every call."""

    tensor: Tensor

    def __call__(self, call: Call, made: list[list[Tensor]]) -> Tensor:
        return self.tensor


@dataclass(frozen=True, slots=True)
class OutputPart:
    """Number `index` of the tensors on an output of the kernels."""

    output: int
    index: int

    def __call__(self, call: Call, made: list[list[Tensor]]) -> Tensor:
        return made[self.output][self.index]


@dataclass(frozen=True, slots=True)
class StoragePart:
    """A tensor that looks at memory from outside."""

    kind: type[Tensor]
    storage: Storage
    moves: Moves

    def __call__(self, call: Call, made: list[list[Tensor]]) -> Tensor:
        return tensor_on(self.kind, self.storage, moved(self.storage.version, self.moves))


Made = Argument | ArgumentPart | Constant | OutputPart | StoragePart
