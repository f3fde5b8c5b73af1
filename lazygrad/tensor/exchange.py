"""PyTorch's tensors and JAX's arrays as Tensors, and back, on the same memory where that is on the CPU.

The libraries are imported by the methods that make their tensors only.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..dtype import DType, dtypes, to_dtype
from .face import Tensor
from .host import is_in_order

if TYPE_CHECKING:
    import numpy as np

#: What numpy has no dtype for goes as integers of its width.
_BITS = {1: "uint8", 2: "uint16"}


class Exchange(Tensor):
    """Methods that take and give the tensors of other libraries."""

    @classmethod
    def from_torch(cls, source: Any, *, copy: bool | None = None) -> Tensor:
        """PyTorch's tensor as a Tensor on the CPU. No gradient passes between the two.

        It shares memory, so that a write through either is seen by both, where the tensor is on the CPU and
        its elements lie without holes, in any order of the axes. Others, as `x[::2]` and `x.expand(...)`, are
        copied.

        copy  True: always copy; False: ValueError where memory cannot be shared; None: copy where needed
        """
        torch = sys.modules.get("torch")  # who has a tensor has imported it
        if torch is None or not isinstance(source, torch.Tensor):
            raise TypeError(f"from_torch takes a tensor of PyTorch, not {source!r}")
        dtype = _dtype_of(source.dtype)
        if source.is_nested:
            raise NotImplementedError("lazygrad has no nested tensors; use x.to_padded_tensor(0.0)")
        if source.layout is not torch.strided:
            raise NotImplementedError(f"lazygrad has no tensors of layout {source.layout}; use x.to_dense()")
        x = source.detach().cpu().resolve_neg()
        order = _order(tuple(x.stride()), tuple(x.shape))
        lying = x.permute(order)
        shared = lying.is_contiguous() and x.data_ptr() == source.data_ptr()
        if copy is False and not shared:
            raise ValueError(
                f"from_torch: a tensor on {source.device} of shape {tuple(source.shape)} and strides "
                f"{source.stride()} is copied; copy=False cannot be"
            )
        lying = lying.clone(memory_format=torch.contiguous_format) if copy else lying.contiguous()
        return _on_memory(cls, _bits_of(torch, lying, dtype).numpy(), dtype, order)

    def to_torch(self) -> Any:
        """This tensor as PyTorch's, computed, on the CPU. No gradient passes between the two.

        It shares memory where this tensor's is the CPU's, and its elements lie there without holes, in any
        order of the axes: a write through PyTorch is seen here. Once it is shared, writes to this tensor move
        it to memory of its own.
        """
        torch = _torch()
        x: Tensor = self
        view = x._view_of_memory()
        order = None if view is None else _order(view.strides, view.shape)  # type: ignore[arg-type]
        if order is not None and order != tuple(range(x.ndim)):
            turned = x.permute(order)._view_of_memory()
            if turned is not None and is_in_order(turned):
                return x.permute(order).to_torch().permute([order.index(axis) for axis in range(x.ndim)])
        if x.dtype.fmt is not None or x.dtype is dtypes.bfloat16:
            return torch.from_dlpack(x)
        names = {dtypes.fp8e4m3: torch.float8_e4m3fn, dtypes.fp8e5m2: torch.float8_e5m2}
        return torch.from_numpy(x._shared_array(None)).view(names[x.dtype])

    @classmethod
    def from_jax(cls, source: Any, *, copy: bool | None = None) -> Tensor:
        """JAX's array as a Tensor on the CPU. No gradient passes between the two.

        It shares memory where the array is on one CPU device. JAX's arrays do not change: a write to the
        Tensor moves it to memory of its own.

        copy  True: always copy; False: ValueError where memory cannot be shared; None: copy where needed
        """
        jax = sys.modules.get("jax")  # who has an array has imported it
        if jax is None or not isinstance(source, jax.Array):
            raise TypeError(f"from_jax takes an array of JAX, not {source!r}")
        if isinstance(source, jax.core.Tracer):
            raise TypeError("from_jax: within jax.jit there are no values; call it outside")
        dtype = _dtype_of(source.dtype)
        places = source.devices()
        shared = len(places) == 1 and next(iter(places)).platform == "cpu"
        if copy is False and not shared:
            raise ValueError(f"from_jax: an array on {places} is copied; copy=False cannot be")
        array = _numpy_array(source)
        return _on_memory(cls, array.copy() if copy else array, dtype, tuple(range(array.ndim)))

    def to_jax(self) -> Any:
        """This tensor as JAX's array, computed, on the CPU. No gradient passes between the two.

        It shares memory where this tensor's is the CPU's and begins at a multiple of 64 bytes, as lazygrad's
        own does; else it is a copy. Writes to this tensor move it to memory of its own, so that the array
        keeps its values. TypeError for dtypes of 64 bits, unless JAX has them (`jax_enable_x64`).
        """
        jax = _jax()
        x: Tensor = self
        if x.dtype.itemsize == 8 and not jax.config.jax_enable_x64:
            raise TypeError(
                f"JAX has {x.dtype} after jax.config.update('jax_enable_x64', True) only; else cast"
            )
        if x.dtype.fmt is not None or x.dtype is dtypes.bfloat16:
            return jax.dlpack.from_dlpack(x)
        names = {dtypes.fp8e4m3: jax.numpy.float8_e4m3fn, dtypes.fp8e5m2: jax.numpy.float8_e5m2}
        return jax.lax.bitcast_convert_type(jax.dlpack.from_dlpack(x.bitcast("uint8")), names[x.dtype])


def _on_memory(cls: type[Tensor], array: np.ndarray[Any, Any], dtype: DType, order: Sequence[int]) -> Tensor:
    """A Tensor on an array's memory, in which its axes lie in this order."""
    bits = array if dtype.fmt is not None else array.view(_BITS[dtype.itemsize])
    made: Tensor = cls._of_array(bits, dtype)
    axes = tuple(range(len(order)))
    return made if order == axes else made.permute(tuple(order.index(axis) for axis in axes))


def _torch() -> Any:
    try:
        import torch
    except ImportError as error:
        raise ImportError("this needs PyTorch, which is not installed: pip install torch") from error
    return torch


def _jax() -> Any:
    try:
        import jax
    except ImportError as error:
        raise ImportError("this needs JAX, which is not installed: pip install jax") from error
    return jax


def _dtype_of(theirs: Any) -> DType:
    """Our dtype for one of another library."""
    name = str(getattr(theirs, "name", theirs)).removeprefix("torch.")
    if name.startswith("complex"):
        raise NotImplementedError(f"lazygrad has no complex numbers: it takes no {name}")
    try:
        return to_dtype(theirs)
    except (TypeError, ValueError, KeyError) as error:
        raise NotImplementedError(f"lazygrad has no dtype like {name}") from error


def _order(strides: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    """The axes as they lie in memory, the outermost first; those of one element stay where they are."""
    places = [axis for axis, size in enumerate(shape) if size > 1]
    moved = iter(sorted(places, key=lambda axis: -strides[axis]))
    return tuple(next(moved) if size > 1 else axis for axis, size in enumerate(shape))


def _bits_of(torch: Any, x: Any, dtype: DType) -> Any:
    """PyTorch's tensor in a dtype that numpy has: bfloat16 and fp8 as integers."""
    return x if dtype.fmt is not None else x.view({1: torch.uint8, 2: torch.uint16}[dtype.itemsize])


def _numpy_array(source: Any) -> np.ndarray[Any, Any]:
    import numpy as np

    return np.asarray(source)
