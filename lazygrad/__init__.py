"""lazygrad: a lazy tensor library and kernel compiler.

What you type builds a graph; when a value is needed, the graph is cut into fused kernels that lazygrad itself
generates.
"""

from typing import Any

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

__all__ = [
    "CheckError",
    "Context",
    "Device",
    "Function",
    "JitError",
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
    "kernels",
    "load_exported",
    "memory",
    "no_grad",
    "value_and_grad",
    "vjp",
    "vmap",
]
__version__ = "0.1.0"


#: What is loaded when it is first asked for.
_LATER = {"export", "load_exported"}


def __getattr__(name: str) -> Any:
    if name in _LATER:
        from . import exporting

        globals().update({each: getattr(exporting, each) for each in _LATER})
        return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _load_classic_style() -> None:
    from .compat import classic_text  # noqa: F401


announce_style("classic", _load_classic_style)
