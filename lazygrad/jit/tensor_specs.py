"""What tensors were in a capture: an argument may be another of the same form, one from outside may not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..device import Buffer, Devices
from ..dtype import DType
from ..ir.args import MultiArg
from ..ir.index import sint
from ..ir.ops import Ops
from ..ir.uop import UOp
from ..schedule.graph.versions import buffer_of, in_shape, peel
from ..shape import shape_of, shape_text
from ..tensor import Tensor
from ..tensor.same_device import devices_text
from ..tensor.storage import Storage, base_of
from .errors import Changed, JitError, Mismatch
from .python_values import kind_text
from .specs import Call, Spec, binds_in, note_bind, unbound
from .tensor_memory import (
    copied_whole,
    memory_of,
    part_in_memory,
    put_into_memory,
    storage_of,
    whole_memory,
)


class TensorSpec(Spec):
    """A tensor argument: its memory is replaced in every call.

    first  the number of the same tensor, where it was met before     own  its own number
    """

    __slots__ = ("changed", "device", "dtype", "first", "grad", "number", "shape", "size", "symbolic")

    def __init__(self, name: str, number: int, first: int | None) -> None:
        super().__init__(name)
        self.number, self.first = number, first
        self.shape: tuple[sint, ...] = ()
        self.symbolic = False
        self.dtype: DType
        self.device: Devices = ""
        self.size, self.grad, self.changed = 0, False, False

    def read(self, value: Any, call: Call) -> None:
        if not isinstance(value, Tensor):
            raise Changed(self.name, "a Tensor", kind_text(value))
        if self.first is not None:
            if call.tensors[self.first] is not value:
                raise Changed(self.name, "the tensor of another argument", "one of its own")
            return
        call.tensors.append(value)
        try:
            self._find(value, call)
        except Mismatch as mismatch:
            call.mismatch = call.mismatch or mismatch
            return
        if self.symbolic:
            for bind in binds_in(value.shape):
                note_bind(call, bind, self.name)

    def describe(self, tensor: Tensor, buffers: Sequence[Buffer]) -> None:
        """Note what a tensor that is in this memory is like."""
        shape = tensor.shape
        self.shape, self.symbolic = unbound(shape), bool(binds_in(shape))
        self.dtype, self.device, self.grad = tensor.dtype, tensor.device, tensor.requires_grad
        self.size = buffers[0].size

    @property
    def signature(self) -> tuple[Any, ...]:
        """What two arguments that one capture is for have in common: shape, dtype, and where it lies."""
        return self.shape, self.dtype, self.device

    @property
    def count(self) -> int:
        """In how many Buffers it is."""
        return 1

    def _find(self, tensor: Tensor, call: Call) -> None:
        """Note the memory of an argument like the captured one. Raises Mismatch."""
        call.buffers.append(self._memory(tensor))

    def _memory(self, tensor: Tensor) -> Buffer:
        """The whole, contiguous Buffer of an argument like the captured one. Raises Mismatch."""
        buffer = _viewed_whole(tensor._uop, self.shape, self.size, self.dtype)
        if buffer is not None and buffer.device == self.device and tensor.requires_grad is self.grad:
            return buffer
        return self._brought_into_memory(tensor)

    def _brought_into_memory(self, tensor: Tensor) -> Buffer:
        """The general case: what is not in memory is computed, a part of something larger is copied."""
        self._compare(tensor)
        shape = tensor.shape
        put_into_memory(tensor)
        value = peel(tensor._value())
        base = base_of(value)
        if base.op is Ops.BUFFER and base.arg == self.size and in_shape(base, shape) is value:
            return buffer_of(base).ensure_allocated()
        if self.changed:
            raise partial_write_error(self.name)
        part = None if self.symbolic else part_in_memory(tensor)
        if part is not None and part.size == self.size:
            return part
        return memory_of(copied_whole(tensor))[1]

    def _compare(self, tensor: Tensor) -> None:
        """Raise where another capture is for such a tensor."""
        if (
            unbound(tensor.shape) != self.shape
            or tensor.dtype is not self.dtype
            or tensor.device != self.device
        ):
            raise Mismatch(f"{self.name}: was {self._text()}, now {self._text_of_other(tensor)}")
        if tensor.requires_grad is not self.grad:
            raise Changed(f"{self.name}.requires_grad", self.grad, tensor.requires_grad)

    def _text(self) -> str:
        return f"{shape_text(self.shape)} {_short(self.dtype)} on {devices_text(self.device)}"

    def _text_of_other(self, tensor: Tensor) -> str:
        """A tensor's shape, and what else differs."""
        text = shape_text(unbound(tensor.shape))
        if tensor.dtype is not self.dtype:
            text += f" {_short(tensor.dtype)}"
        return text if tensor.device == self.device else f"{text} on {devices_text(tensor.device)}"


