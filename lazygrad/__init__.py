"""lazygrad: a lazy tensor library and kernel compiler.

What you type builds a graph; when a value is needed, the graph is cut into fused kernels that lazygrad itself
generates.
"""

from .compat import classic_text as _classic_text  # noqa: F401  DEBUG_STYLE=classic is known by it
from .config import Context
from .device import Device
from .dtype import dtypes
from .engine import JitError, TinyJit, jit
from .engine.check import CheckError
from .ir import UOp, Variable
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
    "grad",
    "gradcheck",
    "hessian",
    "jacobian",
    "jit",
    "jvp",
    "kernels",
    "memory",
    "no_grad",
    "value_and_grad",
    "vjp",
    "vmap",
]
__version__ = "0.1.0"
