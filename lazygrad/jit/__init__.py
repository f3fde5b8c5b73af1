"""Functions that run many times: what runs in a call is captured, and replayed in every later one."""

from .environment import asks_nothing
from .errors import JitError, NothingToCapture
from .tinyjit import TinyJit, jit

__all__ = ["JitError", "NothingToCapture", "TinyJit", "asks_nothing", "jit"]
