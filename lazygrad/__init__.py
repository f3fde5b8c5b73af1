"""lazygrad: a lazy tensor library and kernel compiler.

What you type builds a graph; when a value is needed, the graph is cut into fused kernels that lazygrad itself
generates.
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from .config import Context
from .device import Device
from .dtype import dtypes
from .ir import UOp, Variable, announce_style
from .jit import JitError, TinyJit, jit
from .report.check import CheckError
from .tensor import (
    Function,
    Tensor,
    checkpoint,
    enable_grad,
    grad,
    gradcheck,
    hessian,
    jacobian,
    jvp,
    kernels,
    memory,
    no_grad,
    value_and_grad,
    vjp,
    vmap,
)

if _TYPE_CHECKING:
    from .tensor.own_kernels import KernelError, kernel

__all__ = [
    "CheckError",
    "Context",
    "Device",
    "Function",
    "JitError",
    "KernelError",
    "Tensor",
    "TinyJit",
    "UOp",
    "Variable",
    "checkpoint",
    "dtypes",
    "enable_grad",
    "export",
    "grad",
    "gradcheck",
    "hessian",
    "jacobian",
    "jit",
    "jvp",
    "kernel",
    "kernels",
    "load",
    "load_exported",
    "memory",
    "no_grad",
    "value_and_grad",
    "vjp",
    "vmap",
]
__version__ = "0.1.0"


def load(path: _Any) -> _Any:
    """What a file holds, whatever it is called: its format is told by its bytes.

    path  a file, a folder with one model in it, or the index of weights in several files

    - safetensors, GGUF, `.npz`: tensors by name (`nn.formats.Weights`), those in blocks as
      `nn.quantized.QuantizedTensor`; what else the file states is its `.metadata`
    - a PyTorch checkpoint: the object that `torch.save` was given, with Tensors in place of PyTorch's
    - `.npy`: a tensor
    - ONNX: a function on a dict of tensors (`nn.onnx.OnnxRunner`)

    Tensors stay in the file until they are needed. `nn.formats.FileFormatError` says what is wrong with a
    file, NotImplementedError what of it is not read.
    """
    from .nn import formats

    file = formats.file_of(path)
    if formats.format_of(file) == formats.ONNX:
        from .nn.onnx import OnnxRunner

        return OnnxRunner(file)
    return formats.load_weights(file)


def __getattr__(name: str) -> _Any:
    """What is loaded when it is first asked for."""
    found: _Any
    if name == "export":
        from .exporting import writing

        found = writing.export
    elif name == "load_exported":
        from . import exporting

        found = exporting.load_exported
    elif name in ("kernel", "KernelError"):
        from .tensor import own_kernels

        found = getattr(own_kernels, name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found
    return found


def _load_classic_style() -> None:
    from .compat import classic_text  # noqa: F401


announce_style("classic", _load_classic_style)
