"""Methods of Tensor taken as functions, for the namespaces that PyTorch has them in."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def function_of(
    method: Callable[Arguments, Result], first: str = "input", **names: str
) -> Callable[Arguments, Result]:
    """A method as a function, whose first argument has a name; more names for others, by the method's."""
    method_name = {first: "self", **{new: old for old, new in names.items()}}

    def function(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        if kwargs:
            renamed: Any = {method_name.get(name, name): value for name, value in kwargs.items()}
            return method(*args, **renamed)
        return method(*args, **kwargs)

    made: Any = functools.update_wrapper(function, method)
    new_name = {old: new for new, old in method_name.items()}
    known = inspect.signature(method)
    own, *others = known.parameters.values()
    made.__signature__ = known.replace(
        parameters=[
            own.replace(name=first, annotation="Tensor"),
            *(p.replace(name=new_name.get(p.name, p.name)) for p in others),
        ]
    )
    return function
