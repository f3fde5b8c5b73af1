"""Other names: of methods, as numpy and PyTorch have them; of arguments, `dim` for `axis` and the reverse."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable
from typing import Any

#: Arguments that may be given by either name.
EITHER = {"axis": "dim", "dim": "axis", "keepdims": "keepdim", "keepdim": "keepdims"}
#: Other names of methods.
OTHER_NAMES = {
    "absolute": "abs",
    "arccos": "acos",
    "arccosh": "acosh",
    "arcsin": "asin",
    "arcsinh": "asinh",
    "arctan": "atan",
    "arctan2": "atan2",
    "arctanh": "atanh",
    "bitwise_left_shift": "lshift",
    "bitwise_right_shift": "rshift",
    "concat": "cat",
    "concatenate": "cat",
    "divide": "div",
    "fix": "trunc",
    "ger": "outer",
    "greater": "gt",
    "greater_equal": "ge",
    "less": "lt",
    "less_equal": "le",
    "multiply": "mul",
    "ndimension": "dim",
    "nelement": "numel",
    "not_equal": "ne",
    "pinverse": "pinv",
    "sgn": "sign",
    "split_with_sizes": "split",
    "subtract": "sub",
    "true_divide": "div",
    "unsafe_chunk": "chunk",
    "unsafe_split": "split",
    "unsafe_split_with_sizes": "split",
}


def add_other_names(cls: type) -> None:
    """Let the methods be there under their other names, too."""
    for name, known in OTHER_NAMES.items():
        setattr(cls, name, getattr(cls, known))


def take_either_name(cls: type) -> None:
    """Let every method that has an argument `dim` be called with `axis`, and so on, where it does not say so
    itself."""
    for base in cls.__mro__:
        if not base.__module__.startswith(__package__ or "lazygrad.tensor"):
            continue
        for name, member in list(vars(base).items()):
            if name.startswith("_"):
                continue
            found = member.__func__ if isinstance(member, (classmethod, staticmethod)) else member
            if not isinstance(found, types.FunctionType):
                continue
            renamed = renamed_arguments(found)
            if renamed:
                made: Any = _with_names(found, renamed)
                kind = type(member)
                setattr(base, name, kind(made) if kind in (classmethod, staticmethod) else made)


def renamed_arguments(function: Callable[..., Any]) -> dict[str, str]:
    """The second names of a method's arguments, where it does not say them itself: {second: its own}."""
    known = inspect.signature(function).parameters
    kinds = {name: p.kind for name, p in known.items()}
    if inspect.Parameter.VAR_KEYWORD in kinds.values():
        return {}
    several = inspect.Parameter.VAR_POSITIONAL
    return {
        new: old for new, old in EITHER.items() if new not in known and kinds.get(old, several) is not several
    }


def _with_names(function: Callable[..., Any], renamed: dict[str, str]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        for new in kwargs.keys() & renamed.keys():
            old = renamed[new]
            if old in kwargs:
                raise TypeError(f"{function.__name__}: give {old} or {new}, which are the same, not both")
            kwargs[old] = kwargs.pop(new)
        return function(*args, **kwargs)

    wrapper.also_named = renamed  # type: ignore[attr-defined]
    return wrapper
