"""Functions that run many times: what runs in a call is captured, and replayed in every later one."""

from .environment import asks_nothing
from .errors import JitError
from .tinyjit import TinyJit, jit

__all__ = ["JitError", "TinyJit", "asks_nothing", "jit"]
