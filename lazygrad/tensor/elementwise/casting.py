"""Casts by the name of the dtype, or to that of another tensor."""

from __future__ import annotations

from ...dtype import dtypes
from ..face import Tensor
from ..formulas import formula


class Casting(Tensor):
    """Casts. (A class of its own, because here `int` is a method and no type.)"""

    float = formula("Cast to float32.", lambda x: x.cast(dtypes.float32), [1], [1.0])
    half = formula("Cast to float16.", lambda x: x.cast(dtypes.float16), [1], "dtypes.half", reads="dtype")
    bfloat16 = formula(
        "Cast to bfloat16.", lambda x: x.cast(dtypes.bfloat16), [1], "dtypes.bfloat16", reads="dtype"
    )
    double = formula(
        "Cast to float64.", lambda x: x.cast(dtypes.float64), [1], "dtypes.double", reads="dtype"
    )
    int = formula("Cast to int32.", lambda x: x.cast(dtypes.int32), [1.5], [1])
    long = formula("Cast to int64.", lambda x: x.cast(dtypes.int64), [1], "dtypes.long", reads="dtype")
    short = formula("Cast to int16.", lambda x: x.cast(dtypes.int16), [1], "dtypes.short", reads="dtype")
    char = formula("Cast to int8.", lambda x: x.cast(dtypes.int8), [1], "dtypes.char", reads="dtype")
    byte = formula("Cast to uint8.", lambda x: x.cast(dtypes.uint8), [1], "dtypes.uchar", reads="dtype")
    bool = formula("Whether elements are nonzero.", lambda x: x.cast(dtypes.bool), [0, 2], [False, True])

    def type_as(self, other: Tensor) -> Tensor:
        """Cast to the dtype of another tensor.

        >>> Tensor([1]).type_as(Tensor([0.5])).tolist()
        [1.0]
        """
        return self.cast(other.dtype)
