"""Functions whose names end with an underscore: the result is written into the input's memory."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from ...tensor import Tensor
from ...tensor.as_functions import function_of
from . import activation


def _writing(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The function that writes its result into its first argument, and returns that."""

    def write(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return input._write_back(function(input, *args, **kwargs))

    known = inspect.signature(function)
    kept = [p for p in known.parameters.values() if p.name != "inplace"]
    made: Any = functools.update_wrapper(write, function)
    made.__name__ = made.__qualname__ = f"{function.__name__}_"
    made.__module__ = __name__
    made.__signature__ = known.replace(parameters=kept)
    made.__doc__ = f"`{function.__name__}` written into the memory of `input`; returns `input`."
    return write


def also_in_place(method: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A method as a function that also takes PyTorch's `inplace`, last, which changes nothing."""
    known = inspect.signature(method)
    parameters = list(known.parameters.values())
    count = len(parameters)

    def function(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        kwargs.pop("inplace", None)
        result: Tensor = plain(input, *args[: count - 1], **kwargs)
        return result

    plain: Any = function_of(method)
    made: Any = functools.update_wrapper(function, method)
    last = inspect.Parameter(
        "inplace", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=False, annotation="bool"
    )
    first = parameters[0].replace(name="input", annotation="Tensor")
    made.__signature__ = known.replace(parameters=[first, *parameters[1:], last])
    return made  # type: ignore[no-any-return]


alpha_dropout_ = _writing(activation.alpha_dropout)
celu_ = _writing(function_of(Tensor.celu))
dropout_ = _writing(activation.dropout)
elu_ = _writing(activation.elu)
feature_alpha_dropout_ = _writing(activation.feature_alpha_dropout)
hardtanh_ = _writing(function_of(Tensor.hardtanh))
leaky_relu_ = _writing(activation.leaky_relu)
relu_ = _writing(activation.relu)
rrelu_ = _writing(activation.rrelu)
selu_ = _writing(function_of(Tensor.selu))
threshold_ = _writing(function_of(Tensor.threshold))
