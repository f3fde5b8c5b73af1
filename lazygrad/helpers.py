"""Other names for what is elsewhere: the helpers that scripts import from one place. No logic is here."""

from .config import DEBUG, JIT, NOOPT, Context, ContextVar, getenv
from .device import GlobalCounters
from .device.allocator import flat_bytes as flat_mv
from .device.views import from_mv, mv_address, to_mv
from .nn.files import fetch, temp
from .progress import HMS, SI, tqdm, trange
from .report.terminal import colored
from .runtime._cache import diskcache_clear, diskcache_get, diskcache_put
from .shape.sizes import prod
from .timing import Profiling, Timing

__all__ = [
    "DEBUG",
    "HMS",
    "JIT",
    "NOOPT",
    "SI",
    "Context",
    "ContextVar",
    "GlobalCounters",
    "Profiling",
    "Timing",
    "colored",
    "diskcache_clear",
    "diskcache_get",
    "diskcache_put",
    "fetch",
    "flat_mv",
    "from_mv",
    "getenv",
    "mv_address",
    "prod",
    "temp",
    "to_mv",
    "tqdm",
    "trange",
]
