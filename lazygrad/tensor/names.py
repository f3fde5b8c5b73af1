"""Other names: of methods, as numpy and PyTorch have them; of arguments, `dim` for `axis` and the reverse."""

from __future__ import annotations

import inspect
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
    "argwhere": "nonzero",
    "bitwise_left_shift": "lshift",
    "bitwise_right_shift": "rshift",
    "broadcast_to": "expand",
    "clip": "clamp",
    "concat": "cat",
    "concatenate": "cat",
    "divide": "div",
    "fix": "trunc",
    "ger": "outer",
    "greater": "gt",
    "greater_equal": "ge",
    "inverse": "inv",
    "less": "lt",
    "less_equal": "le",
    "mod": "remainder",
    "moveaxis": "movedim",
    "multi_dot": "chain_matmul",
    "multiply": "mul",
    "mvlgamma": "multigammaln",
    "ndimension": "dim",
    "negative": "neg",
    "nelement": "numel",
    "not_equal": "ne",
    "pinverse": "pinv",
    "ravel": "flatten",
    "row_stack": "vstack",
    "sgn": "sign",
    "split_with_sizes": "split",
    "subtract": "sub",
    "swapdims": "transpose",
    "swish": "silu",
    "trapz": "trapezoid",
    "true_divide": "div",
    "type": "cast",
    "unsafe_chunk": "chunk",
    "unsafe_split": "split",
    "unsafe_split_with_sizes": "split",
    "upsample": "interpolate",
    "view": "reshape",
    "view_as": "reshape_as",
    "xor": "bitwise_xor",
}


def add_other_names(cls: type) -> None:
    """Let the methods be there under their other names, too."""
    for name, known in OTHER_NAMES.items():
        setattr(cls, name, getattr(cls, known))


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


def own_names(kwargs: dict[str, Any], renamed: dict[str, str], name: str) -> dict[str, Any]:
    """Arguments by name, under the names that the function has for them."""
    made = dict(kwargs)
    for new in kwargs.keys() & renamed.keys():
        old = renamed[new]
        if old in kwargs:
            raise TypeError(f"{name}: give {old} or {new}, which are the same, not both")
        made[old] = made.pop(new)
    return made
