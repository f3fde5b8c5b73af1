"""What writes into the tensor's own memory: methods by PyTorch's names, `x.add_(y)`, and operators, `x += y`.

The result broadcasts to the shape of the tensor and takes its dtype, which must not be of a lower kind
(TypeError). Views of the same memory see it; values computed before keep what they read. Each takes what the
method without the underscore takes.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

#: The methods that have one.
IN_PLACE = """
    abs absolute neg negative sign sgn square sqrt rsqrt reciprocal exp exp2 expm1 log log2 log10 log1p
    sigmoid sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh arcsin arccos arctan arcsinh arccosh
    arctanh erf erfc erfinv lgamma digamma logit relu deg2rad rad2deg floor ceil round trunc fix frac
    nan_to_num add sub subtract mul multiply div divide true_divide floor_divide remainder fmod pow lerp
    addcmul addcdiv clamp clamp_min clamp_max clip copysign hypot atan2 arctan2 nextafter ldexp xlogy
    heaviside gcd lcm bitwise_and bitwise_or bitwise_xor bitwise_not bitwise_left_shift bitwise_right_shift
    masked_fill masked_scatter index_add index_copy index_fill index_reduce index_put scatter scatter_add
    scatter_reduce put cumsum cumprod tril triu addmm addmv addr addbmm baddbmm i0 igamma igammac mvlgamma
    polygamma renorm sinc eq ne lt le gt ge not_equal less less_equal greater greater_equal logical_and
    logical_or logical_xor logical_not float_power
"""
#: The looks at memory that a tensor can become, with another shape: `x.unsqueeze_(0)`.
LOOKS = "as_strided squeeze unsqueeze t transpose swapaxes swapdims"
#: The operators that have one, `__iadd__` of `__add__`.
OPERATORS = "add sub mul truediv floordiv mod pow and or xor lshift rshift"


def names_in_place() -> dict[str, str]:
    """What writes → what computes that."""
    methods = {f"{name}_": name for name in (*IN_PLACE.split(), *LOOKS.split())}
    return methods | {f"__i{name}__": f"__{name}__" for name in OPERATORS.split()}


def add_in_place(cls: type) -> None:
    """Add the methods whose names end with an underscore, and the operators that end with `=`."""
    looks = LOOKS.split()
    for name, known in names_in_place().items():
        make = _looking if known in looks else _writing
        setattr(cls, name, make(getattr(cls, known), name, known))


def _looking(method: Callable[..., Any], name: str, known: str) -> Callable[..., Any]:
    def view(self: Any, *args: Any, **kwargs: Any) -> Any:
        return self._become_view(method(self, *args, **kwargs), name)

    return _described(view, method, name, f"This tensor becomes `{known}` of what it was, in the same memory")


def _writing(method: Callable[..., Any], name: str, known: str) -> Callable[..., Any]:
    def write(self: Any, *args: Any, **kwargs: Any) -> Any:
        return self._write_back(method(self, *args, **kwargs))

    return _described(write, method, name, f"`{known}` written into this tensor's memory")


def _described(
    write: Callable[..., Any], method: Callable[..., Any], name: str, what: str
) -> Callable[..., Any]:
    write.__name__ = name
    write.__qualname__ = f"Tensor.{name}"
    write.__signature__ = inspect.signature(method).replace(return_annotation="Self")  # type: ignore[attr-defined]
    write.__annotations__ = {**inspect.get_annotations(method), "return": "Self"}
    example = re.search(r"^ *>>> .*", method.__doc__ or "", re.S | re.M)
    shown = re.sub(rf"\.{method.__name__}\(", f".{name}(", example.group(0) if example else "")
    call, _, result = shown.rstrip().rpartition("\n")
    if re.fullmatch(r" *\[(True|False).*", result):  # written into the numbers that are there
        shown = f"{call}\n{result.replace('True', '1').replace('False', '0')}"
    write.__doc__ = f"{what}; returns the tensor.\n\n{shown}"
    return write
