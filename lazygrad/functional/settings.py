"""What PyTorch sets for a whole process, where there is such a thing here."""

from __future__ import annotations

from typing import Any

from ..config import THREADS
from ..device import Device
from ..dtype import DType, dtypes, to_dtype
from ..tensor import Tensor
from ..tensor.modes import mode

#: What `set_float32_matmul_precision` takes. All products of float32 are computed in float32.
_PRECISIONS = ("highest", "high", "medium")
_asked = {"matmul": "highest"}


def is_grad_enabled() -> bool:
    """Whether what is computed now is recorded for gradients; `no_grad` and `enable_grad` set it.

    >>> with Tensor.no_grad(): functional.is_grad_enabled()
    False
    """
    return mode.grad


def get_default_dtype() -> DType:
    """The dtype of floats that nobody gave another.

    >>> functional.get_default_dtype()
    dtypes.float
    """
    return dtypes.default_float


def set_default_dtype(d: Any) -> None:
    """Make it another: float16, bfloat16, float32 or float64.

    >>> functional.set_default_dtype("float64"); made = Tensor([1.5]); functional.set_default_dtype("float32")
    >>> made.dtype
    dtypes.double
    """
    dtype = to_dtype(d)
    if not dtypes.is_float(dtype):
        raise TypeError(f"set_default_dtype takes a dtype of floats, not {dtype.name}")
    dtypes.default_float = dtype


def get_default_device() -> str:
    """The name of the device on which tensors are made.

    >>> functional.get_default_device() == Tensor([1.0]).device
    True
    """
    return Device.DEFAULT


def set_default_device(device: str) -> None:
    """Make tensors on another device from now on."""
    Device.DEFAULT = Device.present(device)


def get_num_threads() -> int:
    """How many threads run a large kernel (the flag THREADS).

    >>> functional.get_num_threads() >= 1
    True
    """
    return int(THREADS.value)


def set_num_threads(num: int) -> None:
    """Make it another number; results are the same for any."""
    if isinstance(num, bool) or not isinstance(num, int) or num < 1:
        raise ValueError(f"set_num_threads takes a number of threads, from 1 on, not {num!r}")
    THREADS.set_default(num)


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Nothing to set: all algorithms are deterministic, whatever is asked for."""


def are_deterministic_algorithms_enabled() -> bool:
    """True: all algorithms are deterministic.

    >>> functional.are_deterministic_algorithms_enabled()
    True
    """
    return True


def get_float32_matmul_precision() -> str:
    """What `set_float32_matmul_precision` was called with; "highest" before.

    >>> functional.get_float32_matmul_precision()
    'highest'
    """
    return _asked["matmul"]


def set_float32_matmul_precision(precision: str) -> None:
    """Allow products of float32 to be computed with fewer digits; they are not: each has float32's."""
    if precision not in _PRECISIONS:
        raise ValueError(
            f"set_float32_matmul_precision takes {', '.join(_PRECISIONS[:-1])} or {_PRECISIONS[-1]}, "
            f"not {precision!r}"
        )
    _asked["matmul"] = precision


def is_complex(input: Tensor) -> bool:
    """False: there are no complex dtypes; what `fft` calls complex are pairs of floats, a last axis of 2.

    >>> functional.is_complex(Tensor([1.0]))
    False
    """
    return False


def is_inference_mode_enabled() -> bool:
    """Whether nothing is recorded: `Tensor.inference_mode` is `no_grad` here.

    >>> with Tensor.inference_mode(): functional.is_inference_mode_enabled()
    True
    """
    return not mode.grad
