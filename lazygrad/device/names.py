"""`lazygrad.device("cuda:1")`, the name of a device as an object; this package is called to make it."""

from __future__ import annotations

import types

from .registry import Device


class DeviceName(str):
    """The canonical name of a device, "CUDA:1": equal to what `x.device` says, and taken wherever one is.

    It is a name alone: whether there is such a device is found out when a tensor is put on it.

    >>> name = lazygrad.device("cpu")
    >>> name, name.type, name.index, Tensor([1], device=name).device == name
    ('CPU', 'cpu', None, True)
    """

    __slots__ = ()

    def __new__(cls, device: str, index: int | None = None) -> DeviceName:
        """`device` with its number, as in "cuda:1", or with `index`."""
        if index is None:
            return super().__new__(cls, Device.canonicalize(device))
        if isinstance(index, bool) or not isinstance(index, int) or index < 0:
            raise ValueError(f"the index of a device must be a whole number of at least 0, not {index!r}")
        if ":" in device:
            raise ValueError(f"{device!r} has a number already; give it without, or leave out index={index}")
        return super().__new__(cls, Device.canonicalize(f"{device}:{index}"))

    @property
    def type(self) -> str:
        """The kind, in small letters as PyTorch has it."""
        return self.partition(":")[0].lower()

    @property
    def index(self) -> int | None:  # type: ignore[override]
        """The number behind the colon; None for the first one."""
        number = self.partition(":")[2]
        return int(number) if number.isdigit() else None


class CallablePackage(types.ModuleType):
    """The class of a package that is called to name a device."""

    __call__ = staticmethod(DeviceName)
