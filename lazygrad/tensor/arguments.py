"""What is said of an argument that a method cannot take, where the method itself did not look.

A method checks what it can be given by mistake. Everything else fails somewhere below, in Python's words
(`'str' object has no attribute 'shape'`); here that becomes an error about the argument.
"""

from __future__ import annotations

import dis
import inspect
import numbers
import os
import re
import types
from collections.abc import Callable, Mapping
from typing import Any

from .sources import Graphed

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_RAISE = dis.opmap["RAISE_VARARGS"]
#: How a Tensor prints itself; in an error its shape says enough.
_REPR = re.compile(r"<Tensor <UOp \S+ (\(.*?\)) .*?> on \S+ with grad .*?>", re.DOTALL)
#: What Python raises where a value is not what the code takes it for.
FAILURES = (TypeError, AttributeError, IndexError, KeyError, ValueError, ZeroDivisionError, OverflowError)


def is_tensor(value: Any) -> bool:
    return isinstance(value, Graphed)


#: Annotation → (what it says, whether a value is one).
_KINDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "TensorBase": ("a Tensor", is_tensor),
    "Tensor": ("a Tensor", is_tensor),
    "int": ("an int", lambda value: hasattr(value, "__index__")),
    "float": ("a number", lambda value: isinstance(value, numbers.Real) or is_tensor(value)),
    "str": ("a string", lambda value: isinstance(value, str)),
}


def explained(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any], error: Exception
) -> Exception | None:
    """The error to raise instead; None where the one that was raised speaks for itself."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None or not trace.tb_frame.f_code.co_filename.startswith(_PACKAGE):
        return None
    if _is_raised(trace):
        plain = _REPR.sub(r"a Tensor of shape \1", str(error))
        return type(error)(plain) if len(error.args) == 1 and plain != str(error) else None
    name, signature = function.__name__, inspect.signature(function)
    kind = TypeError if isinstance(error, (TypeError, AttributeError)) else ValueError
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError:
        return TypeError(str(error).replace(function.__qualname__, f"Tensor.{name}"))
    given = {key: value for key, value in bound.arguments.items() if key not in ("self", "cls")}
    for key, value in given.items():
        parameter = signature.parameters[key]
        wanted = str(parameter.annotation)
        what, holds = _KINDS.get(wanted.removesuffix(" | None"), ("", is_tensor))
        for one in value if parameter.kind is parameter.VAR_POSITIONAL else (value,):
            if what and not holds(one) and not (one is None and wanted.endswith("None")):
                return TypeError(f"{name}: {key} is {what}, not {_shown(one)}")
    text = ", ".join(f"{key}={_shown(value)}" for key, value in given.items())
    return kind(f"{name} cannot take {text}: {error}") if text else None


def _is_raised(trace: types.TracebackType) -> bool:
    """Whether it is a `raise` statement that raised, and not an operation that failed."""
    return trace.tb_frame.f_code.co_code[trace.tb_lasti] == _RAISE


def _shown(value: Any) -> str:
    if is_tensor(value):
        return f"a Tensor of shape {value.shape}"
    if isinstance(value, (tuple, list)) and any(map(is_tensor, value)):
        return f"a {type(value).__name__} of {len(value)} tensors"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
