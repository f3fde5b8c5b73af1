"""The device of a tensor: moving it to another one, and sharding it over several (docs/sharding.md)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Self

from ..device import Device, Devices
from ..dtype import DTypeSaid, says_dtype
from ..ir.ops import Ops
from ..ir.uop import UOp
from ..schedule.collectives import spans_of
from ..schedule.multi import sharded, value_of
from ..shape.sizes import shape_text
from .face import Tensor
from .signatures import DTypeLike
from .sources import copied, read_from
from .storage import base_of


def in_parts(tensor: Tensor, devices: tuple[str, ...], axis: int, spans: Sequence[tuple[int, int]]) -> Tensor:
    """A tensor on several devices, in parts along an axis that begin and end as said, one after another."""
    source = tensor if Device.runs_kernels(tensor.device) else tensor.to(devices[0])
    return source._unary(sharded(source.uop, axis, devices, spans))


class Sharding(Tensor):
    """Methods that move."""

    def to(
        self,
        device: Devices | DTypeSaid | Tensor | None = None,
        dtype: DTypeLike = None,
        non_blocking: bool = False,
        copy: bool = False,
    ) -> Tensor:
        """A copy on another device, or in another dtype; the tensor itself if it is there already.

        Of a sharded tensor the parts are gathered; several devices take a copy each (`shard`).

        device        a device or several, a dtype instead, or a tensor that is there and has the dtype
        non_blocking  PyTorch's; every copy is computed when it is asked for
        copy          a copy in memory of its own in any case

        >>> Tensor([1]).to("CPU").device
        'CPU'
        >>> Tensor([1]).to(dtype="float16").tolist()
        [1.0]
        """
        wanted: DTypeLike = dtype
        if isinstance(device, Tensor):
            place, wanted = device.device, dtype or device.dtype
        elif device is not None and not isinstance(device, (tuple, int)) and says_dtype(device):
            place, wanted = self.device, dtype or device
        else:
            named: Any = device
            place = self.device if device is None and dtype is not None else Device.present(named)
        moved: Any = self._on(place)
        moved = moved if wanted is None else moved.cast(wanted)
        return moved.clone() if copy else moved  # type: ignore[no-any-return]

    def _on(self, name: Devices) -> Tensor:
        if name == self.device:
            return self
        if isinstance(name, tuple):
            return self.shard(name)
        if not Device.runs_kernels(self.device) and base_of(self.uop).op is Ops.COPY:
            type(self)._make(base_of(self.uop)).realize()  # a part of a file is read from the file
        node = copied(self.uop, name) if Device.runs_kernels(self.device) else read_from(self.uop, name)
        return self._unary(node)

    def shard(self, devices: Sequence[str] | Devices, axis: int | None = None) -> Tensor:
        """One tensor on several devices: in parts along `axis`, or a copy on each where it is None.

        If the size is not divisible, the first parts are larger by one element; an axis has at least one
        element for each device. On one device it is `to`.

        >>> Tensor([1, 2, 3]).shard(("CPU", "CPU:1"), axis=0).mul(2).tolist()
        [2, 4, 6]
        """
        if not isinstance(devices, Iterable):
            raise TypeError(f"shard takes the names of devices, not {devices!r}")
        names = Device.present(devices if isinstance(devices, str) else tuple(devices))
        place = None if axis is None else self._shard_place(axis)
        if isinstance(names, str):
            return self.to(names)
        if self.device == names and self.shard_axis == place:
            return self
        size = 0 if place is None else self.shape[place]
        if isinstance(size, UOp):
            raise NotImplementedError(
                f"shard along axis {axis} of shape {shape_text(self.shape)}, whose size is symbolic"
            )
        if place is not None and size < len(names):
            raise ValueError(
                f"shard along axis {axis} of shape {shape_text(self.shape)}: {size} elements for "
                f"{len(names)} devices; name fewer devices, another axis, or no axis for a copy on each"
            )
        source = self if Device.runs_kernels(self.device) else self.to(names[0])
        return self._unary(sharded(source.uop, place, names))

    def _shard_place(self, axis: Any) -> int:
        if not hasattr(axis, "__index__"):
            raise TypeError(f"shard's axis must be an int or None, not {axis!r}")
        if not -self.ndim <= axis < self.ndim:
            axes = f"its axes are from {-self.ndim} to {self.ndim - 1}" if self.ndim else "leave out the axis"
            raise IndexError(
                f"shard along axis {axis}: a tensor of shape {shape_text(self.shape)} has none; {axes}"
            )
        return int(axis) % self.ndim

    @property
    def shard_axis(self) -> int | None:
        """The axis along which the tensor is in parts on several devices; None for copies, or one device."""
        return value_of(self.uop).arg.axis if isinstance(self.device, tuple) else None

    def shard_like(self, other: Tensor) -> Tensor:
        """This tensor on the devices of another, split along the same axis or copied as that is.

        >>> Tensor([1, 2]).shard_like(Tensor([3, 4]).shard(("CPU", "CPU:1"), axis=0)).shard_axis
        0
        """
        return self.shard(other.device, other.shard_axis)

    def _laid_as(self, other: Tensor) -> Tensor:
        """This new tensor of another's shape, on the same devices, in parts that lie as the other's.

        It is a leaf that requires a gradient if this one is.
        """
        if other.shard_axis is None:
            return self
        value = value_of(other.uop)
        laid = in_parts(self.detach(), value.arg.devices, value.arg.axis, spans_of(value))
        return laid.requires_grad_() if self.requires_grad else laid

    def shard_(self, devices: Sequence[str] | Devices, axis: int | None = None) -> Self:
        """`shard` in place: for the parameters of a model.

        >>> Tensor([1, 2]).shard_(("CPU", "CPU:1"), axis=0).device
        ('CPU', 'CPU:1')
        """
        moved = self.shard(devices, axis)
        if moved is not self:
            self._set(moved.uop)
        return self

    def to_(self, device: Devices | None) -> Self:
        """Move this tensor to another device, in place.

        >>> Tensor([1]).to_("CPU").device
        'CPU'
        """
        moved = self.to(device)
        if moved is not self:
            self._set(moved.uop)
        return self
