"""`@lazygrad.kernel`: a Python function over indices becomes a kernel like any other.

The function runs once, with symbols in place of indices and elements (`values.py`, `arrays.py`); what it does
with them is recorded as steps (`recording.py`). Steps that only load, compute, reduce and store each element
once are a tensor graph (`graphs.py`); others are a PROGRAM, whose steps are the kernel.
"""

from .calling import OwnFunction, kernel
from .recording import KernelError

__all__ = ["KernelError", "OwnFunction", "kernel"]
