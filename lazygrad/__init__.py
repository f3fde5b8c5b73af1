"""lazygrad: a lazy tensor library and kernel compiler.

What you type builds a graph; when a value is needed, the graph is cut into fused kernels that lazygrad itself
generates.
"""

from .config import Context
from .device import Device
from .dtype import dtypes
from .ir import UOp, Variable
from .tensor import Tensor, enable_grad, no_grad

__all__ = ["Context", "Device", "Tensor", "UOp", "Variable", "dtypes", "enable_grad", "no_grad"]
__version__ = "0.1.0"
