"""Running: schedules become launches, what a jit has recorded is replayed."""

from .capture import JitError
from .jit import TinyJit, jit

__all__ = ["JitError", "TinyJit", "jit"]
