"""Text becomes running code: one file per device, found by its name, and imported when first asked for.

Each holds a class `<Name>Device`. Files that begin with `_` serve several: memory, calls, the disk cache.
"""

from ._cache import diskcache_clear, diskcache_get, diskcache_put

__all__ = ["diskcache_clear", "diskcache_get", "diskcache_put"]
