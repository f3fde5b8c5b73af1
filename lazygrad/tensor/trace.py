"""Where a node came from: the public method that was called, and the user's line.

Each public method of Tensor is wrapped; the outermost one that runs is what new nodes remember in
`facts["origin"]`.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ..config import CHECK, DEBUG, TRACEMETA, Decided
from ..device import Device
from ..ir.uop import UOp, origin
from .argument_types import Contract
from .arguments import FAILURES, explained
from .autocasting import autocasting
from .file_values import in_memory
from .names import own_names, renamed_arguments
from .observer import observing
from .storage import as_new, gives_views
from .tracebacks import shorten, shows_all, wraps_only

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


class Metadata(NamedTuple):
    """The method that made a node, and the user's line that called it: empty unless TRACEMETA=2, CHECK or
    DEBUG=2 asks for lines.
    """

    name: str
    line: str = ""

    def __repr__(self) -> str:
        shown = self.line and (TRACEMETA.value >= 2 or CHECK.value)
        return f"{self.name} - {self.line}" if shown else self.name


class _Block(Metadata):
    """What the nodes remember that are made in a block: there the user's code calls methods, too."""

    __slots__ = ()


#: What nodes remember: 0 nothing, 1 the method, 2 the user's line too.
noting = Decided(
    lambda: 0 if not TRACEMETA.value else 1 + bool(TRACEMETA.value >= 2 or CHECK.value or DEBUG.value >= 2)
)


def user_line() -> str:
    """`file:line` of the innermost frame outside this package."""
    frame = sys._getframe(1)
    while frame is not None and not is_users(frame):
        frame = frame.f_back  # type: ignore[assignment]
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame is not None else ""


def warn(text: str, category: type[Warning]) -> None:
    """Warn at the user's line."""
    if observing.by is not None:
        observing.by.warns()
    file, _, number = user_line().rpartition(":")
    warnings.warn_explicit(text, category, file, int(number or 0))


def is_users(frame: types.FrameType) -> bool:
    """Whether a frame is outside this package, and not one of a `with` inside it."""
    file = frame.f_code.co_filename
    return not file.startswith(_PACKAGE) and file != contextlib.__file__


#: (method, class of tensors) → the same method, faster where it was called like that before, which gives new
#: values; None for a method that stays as it is.
Faster = Callable[[Callable[..., Any], type], Callable[..., Any] | None]


def traced(function: Callable[..., Any], tensor: type, faster: Faster | None = None) -> Callable[..., Any]:
    """The method, remembered by the nodes it makes (unless another traced method is running already); its
    results of the class `tensor` are new values, if it is not one that gives views.

    faster  makes it faster where no other traced method is running
    """
    plain = Metadata(function.__name__)
    again = None if faster is None else faster(checked(function), tensor)
    check = again or checked(function)
    makes_new = not gives_views(function.__name__)
    renamed: dict[str, str] = getattr(function, "also_named", {})

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        current = origin.current
        block = current if type(current) is _Block and again is not None else None
        if current is not None and block is None:
            if kwargs and not renamed.keys().isdisjoint(kwargs):
                kwargs = own_names(kwargs, renamed, function.__name__)
            if Device.uses_files and type(current) is _Block:
                args, kwargs = in_memory(function.__name__, args, kwargs, tensor)
            result = function(*args, **kwargs)
            if type(current) is not _Block:
                return result
        else:
            noted = noting()
            if block is not None:
                origin.current = Metadata(*block)
            elif noted:
                origin.current = plain if noted == 1 else Metadata(function.__name__, user_line())
            try:
                if Device.uses_files:
                    args, kwargs = in_memory(function.__name__, args, kwargs, tensor)
                result = check(*args, **kwargs)
                if again is not None:
                    return result
            except Exception as error:
                shorten(error)
                raise
            finally:
                origin.current = block
        if makes_new:
            return as_new(result, tensor, (*args, *kwargs.values()) if kwargs else args)
        return result

    wraps_only(wrapper)  # type: ignore[arg-type]
    return wrapper


