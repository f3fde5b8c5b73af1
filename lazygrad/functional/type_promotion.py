"""What dtypes become together."""

from __future__ import annotations

from typing import Any

from ..dtype import DType, dtypes, least_upper_dtype, to_dtype
from ..tensor import Tensor


def is_tensor(obj: Any) -> bool:
    """Whether it is a Tensor.

    >>> functional.is_tensor(Tensor([1.0])), functional.is_tensor(1.0)
    (True, False)
    """
    return isinstance(obj, Tensor)


def promote_types(type1: Any, type2: Any) -> DType:
    """The dtype that tensors of these two meet in.

    >>> functional.promote_types("int32", "float16")
    dtypes.half
    """
    return least_upper_dtype(to_dtype(type1), to_dtype(type2))


def result_type(tensor1: Any, tensor2: Any) -> DType:
    """The dtype of the sum of two, tensors or numbers.

    >>> functional.result_type(Tensor([1]), 1.0)
    dtypes.float
    """
    first = tensor1 if isinstance(tensor1, Tensor) or isinstance(tensor2, Tensor) else Tensor(tensor1)
    total: Tensor = first + tensor2
    return total.dtype


def can_cast(from_: Any, to: Any) -> bool:
    """Whether a cast keeps the kind: no float to an integer, nothing but bool to bool.

    >>> functional.can_cast("float32", "int32"), functional.can_cast("float64", "float32")
    (False, True)
    """
    old, new = to_dtype(from_), to_dtype(to)
    return _rank(old) <= _rank(new)


def _rank(dtype: DType) -> int:
    return 0 if dtypes.is_bool(dtype) else 2 if dtypes.is_float(dtype) else 1
