"""The device of a tensor: moving it to another one, and sharding it over several (docs/sharding.md)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

from ..device import Device, Devices
from ..dtype import DTypeSaid, says_dtype
from ..ir.args import MeshArg, MultiArg
from ..ir.ops import Ops
from ..ir.uop import UOp
from ..schedule.extensions import sharding
from ..schedule.graph.layouts import ends_of_sizes, layout, split
from ..shape.sizes import shape_text
from .face import Tensor
from .placements import Placement
from .signatures import DTypeLike
from .sources import copied, read_from
from .storage import base_of


def in_shards(
    tensor: Tensor, devices: tuple[str, ...], axis: int, spans: Sequence[tuple[int, int]]
) -> Tensor:
    """A tensor on several devices, in parts along an axis that begin and end as said, one after another."""
    ends = ends_of_sizes([end - begin for begin, end in spans])
    return _laid(tensor, layout(MeshArg.of(devices), (axis,), {axis: ends}))


def _laid(tensor: Tensor, target: MultiArg) -> Tensor:
    source = tensor if Device.runs_kernels(tensor.device) else tensor.to(target.local[0])
    return source._unary(sharding().sharded(source.uop, target))


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

    def shard(
        self,
        devices: Sequence[str] | Devices | MeshArg,
        axis: int | Mapping[int, str | Sequence[str]] | None = None,
    ) -> Tensor:
        """One tensor on several devices: in parts along `axis`, or a copy on each where it is None.

        On a Mesh, `axis` says which axes of the tensor are split along which axes of the mesh; along all
        others there are copies. If a size is not divisible, the first parts are larger by one element; an
        axis has at least one element for each part. On one device it is `to`.

        >>> Tensor([1, 2, 3]).shard(("CPU", "CPU:1"), axis=0).mul(2).tolist()
        [2, 4, 6]
        >>> from lazygrad.distributed import Mesh
        >>> mesh = Mesh((2, 2), ("data", "model"))
        >>> Tensor.ones(4, 6).shard(mesh, {0: "data"}).placement
        Placement(data: axis 0, model: copy)
        """
        mesh, places = self._placements(devices, axis)
        if len(mesh.devices) == 1:
            return self.to(mesh.devices[0])
        for place in dict.fromkeys(place for place in places if place is not None):
            self._check_shards(mesh, places, place)
        target = split(mesh, places, self.shape)
        if self.device == mesh.devices and sharding().value_of(self.uop).arg == target:
            return self
        return _laid(self, target)

    def _placements(self, devices: Any, axis: Any) -> tuple[MeshArg, list[Any]]:
        """The mesh that is meant, and what each of its axes does to this tensor."""
        if not isinstance(devices, Iterable):
            raise TypeError(
                f"shard: devices must be a string, a sequence of strings or a Mesh, not {devices!r}"
            )
        if not isinstance(devices, MeshArg):
            if isinstance(axis, Mapping):
                raise TypeError("axes are named where there is a Mesh: shard(mesh, {axis: name})")
            names = Device.present(devices if isinstance(devices, str) else tuple(devices))
            mesh = MeshArg.of((names,) if isinstance(names, str) else names)
            return mesh, [None if axis is None else self._placement(axis)]
        placements: list[Any] = [None] * len(devices.sizes)
        if axis is not None and not isinstance(axis, Mapping):
            raise TypeError(f"on a Mesh shard takes a dict, tensor axis: name of a mesh axis, not {axis!r}")
        for given, named in (axis or {}).items():
            place = self._placement(given)
            for name in (named,) if isinstance(named, str) else tuple(named):
                if name not in devices.names:
                    known = ", ".join(devices.names)
                    raise ValueError(f"shard along {name!r}: the axes of the mesh are {known}")
                number = devices.names.index(name)
                if placements[number] not in (None, place):
                    raise ValueError(
                        f"shard: {name!r} cannot split both axis {placements[number]} and axis {place}"
                    )
                placements[number] = place
        return devices, placements

    def _check_shards(self, mesh: MeshArg, places: Sequence[Any], place: int) -> None:
        size, count = self.shape[place], 1
        for along, split_axis in zip(mesh.sizes, places, strict=True):
            count *= along if split_axis == place else 1
        if isinstance(size, UOp):
            raise NotImplementedError(
                f"shard along axis {place} of shape {shape_text(self.shape)}, whose size is symbolic"
            )
        if size < count:
            raise ValueError(
                f"shard along axis {place} of shape {shape_text(self.shape)}: {size} elements for "
                f"{count} devices; name fewer devices, another axis, or no axis for a copy on each"
            )

    def _placement(self, axis: Any) -> int:
        if not hasattr(axis, "__index__"):
            raise TypeError(f"shard: axis must be an int, not {axis!r}")
        if not -self.ndim <= axis < self.ndim:
            axes = f"its axes are from {-self.ndim} to {self.ndim - 1}" if self.ndim else "leave out the axis"
            raise IndexError(
                f"shard along axis {axis}: a tensor of shape {shape_text(self.shape)} has none; {axes}"
            )
        return int(axis) % self.ndim

    @property
    def shard_axis(self) -> int | None:
        """The axis along which the tensor is in parts on several devices; None for copies, or one device.

        Of several axes, the first; `placement` says all.
        """
        return sharding().value_of(self.uop).arg.axis if isinstance(self.device, tuple) else None

    @property
    def placement(self) -> Placement:
        """How the tensor lies on its devices.

        >>> (Tensor.ones(4, 6).shard(("CPU", "CPU:1"), axis=0) * 2).sum(0).placement
        Placement(devices: pending sum)
        """
        if not isinstance(self.device, tuple):
            return Placement(MultiArg(MeshArg.of((self.device,)), (None,), (), (0,)))
        return Placement(sharding().layout_of_value(self.uop))

    def shard_like(self, other: Tensor) -> Tensor:
        """This tensor on the devices of another, split along the same axes or copied as that is.

        >>> Tensor([1, 2]).shard_like(Tensor([3, 4]).shard(("CPU", "CPU:1"), axis=0)).shard_axis
        0
        """
        if not isinstance(other.device, tuple):
            return self.to(other.device)
        arg = sharding().value_of(other.uop).arg
        axes: dict[int, list[str]] = {}
        for name, place in zip(arg.mesh.names, arg.placements, strict=True):
            if place is not None:
                axes.setdefault(place, []).append(name)
        if self.shape == other.shape:
            same = self.device == other.device and sharding().value_of(self.uop).arg == arg
            return self if same else _laid(self, arg)
        return self.shard(arg.mesh, axes)

    def _laid_as(self, other: Tensor) -> Tensor:
        """This new tensor of another's shape, on the same devices, in parts that lie as the other's.

        It is a leaf that requires a gradient if this one is.
        """
        if other.shard_axis is None:
            return self
        laid = _laid(self.detach(), sharding().value_of(other.uop).arg)
        return laid.requires_grad_() if self.requires_grad else laid

    def shard_(
        self,
        devices: Sequence[str] | Devices | MeshArg,
        axis: int | Mapping[int, str | Sequence[str]] | None = None,
    ) -> Self:
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
