"""What methods raise, as older scripts catch it.

The releases asserted, or raised a RuntimeError or a NotImplementedError (which is one), where a method here
raises a ValueError, TypeError or IndexError; or another of these three, and an AttributeError for what is no
dtype. Under `install` such an error is all of these: `except RuntimeError` and `except AssertionError` find
it. Its name and its text stay as they are.
"""

from __future__ import annotations

from typing import Any

from ..tensor import trace
from ..tensor.tracebacks import shorten as _shorten


def _also(kind: type[Exception]) -> type[Exception]:
    def reduce(error: Exception) -> tuple[Any, ...]:
        return kind, error.args  # in another process it is the plain one

    names = {"__module__": kind.__module__, "__qualname__": kind.__name__, "__reduce__": reduce}
    others: list[type[Exception]] = [each for each in (ValueError, TypeError, IndexError) if each is not kind]
    if kind is TypeError:
        others.append(AttributeError)
    return type(kind.__name__, (kind, *others, NotImplementedError, AssertionError), names)


#: The class of an error → the one that scripts get.
ALSO: dict[type[BaseException], type[Exception]] = {
    kind: _also(kind) for kind in (ValueError, TypeError, IndexError)
}


def shorten(error: BaseException) -> None:
    """What the wrapper of each method calls with an error that leaves it: raises it as what scripts catch."""
    _shorten(error, depth=2)
    more = ALSO.get(type(error))
    if more is None:
        return
    made = more(*error.args).with_traceback(error.__traceback__)
    for note in getattr(error, "__notes__", ()):
        made.add_note(note)
    raise made from error.__cause__


def install() -> None:
    vars(trace)["shorten"] = shorten


def uninstall() -> None:
    vars(trace)["shorten"] = _shorten
