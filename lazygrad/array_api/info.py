"""What the standard lets a function ask of a library: devices, dtypes, what it can do."""

from __future__ import annotations

from typing import Any

from ..device import Device
from ..dtype import default_float, default_int
from .data_types import DTYPES, isdtype


class Info:
    """What `__array_namespace_info__()` gives."""

    def capabilities(self) -> dict[str, Any]:
        """Masks as indices, and results whose sizes are data: they read values, so no jit has them."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": None}

    def default_device(self) -> str:
        """The device of arrays for which none is named."""
        return Device.DEFAULT

    def devices(self) -> list[str]:
        """The default device and the CPU; `python -m lazygrad devices` finds others."""
        return sorted({Device.DEFAULT, "CPU"})

    def default_dtypes(self, *, device: Any = None) -> dict[str, Any]:
        """The dtypes of arrays for which none is named."""
        whole = default_int()
        return {"real floating": default_float(), "integral": whole, "indexing": whole}

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, Any]:
        """The standard's dtypes that are there, or those of a kind."""
        return {name: dtype for name, dtype in DTYPES.items() if kind is None or isdtype(dtype, kind)}
