"""Whether Python asks for the size of a tensor: then the function may do something else for another size."""

from __future__ import annotations

import inspect
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ..tensor import Tensor
from .bytecode import is_own_file
from .impure_calls import user_who_called

#: Members of a Tensor that tell a size, or what depends on one. (`len` needs one that is known, and says so.)
_TELL_SIZES = (
    *("shape", "size", "numel", "nelement", "nbytes", "__iter__", "__repr__", "is_same_size"),
    *("uop", "lazydata", "placement", "schedule", "schedule_with_vars", "kernels"),
)


@contextmanager
def sizes_are_hidden(refuse: Callable[[str], None]) -> Iterator[None]:
    """Within the block, `refuse` is called where this thread's code asks for a size; lazygrad's own may.

    A library that lazygrad itself has called, as one that counts or caches, may too.
    """
    thread = threading.get_ident()

    def hidden(name: str, member: Any) -> Any:
        found: Any = member.fget if isinstance(member, property) else member

        def wrapper(*args: Any, **kwargs: Any) -> Any:
            caller = sys._getframe(1)
            if threading.get_ident() == thread and not is_own_file(caller.f_code.co_filename):
                if user_who_called(caller) is not None:
                    refuse(f"Python asks for `{name}`")
            return found(*args, **kwargs)

        return property(wrapper) if isinstance(member, property) else wrapper

    before = {name: inspect.getattr_static(Tensor, name) for name in _TELL_SIZES}
    own = {name for name in _TELL_SIZES if name in vars(Tensor)}
    try:
        for name, member in before.items():
            setattr(Tensor, name, hidden(name, member))
        yield
    finally:
        for name, member in before.items():
            if name in own:
                setattr(Tensor, name, member)
            else:
                delattr(Tensor, name)
