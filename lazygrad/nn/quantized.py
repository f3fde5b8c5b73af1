"""Weights that stay quantised: a tensor of blocks that is multiplied, looked up and sliced as it is.

The blocks lie in their file until the tensor is needed. Then they are split into planes once
(`block_formats`), on the device that computes; a product dequantises in the kernel that multiplies, so
float32 weights are never in memory.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ..device import Buffer, Device, Devices, lock_across_fork
from ..dtype import dtypes, numpy_name
from ..engine.realize import read_into
from ..ir.uop import UOp
from ..shape import shape_text
from ..tensor import Tensor
from .block_formats import BlockFormat, Plane, format_named
from .frozen_weights import FrozenWeights, check_indices

Key = int | slice | tuple[int | slice, ...]


class QuantizedTensor(FrozenWeights):
    """A tensor of floats, held as blocks along its last axis.

    blocks  uint8 of shape (..., blocks of a row, bytes of a block), in memory or in a file
    format  a row of `block_formats.FORMATS`, or its name: "Q4_1"

    Its dtype is float32: what dequantising gives. It is not trained, and not written to.
    """

    def __init__(self, blocks: Tensor, format: BlockFormat | str) -> None:
        self.format = format_named(format) if isinstance(format, str) else format
        if not isinstance(blocks, Tensor):
            raise TypeError(f"blocks must be a Tensor of bytes, not {type(blocks).__name__}")
        if blocks.dtype is not dtypes.uint8 or blocks.ndim < 2 or blocks.shape[-1] != self.format.nbytes:
            raise ValueError(
                f"blocks of {self.format.name} are uint8 of shape (..., blocks, {self.format.nbytes}), not "
                f"{blocks.dtype} of shape {shape_text(blocks.shape)}"
            )
        *rows, count, _ = known(blocks.shape)
        self.shape: tuple[int, ...] = (*rows, count * self.format.elements)
        self._blocks: Tensor | None = blocks
        self._planes: dict[str, Tensor] = {}

    @classmethod
    def of_planes(cls, planes: Mapping[str, Tensor], format: BlockFormat | str) -> QuantizedTensor:
        """From planes of shape (..., blocks) or (..., blocks, count), as `format.planes` lists them."""
        made = object.__new__(cls)
        made.format = format_named(format) if isinstance(format, str) else format
        made._blocks = None
        made._planes = {plane.name: planes[plane.name] for plane in made.format.planes}
        first = made.format.planes[0]
        whole = made._planes[first.name].shape
        rows = whole if first.count == 1 else whole[:-1]
        for plane in made.format.planes:
            wanted = rows if plane.count == 1 else (*rows, plane.count)
            each = made._planes[plane.name]
            held = made.format.memory_dtype(plane)
            if not rows or each.shape != wanted or each.dtype not in (plane.dtype, held):
                raise ValueError(
                    f"plane {plane.name} of {made.format.name} beside {first.name} of shape "
                    f"{shape_text(whole)} is {plane.dtype} of shape {shape_text(wanted)}, not "
                    f"{each.dtype} of shape {shape_text(each.shape)}"
                )
            made._planes[plane.name] = each.cast(held)
        *before, count = known(rows)
        made.shape = (*before, count * made.format.elements)
        return made

    # ---- what it is ----

    @property
    def nbytes(self) -> int:
        """Bytes of its blocks, in memory or in the file."""
        return self.numel() // self.format.elements * self.format.nbytes

    @property
    def device(self) -> Devices:
        """Where its blocks are: `DISK:path` until they are needed."""
        blocks = self._blocks
        return next(iter(self.planes.values())).device if blocks is None else blocks.device

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"<QuantizedTensor {self.format.name} {shape_text(self.shape)} on {self.device}>"

    # ---- its memory ----

    @property
    def planes(self) -> dict[str, Tensor]:
        """Scales, minima, packed integers, a tensor each. Made once; of blocks in a file, on the default
        device.
        """
        blocks = self._blocks  # asked for first: another thread sets the planes before it lets go of these
        if blocks is not None:
            in_file = not Device.runs_kernels(blocks.device)
            self._planes = _split(blocks, self.format, Device.DEFAULT if in_file else blocks.device)
            self._blocks = None
        return self._planes

    @property
    def memory(self) -> list[Tensor]:
        """The tensors that it is held as: its planes."""
        return list(self.planes.values())

    @property
    def blocks(self) -> Tensor:
        """The blocks as a file holds them: uint8 of shape (..., blocks, bytes)."""
        if (blocks := self._blocks) is not None:
            return blocks
        parts = [
            (each.unsqueeze(-1) if plane.count == 1 else each).cast(plane.dtype).bitcast(dtypes.uint8)
            for plane, each in zip(self.format.planes, self.planes.values(), strict=True)
        ]
        return parts[0].cat(*parts[1:], dim=-1) if len(parts) > 1 else parts[0]

    def realize(self) -> QuantizedTensor:
        """Read and split its blocks now; gives itself."""
        Tensor.realize(*self.planes.values())
        return self

    def to(self, device: Devices | None) -> QuantizedTensor:
        """The same on another device; from a file, the blocks are read and split now."""
        wanted = Device.DEFAULT if device is None else device
        blocks = self._blocks
        if blocks is not None and not Device.runs_kernels(blocks.device):
            return self.of_planes(_split(blocks, self.format, wanted), self.format)
        return self.of_planes({name: each.to(wanted) for name, each in self.planes.items()}, self.format)

    def shard(self, devices: Sequence[str] | Devices, axis: int | None = None) -> QuantizedTensor:
        """The same on several devices: in parts along `axis`, or a copy on each where it is None.

        Along the last axis a part is whole blocks.
        """
        planes = {name: each.shard(devices, self._plane_axis(axis)) for name, each in self.planes.items()}
        return self.of_planes(planes, self.format)

    def _plane_axis(self, axis: int | None) -> int | None:
        """An axis counted from the first: planes may have one more."""
        if axis is None or 0 <= axis < self.ndim:
            return axis
        if -self.ndim <= axis < 0:
            return axis + self.ndim
        raise IndexError(f"shape {shape_text(self.shape)} has no axis {axis}")

    # ---- what it is worth ----

    def dequantize(self) -> Tensor:
        """All of it, float32: an expression, which the kernel that reads it computes."""
        return self.format.elements_of(self.planes)

    def linear(self, x: Tensor) -> Tensor:
        """x @ self.T: (..., columns) → (..., rows), in the dtype of x, summed in float32."""
        if self.ndim != 2:
            raise ValueError(f"linear needs a matrix (rows, columns), not shape {shape_text(self.shape)}")
        self._check_factor(x)
        return (x.cast(dtypes.float32) @ self.dequantize().T).cast(x.dtype)

    def take(self, indices: Tensor) -> Tensor:
        """The rows of these indices, float32 of shape (*indices.shape, *self.shape[1:]); only they are
        dequantised.

        Of a matrix a row is one embedding; of (experts, rows, columns) it is the matrix of one expert.
        """
        if self.ndim < 2:
            raise ValueError(f"take needs rows, not shape {shape_text(self.shape)}")
        check_indices(indices)
        return self.format.elements_of({name: each[indices] for name, each in self.planes.items()})

    def __getitem__(self, key: Key) -> QuantizedTensor:
        """Some rows, still quantised. Blocks lie along the last axis, which is not indexed."""
        keys = key if isinstance(key, tuple) else (key,)
        for each in keys:
            if isinstance(each, bool) or not isinstance(each, (int, slice)):
                raise TypeError(
                    f"rows of a QuantizedTensor are chosen by numbers and slices, not {each!r}; "
                    "take(indices) dequantises rows by a Tensor, dequantize() makes an ordinary one"
                )
        if len(keys) >= self.ndim:
            raise IndexError(
                f"the last axis of shape {shape_text(self.shape)} is in blocks: index the axes before it, or "
                "dequantize() first"
            )
        plain = len(keys) == 1 and (not isinstance(key, slice) or key.step in (None, 1))
        blocks = self._blocks
        if blocks is not None and (plain or Device.runs_kernels(blocks.device)):
            return QuantizedTensor(blocks[keys], self.format)
        return self.of_planes({name: each[keys] for name, each in self.planes.items()}, self.format)


def known(shape: Sequence[int | UOp]) -> tuple[int, ...]:
    sizes = tuple(size for size in shape if isinstance(size, int))
    if len(sizes) < len(shape):
        raise NotImplementedError(f"quantised tensors have sizes that are numbers, not {shape_text(shape)}")
    return sizes


def _split(blocks: Tensor, format: BlockFormat, device: Devices) -> dict[str, Tensor]:
    """The planes of blocks, each with memory of its own on a device."""
    if Device.runs_kernels(blocks.device):
        parts = format.split(blocks.to(device))
        return {
            plane.name: parts[plane.name].cast(format.memory_dtype(plane)).contiguous()
            for plane in format.planes
        }
    import numpy as np

    # numpy copies a field of a record many times faster than a slice of bytes.
    fields: Any = {
        "names": [plane.name for plane in format.planes],
        "formats": [_field_type(plane, format) for plane in format.planes],
        "offsets": [plane.begin for plane in format.planes],
        "itemsize": format.nbytes,
    }
    record, shape = np.dtype(fields), known(blocks.shape)[:-1]
    memory: dict[str, Any] = {}
    for plane in format.planes:
        held = np.dtype(numpy_name(format.memory_dtype(plane)))
        count = math.prod(shape) * plane.count
        memory[plane.name] = _room.take(count * held.itemsize).view(held)
    begin = 0
    for piece in _chunks(blocks, format.nbytes):
        records = piece.view(record)
        for plane in format.planes:
            found = records[plane.name]
            part = memory[plane.name][begin * plane.count : (begin + len(records)) * plane.count]
            if found.dtype.kind == "V":
                part.view(found.dtype)[...] = found
            else:
                part.reshape(found.shape)[...] = found
        begin += len(records)
    planes = {}
    for plane in format.planes:
        whole = shape if plane.count == 1 else (*shape, plane.count)
        shared = Tensor.from_numpy(memory[plane.name].reshape(whole))
        planes[plane.name] = shared if shared.device == device else shared.to(device)
    return planes


def _field_type(plane: Plane, format: BlockFormat) -> str:
    """Bytes that stay as they are, or numbers of which others are made."""
    kept = format.memory_dtype(plane) is plane.dtype
    return f"V{plane.nbytes}" if kept else f"({plane.count},){numpy_name(plane.dtype)}"


def _chunks(blocks: Tensor, nbytes: int) -> Iterator[Any]:
    """The bytes of blocks, a few at a time while they are in a file: each piece in the memory of the one
    before, which stays in cache.
    """
    import numpy as np

    buffer, first, by_parts = blocks._elements()
    count = math.prod(known(blocks.shape))
    if not by_parts or not count:
        yield np.asarray(blocks).reshape(-1)
        return
    most = PIECE // nbytes * nbytes
    held = _scratch.memory
    if held is None:
        held = _scratch.memory = np.empty(PIECE, np.uint8)
    for begin in range(0, count, most):
        piece = held[: min(most, count - begin)]
        read_into(buffer, first + begin, memoryview(piece))
        yield piece


#: So many bytes of a file are taken apart at once.
PIECE = 1 << 19
#: Planes lie together in blocks of so many bytes, which have huge pages: the first touch of as much memory in
#: small ones takes several times as long as reading the file.
ROOM = 8 << 20


class _Scratch(threading.local):
    """What a thread reads into."""

    memory: Any = None


class _Room:
    """Memory for planes, one after another in blocks. A block lives as long as one of its planes."""

    def __init__(self) -> None:
        self._lock = lock_across_fork()
        self._left: Any = None

    def take(self, nbytes: int) -> Any:
        """So many bytes of nobody, from the begin of a line of the cache on: no wide load reads two."""
        import numpy as np

        room = -(-nbytes // 64) * 64
        with self._lock:
            left = self._left
            if room > ROOM // 2 or left is None or len(left) < room:
                block = Buffer("NPY", max(room, ROOM), dtypes.uint8).allocate_uncleared()
                left = np.frombuffer(block.as_buffer(), np.uint8)
                if room > ROOM // 2:
                    return left[:nbytes]
            self._left = left[room:]
            return left[:nbytes]


_scratch, _room = _Scratch(), _Room()


# ---- quantising ----


def _scaled(values: Tensor, scale: Tensor) -> Tensor:
    """Values over their scale; 0 where the scale is 0."""
    return values * (scale == 0).where(0.0, 1.0 / scale)


def _packed(integers: Tensor, bits: int) -> dict[str, Tensor]:
    """(..., 32) integers of 4 or 5 bits as planes: the first half in the low nibbles of 16 bytes, the second
    in the high ones; fifth bits in a word.
    """
    integers = integers.cast(dtypes.uint8)
    packed = {"packed": (integers[..., :16] & 15) | (integers[..., 16:] << 4)}
    if bits == 4:
        return packed
    places = Tensor.arange(32, device=integers.device).cast(dtypes.uint32)
    return {"high": ((integers >> 4).cast(dtypes.uint32) << places).sum(-1, dtype=dtypes.uint32)} | packed


def _half(scale: Tensor) -> Tensor:
    return scale.squeeze(-1).cast(dtypes.float16)


def _with_scale(values: Tensor, bits: int) -> dict[str, Tensor]:
    """Q4_0, Q5_0: the number of the greatest magnitude becomes the least integer, so its sign is the
    scale's."""
    zero = 1 << (bits - 1)
    place = values.abs().argmax(axis=-1, keepdim=True)
    scale = values.gather(-1, place) / -zero
    integers = (_scaled(values, scale) + (zero + 0.5)).floor().clip(0, 2 * zero - 1)
    return {"scale": _half(scale), **_packed(integers, bits)}


