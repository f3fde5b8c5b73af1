"""What methods raise, as older scripts catch it.

The releases asserted, or raised a RuntimeError or a NotImplementedError (which is one), where a method here
raises a ValueError, TypeError or IndexError; or another of these three, and an AttributeError for what is no
dtype. Under `install` such an error is all of these: `except RuntimeError` and `except AssertionError` find
it. Its name and its text stay as they are. A JitError is an AssertionError too.
"""

from __future__ import annotations

from typing import Any

from ..jit import JitError, NothingToCapture, tinyjit
from ..tensor import trace
from ..tensor.tracebacks import shorten as _shorten


def _with(kind: type[Exception], *others: type[Exception]) -> type[Exception]:
    """An error of a class that is one of others too."""

    def reduce(error: Exception) -> tuple[Any, ...]:
        return kind, error.args  # in another process it is the plain one

    names = {"__module__": kind.__module__, "__qualname__": kind.__name__, "__reduce__": reduce}
    return type(kind.__name__, (kind, *others, AssertionError), names)


def _also(kind: type[Exception]) -> type[Exception]:
    others: list[type[Exception]] = [each for each in (ValueError, TypeError, IndexError) if each is not kind]
    if kind is TypeError:
        others.append(AttributeError)
    return _with(kind, *others, NotImplementedError)


#: The class of an error → the one that scripts get.
ALSO: dict[type[BaseException], type[Exception]] = {
    kind: _also(kind) for kind in (ValueError, TypeError, IndexError)
}
ALSO_JIT: dict[type[BaseException], type[Exception]] = {
    kind: _with(kind) for kind in (JitError, NothingToCapture)
}


def shorten(error: BaseException) -> None:
    """What the wrapper of each method calls with an error that leaves it: raises it as what scripts catch."""
    _shorten(error, depth=2)
    more = ALSO.get(type(error))
    if more is not None:
        _raise_as(more, error)


def shorten_in_jit(error: BaseException) -> None:
    """What a jit calls with an error that leaves it, which may be one that the user's function raised."""
    _shorten(error, depth=2)
    more = ALSO_JIT.get(type(error))
    if more is not None:
        _raise_as(more, error)


def _raise_as(kind: type[Exception], error: BaseException) -> None:
    made = kind(*error.args).with_traceback(error.__traceback__)
    for note in getattr(error, "__notes__", ()):
        made.add_note(note)
    raise made from error.__cause__


def install() -> None:
    vars(trace)["shorten"], vars(tinyjit)["shorten"] = shorten, shorten_in_jit


def uninstall() -> None:
    vars(trace)["shorten"] = vars(tinyjit)["shorten"] = _shorten