def checked(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, made to say of a wrong argument what `traced` ones say; nodes remember what it calls."""
    contract: Contract | None = None
    unchecked = 1  #: of so many arguments in order none is looked at, if the first is a tensor
    renamed: dict[str, str] = getattr(function, "also_named", {})

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        nonlocal contract, unchecked
        try:
            try:
                if kwargs or len(args) > unchecked or not args or not hasattr(args[0], "_uop_or_call"):
                    if contract is None:
                        contract = Contract(function)
                        unchecked = contract.unchecked
                    contract.check(args, kwargs)
                if kwargs and not renamed.keys().isdisjoint(kwargs):
                    return function(*args, **own_names(kwargs, renamed, function.__name__))
                return function(*args, **kwargs)
            except FAILURES as error:
                better = explained(function, args, kwargs, error)
                if better is None:
                    raise
                raise better from (error if shows_all() else None)
        except Exception as error:
            shorten(error)
            raise

    wraps_only(wrapper)  # type: ignore[arg-type]
    return wrapper


@contextlib.contextmanager
def called(name: str) -> Iterator[None]:
    """Within the block new nodes remember this name, unless a traced method is running already."""
    noted = noting()
    if origin.current is not None or not noted:
        yield
        return
    origin.current = _Block(name, user_line() if noted == 2 else "")
    try:
        yield
    finally:
        origin.current = None


def note_line(node: UOp, name: str) -> None:
    """With TRACEMETA=2, remember the user's line on a node that no traced method made."""
    if TRACEMETA.value >= 2 and "origin" not in node.facts:
        node.facts["origin"] = Metadata(name, user_line())


#: Methods that make no nodes, or whose nodes belong to what they call.
_NO_ORIGIN = """
    __init__ __new__ __repr__ __hash__ __len__ __init_subclass__ __class_getitem__ __del__ __bool__ __float__
    __int__ __index__ __floor__ __ceil__ __trunc__ __iter__ __format__ __array__ __array_ufunc__
    __array_function__ __array_namespace__ __dlpack__ __dlpack_device__ numpy tolist item data realize
    to_torch to_jax kernelize schedule schedule_with_vars kernels numel size dim element_size nbytes
    requires_grad_ sequential
"""
_UNTRACED = frozenset(_NO_ORIGIN.split())


def trace_methods(cls: type, faster: Faster) -> None:
    """Wrap every public function and operator that the class and its bases define; a public one may be given
    its arguments by their second names (names.py)."""
    for base in reversed(cls.__mro__):
        if not base.__module__.startswith(__package__ or "lazygrad.tensor"):
            continue
        for name, member in list(vars(base).items()):
            public, operator = not name.startswith("_"), name.startswith("__") and name not in _UNTRACED
            kind, function = type(member), getattr(member, "__func__", member)
            if not (public or operator or name == "__init__") or not isinstance(function, types.FunctionType):
                continue
            second = renamed_arguments(function) if public else {}
            if second:
                function.also_named = second  # type: ignore[attr-defined]
            function = autocasting(function)
            wrapped: Any = checked(function) if name in _UNTRACED else traced(function, cls, faster)
            setattr(cls, name, kind(wrapped) if kind in (classmethod, staticmethod) else wrapped)


def check_functions(names: dict[str, Any]) -> None:
    """Let every public function that a package's files make, or take from Tensor (as_functions.py), say what
    is wrong with its arguments."""
    here = (os.path.dirname(names["__file__"]), os.path.join(os.path.dirname(__file__), "as_functions.py"))
    for name, member in list(names.items()):
        own = isinstance(member, types.FunctionType) and member.__code__.co_filename.startswith(here)
        if own and not name.startswith("_"):
            member.__name__ = name  # `unfold`, though the method is `im2col`
            names[name] = checked(member)
