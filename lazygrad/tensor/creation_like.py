"""Tensors like another one: of its dtype, on its device, or of its shape."""

from __future__ import annotations

from typing import Any

from ..device import Device, Devices
from ..dtype import ConstType, dtypes, to_dtype
from .creation import sizes_of
from .face import Tensor
from .signatures import DTypeLike


class CreationLike(Tensor):
    """Methods that make a tensor like this one."""

    def randint_like(self, low: int, high: int | None = None, **more: Any) -> Tensor:
        """Whole numbers from low (0 if only one bound is given) to high, which is not included, in the shape,
        dtype and on the device of this tensor.

        >>> Tensor([1, 2]).randint_like(3, 4).tolist()
        [3, 3]
        """
        bounds = (0, low) if high is None else (low, high)
        whole = self.dtype if dtypes.is_int(self.dtype) else dtypes.int64
        made = self.randint(
            *self.shape,
            low=bounds[0],
            high=bounds[1],
            dtype=whole,
            device=self.device,
            generator=more.get("generator"),
        )
        return made.cast(more.get("dtype", self.dtype))

    def new_full(self, size: Any, fill_value: ConstType, **more: Any) -> Tensor:
        """One value in a shape, in the dtype and on the device of this tensor.

        >>> Tensor([1.0]).new_full((2,), 3).tolist()
        [3.0, 3.0]
        """
        return self.full(size, fill_value, **{"dtype": self.dtype, "device": self.device, **more})

    def new_zeros(self, *size: Any, **more: Any) -> Tensor:
        """Zeros in the dtype and on the device of this tensor.

        >>> Tensor([1]).new_zeros(2).tolist()
        [0, 0]
        """
        return self.new_full(sizes_of(size), 0, **more)

    def new_ones(self, *size: Any, **more: Any) -> Tensor:
        """Ones in the dtype and on the device of this tensor.

        >>> Tensor([1]).new_ones(2).tolist()
        [1, 1]
        """
        return self.new_full(sizes_of(size), 1, **more)

    def new_empty(self, *size: Any, **more: Any) -> Tensor:
        """Memory in the dtype and on the device of this tensor; it reads zeros.

        >>> Tensor([1]).new_empty(2).shape
        (2,)
        """
        return self.empty(*sizes_of(size), **{"dtype": self.dtype, "device": self.device, **more})

    def new_tensor(self, data: Any, *, dtype: DTypeLike = None, device: Devices | None = None) -> Tensor:
        """Data as a tensor in the dtype and on the device of this one.

        >>> Tensor([1.0]).new_tensor([2, 3]).tolist()
        [2.0, 3.0]
        """
        chosen = self.dtype if dtype is None else to_dtype(dtype)
        made: Any = type(self)(data, device=Device.present(device or self.device), dtype=chosen)
        return made  # type: ignore[no-any-return]

    def cpu(self) -> Tensor:
        """The tensor on device CPU.

        >>> Tensor([1]).cpu().device
        'CPU'
        """
        return self.to("CPU")

    def cuda(self, device: int | str | None = None) -> Tensor:
        """The tensor on device CUDA, or on device number `device`; DeviceError if there is none.

        >>> Tensor([1]).cuda("cpu").device  # a whole name says another one
        'CPU'
        """
        return self.to(cuda_name(device))


def cuda_name(device: int | str | None) -> str:
    """What `cuda(device)` means: a number of CUDA, or a whole name."""
    if isinstance(device, str):
        return device
    return "CUDA" if device is None else f"CUDA:{device}"
