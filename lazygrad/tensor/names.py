"""Other names: of methods, as numpy and PyTorch have them; of arguments, `dim` for `axis` and the reverse."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .random.distributions import DistributionsMixin as Base
from .unknown import unknown_name

#: Arguments that may be given by either name.
EITHER = {"axis": "dim", "dim": "axis", "keepdims": "keepdim", "keepdim": "keepdims"}


class NamesMixin(Base):
    """Methods by their other names."""

    __slots__ = ()

    absolute = Base.abs
    arccos = Base.acos
    arccosh = Base.acosh
    arcsin = Base.asin
    arcsinh = Base.asinh
    arctan = Base.atan
    arctan2 = Base.atan2
    arctanh = Base.atanh
    bitwise_left_shift = Base.lshift
    bitwise_right_shift = Base.rshift
    concat = Base.cat
    concatenate = Base.cat
    divide = Base.div
    fix = Base.trunc
    ger = Base.outer
    greater = Base.gt
    greater_equal = Base.ge
    less = Base.lt
    less_equal = Base.le
    multiply = Base.mul
    ndimension = Base.dim
    nelement = Base.numel
    not_equal = Base.ne
    pinverse = Base.pinv
    sgn = Base.sign
    split_with_sizes = Base.split
    subtract = Base.sub
    true_divide = Base.div
    unsafe_chunk = Base.chunk
    unsafe_split = Base.split
    unsafe_split_with_sizes = Base.split

    if not TYPE_CHECKING:  # a type checker knows all attributes, and should go on refusing the others

        def __getattr__(self, name: str) -> Any:
            raise AttributeError(unknown_name(type(self), name))


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