def _viewed_whole(node: UOp, shape: tuple[sint, ...], size: int, dtype: DType) -> Buffer | None:
    """The memory of `size` elements that a node is a plain view of; None where it takes more to say."""
    base = node.src[0] if node.op is Ops.RESHAPE else node
    facts = base.facts
    buffer: Buffer | None = facts.get("buffer")
    if (
        buffer is not None
        and base.op is Ops.BUFFER
        and base.arg == size
        and base.dtype is dtype
        and node.facts.get("shape") == shape
        and buffer._buf is not None
        and "forwarded_to" not in facts
    ):
        return buffer
    return None


class ShardedSpec(TensorSpec):
    """A tensor argument on several devices: in the same parts, each in memory that may be other memory.

    arg    the axis and the devices     parts  shape and elements of memory of each device's part
    """

    __slots__ = ("arg", "shards_like")

    def describe(self, tensor: Tensor, buffers: Sequence[Buffer]) -> None:
        super().describe(tensor, buffers)
        value = peel(tensor._value())
        self.arg: MultiArg = value.arg
        shapes = [unbound(shape_of(part)) for part in value.src]
        self.shards_like = [(s, b.size) for s, b in zip(shapes, buffers, strict=True)]

    @property
    def signature(self) -> tuple[Any, ...]:
        return self.shape, self.dtype, (self.arg, *self.shards_like)

    @property
    def count(self) -> int:
        return len(self.shards_like)

    def _find(self, tensor: Tensor, call: Call) -> None:
        value = tensor._uop
        if value.op is Ops.MULTI and value.arg == self.arg and tensor.requires_grad is self.grad:
            found = [
                _viewed_whole(part, shape, size, self.dtype)
                for part, (shape, size) in zip(value.src, self.shards_like, strict=True)
            ]
            if None not in found:
                call.buffers += found  # type: ignore[arg-type]  # none of them is None
                return
        self._compare(tensor)
        call.buffers += self._memory_of_shards(tensor)

    def _memory_of_shards(self, tensor: Tensor) -> list[Buffer]:
        put_into_memory(tensor)
        found = whole_memory(tensor)
        if found is None:
            if self.changed:
                raise partial_write_error(self.name)
            tensor = copied_whole(tensor)
            found = whole_memory(tensor)
            assert found is not None  # a copy has memory of its own
        value = peel(tensor._value())
        shapes = [unbound(shape_of(part)) for part in value.src]
        if (
            value.arg != self.arg
            or [(s, b.size) for s, b in zip(shapes, found, strict=True)] != self.shards_like
        ):
            lies = [
                self._lies(arg, shapes)
                for arg, shapes in ((self.arg, [s for s, _ in self.shards_like]), (value.arg, shapes))
            ]
            raise Mismatch(f"{self.name}: was {lies[0]}, now {lies[1]}")
        return found

    @staticmethod
    def _lies(arg: MultiArg, shapes: Sequence[tuple[sint, ...]]) -> str:
        """How a tensor lies on its devices."""
        if arg.axis is None:
            return f"copied on {devices_text(arg.devices)}"
        along = " and ".join(map(str, arg.axes))
        return f"in parts of {', '.join(map(shape_text, shapes))} along axis {along}"


class CapturedSpec(Spec):
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


def spec_for(tensor: Tensor, name: str, number: int, first: int | None = None) -> TensorSpec:
    """The spec of an argument, to be described when it is in memory."""
    return (ShardedSpec if isinstance(tensor.device, tuple) else TensorSpec)(name, number, first)


def partial_write_error(name: str) -> JitError:
    """Why an argument that is no memory of its own is refused."""
    return JitError(
        f"{name} is a part or another view of a larger tensor, and the function writes to it; "
        "pass the whole tensor and index it inside"
    )


def _short(dtype: DType) -> str:
    return repr(dtype)[len("dtypes.") :]
