"""What tensors were in a capture: an argument may be another of the same form, one from outside may not."""

from __future__ import annotations

from typing import Any

from ..device import Buffer
from ..dtype import DType
from ..ir.index import sint
from ..ir.ops import Ops
from ..ir.uop import UOp
from ..schedule.versions import buffer_of, in_shape, peel
from ..shape import shape_text
from ..tensor import Tensor
from ..tensor.storage import Storage, base_of
from .errors import Changed, JitError, Mismatch
from .python_values import kind_text
from .specs import Call, Spec, binds_in, note_bind, unbound
from .tensor_memory import copied_whole, memory_of, part_in_memory, put_into_memory, storage_of


class TensorSpec(Spec):
    """A tensor argument: its memory is replaced in every call.

    first  the number of the same tensor, where it was met before     own  its own number
    """

    __slots__ = ("device", "dtype", "first", "grad", "number", "shape", "size", "symbolic", "written")

    def __init__(self, name: str, number: int, first: int | None) -> None:
        super().__init__(name)
        self.number, self.first = number, first
        self.shape: tuple[sint, ...] = ()
        self.symbolic = False
        self.dtype: DType
        self.device, self.size, self.grad, self.written = "", 0, False, False

    def read(self, value: Any, call: Call) -> None:
        if not isinstance(value, Tensor):
            raise Changed(self.name, "a Tensor", kind_text(value))
        if self.first is not None:
            if call.tensors[self.first] is not value:
                raise Changed(self.name, "the tensor of another argument", "one of its own")
            return
        call.tensors.append(value)
        try:
            call.buffers.append(self._memory(value))
        except Mismatch as mismatch:
            call.mismatch = call.mismatch or mismatch
            return
        if self.symbolic:
            for bind in binds_in(value.shape):
                note_bind(call, bind, self.name)

    def _memory(self, tensor: Tensor) -> Buffer:
        """The whole, contiguous Buffer of an argument like the captured one. Raises Mismatch."""
        node = tensor._uop
        base = node.src[0] if node.op is Ops.RESHAPE else node
        facts = base.facts
        buffer: Buffer | None = facts.get("buffer")
        if (
            buffer is not None
            and base.op is Ops.BUFFER
            and base.arg == self.size
            and base.dtype is self.dtype
            and node.facts.get("shape") == self.shape
            and buffer._buf is not None
            and buffer.device == self.device
            and tensor.requires_grad is self.grad
            and "becomes" not in facts
        ):
            return buffer
        return self._brought_into_memory(tensor)

    def _brought_into_memory(self, tensor: Tensor) -> Buffer:
        """The general case: what is not in memory is computed, a part of something larger is copied."""
        shape = tensor.shape
        if unbound(shape) != self.shape or tensor.dtype is not self.dtype or tensor.device != self.device:
            raise Mismatch(f"{self.name}: was {self._text()}, now {self._text_of_other(tensor)}")
        if tensor.requires_grad is not self.grad:
            raise Changed(f"{self.name}.requires_grad", self.grad, tensor.requires_grad)
        put_into_memory(tensor)
        value = peel(tensor._value())
        base = base_of(value)
        if base.op is Ops.BUFFER and base.arg == self.size and in_shape(base, shape) is value:
            return buffer_of(base).ensure_allocated()
        if self.written:
            raise part_is_written(self.name)
        part = None if self.symbolic else part_in_memory(tensor)
        if part is not None and part.size == self.size:
            return part
        return memory_of(copied_whole(tensor))[1]

    def _text(self) -> str:
        return f"{shape_text(self.shape)} {_short(self.dtype)} on {self.device}"

    def _text_of_other(self, tensor: Tensor) -> str:
        """A tensor's shape, and what else differs."""
        text = shape_text(unbound(tensor.shape))
        if tensor.dtype is not self.dtype:
            text += f" {_short(tensor.dtype)}"
        return text if tensor.device == self.device else f"{text} on {tensor.device}"


class HeldSpec(Spec):
    """A tensor that was found outside: it must be the same tensor, in the same memory."""

    __slots__ = ("grad", "node", "storage", "tensor")

    def __init__(self, name: str, tensor: Tensor) -> None:
        super().__init__(name)
        self.tensor = tensor
        self.storage: Storage | None = None
        self.node: UOp | None = None
        self.grad: bool | None = False

    def hold(self) -> None:
        """What it is when the capture is done counts."""
        self.storage = storage_of(self.tensor)
        self.grad = self.tensor._requires_grad
        self.node = None if self.storage is not None else self.tensor.uop

    def read(self, value: Any, call: Call) -> None:
        if not isinstance(value, Tensor):
            raise Changed(self.name, "one tensor", kind_text(value))
        if value._requires_grad is not self.grad:
            raise Changed(f"{self.name}.requires_grad", self.grad, value._requires_grad)
        if value is self.tensor and value._storage is self.storage:
            if self.storage is not None or value._uop is self.node or value.uop is self.node:
                return
        if self.storage is not None and storage_of(value) is self.storage:
            if value._node() is self.tensor._node():
                return
        raise Changed(self.name, "one tensor", "another")


def part_is_written(name: str) -> JitError:
    """Why an argument that is no memory of its own is refused."""
    return JitError(
        f"{name} is a part or another view of a larger tensor, and the function writes to it; "
        "pass the whole tensor and index it inside"
    )


def _short(dtype: DType) -> str:
    return repr(dtype)[len("dtypes.") :]
