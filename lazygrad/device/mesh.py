"""Devices in a grid with named axes, which say how a tensor is spread over them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..ir.args import MeshArg
from .registry import Device
from .world import first_devices


class Mesh(MeshArg):
    """Devices in a grid whose axes have names.

    sizes    how many devices lie along each axis
    names    of the axes
    devices  in row-major order; the first ones of the default kind where they are not given

    >>> from lazygrad.distributed import Mesh
    >>> Mesh((2, 2), ("data", "model"))
    Mesh(data=2, model=2: CPU, CPU:1, CPU:2, CPU:3)
    """

    __slots__ = ()

    def __new__(
        cls, sizes: int | Sequence[int], names: str | Sequence[str], devices: Iterable[str] | None = None
    ) -> Mesh:
        """ValueError where names, sizes and devices do not fit each other, or a device is named twice."""
        grid = (sizes,) if isinstance(sizes, int) else tuple(sizes)
        called = (names,) if isinstance(names, str) else tuple(names)
        for size in grid:
            if isinstance(size, bool) or not isinstance(size, int):
                raise TypeError(f"the sizes of a mesh are whole numbers, not {size!r}")
            if size < 1:
                raise ValueError(f"a mesh of sizes {grid}: an axis has at least one device")
        for name in called:
            if not isinstance(name, str) or not name:
                raise TypeError(f"the axes of a mesh are named by strings, not {name!r}")
        if not grid or len(grid) != len(called):
            raise ValueError(f"a mesh has a name for each axis, not {len(called)} for {len(grid)}")
        if len(set(called)) < len(called):
            raise ValueError(f"the axes of a mesh have different names, not {', '.join(called)}")
        count = 1
        for size in grid:
            count *= size
        named = first_devices(count) if devices is None else tuple(devices)
        if len(named) != count:
            sides = " x ".join(map(str, grid))
            raise ValueError(f"a mesh of {sides} has {count} devices, not {len(named)}: {', '.join(named)}")
        found: Any = Device.present(named) if count > 1 else (Device.canonicalize(named[0]),)
        made: Mesh = MeshArg.__new__(cls, found, grid, called)
        return made

    def size(self, name: str) -> int:
        """How many devices lie along an axis."""
        return self.sizes[self.axis_number(name)]

    def axis_number(self, name: str) -> int:
        """Which axis has a name; ValueError where none has."""
        if name not in self.names:
            raise ValueError(f"{name!r} is no axis of {self}; there are {', '.join(self.names)}")
        return self.names.index(name)

    def __repr__(self) -> str:
        axes = ", ".join(f"{name}={size}" for name, size in zip(self.names, self.sizes, strict=True))
        shown = self.devices if len(self.devices) <= 8 else (*self.devices[:7], "...", self.devices[-1])
        return f"Mesh({axes}: {', '.join(shown)})"
