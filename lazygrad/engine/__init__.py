"""Running: schedules become launches, programs are compiled once, jits replay, DEBUG shows what happens."""

from .capture import JitError
from .jit import TinyJit, jit

__all__ = ["JitError", "TinyJit", "jit"]