def _with_minimum(values: Tensor, bits: int) -> dict[str, Tensor]:
    """Q4_1, Q5_1: the least number becomes 0, the greatest the largest integer."""
    most = (1 << bits) - 1
    least = values.min(axis=-1, keepdim=True)
    scale = (values.max(axis=-1, keepdim=True) - least) / most
    integers = (_scaled(values - least, scale) + 0.5).floor().clip(0, most)
    return {"scale": _half(scale), "minimum": _half(least), **_packed(integers, bits)}


def _to_q8_0(values: Tensor) -> dict[str, Tensor]:
    scale = values.abs().max(axis=-1, keepdim=True) / 127
    scaled = _scaled(values, scale)
    rounded = scaled.sign() * (scaled.abs() + 0.5).floor()  # halves away from zero
    return {"scale": _half(scale), "packed": rounded.cast(dtypes.int8)}


_QUANTIZERS: dict[str, Callable[[Tensor], dict[str, Tensor]]] = {
    "Q4_0": lambda values: _with_scale(values, 4),
    "Q4_1": lambda values: _with_minimum(values, 4),
    "Q5_0": lambda values: _with_scale(values, 5),
    "Q5_1": lambda values: _with_minimum(values, 5),
    "Q8_0": _to_q8_0,
}


def quantize(tensor: Tensor, format: str) -> QuantizedTensor:
    """A tensor of floats as blocks along its last axis, rounded to the nearest that the format has.

    format  "Q4_0", "Q4_1", "Q5_0", "Q5_1" or "Q8_0"; its elements per block (32) divide the last axis
    """
    row = format_named(format)
    if row.name not in _QUANTIZERS:
        raise NotImplementedError(
            f"quantising to {row.name} is not supported, only to {', '.join(_QUANTIZERS)}"
        )
    if not isinstance(tensor, Tensor) or not dtypes.is_float(tensor.dtype):
        raise TypeError(
            f"quantize needs a Tensor of floats, not {getattr(tensor, 'dtype', type(tensor).__name__)}"
        )
    if not tensor.shape or tensor.shape[-1] % row.elements or 0 in tensor.shape:
        raise ValueError(
            f"blocks of {row.name} have {row.elements} elements, which the last axis of shape "
            f"{shape_text(tensor.shape)} is no multiple of"
        )
    here = tensor if Device.runs_kernels(tensor.device) else tensor.to(None)
    values = here.detach().cast(dtypes.float32).unflatten(-1, (-1, row.elements))
    planes = _QUANTIZERS[row.name](values)
    return QuantizedTensor.of_planes({name: each.contiguous() for name, each in planes.items()}, row)
